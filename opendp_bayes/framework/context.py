"""Posterior queries in an OpenDP Context: the user's plan, then counts, posterior and a mechanism
whose scale fits the budget.
"""

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast, overload

from numpy.typing import ArrayLike
from opendp.context import Context, Query
from opendp.domains import _lazyframe_from_domain
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.measures import approximate, max_divergence, zero_concentrated_divergence
from opendp.metrics import frame_distance, symmetric_distance
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    FrameDistance,
    Function,
    Measurement,
    Metric,
    OdometerQueryable,
    OpenDPException,
    SymmetricIdDistance,
    Transformation,
)
from opendp.transformations import make_stable_lazyframe

from opendp_bayes.accounting.calibration import (
    counts_in_proportion,
    fitted,
    relative_loss,
    smallest_scale,
)
from opendp_bayes.accounting.exact import feasible_loss
from opendp_bayes.framework.boundary import ReleaseError, descriptor_of, require_features
from opendp_bayes.framework.counts import records_of_bounds, then_categorical_counts
from opendp_bayes.framework.grouped_counts import (
    grouped_release,
    mechanism_for_groups,
    then_grouped_counts,
    ungrouped,
)
from opendp_bayes.framework.measurements import default_total, loss_in, make_mechanism
from opendp_bayes.framework.posteriors import then_dirichlet_multinomial
from opendp_bayes.framework.spaces import Key, PosteriorSpace
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import LaplaceParameters, Mechanism
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.registry import load_mechanism
from opendp_bayes.planning.plan import choose
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.release import Label, Release

Loss = Callable[[Mechanism], float]
Parameter = float | str | None  # of a mechanism, other than its scale
R = TypeVar("R", Release, GroupedRelease)
_CALLBACK_MESSAGE = re.compile(
    r"^RuntimeError: (.*)$", re.MULTILINE
)  # what `guarded` raises, in OpenDP's account of it


# OpenDP types what `context.query()` returns as `Query | LazyFrameQuery`, and any step after it as
# `Query` again.
@overload
def posterior(
    query: LazyGroupByQuery | Query,
    column: str,
    *,
    keys: Sequence[Key],
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Parameter,
) -> "PosteriorQuery[GroupedRelease]": ...


@overload
def posterior(
    query: LazyFrameQuery | Query,
    column: str,
    *,
    keys: None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Parameter,
) -> "PosteriorQuery[Release]": ...


@overload
def posterior(
    query: LazyGroupByQuery,
    column: str,
    *,
    keys: None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Parameter,
) -> "PosteriorQuery[GroupedRelease]": ...


def posterior(
    query: LazyFrameQuery | LazyGroupByQuery | Query,
    column: str,
    *,
    keys: Sequence[Key] | None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Parameter,
) -> "PosteriorQuery[Release] | PosteriorQuery[GroupedRelease]":
    """Ask a Context for the posterior of the category probabilities of one column; `.release()`
    debits the Context and returns a `Release`.

    After `query.group_by(column)` the posterior of every group is asked for at once, for the budget
    of one query, and `.release()` returns a `GroupedRelease`.

    Parameters
    ----------
    query : `context.query()`, with any plan of the user's own after it (filter, with_columns,
        casts, truncation by identifier, then `group_by` one column).
    keys : of a query per group, the public groups, as in `make_grouped_counts`.
    column, categories, size, nulls, unknown : as in `make_categorical_counts`.
    prior : a positive number for every category, or one for each, buckets included.
    mechanism : `"auto"`, which chooses by public things only: discrete Laplace noise where the
        number of rows is private or there are two categories, otherwise K-norm noise; and where the
        public number of rows is small, what has the smallest expected error (`docs/choosing.md`);
        the name of a built-in or installed mechanism; or a mechanism value, which is used as it is
        and must fit into the budget. Otherwise the scale is found from the budget of the query.
    **options : parameters of the mechanism named, other than its scale, for example `gamma=0.2`.
        Without any, `smooth_hellinger_exponential` uses the γ with the smallest expected error for
        equal proportions (`calibrate`).

    Raises `ValueError`/`TypeError` for arguments that do not fit each other or the Context, before
    any data is read or budget spent.
    """
    require_features("posterior")
    by: str | None = None
    if isinstance(query, LazyGroupByQuery):
        query, by = ungrouped(query)
        mechanism, options = mechanism_for_groups(mechanism, options)
    elif keys is not None:
        raise ValueError(
            f"keys={keys!r}: belongs to a query per group; group it by a column, as in"
            " `query.group_by('region')`."
        )
    if not isinstance(query, LazyFrameQuery):
        raise TypeError(
            "query: must be a query on a polars frame, as `context.query()` gives, not"
            f" {type(query).__name__}."
        )
    plan = object.__getattribute__(query, "polars_plan")
    base: Query = object.__getattribute__(query, "_query")
    input_domain, input_metric = cast(tuple[Domain, Metric], base._chain)
    stable = _stable_plan(input_domain, input_metric, plan)
    if stable.output_metric == frame_distance(symmetric_distance()):
        records_of_bounds(
            stable.map(base._d_in)
        )  # refuse an unlimited unit here, with a message that OpenDP does not wrap
    counted: dict[str, Any] = {
        "column": column,
        "categories": categories,
        "size": size,
        "nulls": nulls,
        "unknown": unknown,
    }
    counts = (
        then_categorical_counts(**counted)
        if by is None
        else then_grouped_counts(by=by, keys=keys, **counted)
    )
    chain = stable >> counts >> then_dirichlet_multinomial(prior=prior)
    space: PosteriorSpace = descriptor_of(chain.output_domain, PosteriorSpace, "posterior")
    return PosteriorQuery(
        chain,
        space,
        base,
        _fit(mechanism, options, space),
        None if by is None else grouped_release(chain.output_domain),
    )


class PosteriorQuery(Query, Generic[R]):
    """A query made by `posterior`. `resolve` gives the measurement, `param` its scale, `release`
    the `Release` or `GroupedRelease`.
    """

    def __init__(
        self,
        chain: Transformation,
        space: PosteriorSpace,
        base: Query,
        mechanism: Callable[[Loss], Mechanism] | Mechanism,
        postprocess: Function | None = None,
    ) -> None:
        super().__init__(chain, base._output_measure, base._d_in, base._d_out, base._context)
        self._space = space
        self._mechanism = mechanism
        self._postprocess = postprocess
        self._distance: int = chain.map(self._d_in)

    def resolve(
        self, allow_transformations: bool = False, bounds: Any = None, T: Any = None
    ) -> Measurement:
        """Return the measurement, with the smallest scale whose loss is within the budget of the
        query.

        Raises `ValueError` if the query has no budget or no scale satisfies it. The arguments are
        those of `Query.resolve` and are not needed.
        """
        if self._d_out is None:
            raise ValueError(
                "query: has no budget of its own; say how much to spend, as in"
                " `context.query(epsilon=0.5)`."
            )
        if not _as_tuple(self._d_out)[0] > 0:
            raise ValueError(
                f"query: has a budget of {self._d_out}; epsilon or rho must be greater than 0."
            )
        mechanism = self._fitted()
        chain = cast(Transformation, self._chain)
        measurement = chain >> make_mechanism(
            *chain.output_space, self._output_measure, mechanism, delta=self._delta
        )
        if self._postprocess is not None:
            measurement = measurement >> self._postprocess
        measurement.param = mechanism.scale
        return measurement

    def release(self, data: Any = None, bounds: Any = None, T: Any = None) -> R:
        """Make the release and debit the Context, after checking that its remaining budget
        suffices.

        Raises `ReleaseError`, a `RuntimeError`, if reading the data fails, with a message that does
        not depend on them.
        """
        if data is not None or self._context is None:
            raise ValueError("release: the query must belong to a Context, which holds the data.")
        measurement = self.resolve()
        _check_remaining(self._context, measurement.map(self._d_in))
        try:
            released: R = self._context(measurement)
        except OpenDPException as error:
            ours = _CALLBACK_MESSAGE.search(str(error))
            if ours is None:
                raise
            raise ReleaseError(ours[1]) from None
        loss = self._loss(released.mechanism)
        return released.with_loss(d_in=self._distance, loss=loss, measure=released.measure)

    @property
    def _delta(self) -> float:
        uses_delta = (
            self._output_measure == approximate(max_divergence()) and self._d_out is not None
        )
        return float(self._d_out[1]) if uses_delta else 0.0  # type: ignore[index]

    def _loss(self, mechanism: Mechanism) -> PrivacyLoss:
        return feasible_loss(
            mechanism,
            size=self._space.size,
            prior=self._space.prior_array,
            d_in=self._distance,
            delta=self._delta,
        )

    def _fitted(self) -> Mechanism:
        budget = _as_tuple(self._d_out)
        measured = loss_in(self._output_measure)
        if not callable(self._mechanism):
            spent = measured(self._loss(self._mechanism))
            if any(loss > limit for loss, limit in zip(spent, budget, strict=True)):
                raise ValueError(
                    f"mechanism={self._mechanism}: its privacy loss {_shown(spent)} exceeds the"
                    f" budget of the query, {_shown(budget)}. Raise its scale, or name the"
                    " mechanism to have the scale found."
                )
            return self._mechanism
        limit = min(budget[0], sys.float_info.max)
        concentrated = self._output_measure in (
            zero_concentrated_divergence(),
            approximate(zero_concentrated_divergence()),
        )
        loss = (
            relative_loss(rho=limit)
            if concentrated
            else relative_loss(epsilon=limit, delta=self._delta or None)
        )
        size, prior = self._space.size, self._space.prior_array
        return self._mechanism(
            lambda mechanism: loss(mechanism, size, prior, self._distance, "exact")
        )


class _BayesNamespace:
    """`query.bayes`: the functions of this package that take a query, as methods."""

    def __init__(self, query: LazyFrameQuery | LazyGroupByQuery) -> None:
        self._query: Any = query

    def posterior(
        self, column: str, **arguments: Any
    ) -> PosteriorQuery[Release] | PosteriorQuery[GroupedRelease]:
        """`opendp_bayes.posterior(query, column, ...)`."""
        return posterior(self._query, column, **arguments)


def enable() -> None:
    """Give OpenDP's polars queries a `bayes` namespace: `query.bayes.posterior(column, ...)`, also
    after `group_by`.

    Calling it again changes nothing. Type checkers do not see it; they know `posterior`.
    """
    LazyFrameQuery.bayes = property(_BayesNamespace)  # type: ignore[attr-defined]
    LazyGroupByQuery.bayes = property(_BayesNamespace)  # type: ignore[attr-defined]


def _stable_plan(domain: Domain, metric: Metric, plan: Any) -> Transformation:
    """The user's plan as a stable transformation to `frame_distance(symmetric_distance())`."""
    output = "FrameDistance<SymmetricDistance>"
    inner = metric.inner_metric if isinstance(metric, FrameDistance) else metric
    try:
        if isinstance(inner, ChangeOneIdDistance):
            # OpenDP moves from change-one to symmetric identifiers only in a step of its own.
            identity = make_stable_lazyframe(
                domain, metric, _lazyframe_from_domain(domain), MO=output
            )
            return identity >> make_stable_lazyframe(*identity.output_space, plan, MO=output)
        return make_stable_lazyframe(domain, metric, plan, MO=output)
    except OpenDPException as error:
        if isinstance(inner, (SymmetricIdDistance, ChangeOneIdDistance)):
            advice = (
                "With an identifier as the privacy unit the plan must limit the rows of each, with"
                " `query.truncate_per_group(k)`."
            )
        else:
            advice = (
                "The privacy unit must be contributions= or changes=, and every step of the plan"
                " one that OpenDP supports."
            )
        raise ValueError(
            f"query: OpenDP does not find its plan stable under {metric}. {advice} OpenDP says:"
            f" {error.message}"
        ) from None


def _fit(
    mechanism: str | Mechanism, options: dict[str, Any], space: PosteriorSpace
) -> Callable[[Loss], Mechanism] | Mechanism:
    """A mechanism value as it is, or the function from a loss to the mechanism that a name and its
    options describe, at its smallest scale.
    """
    if not isinstance(mechanism, str):
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism={mechanism!r}: must be 'auto', the name of a mechanism or a mechanism"
                " value."
            )
        if options:
            raise TypeError(
                f"{', '.join(options)}: cannot be added to a mechanism value, which has its"
                " parameters; give the mechanism by name."
            )
        mechanism.check(size=space.size, prior=space.prior_array)
        return mechanism
    prior = space.prior_array
    kind = None if mechanism == "auto" else load_mechanism(mechanism)
    accepted = (
        [] if kind is None else [field.name for field in fields(kind) if field.name != "scale"]
    )
    for name in options:
        if name not in accepted:
            remedy = (
                "name the mechanism it belongs to"
                if kind is None
                else f"must be one of {', '.join(accepted)}"
            )
            raise TypeError(
                f"{name}={options[name]!r}: is not an option of mechanism={mechanism!r}; {remedy}."
                " The scale follows from the budget."
            )
    if kind is None:
        return lambda loss: choose(
            lambda template: smallest_scale(template, loss), space.size, prior
        )
    if kind is LaplaceParameters:
        options = {"total": default_total(space.size), **options}
    template: Mechanism = kind(scale=1.0, **options)
    replace(template, scale=SCALES[0]).check(
        size=space.size, prior=space.prior_array
    )  # the scale found is checked when the measurement is made
    # A smoothness that is not given is chosen for equal proportions.
    open_to_choice = space.size is not None and not options
    guess = counts_in_proportion(cast(int, space.size), prior) if open_to_choice else None
    return lambda loss: fitted(template, loss, guess, prior)


def _check_remaining(context: Context, loss: float | tuple[float, ...]) -> None:
    """Raise `ValueError` if a privacy filter would refuse `loss`: a filter that has refused once
    refuses everything after.
    """
    if context.d_out is None or not isinstance(context.queryable, OdometerQueryable):
        return
    spent = _as_tuple(context.current_privacy_loss())
    limits = _as_tuple(context.d_out)
    if any(
        _sum_up(a, b) > limit for a, b, limit in zip(spent, _as_tuple(loss), limits, strict=True)
    ):
        raise ValueError(
            f"query: its privacy loss {loss} exceeds what is left of the Context's budget:"
            f" {context.d_out}, less {context.current_privacy_loss()} already spent, where OpenDP"
            " rounds the sum up. Ask for less."
        )


def _sum_up(a: float, b: float) -> float:
    return round_up(Fraction(a) + Fraction(b)) if math.isfinite(a + b) else math.inf


def _shown(values: tuple[float, ...]) -> str:
    return str(values[0]) if len(values) == 1 else str(values)


def _as_tuple(distance: Any) -> tuple[float, ...]:
    return distance if isinstance(distance, tuple) else (distance,)
