"""Noise from the K-norm mechanism on the counts: spread over all of them, and without changing their sum."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from secrets import randbits
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes._rounding import round_up
from opendp_bayes._validation import Floats, Integers, as_counts, as_distance, as_prior, as_scale
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.sampling import geometrics, uniform_below
from opendp_bayes.simplex import branches, candidates, ranks

#: Integers that `log_pmf` may hold: noise vectors times categories.
LARGEST_ENUMERATION = 4_000_000
#: `log_pmf` leaves out noise whose share of any candidate's probability is below `exp(-_NEGLIGIBLE)`, 4e-14.
_NEGLIGIBLE = 31.0
_BITS = 128
#: Up to these int64 holds the noise, and k times the sum of noised counts; beyond, Python integers do.
_LARGEST_SCALE, _LARGEST_SUM = 1 << 24, 1 << 40


@dataclass(frozen=True)
class KNormParameters:
    """Add integer noise `z` with `P(z) ∝ exp(-||z||_1 / (2 scale))` on `sum z = 0`, and return to the nearest counts.

    Changing one record moves the counts by a vector of `||.||_1 / 2 = 1`, so the loss is `1 / scale` for every number of categories: half of that of
    Laplace noise of the same scale for k >= 3. With two categories it is discrete Laplace noise. The number of records must be public; the
    released counts are non-negative and sum to it.

    Parameters
    ----------
    scale : positive number, in records changed.

    Source: the K-norm mechanism (Hardt and Talwar, "On the geometry of differential privacy") for the polytope of differences of unit vectors,
    on integers; `docs/mechanisms.md`, "K-norm noise".

    >>> from opendp_bayes import KNormParameters
    >>> candidates, log_p = KNormParameters(scale=1.0).log_pmf([1, 1, 0], prior=1.0)
    >>> dict(zip(map(tuple, candidates.tolist()), (2.718281828459045**log_p).round(4).tolist()))[(1, 1, 0)]
    0.1773
    """

    scale: float
    name: ClassVar[str] = "knorm_parameters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale(self.scale))  # a float, whatever number was given

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the number of records is private: the noise keeps it."""
        if size is None:
            raise ValueError(
                "size=None: the noise of KNormParameters keeps the number of records, which must be public; under add/remove neighbours "
                "use LaplaceParameters(scale, total='private')."
            )

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, and their log-probabilities, shape `(c,)`; the prior does not influence the noise.

        For k >= 3 every noise vector up to a norm is enumerated, beyond which less than 4e-14 of any candidate's probability lies. Raises
        `ValueError` where that takes more than `LARGEST_ENUMERATION` integers.
        """
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        k, size = counts.size, int(counts.sum())
        if k == 2:
            return LaplaceParameters(self.scale).log_pmf(counts, prior)
        if size == 0:
            return np.zeros((1, k), dtype=np.int64), np.zeros(1)
        largest = self._norm_to_enumerate(size - int(counts.min()), k)
        noise = noise_vectors(largest, k)
        outcome = ranks(nearest_counts(counts + noise, size), size)
        # How many noise vectors of each norm lead to each candidate, by candidate and then norm; then a short sum for each.
        norm = np.maximum(noise, 0).sum(axis=1)
        keys, multiplicity = np.unique(outcome * (largest + 1) + norm, return_counts=True)
        outcome, norm = np.divmod(keys, largest + 1)
        _, first, group = np.unique(outcome, return_index=True, return_inverse=True)
        nearest = norm[first]
        relative = np.bincount(group, weights=multiplicity * np.exp(-(norm - nearest[group]) / self.scale))
        return candidates(size, k), np.log(relative) - nearest / self.scale - _log_normaliser(k, self.scale)

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` releases, shape `(size, k)`, with exact integer noise."""
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        scale = Fraction(self.scale)
        noise = knorm_noise(counts.size, scale, size)
        if counts.sum() > _LARGEST_SUM:
            noise = noise.astype(object)
        return nearest_counts(noise + counts, int(counts.sum())).astype(np.int64)

    def proven_loss(self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0) -> PrivacyLoss:
        """`d_in / scale`, twice that for the range, both tight, and `epsilon^2 / 2` for rho (`docs/proofs.md`, "K-norm noise")."""
        d_in = as_distance(d_in)
        if d_in == 0:
            return NO_LOSS
        epsilon = d_in / Fraction(self.scale)
        return PrivacyLoss(epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(epsilon**2 / 2))

    def _norm_to_enumerate(self, reach: int, k: int) -> int:
        """The smallest norm, at least `reach`, beyond which the noise carries a negligible part of every probability.

        `reach` is the distance of the furthest candidate. A candidate at distance d has at least the weight `exp(-d / scale)` of the noise that
        leads straight to it. There are at most `C(2j, j) C(d + j - 1, j - 1)` vectors of norm d, j = k - 1, so a geometric series bounds the tail.
        """
        j = k - 1

        def enough(norm: int) -> bool:
            log_ratio = math.log1p((j - 1) / (norm + 2)) - 1 / self.scale
            if log_ratio >= 0:
                return False
            log_tail = math.log(math.comb(2 * j, j) * math.comb(norm + j, j - 1)) - (norm + 1) / self.scale - math.log(-math.expm1(log_ratio))
            return log_tail < -reach / self.scale - _NEGLIGIBLE

        # There are at least k (k - 1) vectors of every norm from 1.
        norms = range(LARGEST_ENUMERATION // (k * k * (k - 1)) + 1)
        affordable = bisect_right(norms, LARGEST_ENUMERATION // k, key=lambda norm: _vectors_within(norm, k)) - 1
        if affordable < reach or not enough(affordable):
            raise ValueError(
                f"counts: enumerating the noise on {k} categories at scale={self.scale!r} takes more than {LARGEST_ENUMERATION} integers. "
                "Fewer records, fewer categories or a smaller scale take less; sampling has no such limit."
            )
        return reach + bisect_left(range(reach, affordable), True, key=enough)


def knorm_noise(k: int, scale: Fraction, size: int) -> NDArray[Any]:
    """`size` samples of `P(z) ∝ exp(-||z||_1 / (2 scale))` on the z in Z^k with sum 0, shape `(size, k)`.

    z is the difference of two independent uniform ways to write m as a sum of k ordered parts, with `P(m) ∝ C(m + k - 1, m)^2 exp(-m / scale)`;
    and m is a number i, `P(i) ∝ C(k - 1, i)^2 exp(-i / scale)`, plus 2k - 1 geometrics (`docs/proofs.md`, "K-norm noise").
    """
    dtype: Any = np.int64 if scale <= _LARGEST_SCALE else object
    parts = geometrics(1 / scale, size * (2 * k - 1)).reshape(size, 2 * k - 1).astype(dtype)
    first = np.array([squared_binomial(k - 1, scale) for _ in range(size)], dtype=dtype)
    totals = first + parts.sum(axis=1)
    return compositions(totals, k) - compositions(totals, k)


def compositions(totals: NDArray[Any], k: int) -> NDArray[Any]:
    """For each total k non-negative integers that sum to it, uniformly, shape `(m, k)`: stars and bars, with the bars chosen by Floyd's algorithm."""
    bars = np.empty((totals.size, k - 1), dtype=totals.dtype)
    for i in range(k - 1):
        bar = uniform_below(totals + (i + 1))
        taken = np.any(bars[:, :i] == bar[:, None], axis=1)
        bars[:, i] = np.where(taken, totals + i, bar)
    places = (totals + (k - 1))[:, None]
    ends = np.concatenate([np.full_like(places, -1), np.sort(bars, axis=1), places], axis=1)
    return np.diff(ends, axis=1) - 1


def squared_binomial(n: int, scale: Fraction, bits: int = _BITS) -> int:
    """A sample of `P(i) ∝ C(n, i)^2 exp(-i / scale)`, i = 0..n, exactly.

    By inversion with a uniform number of which only so many bits are drawn as it takes to tell where it lies. Real numbers are enclosed by integers
    times `2^-bits`; where an enclosure leaves a doubt it is computed again with twice the bits, and the number is drawn further. Up to n = 1000 and
    with the default, that happens with probability below `2^-100`.
    """
    uniform, drawn = randbits(bits), bits
    while True:
        first, below, above = _cumulative(n, scale, bits)
        at_least, at_most = uniform * below[-1], (uniform + 1) * above[-1]
        place = bisect_right(above, at_least >> drawn, hi=len(above) - 1) - 1
        if place >= 0 and place + 1 < len(below) and at_most <= below[place + 1] << drawn:
            return first + place
        uniform, drawn, bits = uniform << bits | randbits(bits), drawn + bits, 2 * bits


@lru_cache(maxsize=128)
def _cumulative(n: int, scale: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    """Lower and upper bounds, in units of `2^-bits`, on the sums of the weights of `squared_binomial` below each i.

    Returns the first i, and two lists: entry j bounds the sum of the weights below `first + j`, and a last entry the sum of all. Weights are
    relative to one near the largest. They are log-concave, so those beyond the last one computed on a side are smaller than it, and it is below
    one unit.
    """
    low, high = exp_enclosure(1 / scale, bits)
    ratio = math.exp(-float(1 / scale) / 2)
    # Near the largest weight: a choice of units, which no law depends on.
    centre = min(int((n + 1) * ratio / (1 + ratio)), n) if low else 0
    unit = 1 << bits
    weights = {centre: (unit, unit)}
    for step in (1, -1):
        i, (lower, upper) = centre, weights[centre]
        while 0 <= i + step <= n and upper > 1:
            # The weight i + 1 is ((n - i) / (i + 1))^2 q times the weight i.
            if step == 1:
                up, down = (n - i) ** 2, (i + 1) ** 2
                lower, upper = lower * low * up // (down << bits), -(-upper * high * up // (down << bits))
            else:
                up, down = i**2, (n - i + 1) ** 2
                lower = (lower * up << bits) // (down * high)
                upper = -((-upper * up << bits) // (down * low))
            i += step
            weights[i] = lower, upper
    first, last = min(weights), max(weights)
    before, after = first * weights[first][1], (n - last) * weights[last][1]
    below = list(accumulate((weights[i][0] for i in range(first, last + 1)), initial=0))
    above = list(accumulate((weights[i][1] for i in range(first, last + 1)), initial=before))
    above[-1] += after
    return first, below, above


def exp_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits exp(-x) <= high`, for x >= 0, at most a few units apart."""
    if x > bits:
        return 0, 1
    digits = bits // 3 + 10
    floor, ceiling = (Context(prec=digits, rounding=rounding, traps=[]) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    numerator, denominator = Decimal(x.numerator), Decimal(x.denominator)
    # `exp` is correctly rounded to the nearest, so the next number on either side is beyond the true value.
    low = floor.next_minus(floor.exp(ceiling.divide(numerator, denominator).copy_negate()))
    high = ceiling.next_plus(ceiling.exp(floor.divide(numerator, denominator).copy_negate()))
    return math.floor(Fraction(low) * 2**bits), math.ceil(Fraction(high) * 2**bits)


def nearest_counts(noised: NDArray[Any], size: int) -> NDArray[Any]:
    """The non-negative integers, summing to `size`, with the smallest sum of squared differences to `noised`; shape `(..., k)`, like it.

    Every count is lowered by the same amount and not below 0. Where that amount is not whole, the largest counts are lowered by one less, the first
    of equal ones before the others. Exact, for integers of numpy within the range of int64 and for Python's (dtype object).

    >>> nearest_counts(np.array([[5, 4, -2], [3, 1, 3]]), 7).tolist()
    [[4, 3, 0], [3, 1, 3]]
    """
    order = np.argsort(-noised, axis=-1, kind="stable")
    descending = np.take_along_axis(noised, order, axis=-1)
    excess = np.cumsum(descending, axis=-1) - size
    rank = np.arange(1, noised.shape[-1] + 1)
    kept = (descending * rank >= excess).sum(axis=-1, keepdims=True)
    surplus = -np.take_along_axis(excess, kept - 1, axis=-1)
    lowered = np.where(rank <= kept, descending + surplus // kept + (rank <= surplus % kept), 0)
    result = np.empty_like(noised)
    np.put_along_axis(result, order, lowered, axis=-1)
    return result


def noise_vectors(largest: int, k: int) -> Integers:
    """Every z in Z^k with sum 0 and `||z||_1 / 2 <= largest`, shape `(c, k)`.

    >>> noise_vectors(1, 2).tolist()
    [[-1, 1], [0, 0], [1, -1]]
    """
    result = np.zeros((1, 0), dtype=np.int64)
    risen = fallen = np.zeros(1, dtype=np.int64)
    for _ in range(k - 1):
        children = 2 * largest + 1 - risen - fallen  # from -(largest - fallen) to largest - risen
        parents, child = branches(children)
        column = child - (largest - fallen)[parents]
        risen, fallen = risen[parents] + np.maximum(column, 0), fallen[parents] - np.minimum(column, 0)
        result = np.column_stack([result[parents], column])
    return np.column_stack([result, fallen - risen])


def shell_size(norm: int, k: int) -> int:
    """How many z in Z^k have sum 0 and `||z||_1 / 2 = norm`.

    >>> [shell_size(norm, 3) for norm in range(4)]
    [1, 6, 12, 18]
    """
    return _coefficient(norm, k - 1, k - 1)


def _vectors_within(norm: int, k: int) -> int:
    """How many z in Z^k have sum 0 and `||z||_1 / 2 <= norm`."""
    return _coefficient(norm, k - 1, k)


def _coefficient(power: int, n: int, poles: int) -> int:
    """The coefficient of `t^power` in `sum_i C(n, i)^2 t^i / (1 - t)^poles`, `poles >= 1`."""
    return sum(math.comb(n, i) ** 2 * math.comb(power - i + poles - 1, poles - 1) for i in range(min(power, n) + 1))


def _log_normaliser(k: int, scale: float) -> float:
    """`ln sum_z exp(-||z||_1 / (2 scale))`, from the generating function of the shell sizes."""
    terms = [2 * math.log(math.comb(k - 1, i)) - i / scale for i in range(k)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - (k - 1) * math.log(-math.expm1(-1 / scale))
