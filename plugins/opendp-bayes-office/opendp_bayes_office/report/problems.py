"""Find problems of a specification that no single field shows."""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

from opendp_bayes.mathematics.validation import MOST_CELLS, MOST_RESULTS
from opendp_bayes.release_format.labels import distinct, place_of
from opendp_bayes_office.report.specification import (
    DROP,
    MOST_ROWS,
    Column,
    Privacy,
    Result,
    Specification,
)

#: What a column may not have whose categories are to be discovered.
_NOT_DISCOVERED = {
    "labels": "nobody knows which categories there will be",
    "unknown": "every value is a category of its own",
}
#: Where something is wrong, as the steps to it, and what it must be.
Problem = tuple[tuple[str | int, ...], str]


def problems(found: Specification) -> Iterator[Problem]:
    """Yield the problems that no single field shows."""
    yield from _problems_of_privacy(found.privacy)
    if found.trim:
        yield from _problems_of_blanks(found)
    for key, column in found.columns.items():
        for code in (*found.null_values, *column.null_values):
            for field in ("categories", "always", "recode"):
                if place_of(code, _values(column, field)) is not None:
                    yield (
                        ("columns", key, field),
                        f"{code!r} is also in null_values, by which it is no value; leave it out of"
                        " one of them.",
                    )
        for field, problem in _problems_of_column(column):
            yield ("columns", key, field), problem
    for number, result in enumerate(found.results):
        for field, problem in _problems_of_result(result, found.columns):
            yield ("results", number, field), problem
    if not found.results:
        yield ("results",), "must have at least one; add a table [[results]] with column = 'NAME'."
    if found.joint:
        yield from _problems_of_joint(found)
    yield from _problems_of_discovery(found)
    headings = [result.heading for result in found.results]
    for number, heading in enumerate(headings):
        if heading in headings[:number]:
            yield ("results", number), f"{heading!r} is there already; give it another title."


def _values(column: Column, field: str) -> list[Any]:
    """The values of its column that a field names."""
    given = column.listed if field == "categories" else getattr(column, field)
    return list(given) if isinstance(given, (list, dict)) else [given]


def _problems_of_blanks(found: Specification) -> Iterator[Problem]:
    """Yield each value that can never be there, since blanks around values are left out."""
    named: list[tuple[tuple[str | int, ...], Any]]
    named = [(("null_values",), value) for value in found.null_values]
    for key, column in found.columns.items():
        for field in ("categories", "always", "recode", "null_values", "nulls", "unknown"):
            named += [(("columns", key, field), value) for value in _values(column, field)]
        named += [(("columns", key, "recode"), label) for label in column.recode.values()]
    for number, result in enumerate(found.results):
        if isinstance(result.merge, dict):
            for one in chain.from_iterable(result.merge.values()):
                values = one if isinstance(one, list) else [one]
                named += [(("results", number, "merge"), value) for value in values]
    for path, value in named:
        if isinstance(value, str) and value != value.strip():
            yield (
                path,
                f"{value!r}: has blanks around it, which trim leaves out of the file; write"
                f" {value.strip()!r}.",
            )


def problems_of_size(found: Specification) -> Iterator[Problem]:
    """Yield what is more than one run may ask for, as far as the file says how many there are. What
    was released of more can still be read.
    """
    if len(found.results) > MOST_RESULTS:
        yield ("results",), f"are {len(found.results)}; must be at most {MOST_RESULTS}."
    cells = 0
    for number, result in enumerate(found.results):
        if result.merge is not None:  # which says how many are left only with the columns
            continue
        own = [found.columns[name] for name in result.used if name in found.columns]
        cells += math.prod(len(column.listed or [0]) for column in own)
        if cells > MOST_CELLS:
            yield (
                ("results", number),
                f"makes {cells} categories or cells of all results; must be at most {MOST_CELLS}."
                " Merge some, or ask for them in several runs.",
            )


def _problems_of_discovery(found: Specification) -> Iterator[Problem]:
    """Yield what does not go with categories that are to be discovered."""
    columns = {name for name, column in found.columns.items() if column.discovered}
    asks = [bool(columns & set(result.used)) for result in found.results]
    for number, result in enumerate(found.results):
        if asks[number]:
            for field, problem in _problems_of_discovered(result, found.joint):
                yield ("results", number, field), problem
        elif result.rest is not None:
            problem = "goes with categories to discover. Leave it out."
            yield ("results", number, "rest"), problem
    if not any(asks):
        return
    if found.privacy.delta is None:
        yield (
            ("privacy",),
            "must have delta where categories are to be discovered: the probability that a value is"
            " shown that one unit alone has, such as delta = 1e-8.",
        )
    if found.privacy.size is not None:
        yield ("privacy", "size"), "does not go with categories to discover. Leave it out."


def _problems_of_discovered(result: Result, joint: bool) -> Iterator[tuple[str, str]]:
    """Each with its field, of a result whose categories are to be discovered."""
    if len(result.used) > 1:
        field = "column" if result.by is None else "by"
        yield field, "has categories to discover, which are asked for alone."
    for field, given in (
        ("prior", result.prior != "auto"),
        ("ordered", result.ordered is not None),
        ("merge", result.merge is not None),
    ):
        if given:
            yield field, "is for categories that are listed. Leave it out."
    if joint:
        yield (
            "column",
            "has categories to discover, which are not estimated together with other results; ask"
            " for it in another run, or leave out joint.",
        )


def _problems_of_joint(found: Specification) -> Iterator[Problem]:
    """Yield what keeps results from being estimated together."""
    seen = set()
    for number, result in enumerate(found.results):
        where = ("results", number)
        if result.by is not None:
            yield (
                (*where, "by"),
                "does not go with joint; ask for the joint table, as in column ="
                f" [{result.by!r}, {result.columns[0]!r}].",
            )
        if result.prior not in ("auto", 1):
            yield (*where, "prior"), "does not go with joint, which learns one. Leave it out."
        if result.merge is None:
            if tuple(result.columns) in seen:
                yield (*where, "column"), "is in another result; joint takes every table once."
            seen.add(tuple(result.columns))


def _problems_of_privacy(privacy: Privacy) -> Iterator[Problem]:
    for name in ("epsilon", "rho"):
        if getattr(privacy, name) == math.inf:
            yield ("privacy", name), "=inf: must be finite, such as 1.0."
    if (privacy.epsilon is None) == (privacy.rho is None):
        yield ("privacy",), "must have epsilon or rho, and not both, such as epsilon = 1.0."
    if (privacy.identifier is None) != (privacy.rows_per_identifier is None):
        yield ("privacy",), "identifier and rows_per_identifier go together; give both, or neither."
    if privacy.contributions * (privacy.rows_per_identifier or 1) > MOST_ROWS:
        yield (
            ("privacy", "rows_per_identifier"),
            f"times contributions must be at most {MOST_ROWS} records.",
        )
    if privacy.identifier is not None and privacy.size is not None:
        yield (
            ("privacy", "size"),
            "does not go with an identifier: how many rows are kept of each is private. Leave it"
            " out.",
        )
    if privacy.guess_size is not None and privacy.size is not None:
        yield ("privacy", "guess_size"), "is of a private number of records. Leave it out."


def _problems_of_column(column: Column) -> Iterator[tuple[str, str]]:
    """Each with its field."""
    categories, labels = column.listed, column.labels
    if column.discovered:
        for field, reason in _NOT_DISCOVERED.items():
            if getattr(column, field):
                yield field, f"does not go with categories to discover: {reason}. Leave it out."
    elif column.always:
        yield "always", "goes with categories to discover. Leave it out."
    if len(distinct(column.always)) < len(column.always):
        yield "always", "must all be different."
    if categories is not None and len(distinct(categories)) < len(categories):
        yield "categories", "must all be different."
    if labels is not None and categories is None:
        yield "labels", "needs categories, of which each has a label; list them in the same order."
    elif labels is not None and len(labels) != len(categories or ()):
        yield "labels", "must be one for each of categories."
    for field, label in (("nulls", column.nulls), ("unknown", column.unknown)):
        if label == DROP and DROP in (categories or ()):
            yield field, f"={DROP!r}: leaves values out, and is a category too; rename that one."
    if labels is not None and len(set(labels)) < len(labels):
        yield "labels", "must all be different."


def _problems_of_result(result: Result, columns: dict[str, Column]) -> Iterator[tuple[str, str]]:
    """Each with its field."""
    fields = dict.fromkeys(result.columns, "column")
    if result.by is not None:
        fields[result.by] = "by"
    for name, field in fields.items():
        if name not in columns:
            yield field, f"{name!r} is not under columns; add a table [columns.{name}]."
    if not result.columns or len(set(result.columns)) < len(result.columns):
        yield "column", "must name at least one column, and each once."
    if result.share == math.inf:
        yield "share", "=inf: must be finite, such as 2."
    if result.pooled and result.by is None:
        yield "pooled", "is for groups; name their column, as in by = 'region'."
    if result.pooled and result.prior not in ("auto", 1):
        yield (
            "prior",
            "does not go with pooled, which learns how alike the groups are. Leave it out.",
        )
    if result.merge is not None and result.by is not None:
        yield "merge", "does not go with by; merge cells of their joint table."
    if isinstance(result.merge, int) and len(result.columns) > 1:
        yield "merge", f"={result.merge}: is for one column; list the cells of each new label."
    if result.by in result.columns:
        yield "by", "must be another column."
