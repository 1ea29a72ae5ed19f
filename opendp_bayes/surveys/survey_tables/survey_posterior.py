"""One posterior of all tables of the same records."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from opendp_bayes.inference.answers.by_label import check_others, place_among, positions_among
from opendp_bayes.inference.answers.whole_numbers import NumberPosterior
from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import (
    Floats,
    RandomState,
    as_choice,
    as_generator,
    as_level,
    as_size,
)
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.surveys.survey_tables.consistent_draws import (
    SETTLED_EFFECTIVE,
    SETTLED_R_HAT,
    ConsistentDraws,
)
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.surveys.survey_tables.probabilities_of_tables import (
    Factor,
    ImpliedTables,
    drawn_factors,
    open_pairs,
    probabilities,
)
from opendp_bayes.surveys.survey_tables.records import (
    exchange,
    frame_of,
    matched_records,
    new_tables,
)
from opendp_bayes.surveys.survey_tables.table_posterior import TableDraws, TablePosterior

if TYPE_CHECKING:
    import polars as pl

Names = tuple[str, ...]
Kind = Literal["population", "predictive"]
Format = Literal["parquet", "csv"]
#: Noise of a margin, in records of a level, from which on its intervals hold the truth too rarely.
_WIDE = 0.2
#: The most cells of a table that no clique holds, times draws: some copies of it are held.
_MOST_NUMBERS = 1 << 26


class SurveyPosterior(UnderflowIsZero):
    """The posterior of all tables of a survey at once. Every answer comes from the same draws, so
    that any two agree on what they share.

    Source: `docs/surveys.md`.

    Attributes
    ----------
    variables
        The names of the variables.
    categories
        The labels of each variable, by name.
    tables
        The variables of every measured table.
    cliques
        The largest sets of variables of which every two were measured together. Others are
        independent given those between them at the centre of the prior; each pair has a random
        interaction besides.
    ess, r_hat
        By measured table and single variable, as tuples of names: the fewest effective draws and
        the largest R-hat of the count in a cell; a private number of records is the table of no
        variable.
    """

    def __init__(
        self,
        noisy: NoisyTables,
        draws: ConsistentDraws,
        rng: np.random.Generator,
        interactions: bool = True,
    ) -> None:
        self.variables: Names = noisy.variables
        self.categories: dict[str, tuple[Label, ...]] = dict(
            zip(noisy.variables, noisy.labels, strict=True)
        )
        self._draws, self._model, self._unordered = draws, draws.model, noisy.unordered
        self._factors: list[Factor] = drawn_factors(draws, rng)
        self._interactions, self._rng = interactions, rng.spawn(1)[0]
        self._scopes = tuple(dict.fromkeys(look.scope for look in noisy.looks))
        self.tables: tuple[Names, ...] = tuple(map(self._names, self._scopes))
        self.cliques: tuple[Names, ...] = tuple(map(self._names, draws.model.tree.measured))
        singles: list[Scope] = [(v,) for v in range(len(self.variables))]
        if noisy.size is None:
            singles.append(())
        self.r_hat, self.ess = dict[Names, float](), dict[Names, float]()
        for scope in (*singles, *self._scopes):
            names = self._names(scope)
            self.r_hat[names], self.ess[names] = draws.settled(scope)

    @property
    def unsettled(self) -> tuple[Names, ...]:
        """Tables and variables whose chains have not met, or are worth few draws."""
        return tuple(
            names
            for names, r_hat in self.r_hat.items()
            if r_hat > SETTLED_R_HAT or self.ess[names] < SETTLED_EFFECTIVE
        )

    @property
    def undercovered(self) -> Names:
        """Variables whose margins have intervals that are too narrow for many real surveys.

        They have no table of their own, and the noise of their margin, in all tables together, is
        wider than a fifth of the mean number of records in a level. In real surveys, 87 % of the
        95 % intervals of such margins held the truth: the prior is even over the cells of a table,
        and real tables are not.
        """
        narrow = []
        for v, levels in enumerate(self._model.levels):
            looks = [look for look in self._model.looks if v in look.scope]
            cells = [self._model.tables[look.scope].cells // levels for look in looks]
            precision = sum(
                1 / (cells_in_sum * look.std**2)
                for cells_in_sum, look in zip(cells, looks, strict=True)
            )
            if min(cells) > 1 and precision * (_WIDE * self._about / levels) ** 2 < 1:
                narrow.append(self.variables[v])
        return tuple(narrow)

    @property
    def independences(self) -> tuple[tuple[Names, Names, Names], ...]:
        """The conditional independences about which the prior is centred, in triples of names: the
        first are independent of the second given the third, which may be none. A random interaction
        of each pair departs from them.
        """
        triples = self._model.tree.separations()
        return tuple(tuple(map(self._names, triple)) for triple in triples)  # type: ignore[misc]

    @cached_property
    def records(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        return self.marginal(self.variables[0]).records

    @property
    def concentration(self) -> Floats:
        """Draws of the concentration of every table's prior, shape `(draws,)`; all the same where
        it was given.
        """
        return self._draws.concentration.reshape(-1)

    @cached_property
    def _implied(self) -> ImpliedTables | None:
        """Tables with interactions of the pairs that no table has; None where there are none."""
        if not self._interactions or not open_pairs(self._model):
            return None
        shape = self._draws.shape
        return ImpliedTables(self._model, self._factors, shape, self._about, self._rng)

    @property
    def _about(self) -> float:
        """The number of records, about; at least 1."""
        return max(float(self._draws.size.mean()), 1.0)

    def marginal(self, *variables: str) -> TablePosterior:
        """The posterior of one variable, or of a table of several in the order given, whether they
        were measured together or not (`TablePosterior.measured`).

        Raises
        ------
        ValueError
            For what is no variable, or given twice.
        """
        return self._table(variables, {})

    def unmeasured(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for every pair of variables that no table has, the widest
        first: what is known of it from an assumed interaction alone, and what a table would tell.

        The columns are `pair`, a list of two names; its number of `cells`; `width`, that of the
        intervals of its shares, in the mean over the cells; and `width_with_table`, about what it
        would be if a table of the pair had been released with noise as wide as that of the others,
        in the median.

        Parameters
        ----------
        level : float, default 0.95
            The probability of the intervals.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        import polars as pl

        reach = float(ndtri((1 + as_level(level)) / 2))
        noise = float(np.median([look.std for look in self._model.looks]))
        size, rows = self._about, []
        for pair in open_pairs(self._model):
            table = self.marginal(*self._names(pair))
            lower, upper = table.interval(level)
            mean = table.mean()
            far = reach * np.sqrt((noise / size) ** 2 + mean * (1 - mean) / size)
            width_with_table = np.minimum(mean + far, 1) - np.maximum(mean - far, 0)
            rows.append(
                (list(table.axes), mean.size, (upper - lower).mean(), width_with_table.mean())
            )
        schema: Any = {
            "pair": pl.List(pl.String),
            "cells": pl.Int64,
            "width": pl.Float64,
            "width_with_table": pl.Float64,
        }
        return pl.DataFrame(rows, schema, orient="row").sort("width", descending=True)

    def conditional(self, *variables: str, **given: Value) -> TablePosterior:
        """The posterior of one variable, or of a table of several, among the records for which
        other variables have the values `given`.

        Raises
        ------
        ValueError
            For what is no variable or no value of one, and for variables that are given themselves.
        """
        check_others(given, variables)
        return self._table(variables, given)

    def _table(self, variables: Names, condition: Mapping[str, Value]) -> TablePosterior:
        """The table of some variables given any others or none."""
        scope = (*(self._places(condition, "given") if condition else ()), *self._places(variables))
        names = (*condition, *variables)
        number = math.prod(len(self.categories[variable]) for variable in names)
        most = _MOST_NUMBERS // self._draws.size.size
        if number > most and self._model.tree.holding(scope) is None:
            raise ValueError(
                f"variables={list(names)!r}: have {number} cells together, and no table has every"
                f" two of them; must be at most {most}. Ask for fewer variables."
            )
        cells = self._cells(scope[len(condition) :])
        draws = TableDraws(self._theta(scope), self._draws.counts(scope), names)
        if condition:
            shape = [len(self.categories[variable]) for variable in condition]
            positions = [
                place_among(v, value, self.categories[v]) for v, value in condition.items()
            ]
            first = int(np.ravel_multi_index(positions, shape)) * len(cells)
            draws = draws._of(lambda values: values[..., first : first + len(cells)])
        measured = any(set(scope) <= set(measured_scope) for measured_scope in self._scopes)
        unordered = self._unordered.get(variables[0], ()) if len(variables) == 1 else ()
        return TablePosterior(self, draws, cells, variables, unordered, condition, measured)

    def sample(self, size: int = 1, random_state: RandomState = None) -> dict[Names, Floats]:
        """Draws of the probabilities of every clique's table together, arrays of shape `(size,
        cells)` by the names of its variables, picked at random from those of the chains.
        """
        rng = as_generator(random_state)
        picked = rng.integers(self._draws.size.size, size=as_size(size, "size", "draws"))
        factors = [
            Factor(factor.separator, factor.residual, factor.values[picked])
            for factor in self._factors
        ]
        return {
            self._names(scope): probabilities(self._model, factors, scope)
            for scope in self._model.tree.measured
        }

    def synthetic(
        self,
        copies: int = 20,
        kind: Kind = "population",
        *,
        records: int | None = None,
        random_state: RandomState = None,
    ) -> "list[pl.DataFrame]":
        """Synthetic records: polars frames with a column for each variable, of the type of its
        labels, an Enum where they are text.

        Estimates from all copies are put together by `combine_estimates` with the same kind. Warns
        where slopes and odds ratios rest on interactions that are assumed.

        Parameters
        ----------
        copies : int, default 20
            The number of frames, each from another draw of the posterior.
        kind : Kind, default "population"
            `"population"`: completions, each a set of records that those behind the releases may
            have been, whose tables are those of its draw; or `"predictive"`: new records, drawn
            with the probabilities of its draw.
        records : int, optional
            The number of new records in each copy; by default that of the draw.
        random_state : int or numpy.random.Generator, optional
            A seed, or what they are drawn with; by default other records at each call.

        Raises
        ------
        ValueError
            For a number of a population, and for more copies than draws.
        """
        return [self._frame(*copy) for copy in self._copies(copies, kind, records, random_state)]

    def write_synthetic(
        self,
        folder: str | Path,
        copies: int = 20,
        kind: Kind = "population",
        *,
        records: int | None = None,
        format: Format = "parquet",  # noqa: A002  # what the files are called
        random_state: RandomState = None,
    ) -> list[Path]:
        """Write the frames of `synthetic` to files of a `format` in a folder, one at a time, so
        that no more than one is held; returns the paths. Files of CSV hold every label as it is,
        also one that a spreadsheet would take for a formula.

        Raises
        ------
        FileExistsError
            For a file that is there already.
        """
        as_choice(format, "format", get_args(Format))
        if not isinstance(folder, (str, Path)):
            raise TypeError(f"folder={told(folder)}: must be a path, a str or a Path.")
        copies_drawn = self._copies(copies, kind, records, random_state)
        digits = len(str(copies))
        paths = [
            Path(folder) / f"{kind}-{number:0{digits}d}.{format}" for number in range(1, copies + 1)
        ]
        for path in paths:
            if path.exists():
                raise FileExistsError(f"folder={str(folder)!r}: has {path.name} already; empty it.")
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, copy in zip(paths, copies_drawn, strict=True):
            frame = self._frame(*copy)
            frame.write_csv(path) if format == "csv" else frame.write_parquet(path)
        return paths

    def _copies(
        self, copies: int, kind: Kind, records: int | None, random_state: RandomState
    ) -> list[tuple[int, int | None, np.random.Generator]]:
        """For each copy its draw, the number of new records or None, and a generator."""
        copies, draws = as_size(copies, "copies", "copies"), self._draws.size.reshape(-1)
        as_choice(kind, "kind", get_args(Kind))
        if records is not None and (as_size(records, "records") and kind == "population"):
            raise ValueError(
                f"records={records!r}: must be None for a population, which has the records that"
                " were counted; use kind='predictive' for another number."
            )
        if open_pairs(self._model):
            warn(
                "Slopes and odds ratios of pairs that no table has rest on assumed interactions. In"
                " five surveys, 95 % intervals held 71 % of such slopes and 79 % of such log odds"
                " ratios. Ask one table of an outcome and its predictors; `unmeasured()` lists the"
                " pairs (docs: Surveys, Pairs that no table has)."
            )
        if copies > draws.size:
            raise ValueError(f"copies={copies}: must be at most {draws.size}, the draws there are.")
        rng = as_generator(random_state)
        rows = rng.choice(draws.size, copies, replace=False)
        return [
            (
                int(row),
                None if kind == "population" else int(draws[row] if records is None else records),
                one,
            )
            for row, one in zip(rows, rng.spawn(copies), strict=True)
        ]

    def _frame(self, row: int, size: int | None, rng: np.random.Generator) -> "pl.DataFrame":
        if size is None:
            cliques = self._model.tree.cliques
            tables = {clique: self._draws.rows(clique)[row].astype(np.int64) for clique in cliques}
        else:
            tables = new_tables(self._model, self._factors, row, size, rng)
        matched = matched_records(self._model, tables, rng)
        if self._implied is not None:
            exchange(matched, self._model, self._implied.of_row(row), rng)
        return frame_of(matched, self.categories)

    def __repr__(self) -> str:
        cliques = ", ".join(" × ".join(names) for names in self.cliques)
        r_hat, fewest = max(self.r_hat.values()), min(self.ess.values())
        return f"SurveyPosterior({cliques}; by Markov chains, R-hat {r_hat:.3f}, ESS {fewest:.0f})"

    def _theta(self, scope: Scope) -> Floats:
        if self._model.tree.holding(scope) is not None or self._implied is None:
            probabilities_drawn = probabilities(self._model, self._factors, scope)
        else:
            probabilities_drawn = self._implied.probabilities(scope)
        return probabilities_drawn.reshape(*self._draws.shape, -1)

    def _names(self, scope: Scope) -> Names:
        return tuple(self.variables[v] for v in scope)

    def _places(self, names: Iterable[str], argument: str = "variables") -> Scope:
        return tuple(positions_among(self.variables, names, argument))

    def _cells(self, scope: Scope) -> tuple[Label, ...]:
        labels = [self.categories[variable] for variable in self._names(scope)]
        cells: Any = labels[0] if len(labels) == 1 else tuple(product(*labels))
        return tuple(cells)
