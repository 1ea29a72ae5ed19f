r"""Divergences between the output distributions of neighbours, for many pairs at once.

Distributions come as logarithms of probabilities that are computed, not exact. Where each is within
`log_error` of the truth, a logarithm of a ratio is within twice that, and the certified functions
below move to the safe side (`docs/research/proofs.md`, "Exact accounting").
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy

from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.validation import Floats, Integers

#: Orders minus one at which Rényi divergences are evaluated, but for those of `orders_less_one`;
#: between two of them convexity bounds the divergence.
FINE_ORDERS_LESS_ONE = np.concatenate([[2.0**-10], np.geomspace(2.0**-9, 64.0, 300)])
#: The first two of few orders minus one, and by what each of the next is larger. The last is at
#: least 30, and so many times the inverse of the largest loss that those beyond do not matter.
_FIRST_ORDERS, _RATIO, _ENOUGH, _SMALLEST = (2.0**-6, 0.1), 1.5, 40.0, 4e-5
#: Pairs whose divergences are computed before the others are judged by them.
_AT_A_TIME = 16
_ENTRIES = 1 << 20  # of one array of tilted probabilities
#: Of a sum of at most 2^20 positive terms.
ROUNDING = 1 + Fraction(1, 2**32)


@dataclass(frozen=True)
class WorstPair:
    """Two data sets at the distance in question whose outputs have the largest log-ratio of
    probabilities, and that log-ratio, not rounded.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    epsilon: float


@dataclass(frozen=True, eq=False)
class Block:
    """Some pairs of data sets: counts of shape `(pairs, k)`, and log-probabilities of the outcomes,
    shape `(outcomes, pairs)`.

    Rows with `-inf` in both are no outcome. Several outcomes of the same log-ratio may share a row.
    """

    first: Integers
    second: Integers
    log_p: Floats
    log_q: Floats

    @property
    def log_ratio(self) -> Floats:
        """`ln P / Q`, with NaN in rows that are no outcome."""
        with np.errstate(invalid="ignore"):
            return self.log_p - self.log_q


def extremes(block: Block) -> tuple[Floats, Floats]:
    """The smallest and the largest `ln P / Q` of each pair, shape `(pairs,)` each."""
    ratio = block.log_ratio
    return np.fmin.reduce(ratio, axis=0), np.fmax.reduce(ratio, axis=0)


def hockey_stick(block: Block, epsilon: float) -> Floats:
    """`sum of (P - e^epsilon Q)+` over outcomes, the larger of both orders, shape `(pairs,)`;
    relatively accurate however small.
    """
    ratio = block.log_ratio
    return np.maximum(
        _one_sided(block.log_p, ratio, epsilon), _one_sided(block.log_q, -ratio, epsilon)
    )


def _one_sided(log_p: Floats, ratio: Floats, epsilon: float) -> Floats:
    above = ratio > epsilon
    excess = np.zeros(ratio.shape)
    np.expm1(epsilon - ratio, where=above, out=excess)
    np.multiply(excess, np.exp(log_p), where=above, out=excess)
    return -excess.sum(axis=0)


def largest_concentrated(block: Block, log_error: float, largest_before: float) -> float:
    """Certified bound on the largest concentrated loss of the pairs, or `largest_before` where that
    is more: for each pair, the smaller of `concentrated` and the bound by its range.

    The range costs little, so divergences are computed for the pairs of the largest ranges first,
    and no more for those whose range alone gives less than was found.
    """
    smallest, largest = extremes(block)
    by_range = (largest - smallest + 4 * log_error) ** 2 / 8 * (1 + 2.0**-40)
    order = np.argsort(-by_range)
    for start in range(0, order.size, _AT_A_TIME):
        pairs = order[start : start + _AT_A_TIME]
        if by_range[pairs[0]] <= largest_before:
            break
        chunk = Block(
            block.first[pairs], block.second[pairs], block.log_p[:, pairs], block.log_q[:, pairs]
        )
        losses = np.maximum(largest, -smallest)[pairs]
        bounds = np.minimum(concentrated(chunk, log_error, losses), by_range[pairs])
        largest_before = max(largest_before, float(bounds.max()))
    return largest_before


def orders_less_one(largest_ratio: float) -> Floats:
    """Orders minus one that are enough for log-ratios up to this."""
    first, second = _FIRST_ORDERS
    last = max(30.0, _ENOUGH / max(largest_ratio, _SMALLEST))
    steps = math.ceil(math.log(last / second) / math.log(_RATIO))
    return np.concatenate([[first], second * _RATIO ** np.arange(steps + 1)])


def concentrated(
    block: Block, log_error: float, largest_ratio: Floats, orders: Floats | None = None
) -> Floats:
    """Certified bound on the larger of both orders of `sup over a > 1 of D_a(P || Q) / a`, shape
    `(pairs,)`.

    With `K(t) = t D_{1 + t}`, a convex function with `K(0) = 0`, the chord bounds K between two
    orders; the largest value of `(A + B t) / (t (1 + t))` on an interval is at `t = (-A + sqrt(A^2
    - A B)) / B` or at an end. Beyond the last order `D <= largest_ratio`. The `orders`, minus
    one, are by default those of the largest ratio of all.
    """
    if orders is None:
        orders = orders_less_one(float(np.max(largest_ratio, initial=0.0)))
    worst = np.zeros(block.log_p.shape[1])
    t = np.concatenate([[0.0], orders])[:, None]
    several = max(1, _ENTRIES // block.log_p.size)  # orders at a time
    for p, q in ((block.log_p, block.log_q), (block.log_q, block.log_p)):
        with np.errstate(invalid="ignore"):
            tilted = np.where(np.isneginf(p), 0.0, p - q)
        parts = [
            log_sum_exp(p + orders[start : start + several, None, None] * tilted, axis=1)
            for start in range(0, orders.size, several)
        ]
        cumulants = np.concatenate([np.zeros((1, worst.size)), *parts])
        cumulants[1:] = np.maximum(cumulants[1:] + (1 + 2 * t[1:]) * log_error, 0.0)
        slope = np.diff(cumulants, axis=0) / np.diff(t, axis=0)
        # Above 0 only within errors; then the value falls and is largest at the left end.
        intercept = cumulants[:-1] - slope * t[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = (-intercept + np.sqrt(np.maximum(intercept**2 - intercept * slope, 0.0))) / slope
            inside = np.clip(np.where(np.isfinite(peak), peak, t[1:]), t[:-1], t[1:])
            points = np.stack(np.broadcast_arrays(inside, t[:-1], t[1:]))
            value = (intercept + slope * points) / (points * (1 + points))
        # Towards t = 0 on the first chord, which starts at the origin.
        value = np.where(points > 0, value, slope)
        beyond = (largest_ratio + 2 * log_error) / (1 + t[-1])
        worst = np.maximum(worst, np.maximum(value.max(axis=(0, 1)), beyond))
    return worst * (1 + 2.0**-40)


def delta_from_rho(rho: float, epsilon: float) -> float:
    """δ from the bound on ρ alone: `e^((α - 1) (α ρ - ε)) (1 - 1/α)^α / (α - 1)`, at about the best
    order α of all, each of which gives a bound (Canonne, Kamath and Steinke, Proposition 12).
    """
    if not 2.0**-900 < rho < math.inf:
        return float(rho > 0)

    def slope(order: float) -> float:  # of the logarithm of the bound, which is convex
        return (2 * order - 1) * rho - epsilon + math.log1p(-1 / order)

    order = 1.01
    if slope(order) < 0:
        most = (abs(epsilon) + 1) / rho + 2
        order = scipy.optimize.brentq(slope, order, most, rtol=2.0**-40, maxiter=2000)
    log_delta = (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order)
    log_delta -= math.log(order - 1)
    return 1.0 if log_delta >= 0 else math.exp(log_delta) * float(ROUNDING) + 2.0**-1000
