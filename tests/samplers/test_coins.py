"""Exact coins, and samples of the discrete Gaussian law, against their definitions."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.samplers import coins
from opendp_bayes.samplers.integers import discrete_gaussians
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

NUMBER = 30_000


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.3, 7.0, 40.0])
def test_samples(scale: float) -> None:
    """Not of a rounded normal variable's noise, which is wider at small scales."""
    drawn = discrete_gaussians(Fraction(scale), NUMBER).astype(np.int64)
    oracles.check_draws(drawn, lambda factor: oracles.noise_law("gaussian", factor * scale))
    if scale <= 1:
        rounded = np.rint(np.random.default_rng(0).normal(0, scale, NUMBER)).astype(int)
        assert oracles.rejects(Counter(rounded.tolist()), oracles.noise_law("gaussian", scale))


@pytest.mark.parametrize("scale", SCALES)
def test_scales_at_the_ends_of_their_range(scale: float) -> None:
    drawn = discrete_gaussians(Fraction(scale), 50)
    assert drawn.shape == (50,)
    standard = np.array([float(z) / scale for z in drawn.tolist()])
    assert np.all(standard == 0) if scale < 1 else 0.5 < np.std(standard) < 2
    assert discrete_gaussians(Fraction(3), 0).shape == (0,)


@pytest.mark.parametrize(("x", "doubt"), some_of(product([0.0, 0.1, 1.0, 5.0, 50.0], [0, 2]), 4))
def test_flips(x: float, doubt: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided by floating point, or where that is always in doubt by enclosures."""
    monkeypatch.setattr(coins, "_DOUBT", doubt or coins._DOUBT)
    heads = int(coins.flips(np.full(NUMBER, x), lambda _: Fraction(x)).sum())
    if x in (0.0, 50.0):
        assert heads == (NUMBER if x == 0 else 0)
        return
    observed = Counter({True: heads, False: NUMBER - heads})
    assert not oracles.rejects(observed, {True: math.exp(-x), False: -math.expm1(-x)})
    assert oracles.rejects(observed, {True: math.exp(-1.3 * x), False: -math.expm1(-1.3 * x)})


@pytest.mark.parametrize("off", [0, 1, 3, 1 << 20, 1 << 30])
@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(0.7), Fraction(20)])
def test_words_next_to_a_probability(x, off, monkeypatch):
    """Each is decided as its exact value, with further bits where 64 do not tell. Negative control:
    without a doubt floating point decides wrongly.
    """
    exact = (-oracles.real(x)).exp() * oracles.real(2**64)
    middle = min(int(float(exact)), 2**64 - 1)  # off by up to 2^11
    near = range(middle - off - 9, middle + off + 9, 1 + off // 4)
    words = [word for word in near if 0 <= word < 2**64]
    monkeypatch.setattr(coins, "random_words", lambda _: np.array(words, dtype=np.uint64))
    monkeypatch.setattr(coins.secrets, "randbits", lambda _: 0)
    floats = np.full(len(words), float(x))
    truth = [bool(oracles.real(word) < exact) for word in words]
    assert coins.flips(floats, lambda _: x).tolist() == truth
    if off == 1 << 20 and x == Fraction(20):
        monkeypatch.setattr(coins, "_DOUBT", 0.0)
        wrong = coins.flips(floats + 0.001, lambda _: x)
        assert wrong.tolist() != truth
