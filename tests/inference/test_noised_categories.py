"""Weights of counts, one category at a time."""

import numpy as np
import pytest
from flint import arb, ctx

from opendp_bayes.inference.convolution.tilted_counts import NoisedCategories, hardness
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising, log_rising_factorial
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.given_noise import categories_of, log_absolute


def categories(law, drawn=(5, -3, 10**6), prior=(0.001, 1.0, 3e7), noised=(True, True, True)):
    return categories_of(drawn, prior, law, noised)


@pytest.mark.parametrize("alpha", [1e-6, 0.3, 1.0, 2.5, 1e4, 1e8])
@pytest.mark.parametrize("x", [0.0, 1.0, 7.5, 23.0, 24.0, 1e3, 1e9])
def test_the_prior_weight_in_ball_arithmetic(alpha, x):
    with ctx.workprec(200):
        right = float(((arb(x) + arb(alpha)).lgamma() - (arb(x) + 1).lgamma()).mid())
    assert log_rising(x, alpha) == pytest.approx(right, rel=1e-14, abs=1e-12)


@pytest.mark.parametrize("a", [1e-12, 0.3, 23.9, 24.1, 1e4, 1e15, 1e40])
@pytest.mark.parametrize("x", [0, 1, 23, 1000, 10**7])
def test_rising_factorials_in_ball_arithmetic(a, x):
    with ctx.workprec(400):
        right = float(((arb(x) + arb(a)).lgamma() - arb(a).lgamma()).mid())
    found = log_rising_factorial(np.array([a]), np.array([x]))
    assert found == pytest.approx([right], rel=1e-14, abs=1e-14)


def test_steps_of_the_prior_weight_keep_their_digits():
    x = np.array([1e6, 1e9])
    for alpha in (0.5, 3.0, 1e4):
        step = log_rising(x + 1, alpha) - log_rising(x, alpha)
        assert step == pytest.approx(np.log1p((alpha - 1) / (x + 1)), abs=1e-7)


@pytest.mark.parametrize("law", [DiscreteLaplace(2.0), FlooredLaplace(2.0), DiscreteGaussian(9.0)])
def test_weights_are_the_product_of_noise_and_prior(law):
    known = categories(law, drawn=(5, -3, 40), noised=(True, True, False))
    anchor, counts = np.array([4, 0, 7]), np.array([3, 0, 9, 30])
    category = np.array([0, 1, 0, 2])
    absolute = [
        (law.log_mass(known.looks[0].drawn[c] - x) if c < 2 else 0) + log_rising(x, known.prior[c])
        for c, x in zip(category, counts, strict=True)
    ]
    at_anchor = log_absolute(known, anchor)
    found = known.log_weight(category, counts, anchor)
    assert found == pytest.approx(np.array(absolute) - at_anchor[category], abs=1e-6)
    above = known.log_weight(category, counts + 1, anchor)
    assert known.log_step(category, counts) == pytest.approx(above - found, abs=1e-6)


def test_steps_and_bends_of_all_looks():
    """The logarithm itself is about -5e15, and its last digit larger than what matters. Second
    derivatives add; a look with kinks counts only where none is smooth.
    """
    known = categories(DiscreteGaussian(10.0), drawn=(-(10**9), 0, 0), prior=(1.0, 1.0, 1.0))
    found = known.log_weight(np.array([0]), np.array([3.0]), np.array([1, 0, 0]))
    assert found == pytest.approx(-2 * (10**9 + 2) / 100, rel=1e-14)
    assert hardness(DiscreteLaplace(2.0**-40)) == pytest.approx(256 * 2.0**-40)
    assert hardness(DiscreteLaplace(0.1)) == 1

    def bend(*laws):
        looks = tuple(DrawnCounts.of([5], law) for law in laws)
        return NoisedCategories(looks, np.ones(1)).bend

    assert bend(DiscreteGaussian(3.0), DiscreteGaussian(4.0)) == pytest.approx(2.4)
    assert bend(DiscreteGaussian(3.0), DiscreteLaplace(4.0)) == pytest.approx(3.0)
    assert bend(FlooredLaplace(3.0), DiscreteLaplace(4.0)) == pytest.approx(2.4)
