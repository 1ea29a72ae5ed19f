"""Levels of ordered categories, and shares of a budget for them, from public numbers alone.

A level of width w merges w neighbours at a time; its last group may be smaller. The error that is
made small is that of least squares on the tree (`tree_errors`). Noise matters by ratios only, so
neither the budget nor the number of records is needed.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.planning.tree_errors import CountTree, Wanted

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
    power = _POWERS[budget]
    if branching is not None:
        return _with_shares(_widths(k, branching), k, wanted, power)
    found = [_with_shares([1], k, wanted, power)]
    for each in range(2, min(k, _WIDEST + 1)):
        found.append(_with_shares(_widths(k, each), k, wanted, power))
    return min(found, key=lambda plan: plan[1])


def _widths(k: int, branching: int) -> list[int]:
    """Numbers of neighbours that each level merges, until at most `branching` groups remain."""
    widths = [1]
    while -(-k // widths[-1]) > branching:
        widths.append(widths[-1] * branching)
    return widths


def _with_shares(
    widths: Sequence[int], k: int, wanted: Wanted, power: float
) -> tuple[dict[int, float], float]:
    """Shares of the levels with the smallest error, without levels that are worth nothing."""
    tree = CountTree.of([np.arange(k) // width for width in widths])

    def log_error(weights: Floats) -> float:
        log_shares = np.maximum(log_softmax(weights), _LOWEST)
        return math.log(tree.mean_error(np.exp(-power * log_shares), wanted))

    best = minimize(log_error, np.zeros(len(widths)), method="BFGS")
    shares = dict(zip(widths, np.exp(log_softmax(best.x)).tolist(), strict=True))
    kept = [width for width, share in shares.items() if width == 1 or share >= _SMALLEST]
    if len(kept) < len(widths):
        return _with_shares(kept, k, wanted, power)
    return shares, math.exp(best.fun)
