"""Draws of a place by whole-number weights: every uniform number, and those next to an end."""

from collections import Counter
from itertools import accumulate

import numpy as np
import pytest

from opendp_bayes.samplers import uniform
from tests.helpers import oracles


def drawing(numbers: list[int], bits: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The heads that `random_words` gives, and the later bits where they are asked for."""
    later, asked = bits - 64, []
    heads = np.array([number >> later for number in numbers], dtype=np.uint64)
    monkeypatch.setattr(uniform, "random_words", lambda number: heads)

    def randbits(count: int) -> int:
        assert count == later
        place = doubtful.pop(0)
        asked.append(place)
        return numbers[place] & ((1 << later) - 1)

    doubtful: list[int] = []
    monkeypatch.setattr(uniform.secrets, "randbits", randbits)
    return doubtful


def test_a_place_is_that_of_the_interval_of_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers at the ends, beside them and between, with ends that share their first 64 bits."""
    bits = 66
    weights = [3, 5, 1 << 62, 0, (1 << 66) - 8 - (1 << 62)]
    ends = [*accumulate(weights)]
    numbers = sorted(
        {n for end in (0, *ends) for n in range(end - 6, end + 7) if 0 <= n < 1 << bits}
    )
    doubtful = drawing(numbers, bits, monkeypatch)
    heads = {min(end, 2**66 - 1) >> 2 for end in ends}
    doubtful += [i for i, number in enumerate(numbers) if number >> 2 in heads]
    found = uniform.weighted_places(weights, bits, len(numbers)).tolist()
    assert found == [sum(end <= number for end in ends) for number in numbers]
    assert 3 not in found  # of no weight
    assert not doubtful  # further bits were drawn there, and nowhere else


def test_the_head_alone_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: two numbers of one head lie in different places."""
    drawing([2, 3], 66, monkeypatch).extend([0, 1])
    assert uniform.weighted_places([3, (1 << 66) - 3], 66, 2).tolist() == [0, 1]


@pytest.mark.parametrize("bits", [64, 128])
def test_draws_follow_the_weights(bits: int) -> None:
    """A chi-square test at the false-alarm rate of `oracles.FALSE_ALARM`, which sees 30 %."""
    shares = [1, 5, 0, 20, 6]
    weights = [share << bits - 5 for share in shares]
    drawn = Counter(uniform.weighted_places(weights, bits, 50_000).tolist())
    assert not oracles.rejects(drawn, {i: share / 32 for i, share in enumerate(shares)})
    wrong = {0: 1.3 / 32, 1: 5 / 32, 3: 20 / 32, 4: 5.7 / 32}
    assert oracles.rejects(drawn, wrong)
