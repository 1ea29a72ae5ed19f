"""A count, or a sum of counts, given the sum of all: its law, and the Beta mixture that follows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.beta_mixture import BetaMixture
from opendp_bayes.inference.cells import NOTHING, Cells
from opendp_bayes.inference.completions import (
    Law,
    ListedTotals,
    OneCount,
    SmoothTotals,
    WeightedTotals,
    runs,
)
from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.inference.negligible import beta_squares, matters
from opendp_bayes.inference.refinement import refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Shares of a cell whose Betas are narrower than the cell is long, at most.
_LARGEST_SHARE = 1 / 200
#: Components are grouped that lie within this share of their own deviation, and their deviations
#: within so much of each other; counts below `_SMALL` only with others of the same count.
_NEAR, _ALIKE, _SMALL = 0.5, 0.3, 12.0
#: The number of records is taken as its mean and variance where its deviation, relative to what the
#: others hold, is below this share of a Beta's in logits.
_NARROW = 0.1
#: Up to so much, totals a small part of its deviation apart make a mixture without ripples.
_DENSE = 3.0
#: Relative deviations count as no wider than this: the logarithm of a probability with a shape
#: below 1 has a scale of its own.
_WIDEST = 0.2
#: Cells, and components before they are grouped, that hold less than this share of the weight and
#: of the variance are left out.
_NEGLIGIBLE, _NEGLIGIBLE_APART = 1e-17, 1e-16
#: Relative weight of components whose width does not matter.
_LIGHT = 1e-7
#: More components than this are grouped at once.
_MOST_APART = 1 << 12
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


@dataclass(frozen=True, eq=False)
class Joint:
    """`own(x) rest(N - x)` times the weight of N, summed over N; for listed totals with several
    rows, x has a law of its own for every row.
    """

    own: Law
    rest: Law
    totals: ListedTotals | WeightedTotals | SmoothTotals

    def log_weight(self, row: Integers, counts: Floats) -> Floats:
        """Logarithms of the sums of the products."""
        rest = self.totals.log_sums(self.rest, row, counts)
        return np.maximum(self.own.log_density(counts) + rest, NOTHING)

    def cells(self) -> Cells:
        """Cells in which the sums of products are smooth, of every row."""
        own, rest, some = self.own, self.rest, self.totals.some
        if isinstance(own, OneCount) and rest.is_smooth:
            if len(some) == 1:
                return own.cells
            row = np.repeat(np.arange(len(some)), own.cells.first.size)
            ends = (np.tile(end, len(some)) for end in (own.cells.first, own.cells.last))
            return Cells(row, *ends)
        totals = self.totals
        least, most = some[:, 0], some[:, -1]
        if isinstance(totals, WeightedTotals):
            least, most = np.full(1, totals.lowest), np.full(1, totals.highest)
        lowest = np.broadcast_to(np.maximum(own.lowest, least - rest.highest), len(some))
        highest = np.broadcast_to(np.minimum(own.highest, most - rest.lowest), len(some))
        mirrored = np.floor(some[:, :, None] - rest.seeds).reshape(len(some), -1)
        own_seeds = np.broadcast_to(own.seeds, (len(some), own.seeds.size))
        starts = np.concatenate([own_seeds, mirrored], axis=1)
        return refined(self.log_weight, runs(starts, lowest, highest), len(some))

    def laws(self, cells: Cells) -> CountLaws:
        """The laws of the rows in the cells."""
        if isinstance(self.own, OneCount) and cells is self.own.cells:
            used, log_masses = cells.used, self.own.log_masses.copy()
            row = cells.category[np.nonzero(used)[0]]
            log_masses[used] += self.totals.log_sums(self.rest, row, cells.nodes[used])
        else:
            log_masses = cells.log_masses(self.log_weight)
        start = np.flatnonzero(np.diff(cells.category, prepend=-1))
        top = np.maximum.reduceat(log_masses.max(axis=1), start)
        masses = np.exp(log_masses - top[cells.category][:, None])
        total = np.add.reduceat(masses.sum(axis=1), start)
        return CountLaws(cells, masses / total[cells.category][:, None])


@dataclass(frozen=True, eq=False)
class Components:
    """Components of a Beta mixture, with keys of those that may be grouped; shapes `(c,)`."""

    a: Floats
    b: Floats
    weights: Floats
    key: Integers


@dataclass(frozen=True)
class Prior:
    """`Beta(alpha, others)` of a probability, and mean and deviation of the number of records."""

    alpha: float
    others: float
    size: float
    size_deviation: float


def marginal(joint: Joint, prior: Prior) -> tuple[CountLaws, Components]:
    """The law of the count and the components of its probability."""
    law = joint.laws(joint.cells())
    cells, shares = law.cells, law.masses.sum(axis=1)
    lengths = _lengths(cells, prior)
    wanted = np.ceil(np.minimum(lengths, shares / _LARGEST_SHARE))
    squares = (cells.nodes - law.mean()) ** 2
    squares = np.sum(law.masses * squares, axis=1) / np.maximum(shares, 1e-300)
    seen = matters(shares, squares, cells.category, _NEGLIGIBLE)
    kept = pieces = cells.where(seen)
    if np.any(lengths[seen] > 1):
        pieces = kept.cut(wanted[seen].astype(np.int64))
        for place in (int(_SMALL), int(prior.size) - int(_SMALL) + 1):
            pieces = pieces.parted(place, _lengths(pieces, prior) > 1)
    if pieces.first.size > kept.first.size:
        law = joint.laws(pieces)
    elif not np.all(seen):
        law = CountLaws(kept, law.masses[seen] / shares[seen].sum())
    return law, _components(joint, law, prior)


def _lengths(cells: Cells, prior: Prior) -> Floats:
    """Of cells, relative to the deviations of their Betas."""
    middle = cells.nodes[:, 1]
    a, b = middle + prior.alpha, np.maximum(prior.size - middle, 0) + prior.others
    return np.asarray(cells.length / np.sqrt(a * b / (a + b)))


def _components(joint: Joint, law: CountLaws, prior: Prior) -> Components:
    """Of the probability given what the cells' nodes stand for."""
    used = law.cells.used
    nodes, masses, totals = law.cells.nodes[used], law.masses[used], joint.totals
    wide = _wide(law.cells, prior)[np.nonzero(used)[0]]
    if isinstance(totals, ListedTotals) and totals.is_point:
        left = totals.totals[0, 0] - nodes
        return keyed(prior.alpha + nodes, prior.others + left, masses, nodes, left, wide)
    a, b = prior.alpha + nodes, prior.others + np.maximum(prior.size - nodes, 0)
    heavy = masses > _LIGHT * masses.max()
    width = np.minimum(np.sqrt(1 / a + 1 / b), _WIDEST)
    widest = float((prior.size_deviation / b / width)[heavy].max())
    narrow = widest <= _NARROW
    if isinstance(totals, SmoothTotals) and narrow:
        inside = (nodes >= totals.lowest) & (nodes <= totals.highest)
        a, nodes, masses, wide = a[inside], nodes[inside], masses[inside], wide[inside]
        inverse, spread = totals.at(nodes, 1), totals.at(nodes, 2)
        return _matched(a * inverse, 1 - a * inverse, a * spread, masses, nodes, prior, wide)
    if isinstance(totals, SmoothTotals):
        totals = totals.even if widest <= _DENSE else totals.listed
    row = np.zeros(nodes.shape, dtype=np.int64)
    place, left, log_weights = totals.pairs(joint.rest, row, nodes)
    start = np.flatnonzero(np.diff(place, prepend=-1))
    weights = np.exp(log_weights - np.maximum.reduceat(log_weights, start)[place])
    weights *= (masses / np.add.reduceat(weights, start))[place]
    a, b = a[place], prior.others + np.maximum(left, 0)
    if not narrow:
        seen = _seen(a, b, weights, _NEGLIGIBLE)
        own, wide = nodes[place][seen], wide[place][seen]
        return keyed(a[seen], b[seen], weights[seen], own, left[seen], wide)
    share, rest, own = a / (a + b), b / (a + b), np.maximum(masses, 1e-300)
    mean = np.add.reduceat(weights * share, start) / own
    other = np.add.reduceat(weights * rest, start) / own
    away = np.where(mean[place] < 0.5, share - mean[place], other[place] - rest)
    spread = np.add.reduceat(weights * (share * rest / (a + b + 1) + away**2), start) / own
    return _matched(mean, other, spread, masses, nodes, prior, wide)


def _wide(cells: Cells, prior: Prior) -> Floats:
    """For every cell that is longer than its Betas are wide, of counts that need not be kept apart,
    its number and its deviation in logits, shape `(cells, 2)`; not a number for others.
    """
    long = _lengths(cells, prior) > 1
    if not np.any(long):
        return np.full((long.size, 2), np.nan)
    middle, rest = cells.nodes[:, 1], np.maximum(prior.size - cells.last, 0)
    a, b = middle + prior.alpha, np.maximum(prior.size - middle, 0) + prior.others
    own = 1 / a + 1 / b
    long &= np.minimum(cells.first, rest) >= _SMALL
    deviation = np.minimum(np.sqrt(own + (cells.length * own) ** 2 / 12), _WIDEST)
    return np.where(long[:, None], np.column_stack([cells.first, deviation]), np.nan)


def _matched(
    mean: Floats,
    other: Floats,
    variance: Floats,
    weights: Floats,
    own: Floats,
    prior: Prior,
    wide: Floats,
) -> Components:
    """Components with these means, one minus these, and variances."""
    seen = (weights > 0) & (other > 0) & (variance > 0)
    mean, other, variance, own, wide = (x[seen] for x in (mean, other, variance, own, wide))
    count, weights = np.maximum(mean * other / variance - 1, 1e-6), weights[seen]
    a, b, left = mean * count, other * count, np.maximum(prior.size - own, 0)
    seen = _seen(a, b, weights, _NEGLIGIBLE)
    return keyed(a[seen], b[seen], weights[seen], own[seen], left[seen], wide[seen])


def _seen(a: Floats, b: Floats, weights: Floats, least: float) -> NDArray[np.bool_]:
    """Which components matter for the mixture of all."""
    one = np.zeros(a.shape, dtype=np.int64)
    return matters(weights, beta_squares(a, b, weights / weights.sum(), one), one, least)


def keyed(
    a: Floats,
    b: Floats,
    weights: Floats,
    own: Floats,
    rest: Floats,
    wide: Floats | None = None,
) -> Components:
    """Keys that are equal for components with nearly the same place and deviation, and for those
    of a cell that is `wide`, shape `(c, 2)`, and of nearly the same number of records: apart, they
    would be steps.
    """
    width = np.floor(np.log(1 / a + 1 / b) / _ALIKE)
    deviation = np.minimum(np.exp((width + 0.5) * _ALIKE / 2), _WIDEST)
    place = np.floor(np.log(a / b) / (_NEAR * deviation))
    if wide is not None and not np.all(np.isnan(wide[:, 0])):
        together, (cell, of_cell) = ~np.isnan(wide[:, 0]), wide.T
        width = np.where(together, cell, width)
        place = np.where(together, np.floor(np.log(own + rest + 1) / (_NEAR * of_cell)), place)
    small = [np.where(x < _SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (own, rest)]
    key = np.zeros(a.shape, dtype=np.int64)
    for column in (width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    if key.size <= _MOST_APART:
        return Components(a, b, weights, key)
    seen = _seen(a, b, weights, _NEGLIGIBLE_APART)
    grouped = BetaMixture.grouped(a[seen], b[seen], weights[seen], key[seen])
    total = weights[seen].sum()
    return Components(grouped.a, grouped.b, grouped.weights * total, np.unique(key[seen]))
