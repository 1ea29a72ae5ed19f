"""Exact samplers on integers, with randomness from the operating system's CSPRNG (`secrets`).

No floating-point operation stands between the random bits and a sample: parameters are floats taken at their exact rational value, and
categorical weights are integers. The samplers of this module return their stated law exactly; only the step from a real weight to an integer
one (`ExactCategorical`) has an error, which `weight_error` bounds.
"""

import secrets
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes._validation import Floats, Integers

#: Bits of an integer weight. The sum over 2^20 candidates still fits into an int64.
_WEIGHT_BITS = 42
LARGEST_SUPPORT = 1 << 20
#: Up to such a numerator and denominator of a rate, int64 holds nearly every integer of `geometrics`.
_LARGEST_TERM = 1 << 57
_LARGEST_INT64 = (1 << 63) - 1
_FEW = 24  # so many numbers are drawn sooner one by one than at once

_LN2 = float(np.log(2.0))
_HEAD = 128  # halvings of the largest weight that the first draw resolves


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability `exp(-x)`, `x >= 0` (Canonne, Kamath and Steinke, "The discrete Gaussian", Algorithm 1)."""
    while x > 1:
        if not _bernoulli_exp_unit(1, 1):
            return False
        x -= 1
    return _bernoulli_exp_unit(x.numerator, x.denominator)


def _bernoulli_exp_unit(numerator: int, denominator: int) -> bool:
    """True with probability `exp(-x)` for `x = numerator / denominator` in [0, 1]: the parity of the first failure of Bernoulli(x / j)."""
    j = 1
    while secrets.randbelow(denominator * j) < numerator:
        j += 1
    return j % 2 == 1


def geometric(rate: Fraction) -> int:
    """A sample of `P(t) = (1 - q) q^t`, `t = 0, 1, ...`, `q = exp(-rate)` (the same paper, Algorithm 2), in expected constant time."""
    s, t = rate.numerator, rate.denominator
    while True:
        remainder = secrets.randbelow(t)
        if _bernoulli_exp_unit(remainder, t):
            break
    quotient = 0
    while _bernoulli_exp_unit(1, 1):
        quotient += 1
    return (remainder + t * quotient) // s


def floored_laplace(scale: Fraction) -> int:
    """A sample of `floor(Laplace(scale))`: a fair sign and a geometric, `G` or `-1 - G` (docs: Mechanisms, "Floored Laplace")."""
    draw = geometric(1 / scale)
    return draw if secrets.randbits(1) else -1 - draw


def discrete_laplace(scale: Fraction) -> int:
    """A sample of `P(t) = tanh(1 / (2 scale)) exp(-|t| / scale)`: a sign and a geometric, with "minus zero" drawn again."""
    while True:
        draw = geometric(1 / scale)
        if secrets.randbits(1):
            return draw
        if draw:
            return -draw


def uniform_below(bounds: NDArray[Any]) -> NDArray[Any]:
    """Independent uniform integers from 0 to below each bound, an array of shape `(m,)`.

    Bounds are positive, of int64 or Python integers of any length (dtype object).
    """
    if bounds.dtype == object or bounds.size < _FEW:
        return np.array([secrets.randbelow(bound) for bound in bounds.tolist()], dtype=bounds.dtype)
    mask = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | mask >> shift
    result = np.empty(bounds.size, dtype=np.int64)
    undecided = np.arange(bounds.size)
    while undecided.size:
        words = (random_words(undecided.size) >> np.uint64(1)).astype(np.int64)
        drawn = words & mask[undecided]
        inside = drawn < bounds[undecided]
        result[undecided[inside]] = drawn[inside]
        undecided = undecided[~inside]
    return result


def _bernoulli_exp_units(numerators: NDArray[Any], denominator: int) -> NDArray[np.bool_]:
    """`_bernoulli_exp_unit` for every numerator, shape `(m,)`."""
    result = np.empty(numerators.size, dtype=np.bool_)
    going, j = np.arange(numerators.size), 1
    while going.size:
        bound = denominator * j
        dtype = numerators.dtype if bound <= _LARGEST_INT64 else object
        bounds = np.full(going.size, bound, dtype=dtype)
        successes = (uniform_below(bounds) < numerators[going]).astype(np.bool_)
        result[going[~successes]] = j % 2 == 1
        going, j = going[successes], j + 1
    return result


def geometrics(rate: Fraction, size: int) -> NDArray[Any]:
    """`size` independent samples of the law of `geometric`, shape `(size,)`: the same steps, each for all samples at once.

    Python integers (dtype object) where those of numpy might overflow.

    >>> geometrics(Fraction(50), 3).tolist()
    [0, 0, 0]
    """
    s, t = rate.numerator, rate.denominator
    dtype: Any = np.int64 if max(s, t) <= _LARGEST_TERM else object
    if size < _FEW:
        return np.array([geometric(rate) for _ in range(size)], dtype=object)
    remainder, undecided = np.empty(size, dtype=dtype), np.arange(size)
    while undecided.size:
        drawn = uniform_below(np.full(undecided.size, t, dtype=dtype))
        accepted = _bernoulli_exp_units(drawn, t)
        remainder[undecided[accepted]] = drawn[accepted]
        undecided = undecided[~accepted]
    quotient, going = np.zeros(size, dtype=np.int64), np.arange(size)
    while going.size:
        going = going[_bernoulli_exp_units(np.ones(going.size, dtype=np.int64), 1)]
        quotient[going] += 1
    if t * (1 + int(quotient.max(initial=0))) > _LARGEST_INT64:
        remainder, quotient = remainder.astype(object), quotient.astype(object)
    return (remainder + t * quotient) // s


def floored_laplaces(scale: Fraction, size: int) -> NDArray[Any]:
    """`size` independent samples of the law of `floored_laplace`, shape `(size,)`."""
    magnitude = geometrics(1 / scale, size)
    return np.where(_signs(size), magnitude, -1 - magnitude)


def discrete_laplaces(scale: Fraction, size: int) -> NDArray[Any]:
    """`size` independent samples of the law of `discrete_laplace`, shape `(size,)`."""
    result = geometrics(1 / scale, size)
    undecided = np.arange(size)
    while undecided.size:
        negative = undecided[~_signs(undecided.size)]
        result[negative] = -result[negative]
        undecided = negative[result[negative] == 0]
        result[undecided] = geometrics(1 / scale, undecided.size)
    return result


def _signs(size: int) -> NDArray[np.bool_]:
    """`size` independent fair coins."""
    return np.asarray(random_words(size) >> np.uint64(63), dtype=np.bool_)


class ExactCategorical:
    """Sampler of an index with probability proportional to `exp(-exponents[index])`.

    `exponents` is a float array of shape `(c,)`, `c <= 2^20`, entries from 0 to 2^62. Each weight is rounded to an integer of
    `_WEIGHT_BITS` bits times a power of two; the law of those rounded weights is sampled exactly, however small they are, so no candidate
    loses its probability to underflow. The rounded weight is within a factor `exp(+-e)` of the real one, where
    `e = weight_error(max(exponents))`.
    """

    def __init__(self, exponents: Floats) -> None:
        if exponents.size > LARGEST_SUPPORT:
            raise ValueError(f"exponents: has {exponents.size} entries; must have at most {LARGEST_SUPPORT}.")
        if not (np.all(exponents >= 0) and np.all(exponents < 2.0**62)):
            raise ValueError("exponents: every entry must be at least 0 and below 2^62.")
        halvings = np.floor(exponents / _LN2).astype(np.int64)
        # Beyond exponents of 2^50 the reduction loses all digits, as `weight_error` says; the limits keep the weights positive.
        reduced = np.clip(halvings * _LN2 - exponents, -_LN2, 0.0)
        mantissas = np.rint(np.exp2(_WEIGHT_BITS - 1) * np.exp(reduced)).astype(np.int64)
        self._order = np.argsort(halvings, kind="stable")
        sorted_halvings = halvings[self._order]
        self._cumulative = np.cumsum(mantissas[self._order])
        starts = np.flatnonzero(np.diff(sorted_halvings, prepend=-1))
        ends = self._cumulative[np.append(starts[1:], exponents.size) - 1].tolist()
        self._before = [0, *ends[:-1]]
        self._levels = sorted_halvings[starts].tolist()
        self._totals = [end - before for end, before in zip(ends, self._before, strict=True)]
        self._remaining = [exponents.size - start for start in starts.tolist()] + [0]

    def draw(self) -> int:
        """Return one index.

        Levels (groups of candidates whose weights share a power of two) are resolved `_HEAD` halvings at a time. What lies below the levels
        resolved so far weighs less than a slot of known size, so a draw that lands in the slot goes one stage down or, if it lands beyond what
        is really there, starts again: a rejection sampler whose law does not depend on where the stages are cut.
        """
        while True:
            first, slot, position = 0, None, 0
            while first < len(self._levels):
                base = self._levels[first] + _HEAD
                last = first
                weights = []
                while last < len(self._levels) and self._levels[last] <= base:
                    weights.append(self._totals[last] << (base - self._levels[last]))
                    last += 1
                tail = self._remaining[last] << (_WEIGHT_BITS - 1)  # an upper bound on the weight below the resolved levels
                if slot is None:
                    position = secrets.randbelow(sum(weights) + tail)
                else:
                    width, level = slot
                    position = secrets.randbelow(width << (base - level))
                for level_index, weight in enumerate(weights, start=first):
                    if position < weight:
                        return self._within(level_index, position >> (base - self._levels[level_index]))
                    position -= weight
                if position >= tail:
                    break
                first, slot = last, (tail, base)

    def _within(self, level: int, position: int) -> int:
        place = np.searchsorted(self._cumulative, self._before[level] + position, side="right")
        return int(self._order[place])


def weight_error(largest_exponent: float) -> float:
    """Bound on `|ln(rounded weight) - ln(exact weight)|` in `ExactCategorical` for exponents up to `largest_exponent`.

    Rounding to the integer contributes at most `2^-41`; `exp` at most `2^-51`; the reduction by multiples of ln 2 at most three roundings of
    numbers up to the exponent, `largest_exponent * 2^-51`.
    """
    return 2.0**-40 + largest_exponent * 2.0**-50


def draws(sampler: ExactCategorical, size: int) -> Integers:
    """`size` independent draws as an int64 array of shape `(size,)`."""
    return np.fromiter((sampler.draw() for _ in range(size)), dtype=np.int64, count=size)


def random_words(number: int) -> NDArray[np.uint64]:
    """`number` independent uniform 64-bit words."""
    return np.frombuffer(secrets.token_bytes(8 * number), dtype=np.uint64)


def log_uniforms(number: int) -> Floats:
    """Logarithms of `number` uniform variables on (0, 1), each with 52 bits after its first, however small it is.

    The number of halvings is that of the zeros before the first one in a sequence of random bits. So `P(log_uniform < x)` is `exp(x)` within a
    relative error of `2^-51 + |x| 2^-52` for every `x <= 0`, not only for those that a fixed number of bits can resolve.
    """
    halvings = np.zeros(number, dtype=np.int64)
    undecided = np.arange(number)
    while undecided.size:
        words = random_words(undecided.size)
        last_one = words & (~words + np.uint64(1))
        found = words > 0
        _, exponents = np.frexp(last_one[found].astype(np.float64))
        halvings[undecided[found]] += exponents
        undecided = undecided[~found]
        halvings[undecided] += 64
    mantissas = (random_words(number) >> np.uint64(12)).astype(np.float64) + 0.5
    return np.log1p(mantissas * 2.0**-52) - halvings * _LN2
