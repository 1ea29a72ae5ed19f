"""The posterior of a table of some variables of a survey, by draws."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.inference.answers.by_label import positions_among
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.quantities import OfDraws, Quantities, Quantity, again
from opendp_bayes.inference.engines import Engine
from opendp_bayes.inference.sampling.markov_chain import Chains, Diagnostics
from opendp_bayes.release_format.data import Label, Value


class TablePosterior(NoiseAwarePosterior):
    """The posterior of the probabilities of a table, or of those within some values of others, and
    of the counts behind them: draws from Markov chains, the same as those of the survey's other
    tables, so that all agree.

    It answers what a `NoiseAwarePosterior` answers, by all draws that there are. The prior is that
    of whole cliques, so that `prior` holds zeros. `releases` is empty: it rests on
    all of the survey.

    Attributes
    ----------
    axes : tuple[str, ...]
        The variables; empty where `merged` or `given` made it.
    unordered : tuple[str or int or bool or tuple, ...]
        Of one variable, the values that ordered answers leave out, as of a release.
    categories : tuple[str or int or bool or tuple, ...]
        The values of the variable, or tuples with a value of each of several.
    measured : bool
        True where a released table holds all variables that are asked for, those given included;
        False where the answer follows from what the model assumes besides.
    """

    _engine: "TableDraws"

    def __init__(
        self,
        survey: Any,
        draws: "TableDraws",
        categories: tuple[Label, ...],
        axes: tuple[str, ...],
        unordered: tuple[Label, ...],
        condition: Mapping[str, Value],
        measured: bool,
    ) -> None:
        super().__init__((), draws, categories, axes, unordered)
        self.measured = measured
        self._survey, self._condition = survey, condition  # tables of one are drawn together

    @property
    def learned(self) -> Quantities:
        """The posterior of the `concentration` of every table's prior, which may be a certainty."""
        values = self._survey.concentration
        draws = TableDraws(values.reshape(*self._engine.chains.shape[:2], 1))
        law = OfDraws.of(values.ravel(), draws.independent)
        return Quantities([("concentration", Quantity("concentration", law, None))])

    def marginal(self, *variables: str) -> "TablePosterior":
        """The table of some of the variables, which `SurveyPosterior.marginal` has too."""
        positions_among(self.axes, variables)
        return self._survey._table(variables, self._condition)

    def conditional(self, /, *variables: str, **given: Value) -> "TablePosterior":
        """The table of some of the variables, by default of all others, where those `given` have
        such values; `SurveyPosterior.conditional` has it too.
        """
        names = variables or tuple(variable for variable in self.axes if variable not in given)
        positions_among(self.axes, (*names, *given))
        return self._survey.conditional(*names, **self._condition, **given)

    def _less(self, other: NoiseAwarePosterior, position: int) -> OfDraws:
        """Tables of one survey, as votes given one party and given another, are drawn together; any
        others are taken for those of independent data.
        """
        if not isinstance(other, TablePosterior) or other._survey is not self._survey:
            return super()._less(other, position)
        chains = (table._engine.chains[..., [position]] for table in (self, other))
        draws = TableDraws(np.subtract(*chains))
        return OfDraws.of(draws.rows[:, 0], draws.independent)

    def _made(
        self,
        engine: Engine,
        categories: tuple[Label, ...],
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
    ) -> "TablePosterior":
        draws: Any = engine
        return TablePosterior(
            self._survey, draws, categories, axes, unordered, self._condition, self.measured
        )

    @property
    def _number(self) -> int:
        return len(self._engine.rows)

    def _effective(self, draws: int) -> float:
        # No row is drawn twice before each was drawn.
        return 1 / (1 / self._engine.independent + max(1 / draws - 1 / self._number, 0))

    def __repr__(self) -> str:
        return (
            f"TablePosterior({{{self._estimates()}}}, {'measured' if self.measured else 'implied'})"
        )


class TableDraws(Chains):
    """Draws of the probabilities of a table, shape `(chains, draws, k)`, and of its counts, which
    are None where no clique of the model holds its `variables`.
    """

    draws_shares = True

    def __init__(self, shares: Any, counts: Any = None, variables: tuple[str, ...] = ()) -> None:
        super().__init__(shares)
        self._counts, self._variables = counts, variables

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the draws themselves."""
        return Diagnostics.of(self.chains)

    @property
    def independent(self) -> float:
        return min(super().independent, len(self.rows))

    @property
    def counted(self) -> "TableDraws":
        """The counts alone.

        Raises
        ------
        ValueError
            Where they are not known.
        """
        if self._counts is None:
            raise ValueError(
                f"variables={list(self._variables)!r}: no clique of the model holds them together,"
                " so that the tables leave their counts open; count them in"
                " synthetic(kind='population') of the survey's posterior."
            )
        return TableDraws(self._counts)

    def sample(self, draws: int, rng: np.random.Generator) -> Any:
        """Rows in random order, each once as far as there are enough."""
        return again(self.rows, draws, rng)

    def _of(self, part: Callable[[Any], Any]) -> "TableDraws":
        shares, counts = part(self.chains), self._counts
        own = None if counts is None else part(counts)
        return TableDraws(shares / shares.sum(axis=-1, keepdims=True), own, self._variables)
