"""Exact samples of the discrete Gaussian law, against its definition."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.samplers import coins
from tests.helpers import oracles

NUMBER = 30_000


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.3, 7.0, 40.0])
def test_samples(scale: float) -> None:
    """Not of a rounded normal variable's noise, which is wider at small scales."""
    drawn = coins.discrete_gaussians(Fraction(scale), NUMBER).astype(np.int64)
    oracles.check_draws(drawn, lambda factor: oracles.noise_law("gaussian", factor * scale))
    if scale <= 1:
        rounded = np.rint(np.random.default_rng(0).normal(0, scale, NUMBER)).astype(int)
        assert oracles.rejects(Counter(rounded.tolist()), oracles.noise_law("gaussian", scale))


@pytest.mark.parametrize("scale", SCALES)
def test_scales_at_the_ends_of_their_range(scale: float) -> None:
    drawn = coins.discrete_gaussians(Fraction(scale), 50)
    assert drawn.shape == (50,)
    standard = np.array([float(z) / scale for z in drawn.tolist()])
    assert np.all(standard == 0) if scale < 1 else 0.5 < np.std(standard) < 2
    assert coins.discrete_gaussians(Fraction(3), 0).shape == (0,)


def test_a_redraw_may_be_beyond_the_machine_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two are as good as never kept; the second does not fit where the first is."""
    draws = [np.array([1000]), np.array([2**70], dtype=object)]

    def laplaces(scale: Fraction, size: int) -> Any:
        return draws.pop(0) if draws else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(coins, "discrete_laplaces", laplaces)
    assert coins.discrete_gaussians(Fraction(1), 1).tolist() == [0]
    assert draws == []
