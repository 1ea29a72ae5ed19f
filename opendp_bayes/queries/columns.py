"""A categorical column: which values it can hold, and in which category each is counted."""

from collections.abc import KeysView, Sequence
from dataclasses import dataclass
from enum import EnumMeta
from typing import Any

import polars as pl

from opendp_bayes.mathematics.telling import told, warn
from opendp_bayes.mathematics.validation import check_cells
from opendp_bayes.queries.question import LeftOut
from opendp_bayes.release_format.casts import how_to_cast
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import distinct, look_alike, place_of, plain, twins
from opendp_bayes.trusted.cells import Axis
from opendp_bayes.trusted.kinds import TYPE_OF, ColumnKind

#: Taken for a wish to have the categories discovered.
_DISCOVER = "discover"


@dataclass(frozen=True)
class LabelledColumn:
    """A column with its labels: the categories, then what nulls and other values are counted under.

    `number` has for each place of the axis that of its label, or -1 where records are left out.
    `nulls` and `unknown` are the labels of nulls and other values where these are no categories.
    """

    axis: Axis
    labels: tuple[Value, ...]
    number: tuple[int, ...]
    nulls: Value | None = None
    unknown: Value | None = None


def labelled_column(
    column: str,
    kind: ColumnKind,
    *,
    categories: Sequence[Value] | None,
    nulls: Value | LeftOut | None,
    unknown: Value | LeftOut | None,
    of_groups: bool = False,
) -> LabelledColumn:
    """Give a column its categories, after checking the policy against what is known of it. Those
    `of_groups` may be fewer than two.

    Raises
    ------
    ValueError, TypeError
        For labels or a policy that do not fit.
    """
    listed = public_values(column, kind, categories, of_groups=of_groups)
    if kind.nullable and nulls is None:
        raise ValueError(
            f"nulls=None: column {column!r} may hold nulls. Pass nulls= with the label to count"
            " them under: one of the categories, or a new one, such as nulls='missing';"
            f" {_or_drop('nulls')}"
            " (OpenDP calls every column nullable when it infers the domain. Filling nulls in"
            " the plan, with fill_null, settles it too.)"
        )
    possible = (True, False) if kind.kind == "boolean" else kind.declared
    if unknown is None and (possible is None or not set(possible) <= set(listed)):
        raise ValueError(
            f"unknown=None: column {column!r} of type {kind.type} may hold values outside the"
            " categories. Pass unknown= with the label to count them under: one of the"
            f" categories, or a new one, such as unknown='other'; {_or_drop('unknown')}"
        )
    labels = list(listed)
    numbers = []
    for policy, label in (("nulls", nulls), ("unknown", unknown)):
        if label is not None and not isinstance(label, LeftOut):
            if type(label) not in (str, int, bool):  # a subclass could print as another label does
                raise TypeError(f"{policy}={told(label)}: must be a label (str, int or bool).")
            if place_of(label, labels) is None:
                check_new(policy, label, labels)
                labels.append(label)
        # A value that the domain excludes, but a plan made all the same, is counted too, in the
        # first category: failing would tell that it is there.
        is_out = isinstance(label, LeftOut)
        numbers.append(-1 if is_out else 0 if label is None else place_of(label, labels) or 0)
    if len(labels) < 2 and not of_groups:
        raise ValueError(
            f"categories={list(listed)!r}: needs at least two categories, those for blanks and"
            " other values included."
        )
    values = dict(zip(listed, range(len(listed)), strict=True))
    # What reads like the label of nulls is counted there, too: one label means one thing.
    if nulls is not None and not isinstance(nulls, LeftOut) and not _misfits([nulls], kind):
        values.setdefault(nulls, numbers[0])
    number = list(values.values())
    number += [code for code in dict.fromkeys(numbers) if code not in number]
    axis = Axis(column, kind.kind, tuple(values), *map(number.index, numbers))
    places = (place_of(label, labels[len(listed) :]) for label in (nulls, unknown))
    new = (None if place is None else labels[len(listed) + place] for place in places)
    return LabelledColumn(axis, tuple(labels), tuple(number), *new)


def _misfits(labels: Sequence[Any], kind: ColumnKind) -> list[Any]:
    """The labels that are no value that a column may hold."""
    expected = TYPE_OF[kind.kind]
    declared = None if kind.declared is None else set(kind.declared)
    return [
        label
        for label in labels
        if type(label) is not expected
        or (declared is not None and label not in declared)
        or (isinstance(label, int) and not -(2**63) <= label < 2**63)
    ]


def public_values(
    column: str,
    column_kind: ColumnKind,
    categories: Any,
    *,
    of_groups: bool = False,
    argument: str = "categories",
) -> tuple[Value, ...]:
    """The categories before any bucket, or the values of a column that makes groups, checked
    against the type of the column.
    """
    keyword, argument = ("by", f"categories[{column!r}]") if of_groups else ("column", argument)
    if column_kind.kind not in TYPE_OF:
        raise TypeError(
            f"{keyword}={told(column)}: has type {column_kind.type}; must be Enum, String,"
            f" Categorical, integer or Boolean. {how_to_cast(column_kind.type, column)}"
        )
    labels = _labels(column, column_kind, categories, argument, of_groups=of_groups)
    shown = f"{argument}={told(labels)}"
    _check_fit(labels, column_kind, column, shown)
    if len(distinct(labels)) < len(labels):
        raise ValueError(f"{shown}: must not repeat a label.")
    if alike := twins(labels):
        warn(f"{argument}: {alike[0]!a} and {alike[1]!a} {DIFFER}; they are counted apart.")
    return tuple(labels)


#: What is said of two names.
DIFFER = "differ in nothing but blanks around them or the form of Unicode"


def _labels(
    column: str, kind: ColumnKind, categories: Any, argument: str, *, of_groups: bool
) -> list[Any]:
    """Categories of a column, at least one: those given, or those that the type of the column makes
    public.
    """
    if categories is None and kind.kind == "boolean":
        return [True, False]
    if categories is None:
        if kind.declared is None:
            raise ValueError(
                f"{argument}=None: column {column!r} of type {kind.type} does not declare"
                f" its {'groups' if of_groups else 'categories'}. Pass categories="
                f"{f'{{{column!r}: [...]}}' if of_groups else ''}, or cast the column to pl.Enum in"
                " the plan. Where a margin makes them public, OpenDP's own query for group lengths"
                " says what they are (docs/groups.md, 'Groups and sizes from a margin')."
            )
        categories = kind.declared
    if isinstance(categories, str) or not (
        hasattr(categories, "tolist")  # of numpy and pandas
        or isinstance(categories, (Sequence, pl.Series, KeysView, EnumMeta))
    ):
        raise TypeError(
            f"{argument}={told(categories)}: must be a sequence of labels, as in ['yes', 'no']; or"
            f" discover them by ob.discover(query, {column!r})."
        )
    if not len(categories):
        raise ValueError(
            f"{argument}=[]: must name at least one {'group' if of_groups else 'category'}."
        )
    check_cells(argument, len(categories))
    labels = list(map(plain, categories))
    if labels == [_DISCOVER]:
        raise ValueError(
            f"{argument}={labels!r}: is one category of that name. Ask ob.discover(query,"
            f" {column!r}), or give the category another name in the plan, by replace."
        )
    return labels


def _check_fit(labels: Sequence[Any], kind: ColumnKind, column: str, shown: str) -> None:
    """Raise `TypeError` or `ValueError` for the first label that a column cannot hold."""
    for label in _misfits(labels, kind):
        expected = TYPE_OF[kind.kind]
        if type(label) is not expected:
            raise TypeError(
                f"{shown}: {told(label)} does not fit a column of type {kind.type}; each must be"
                f" {expected.__name__}. Write labels as the data do, 1 or '1', or cast the column,"
                f" as in pl.col({column!r}).cast(pl.Int64, strict=False); nulls have a label of"
                " their own by nulls='missing'."
            )
        raise ValueError(
            f"{shown}: {label!r} is not in the Enum of column {column!r}, or is outside the range"
            " of 64-bit integers; it can never occur. Leave it out."
        )


def check_new(policy: str, label: Label, labels: Sequence[Label]) -> None:
    """Refuse a bucket, which would be a new category beside `labels`, that is meant to be one of
    these, or to be `DROP`.
    """
    meant = look_alike(label, labels)
    if meant is not None:
        raise ValueError(
            f"{policy}={label!r}: would be a new category beside {meant!r}, which reads the same."
            f" Write {policy}={meant!r} to count them there, or give the new one another name."
        )
    if isinstance(label, str) and label.upper() == "DROP":
        raise ValueError(
            f"{policy}={told(label)}: would be a new category of that name. Give it another name,"
            f" or one of the categories; {_or_drop(policy)}"
        )


def _or_drop(policy: str) -> str:
    return f"or {policy}=ob.DROP to leave them out, where the number of records is private."
