"""The table of a report that says what became of records that match no category."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opendp_bayes.release_format.labels import place_of
from opendp_bayes.release_format.merging import unmerged
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification import Column, Value
from opendp_bayes_office.report.statements import fates, named


@dataclass(frozen=True)
class Unmatched:
    """A column, the results that it is in, and what became of its records without a value and of
    those with another value.
    """

    column: str
    results: str
    without: str
    other: str


def unmatched(report: Report, shares: Sequence[Mapping[Any, str]]) -> list[Unmatched]:
    """Say for each column where records without a value or with another one are counted, with
    their estimated share where they have a category of their own.

    `shares` has, for each result of one column, its estimates as text, by category.
    """
    asked = report.specification
    alone: dict[str, Mapping[Any, str]] = {}
    for result, share in zip(asked.results, shares, strict=True):
        if isinstance(result.column, str):
            alone.setdefault(result.column, share)
    headings: dict[tuple[str, bool], list[str]] = {}
    texts: dict[tuple[str, bool], list[str]] = {}
    for result, release in zip(asked.results, report.releases, strict=True):
        for name, *both in fates(asked, result, unmerged(release), report.source is None):
            column, as_group = asked.columns[name], name == result.by
            share = {} if as_group else alone.get(name, {})
            headings.setdefault((name, as_group), []).append(result.heading)
            texts[name, as_group] = [_text(column, fate, label, share) for fate, label in both]
            if column.discovered:
                texts[name, as_group][1] = "a category of its own"
    return [
        Unmatched(key[0], "; ".join(headings[key]), without, other)
        for key, (without, other) in texts.items()
    ]


def _text(column: Column, fate: str, label: Value | None, shares: Mapping[Any, str]) -> str:
    if label is None:
        return fate
    text, own = f"{fate} as “{named(column, label)}”", column.listed
    # Which categories a type has is not in the report.
    is_new = own is not None and place_of(label, own) is None
    return f"{text}: {shares[label]}" if is_new and label in shares else text
