"""Exact samples of the discrete Gaussian law, against its definition."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.samplers import coins
from opendp_bayes.samplers.coins import discrete_gaussians
from tests.helpers import oracles

NUMBER = 30_000


def law(scale: float) -> dict[int, float]:
    reach = math.ceil(40 * scale) + 1
    weights = {z: math.exp(-((z / scale) ** 2) / 2) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.3, 7.0, 40.0])
def test_samples(scale: float) -> None:
    """At level `oracles.FALSE_ALARM`, and rejected where the scale is off by 30 %, or where the
    noise is a rounded normal variable's, which is wider at small scales.
    """
    observed: Counter[Any] = Counter(discrete_gaussians(Fraction(scale), NUMBER).tolist())
    assert not oracles.rejects(observed, law(scale))
    for factor in (0.7, 1.3):
        assert oracles.rejects(observed, law(factor * scale))
    if scale <= 1:
        rounded = np.rint(np.random.default_rng(0).normal(0, scale, NUMBER)).astype(int)
        assert oracles.rejects(Counter(rounded.tolist()), law(scale))


@pytest.mark.parametrize("scale", SCALES)
def test_scales_at_the_ends_of_their_range(scale: float) -> None:
    drawn = discrete_gaussians(Fraction(scale), 50)
    assert drawn.shape == (50,)
    standard = np.array([float(z) / scale for z in drawn.tolist()])
    assert np.all(standard == 0) if scale < 1 else 0.5 < np.std(standard) < 2


def test_no_samples() -> None:
    assert discrete_gaussians(Fraction(3), 0).shape == (0,)


def test_a_redraw_may_be_beyond_the_machine_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two are as good as never kept; the second does not fit where the first is."""
    draws = [np.array([1000]), np.array([2**70], dtype=object)]

    def laplaces(scale: Fraction, size: int) -> Any:
        return draws.pop(0) if draws else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(coins, "discrete_laplaces", laplaces)
    assert discrete_gaussians(Fraction(1), 1).tolist() == [0]
    assert draws == []
