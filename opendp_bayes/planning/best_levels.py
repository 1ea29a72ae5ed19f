"""Levels of ordered categories, and shares of a budget for them, from public numbers alone.

A level of width w merges w neighbours at a time; its last group may be smaller. The error that is
made small is that of least squares on the tree (`tree_errors`). Noise matters by ratios only, so
neither the budget nor the number of records is needed.
"""

import math
from collections.abc import Mapping
from typing import Literal, TypeVar

import numpy as np
import scipy

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.planning.tree_errors import CountTree, Wanted

K = TypeVar("K")

#: How the noise of a level depends on its share of the budget: the variance goes with its inverse
#: square for ε, and with its inverse for ρ.
Budget = Literal["epsilon", "rho"]
_POWERS: dict[Budget, float] = {"epsilon": 2.0, "rho": 1.0}
#: The largest number of neighbours that is tried. Up to 10,000 categories the best is below 30.
_WIDEST = 64
#: A level whose best share is smaller is left out.
_SMALLEST = 0.01
#: The logarithm of the smallest share on the way there, so that variances stay finite.
_LOWEST = math.log(1e-5)


def best_levels(
    k: int, branching: int | None, wanted: Wanted, budget: Budget
) -> tuple[dict[int, float], float]:
    """Shares of sum 1 by the width of each level, the finest first; and the mean variance of the
    wanted estimates, where noise that has the whole budget for itself has variance 1.

    Without `branching` the one from 2 to 64 with the smallest error is taken, or one table alone.
    """
    if branching is not None:
        return best_shares(_of_widths(k, branching), wanted, budget)
    tried = (k, *range(2, min(k, _WIDEST + 1)))  # the first is one table alone
    found = (best_shares(_of_widths(k, each), wanted, budget) for each in tried)
    return min(found, key=lambda plan: plan[1])


def _of_widths(k: int, branching: int) -> dict[int, Integers]:
    """The partitions of `k` categories by numbers of neighbours that each level merges, until at
    most `branching` groups remain.
    """
    widths = [1]
    while -(-k // widths[-1]) > branching:
        widths.append(widths[-1] * branching)
    return {width: np.arange(k) // width for width in widths}


def best_shares(
    parts: Mapping[K, Integers], wanted: Wanted, budget: Budget
) -> tuple[dict[K, float], float]:
    """Shares of sum 1 of the levels with the smallest error, as `best_levels` has them, without
    levels that are worth nothing.

    `parts` are their partitions of the categories by name, finest first and no two alike; each has
    the part of every category, shape `(k,)`, in order where more than the categories is wanted.
    """
    tree, power = CountTree.of(list(parts.values())), _POWERS[budget]

    def log_error(weights: Floats) -> float:
        log_shares = np.maximum(_log_shares(weights), _LOWEST)
        return math.log(tree.mean_error(np.exp(-power * log_shares), wanted))

    best = scipy.optimize.minimize(log_error, np.zeros(len(parts)), method="BFGS")
    shares = dict(zip(parts, np.exp(_log_shares(best.x)).tolist(), strict=True))
    finest = next(iter(parts))
    kept = {
        name: part for name, part in parts.items() if name == finest or shares[name] >= _SMALLEST
    }
    if len(kept) < len(parts):
        return best_shares(kept, wanted, budget)
    return shares, math.exp(best.fun)


def _log_shares(weights: Floats) -> Floats:
    """Logarithms of shares of sum 1, whatever the weights are."""
    return np.asarray(weights - np.logaddexp.reduce(weights))
