"""Exact draws of an index by integer weights, with random bits from `secrets`.

Only the step from a real weight to an integer one has an error, which `weight_error` bounds.
"""

import secrets

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers

#: Bits of an integer weight. The sum over 2^20 candidates still fits into an int64.
_WEIGHT_BITS = 42
LARGEST_SUPPORT = 1 << 20

_LN2 = float(np.log(2.0))
_HEAD = 128  # halvings of the largest weight that the first draw resolves


class ExactCategorical:
    """Sampler of an index with probability proportional to `exp(-exponents[index])`.

    `exponents` is a float array of shape `(c,)`, `c <= 2^20`, entries from 0 to 2^62. Each weight
    is rounded to an integer of `_WEIGHT_BITS` bits times a power of two; the law of those rounded
    weights is sampled exactly, however small they are, so no candidate loses its probability to
    underflow. The rounded weight is within a factor `exp(+-e)` of the real one, where `e =
    weight_error(max(exponents))`.
    """

    def __init__(self, exponents: Floats) -> None:
        if exponents.size > LARGEST_SUPPORT:
            raise ValueError(
                f"exponents: has {exponents.size} entries; must have at most {LARGEST_SUPPORT}."
            )
        if not (np.all(exponents >= 0) and np.all(exponents < 2.0**62)):
            raise ValueError("exponents: every entry must be at least 0 and below 2^62.")
        halvings = np.floor(exponents / _LN2).astype(np.int64)
        # Beyond exponents of 2^50 the reduction loses all digits, as `weight_error` says; the
        # limits keep the weights positive.
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

    def sample(self, draws: int) -> Integers:
        """Return independent indices, shape `(draws,)`."""
        return np.fromiter((self.draw() for _ in range(draws)), dtype=np.int64, count=draws)

    def draw(self) -> int:
        """Return one index.

        Levels (groups of candidates whose weights share a power of two) are resolved `_HEAD`
        halvings at a time. All candidates below the levels resolved so far weigh less than a
        slot of known size. A draw that lands in the slot goes one stage down, and starts again if
        it lands beyond their weight. The law of this rejection sampler does not depend on where the
        stages are cut.
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
                # An upper bound on the weight below the resolved levels.
                tail = self._remaining[last] << (_WEIGHT_BITS - 1)
                if slot is None:
                    position = secrets.randbelow(sum(weights) + tail)
                else:
                    width, level = slot
                    position = secrets.randbelow(width << (base - level))
                for level_index, weight in enumerate(weights, start=first):
                    if position < weight:
                        return self._within(
                            level_index, position >> (base - self._levels[level_index])
                        )
                    position -= weight
                if position >= tail:
                    break
                first, slot = last, (tail, base)

    def _within(self, level: int, position: int) -> int:
        place = np.searchsorted(self._cumulative, self._before[level] + position, side="right")
        return int(self._order[place])


def weight_error(largest_exponent: float) -> float:
    """Bound on `|ln(rounded weight) - ln(exact weight)|` in `ExactCategorical` for exponents up to
    `largest_exponent`.

    Rounding to the integer contributes at most `2^-41`; `exp` at most `2^-51`; the reduction by
    multiples of ln 2 at most three roundings of numbers up to the exponent, `largest_exponent *
    2^-51`.
    """
    return 2.0**-40 + largest_exponent * 2.0**-50
