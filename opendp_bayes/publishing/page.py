"""The page of a report: HTML that needs nothing else, from what was released alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opendp_bayes.inference.estimates import Estimate, InferredRelease, noise_aware_estimate
from opendp_bayes.publishing.document import Report
from opendp_bayes.publishing.specification import Result, Specification
from opendp_bayes.report.wording import at_most, change, described, group_name
from opendp_bayes.results.release import Release

#: Probability of the intervals.
LEVEL = 0.95
#: The ends of the scales of pictures, and the steps of their ticks.
_SCALES = ((0.1, 0.02), (0.2, 0.05), (0.5, 0.1), (1.0, 0.25))


@dataclass(frozen=True)
class Row:
    """A category: its name, the numbers as text, and where the picture has them, in per cent."""

    name: str
    count: str
    mean: str
    interval: str
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """The categories of a release, or of one group."""

    group: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """A result as the page shows it."""

    heading: str
    text: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    epsilon: str
    rho: str
    delta: str
    mechanism: str
    prior: str


def rendered(report: Report) -> str:
    """The report as one HTML file, without scripts and without anything from elsewhere.

    Computes every posterior. Raises `ImportError` without jinja2, which the extra `report`
    installs.
    """
    try:
        import jinja2
    except ImportError:
        raise ImportError("report needs jinja2: pip install 'opendp-bayes[report]'.") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opendp_bayes.publishing"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    sections = [
        _section(report.specification, result, release)
        for result, release in zip(report.specification.results, report.releases, strict=True)
    ]
    return environment.get_template("page.html").render(
        specification=report.specification,
        sections=sections,
        promise=_promise(report),
        loss=_total(report),
        methods=_methods(report, sections),
        level=f"{100 * LEVEL:.6g} %",
        # In a script element only `<` can end the text.
        document=report.to_json().replace("<", "\\u003c"),
    )


def _section(specification: Specification, result: Result, release: Any) -> Section:
    grouped = not isinstance(release, Release)
    parts = dict(release) if grouped else {None: release}
    estimates = {key: noise_aware_estimate(part, LEVEL) for key, part in parts.items()}
    end, step = _scale(max(float(estimate.upper.max()) for estimate in estimates.values()))
    by = specification.columns[result.by] if result.by is not None else None
    names = _names(specification, result, release.categories)
    panels = tuple(
        Panel(
            _named(by, key) if grouped else "",
            tuple(_rows(names, part, estimates[key], end)),
        )
        for key, part in parts.items()
    )
    ticks = [step * number for number in range(round(end / step) + 1)]
    return Section(
        heading=result.heading,
        text=result.text,
        panels=panels,
        ticks=tuple((f"{tick:.6g}", 100 * tick / end) for tick in ticks),
        notes=tuple(_notes(specification, result)),
        epsilon=at_most(release.epsilon),
        rho=at_most(release.rho),
        delta=at_most(release.delta),
        mechanism=described(release.mechanism),
        prior=_of_prior(release.prior),
    )


def _of_prior(prior: tuple[float, ...]) -> str:
    if len(set(prior)) == 1:
        return f"{prior[0]:.6g} for each of {len(prior)} categories"
    return ", ".join(f"{entry:.6g}" for entry in prior)


def _rows(
    names: list[str], release: InferredRelease, estimate: Estimate, end: float
) -> Iterator[Row]:
    means, intervals = estimate.shown()
    for i, name in enumerate(names):
        places = (
            round(100 * float(value) / end, 3)
            for value in (estimate.mean[i], estimate.lower[i], estimate.upper[i])
        )
        yield Row(name, str(release.counts[i]), means[i], intervals[i], *places)


def _scale(highest: float) -> tuple[float, float]:
    return next((end, step) for end, step in _SCALES if highest <= end or end == 1.0)


def _names(specification: Specification, result: Result, categories: tuple[Any, ...]) -> list[str]:
    """What the report calls the categories; the cells of a table by the values of all columns."""
    columns = [specification.columns[name] for name in result.columns]
    if isinstance(result.column, str):
        return [_named(columns[0], category) for category in categories]
    return [
        " × ".join(_named(column, value) for column, value in zip(columns, cell, strict=True))
        for cell in categories
    ]


def _named(column: Any, value: Any) -> str:
    """What the report calls a category."""
    if column is not None and column.labels is not None:
        for known, label in zip(column.categories, column.labels, strict=True):
            if type(known) is type(value) and known == value:
                return str(label)
    return group_name(value)


def _notes(specification: Specification, result: Result) -> Iterator[str]:
    """What the counts leave out or limit."""
    columns = [specification.columns[name] for name in result.columns]
    privacy = specification.privacy
    if privacy.size is None:
        kinds = [
            kind
            for kind, policies in (
                ("without a value", [column.nulls for column in columns]),
                ("with a value that is no category", [column.unknown for column in columns]),
            )
            if None in policies
        ]
        if kinds:
            yield f"Records {' or '.join(kinds)} are left out."
    if privacy.rows_per_identifier is not None:
        yield (
            f"At most {privacy.rows_per_identifier} records of each {privacy.identifier} are"
            " counted: the probabilities are those of the records kept, not of all."
        )
    if result.by is not None:
        yield "The groups share the loss of this result. How many records each has is private."


def _total(report: Report) -> dict[str, str]:
    """The losses of all releases together, as text."""
    sums = {}
    for name in ("epsilon", "rho", "delta"):
        losses = [getattr(release, name) for release in report.releases]
        finite = all(map(math.isfinite, losses))
        sums[name] = at_most(float(sum(map(Fraction, losses))) if finite else math.inf)
    return sums


def _promise(report: Report) -> dict[str, str]:
    """What is promised, in words."""
    privacy, first = report.specification.privacy, report.releases[0]
    total = _total(report)
    loss = f"ε = {total['epsilon']}" if privacy.rho is None else f"ρ = {total['rho']}"
    if privacy.delta is not None:
        loss += f", δ = {total['delta']}"
    return {
        "loss": loss,
        "unit": privacy.unit,
        "change": change(first.d_in, first.size),
        "size": (
            "The number of records is private."
            if privacy.size is None
            else f"The number of records, {privacy.size}, is public."
        ),
    }


def _methods(report: Report, sections: list[Section]) -> str:
    """A paragraph for a publication."""
    promise, privacy = _promise(report), report.specification.privacy
    kinds = list(dict.fromkeys(type(release.mechanism).__name__ for release in report.releases))
    versions = " and ".join(f"{name} {version}" for name, version in report.software.items())
    concentration = (
        "zero-concentrated differential privacy" if privacy.rho else "differential privacy"
    )
    limits = "".join(
        f" {note}" for note in dict.fromkeys(note for one in sections for note in one.notes)
    )
    return (
        f"Category probabilities were released under {concentration} with {versions}. The privacy"
        f" unit is {privacy.unit}: data sets that differ by {promise['change']} are neighbours."
        f" {promise['size']} All {len(sections)} results together have a privacy loss of at most"
        f" {promise['loss']}; bounds are certified and rounded up. Counts were released by"
        f" {', '.join(kinds)}. Estimates are means and equal-tailed {100 * LEVEL:.6g} % credible"
        " intervals of the posterior given the released values, which takes the noise of the"
        f" release into account, with Dirichlet priors stated for each result.{limits}"
    )
