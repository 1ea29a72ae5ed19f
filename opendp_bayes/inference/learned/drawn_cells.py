r"""Cells of a private number of records, whose true counts are summed over.

Given a point of the lattice of ln λ, what was drawn of a cell has the probability

    P(drawn | point) = sum_x P(drawn | x) P(x | point),

which is tabulated once for all cells that agree in what was drawn. So the chains never move counts;
they are drawn afterwards, given the points.
"""

import numpy as np

from opendp_bayes.inference.learned.intensity_law import STEP, IntensityLaw, log_choose, log_odds
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

#: How far counts are from what was drawn, `exp(-_DEPTH)` of the noise's largest mass, and on how
#: many places, each way, where there are more of them.
_DEPTH, _PLACES = 20.0, 70


class DrawnCells:
    """Cells by what was drawn of them; `kind`, shape `(k,)`, numbers those that agree.

    `nodes`, shape `(kinds, m)`, are counts in order, each of which stands for the integers from
    `first` to `last`, if any. `log_mass` is the logarithm of what these have of P(drawn | x), and
    `shares` of every class of counts.
    """

    def __init__(self, table: NoisedTable, law: IntensityLaw) -> None:
        drawn = np.array([look.drawn for look in table.looks])
        _, cells, kind = np.unique(drawn, axis=1, return_index=True, return_inverse=True)
        self.kind: Integers = kind.reshape(-1)
        look = min(table.looks, key=lambda each: each.noise.scale)
        centre, reach = look.drawn[cells, None], look.noise.reach(_DEPTH)
        step = -(-reach // _PLACES)
        nodes = centre + step * np.arange(-(reach // step), reach // step + 1)
        if step > 1:  # which is more than classes are apart that are of small counts
            values = np.rint(law.values).astype(np.int64)
            values = np.tile(values[:-1][np.diff(values) < step], (cells.size, 1))
            nodes = np.append(nodes, np.clip(values, centre - reach, centre + reach), axis=1)
        self.nodes = np.sort(np.clip(nodes, 0, law.largest), axis=1)
        # What is in the middle of two nodes is the lower one's, and the next time the higher one's.
        higher = (np.diff(self.nodes) > 0) & (np.arange(self.nodes.shape[1] - 1) % 2 > 0)
        middles = (self.nodes[:, 1:] + self.nodes[:, :-1] - higher) // 2
        self.last = np.pad(middles, ((0, 0), (0, 1)))
        self.last[:, -1] = self.nodes[:, -1]
        self.first = np.pad(self.last[:, :-1] + 1, ((0, 0), (1, 0)))
        self.first[:, 0] = self.nodes[:, 0]
        number = self.last - self.first + 1
        log_mass = table.log_noise(self.nodes[None], cells)[0]
        log_mass = np.where(number > 0, log_mass + np.log(np.maximum(number, 1)), -np.inf)
        self.log_mass = log_mass - log_mass.max(axis=1, keepdims=True)
        self._log_choose = self.log_mass + log_choose(self.nodes)
        self.shares = self._of_classes(law)

    def kinds(self, chains: int) -> Integers:
        """Kinds of the cells, the same in every chain, shape `(chains, k)`."""
        return np.broadcast_to(self.kind, (chains, self.kind.size))

    def move(self, *_: object) -> None:
        """Leave the counts alone, which are summed over."""

    def _of_classes(self, law: IntensityLaw) -> Floats:
        """P(drawn | x) up to a factor, summed over the counts x of each class; in between two
        classes both have a part. Shape `(kinds, classes)`.
        """
        place, mass = law.place(self.nodes), np.exp(self.log_mass)
        below = place.astype(np.int64)
        found = np.zeros((len(mass), law.values.size))
        at = np.arange(len(mass))[:, None] * law.values.size + below
        for step, part in ((0, 1 - (place - below)), (1, place - below)):
            found += np.bincount(
                (at + step).ravel(), weights=(mass * part).ravel(), minlength=found.size
            )[: found.size].reshape(found.shape)
        return found

    def given(self, points: Integers, rng: np.random.Generator) -> Integers:
        """True counts given points of the lattice of ln λ, both of shape `(chains, k)`."""
        found = np.empty_like(points)
        lowest = points.min()
        several = points.max() - lowest + 1
        for chain, places in enumerate(points - lowest):
            rows, of_cell = np.unique(self.kind * several + places, return_inverse=True)
            kind, place = np.divmod(rows, several)
            log_p = self._log_choose[kind]
            log_p += self.nodes[kind] * log_odds(np.exp(STEP * (place + lowest)))[:, None]
            log_p -= log_p.max(axis=1, keepdims=True)
            chosen = kind[of_cell], columns(np.exp(log_p), of_cell, rng)
            found[chain] = rng.integers(self.first[chosen], self.last[chosen] + 1)
        return found


def columns(p: Floats, of_cell: Integers, rng: np.random.Generator) -> Integers:
    """A column for each cell, drawn in proportion to the entries of its row."""
    until = np.cumsum(p / p.sum(axis=1, keepdims=True))
    found = np.searchsorted(until, of_cell + rng.random(of_cell.shape))
    return np.clip(found - of_cell * p.shape[1], 0, p.shape[1] - 1)
