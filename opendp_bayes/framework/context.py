"""Posterior queries in an OpenDP Context: the user's plan, then counts, posterior and a mechanism
whose scale fits the budget.
"""

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast, overload

from numpy.typing import ArrayLike
from opendp.context import Context, Query
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import Function, Measurement, OpenDPException, Transformation

from opendp_bayes.accounting.profile import feasible_loss
from opendp_bayes.framework.boundary import ReleaseError, descriptor_of, require_features
from opendp_bayes.framework.budget import (
    as_tuple,
    check_remaining,
    delta_of,
    loss_in,
    relative_to_budget,
    shown,
)
from opendp_bayes.framework.counts import then_categorical_counts
from opendp_bayes.framework.fitting import Fit, Option, fit_of, mechanism_for_groups
from opendp_bayes.framework.grouped_counts import grouped_release, then_grouped_counts
from opendp_bayes.framework.interrupts import deferred_interrupts, interruptible
from opendp_bayes.framework.measurements import make_mechanism
from opendp_bayes.framework.posteriors import then_dirichlet_multinomial
from opendp_bayes.framework.query_plan import stable_plan, ungrouped
from opendp_bayes.framework.spaces import PosteriorSpace
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.released.data import Key, Label
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.release import Release

R = TypeVar("R", Release, GroupedRelease)
#: What `guarded` raises, in OpenDP's account of it.
_CALLBACK_MESSAGE = re.compile(r"^RuntimeError: (.*)$", re.MULTILINE)


# `context.query()` is typed as either kind of query; a `Query` that is none on a frame is refused.
@overload
def posterior(  # type: ignore[overload-overlap]
    query: Query | LazyFrameQuery,
    column: str,
    *,
    keys: None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[Release]": ...


@overload
def posterior(
    query: Query | LazyGroupByQuery,
    column: str,
    *,
    keys: Sequence[Key] | None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[GroupedRelease]": ...


@deferred_interrupts()
def posterior(
    query: Query | LazyFrameQuery | LazyGroupByQuery,
    column: str,
    *,
    keys: Sequence[Key] | None = None,
    prior: ArrayLike = 1.0,
    categories: Sequence[Label] | None = None,
    size: int | None = None,
    nulls: Label | None = None,
    unknown: Label | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[Any]":
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
    stable, base = stable_plan(query)
    counted: dict[str, Any] = {"column": column, "categories": categories, "size": size}
    counted |= {"nulls": nulls, "unknown": unknown}
    if by is None:
        counts = then_categorical_counts(**counted)
    else:
        counts = then_grouped_counts(by=by, keys=keys, **counted)
    chain = stable >> counts >> then_dirichlet_multinomial(prior=prior)
    space = descriptor_of(chain.output_domain, PosteriorSpace, "posterior")
    return PosteriorQuery(
        chain,
        space,
        base,
        fit_of(mechanism, options, space),
        None if by is None else grouped_release(chain.output_domain),
    )


class ReleaseInterrupted(KeyboardInterrupt):
    """Ctrl-C came when a release could no longer be stopped: it was made and debited.

    `release` is that release. In a notebook or at a prompt it is `sys.last_value.release`.
    """

    def __init__(self, release: Release | GroupedRelease) -> None:
        super().__init__(
            "the release had been made and debited; it is the attribute release of this exception,"
            " at a prompt `sys.last_value.release`."
        )
        self.release = release


class PosteriorQuery(Query, Generic[R]):
    """A query made by `posterior`. `resolve` gives the measurement, `param` its scale, `release`
    the `Release` or `GroupedRelease`.
    """

    def __init__(
        self,
        chain: Transformation,
        space: PosteriorSpace,
        base: Query,
        mechanism: Fit,
        postprocess: Function | None = None,
    ) -> None:
        super().__init__(chain, base._output_measure, base._d_in, base._d_out, base._context)
        self._space = space
        self._mechanism = mechanism
        self._postprocess = postprocess
        self._distance: int = chain.map(self._d_in)
        self._delta = delta_of(base._output_measure, base._d_out)

    @deferred_interrupts()
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
        if not as_tuple(self._d_out)[0] > 0:
            raise ValueError(
                f"query: has a budget of {self._d_out}; epsilon or rho must be greater than 0."
            )
        mechanism = self._fitted()
        chain = cast(Transformation, self._chain)
        measurement = chain >> make_mechanism(
            *chain.output_space,
            self._output_measure,
            mechanism,
            delta=self._delta,
        )
        if self._postprocess is not None:
            measurement = measurement >> self._postprocess
        measurement.param = mechanism.scale
        return measurement

    def release(self, data: Any = None, bounds: Any = None, T: Any = None) -> R:
        """Make the release and debit the Context, after checking that its remaining budget
        suffices.

        Raises `ReleaseError`, a `RuntimeError`, if reading the data fails, with a message that does
        not depend on them. Ctrl-C stops the search for a scale and the counting at once, with
        nothing debited. Later it waits for the release, which is debited then, and
        `ReleaseInterrupted`, a `KeyboardInterrupt`, carries it.
        """
        if data is not None or self._context is None:
            raise ValueError("release: the query must belong to a Context, which holds the data.")
        released: R | None = None
        try:
            with deferred_interrupts():
                released = self._released(self._context)
        except KeyboardInterrupt:
            if released is None:
                raise
            raise ReleaseInterrupted(released) from None
        return released

    def _released(self, context: Context) -> R:
        measurement = self.resolve()
        check_remaining(context, measurement.map(self._d_in))
        try:
            released: R = context(measurement)
        except OpenDPException as error:
            ours = _CALLBACK_MESSAGE.search(str(error))
            if ours is None:
                raise
            raise ReleaseError(ours[1]) from None
        loss = self._loss(deepcopy(released.mechanism))  # a key of caches, so out of reach
        promise = replace(released.promise, d_in=self._distance, loss=loss)
        return released.with_promise(promise)

    def _loss(self, mechanism: Mechanism) -> PrivacyLoss:
        loss = feasible_loss(
            mechanism,
            size=self._space.size,
            prior=self._space.prior_array,
            d_in=self._distance,
            delta=self._delta,
        )
        return replace(loss)  # a value that nobody can change for others

    def _fitted(self) -> Mechanism:
        if isinstance(self._mechanism, Mechanism):
            spent = loss_in(self._output_measure)(self._loss(self._mechanism))
            budget = as_tuple(self._d_out)
            if any(loss > limit for loss, limit in zip(spent, budget, strict=True)):
                raise ValueError(
                    f"mechanism={self._mechanism}: its privacy loss {shown(spent)} exceeds the"
                    f" budget of the query, {shown(budget)}. Raise its scale, or name the"
                    " mechanism to have the scale found."
                )
            return self._mechanism
        loss = relative_to_budget(self._output_measure, self._d_out)
        size, prior = self._space.size, self._space.prior_array
        with interruptible():
            return self._mechanism(lambda mechanism: loss(mechanism, size, prior, self._distance))


class _BayesNamespace:
    """`query.bayes`: the functions of this package that take a query, as methods."""

    def __init__(self, query: LazyFrameQuery | LazyGroupByQuery) -> None:
        self._query: Any = query

    def posterior(self, column: str, **arguments: Any) -> PosteriorQuery[Any]:
        """`opendp_bayes.posterior(query, column, ...)`."""
        return posterior(self._query, column, **arguments)


def enable() -> None:
    """Give OpenDP's polars queries a `bayes` namespace: `query.bayes.posterior(column, ...)`, also
    after `group_by`.

    Calling it again changes nothing.
    """
    LazyFrameQuery.bayes = property(_BayesNamespace)  # type: ignore[attr-defined]
    LazyGroupByQuery.bayes = property(_BayesNamespace)  # type: ignore[attr-defined]
