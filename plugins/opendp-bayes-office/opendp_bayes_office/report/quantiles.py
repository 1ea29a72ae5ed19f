"""Quantiles of ordered categories, as a report shows them."""

from collections.abc import Iterator
from dataclasses import dataclass

from opendp_bayes import Release
from opendp_bayes.inference.answers.ordered import left_out_said
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.statements import named, naming

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
    """Quantiles of a result, the categories at the ends of their scale, and what is said."""

    rows: tuple[Quantile, ...]
    ends: tuple[str, str]
    notes: tuple[str, ...]


def quantiles(report: Report, number: int, level: float) -> Iterator[Quantiles]:
    """Yield the quantiles of a result whose one column is ordered, with intervals of probability
    `level`. Records without a value, or with another one, are in no order and left out.
    """
    specification = report.specification
    result, release = specification.results[number], report.releases[number]
    if not result.ordered or len(result.columns) > 1 or not isinstance(release, Release):
        return
    if len(release.categories) - len(release.unordered) < 2:
        return
    column = naming(specification.columns[result.columns[0]], result)
    every, rows = report.posterior_of(number).quantiles(_LEVELS), []
    one = every[_LEVELS[0]]
    names, without = ([named(column, x) for x in of] for of in (one.categories, one.left_out))
    k = len(names)
    for at_least, found in every.items():
        at, (low, high) = int(found.probabilities.argmax()), found.places(level)
        picture = (at + 0.5) / k, low / k, (high - low + 1) / k
        rows.append(
            Quantile(
                "Median" if at_least == 0.5 else f"{100 * at_least:g} %",
                names[at],
                names[low] if low == high else f"{names[low]} – {names[high]}",
                *(round(100 * part, 3) for part in picture),
            )
        )
    notes = *left_out_said(without), *filter(None, [every.warning])
    yield Quantiles(tuple(rows), (names[0], names[-1]), notes)
