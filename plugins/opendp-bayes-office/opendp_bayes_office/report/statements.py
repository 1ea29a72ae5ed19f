"""The sentences of a report on where records are counted, and on the methods."""

from collections.abc import Iterator
from typing import Any

from opendp_bayes_office.files.reading import as_text
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Result, Specification

#: What the report calls a category of its own for the values that are no category.
NOT_LISTED = "any other value"


def named(column: Column, value: Any) -> str:
    """Name in the report of a category, or of all values that are no category."""
    text = "(null)" if value is None else as_text(value)
    listed = column.listed or []
    if column.labels is not None and text in listed:
        return column.labels[listed.index(text)]
    is_own = column.unknown is None and text == column.counted_unknown
    return NOT_LISTED if is_own and NOT_LISTED not in listed else text


def counted(specification: Specification, result: Result) -> Iterator[str]:
    """Yield a sentence for each column of a result on where records are counted that have no value
    in it, or one that is no category.
    """
    for name in result.used:
        column = specification.columns[name]
        without, other = column.counted_nulls, column.counted_unknown
        is_group = name == result.by
        left = "in no group" if is_group else "left out"
        said = [left if without is None else f"counted as “{named(column, without)}”"]
        if is_group and column.unknown is None:
            other = None
        if column.listed is not None:
            said.append(left if other is None else f"counted as “{named(column, other)}”")
        others = f", those with any value not listed are {said[1]}" if len(said) > 1 else ""
        yield f"In {name}, records without a value are {said[0]}{others}."


def methods(report: Report, level: float) -> str:
    """A paragraph for a publication."""
    asked, releases = report.specification, report.survey.releases
    versions = " and ".join(f"{name} {version}" for name, version in report.software.items())
    versions = f" with {versions}" if versions else ""
    is_concentrated = releases[0].guarantee.is_concentrated
    concentrated = "zero-concentrated " if is_concentrated else ""
    sentences = [
        f"The results were released under {concentrated}differential privacy{versions}; bounds of"
        " the privacy loss are certified and rounded up.",
        f"Estimates are means and equal-tailed {100 * level:.6g} % credible intervals of the"
        " posterior given the released values, which takes the randomness of the release into"
        " account.",
    ]
    if asked is not None and asked.joint:
        sentences.append(
            "All results were estimated together, as tables of the same records, with a prior whose"
            " concentration was learned."
        )
    if asked is not None and any(result.pooled for result in asked.results):
        sentences.append("Groups were estimated together, drawn towards each other where alike.")
    cleaned = () if asked is None else asked.sentences(dict(asked.columns))
    return " ".join((*sentences, *cleaned))
