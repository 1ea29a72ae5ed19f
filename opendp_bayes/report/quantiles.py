"""Quantiles of ordered categories, as a report shows them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opendp_bayes.release_format.labels import identity, places_of
from opendp_bayes.report.report_document import Report
from opendp_bayes.report.statements import named, naming
from opendp_bayes.results.release import Release

#: The levels of the quantiles that are shown.
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Quantile:
    """A quantile: the most probable category, the interval of categories, and where the picture
    has both, in per cent.
    """

    name: str
    category: str
    interval: str
    at: float
    low: float
    width: float


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a result, and the categories at the ends of their scale."""

    rows: tuple[Quantile, ...]
    ends: tuple[str, str]


def quantiles(report: Report, number: int, level: float) -> Iterator[Quantiles]:
    """Yield the quantiles of a result whose one column is ordered, with intervals of probability
    `level`. Records without a value, or with another one, are in no order and left out.
    """
    specification = report.specification
    result, release = specification.results[number], report.releases[number]
    if not result.ordered or len(result.columns) > 1 or not isinstance(release, Release):
        return
    column = specification.columns[result.columns[0]]
    listed = places_of(column.listed or ())
    new = places_of([column.own_unknown, column.counted_nulls, column.counted_unknown])
    labels: list[Any] = list(release.categories)
    own = [one for one in labels if identity(one) not in new or identity(one) in listed]
    if len(own) < 2:
        return
    posterior = report.posterior_of(number)
    if len(own) < len(labels):
        posterior = posterior.given(own)
    names = [named(naming(column, result), x) for x in own]
    places, k, rows = places_of(own), len(own), []
    for at_least, found in posterior.quantiles(_LEVELS).items():
        ends = [places[identity(label)] for label in found.interval(level)]
        at, low, high = places[identity(found.category)], *ends
        picture = (at + 0.5) / k, low / k, (high - low + 1) / k
        rows.append(
            Quantile(
                "Median" if at_least == 0.5 else f"{100 * at_least:g} %",
                names[at],
                names[low] if low == high else f"{names[low]} – {names[high]}",
                *(round(100 * part, 3) for part in picture),
            )
        )
    yield Quantiles(tuple(rows), (names[0], names[-1]))
