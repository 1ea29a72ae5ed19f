"""Shares of a budget at which the expected errors of several questions are equal, or their mean is
smallest.

An error costs a calibration and a law, and in logarithms it is almost a straight line in the share,
so a few errors of each question describe its curve. The shares are solved for on the curves, the
errors there are computed, and the curves go through them from then on, until both agree.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import scipy
from scipy.special import log_softmax

from opendp_bayes.mathematics.validation import Floats

#: What shares can be solved for.
Goal = Literal["equal_errors", "smallest_error"]
#: Errors this close to each other, relatively, are equal, and shares are refined no further: about
#: a standard error of a simulated one.
_TOLERANCE = 3e-3
#: The same after all rounds, where errors jump.
_LARGEST_DIFFERENCE = 0.02
_ROUNDS = 8
#: Below this, errors are nothing and equal.
_NOTHING = 1e-9
#: The first shares at which errors are computed, in equal ones: three, so that curves bend.
_START = np.array([0.25, 0.6, 1.5])
#: The smallest share, in equal ones.
_SMALLEST = 1e-6
#: Of two errors at shares closer than this, in logarithms, the curve keeps the later: their
#: difference is that of simulations.
_APART = 1e-3


class ErrorCurve:
    """The logarithm of an error as a function of that of its share: through the errors computed so
    far, and straight beyond them.

    `error` : the expected error, positive, for a share between 0 and 1.
    """

    def __init__(self, error: Callable[[float], float], shares: Floats) -> None:
        self._error = error
        self._nodes: dict[float, float] = {}
        for share in shares.tolist():
            self.computed(math.log(share))

    def computed(self, log_share: float) -> float:
        """The error at a share, at least `_NOTHING`; the curve goes through it from now on."""
        near = [node for node in self._nodes if abs(node - log_share) < _APART]
        for node in near:
            del self._nodes[node]
        error = max(self._error(math.exp(log_share)), _NOTHING)
        self._nodes[log_share] = math.log(error)
        at, log_errors = zip(*sorted(self._nodes.items()), strict=True)
        if len(at) > 1:
            self._line = scipy.interpolate.PchipInterpolator(at, log_errors)
            # Downwards at least a little, so that beyond the ends every error has one share.
            self._ends = [
                (end, float(self._line(end)), min(float(self._line(end, 1)), -1e-3))
                for end in (at[0], at[-1])
            ]
        return error

    def __call__(self, log_share: float) -> float:
        (low, *_), (high, *_) = self._ends
        if low <= log_share <= high:
            return float(self._line(log_share))
        end, value, slope = self._ends[0 if log_share < low else 1]
        return value + slope * (log_share - end)


def solved_shares(
    errors: Mapping[str, Callable[[float], float]],
    goal: Goal,
    noise: Mapping[str, Callable[[float], float]] | None = None,
    ratios: Callable[[Floats], Floats] | None = None,
) -> dict[str, float]:
    """Shares of sum 1, by the names of the questions, at which their errors are equal within 0.3 %,
    or their mean is smallest.

    Parameters
    ----------
    errors : functions of the share, of each question alone.
    goal : what is wanted.
    noise : for the smallest mean, of the questions that are estimated together the variance of the
        noise as a function of the share.
    ratios : from these variances to the factors by which their errors are smaller then.

    Raises `ValueError` where no shares do it within 2 %.
    """
    count = len(errors)
    if count == 1:
        return dict.fromkeys(errors, 1.0)
    curves = [ErrorCurve(error, _START / count) for error in errors.values()]
    noise = noise or {}
    places = [list(errors).index(name) for name in noise]
    variances = [ErrorCurve(one, _START / count) for one in noise.values()]

    def factors(log_shares: Floats) -> Floats:
        """Factors of the errors of all questions, as they are estimated together."""
        found = np.ones(count)
        if ratios is not None:
            own = zip(variances, log_shares[places].tolist(), strict=True)
            found[places] = ratios(np.exp([curve(at) for curve, at in own]))
        return found

    log_shares, best, smallest = np.full(count, -math.log(count)), None, math.inf
    for _ in range(_ROUNDS):
        if goal == "equal_errors":
            log_shares = _equal(curves)
        else:
            log_shares = _smallest(curves, log_shares, factors)
        pairs = list(zip(curves, log_shares.tolist(), strict=True))
        expected = np.exp([curve(at) for curve, at in pairs])
        found = np.array([curve.computed(at) for curve, at in pairs])
        wanted = found.min() if goal == "equal_errors" else expected
        off = float(np.abs(found / wanted - 1).max())
        if off < smallest:
            best, smallest = log_shares, off
        if smallest <= _TOLERANCE:
            break
    if best is None or smallest > _LARGEST_DIFFERENCE:
        raise ValueError(
            f"share={goal!r}: no shares were found that do that within 2 %: part of an error, such"
            " as the width that an interval has without noise, stays at any budget. Choose another"
            " error, or give weights."
        )
    return dict(zip(errors, np.exp(best).tolist(), strict=True))


def _equal(curves: Sequence[ErrorCurve]) -> Floats:
    """Logarithms of shares of sum 1 at which all curves have the same height."""
    lowest = math.log(_SMALLEST / len(curves))

    def at(level: float) -> Floats:
        return np.array([_share_at(curve, level, lowest) for curve in curves])

    def excess(level: float) -> float:
        return math.fsum(np.exp(at(level))) - 1

    # At the lower level one question alone takes the whole; at the upper none more than its part.
    low = max(curve(0.0) for curve in curves)
    high = max(curve(-math.log(len(curves))) for curve in curves)
    level = scipy.optimize.brentq(excess, min(low, high) - 1e-9, high + 1e-9, xtol=1e-10)
    return log_softmax(at(level))


def _share_at(curve: ErrorCurve, level: float, lowest: float) -> float:
    """The logarithm of the share at which the curve comes down to the level."""
    if curve(lowest) <= level:
        return lowest
    if curve(0.0) >= level:
        return 0.0
    return float(scipy.optimize.brentq(lambda at: curve(at) - level, lowest, 0.0))


def _smallest(
    curves: Sequence[ErrorCurve], start: Floats, factors: Callable[[Floats], Floats]
) -> Floats:
    """Logarithms of shares of sum 1 at which the mean of the curves, each with its factor, is
    smallest.
    """
    lowest = math.log(_SMALLEST / len(curves))

    def mean(weights: Floats) -> float:
        log_shares = np.maximum(log_softmax(weights), lowest)
        alone = np.exp([c(at) for c, at in zip(curves, log_shares, strict=True)])
        return float(np.mean(alone * factors(log_shares)))

    scale = mean(start)
    best = scipy.optimize.minimize(lambda weights: mean(weights) / scale, start, method="BFGS")
    return np.maximum(log_softmax(best.x), lowest)
