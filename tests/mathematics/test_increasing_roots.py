"""Roots of increasing functions, many at once."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.mathematics.increasing_roots import increasing_roots

LEVELS = np.array([1e-9, 0.03, 0.5, 0.97])


def below(places, which):
    return stats.norm.cdf(places) - LEVELS[which], stats.norm.pdf(places)


@pytest.mark.parametrize("start", [-30.0, 0.0, 7.0])
def test_quantiles_from_anywhere(start):
    """Also from where a density underflows and Newton's step is infinite."""
    found = increasing_roots(below, np.full(4, start), -40.0, 40.0, 1e-15)
    assert found == pytest.approx(stats.norm.ppf(LEVELS), abs=1e-5)
    rough = increasing_roots(below, np.full(4, start), -40.0, 40.0, 0.2)
    assert rough != pytest.approx(stats.norm.ppf(LEVELS), abs=1e-2)


def test_steps_are_found_and_those_that_creep_are_halved():
    """A derivative that is too large where the function is flat, as that half a step on may be."""

    def step(places, _which):
        return np.where(places < 0.3, -np.inf, 1.0), np.zeros(places.size)

    def negative(places, _which):
        return places - 5, np.ones(places.size)

    for function, root in ((step, 0.3), (negative, 1.0)):
        found = increasing_roots(function, np.zeros(1), -1.0, 1.0, 1e-9)
        assert found == pytest.approx([root], abs=1e-14)

    def flat(places, _which):
        return np.tanh(places - 3.4), np.maximum(1 - np.tanh(places - 3.4) ** 2, 0.5)

    found = increasing_roots(flat, np.array([300.0, -300.0]), -700.0, 700.0, 1e-12)
    assert found == pytest.approx([3.4, 3.4], abs=1e-9)
