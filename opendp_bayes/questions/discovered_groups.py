"""Groups that nobody listed: a posterior of listed categories in each group that is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from opendp.extras.polars import LazyFrameQuery

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mechanisms import GaussianParameters, LaplaceParameters
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.thresholds import Discovery
from opendp_bayes.questions.cells_of import cells_of
from opendp_bayes.questions.discovered_counts import keys_of
from opendp_bayes.questions.discovery_query import Discovering, discovering_in, wants_discovery
from opendp_bayes.questions.left_out import DROP
from opendp_bayes.questions.priors import NUMBER
from opendp_bayes.questions.question import Question
from opendp_bayes.release_format.discovered import DiscoveredData
from opendp_bayes.results.discovered import DiscoveredGroups, DiscoveredRelease
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.trusted.kinds import KindsOfFrame
from opendp_bayes.trusted.stable_plans import check_left_out, gate_of

#: The share of the loss that buys the counts within a group that is shown; the rest of it shows the
#: group with its number of records.
WITHIN = 0.5


def asks_for_groups(categories: Any) -> bool:
    """True if the values of some column are to be discovered, and those of others are listed."""
    return isinstance(categories, Mapping) and any(map(wants_discovery, categories.values()))


def discovering_groups(
    query: Any,
    column: Any,
    *,
    by: Any,
    categories: Mapping[Any, Any],
    nulls: Any,
    unknown: Any,
    recode: Any,
    cells: Any,
    prior: Any,
    always: Sequence[Any] | None,
    rest: float | None,
    mechanism: str | Discovery,
) -> Discovering:
    """Ask a query on a polars frame for groups that nobody listed, and for the posterior of listed
    categories in each; the arguments are those of `posterior`.

    Raises `ValueError`/`TypeError` for arguments that do not fit. Reads no data.
    """
    found = [name for name, of in categories.items() if wants_discovery(of)]
    names = [by] if isinstance(by, str) else list(by or ())
    if names != found:
        raise ValueError(
            f"categories={told(dict(categories))}: 'discover' is for the one column of by=, whose"
            f" groups are to be discovered, and by={told(by)}. Of a column that is asked for, pass"
            " categories='discover' alone."
        )
    if not isinstance(query, LazyFrameQuery):
        raise TypeError(
            "query: must be a query on a polars frame, as `context.query()` gives, where groups are"
            " to be discovered."
        )
    (group,) = names
    of_group, others = _apart(nulls, group)
    refused, unlisted = _apart(unknown, group)
    if refused is not None:
        raise ValueError(
            f"unknown={told(unknown)}: has no meaning for {group!r}, whose every value is a group;"
            " leave it out there."
        )
    listed = {name: of for name, of in categories.items() if name != group}
    question = Question.of(
        column,
        categories=listed or None,
        recode=recode,
        nulls=others,
        unknown=unlisted,
        cells=cells,
        prior=NUMBER if isinstance(prior, str) and prior == "auto" else prior,
    )
    check_left_out(query, [*question.columns, group])
    gate = gate_of(query)
    kinds = KindsOfFrame(gate.output_space[0])
    within = cells_of(question, kinds, None)
    nulls = DROP if of_group is None else of_group
    keys = keys_of(group, kinds, always or (), nulls, within=within)
    counts = gate.counts_of_keys(keys, "posterior")
    asked = discovering_in(
        gate.base, counts, mechanism, rest, truncated=gate.limits.any, kept=gate.limits.kept
    )
    if isinstance(question.prior, str):
        raise ValueError(
            f"prior={told(prior)}: must be numbers for groups that are discovered, each of which"
            " has a posterior of its own."
        )
    numbers = within.space.as_prior(question.prior)

    def result(data: DiscoveredData) -> DiscoveredGroups:
        noise = data.discovery.within
        assert noise is not None  # noqa: S101  # as the measurement has checked
        kind = LaplaceParameters if isinstance(noise, DiscreteLaplace) else GaussianParameters
        grouped = GroupedRelease(
            groups=data.categories,
            drawn=data.within,
            categories=within.space.labels,
            prior=numbers,
            mechanism=kind(noise.scale, total="private"),
            promise=data.promise,
            axes=within.space.axes,
            grouped_by=(group,),
            columns=question.columns,
            nulls=within.space.nulls,
            unknown=within.space.unknown,
        )
        return DiscoveredGroups(DiscoveredRelease.of(replace(data, within=())), grouped)

    return replace(asked, within=WITHIN, result=result)


def _apart(given: Any, group: str) -> tuple[Any, Any]:
    """What a policy says of the group's column, None where it says nothing, and what of others."""
    if not isinstance(given, Mapping):
        return None, given
    return given.get(group), {name: of for name, of in given.items() if name != group}
