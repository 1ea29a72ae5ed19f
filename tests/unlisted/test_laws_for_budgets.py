"""The law of discovered keys that fits a budget: published thresholds, and budgets that are met."""

import math
from itertools import product
from typing import Any

import pytest

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.unlisted.laws_for_budgets import (
    delta_of_discovery,
    fitted_discovery,
    loss_of_discovery,
)
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)
from tests.helpers.distances import moved_by
from tests.helpers.sweeps import some_of

NAMES = ("optimal_threshold", "laplace_threshold", "gaussian_threshold")
#: ε, keys, and the least thresholds of the three laws at δ = 1e-8.
SEVERAL_KEYS = [
    *((1.0, 1, (19, 20, 31)), (1.0, 2, (36, 39, 43)), (1.0, 3, (54, 58, 53))),
    *((1.0, 4, (72, 78, 62)), (1.0, 5, (90, 99, 69)), (1.0, 10, (178, 202, 99))),
    *((1.0, 20, (356, 416, 141)), (1.0, 50, (887, 1084, 228)), (0.2, 1, (82, 91, 135))),
    *((0.2, 2, (162, 186, 194)), (0.2, 3, (243, 284, 240)), (0.2, 10, (807, 1004, 451))),
    *((4.0, 2, (11, 11, 13)), (4.0, 3, (15, 16, 16)), (4.0, 5, (25, 26, 20))),
    (4.0, 20, (97, 106, 40)),
]


@pytest.mark.parametrize(("epsilon", "keys", "thresholds"), some_of(SEVERAL_KEYS, 2))
def test_published_thresholds_of_several_keys(epsilon, keys, thresholds):
    arguments: Any = {"epsilon": epsilon, "delta": 1e-8, "d_in": Distance.limited(keys, 1)}
    found = [fitted_discovery(name, **arguments) for name in NAMES]
    assert tuple(one.law.threshold for one in found) == thresholds
    assert tuple(one.law.least_shown(0.5) for one in found) == thresholds
    for one in found if keys <= 20 else ():
        assert delta_of_discovery(one.law, epsilon, keys=keys) <= 1e-8 * (1 + 1e-15)
    auto = fitted_discovery("auto", **arguments)
    assert auto == found[thresholds.index(min(thresholds))]


ONE_KEY = [(0.1, (133, 179, 225)), (0.5, (28, 37, 47)), (1.0, (15, 20, 24)), (2.0, (8, 11, 13))]


@pytest.mark.parametrize(("epsilon", "thresholds"), some_of(ONE_KEY, 2))
def test_published_thresholds_of_the_laplace_law(epsilon, thresholds):
    for delta, threshold in zip((1e-6, 1e-8, 1e-10), thresholds, strict=True):
        arguments: Any = {"epsilon": epsilon, "delta": delta, "d_in": 1}
        assert fitted_discovery("laplace_threshold", **arguments).law.threshold == threshold
        assert fitted_discovery("auto", **arguments).law == OptimalThreshold(epsilon, delta)


@pytest.mark.parametrize(("keys", "thresholds"), [(1, (13, 14, 16)), (10, (39, 44, 49))])
def test_published_thresholds_under_rho(keys: int, thresholds: tuple[int, ...]) -> None:
    for delta, threshold in zip((1e-6, 1e-8, 1e-10), thresholds, strict=True):
        found = fitted_discovery("auto", rho=0.1, delta=delta, d_in=Distance.limited(keys, 1))
        assert isinstance(found.law, GaussianThreshold)
        assert found.law.threshold == threshold
        assert found.law.scale == pytest.approx(math.sqrt(keys / 0.2), rel=1e-15)


@pytest.mark.parametrize("rest", [0.0, 0.2])
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_the_automatic_law_shows_the_smallest_counts(budget: Any, rest: float) -> None:
    names = ["gaussian_threshold"]
    names += ["optimal_threshold", "laplace_threshold"] if "epsilon" in budget else []
    asked: dict[str, Any] = {**budget, "delta": 1e-8, "d_in": 1, "rest": rest}
    laws = [fitted_discovery(name, **asked).law for name in names]
    least = [law.least_shown(0.5) for law in laws]
    assert fitted_discovery("auto", **asked).law.least_shown(0.5) == min(least)
    if "epsilon" in budget and not rest:
        assert least == [31, 19, 20]


def test_the_rest_lowers_no_threshold_of_the_optimal_law() -> None:
    for epsilon, delta, shown, length in (
        (1.0, 1e-8, (19, 22, 24), 41),
        (0.1, 1e-6, (109, 138, 158), 242),
    ):
        found = fitted_discovery("auto", epsilon=epsilon, delta=delta, d_in=1, rest=0.2)
        assert isinstance(found.law, OptimalThreshold)
        assert tuple(found.law.least_shown(share) for share in (0.5, 0.95, 0.99)) == shown
        assert len(found.law.weights) == length
        assert found.rest is not None
        assert found.rest.scale == pytest.approx(5 / epsilon, rel=1e-15)


MOVED = ("people", "records"), (0.0, 0.2)
OF_EPSILON = product(NAMES, (0.3, 1.0, 6.0), (1, 2, 3, 7, 30), *MOVED)
OF_RHO = product(("gaussian_threshold",), (("rho", 0.02), ("rho", 1.0)), (1, 3, 30, 100), *MOVED)


@pytest.mark.parametrize(
    ("name", "budget", "d_in", "moved", "rest"), some_of([*OF_EPSILON, *OF_RHO], 12)
)
def test_a_budget_is_met_and_hardly_any_is_left(name, budget, d_in, moved, rest):
    delta = 1e-7
    concentrated = isinstance(budget, tuple)
    asked = {"rho": budget[1]} if concentrated else {"epsilon": budget}
    limit = budget[1] if concentrated else budget

    def spent(discovery: Discovery) -> tuple[float, float]:
        of = discovery, moved_by(d_in, moved)
        part = 0.0 if concentrated else delta
        loss = loss_of_discovery(*of, concentrated=concentrated, delta=part)
        return loss.rho if concentrated else loss.epsilon, loss.delta

    try:
        found = fitted_discovery(name, **asked, delta=delta, d_in=moved_by(d_in, moved), rest=rest)
    except ValueError as error:  # of group privacy there is no δ so small
        assert name == "optimal_threshold" and moved == "records"  # noqa: PT018
        assert "delta=" in str(error)  # noqa: PT017
        return
    privacy, chance = spent(found)
    assert privacy <= limit
    assert chance <= delta
    assert privacy >= limit * (1 - 1e-5)  # a scale is found to 1e-6
    assert (found.rest is not None) is (rest > 0)
    law = found.law
    if isinstance(law, OptimalThreshold):
        assert chance >= delta * (1 - 1e-12)
    else:
        lower = type(law)(law.scale, law.threshold - 1)
        assert max(spent(Discovery(lower, found.rest))) > limit or (
            spent(Discovery(lower, found.rest))[1] > delta
        )


def test_the_rest_of_other_laws_is_paid_apart() -> None:
    of_epsilon = fitted_discovery(
        "laplace_threshold", epsilon=1.0, delta=1e-8, d_in=Distance.limited(2, 1), rest=0.25
    )
    assert isinstance(of_epsilon.rest, DiscreteLaplace)
    assert of_epsilon.rest.scale == 8.0
    assert isinstance(of_epsilon.law, LaplaceThreshold)
    assert of_epsilon.law.scale == pytest.approx(2 / 0.75, rel=1e-15)
    moved = Distance.limited(3, 1)
    of_rho = fitted_discovery("gaussian_threshold", rho=0.5, delta=1e-8, d_in=moved, rest=0.5)
    assert isinstance(of_rho.rest, DiscreteGaussian)
    assert of_rho.rest.scale == pytest.approx(math.sqrt(9 / 0.5), rel=1e-15)
    assert isinstance(of_rho.law, GaussianThreshold)
    assert of_rho.law.scale == pytest.approx(math.sqrt(3 / 0.5), rel=1e-15)


@pytest.mark.parametrize(
    ("gap", "d_in", "moved"),
    [
        pytest.param(gap, *of, marks=[pytest.mark.slow] * (gap > 2.0**-53 and of[0] > 5))
        for gap in (2.0**-53, 2.0**-40, 0.01)
        for of in [(5, "records"), (65, "people")]
    ],
)
def test_a_budget_is_met_where_delta_is_near_one(gap: float, d_in: int, moved: Any) -> None:
    """Where the profile is flat in floats: of all ε that have this δ, the least is stated."""
    distance = moved_by(d_in, moved)
    found = fitted_discovery(
        "gaussian_threshold", epsilon=1.0, delta=1 - gap, d_in=distance, rest=0.3
    )
    loss = loss_of_discovery(found, distance, concentrated=False, delta=1 - gap)
    assert loss.epsilon <= 1.0
    assert loss.delta <= 1 - gap


def test_many_keys_a_person() -> None:
    for keys in (65, 1000):
        found = fitted_discovery("auto", epsilon=1.0, delta=1e-8, d_in=Distance.limited(keys, 1))
        assert isinstance(found.law, GaussianThreshold)
        loss = loss_of_discovery(found, Distance.limited(keys, 1), concentrated=False, delta=1e-8)
        assert loss.epsilon <= 1.0
