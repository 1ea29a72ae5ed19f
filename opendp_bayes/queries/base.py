"""Post-processing, outside of what is trusted: from what a measurement drew to what users get, and
the queries that they ask for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import polars as pl
from opendp.context import Context, Query
from opendp.core import new_function
from opendp.mod import Measure, Measurement, Transformation

from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.trusted.boundary import ReleaseError, guarded
from opendp_bayes.trusted.budget import (
    as_tuple,
    check_query_budget,
    delta_of,
    distance_of_unit,
    identifier_of,
    shown,
)
from opendp_bayes.trusted.interrupts import uninterrupted
from opendp_bayes.trusted.measurements import restated
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.queryable_proxy import submitted
from opendp_bayes.trusted.spaces import PosteriorSpace, groups_and_labels
from opendp_bayes.trusted.stable_plans import StablePlan
from opendp_bayes.trusted.truncation import rule_of

R = TypeVar("R")


def releasing(measurement: Any, result: Callable[[Any], Any] = Release.of) -> Measurement:
    """The measurement with a step behind it that makes a `Release`, or another `result`, of the
    data that it draws. Its attribute `accounting` stays.
    """
    measured: Any = measurement >> new_function(guarded(result, "release"), TO="ExtrinsicObject")
    measured.accounting = measurement.accounting
    return measured


def split_of(space: PosteriorSpace) -> Callable[..., GroupedRelease]:
    """The function from the draws of all cells to the releases of the groups, which takes the names
    of the `columns` that were counted, too, where they are known.
    """
    groups, labels = groups_and_labels(space.categories)
    k = len(labels)

    def split(release: ReleasedData, columns: tuple[str, ...] = ()) -> GroupedRelease:
        return GroupedRelease(
            groups=groups,
            noisy_counts=tuple(
                release.noisy_counts[i * k : (i + 1) * k] for i in range(len(groups))
            ),
            categories=labels,
            prior=release.prior[:k],
            mechanism=release.mechanism,
            guarantee=release.guarantee,
            axes=space.axes,
            rest=None if space.size is None else release.noisy_counts[-1],
            grouped_by=space.by,
            columns=columns,
            nulls=space.nulls,
            unknown=space.unknown,
        )

    return split


@dataclass(frozen=True, eq=False)
class Bound(ABC, Generic[R]):
    """A question put to a query, with a mechanism that fits any part of its budget.

    Attributes
    ----------
    base : Query
        The query with the budget and the Context.
    distance : Distance
        How far one privacy unit moves what is counted.
    truncated, kept : bool, str
        Whether the rows of each identifier are limited, and by which fixed rule; empty without one.
    result : Callable[[Any], R]
        From what the measurement draws to what the user gets.
    """

    base: Query
    distance: Distance
    truncated: bool
    kept: str
    result: Callable[[Any], R]

    @property
    @abstractmethod
    def number_listed(self) -> int:
        """The number of categories that are listed, or cells, those of all groups."""

    @abstractmethod
    def loss(self, budget: Any) -> PrivacyLoss:
        """The loss of the measurement for `budget`, of one privacy unit of the Context."""

    @abstractmethod
    def summary(self, budget: Any, guess_size: int | None = None) -> pl.DataFrame:
        """The row of `SurveyQuery.summarize`, for a budget and a guess of a private number of
        records.
        """

    @abstractmethod
    def described(self, budget: Any) -> str:
        """Describe the query in one line, without anything that takes time to compute."""

    @abstractmethod
    def measurement(self, budget: Any, *, raw: bool = False) -> Measurement:
        """The measurement that fits a budget. It gives what the user gets, or with `raw` what was
        drawn, for `restating`.
        """

    @abstractmethod
    def _settled(self, budget: Any) -> Any:
        """The mechanism of the measurement for a budget, and all that is checked of it."""

    @cached_property
    def settled(self) -> Callable[[Any], Any]:
        """The function from a budget to the mechanism of its measurement, which is searched for
        once. No field: what caches of losses hold is out of everybody's reach.
        """
        return lru_cache(maxsize=None)(self._settled)

    @property
    def measure(self) -> Measure:
        """The measure of the query."""
        return parts_of(self.base).output_measure

    def restating(self, budget: Any, once: str = "") -> Callable[[Any], R]:
        """The function from a draw for `budget`, which promises for one record, to what the user
        gets, with the promise to one privacy unit of the Context. `once` says which rows were kept
        where they were limited by no fixed rule. It holds nothing of the query.
        """
        result, loss = self.result, self.loss(budget)
        distance, truncated = self.distance, self.truncated
        rule = self.kept or (once if self.truncated else "")
        return lambda draw: result(
            restated(draw, loss, distance=distance, truncated=truncated, kept=rule)
        )

    def _measured(
        self, chain: Any, draws: Measurement, budget: Any, param: float, *, raw: bool
    ) -> Measurement:
        """The measurement that draws at the end of a chain, with its attribute `param`."""
        measurement = chain >> (draws if raw else releasing(draws, self.restating(budget)))
        measurement.param = param
        return measurement

    def _delta(self, budget: Any) -> float:
        return delta_of(self.measure, budget)

    def _check_within(
        self, mechanism: Any, spent: tuple[float, ...], budget: Any, remedy: str
    ) -> None:
        """Raise `ValueError` where a mechanism of the user's loses more than the budget."""
        limits = as_tuple(budget)
        if any(loss > limit for loss, limit in zip(spent, limits, strict=True)):
            raise ValueError(
                f"mechanism={mechanism}: its privacy loss {shown(spent)} exceeds the budget of the"
                f" query, {shown(limits)}. {remedy}"
            )


def counts_and_unit(
    query: Any,
    in_frame: tuple[Transformation, StablePlan] | None,
    kind: type[Any],
    counts_of: Callable[[], tuple[Transformation, Query]],
) -> tuple[Transformation, tuple[Query, Distance, bool, str]]:
    """The counts of a query, and the fields of a `Bound` that follow from them: its base, the
    distance, and whether and how rows were limited.

    Parameters
    ----------
    query : Any
        What was asked.
    in_frame : tuple[Transformation, StablePlan] or None
        The counts and the plan of a query on a polars frame; None for any other.
    kind : type
        The protocol of other queries that can be asked.
    counts_of : Callable
        From nothing to the counts and the base of such a query.

    Raises
    ------
    ValueError, TypeError
        For what is no query, and for a privacy unit without records.
    """
    if in_frame is not None:
        counts, gate = in_frame
        base, rule = gate.base, rule_of(gate.limits)
    elif isinstance(query, kind):
        counts, base = counts_of()
        rule = getattr(query, "kept", "")
    else:
        raise TypeError(
            "query: must be a query on a polars frame, as `context.query()` gives, not"
            f" {'a Context itself' if isinstance(query, Context) else type(query).__name__}."
            " Groups are asked for by `by=['region']`, without `group_by`."
        )
    distance = distance_of_unit(counts.map(parts_of(base).d_in))
    truncated = bool(rule) or identifier_of(counts.input_metric) is not None
    return counts, (base, distance, truncated, rule)


@runtime_checkable
class Divisible(Protocol):
    """A query that a survey takes as a question, for a part of its budget."""

    def within(self, query: Any) -> Bound[Any]:
        """The question, for a part of the budget of another query of the same Context; `ValueError`
        where that is of another Context.
        """


class ReleasedQuery(Query, ABC, Generic[R]):
    """A query whose release is made of what one measurement draws."""

    @np.errstate(under="ignore")
    def resolve(
        self, allow_transformations: bool = False, bounds: Any = None, T: Any = None
    ) -> Measurement:
        """Return the measurement, with the smallest scale, or the least threshold, whose loss is
        within the budget of the query; of a survey the composition of the measurements of all
        questions, each within its share.

        The arguments are there because OpenDP's queries have them, and change nothing.

        Raises
        ------
        ValueError
            If the query has no budget, or nothing is within it or a share.
        """
        return self._measurement(raw=False)

    @np.errstate(under="ignore")
    def release(self, data: Any = None, bounds: Any = None, T: Any = None) -> R:
        """Make the release and debit the Context, after checking that its remaining budget
        suffices; of a survey all releases in one measurement, with one debit.

        A failure is debited like the release. Ctrl-C during the search for a scale debits nothing.
        Later it stops polars while it reads rows, which is debited, or waits for the release, and
        `ReleaseInterrupted`, a `KeyboardInterrupt`, carries it.

        Raises
        ------
        ReleaseError
            A `RuntimeError`, if reading the data fails, with a message that does not depend on
            them.
        """
        context = parts_of(self).context
        if data is not None or context is None:
            raise ValueError("release: the query must belong to a Context, which holds the data.")
        self._settle()
        return uninterrupted(lambda: self._released(context))

    def _released(self, context: Context) -> R:
        draw = submitted(context, self._measurement(raw=True), parts_of(self).d_in)
        try:
            return self._made_of(draw)
        except Exception as error:
            failed = ReleaseError(
                "the release was made and debited, but nothing could be made of it; what was drawn"
                " is the attribute drawn of this exception."
            )
            failed.drawn = draw
            raise failed from error

    @abstractmethod
    def _settle(self) -> None:
        """Search for all scales and thresholds; `ValueError` where the budget buys nothing."""

    @abstractmethod
    def _measurement(self, *, raw: bool) -> Measurement:
        """The measurement, of what users get, or where it is `raw` of what was drawn."""

    @abstractmethod
    def _made_of(self, draw: Any) -> R:
        """Make what the user gets of a draw."""


class AskedQuery(ReleasedQuery[R]):
    """A query with one question, which is `Bound`."""

    def __init__(self, bound: Any) -> None:
        super().__init__(*parts_of(bound.base)._replace(chain=bound.chain))
        self._bound = bound

    @np.errstate(under="ignore")
    def _settle(self) -> None:
        """Raise `ValueError` where the budget of the query buys nothing."""
        check_query_budget(parts_of(self).d_out)
        self._bound.settled(parts_of(self).d_out)

    def __repr__(self) -> str:
        try:
            self._settle()
        except ValueError as error:
            return f"{type(self).__name__}({error})"
        return str(self._bound.described(parts_of(self).d_out))

    def _measurement(self, *, raw: bool) -> Measurement:
        self._settle()
        return self._bound.measurement(parts_of(self).d_out, raw=raw)

    def _made_of(self, draw: Any) -> R:
        return self._bound.restating(parts_of(self).d_out)(draw)
