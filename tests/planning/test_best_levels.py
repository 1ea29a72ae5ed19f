"""Shares of levels, and how many neighbours they merge: against a search and a simulation."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from opendp_bayes.planning.best_levels import best_levels
from opendp_bayes.planning.tree_errors import CountTree
from tests.helpers.sweeps import some_of

POWERS = {"epsilon": 2.0, "rho": 1.0}


def error(k: int, shares: dict[int, float], wanted: Any, budget: str) -> float:
    tree = CountTree.of([np.arange(k) // width for width in shares])
    variances = np.array(list(shares.values())) ** -POWERS[budget]
    return tree.mean_error(variances, wanted)


def no_levels(k: int, wanted: Any) -> float:
    return error(k, {1: 1.0}, wanted, "epsilon")


@pytest.mark.parametrize(
    ("branching", "wanted", "budget"),
    some_of(product([3, 7, None], ["quantiles", "ranges"], POWERS), 7),
)
def test_no_shares_nearby_are_better(branching: int | None, wanted: Any, budget: Any) -> None:
    shares, smallest = best_levels(60, branching, wanted, budget)
    assert sum(shares.values()) == pytest.approx(1)
    assert smallest == pytest.approx(error(60, shares, wanted, budget))
    assert smallest <= error(60, dict.fromkeys(shares, 1 / len(shares)), wanted, budget)
    for one, other in pairwise([*shares, 1]):
        if one != other:
            step = 0.1 * min(shares[one], shares[other])
            moved = {**shares, one: shares[one] + step, other: shares[other] - step}
            assert smallest < error(60, moved, wanted, budget)


def test_two_levels_have_the_shares_of_a_grid() -> None:
    fine, coarse = best_levels(100, 10, "quantiles", "epsilon")[0].values()
    grid = np.linspace(0.01, 0.99, 981)
    errors = [error(100, {1: a, 10: 1 - a}, "quantiles", "epsilon") for a in grid]
    assert fine == pytest.approx(grid[int(np.argmin(errors))], abs=1.1e-3)
    assert coarse == pytest.approx(1 - fine)


@pytest.mark.parametrize("budget", POWERS)
def test_the_best_branching_is_that_of_all(budget: Any) -> None:
    shares, smallest = best_levels(40, None, "quantiles", budget)
    each = [best_levels(40, branching, "quantiles", budget)[1] for branching in range(2, 40)]
    assert smallest == pytest.approx(min(*each, no_levels(40, "quantiles")))
    assert len(shares) == (1 if budget == "epsilon" else 5)


def test_what_a_budget_is_best_spent_on() -> None:
    """With ε more levels cost more, with ρ twos are best; of cells alone no level is worth it."""
    assert list(best_levels(100, None, "quantiles", "epsilon")[0]) == [1, 10]
    assert list(best_levels(100, None, "quantiles", "rho")[0]) == [2**at for at in range(7)]
    for budget in ("epsilon", "rho"):
        assert best_levels(50, None, "cells", budget) == ({1: 1.0}, pytest.approx(0.98))
        assert best_levels(50, 4, "cells", budget)[0] == {1: pytest.approx(1.0)}
    assert list(best_levels(10, None, "quantiles", "epsilon")[0]) == [1]
    assert best_levels(2, None, "ranges", "rho")[0] == {1: 1.0}


@pytest.mark.slow
def test_of_a_thousand_categories_more_levels_are_worth_it() -> None:
    assert list(best_levels(1000, None, "quantiles", "epsilon")[0]) == [1, 10, 100]
    assert list(best_levels(1000, None, "quantiles", "rho")[0]) == [2**at for at in range(10)]


def test_the_error_is_that_of_a_simulation() -> None:
    """Consistent estimates of 40,000 draws of Laplace noise by dense least squares: the mean square
    of 63 prefixes has a standard error below 1 %, of which the threshold, 4 %, is more than four.
    """
    k, rng = 64, np.random.default_rng(0)
    shares, expected = best_levels(k, 4, "quantiles", "epsilon")
    matrices = [
        (np.arange(k)[None] // width == np.arange(-(-k // width))[:, None]) * share
        for width, share in shares.items()
    ]
    known = 1e4 * np.ones((1, k))
    design = np.vstack([*matrices, known])
    noise = rng.laplace(scale=np.sqrt(0.5), size=(40_000, len(design)))
    noise[:, -1] = 0
    estimates = noise @ np.linalg.pinv(design).T
    found = (np.cumsum(estimates, axis=1) ** 2).mean()
    assert found == pytest.approx(expected, rel=0.04)
    # Negative control: independent levels, whose answers do not agree.
    finest = np.cumsum(noise[:, :k], axis=1) / shares[1]
    assert (finest**2).mean() > 2 * expected
