"""Discovery queries in an OpenDP Context: the user's plan, the counts of all values of a column,
and a threshold that fits the budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from opendp.context import Query
from opendp.extras.polars import LazyFrameQuery
from opendp.mod import Measurement, Transformation

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.queries.base import AskedQuery, Bound, counts_and_unit
from opendp_bayes.queries.question import Discoverable, LeftOut
from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.boundary import descriptor_of, require_features
from opendp_bayes.trusted.kinds import kinds_of_frame
from opendp_bayes.trusted.opendp_internals import belongs_to, parts_of
from opendp_bayes.trusted.stable_plans import stable_plan_of
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from opendp_bayes.unlisted.discovered_counts import keys_of
from opendp_bayes.unlisted.discovered_data import DiscoveredData
from opendp_bayes.unlisted.laws_for_budgets import fitted_discovery, loss_of_discovery
from opendp_bayes.unlisted.thresholds import LAWS, Discovery
from opendp_bayes.unlisted.trusted.discovery import is_concentrated, make_discovery
from opendp_bayes.unlisted.trusted.keys import KeysSpace, counts_in_plan, person_of


@dataclass(frozen=True, eq=False)
class Discovering(Bound[DiscoveredRelease]):
    """A column whose values are to be discovered, of a query.

    Attributes
    ----------
    chain : Transformation
        From the data of the Context to the counts of all values.
    space : KeysSpace
        Of these counts.
    law : str or Discovery
        The name of a law, `"auto"`, or a `Discovery`.
    rest : float
        The share of the loss that buys the rest.
    """

    chain: Transformation
    space: KeysSpace
    law: str | Discovery
    rest: float

    @property
    def number_listed(self) -> int:
        """The number of values that are listed."""
        return len(self.space.listed)

    def _settled(self, budget: Any) -> Discovery:
        value, delta = budget
        if not delta > 0:
            raise ValueError(
                f"query: its budget {budget} has no δ, with which a value that one person alone has"
                " may be shown. Ask for a loss with one, such as dp.loss_of(epsilon=1.0,"
                " delta=1e-8), or list the categories."
            )
        if isinstance(self.law, Discovery):
            spent = self._in_measure(self._loss(self.law, budget))
            remedy = "Raise its scale or threshold, or name its law to have both found."
            self._check_within(self.law, spent, budget, remedy)
            return self.law
        loss = {"rho" if is_concentrated(self.measure) else "epsilon": value}
        return fitted_discovery(self.law, **loss, delta=delta, d_in=self.distance, rest=self.rest)

    def loss(self, budget: Any) -> PrivacyLoss:
        """The loss of the measurement for `budget`, of one privacy unit of the Context."""
        return self._loss(self.settled(budget), budget)

    def _loss(self, discovery: Discovery, budget: Any) -> PrivacyLoss:
        loss = loss_of_discovery(
            discovery,
            self.distance,
            concentrated=is_concentrated(self.measure),
            delta=self._delta(budget),
        )
        return replace(loss)  # a value that nobody can change for others

    def spent(self, budget: Any) -> tuple[float, float]:
        """The loss for one privacy unit, in the measure of the query."""
        return self._in_measure(self.loss(budget))

    def _in_measure(self, loss: PrivacyLoss) -> tuple[float, float]:
        return (loss.rho if is_concentrated(self.measure) else loss.epsilon), loss.delta

    def measurement(self, budget: Any, *, raw: bool = False) -> Measurement:
        """The measurement that fits a budget; its attribute `param` is the threshold. It gives what
        the user gets, or with `raw` what was drawn, for `restating`.
        """
        discovery, delta = self.settled(budget), self._delta(budget)
        draws = make_discovery(*self.chain.output_space, self.measure, discovery, delta=delta)
        return self._measured(self.chain, draws, budget, discovery.law.threshold, raw=raw)

    def restating(self, budget: Any, once: str = "") -> Callable[[DiscoveredData], Any]:
        """The function from a draw for `budget` to what the user gets. Rows that no fixed rule
        keeps are drawn for each question anew, whatever `once` says of others.
        """
        return super().restating(budget)

    def summary(self, budget: Any, guess_size: int | None = None) -> pl.DataFrame:
        """The row of `DiscoveryQuery.summarize`, and of `SurveyQuery.summarize`; no guess of a
        number of records is used.
        """
        discovery, loss = self.settled(budget), self.loss(budget)
        law, noise = discovery.law, discovery.rest
        listed = ", ".join(map(repr, self.space.listed))
        row = {
            "column": self.space.column,
            "aggregate": f"{'People' if self.space.people else 'Records'} of values to discover",
            "categories": f"discovered, besides {listed}" if listed else "discovered",
            "prior": "learned from the release",
            "nulls": None,
            "unknown": None,
            "mechanism": type(law).__name__,
            "scale": None,
            "neighbours": "add/remove",
            "d_in": self.distance.records,
            "largest": self.distance.largest,
            "epsilon": loss.epsilon,
            "delta": loss.delta,
            "rho": loss.rho,
            "debits": f"{self.spent(budget)} ({self.measure})",
            "interval_width": None,
            "threshold": law.threshold,
            "noise_std": law.std,
            "shown_half": law.least_shown(0.5),
            "shown_95": law.least_shown(0.95),
            "shown_99": law.least_shown(0.99),
            "rest_std": None if noise is None else typical_std(noise),
        }
        texts = dict.fromkeys(("nulls", "unknown"), pl.String)
        numbers = dict.fromkeys(("scale", "interval_width", "rest_std"), pl.Float64)
        return pl.DataFrame([row], schema_overrides={**texts, **numbers})

    def described(self, budget: Any) -> str:
        """Describe the query in one line."""
        return (
            f"DiscoveryQuery(values of {self.space.column!r}, mechanism={self.settled(budget)},"
            f" d_in={self.distance.stated}, debits={self.spent(budget)} ({self.measure}))"
        )


@np.errstate(under="ignore")
def discover(
    query: Query | LazyFrameQuery | Discoverable,
    column: str,
    *,
    always: Sequence[Value] = (),
    rest: float | None = None,
    nulls: Value | LeftOut | None = None,
    mechanism: str | Discovery = "auto",
) -> "DiscoveryQuery":
    """Ask a Context for the values of a column that nobody can list: those whose noisy counts reach
    a threshold are shown, with their counts. `.release()` debits the Context and returns a
    `DiscoveredRelease`.

    Source: `docs/unlisted.md`.

    Parameters
    ----------
    query : Query or LazyFrameQuery or Discoverable
        `context.query()`, with any plan of the user's own after it (filter, with_columns, casts,
        truncation by identifier); or a `Discoverable` of a plugin. Its loss must have δ, which
        bounds the probability of showing a value that only one unit has.
    column : str
        The column whose values are counted: Enum, String, Categorical, integer, Boolean or Date.
    always : Sequence[str or int or bool], optional
        Values that are listed and shown whatever their count.
    rest : float, optional
        The share of the loss that buys the number of all records that are not shown, together;
        above 0 and below 1. Without, it is not released.
    nulls : str or int or bool or LeftOut, optional
        The value as which nulls are counted, or `DROP`, which leaves them out. Required if the
        column is nullable.
    mechanism : str or Discovery, default "auto"
        A law with a threshold, `"optimal_threshold"`, `"laplace_threshold"`,
        `"gaussian_threshold"`, or `"auto"`, which takes that under which the smallest count is
        shown in half of all releases; or a `Discovery`.

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit each other or the Context, before any data is read or budget
        spent.
    """
    require_features("discover")
    _check_law(mechanism, rest)
    in_frame = None
    if isinstance(query, LazyFrameQuery):
        gate = stable_plan_of(query, [column])
        kinds = kinds_of_frame(gate.stable.output_domain)
        keys = keys_of(column, kinds, always, nulls, person_of(gate))
        in_frame = counts_in_plan(gate, keys, "discover"), gate
    values: Any = query
    counts, unit = counts_and_unit(
        query,
        in_frame,
        Discoverable,
        lambda: values.counts_of_values(column, always=always, nulls=nulls),
    )
    is_concentrated(parts_of(unit[0]).output_measure)  # refuses one without δ
    space = descriptor_of(counts.output_domain, KeysSpace, "make_discovered_counts")
    return DiscoveryQuery(
        Discovering(*unit, DiscoveredRelease.of, counts, space, mechanism, rest or 0.0)
    )


def _check_law(mechanism: Any, rest: Any) -> None:
    """Raise `ValueError` or `TypeError` for a law or a share of the rest that do not fit."""
    if rest is not None and not (isinstance(rest, float) and 0 < rest < 1):
        raise ValueError(
            f"rest={told(rest)}: must be the share of the loss that the number of all hidden"
            " records is bought for, above 0 and below 1, such as rest=0.2; or left out."
        )
    if not isinstance(mechanism, (str, Discovery)):
        raise TypeError(
            f"mechanism={told(mechanism)}: must be 'auto', the name of a law with a threshold, or a"
            " Discovery, where categories are to be discovered."
        )
    if isinstance(mechanism, str):
        as_choice(mechanism, "mechanism", ("auto", *LAWS))
    elif rest is not None:
        raise ValueError(
            f"rest={rest}: cannot be added to a Discovery, which has its noise of the rest or none;"
            " give the law by name."
        )


class DiscoveryQuery(AskedQuery[DiscoveredRelease]):
    """A query made by `discover`. `resolve` gives the measurement, `param` its threshold, `release`
    the `DiscoveredRelease`.
    """

    _bound: Discovering

    def within(self, query: Any) -> Discovering:
        """Bind the discovery to a part of the budget of another query of the same Context.

        Raises
        ------
        ValueError
            Where that is of another Context: its data would be read.
        """
        base: Any = None
        if isinstance(query, LazyFrameQuery):
            base = belongs_to(query)
        elif isinstance(query, Discoverable):
            base = query.base
        if base is None or parts_of(base).context is not parts_of(self._bound.base).context:
            raise ValueError(
                "query: is of another Context than the survey; ask discover() of a query of the"
                " Context that the survey is asked of."
            )
        return replace(self._bound, base=base)

    def summarize(self) -> pl.DataFrame:
        """Describe the release that the query would make and its debit, as a polars frame of one
        row. Reads no data and spends nothing.

        The columns are:

        * `column` and `aggregate`: what is counted, records or people;
        * `mechanism`, `threshold` and `noise_std`: the law of the noise of each count, in records
          or people;
        * `d_in` and `largest`: the most records, or values of people, that one privacy unit moves,
          and those of them in one count;
        * `shown_half`, `shown_95` and `shown_99`: the smallest counts shown in half, 95 %
          and 99 % of releases;
        * `rest_std`: the standard deviation of the noise of the rest; null where it is not bought;
        * `epsilon`, `delta` and `rho`: certified upper bounds of the loss for one unit;
        * `debits`: the debit of the Context, in its measure.

        The others are those of a survey's questions, and null or the same for every discovery.

        Raises
        ------
        ValueError
            If the query has no budget with δ.
        """
        self._settle()
        return self._bound.summary(parts_of(self).d_out)
