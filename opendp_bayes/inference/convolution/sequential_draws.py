"""Independent draws of the true counts: one category after another, given what is left."""

from collections.abc import Iterator

import numpy as np

from opendp_bayes.inference.convolution.completions import Law, ListedTotals, OneCount
from opendp_bayes.inference.convolution.count_given_sum import Joint
from opendp_bayes.inference.convolution.grid import tails
from opendp_bayes.inference.convolution.grids import grids_of
from opendp_bayes.inference.convolution.sum_laws import SHORT, SumLaw
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats, Integers

#: Rounds of proposals, and the share of them that has to be accepted for another.
_ROUNDS, _ACCEPTED = 12, 0.05
#: How far the cells' laws, of which proposals are drawn, may be below the true ones.
_SLACK = 0.05
#: Laws that are computed at once.
_ROWS = 256


def draws_given(windows: Windows, sizes: Integers, rng: np.random.Generator) -> Integers:
    """Counts of every row of the windows, given their sums of shape `(m,)`; shape `(m, k)`.

    The narrowest comes first, so that the law of the sum of those that follow is smooth beside it.
    """
    k = windows.categories.k
    order = np.argsort(windows.variance)
    windows = windows.chosen(order)
    counts, left = np.empty((sizes.size, k), dtype=np.int64), sizes.copy()
    deviations = np.sqrt(np.cumsum(windows.variance[::-1])[::-1])
    windows = windows.cut(SHORT * np.append(deviations[1:], np.inf))
    for row, rest in enumerate(_laters(windows, deviations)):
        drawn = _drawn(OneCount(windows, row), rest, left, rng)
        counts[:, order[row]] = drawn
        left = left - drawn
    counts[:, order[-1]] = left
    return counts


def _laters(windows: Windows, deviations: Floats) -> Iterator[Law]:
    """The laws of the sums of the rows after each but the last."""
    k, ones = windows.categories.k, np.ones(windows.categories.k, dtype=np.int64)
    if k > 2:
        low, high = tails(windows, ones)
        means = np.cumsum(windows.mean[::-1])[::-1]
        # A part of the sum stays as near to its mean as the whole does.
        first, last = (np.cumsum(end[::-1])[::-1] for end in windows.ends)
        lowest = np.maximum(np.floor(means - (means[0] - low[0])), first)
        highest = np.minimum(np.ceil(means + (high[0] - means[0])), last)
        grids = grids_of(windows, ones, lowest[1:-1], highest[1:-1])
        laws = zip(*(grid.later() for grid in grids), strict=True)
        for row in range(1, k - 1):
            ends = float(lowest[row]), float(highest[row])
            yield SumLaw(list(next(laws)), *ends, float(deviations[row]), k - row)
    yield OneCount(windows, k - 1)


def _drawn(own: OneCount, rest: Law, left: Integers, rng: np.random.Generator) -> Integers:
    """A count for each number that is left: proposed from its own law and accepted with the
    probability of the rest, or where that is rare, from its law given the number.
    """
    drawn, waiting = np.empty_like(left), np.arange(left.size)
    if rest.log_peak is not None:
        masses = np.exp(own.log_masses - own.log_masses.max())
        proposals = CountLaws(own.cells, masses / masses.sum())
        for _ in range(_ROUNDS):
            laws = np.zeros(waiting.size, dtype=np.int64)
            counts, log_proposed = proposals.draw(laws, rng)
            real = counts.astype(np.float64)
            log_weight = own.log_density(real) - log_proposed - _SLACK
            log_weight += rest.log_density(left[waiting] - real) - rest.log_peak
            accepted = np.log1p(-rng.random(waiting.size)) <= log_weight
            drawn[waiting[accepted]] = counts[accepted]
            waiting = waiting[~accepted]
            if not waiting.size or accepted.mean() < _ACCEPTED:
                break
    totals, which = np.unique(left[waiting], return_inverse=True)
    for start in range(0, totals.size, _ROWS):
        rows = totals[start : start + _ROWS, None].astype(np.float64)
        joint = Joint(own, rest, ListedTotals(rows, np.zeros(1)))
        given = joint.laws(joint.cells())
        here = (which >= start) & (which < start + _ROWS)
        drawn[waiting[here]] = given.draw(which[here] - start, rng)[0]
    return drawn
