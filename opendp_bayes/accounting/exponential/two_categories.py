r"""The exponential mechanisms on two categories: all pairs of neighbours, each over a window of
outcomes.

For data `x = (t, n - t)` and an outcome at offset j from t the exponent is `H(t, t + j) / w(t)`.
Outcomes whose Hellinger distance is 1 to the last bit have equal probability, so a window of
`O(sqrt(n))` offsets and their number describe the whole distribution (`docs/research/proofs.md`,
"Exact accounting"). Distances are tabulated by blocks of data sets, offsets by rows, so that the
outcome of a pair `(t, t + m)` is one row apart.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opendp_bayes.accounting.divergences import Block
from opendp_bayes.mathematics.exponential.hellinger import (
    distance_from_divergence,
    falling_gaps,
    gap_above,
)
from opendp_bayes.mathematics.validation import Floats, Integers

#: Bound on the relative error of a tabulated distance, half that of its divergence: that of a gap,
#: and of as many sums as a block has data sets, which are fewer than 1000.
TABLE_ERROR = 2.0**-43
#: Beyond this Bhattacharyya divergence, `1 - H < e^-40 / 2 < 2^-58`.
_FAR = 40.0
#: Entries of one block.
_ENTRIES = 1 << 19
#: Parts of a block that fit in a processor's cache.
_PARTS = 8
#: Entries of all blocks of one size and prior, above which they are computed again at each use.
_CACHED_ENTRIES = 1 << 24


@dataclass(frozen=True, eq=False)
class TwoCategoryPairs:
    """Every pair `(t, n - t)`, `(t + distance, n - t - distance)`, for mechanisms with the given
    widths, shape `(size + 1,)`.

    With `symmetric`, those of the mirrored data sets are left out.
    """

    size: int
    prior: tuple[float, ...]
    widths: Floats
    distance: int
    log_error: float
    symmetric: bool

    @property
    def method(self) -> str:
        return "exact" if window(self.size, self.prior) + self.distance >= self.size else "windowed"

    def blocks(self) -> Iterator[Block]:
        n, m = self.size, self.distance
        last = (n - m) // 2 if self.symmetric else n - m
        rate = 1 / self.widths
        # So that what is outside the window of one of the two is far from both.
        reach = min(window(n, self.prior) + m, n)
        for first, table in distance_tables(n, self.prior, reach, last, m):
            t = np.arange(first, first + table.shape[1])
            exponent = table * rate[t]
            outside = np.maximum(reach - t, 0) + np.maximum(t + reach - n, 0)
            far = n + 1 - (2 * reach + 1 - outside)  # outcomes beyond the window
            # Relative to the outcome t itself, whose exponent is 0, so the sum is at least 1.
            weights = np.exp(-exponent)
            log_total = np.log(weights.sum(axis=0) + far * np.exp(-rate[t]))
            log_p, log_q = -exponent[m:, :-m] - log_total[:-m], -exponent[:-m, m:] - log_total[m:]
            common = np.minimum(t[:-m] + reach, n) - np.maximum(t[m:] - reach, 0) + 1
            with np.errstate(divide="ignore"):
                log_far = np.log((n + 1 - common).astype(np.float64))
            yield Block(
                first=np.stack([t[:-m], n - t[:-m]], axis=1),
                second=np.stack([t[m:], n - t[m:]], axis=1),
                log_p=np.concatenate([log_p, (log_far - rate[t[:-m]] - log_total[:-m])[None]]),
                log_q=np.concatenate([log_q, (log_far - rate[t[m:]] - log_total[m:])[None]]),
            )


def work(size: int, prior: tuple[float, ...]) -> int:
    """Number of distances that are needed."""
    pairs = (size + 1) // 2 if prior[0] == prior[1] else size + 1
    return pairs * (2 * window(size, prior) + 1)


@lru_cache(maxsize=64)
def window(size: int, prior: tuple[float, ...]) -> int:
    """An offset beyond which every outcome has a divergence of at least `_FAR` from every data set;
    `size` if there is none.
    """
    return bisect_left(
        range(size), _FAR, key=lambda offset: _least_divergence(size, prior, offset + 1)
    )


def _least_divergence(size: int, prior: tuple[float, ...], offset: int) -> float:
    """A lower bound on the divergence of outcomes at this offset from their data sets. It increases
    with the offset.

    The gap of a category is a convex function of its concentration (`docs/research/proofs.md`,
    "Notation"), and the two have a given sum: at its half their gaps are smallest.
    """
    half_sum = (prior[0] + prior[1] + (size - offset)) / 2
    return 2 * float(gap_above(half_sum, offset / 2))


def distance_tables(
    size: int, prior: tuple[float, ...], reach: int, last: int, overlap: int
) -> Iterable[tuple[int, Floats]]:
    """Blocks of data sets `first, ...`: the first, and `H(t, t + j)` of shape `(2 reach + 1, data
    sets)`, infinite where `t + j` is no outcome.

    Together they cover `0..last + overlap`, each with the first `overlap` columns of the next.
    """
    are_cached = (2 * reach + 1) * (last + 1) <= _CACHED_ENTRIES
    return (_cached_tables if are_cached else _tables)(size, prior, reach, last, overlap)


@lru_cache(maxsize=4)
def _cached_tables(
    size: int, prior: tuple[float, ...], reach: int, last: int, overlap: int
) -> list[tuple[int, Floats]]:
    return list(_tables(size, prior, reach, last, overlap))


def _tables(
    size: int, prior: tuple[float, ...], reach: int, last: int, overlap: int
) -> Iterator[tuple[int, Floats]]:
    columns = max(_ENTRIES // (2 * reach + 1), 1)
    offsets = np.arange(-reach, reach + 1)[:, None]
    for first in range(0, last + 1, columns):
        t = np.arange(first, min(first + columns, last + 1) + overlap)
        parts = np.array_split(offsets, _PARTS)
        yield first, np.concatenate([_distances(prior, size, t, part) for part in parts])


def _distances(prior: tuple[float, ...], size: int, t: Integers, offsets: Integers) -> Floats:
    table, outcome = distance_from_divergence(_divergence(prior, size, t, offsets)), t + offsets
    table[(outcome < 0) | (outcome > size)] = np.inf
    return table


def _divergence(prior: tuple[float, ...], size: int, t: Integers, offsets: Integers) -> Floats:
    """`-ln BC` between the posteriors of successive t and of `t + offset`, which are a column; only
    meaningful where both are data sets.
    """
    half = np.abs(offsets) / 2
    lower = np.maximum(t + np.minimum(offsets, 0), 0)
    upper = np.maximum(size - t - np.maximum(offsets, 0), 0)
    return np.asarray(
        falling_gaps(prior[0] + lower[:, ::-1], half)[:, ::-1]
        + falling_gaps(prior[1] + upper, half)
    )
