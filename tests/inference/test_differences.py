"""Differences of two mixtures of Betas, against sums over both; intervals that hold all at once."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.answers.comparison import BetaDifferences
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures

#: (a, b, weight) of the components of laws: smooth, narrow, two peaks, next to 0 and next to 1.
LAWS = {
    "smooth": [(3.0, 7.0, 1.0)],
    "narrow": [(1e5, 3e5, 1.0)],
    "two peaks": [(30.0, 70.0, 0.6), (400.0, 100.0, 0.4)],
    "near 0": [(0.3, 50.0, 1.0)],
    "near 1": [(50.0, 0.4, 0.5), (60.0, 3.0, 0.5)],
}
#: Spread over hundreds of logits, with components of next to no weight; and over some.
LAWS_OF_SPARSE_PRIORS = {
    "sparse": [(0.0127, 7.16, 1 - 6e-6), *((x + 0.0127, 7.16 - x, 1e-6) for x in range(1, 7))],
    "less sparse": [(0.17, 25.8, 0.98), (1.17, 24.8, 0.02)],
}


EVERY = {**LAWS, **LAWS_OF_SPARSE_PRIORS}


def mixtures(names):
    parts = [np.array(EVERY[name]) for name in names]
    start = np.cumsum([0, *map(len, parts)])
    return BetaMixtures(*np.concatenate(parts).T, start)


@cache
def quantiles(a, b):
    return stats.beta(a, b).ppf((np.arange(4000) + 0.5) / 4000)


def below(first, second, value):
    """P(X - Y <= value), the mean over 4000 quantiles of Y of each component: within 1/8000."""
    found = 0.0
    for a, b, weight in EVERY[second]:
        places = quantiles(a, b) + value
        each = sum(w * stats.beta(c, d).cdf(places) for c, d, w in EVERY[first])
        found += weight * each.mean()
    return found


def test_cumulative_probabilities_and_intervals_of_all_pairs_at_once():
    pairs = [(one, two) for one in LAWS for two in LAWS]
    found = BetaDifferences(*(mixtures(side) for side in zip(*pairs, strict=True)))
    lower, upper = found.interval(0.9)
    zero = found.cdf(np.zeros(1))
    for i, (one, two) in enumerate(pairs):
        assert zero[i] == pytest.approx(below(one, two, 0.0), abs=1e-3)
        assert below(one, two, lower[i]) == pytest.approx(0.05, abs=1e-3)
        assert below(one, two, upper[i]) == pytest.approx(0.95, abs=1e-3)
        mirrored = pairs.index((two, one))
        assert zero[i] + zero[mirrored] == pytest.approx(1, abs=1e-3)
    assert abs(zero[pairs.index(("smooth", "narrow"))] - 0.5) > 0.02  # not all of them are even


def test_differences_under_sparse_priors_of_every_shape():
    """Sums of weights are 1 but for rounding."""
    one, two = LAWS_OF_SPARSE_PRIORS
    found = BetaDifferences(mixtures([one, two]), mixtures([two, one])).cdf(np.zeros(1))
    assert found == pytest.approx([below(one, two, 0.0), below(two, one, 0.0)], abs=1e-3)
    weights = np.full(20, 1 / 20)
    law = BetaMixtures(np.arange(1.0, 21), np.arange(21.0, 1, -1), weights, np.array([0, 20]))
    assert weights.sum() > 1
    assert law.cdf(1.0) == 1
    found = BetaDifferences(law, law).cdf(np.array([[-1.0], [1.0]]))
    assert found.min() >= 0
    assert found.max() <= 1
    found = BetaDifferences(mixtures(["smooth", "near 0"]), mixtures(["near 0", "two peaks"]))
    values = np.array([[[-1.0]], [[0.1]], [[1.0]]])
    cdf = found.cdf(values)
    assert cdf.shape == (3, 1, 2)
    assert cdf[0] == pytest.approx(0, abs=1e-9)
    assert cdf[2] == pytest.approx(1, abs=1e-9)
    assert cdf[1, 0] == pytest.approx(
        [below("smooth", "near 0", 0.1), below("near 0", "two peaks", 0.1)], abs=1e-3
    )
    assert found.mean() == pytest.approx(found.first.mean() - found.second.mean())
