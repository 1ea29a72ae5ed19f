"""Logarithms of uniform numbers, from bits that are known."""

import math

import numpy as np
import pytest

from opendp_bayes.samplers import uniform


@pytest.mark.parametrize(
    ("halving", "rest", "value"),
    [
        (1, 0, (1 + 2.0**-53) / 2),
        (1, 2**64 - 1, 1 - 2.0**-54),
        (4, 0, (1 + 2.0**-53) / 4 / 2),
    ],
)
def test_a_number_is_in_the_middle_of_those_that_its_bits_leave(
    halving: int, rest: int, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits of `rest` follow the first one, after so many zeros."""
    words = [halving, rest]
    monkeypatch.setattr(
        uniform, "random_words", lambda number: np.array([words.pop(0)], dtype=np.uint64)
    )
    (found,) = uniform.log_uniforms(1)
    zeros = halving.bit_length() - 1
    half = 0.5 + (rest >> 12)
    assert found == math.log1p(half * 2.0**-52) - (zeros + 1) * math.log(2)
    assert found <= 0
    assert math.exp(found) == pytest.approx(value, rel=1e-15)
