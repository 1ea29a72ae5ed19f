"""The page of a report: HTML that needs nothing else, from what was released alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opendp_bayes.display.wording import at_most, described
from opendp_bayes.inference.estimates import Estimate, InferredRelease, noise_aware_estimate
from opendp_bayes.report.report_document import Report
from opendp_bayes.report.specification import Result, Specification
from opendp_bayes.report.statements import methods, named, notes, prior_of, promise, total
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
        loader=jinja2.PackageLoader("opendp_bayes.report"),
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
        promise=promise(report),
        loss=total(report),
        methods=methods(report, LEVEL),
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
            f"{result.by}: {named(by, key)}" if grouped else "",
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
        notes=tuple(notes(specification, result, release.categories)),
        epsilon=at_most(release.epsilon),
        rho=at_most(release.rho),
        delta=at_most(release.delta),
        mechanism=described(release.mechanism),
        prior=prior_of(release),
    )


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
    """Names of the categories in the report; those of the cells of a table join the values of all
    columns.
    """
    columns = [specification.columns[name] for name in result.columns]
    if isinstance(result.column, str):
        return [named(columns[0], category) for category in categories]
    return [
        " × ".join(named(column, value) for column, value in zip(columns, cell, strict=True))
        for cell in categories
    ]
