"""A question put to a query: the chain to the posterior with its prior, the measurement of a
mechanism that fits a budget, and its description, for which nothing is read or spent.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from opendp.extras.polars import LazyFrameQuery
from opendp.mod import Measurement, Transformation

from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.display.wording import prior_said
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_names, as_size
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.neighbours import relation_of
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries.base import Bound, counts_and_unit, split_of
from opendp_bayes.queries.categorical_counts import CountsOfFrame, counts_of_frame
from opendp_bayes.queries.mechanism_choice import (
    Fit,
    Option,
    check_for_groups,
    fit_of,
    named_mechanism,
    template_of,
)
from opendp_bayes.queries.question import Countable, LeftOut, Question
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.trusted.boundary import descriptor_of
from opendp_bayes.trusted.budget import loss_in, relative_to_budget, shown
from opendp_bayes.trusted.measurements import measurement_of
from opendp_bayes.trusted.posteriors import make_dirichlet_multinomial
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace, groups_and_labels


@dataclass(frozen=True, eq=False)
class BoundQuery(Bound[Release | GroupedRelease]):
    """A question put to a query.

    Attributes
    ----------
    question : Question
        What is asked, with the prior that `"auto"` stood for.
    counts : Transformation
        From the space of the base query to the counts.
    frame : CountsOfFrame or None
        The same, where the query is on a polars frame.
    posterior : Transformation
        From the counts to the posterior, which `space` describes.
    fit : Fit
        A mechanism, or the one that fits a budget.
    """

    question: Question
    counts: Transformation
    frame: CountsOfFrame | None
    posterior: Transformation
    space: PosteriorSpace
    fit: Fit

    @property
    def chain(self) -> Transformation:
        """Chain the counts and the posterior, from the space of the base query."""
        return self.counts >> self.posterior

    @property
    def number_listed(self) -> int:
        """The number of categories, or cells, those of all groups."""
        return self.space.k

    @np.errstate(under="ignore")
    def summary(self, budget: Any, guess_size: int | None = None) -> pl.DataFrame:
        """The row that `PosteriorQuery.summarize` shows, of the mechanism that fits the budget and
        its loss for one privacy unit.
        """
        size = self.space.size
        if guess_size is not None:
            guess_size = as_size(guess_size, "guess_size")
            if size is not None:
                raise ValueError(
                    f"guess_size={guess_size}: the number of records, {size}, is public; leave it"
                    " out."
                )
        records = guess_size if size is None else size
        width = None if records is None else _width(self, self.settled(budget), records)
        numbers = dict.fromkeys(("scale", "epsilon", "delta", "rho", "interval_width"), pl.Float64)
        return pl.DataFrame(
            [_row(self, budget) | {"interval_width": width}],
            schema_overrides={**numbers, "d_in": pl.Int64, "largest": pl.Int64},
        )

    def described(self, budget: Any) -> str:
        """Describe the query in one line, without anything that takes time to compute."""
        row = _row(self, budget)
        size = "" if self.space.size is None else f", size={self.space.size}"
        columns = ", ".join(map(repr, self.question.columns))
        return (
            f"PosteriorQuery({row['aggregate'].lower()} of {columns}, prior={row['prior']!r},"
            f" mechanism={self.settled(budget).mechanism}, relation={row['neighbours']!r}{size},"
            f" d_in={self.distance.stated}, debits={row['debits']})"
        )

    def measurement(
        self, budget: Any, counts: Transformation | None = None, *, raw: bool = False
    ) -> Measurement:
        """The measurement on the space of the base query, with the smallest scale whose loss is
        within `budget`, in the measure of the query; its attribute `param` is the scale. It begins
        with another transformation to the counts where one is given. It gives what the user gets,
        or with `raw` what was drawn, for `restated`.

        Several of them compose.

        Raises
        ------
        ValueError
            If no scale satisfies the budget.
        """
        setting = self.settled(budget)
        setting.check_informative()
        chain = self.chain if counts is None else counts >> self.posterior
        draws = measurement_of(setting, self.space, self.measure, delta=self._delta(budget))
        return self._measured(chain, draws, budget, setting.mechanism.scale, raw=raw)

    def _settled(self, budget: Any) -> Setting:
        """The mechanism for a budget, after checking that releases by it have a posterior, which is
        asked for before anything is paid.

        Raises
        ------
        ValueError
            Where they have none, whatever is drawn. Counts without a posterior are OpenDP's own
            query, and the chain that ends with `then_laplace_parameters` makes a release.
        """
        from opendp_bayes.inference.ways import check_posterior

        setting = self._fitted(budget)
        release: Any = self.foreseen(setting)
        groups = list(release.values()) if isinstance(release, GroupedRelease) else [release]
        check_posterior(groups[0])  # those of groups are all alike
        return setting

    def foreseen(self, setting: Setting) -> Release | GroupedRelease:
        """A release that may come of it, made of public facts alone: what was drawn is as if all
        cells had as many records, none where their number is private.
        """
        space = self.space
        balanced = np.diff(np.arange(space.k + 1) * (space.size or 0) // space.k).tolist()
        categories: Any = space.categories
        guarantee = PrivacyGuarantee.none(space.size)
        draw = ReleasedData(
            tuple(balanced), categories, space.prior, setting.mechanism, guarantee, space.axes
        )
        return self.result(draw)

    def _fitted(self, budget: Any) -> Setting:
        if isinstance(self.fit, Mechanism):
            setting = Setting.of(self.fit, self.space.size, self.space.prior)
            spent = loss_in(self.measure)(self._loss(setting, budget))
            remedy = "Raise its scale, or name the mechanism to have the scale found."
            self._check_within(self.fit, spent, budget, remedy)
            return setting
        loss = relative_to_budget(self.measure, budget)
        return self.fit(lambda setting: loss(setting, self.distance))

    def loss(self, budget: Any) -> PrivacyLoss:
        """The loss of the measurement for `budget`, of one privacy unit of the Context."""
        return self._loss(self.settled(budget), budget)

    def _loss(self, setting: Setting, budget: Any) -> PrivacyLoss:
        return loss_of(setting, self.distance, delta=self._delta(budget))


def ask(
    query: Any,
    question: Question,
    mechanism: str | Mechanism = "auto",
    options: Mapping[str, Option] | None = None,
) -> BoundQuery:
    """Put a question to an OpenDP query on a polars frame, or to any other `Countable`.

    `mechanism` and `options` are those of `posterior`. Reads no data.

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit each other or the query.
    """
    settings = dict(options or {})
    if isinstance(mechanism, str):
        named_mechanism(mechanism, settings)  # before what it would be used for
    frame = counts_of_frame(query, question) if isinstance(query, LazyFrameQuery) else None
    in_frame = None if frame is None else (frame.transformation, frame.gate)
    counts, unit = counts_and_unit(query, in_frame, Countable, lambda: query.counts_of(question))
    counted = descriptor_of(counts.output_domain, CountsSpace, "counts")
    template = template_of(mechanism, settings, counted.size)
    question = with_prior(question, counted, template)
    prior = NUMBER if question.learned else question.prior
    posterior = make_dirichlet_multinomial(*counts.output_space, prior=prior)
    space = descriptor_of(posterior.output_domain, PosteriorSpace, "posterior")
    result: Callable[[ReleasedData], Release | GroupedRelease] = partial(
        Release.of,
        learned_prior=question.learned,
        ordered=tuple(question.ordered or ()),
        parts=question.parts,
        columns=question.columns,
    )
    if groups_and_labels(space.categories)[0]:
        if space.size is None:
            check_for_groups(template)
        result = partial(split_of(space), columns=question.columns)
    is_value = not isinstance(mechanism, str)
    fit = fit_of(
        template, space, is_value=is_value, is_tuned=bool(settings), learned=question.learned
    )
    return BoundQuery(*unit, result, question, counts, frame, posterior, space, fit)


#: The number that `prior="auto"` stands for, and with how many categories a prior is learned
#: instead (`docs/research/priors.md` has the errors by which they were chosen).
NUMBER, LEARNED_FROM = 1.0, 10


def with_prior(question: Question, space: CountsSpace, mechanism: Mechanism | None) -> Question:
    """The question with `"learned"` or numbers in place of `prior="auto"`: learned of ten or more
    categories, or of ordered ones, of one table, where the mechanism adds noise to the counts, or
    is open to the choice.

    Raises
    ------
    ValueError, TypeError
        For another word, for groups that are to learn a prior, and for `ordered` that is not among
        the columns or goes with numbers.
    """
    groups = groups_and_labels(space.categories)[0]
    ordered, prior = _ordered(question), question.prior
    if isinstance(prior, str) and prior not in ("auto", "learned"):
        raise ValueError(
            f"prior={told(prior)}: must be 'auto', 'learned', a positive number, or one for each"
            " category."
        )
    if isinstance(prior, str) and prior == "auto":
        many = space.k >= LEARNED_FROM and not groups
        public: Any = space.size, np.ones(space.k)
        many = many and (mechanism is None or Setting.of(mechanism, *public).adds_noise)
        prior = "learned" if ordered or many else NUMBER
    settled = replace(question, prior=prior, ordered=ordered)
    if groups and settled.learned:
        raise ValueError(
            f"{'ordered' if ordered else 'prior'}={told(ordered or prior)}: is of one table; ask"
            " for the joint table of the groups' column and the others, whose effects are learned,"
            " and take conditional() of it."
        )
    if ordered and not settled.learned:
        raise ValueError(
            f"ordered={told(list(ordered))}: goes with a learned prior; leave out"
            f" prior={told(prior)}."
        )
    return settled


def _ordered(question: Question) -> tuple[str, ...]:
    """The columns whose values are in order, each once."""
    names = [] if question.ordered is None else as_names(question.ordered, "ordered")
    if set(names) - set(question.columns):
        raise ValueError(
            f"ordered={told(list(names))}: must be among the columns asked for, which are"
            f" {', '.join(map(repr, question.columns))}."
        )
    return tuple(dict.fromkeys(names))


def _row(bound: BoundQuery, budget: Any) -> dict[str, Any]:
    """The row, without the width of an interval, which takes time to compute."""
    mechanism, loss = bound.settled(budget).mechanism, bound.loss(budget)
    measure, learned = bound.measure, bound.question.learned
    groups, labels = groups_and_labels(bound.space.categories)
    k = len(labels) if groups else bound.space.k  # of one group
    prior = prior_said(bound.space.prior[:k], learned=learned, ordered=bound.question.ordered or ())
    kind = f"{k} cells" if bound.space.axes else f"{k} categories"
    return {
        "column": ", ".join(bound.question.columns),
        "aggregate": f"Posterior of {kind}" + (f" in {len(groups)} groups" if groups else ""),
        "categories": _where_from(bound),
        "prior": prior,
        "nulls": _where_counted(bound, "nulls"),
        "unknown": _where_counted(bound, "unknown"),
        "mechanism": type(mechanism).__name__,
        "scale": mechanism.scale,
        "neighbours": relation_of(bound.space.size),
        "d_in": bound.distance.records,
        "largest": bound.distance.largest,
        "epsilon": loss.epsilon,
        "delta": loss.delta,
        "rho": loss.rho,
        "debits": f"{shown(loss_in(measure)(loss))} ({measure})",
    }


def _where_counted(bound: BoundQuery, policy: str) -> str:
    """The label that nulls or other values are counted under, of several columns by name."""
    fates = {}
    of_groups = [group for group in bound.question.groups if getattr(group, policy) is not None]
    for variable in (*bound.question.variables, *of_groups):
        label = getattr(variable, policy)
        fate = "cannot occur" if label is None else repr(label)
        fates[variable.column] = "left out" if isinstance(label, LeftOut) else fate
    return _by_name(fates)


def _where_from(bound: BoundQuery) -> str:
    """Say where the labels of categories and groups are from, of several columns by name."""
    question = bound.question
    sources = {
        variable.column: variable.categories for variable in (*question.variables, *question.groups)
    }
    axes = () if bound.frame is None else bound.frame.cells.axes
    boolean = {variable.column for variable in axes if variable.kind == "boolean"}
    return _by_name(
        {
            column: "given"
            if labels is not None
            else "of its type"
            if column in boolean
            else "of its type; an Enum that was made from the data is the data"
            for column, labels in sources.items()
        }
    )


def _by_name(texts: dict[str, str]) -> str:
    """Join what is said of several columns, once where it is the same of all."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{column}: {text}" for column, text in texts.items())


def _width(bound: BoundQuery, setting: Setting, records: int) -> float:
    """The expected width of an interval at balanced proportions, of the categories of one group
    where there are groups.
    """
    from opendp_bayes.planning.expected_error import expected_width

    space = bound.space
    groups, labels = groups_and_labels(space.categories)
    cells = len(groups) * len(labels) or space.k  # without that of records in no group
    counts = np.zeros(space.k, dtype=np.int64)
    counts[:cells] = np.diff(np.arange(cells + 1) * records // cells)
    width = expected_width(setting, counts, slice(len(labels) if groups else space.k))
    return width if math.isfinite(width) else math.nan
