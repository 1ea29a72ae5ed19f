"""The page of a report: HTML that needs nothing else, from what was released alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec

from opendp_bayes import DiscoveredRelease, Release
from opendp_bayes.display.wording import described, listed
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.results.estimates import Estimate, estimate_of, noise_aware_estimate
from opendp_bayes.results.sheets import little_said
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes_office.report.copies import copies_section
from opendp_bayes_office.report.discoveries import Discovered, discovered, notes_of
from opendp_bayes_office.report.most_frequent import most_frequent
from opendp_bayes_office.report.quantiles import Quantiles, quantiles
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Result, Specification
from opendp_bayes_office.report.statements import (
    guarantee,
    limits,
    methods,
    named,
    prior_of,
    total,
)
from opendp_bayes_office.report.unmatched import unmatched

#: Probability of the intervals.
LEVEL = 0.95
#: The ends of the scales of pictures, and the steps of their ticks.
_SCALES = (
    *((0.01, 0.002), (0.02, 0.005), (0.05, 0.01)),
    *((0.1, 0.02), (0.2, 0.05), (0.5, 0.1), (1.0, 0.25)),
)
#: The most categories of groups that stand side by side.
_MOST_COLUMNS = 6


@dataclass(frozen=True)
class Cell:
    """The probability of a category: the numbers and the released count as text, and where the
    picture has them, in per cent.
    """

    mean: str
    interval: str
    count: str
    at: float
    low: float
    width: float


@dataclass(frozen=True)
class Row:
    """A category; or a group, or the cells of a joint table that differ in the last column.

    A category of a level is a part of one `depth` lower, above it.
    """

    name: str
    cells: tuple[Cell, ...]
    depth: int = 0


@dataclass(frozen=True)
class Table:
    """The categories of one column in rows of one cell; or, under `columns`, some of the categories
    for all rows.
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A result as the page shows it, or all levels of one; `rows` is what the rows of its tables
    are.
    """

    heading: str
    text: str
    rows: str
    grouped: bool
    tables: tuple[Table, ...]
    ticks: tuple[tuple[str, float], ...]
    quantiles: tuple[Quantiles, ...]
    notes: tuple[str, ...]
    loss: dict[str, str]
    mechanism: str
    prior: str
    discovered: Discovered | None = None


def rendered(report: Report, agreement: Sequence[Mapping[str, Any]] = ()) -> str:
    """The report as one HTML file, without scripts and without anything from elsewhere.

    `agreement` has the rows of `agreement_of_copies` where synthetic records were drawn.
    Computes every posterior.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opendp_bayes_office.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    asked = report.specification
    together = report.together
    estimates = (
        list(map(_estimates, asked.results, report.releases))
        if together is None
        else _agreeing(report, together)
    )
    highest = [max((float(one.upper.max()) for one in of.values()), default=1) for of in estimates]
    if isinstance(together, LevelsPosterior):
        highest = [max(highest)] * len(highest)
    sections = [
        _section(report, number, of, end)
        for number, (of, end) in enumerate(zip(estimates, map(_scale, highest), strict=True))
    ]
    return environment.get_template("page.html").render(
        specification=asked,
        sections=[_levels(report, sections, together)]
        if isinstance(together, LevelsPosterior)
        else sections,
        costs=sections,
        copies=copies_section(agreement),
        unmatched=unmatched(report, list(map(_shares, report.releases, estimates))),
        guarantee=guarantee(report),
        loss=total(report.releases),
        methods=methods(report, LEVEL),
        level=f"{100 * LEVEL:.6g} %",
        # In a script element only `<` can end the text.
        document=report.to_json().replace("<", "\\u003c"),
    )


def _estimates(result: Result, release: Any) -> dict[Any, Estimate]:
    """The estimates of a result by its groups; by None where it has none. Those of discovered
    categories are numbers of their own (`discoveries`).
    """
    if isinstance(release, DiscoveredRelease):
        return {}
    if isinstance(release, Release):
        return {None: noise_aware_estimate(release, LEVEL)}
    if result.pooled:
        return {key: estimate_of(one, LEVEL) for key, one in release.pooled().items()}
    return {key: noise_aware_estimate(one, LEVEL) for key, one in release.items()}


def _agreeing(
    report: Report, together: SurveyPosterior | LevelsPosterior
) -> list[dict[Any, Estimate]]:
    """The estimates of all results from one posterior, their means rounded so that the tables agree
    to the last digit shown.
    """
    sets = [result.columns for result in report.specification.results]
    alone = [estimate_of(report.posterior_of(number), LEVEL) for number in range(len(sets))]
    decimals = max(estimate.decimals for estimate in alone)
    if isinstance(together, LevelsPosterior):
        agreeing = together.agreeing_means(decimals)
        means = [agreeing[name] for name in report.names]
    else:
        means = together.agreeing_means(*sets, decimals=decimals)
    return [
        {None: replace(estimate, mean=mean, shown_decimals=decimals)}
        for estimate, mean in zip(alone, means, strict=True)
    ]


def _shares(release: Any, estimates: Mapping[Any, Estimate]) -> dict[Any, str]:
    """The estimates of a result without groups, as text, by category."""
    if not isinstance(release, Release):
        return {}
    numbers = zip(*estimates[None].shown(), strict=True)
    texts = [f"{mean} ({interval})" for mean, interval in numbers]
    return dict(zip(release.categories, texts, strict=True))


def _section(
    report: Report,
    number: int,
    estimates: Mapping[Any, Estimate],
    scale: tuple[float, float],
) -> Section:
    """The section of a result, with pictures that end where the `scale` says, and its steps."""
    specification, (end, step) = report.specification, scale
    result = specification.results[number]
    release: Any = report.releases[number]
    if isinstance(release, DiscoveredRelease):
        return _section_of_discovery(specification, result, release)
    parts = {None: release} if result.by is None else release
    decimals = max(estimate.decimals for estimate in estimates.values())
    cells = {
        key: _cells(found, parts[key].counts, end, decimals) for key, found in estimates.items()
    }
    known = {key: (parts[key], found) for key, found in estimates.items()}
    ticks = [step * number for number in range(round(end / step) + 1)]
    return Section(
        heading=result.heading,
        text=result.text,
        rows=result.by or (result.merge is None and " × ".join(result.columns[:-1])) or "Category",
        grouped=result.by is not None,
        tables=tuple(_tables(specification, result, release.categories, cells)),
        ticks=tuple((f"{tick:.6g}", round(100 * tick / end, 3)) for tick in ticks),
        quantiles=tuple(quantiles(report, number, LEVEL)),
        notes=(
            *most_frequent(report, number),
            *limits(specification, result),
            *([] if report.together is not None or result.pooled else little_said(known)),
            *release.unmatched,
        ),
        loss=total([release]),
        mechanism=described(release.mechanism),
        prior="learned from all tables" if specification.joint else prior_of(release),
    )


def _section_of_discovery(
    specification: Specification, result: Result, release: DiscoveredRelease
) -> Section:
    """The section of a result whose categories were discovered."""
    return Section(
        heading=result.heading,
        text=result.text,
        rows="Category",
        grouped=False,
        tables=(),
        ticks=(),
        quantiles=(),
        notes=(*notes_of(release, LEVEL), *limits(specification, result)),
        loss=total([release]),
        mechanism=described(release.discovery.law),
        prior=prior_of(release),
        discovered=discovered(release, LEVEL),
    )


def _tables(
    specification: Specification,
    result: Result,
    categories: tuple[Any, ...],
    cells: Mapping[Any, tuple[Cell, ...]],
) -> Iterator[Table]:
    """Yield one table of a row for each category; or as many as the categories of the last column
    need beside each other, with a row for each group, or for what the other columns hold.
    """
    columns = [specification.columns[name] for name in result.columns]
    if result.merge is not None:  # into labels of one column
        columns = [msgspec.structs.replace(columns[0], labels=None)]
    several = [cell if isinstance(cell, tuple) else (cell,) for cell in categories]
    if result.by is not None:
        of, names = specification.columns[result.by], [_name(columns, cell) for cell in several]
        rows = [Row(named(of, key), found) for key, found in cells.items()]
    elif len(columns) == 1:
        rows = [
            Row(_name(columns, cell), (one,))
            for cell, one in zip(several, cells[None], strict=True)
        ]
        yield Table(tuple(rows))
        return
    else:
        names = [named(columns[-1], value) for value in distinct(cell[-1] for cell in several)]
        width = len(names)
        rows = [
            Row(_name(columns[:-1], several[at][:-1]), cells[None][at : at + width])
            for at in range(0, len(several), width)
        ]
    for a, b in pairwise(_breaks(len(names))):
        yield Table(tuple(Row(row.name, row.cells[a:b]) for row in rows), tuple(names[a:b]))


def _levels(report: Report, sections: Sequence[Section], together: LevelsPosterior) -> Section:
    """One section of all levels, whose table has below each category those that are parts of it."""
    of = {name: one.tables[0].rows for name, one in zip(report.names, sections, strict=True)}
    rows = [replace(of[name][place], depth=depth) for depth, name, place in together.rows()]
    return replace(
        sections[0],
        heading=listed([one.heading for one in sections], "and"),
        text=" ".join(one.text for one in sections if one.text),
        tables=(Table(tuple(rows)),),
        quantiles=tuple(found for one in sections for found in one.quantiles),
        notes=tuple(dict.fromkeys(note for one in sections for note in one.notes)),
    )


def _cells(
    estimate: Estimate, counts: Sequence[int], end: float, decimals: int
) -> tuple[Cell, ...]:
    """The probabilities of all categories; the picture ends at `end`."""
    numbers = zip(*estimate.shown(decimals), map(str, counts), strict=True)
    return tuple(
        Cell(*texts, *(round(100 * float(x) / end, 3) for x in (at, low, high - low)))
        for texts, (at, low, high) in zip(numbers, estimate.bounds.T, strict=True)
    )


def _breaks(number: int) -> list[int]:
    """Part so many columns into tables of about the same width; the places of the cuts."""
    tables = -(-number // _MOST_COLUMNS)
    return [number * table // tables for table in range(tables + 1)]


def _scale(highest: float) -> tuple[float, float]:
    return next((end, step) for end, step in _SCALES if highest <= end or end == 1.0)


def _name(columns: Sequence[Column], values: Sequence[Any]) -> str:
    """Name of a category in the report, or of a cell of a table."""
    return " × ".join(named(column, value) for column, value in zip(columns, values, strict=True))
