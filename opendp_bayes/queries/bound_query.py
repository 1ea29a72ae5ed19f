"""A question put to a query: the chain to the posterior, and the measurement of a mechanism that
fits a budget.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from opendp.context import Context
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import Measurement, Transformation

from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries.base import Bound
from opendp_bayes.queries.counts_of_frame import CountsOfFrame, counts_of_frame
from opendp_bayes.queries.grouped_counts import split_of
from opendp_bayes.queries.mechanism_choice import (
    Fit,
    Option,
    draws_noise,
    fit_of,
    mechanism_for_groups,
    named_mechanism,
)
from opendp_bayes.queries.priors import NUMBER, with_prior
from opendp_bayes.queries.question import Columns, Countable, Question
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.release import GroupedRelease, Release
from opendp_bayes.trusted.boundary import descriptor_of
from opendp_bayes.trusted.budget import (
    distance_of_unit,
    identifier_of,
    loss_in,
    relative_to_budget,
)
from opendp_bayes.trusted.measurements import measurement_of
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.posteriors import make_dirichlet_multinomial
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace, groups_and_labels
from opendp_bayes.trusted.stable_plans import ungrouped


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
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are asked for."""
        return self.question.columns

    @property
    def number_listed(self) -> int:
        """The number of categories, or cells, those of all groups."""
        return self.space.k

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
        setting = self.fitted(budget)
        setting.check_informative()
        chain = self.chain if counts is None else counts >> self.posterior
        draws = measurement_of(setting, self.space, self.measure, delta=self._delta(budget))
        return self._measured(chain, draws, budget, setting.mechanism.scale, raw=raw)

    @cached_property
    def fitted(self) -> Callable[[Any], Setting]:
        """The function from a budget to the mechanism of its measurement, which is searched for
        once. No field: what caches of losses hold is out of everybody's reach.
        """
        return lru_cache(maxsize=None)(self._fitted)

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

        setting = self.fitted(budget)
        release: Any = self.foreseen(setting)
        groups = list(release.values()) if isinstance(release, GroupedRelease) else [release]
        check_posterior(groups[0])  # those of groups are all alike
        return setting

    def foreseen(self, setting: Setting) -> Release | GroupedRelease:
        """A release that may come of it, made of public facts alone: what was drawn is as if all
        cells had as many records, none where their number is private.
        """
        space = self.space
        drawn = np.diff(np.arange(space.k + 1) * (space.size or 0) // space.k).tolist()
        categories: Any = space.categories
        guarantee = PrivacyGuarantee.none(space.size)
        draw = ReleasedData(
            tuple(drawn), categories, space.prior, setting.mechanism, guarantee, space.axes
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
        return self._loss(self.fitted(budget), budget)

    def _loss(self, setting: Setting, budget: Any) -> PrivacyLoss:
        return loss_of(setting, self.distance, delta=self._delta(budget))


def ask(
    query: Any,
    question: Question,
    mechanism: str | Mechanism = "auto",
    options: Mapping[str, Option] | None = None,
    *,
    noise_only: bool = False,
) -> BoundQuery:
    """Put a question to an OpenDP query on a polars frame that is not grouped (`before_groups`), or
    to any other `Countable`.

    `mechanism` and `options` are those of `posterior`; with `noise_only`, `"auto"` chooses noise on
    the counts. Reads no data.

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit each other or the query.
    """
    settings = dict(options or {})
    if isinstance(mechanism, str):
        named_mechanism(mechanism, settings)  # before what it would be used for
    if isinstance(query, LazyFrameQuery):
        frame = counts_of_frame(query, question)
        counts, base, kept = frame.transformation, frame.gate.base, frame.gate.limits.kept
    elif isinstance(query, Countable):
        frame = None
        counts, base = query.counts_of(question)
        kept = getattr(query, "kept", "")
    else:
        kind = "a Context itself" if isinstance(query, Context) else type(query).__name__
        raise TypeError(
            f"query: must be a query on a polars frame, as `context.query()` gives, not {kind}."
        )
    counted = descriptor_of(counts.output_domain, CountsSpace, "counts")
    question = with_prior(question, counted, lambda: draws_noise(mechanism, settings, counted))
    prior = NUMBER if question.learned else question.prior
    posterior = make_dirichlet_multinomial(*counts.output_space, prior=prior)
    space = descriptor_of(posterior.output_domain, PosteriorSpace, "posterior")
    result = _marked(question)
    if groups_and_labels(space.categories)[0]:
        if space.size is None:
            mechanism, settings = mechanism_for_groups(mechanism, settings)
        result = _marked(question, split_of(space))
    distance = distance_of_unit(posterior.map(counts.map(parts_of(base).d_in)))
    fit = fit_of(mechanism, settings, space, learned=question.learned, noise_only=noise_only)
    truncated = bool(kept) or identifier_of(counts.input_metric) is not None
    return BoundQuery(
        base, distance, truncated, kept, result, question, counts, frame, posterior, space, fit
    )


def before_groups(query: Any) -> tuple[Any, tuple[str, ...]]:
    """The query without its `group_by`, and the columns that it was grouped by; none where it was
    not.
    """
    if isinstance(query, LazyGroupByQuery):
        return ungrouped(query)
    # A query on a frame has any attribute that polars has.
    return query, () if isinstance(query, LazyFrameQuery) else tuple(getattr(query, "by", ()))


def either(grouped_by: tuple[str, ...], by: Columns | None) -> Columns | None:
    """The columns to group by: those that the query was grouped by, or the argument `by`."""
    if grouped_by and by is not None:
        raise ValueError(
            f"by={told(by)}: the query is grouped already, by {', '.join(map(repr, grouped_by))};"
            " leave out one of the two."
        )
    return grouped_by or by


def _marked(
    question: Question, split: Callable[[ReleasedData], GroupedRelease] | None = None
) -> Callable[[ReleasedData], Release | GroupedRelease]:
    """The function from what was drawn to a release, which states the columns, and of one posterior
    whether it learns its prior, and which labels its categories merge; or that from `split`, which
    makes those of groups.
    """
    if split is not None:
        return lambda drawn: replace(split(drawn), columns=question.columns)
    return partial(
        Release.of,
        learned_prior=question.learned,
        ordered=tuple(question.ordered or ()),
        parts=question.parts,
        columns=question.columns,
    )
