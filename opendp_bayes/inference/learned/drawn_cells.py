r"""Cells of which the true counts are summed over.

Given a point of the lattice of ln λ, what was drawn of a cell has the probability

    P(drawn | point) = sum_x P(drawn | x) P(x | point),

which is tabulated once for all cells that agree in what was drawn. So the chains never move counts;
they are drawn afterwards, given weights and effects.

A public sum N is a condition on these: a state weighs as much as `P(sum = N | state)`. Four parts
of the cells are drawn several times each, and one cell takes what every choice of these leaves. Its
probability of that is on average that of the sum, and one choice is drawn in proportion to it. This
is so for any tilt, by which counts weigh `exp(tilt x)` times as much; with a good one sums are N on
average.
"""

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of
from opendp_bayes.inference.learned.intensity_law import IntensityLaw
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.inference.likelihood.nodes import nodes_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: How far counts are from what was drawn, `exp(-_DEPTH)` of the noise's largest mass.
_DEPTH = 20.0
#: Parts of the cells, and how often each is drawn.
_PARTS, _TIMES = 4, 8
#: Below every logarithm of a probability that matters.
_IMPOSSIBLE = -1e30
#: A mass of a node that rounding may make of none, and a variance of whole numbers.
_TINY, _ROUNDING = 1e-300, 1 / 12


class DrawnCells:
    """Cells by what was drawn of them; `kind`, shape `(k,)`, numbers those that agree.

    `nodes`, shape `(kinds, m)`, are counts in order, each of which stands for the integers from
    `first` to `last`, if any. `log_mass` is the logarithm of what these have of P(drawn | x), and
    `shares` of every class of counts. A node is between the two of the `classes` at `below` and
    the next place, and `part` of the way to the second.
    """

    def __init__(self, table: NoisedTable, law: IntensityLaw) -> None:
        self.size, self._law = table.size, law
        look = min(table.looks, key=lambda each: each.noise.scale)
        drawn = np.array([*(look.drawn for look in table.looks), ~look.noised])
        _, cells, kind = np.unique(drawn, axis=1, return_index=True, return_inverse=True)
        self.kind: Integers = kind.reshape(-1)
        start = np.clip(look.drawn, 0, law.largest)
        nodes, first, last, log_number = nodes_of(look, start, _DEPTH, law.largest)
        self.nodes, self.last = nodes[cells], last[cells]
        self.first = np.minimum(first[cells], self.last)
        # What was not noised is taken for as uncertain as the sum of the others, which is undone
        # where a state is weighed.
        away = (self.nodes - start[cells, None]) / (typical_std(look.noise) * np.sqrt(table.k))
        self._taken = np.where(look.noised[cells, None], 0.0, -(away**2) / 2)
        self._log_number = log_number[cells]
        log_mass = table.log_noise(self.nodes[None], cells)[0] + self._taken + self._log_number
        self.log_mass = log_mass - log_mass.max(axis=1, keepdims=True)
        place = law.place(self.nodes)
        below = place.astype(np.int64)
        self.classes = np.unique([below, below + 1])
        self.below, self.part = np.searchsorted(self.classes, below), place - below
        self.shares = self._of_classes()
        order = np.argsort(np.where(look.noised, look.drawn, law.largest + 1), kind="stable")
        self._last, self._parts = order[-1], [order[at:-1:_PARTS] for at in range(_PARTS)]

    def _of_classes(self) -> Floats:
        """P(drawn | x) up to a factor, summed over the counts x of each class; in between two
        classes both have a part. Shape `(kinds, classes)`.
        """
        mass = np.exp(self.log_mass)
        found = np.zeros((len(mass), self._law.values.size))
        rows = np.arange(len(mass))[:, None]
        for step, part in ((0, 1 - self.part), (1, self.part)):
            np.add.at(found, (rows, self.classes[self.below] + step), mass * part)
        return found

    def moments(self, masses: Floats, kinds: Integers, of_cell: Integers) -> Floats:
        """Means and variances of the number of records, shape `(2, chains)`, by the laws of counts:
        the masses of nodes for rows of cells that agree, up to a factor, their kinds, and the row
        of each cell, shape `(chains, k)`.
        """
        p, nodes = masses / masses.sum(axis=1, keepdims=True), self.nodes[kinds]
        mean = (p * nodes).sum(axis=1)
        variance = (p * (nodes - mean[:, None]) ** 2).sum(axis=1)
        return np.array([of[of_cell].sum(axis=1) for of in (mean, variance)])

    def tilt_by(self, mean: Floats, variance: Floats) -> None:
        """Tilt counts half as far as such moments, of several states, are from the public sum."""
        spread = max(variance.mean() + mean.var(), _ROUNDING)
        tilt = (self.size - mean.mean()) / spread / 2
        log_mass = self.log_mass + tilt * (self.nodes - self.nodes[:, :1])
        self.log_mass = log_mass - log_mass.max(axis=1, keepdims=True)
        self.shares = self._of_classes()

    def drawn(
        self, masses: Floats, kinds: Integers, of_cell: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Floats]:
        """True counts, shape `(chains, k)`, by their laws as in `moments`, and the logarithms of
        the weights of the states.
        """
        times = 1 if self.size is None else _TIMES
        # Each time another part of the law, which makes every draw one from the whole law.
        parts = (np.arange(times) + rng.integers(times, size=(*of_cell.shape, 1))) % times
        levels = (parts + rng.random(parts.shape)) / times
        at = kinds[of_cell][..., None], columns(masses, of_cell[..., None], levels)
        counts = rng.integers(self.first[at], self.last[at] + 1)
        if self.size is None:
            return counts[..., 0], np.zeros(len(of_cell))
        last, chains = self._last, np.arange(len(of_cell))
        left = np.full((len(chains), 1), self.size)
        for part in self._parts:
            left = left[:, :, None] - counts[:, part].sum(axis=1)[:, None]
            left = left.reshape(len(chains), -1)
        kind, row = self.kind[last], of_cell[:, last]
        node = np.minimum(np.searchsorted(self.last[kind], left), self.last.shape[1] - 1)
        inside = (self.first[kind][node] <= left) & (left <= self.last[kind][node])
        log_p = np.log(masses[row] / masses[row].sum(axis=1, keepdims=True) + _TINY)
        log_p = np.take_along_axis(log_p, node, axis=1)
        others = self._log_number[kind][node] + self._taken[kind][node]
        log_p = np.where(inside, log_p - others, _IMPOSSIBLE)
        choice = one_of(log_p, rng)
        found = np.empty_like(of_cell)
        found[:, last] = np.clip(left[chains, choice], 0, self._law.largest)
        for part in reversed(self._parts):
            choice, of_part = np.divmod(choice, _TIMES)
            found[:, part] = counts[chains[:, None], part, of_part[:, None]]
        return found, special.logsumexp(log_p, axis=1)


def columns(p: Floats, of_cell: Integers, levels: Floats) -> Integers:
    """A column for each cell, where cumulative entries of its row come to a level, between 0 and 1,
    of their sum.
    """
    # In 64 bits, for sums go up to the number of rows.
    until = np.cumsum(p / p.sum(axis=1, keepdims=True), dtype=np.float64)
    found = np.searchsorted(until, of_cell + levels)
    return np.clip(found - of_cell * p.shape[1], 0, p.shape[1] - 1)
