"""Posterior queries in an OpenDP Context: the user's plan, then counts, posterior and a mechanism
whose scale fits the budget.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
import polars as pl
from opendp.context import Query
from opendp.extras.polars import LazyFrameQuery

from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.queries.base import AskedQuery
from opendp_bayes.queries.bound_query import BoundQuery, ask
from opendp_bayes.queries.mechanism_choice import Option
from opendp_bayes.queries.question import Categories, Columns, Countable, Policy, Question
from opendp_bayes.release_format.data import Value
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.trusted.boundary import require_features
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.spaces import Prior

R = TypeVar("R", Release, GroupedRelease)


# `context.query()` is typed as either kind of query; a `Query` that is none on a frame is refused.
@overload
def posterior(
    query: Query | LazyFrameQuery | Countable,
    column: Columns,
    *,
    by: None = None,
    prior: Prior | Literal["auto", "learned"] = "auto",
    ordered: Sequence[str] | None = None,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[Release]": ...


@overload
def posterior(
    query: Query | LazyFrameQuery | Countable,
    column: Columns,
    *,
    by: Columns | None = None,
    prior: Prior | Literal["auto", "learned"] = "auto",
    ordered: Sequence[str] | None = None,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[GroupedRelease]": ...


@np.errstate(under="ignore")
def posterior(
    query: Query | LazyFrameQuery | Countable,
    column: Columns,
    *,
    by: Columns | None = None,
    prior: Prior | Literal["auto", "learned"] = "auto",
    ordered: Sequence[str] | None = None,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
    mechanism: str | Mechanism = "auto",
    **options: Option,
) -> "PosteriorQuery[Any]":
    """Ask a Context for the posterior of the category probabilities of one column; `.release()`
    debits the Context and returns a `Release`.

    A list of columns asks for the posterior of the cells of their joint table, whose labels are
    tuples (`posterior.marginal`, `posterior.conditional`). `by` asks for the posterior of every
    group at once, for the budget of one query, and `.release()` returns a `GroupedRelease`.

    Parameters
    ----------
    query : Query or LazyFrameQuery or Countable
        `context.query()`, with any plan of the user's own after it (filter, with_columns, casts,
        truncation by identifier); or a `Countable` of a plugin.
    column : Columns
        The column whose categories are counted: Enum, String, Categorical, integer or Boolean. A
        list of them asks for their joint table, whose labels are tuples with one value of each
        column, the last column changing fastest.
    categories : Categories, optional
        The public labels, in the order of the counts. Not needed for a Boolean column, or an Enum
        of polars, which carries its own: one that was made from the data is the data. For a joint
        table or groups, a mapping from columns to their labels. Where nobody can list them, ask
        `discover`.
    by : Columns, optional
        The column that says which group a record is in, or a list of them, whose groups are tuples.
        The groups are public: those that `categories` has of the column, or every combination of
        the columns' own. Records of no group are counted in a cell of their own, which no grouped
        release contains.
    prior : Prior or {"auto", "learned"}, default "auto"
        A positive number for every category, or one for each, buckets included: in the order of the
        categories, or as a mapping from their labels. `"learned"` learns it from the release, for
        noise on the counts and without groups; `plug_in` has a prior of 1 then. `"auto"` is learned
        of ten or more categories where that can be, and 1 elsewhere (`docs/choosing.md`).
    ordered : Sequence[str], optional
        The columns whose categories are in order, such as `["age"]`: a learned prior has smooth
        effects along them. With it `"auto"` is learned, however few categories there are.
    size : int, optional
        The number of records, where it is public: required where the privacy unit changes records
        (and wherever a margin says `invariant="lengths"`), refused otherwise. With groups, the
        number of all records; those of the groups are private.
    nulls : Policy, optional
        Label of the category in which nulls are counted: one of the categories, or a new one, which
        is appended. Required if the column is nullable.
    unknown : Policy, optional
        Label of the category in which values outside the categories are counted, in like manner.
        Required unless the column's type excludes them. For a joint table, `nulls` and `unknown`
        are a label for every column, or a mapping from columns to labels. `DROP` leaves such
        records out, where their number is private. A mapping may name columns of `by` too, whose
        nulls and unknown values are a group then; without, or with `DROP`, they are in none.
    cells : Sequence[Sequence[str or int or bool]], optional
        For a joint table, the cells that are counted, as tuples of labels, in the order of the
        counts; by default every combination of labels. Leave out only combinations that are
        publicly known to be impossible: a record may be there all the same, so that every column
        must have a label for `unknown`, and the cell of these, one of `cells` or a new one,
        appended, counts all others. `DROP` for every column leaves such records out.
    mechanism : str or Mechanism, default "auto"
        The name of a built-in or installed mechanism, whose scale is found from the budget of the
        query; or a mechanism value, which is used as it is and must fit into the budget. `"auto"`
        chooses by public things only. It takes discrete Laplace noise where the number of rows is
        private or there are two categories, otherwise K-norm noise. It takes Gaussian noise where
        its expected error is smaller, as under most budgets in ρ. Where the public number of rows
        is small, it takes the mechanism with the smallest expected error (`docs/choosing.md`).
    **options : Option
        Parameters of the mechanism named, other than its scale, for example `gamma=0.2`. Without
        any, `smooth_hellinger_exponential` uses the γ with the smallest expected error for equal
        proportions (`calibrate`).

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit each other or the Context, before any data is read or budget
        spent.
    """
    require_features("posterior")
    question = Question.of(
        column,
        by=by,
        prior=prior,
        categories=categories,
        nulls=nulls,
        unknown=unknown,
        cells=cells,
        ordered=ordered,
        size=size,
    )
    return PosteriorQuery(ask(query, question, mechanism, options))


class PosteriorQuery(AskedQuery[R]):
    """A query made by `posterior`. `resolve` gives the measurement, `param` its scale, `release`
    the `Release` or `GroupedRelease`.
    """

    _bound: BoundQuery

    def summarize(self, guess_size: int | None = None) -> pl.DataFrame:
        """Describe the release that the query would make and its debit, as a polars frame of one
        row. Reads no data and spends nothing.

        The columns are:

        * `column` and `aggregate`: the question, and the `prior` that its posterior has;
        * `categories`: whether they, and those of groups, were given or are those of the type of
          the column, with a reminder that an Enum must not be made from the data;
        * `nulls` and `unknown`: the label under which records without a value and with another one
          are counted, or that they are left out or cannot occur;
        * `mechanism` and its `scale`;
        * `neighbours` and `d_in`: the records that one privacy unit changes, or adds and removes;
        * `epsilon`, `delta` and `rho`: certified upper bounds of the loss for one unit;
        * `debits`: the debit of the Context, in its measure;
        * `interval_width`: the expected width of a 95 % interval for balanced proportions, mean
          over categories. Groups are taken to be of equal sizes, without other rows.

        Parameters
        ----------
        guess_size : int, optional
            A public guess of the number of records, where that is private; nothing but
            `interval_width` depends on it. Without it that column is null.

        Raises
        ------
        ValueError
            If the query has no budget, no scale satisfies it, or a public number of records is
            guessed.

        Examples
        --------
        >>> import opendp.prelude as dp
        >>> import polars as pl
        >>> import opendp_bayes as ob
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> context = ob.context(
        ...     pl.LazyFrame({"vote": [True] * 60 + [False] * 40}),
        ...     privacy_unit=dp.unit_of(contributions=1),
        ...     privacy_loss=dp.loss_of(epsilon=0.5),
        ...     split_evenly_over=1,
        ... )
        >>> query = ob.posterior(context.query(), "vote", categories=[True, False], nulls=False)
        >>> query.summarize(guess_size=100).select("mechanism", "scale", "epsilon").rows()
        [('LaplaceParameters', 2.0, 0.5)]
        """
        self._settle()
        return self._bound.summary(parts_of(self).d_out, guess_size)
