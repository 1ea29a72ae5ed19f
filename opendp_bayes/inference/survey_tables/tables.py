"""The tables of a decomposable model: cliques, separators and what was measured, and the prior and
the noise on their cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammaln

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.survey_tables.junction_tree import JunctionTree, Scope, junction_tree
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Counts whose weights under the prior are looked up.
_TABULATED = 4096
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

    @cached_property
    def precision(self) -> Floats:
        """One over the noise's variance in each cell, and 0 where there is none."""
        return np.where(self.noisy.noised, self.std**-2, 0.0)


class Table:
    """One table of the model, of the `shape` of its variables' levels.

    `multiplicity` is how often its prior factor counts: of cliques once, of separators minus once.
    """

    def __init__(self, scope: Scope, shape: tuple[int, ...]) -> None:
        self.scope, self.shape, self.cells = scope, shape, math.prod(shape)
        self.multiplicity = 0
        self.looks: list[NoisyTable] = []

    @cached_property
    def stride(self) -> dict[int, int]:
        """Cells between two neighbouring levels of a variable."""
        return {v: math.prod(self.shape[at + 1 :]) for at, v in enumerate(self.scope)}


class CellPrior:
    """`ln Γ(x + α) - ln x!` of counts x, for several α = `concentrations` / `cells`."""

    def __init__(self, concentrations: Floats, cells: int) -> None:
        self.alphas = concentrations / cells
        self._table = log_rising(np.arange(_TABULATED), self.alphas[:, None])

    def log_weight(self, counts: Integers, chosen: Integers) -> Floats:
        """At counts of shape `(chains, lines)`, for each chain's choice of α, shape `(chains,)`."""
        found = self._table[chosen[:, None], np.minimum(counts, _TABULATED - 1)]
        if counts.size and counts.max() >= _TABULATED:
            at = counts >= _TABULATED
            alphas = np.broadcast_to(self.alphas[chosen][:, None], counts.shape)
            found[at] = log_rising(counts[at], alphas[at])
        return found


class Model:
    """Tables that agree on what they share, under a hyper-Dirichlet prior, given looks at them.

    Parameters
    ----------
    levels : the number of levels of each variable.
    looks : what was measured.
    size : the public number of records; None where it is private, when every one is equally
        probable before.
    concentration : the sum of the prior of every table; None to learn it, each of `LEARNED` per
        cell of the largest clique being possible.

    Cell c of every table has the prior `concentration / cells`, so that the tables' priors agree.
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
        sizes = {table.cells for table in self.tables.values() if table.multiplicity}
        self.priors = {cells: CellPrior(self.concentrations, cells) for cells in sizes}

    def _table(self, scope: Scope) -> Table:
        if scope not in self.tables:
            self.tables[scope] = Table(scope, tuple(self.levels[v] for v in scope))
        return self.tables[scope]

    def log_prior(self, counts: dict[Scope, Integers], chosen: Integers) -> Floats:
        """`ln P(tables, concentration)` of each chain up to a constant, shape `(chains,)`."""
        found = self.log_prior_of_concentrations[chosen]
        for scope, table in self.tables.items():
            if table.multiplicity:
                prior = self.priors[table.cells]
                ones = gammaln(prior.alphas[chosen])
                each = prior.log_weight(counts[scope], chosen).sum(axis=1) - table.cells * ones
                found = found + table.multiplicity * each
        return found

    def margin(self, counts: Any, clique: Scope, scope: Scope) -> Any:
        """Sum rows of a clique's table, shape `(rows, cells)`, to those of some of its variables,
        in the order given.
        """
        whole = counts.reshape(-1, *(self.levels[v] for v in clique))
        others = tuple(1 + at for at, v in enumerate(clique) if v not in scope)
        kept = [v for v in clique if v in scope]
        summed = whole.sum(axis=others)
        order = [0, *(1 + kept.index(v) for v in scope)]
        return summed.transpose(order).reshape(len(counts), -1)

    def places(self, clique: Scope, scope: Scope) -> Integers:
        """The cell of the table of some variables, for every cell of a clique's."""
        shape = tuple(self.levels[v] for v in clique)
        each = np.indices(shape).reshape(len(clique), -1)
        found = np.zeros(math.prod(shape), dtype=np.int64)
        for v in scope:
            found = found * self.levels[v] + each[clique.index(v)]
        return found

    def all_tables(self, cliques: dict[Scope, Integers]) -> dict[Scope, Integers]:
        """Every table of the model from those of the cliques."""
        found = {}
        for scope in self.tables:
            if scope in cliques:
                found[scope] = cliques[scope]
            else:
                at = self.tree.holding(scope)
                assert at is not None  # noqa: S101  # every scope is in a clique
                clique = self.tree.cliques[at]
                found[scope] = np.ascontiguousarray(self.margin(cliques[clique], clique, scope))
        return found


def subsets(scope: Scope) -> list[Scope]:
    """Every non-empty subset of some variables."""
    return [part for number in range(1, len(scope) + 1) for part in combinations(scope, number)]
