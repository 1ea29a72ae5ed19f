"""What is left out holds neither weight nor variance."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.negligible import beta_squares, matters


def test_squares_add_up_to_the_variances_of_the_mixtures():
    rng = np.random.default_rng(0)
    a, b = 10.0 ** rng.uniform(-3, 5, (2, 12))
    owner = np.repeat(np.arange(3), 4)
    weights = rng.dirichlet(np.ones(4), 3).ravel()
    found = np.bincount(owner, weights * beta_squares(a, b, weights, owner))
    right = []
    for part in np.split(np.arange(12), 3):
        mean = weights[part] @ (a[part] / (a[part] + b[part]))
        own = stats.beta(a[part], b[part])
        right.append(weights[part] @ (own.var() + (own.mean() - mean) ** 2))
    assert found == pytest.approx(right, rel=1e-12)


def test_a_part_is_compared_with_those_of_its_owner():
    owner, weights = np.array([0, 0, 1, 1]), np.array([1.0, 1e-9, 1e-9, 1e-9])
    assert matters(weights, np.ones(4), owner, 1e-6).tolist() == [True, False, True, True]
    assert matters(weights, np.array([1.0, 1e9, 1.0, 1.0]), owner, 1e-6).all()


def test_a_mixture_keeps_the_variance_of_a_component_of_no_weight():
    a, b = np.array([1e-6, 5.0]), np.array([1e9, 5.0])
    weights = np.array([1.0, 1e-20])
    groups, owner = np.arange(2), np.zeros(2, dtype=int)
    found = BetaMixtures.grouped(a, b, weights, groups, owner)
    assert found.variance() == pytest.approx(
        BetaMixtures(a, b, weights, np.array([0, 2])).variance()
    )
    assert found.variance() == pytest.approx(weights[1] * 0.25, rel=0.2)
    light = BetaMixtures.grouped(a, b, np.array([1.0, 1e-60]), groups, owner)
    assert light.a.size == 1
