"""Cells of all tables, one table after the other in one array, with their prior and noise."""

from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import gammaln

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.tables import Model

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
