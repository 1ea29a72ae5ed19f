r"""Additive noise: one pair of distributions of a few values that stands for every pair of
neighbours.

The log-ratio of a Laplace density and its shift by m takes at most m + 1 values, whatever the data,
and clamping merges only outcomes of equal ratio. So the loss of a release is that of a pair on
those values (`docs/research/proofs.md`, "Exact loss of additive noise").
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from opendp_bayes.accounting.divergences import Block
from opendp_bayes.mathematics.log_space import log_sum
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mathematics.zero_sum import log_binomials, log_squares
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace, FlooredLaplace

LaplaceNoise = DiscreteLaplace | FlooredLaplace

#: Error of a logarithm below, relative to its largest term: a few dozen roundings.
_RELATIVE_ERROR = 2.0**-48


@dataclass(frozen=True, eq=False)
class NoisePairs:
    """`copies` independent coordinates, each with the log-probabilities `law` of the classes of
    outcomes with equal log-ratio.
    """

    law: tuple[Floats, Floats]
    log_error: float
    copies: int = 1
    method: str = "exact"

    def blocks(self) -> Iterator[Block]:
        log_p, log_q = np.zeros(1), np.zeros(1)
        for _ in range(self.copies):
            log_p, log_q = (
                np.add.outer(total, step).ravel()
                for total, step in zip((log_p, log_q), self.law, strict=True)
            )
        none = np.zeros((1, 0), dtype=np.int64)
        yield Block(none, none, log_p[:, None], log_q[:, None])


def laplace_shift(moved: int, noise: LaplaceNoise) -> tuple[Floats, Floats]:
    """Log-probabilities of integer Laplace noise, and of the same moved by `moved` records, over
    classes of outcomes with equal ratio.

    Classes are "at most the lowest kink", the single values between it and `moved`, and "at least
    `moved`". Discrete noise has its kink at 0, floored noise at -1.
    """
    lowest = min(noise.kinks)
    value = np.arange(lowest + 1, moved)

    def classes(shift: int) -> Floats:
        ends = noise.log_at_most(lowest - shift), noise.log_at_least(moved - shift)
        return np.concatenate([ends[:1], noise.log_mass(value - shift), ends[1:]])

    return classes(0), classes(moved)


def knorm_step(k: int, scale: float) -> tuple[Floats, Floats]:
    """Log-probabilities of K-norm noise by whether one changed record brings the outcome nearer:
    log-ratios `1/scale`, 0, `-1/scale`.

    The first has probability `A_{k-2}(q) / A_{k-1}(q)` with `A_j(q) = sum_i C(j, i)^2 q^i`, `q =
    exp(-1/scale)`, the last q times that.
    """
    log_near = log_squares(k - 2, scale) - log_squares(k - 1, scale)
    log_far = log_near - 1 / scale
    # 1 - (1 + q) A_{k-2} / A_{k-1}, term by term: C(k-1, i)^2 - C(k-2, i)^2 - C(k-2, i-1)^2 = 2
    # C(k-2, i) C(k-2, i-1).
    binomials = log_binomials(k - 2)
    even = [math.log(2) + binomials[i] + binomials[i - 1] - i / scale for i in range(1, k - 1)]
    log_even = log_sum(even) - log_squares(k - 1, scale) if even else -math.inf
    return np.array([log_near, log_even, log_far]), np.array([log_far, log_even, log_near])


def knorm_steps(k: int, scale: float, distance: int) -> tuple[Floats, Floats]:
    """A pair as bad as K-norm noise moved by `distance` records, whichever they are, or worse: one
    changed record after the other (`docs/research/proofs.md`, "Exact loss of additive noise").

    With β the largest power of an event of a given level, that of one record, the pair is the one
    whose largest power is β applied `distance` times: polygons, on exact fractions.
    """
    near = math.exp(float(knorm_step(k, scale)[0][0])) * (1 + knorm_error(k, scale))
    rate = math.exp(-1 / scale) * (1 - 2.0**-50)  # a larger loss is worse, and more often so too
    most = Fraction(min(near, 1 / (1 + rate)))
    least = most * Fraction(rate)
    corners = [(Fraction(0), Fraction(0)), (least, most), (1 - most, 1 - least)]
    single = [*dict.fromkeys(corners), (Fraction(1), Fraction(1))]
    several = single
    for _ in range(distance - 1):
        several = _applied(single, several)
    sides = [(y1 - y0, x1 - x0) for (x0, y0), (x1, y1) in pairwise(several)]
    masses = [side for side in sides if min(side) > 0]
    log_p, log_q = (  # numerators and denominators may be no floats
        np.array([math.log(p[side].numerator) - math.log(p[side].denominator) for p in masses])
        for side in (0, 1)
    )
    return log_p, log_q


Polygon = list[tuple[Fraction, Fraction]]


def _applied(outer: Polygon, inner: Polygon) -> Polygon:
    """The polygon of `outer(inner(level))`; both are concave and rise from 0 to 1."""
    corners: set[tuple[Fraction, Fraction]] = set()
    for (x0, y0), (x1, y1) in pairwise(inner):
        inside = [y for y, _ in outer if y0 < y < y1]
        corners |= {(x0 + (y - y0) * (x1 - x0) / (y1 - y0), y) for y in inside}
    corners |= set(inner)
    return [(x, _at(outer, y)) for x, y in sorted(corners)]


def _at(polygon: Polygon, x: Fraction) -> Fraction:
    """The height of a polygon at x."""
    after = next(i for i, corner in enumerate(polygon) if corner[0] >= x)
    (x1, y1), (x0, y0) = polygon[after], polygon[max(after - 1, 0)]
    return y1 if x == x1 else y0 + (x - x0) * (y1 - y0) / (x1 - x0)


def laplace_error(moved: int, scale: float) -> float:
    """Bound on the error of the log-probabilities of `laplace_shift`."""
    return _RELATIVE_ERROR * (16 + moved / scale + abs(math.log(scale)))


def knorm_error(k: int, scale: float) -> float:
    """Bound on the error of the log-probabilities of `knorm_step`: logarithms of sums of up to k
    terms, each of a binomial and an exponential.
    """
    return _RELATIVE_ERROR * (16 + 4 * k + k / scale)
