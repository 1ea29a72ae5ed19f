"""Poisson counts given draws of them with noise, against sums over every count."""

import numpy as np
import pytest
from flint import arb, ctx
from scipy import special

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.poisson_counts import PoissonCounts, log_poisson
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace

DRAWN = np.array([50, -3, 0, 900, 4, 7])
RATES = np.array([40, 2, 0.01, 700, 100, 1e-9])
LAWS = [
    DiscreteLaplace(0.05),
    DiscreteLaplace(3.0),
    DiscreteLaplace(400.0),
    FlooredLaplace(0.2),
    FlooredLaplace(20.0),
    DiscreteGaussian(0.4),
    DiscreteGaussian(20.0),
]


@pytest.mark.parametrize("rate", [1e-8, 0.7, 60.0, 1e4, 1e9])
@pytest.mark.parametrize("away", [-6.0, -0.3, 0.0, 2.0, 40.0])
def test_poisson_probabilities_in_ball_arithmetic(rate, away):
    count = max(round(rate + away * rate**0.5), 0)
    with ctx.workprec(300):
        exact = count * arb(rate).log() - arb(rate) - (arb(count) + 1).lgamma()
        right = float(exact.mid())
    log_rate = np.array([np.log(rate)])
    found = log_poisson(np.array([count]), log_rate, np.array([rate]))
    assert found == pytest.approx([right], rel=1e-12, abs=3e-9)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("noised", [True, False])
def test_laws_against_sums_over_every_count(law, noised):
    known = np.full(DRAWN.size, noised)
    known[::2] = True
    made = PoissonCounts.of(DrawnCounts.of(DRAWN, law, known), np.arange(DRAWN.size), np.log(RATES))
    counts = np.arange(6000)
    for row, (drawn, rate, seen) in enumerate(zip(DRAWN, RATES, known, strict=True)):
        log_weight = counts * np.log(rate) - rate - special.gammaln(counts + 1.0)
        log_weight = log_weight + law.log_mass(drawn - counts) * seen
        log_sum, share = special.logsumexp(log_weight), special.softmax(log_weight)
        mean = share @ counts
        assert made.log_evidence[row] == pytest.approx(log_sum, rel=1e-12, abs=1e-8)
        assert made.mean[row] == pytest.approx(mean, rel=1e-7, abs=1e-12)
        variance = share @ (counts - mean) ** 2
        assert made.variance[row] == pytest.approx(variance, rel=1e-6, abs=1e-12)


def test_wide_laws_are_held_at_few_points_and_may_be_cut():
    """Of a million records with noise of scale 1000, against noise of another."""
    noisy, place = DrawnCounts.of([10**6], DiscreteLaplace(1000.0)), np.array([0])
    made = PoissonCounts.of(noisy, place, np.log([1.002e6]))
    assert made.points[0].size < 1000
    fine = made.cut(20.0)
    assert np.max(fine.cells.length) <= 20
    assert fine.log_evidence == pytest.approx(made.log_evidence, abs=1e-7)
    assert fine.mean == pytest.approx(made.mean, abs=1e-3)
    other = DrawnCounts.of([10**6], DiscreteLaplace(1100.0))
    wrong = PoissonCounts.of(other, place, np.log([1.002e6]))
    assert abs(float(wrong.log_evidence[0] - made.log_evidence[0])) > 1e-3
