"""One posterior of all tables of the same records."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opendp_bayes.inference.answers.whole_numbers import NumberPosterior
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.survey_tables.consistent_draws import ConsistentDraws
from opendp_bayes.inference.survey_tables.junction_tree import Scope
from opendp_bayes.inference.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.inference.survey_tables.probabilities_of_cliques import (
    Factor,
    drawn_factors,
    probabilities,
)
from opendp_bayes.inference.survey_tables.records import matched_records, new_tables
from opendp_bayes.inference.survey_tables.synthetic_frames import frame_of
from opendp_bayes.inference.survey_tables.table_posterior import TablePosterior
from opendp_bayes.mathematics.validation import (
    Floats,
    as_choice,
    as_size,
)
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import place_of

if TYPE_CHECKING:
    import polars as pl

Names = tuple[str, ...]
Kind = Literal["population", "predictive"]

#: Of chains that have settled: the fewest effective draws and the largest R-hat of a count.
_FEWEST_EFFECTIVE, _LARGEST_R_HAT = 100, 1.1


class SurveyPosterior:
    """The posterior of all tables of a survey at once. Every answer comes from the same draws, so
    that any two agree on what they share.

    Attributes
    ----------
    variables : the names of the variables.
    categories : the labels of each variable, by name.
    tables : the variables of every measured table.
    cliques : the sets of variables whose tables the model has; variables of different ones are
        independent given those that lie between them.
    effective_draws, rhat : by measured table and single variable, as tuples of names: the fewest
        effective draws and the largest R-hat of the count in a cell; a private number of records is
        the table of no variable.

    Source: `docs/survey-posterior.md`.
    """

    def __init__(
        self, noisy: NoisyTables, draws: ConsistentDraws, rng: np.random.Generator
    ) -> None:
        self.variables: Names = noisy.variables
        self.categories: dict[str, tuple[Label, ...]] = dict(
            zip(noisy.variables, noisy.labels, strict=True)
        )
        self._draws, self._model = draws, draws.model
        self._factors: list[Factor] = drawn_factors(draws, rng)
        self._scopes = tuple(dict.fromkeys(look.scope for look in noisy.looks))
        self.tables: tuple[Names, ...] = tuple(map(self._names, self._scopes))
        self.cliques: tuple[Names, ...] = tuple(map(self._names, draws.model.tree.cliques))
        singles: list[Scope] = [(v,) for v in range(len(self.variables))]
        if noisy.size is None:
            singles.append(())
        settled = draws.settled(tuple(dict.fromkeys([*singles, *self._scopes])))
        self.rhat = {self._names(scope): found[0] for scope, found in settled.items()}
        self.effective_draws = {self._names(scope): found[1] for scope, found in settled.items()}

    @property
    def unsettled(self) -> tuple[Names, ...]:
        """Tables and variables whose chains have not met, or are worth few draws."""
        return tuple(
            names
            for names, r_hat in self.rhat.items()
            if r_hat > _LARGEST_R_HAT or self.effective_draws[names] < _FEWEST_EFFECTIVE
        )

    @cached_property
    def size(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        rows = self._draws.size.reshape(-1)
        law = CountLaws.of_rows(rows[:, None], np.full(rows.size, 1 / rows.size))
        return NumberPosterior(
            "records", law, lambda size, rng: rows[rng.integers(rows.size, size=size)]
        )

    @property
    def concentration(self) -> Floats:
        """Draws of the concentration of every table's prior, shape `(draws,)`; all the same where
        it was given.
        """
        return self._draws.concentration.reshape(-1)

    def marginal(self, *variables: str) -> TablePosterior:
        """The posterior of one variable, or of a table of several in the order given, whether they
        were measured together or not (`TablePosterior.measured`).

        Raises `ValueError` for what is no variable, or given twice.
        """
        scope = self._places(variables)
        counts = self._draws.counts(scope)
        theta = self._theta(scope)
        return TablePosterior(variables, self._cells(scope), self._measured(scope), theta, counts)

    def conditional(self, *variables: str, **given: Value) -> TablePosterior:
        """The posterior of one variable, or of a table of several, among the records for which
        other variables have the values `given`.

        Raises `ValueError` for what is no variable or no value of one, and for variables that are
        given themselves.
        """
        if not given or set(variables) & set(given):
            raise ValueError(
                f"given={given!r}: must give the values of other variables than {list(variables)}."
            )
        scope = (*self._places(given), *self._places(variables))
        shape = [len(self.categories[name]) for name in given]
        inside = int(np.ravel_multi_index([self._value(*one) for one in given.items()], shape))
        theta, counts = self._theta(scope), self._draws.counts(scope)
        cells = self._cells(scope[len(given) :])

        def among(values: Any) -> Any:
            return values.reshape(*values.shape[:2], -1, len(cells))[:, :, inside]

        part = among(theta)
        part = part / part.sum(axis=-1, keepdims=True)
        measured = self._measured(scope)
        return TablePosterior(
            variables, cells, measured, part, None if counts is None else among(counts)
        )

    def sample(self, size: int, seed: int | None = None) -> dict[Names, Floats]:
        """Draws of the probabilities of every clique's table together, arrays of shape `(size,
        cells)` by the names of its variables, picked at random from those of the chains.
        """
        rng = np.random.default_rng(seed)
        picked = rng.integers(self._draws.size.size, size=as_size(size, of="draws"))
        factors = [Factor(one.separator, one.own, one.values[picked]) for one in self._factors]
        return {
            self._names(clique): probabilities(self._model, factors, clique)
            for clique in self._model.tree.cliques
        }

    def synthetic(
        self,
        copies: int = 20,
        kind: Kind = "population",
        *,
        size: int | None = None,
        seed: int | None = None,
    ) -> "list[pl.DataFrame]":
        """Synthetic records: polars frames with a column for each variable, of the type of its
        labels, an Enum where they are text.

        Parameters
        ----------
        copies : the number of frames, each from another draw of the posterior.
        kind : `"population"`: completions, each a set of records that those behind the releases may
            have been, whose tables are those of its draw; or `"predictive"`: new records, drawn
            with the probabilities of its draw.
        size : the number of new records in each copy; by default that of the draw.
        seed : None for other records at each call.

        Estimates from all copies are put together by `combine_estimates` with the same kind.
        Raises `ValueError` for a size of a population, and for more copies than draws.
        """
        return [self._frame(*one) for one in self._copies(copies, kind, size, seed)]

    def write_synthetic(
        self,
        folder: str | Path,
        copies: int = 20,
        kind: Kind = "population",
        *,
        size: int | None = None,
        seed: int | None = None,
    ) -> list[Path]:
        """Write the frames of `synthetic` to Parquet files in a folder, one at a time, so that no
        more than one is held; returns the paths.
        """
        made = self._copies(copies, kind, size, seed)
        Path(folder).mkdir(parents=True, exist_ok=True)
        digits, paths = len(str(copies)), []
        for number, one in enumerate(made, start=1):
            paths.append(Path(folder) / f"{kind}-{number:0{digits}d}.parquet")
            self._frame(*one).write_parquet(paths[-1])
        return paths

    def _copies(
        self, copies: int, kind: Kind, size: int | None, seed: int | None
    ) -> list[tuple[int, int | None, np.random.Generator]]:
        """For each copy its draw, the number of new records or None, and a generator."""
        copies, draws = as_size(copies, "copies", "copies"), self._draws.size.reshape(-1)
        as_choice(kind, "kind", ("population", "predictive"))
        if size is not None and (as_size(size) and kind == "population"):
            raise ValueError(
                f"size={size!r}: must be None for a population, which has the records that were"
                " counted; use kind='predictive' for another number."
            )
        if copies > draws.size:
            raise ValueError(f"copies={copies}: must be at most {draws.size}, the draws there are.")
        rng = np.random.default_rng(seed)
        rows = rng.choice(draws.size, copies, replace=False)
        new = kind == "predictive"
        return [
            (int(row), int(draws[row] if size is None else size) if new else None, one)
            for row, one in zip(rows, rng.spawn(copies), strict=True)
        ]

    def _frame(self, row: int, size: int | None, rng: np.random.Generator) -> "pl.DataFrame":
        if size is None:
            cliques = self._model.tree.cliques
            tables = {clique: self._draws.rows(clique)[row].astype(np.int64) for clique in cliques}
        else:
            tables = new_tables(self._model, self._factors, row, size, rng)
        return frame_of(matched_records(self._model, tables, rng), self.categories)

    def __repr__(self) -> str:
        cliques = ", ".join(" × ".join(names) for names in self.cliques)
        r_hat, fewest = max(self.rhat.values()), min(self.effective_draws.values())
        return f"SurveyPosterior({cliques}; by Markov chains, R-hat {r_hat:.3f}, ESS {fewest:.0f})"

    def _theta(self, scope: Scope) -> Floats:
        found = probabilities(self._model, self._factors, scope)
        return found.reshape(*self._draws.shape, -1)

    def _measured(self, scope: Scope) -> bool:
        return any(set(scope) <= set(known) for known in self._scopes)

    def _names(self, scope: Scope) -> Names:
        return tuple(self.variables[v] for v in scope)

    def _places(self, names: Sequence[str] | Mapping[str, Any]) -> Scope:
        wanted = list(names)
        if not wanted or len(set(wanted)) < len(wanted) or set(wanted) - set(self.variables):
            raise ValueError(
                f"variables={wanted!r}: must be some of the survey's, each once:"
                f" {', '.join(map(repr, self.variables))}."
            )
        return tuple(self.variables.index(name) for name in wanted)

    def _value(self, name: str, value: Value) -> int:
        place = place_of(value, self.categories[name])
        if place is None:
            shown = ", ".join(map(repr, self.categories[name]))
            raise ValueError(f"{name}={value!r}: is not a value of it; those are {shown}.")
        return place

    def _cells(self, scope: Scope) -> tuple[Label, ...]:
        labels = [self.categories[name] for name in self._names(scope)]
        cells: Any = labels[0] if len(labels) == 1 else tuple(product(*labels))
        return tuple(cells)
