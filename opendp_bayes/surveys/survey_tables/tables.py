"""The tables of a decomposable model: cliques, separators and what was measured; and the cells of
all tables, one table after the other in one array, with their prior and noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import gammaln

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise, typical_std
from opendp_bayes.surveys.survey_tables.junction_tree import JunctionTree, Scope, junction_tree

#: Concentrations that are tried where it is learned, for each cell of the largest clique: no more
#: than those of a prior that says little, since a strong one draws even tables to the middle.
LEARNED = 0.05 * 2.0 ** (np.arange(11) / 2)


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts of the table of `scope`, one for each cell in C order."""

    scope: Scope
    noisy: DrawnCounts

    @property
    def std(self) -> float:
        """Standard deviation of the noise, about."""
        return typical_std(self.noisy.noise)


class Table:
    """One table of the model, of the `shape` of its variables' levels.

    `multiplicity` is how often its prior factor counts: of cliques once, of separators minus once.
    """

    def __init__(self, scope: Scope, shape: tuple[int, ...]) -> None:
        self.scope, self.cells = scope, math.prod(shape)
        self.multiplicity = 0
        self.looks: list[NoisyTable] = []
        #: Cells between two neighbouring levels of each variable.
        self.stride = {v: math.prod(shape[axis + 1 :]) for axis, v in enumerate(scope)}


class Model:
    """Tables that agree on what they share, under a hyper-Dirichlet prior, given looks at them.

    Cell c of every table has the prior `concentration / cells`, so that the tables' priors agree.

    Parameters
    ----------
    levels : Sequence[int]
        The number of levels of each variable.
    looks : Sequence[NoisyTable]
        What was measured.
    size : int or None
        The public number of records; None where it is private, when every one is equally probable
        before.
    concentration : float or None
        The sum of the prior of every table; None to learn it, each of `LEARNED` per cell of the
        largest clique being possible.
    """

    def __init__(
        self,
        levels: Sequence[int],
        looks: Sequence[NoisyTable],
        size: int | None,
        concentration: float | None,
    ) -> None:
        self.levels, self.looks, self.size = tuple(levels), tuple(looks), size
        self.tree: JunctionTree = junction_tree(levels, [look.scope for look in looks])
        self.tables: dict[Scope, Table] = {}
        self._table(()).multiplicity = -1
        for clique in self.tree.cliques:
            self._table(clique).multiplicity += 1
        for edge in self.tree.edges:
            self._table(edge.separator).multiplicity -= 1
        for look in looks:
            self._table(look.scope).looks.append(look)
        largest = max(self.tables[clique].cells for clique in self.tree.cliques)
        self.concentrations = np.array([1.0 if concentration is None else concentration])
        if concentration is None:
            self.concentrations = largest * LEARNED
        # A log-logistic law about one half for each cell, uniform steps of the logarithm.
        relative = np.log(self.concentrations / (0.5 * largest))
        self.log_prior_of_concentrations = -relative - 2 * np.log1p(np.exp(-relative))

    def _table(self, scope: Scope) -> Table:
        if scope not in self.tables:
            self.tables[scope] = Table(scope, tuple(self.levels[v] for v in scope))
        return self.tables[scope]

    def margin(self, counts: Any, clique: Scope, scope: Scope) -> Any:
        """Sum a clique's table, shape `(..., cells)`, to that of some of its variables, in the
        order given.
        """
        whole = counts.reshape(-1, *(self.levels[v] for v in clique))
        others = tuple(1 + axis for axis, v in enumerate(clique) if v not in scope)
        kept_variables = [v for v in clique if v in scope]
        summed = whole.sum(axis=others)
        order = [0, *(1 + kept_variables.index(v) for v in scope)]
        return summed.transpose(order).reshape(*counts.shape[:-1], -1)

    def margin_of(self, tables: dict[Scope, Integers], scope: Scope) -> Any:
        """Sum the first table that holds some variables, of tables that agree, to that of these."""
        clique = next(
            scope_of_table for scope_of_table in tables if set(scope) <= set(scope_of_table)
        )
        return self.margin(tables[clique], clique, scope)

    def places(self, clique: Scope, scope: Scope) -> Integers:
        """The cell of the table of some variables, for every cell of a clique's."""
        levels_of_clique = np.indices([self.levels[v] for v in clique]).reshape(len(clique), -1)
        levels_of_all = np.zeros((len(self.levels), levels_of_clique.shape[1]), dtype=np.int64)
        levels_of_all[[*clique]] = levels_of_clique
        return self.cells_of(levels_of_all, scope)

    def cells_of(self, levels: Integers, scope: Scope) -> Integers:
        """The cell of the table of some variables, of each column of levels of all variables."""
        cells = np.zeros_like(levels[0])
        for v in scope:
            cells = cells * self.levels[v] + levels[v]
        return cells

    def all_tables(self, cliques: dict[Scope, Integers]) -> dict[Scope, Integers]:
        """Every table of the model from those of the cliques."""
        return {
            scope: cliques[scope]
            if scope in cliques
            else np.ascontiguousarray(self.margin_of(cliques, scope))
            for scope in self.tables
        }


#: Counts whose weights under the prior are looked up.
_TABULATED = 4096


class State:
    """Every table of all chains, and each chain's concentration by its place among those of the
    model, `chosen`. Moves change it.

    `flat` has the counts of all cells, shape `(cells, chains)`; `counts` are views of its tables,
    shape `(chains, cells)` each.
    """

    def __init__(self, counts: dict[Scope, Integers], chosen: Integers) -> None:
        self.flat = np.ascontiguousarray(np.concatenate([table.T for table in counts.values()]))
        self.counts = split(self.flat, {scope: table.shape[1] for scope, table in counts.items()})
        self.chosen = chosen

    def at(self, cells: Integers) -> Integers:
        """The counts of cells, shape `(..., chains)`."""
        counts: Integers = self.flat.take(cells * self.chosen.size + np.arange(self.chosen.size))
        return counts


def split(flat: Any, cells: dict[Scope, int]) -> dict[Scope, Any]:
    """Tables of so many cells each, shape `(..., chains, cells)`, in an array of the counts of all
    cells, shape `(..., cells, chains)`.
    """
    parts = np.split(flat, list(accumulate(cells.values()))[:-1], axis=-2)
    return {scope: np.swapaxes(table, -1, -2) for scope, table in zip(cells, parts, strict=True)}


class CellPrior:
    """`ln Γ(x + α) - ln x!` of counts x, for several `alphas`."""

    def __init__(self, alphas: Floats) -> None:
        self.alphas = alphas
        self._table = log_rising(np.arange(_TABULATED), alphas[:, None]).reshape(-1)

    def log_weight(self, counts: Integers, chosen: Any) -> Floats:
        """At counts, each for the α at a place, `chosen`, which broadcasts against them."""
        weights = self._table.take(np.minimum(counts, _TABULATED - 1) + chosen * _TABULATED)
        if counts.size and counts.max() >= _TABULATED:
            is_large = counts >= _TABULATED
            weights[is_large] = log_rising(
                counts[is_large], self.alphas[np.broadcast_to(chosen, is_large.shape)[is_large]]
            )
        return weights


class Cells:
    """The prior and the looks of every cell of a model, in the order of `State.flat`; `first` is
    each table's first cell.
    """

    def __init__(self, model: Model) -> None:
        self.first: dict[Scope, int] = {}
        number = sum(table.cells for table in model.tables.values())
        self._multiplicity, self._alphas = np.zeros((2, number), dtype=np.int64)
        self._log_prior = model.log_prior_of_concentrations
        # Several looks of one law in one array, where each is at another table.
        looks: dict[tuple[Any, int], tuple[Integers, Floats]] = {}
        alphas: dict[int, Floats] = {}
        after = 0
        for table in model.tables.values():
            first, after = after, after + table.cells
            self.first[table.scope], cells = first, slice(first, after)
            self._multiplicity[cells] = table.multiplicity
            alphas_of_table = alphas.setdefault(table.cells, model.concentrations / table.cells)
            self._alphas[cells] = list(alphas).index(table.cells) * alphas_of_table.size
            ones = table.cells * gammaln(alphas_of_table)
            self._log_prior = self._log_prior - table.multiplicity * ones
            for look_number, look in enumerate(table.looks):
                noise, none = (
                    look.noisy.noise,
                    (np.zeros_like(self._alphas), np.full(number, np.inf)),
                )
                noisy_counts, scale = looks.setdefault((type(noise), look_number), none)
                noisy_counts[cells] = look.noisy.drawn
                scale[cells] = np.where(look.noisy.noised, noise.scale, np.inf)
        self._prior = CellPrior(np.concatenate([*alphas.values()]))
        self._looks = [(law, *arrays) for (law, _), arrays in looks.items()]

    def noises(self, cells: Integers, counts: Integers) -> list[tuple[IntegerNoise, Integers]]:
        """Laws of the noise at cells, its scale infinite where there was no look, and how much of
        it there is where they have such counts.
        """
        return [
            (law(scale.take(cells)), noisy_counts.take(cells) - counts)
            for law, noisy_counts, scale in self._looks
        ]

    def log_prior(self, flat: Integers, chosen: Integers) -> Floats:
        """`ln P(tables, concentration)` of each chain up to a constant, shape `(chains,)`."""
        cells = np.arange(len(flat))[:, None]
        return self._log_prior[chosen] + self.log_weight(cells, flat, chosen).sum(axis=0)

    def log_weight(self, cells: Any, counts: Integers, chosen: Integers) -> Floats:
        """The prior's part of the log-density at the counts of cells, shape `(..., chains)`."""
        weight = self._prior.log_weight(counts, self._alphas[cells] + chosen)
        return self._multiplicity[cells] * weight
