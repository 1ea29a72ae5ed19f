"""Shares of a budget at which the mean of the expected errors of several questions is smallest.

An error costs a calibration and a law, and in logarithms it is almost a straight line in the share,
so a few errors of each question describe its curve. The shares are solved for on the curves, which
go through the errors there from then on, until both agree.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy
from scipy.special import log_softmax

from opendp_bayes.mathematics.validation import Floats

#: Curves and errors agree within this, about a standard error of a simulated one; rounds at most.
_TOLERANCE, _ROUNDS = 3e-3, 8
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
            self._compute(math.log(share))

    def refine(self, log_share: float) -> float:
        """Let the curve go through the error at a share; returns by how much it was off, in
        logarithms.
        """
        before = self(log_share)
        return abs(self._compute(log_share) - before)

    def _compute(self, log_share: float) -> float:
        """The logarithm of the error at a share, at least that of `_NOTHING`."""
        near = [node for node in self._nodes if abs(node - log_share) < _APART]
        for node in near:
            del self._nodes[node]
        log_error = math.log(max(self._error(math.exp(log_share)), _NOTHING))
        self._nodes[log_share] = log_error
        at, log_errors = zip(*sorted(self._nodes.items()), strict=True)
        if len(at) > 1:
            self._line = scipy.interpolate.PchipInterpolator(at, log_errors)
            # Downwards at least a little, so that beyond the ends every error has one share.
            self._ends = [
                (end, float(self._line(end)), min(float(self._line(end, 1)), -1e-3))
                for end in (at[0], at[-1])
            ]
        return log_error

    def __call__(self, log_share: float) -> float:
        (low, *_), (high, *_) = self._ends
        if low <= log_share <= high:
            return float(self._line(log_share))
        end, value, slope = self._ends[0 if log_share < low else 1]
        return value + slope * (log_share - end)


def solved_shares(
    errors: Mapping[str, Callable[[float], float]],
    noise: Mapping[str, Callable[[float], float]] | None = None,
    ratios: Callable[[Floats], Floats] | None = None,
) -> dict[str, float]:
    """Shares of sum 1, by the names of the questions, at which the mean of their errors is
    smallest.

    Parameters
    ----------
    errors : functions of the share, of each question alone.
    noise : of the questions that are estimated together, the variance of the noise as a function of
        the share.
    ratios : from these variances to the factors by which their errors are smaller then.
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

    log_shares = np.full(count, -math.log(count))
    for _ in range(_ROUNDS):
        log_shares = _smallest(curves, log_shares, factors)
        pairs = list(zip(curves, log_shares.tolist(), strict=True))
        if max([curve.refine(at) for curve, at in pairs]) <= _TOLERANCE:
            break
    return dict(zip(errors, np.exp(log_shares).tolist(), strict=True))


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
