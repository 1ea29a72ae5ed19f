"""Write the sentences of a report: the promise, where records are counted, and the methods."""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from opendp_bayes import DiscoveredRelease, Mechanism
from opendp_bayes.display.wording import (
    at_most,
    difference,
    group_name,
    listed,
    prior_said,
    where_counted,
    without_scale,
)
from opendp_bayes.release_format.labels import are_same, place_of, spare
from opendp_bayes.release_format.merging import unmerged
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes_office.report.discoveries import sentences_of
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import (
    DROP,
    Column,
    Result,
    Specification,
    Value,
    as_text,
)

#: For the ε that a ρ implies, an example of a δ.
DELTA = 1e-6
#: What the report calls a category of its own for the values that are no category.
NOT_LISTED = "no listed value"
#: Pairs that no table has, of which a page states how wide their intervals are.
_NAMED = 3
_HELLINGER = "on the Hellinger distance of posteriors"
_MECHANISMS = {
    "laplace_parameters": "{noise} Laplace noise on the counts",
    "gaussian_parameters": "discrete Gaussian noise on the counts",
    "knorm_parameters": "K-norm noise on the counts",
    "hellinger_exponential": f"the exponential mechanism {_HELLINGER}",
    "permute_and_flip": f"permute-and-flip {_HELLINGER}",
}


def naming(column: Column, result: Result) -> Column:
    """The column with the labels of its categories, which those of merged ones are not."""
    return column if result.merge is None else replace(column, labels=None)


def named(column: Column | None, value: Any) -> str:
    """Name in the report of a category, or of all values that are no category."""
    if column is not None and column.labels is not None:
        for known, label in zip(column.listed or (), column.labels, strict=True):
            if are_same(known, value):
                return str(label)
    own = None if column is None else column.own_unknown
    if column is not None and own is not None and are_same(own, value):
        return spare(NOT_LISTED, column.labels or column.listed or ())
    return group_name(value)


def fates(
    specification: Specification, result: Result, categories: Sequence[Any], asked: bool = True
) -> Iterator[tuple[str, tuple[str, Value | None], tuple[str, Value | None]]]:
    """Yield each column of a result, with what becomes of its records without a value and of those
    with another value: "counted", and the label, or "left out", "in no group" or "cannot occur".
    Where nobody `asked` by this specification, which was made from releases, what these have no
    label for is "not stated".

    `categories` are those of the release, before they were merged.
    """
    for at, name in enumerate(result.used):
        column, grouping = specification.columns[name], name == result.by
        own = [cell[at] if len(result.columns) > 1 else cell for cell in categories]
        unknown = column.counted_unknown
        if not grouping and place_of(column.own_unknown, own) is not None:
            unknown = column.own_unknown
        # A column without `categories` has those of its type, which are all that it can hold.
        private = specification.privacy.size is None
        left = column.listed is not None and (grouping or (private and column.unknown == DROP))
        otherwise = "in no group" if grouping else "left out"
        without, other = (
            ("not stated" if not asked else otherwise if can_occur else "cannot occur", None)
            if label is None
            else ("counted", label)
            for label, can_occur in ((column.counted_nulls, private or grouping), (unknown, left))
        )
        yield name, without, other


def cleaning_said(facts: Any) -> Iterator[str]:
    """Yield sentences that say what is done to values before they are counted, by the word of a
    specification or of an owner's file.
    """
    if facts.sheet is not None:
        yield f"The sheet is {facts.sheet!r}."
    if facts.labels:
        where = f" in {facts.labels}" if isinstance(facts.labels, str) else ""
        yield f"Codes are read as their value labels{where}."
    if facts.trim:
        yield "Blanks around texts are left out."
    if facts.null_values:
        yield f"What reads {listed(list(map(repr, facts.null_values)), 'or')} is no value."
    for name, column in facts.columns.items():
        for value, label in column.recode.items():
            yield f"In {name}, {as_text(value)!r} is counted as {as_text(label)!r}."
        if column.null_values:
            codes = listed(list(map(repr, column.null_values)), "or")
            yield f"In {name}, what reads {codes} is no value."
    if facts.blank_lines == "null":
        yield "Empty lines are records without a value."


def notes(
    specification: Specification,
    result: Result,
    categories: Sequence[Any],
    called: Callable[[Column, Any], str] = named,
    asked: bool = True,
) -> Iterator[str]:
    """Yield sentences that say where records in no category are counted, and what limits the
    counts. `categories` are those of the release, `called` gives their names; `asked` as in
    `fates`.
    """
    #: By what becomes of the records, the columns without a value, and with another.
    said: dict[str, tuple[list[str], list[str]]] = {}
    found = list(fates(specification, result, categories, asked))
    for name, *both in found:
        for which, (fate, label) in enumerate(both):
            if fate == "counted":
                column = specification.columns[name]
                fate = f"counted as “{called(column, label)}”"
                if not which and _is_another_text(label, column):
                    fate += ", like values that read so"
            if fate not in ("cannot occur", "not stated"):
                said.setdefault(f"are {fate}", ([], []))[which].append(name)
    if said:
        yield where_counted(said, "Records", say_columns=len(found) > 1)
    yield from limits(specification, result)


def _is_another_text(label: Value | None, column: Column) -> bool:
    """True if values may read like the label of records without one, and are no category."""
    own = column.always if column.discovered else column.listed
    return isinstance(label, str) and own is not None and place_of(label, own) is None


def limits(specification: Specification, result: Result) -> Iterator[str]:
    """Yield sentences that say what the probabilities of a result are of."""
    privacy = specification.privacy
    if privacy.rows_per_identifier is not None:
        limit = privacy.rows_per_identifier
        counted = "1 record" if limit == 1 else f"{limit} records"
        once = ", the same for every result," if specification.joint else ""
        yield (
            f"At most {counted} of each {privacy.identifier}{once} {'is' if limit == 1 else 'are'}"
            " counted: the results are about the records kept, not about all."
        )
    if result.pooled:
        yield (
            "The groups were estimated together, each drawn towards the others as far as they are"
            " alike."
        )


def prior_of(release: Any) -> str:
    """The concentration of the prior, or that it was learned."""
    if isinstance(release, DiscoveredRelease):
        return prior_said((), learned=True)
    learned, ordered = getattr(release, "learned_prior", False), getattr(release, "ordered", ())
    return prior_said(release.prior, learned=learned, ordered=ordered)


def total(releases: Sequence[Any]) -> dict[str, str]:
    """The losses of some releases together, as text."""
    return {name: at_most(_sum(releases, name)) for name in ("epsilon", "rho", "delta")}


def _sum(releases: Sequence[Any], name: str) -> float:
    losses = [getattr(release, name) for release in releases]
    finite = all(map(math.isfinite, losses))
    return float(sum(map(Fraction, losses))) if finite else math.inf


def guarantee(report: Report) -> dict[str, str]:
    """State the promise in words, with the `factor` of ε, or with the `epsilon` that ρ implies with
    `delta`.
    """
    privacy, first, sums = report.specification.privacy, report.releases[0], total(report.releases)
    said = {
        "loss": f"ε = {sums['epsilon']}" if privacy.rho is None else f"ρ = {sums['rho']}",
        "unit": privacy.unit,
        "change": difference(first.guarantee),
        "otherwise": "left out" if first.size is None else "different",
        "factor": "",
        "epsilon": "",
        "delta": "",
        "size": (
            "The number of records is private."
            if privacy.size is None
            else f"The number of records, {privacy.size}, is public."
        ),
    }
    if privacy.delta is not None:
        said["loss"] += f", δ = {sums['delta']}"
    if privacy.rho is not None:
        rho, delta = _sum(report.releases, "rho"), _sum(report.releases, "delta") + DELTA
        said["epsilon"] = at_most(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)))
        said["delta"] = at_most(delta)
    elif (epsilon := _sum(report.releases, "epsilon")) < math.log(1e12):  # else it says nothing
        said["factor"] = at_most(math.exp(epsilon))
    return said


def methods(report: Report, level: float) -> str:
    """A paragraph for a publication."""
    said, specification = guarantee(report), report.specification
    versions = " and ".join(f"{name} {version}" for name, version in report.software.items())
    versions = f" with {versions}" if versions else ""
    concentrated = "zero-concentrated " if specification.privacy.rho is not None else ""
    together = "All results together have" if len(report.releases) > 1 else "The result has"
    listed = [
        (result.heading, release)
        for result, release in zip(specification.results, report.releases, strict=True)
        if not isinstance(release, DiscoveredRelease)
    ]
    cleaned = "".join(f" {one}" for one in cleaning_said(specification))
    what = "Category probabilities" if listed else "Counts"
    return (
        f"{what} were released under {concentrated}differential privacy"
        f"{versions}. The privacy unit is {said['unit']}: data sets that differ by"
        f" {said['change']} are neighbours. {said['size']} {together} a privacy loss of at most"
        f" {said['loss']}; bounds are certified and rounded up."
        f"{_estimated(listed, level, report.together)}{''.join(sentences_of(report, level))}"
        f"{cleaned}{''.join(_limits(report))}"
    )


def _estimated(
    listed: Sequence[tuple[str, Any]], level: float, joint: SurveyPosterior | LevelsPosterior | None
) -> str:
    """State the mechanisms and priors of results whose categories are listed, by their headings."""
    if not listed:
        return ""
    headings, releases = zip(*listed, strict=True)
    mechanisms = _mechanisms(headings, [release.mechanism for release in releases])
    priors = _priors(headings, releases)
    return (
        f" The mechanism was {mechanisms}."
        f" Estimates are means and equal-tailed {100 * level:.6g} % credible intervals of the"
        " posterior given the released values, which takes the randomness of the release into"
        f" account. {f'The prior was {priors}.' if joint is None else _joint(joint, level)}"
    )


def _joint(joint: SurveyPosterior | LevelsPosterior, level: float) -> str:
    """State the model of all results, and what it assumes."""
    if isinstance(joint, LevelsPosterior):
        each = [f"{value:.3g} for “{name}”" for name, value in joint.concentrations.items()]
        return (
            "All results were estimated together, as counts of the same records at several levels,"
            " and are rounded so that they add up. The prior is a Dirichlet distribution of the"
            " parts of each category, with a concentration that was learned for every level:"
            f" {listed(each, 'and')}."
        )
    cliques = listed([" × ".join(names) for names in joint.cliques], "and")
    found = (
        "All tables were estimated together, as tables of the same records, and are rounded so that"
        f" they agree. The model is decomposable, with the cliques {cliques} and a hyper-Dirichlet"
        " prior whose concentration was learned. "
    )
    if joint.independences:
        each = [
            f"that {listed(one, 'and')} {'is' if len(one) == 1 else 'are'} independent of"
            f" {listed(other, 'and')}" + (f" given {listed(given, 'and')}" if given else "")
            for one, other, given in joint.independences
        ]
        found += f"It is centred on the assumption {'; '.join(each)}. {_interactions(joint, level)}"
    elif len(joint.variables) > 1:
        found += "It assumes no independence. "
    if joint.undercovered:
        found += (
            f"The noise is wide for the margins of {listed(joint.undercovered, 'and')}: in real"
            " surveys, only 87 % of 95 % intervals held the truth of such a margin. "
        )
    r_hat, fewest = max(joint.r_hat.values()), min(joint.ess.values())
    return found + (
        f"It was fitted by Markov chains: R-hat is at most {r_hat:.2f}, and every count of a table"
        f" has at least {fewest:.0f} effective draws."
    )


def _interactions(joint: SurveyPosterior, level: float) -> str:
    """State the interactions that are assumed, and how wide intervals are of the pairs of which
    least is known.
    """
    found = joint.unmeasured(level)
    each = [
        f"{width:.2g} for {' × '.join(pair)} (a table would leave about {known:.2g})"
        for pair, _, width, known in found.head(_NAMED).rows()
    ]
    rest = found.height - len(each)
    if rest > 0:
        each.append(f"less for {rest} other pairs")
    return (
        "Each pair that no table has is given a random interaction, about as strong as the"
        f" interactions of measured pairs. The {100 * level:.6g} % intervals of its shares have a"
        f" mean width of {listed(each, 'and')}. "
    )


def _priors(headings: Sequence[str], releases: Sequence[Any]) -> str:
    """The priors, each with the results that it is of."""
    texts, dirichlet = [prior_of(release) for release in releases], "Dirichlet with concentration "
    learned = [getattr(release, "learned_prior", False) for release in releases]
    if not any(learned):
        return dirichlet + _by_result(headings, texts)
    each = zip(texts, learned, strict=True)
    return _by_result(headings, [text if of else dirichlet + text for text, of in each])


def _mechanisms(headings: Sequence[str], mechanisms: Sequence[Mechanism]) -> str:
    """The mechanisms by their plain names, where they have one, with their scales."""
    kinds = [_kind(mechanism) for mechanism in mechanisms]
    scales = [f"{mechanism.scale:.4g}" for mechanism in mechanisms]
    if len(set(kinds)) == 1:
        return f"{kinds[0]}, of scale {_by_result(headings, scales)}"
    pairs = zip(kinds, scales, strict=True)
    return _by_result(headings, [f"{kind}, of scale {scale}," for kind, scale in pairs])


def _kind(mechanism: Mechanism) -> str:
    known = _MECHANISMS.get(mechanism.name)
    if known is None or getattr(mechanism, "sensitivity", "global") != "global":
        return without_scale(mechanism)
    return known.format(noise=getattr(mechanism, "noise", ""))


def _by_result(headings: Sequence[str], texts: Sequence[str]) -> str:
    """Texts, each with the results that it is about, or one that is about all."""
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(
        f"{text} for {_quoted(headings, [other == text for other in texts])}"
        for text in dict.fromkeys(texts)
    )


def _limits(report: Report) -> Iterator[str]:
    """The notes of all results, each with those that it is about, unless it is about all."""
    specification, results = report.specification, report.specification.results
    of_results = [
        list(notes(specification, result, unmerged(release), asked=report.source is None))
        for result, release in zip(results, report.releases, strict=True)
    ]
    for note in dict.fromkeys(note for of in of_results for note in of):
        about = [note in of for of in of_results]
        if all(about):
            yield f" {note}"
        else:
            where = _quoted([result.heading for result in results], about)
            yield f" In {where}, {note[0].lower()}{note[1:]}"


def _quoted(headings: Sequence[str], wanted: Sequence[bool]) -> str:
    chosen = [f"“{name}”" for name, want in zip(headings, wanted, strict=True) if want]
    return listed(chosen, "and")
