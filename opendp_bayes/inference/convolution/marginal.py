"""The law of a count, and the Beta mixture that its probability is."""

import numpy as np

from opendp_bayes.inference.convolution.completions import ListedTotals
from opendp_bayes.inference.convolution.count_given_sum import Joint
from opendp_bayes.inference.convolution.size_rows import rows_of
from opendp_bayes.inference.convolution.smooth_totals import SmoothTotals
from opendp_bayes.inference.laws.beta_mixture import BetaMixture
from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.grouped_components import (
    BROADLY,
    NEGLIGIBLE,
    NEGLIGIBLE_APART,
    SMALL,
    WIDEST,
    Components,
    Prior,
    keyed,
    matched,
    seen_of,
)
from opendp_bayes.inference.laws.negligible import beta_squares, matters
from opendp_bayes.mathematics.validation import Floats, Integers

#: Shares of a cell whose Betas are narrower than the cell is long, at most, and of one given a
#: private number of records.
_LARGEST_SHARE, _LARGEST_GIVEN = 1 / 200, 1 / 400
#: The number of records is taken as its mean and variance where its deviation, relative to what the
#: others hold, is below this share of a Beta's in logits.
_NARROW = 0.1
#: Up to so much, totals a small part of its deviation apart make a mixture without ripples, and the
#: cells of a count serve all of them.
_DENSE = 3.0
#: Relative weight of components whose width does not matter.
_LIGHT = 1e-7
#: Numbers of records make a mixture without ripples if the means of the probability, given one and
#: given the next, are at most so many of its deviations apart; those lighter do not matter.
_BESIDE, _LIGHT_ROW = 1.0, 1e-4


def marginal(joint: Joint, prior: Prior) -> tuple[CountLaws, Components]:
    """The law of the count and the components of its probability."""
    size = np.full(1, prior.size)
    law = _cut(joint, size, prior, _LARGEST_SHARE)
    if prior.size_law is None:
        return law, _components(joint, law, prior, 0.0)
    widest, shares = _widest(law, prior), law.masses.sum(axis=1)
    long = (_lengths(law.cells, size, prior) > 1) & (shares > _LIGHT)
    if widest > _DENSE and np.any(long):
        found = _by_size(joint, prior, prior.size_law)
        if found is not None:
            return law, found
    return law, _components(joint, law, prior, widest)


def _cut(joint: Joint, sizes: Floats, prior: Prior, largest: float) -> CountLaws:
    """The laws of the count, in every row of a number of records, in cells that hold little where
    they are longer than their Betas are wide.
    """
    law = joint.laws(joint.cells())
    cells, shares = law.cells, law.masses.sum(axis=1)
    lengths = _lengths(cells, sizes, prior)
    wanted = np.ceil(np.minimum(lengths, shares / largest))
    squares = (cells.nodes - law.mean()[cells.category][:, None]) ** 2
    squares = np.sum(law.masses * squares, axis=1) / np.maximum(shares, 1e-300)
    seen = matters(shares, squares, cells.category, NEGLIGIBLE)
    kept = pieces = cells.where(seen)
    if np.any(lengths[seen] > 1):
        pieces = kept.cut(wanted[seen].astype(np.int64))
        near_all = sizes.astype(np.int64) - int(SMALL) + 1
        for places in (np.full(sizes.size, int(SMALL)), near_all):
            long = _lengths(pieces, sizes, prior) > 1
            pieces = pieces.parted(places[pieces.category], long)
    if pieces.first.size > kept.first.size:
        return joint.laws(pieces)
    if np.all(seen):
        return law
    left = np.bincount(kept.category, shares[seen])
    return CountLaws(kept, law.masses[seen] / left[kept.category][:, None])


def _lengths(cells: Cells, sizes: Floats, prior: Prior) -> Floats:
    """Of cells, relative to the deviations of their Betas."""
    middle = cells.nodes[:, 1]
    a = middle + prior.alpha
    b = np.maximum(sizes[cells.category] - middle, 0) + prior.others
    return np.asarray(cells.length / np.sqrt(a * b / (a + b)))


def _widest(law: CountLaws, prior: Prior) -> float:
    """The deviation of the number of records, relative to what the others hold and to that of a
    Beta in logits, where it is largest.
    """
    used = law.cells.used
    nodes, masses = law.cells.nodes[used], law.masses[used]
    a, b = prior.alpha + nodes, prior.others + np.maximum(prior.size - nodes, 0)
    width = np.minimum(np.sqrt(1 / a + 1 / b), WIDEST)
    return float((prior.size_deviation / b / width)[masses > _LIGHT * masses.max()].max())


def _by_size(joint: Joint, prior: Prior, law: CountLaws) -> Components | None:
    """Of the probability given numbers of records, each of which has cells of its own: some near 0
    and some near the number; None where these numbers would be steps.
    """
    sizes, weights = rows_of(law)
    own, rest = joint.own, joint.rest
    inside = (sizes >= own.lowest + rest.lowest) & (sizes <= own.highest + rest.highest)
    sizes, weights = sizes[inside], weights[inside] / weights[inside].sum()
    given = Joint(own, rest, ListedTotals(sizes[:, None], np.zeros(1)))
    rows = _cut(given, sizes, prior, _LARGEST_GIVEN)
    used, wide = rows.cells.used, ~np.isnan(_wide(rows.cells, sizes, prior)[:, 0])
    cell = np.nonzero(used)[0]
    row, nodes = rows.cells.category[cell], rows.cells.nodes[used]
    masses = rows.masses[used] * weights[row]
    a, b = prior.alpha + nodes, prior.others + np.maximum(sizes[row] - nodes, 0)
    if not _are_beside(a, b, masses, row):
        return None
    # The nodes of a long cell are one component, others are what they are.
    group: Integers = np.where(wide[cell], cell, cell.size + np.arange(cell.size))
    order = np.argsort(group)
    order = order[seen_of(a, b, masses, NEGLIGIBLE_APART)[order]]
    group = group[order]
    made = BetaMixture.grouped(a[order], b[order], masses[order], group)
    first = order[np.diff(group, prepend=-1) > 0]
    alone = ~wide[cell[first]]
    count = np.where(alone, nodes[first], np.inf)
    left = np.where(alone, sizes[row[first]] - nodes[first], np.inf)
    return keyed(made.a, made.b, made.weights * masses.sum(), count, left, near=BROADLY)


def _are_beside(a: Floats, b: Floats, weights: Floats, row: Integers) -> bool:
    """Whether the mixtures of the rows overlap with those of the next."""
    share_of = np.bincount(row, weights)
    mean = np.bincount(row, weights * a / (a + b)) / share_of
    square = np.bincount(row, weights * beta_squares(a, b, weights / share_of[row], row))
    deviation, heavy = np.sqrt(square / share_of), share_of > _LIGHT_ROW
    mean, deviation = mean[heavy], deviation[heavy]
    return bool(
        np.all(np.abs(np.diff(mean)) <= _BESIDE * np.minimum(deviation[1:], deviation[:-1]))
    )


def _components(joint: Joint, law: CountLaws, prior: Prior, widest: float) -> Components:
    """Of the probability given what the cells' nodes stand for."""
    used = law.cells.used
    nodes, masses, totals = law.cells.nodes[used], law.masses[used], joint.totals
    size = np.full(1, prior.size)
    wide = _wide(law.cells, size, prior)[np.nonzero(used)[0]]
    if isinstance(totals, ListedTotals) and totals.is_point:
        left = totals.totals[0, 0] - nodes
        return keyed(prior.alpha + nodes, prior.others + left, masses, nodes, left, wide)
    a, narrow = prior.alpha + nodes, widest <= _NARROW
    if isinstance(totals, SmoothTotals) and narrow:
        inside = (nodes >= totals.lowest) & (nodes <= totals.highest)
        a, nodes, masses, wide = a[inside], nodes[inside], masses[inside], wide[inside]
        inverse, spread = totals.at(nodes, 1), totals.at(nodes, 2)
        return matched(a * inverse, 1 - a * inverse, a * spread, masses, nodes, prior, wide)
    if isinstance(totals, SmoothTotals):
        totals = totals.even if widest <= _DENSE else totals.listed
    row = np.zeros(nodes.shape, dtype=np.int64)
    place, left, log_weights = totals.pairs(joint.rest, row, nodes)
    start = np.flatnonzero(np.diff(place, prepend=-1))
    weights = np.exp(log_weights - np.maximum.reduceat(log_weights, start)[place])
    weights *= (masses / np.add.reduceat(weights, start))[place]
    a, b = a[place], prior.others + np.maximum(left, 0)
    if not narrow:
        seen = seen_of(a, b, weights, NEGLIGIBLE)
        own, wide = nodes[place][seen], wide[place][seen]
        return keyed(a[seen], b[seen], weights[seen], own, left[seen], wide)
    share, rest, own = a / (a + b), b / (a + b), np.maximum(masses, 1e-300)
    mean = np.add.reduceat(weights * share, start) / own
    other = np.add.reduceat(weights * rest, start) / own
    away = np.where(mean[place] < 0.5, share - mean[place], other[place] - rest)
    spread = np.add.reduceat(weights * (share * rest / (a + b + 1) + away**2), start) / own
    return matched(mean, other, spread, masses, nodes, prior, wide)


def _wide(cells: Cells, sizes: Floats, prior: Prior) -> Floats:
    """For every cell that is longer than its Betas are wide, of counts that need not be kept apart,
    its number and its deviation in logits, shape `(cells, 2)`; not a number for others.
    """
    long = _lengths(cells, sizes, prior) > 1
    if not np.any(long):
        return np.full((long.size, 2), np.nan)
    size = sizes[cells.category]
    middle, rest = cells.nodes[:, 1], np.maximum(size - cells.last, 0)
    a, b = middle + prior.alpha, np.maximum(size - middle, 0) + prior.others
    own = 1 / a + 1 / b
    long &= np.minimum(cells.first, rest) >= SMALL
    deviation = np.minimum(np.sqrt(own + (cells.length * own) ** 2 / 12), WIDEST)
    return np.where(long[:, None], np.column_stack([cells.first, deviation]), np.nan)
