"""The question put to the records, those that it leaves out, and the protocol for all that can
count its answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

from opendp.context import Query
from opendp.mod import Transformation

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_names
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import plain
from opendp_bayes.release_format.merging import merged_parts
from opendp_bayes.trusted.spaces import Prior


class LeftOut(Enum):
    """The type of `DROP`, which is no label: a category may have any name."""

    DROP = "left out"

    def __repr__(self) -> str:
        return self.name


#: For `nulls=` and `unknown=` of a posterior: leave such records out. Only where the number of
#: records is private, because that of those which are left is.
DROP = LeftOut.DROP


#: One column, or several whose joint table is asked for.
Columns = str | Sequence[str]
#: The categories of the column asked, or of several columns by name.
Categories = Sequence[Value] | Mapping[str, Sequence[Value]]
#: A label for every column, or for some by name; or `DROP`.
Policy = Value | LeftOut | Mapping[str, Value | LeftOut]
#: The arguments of `Question.of`, of one column, and of tables and groups.
ARGUMENTS = (
    "column",
    "categories",
    "nulls",
    "unknown",
    "prior",
    "ordered",
    "size",
    "merge",
    "by",
    "cells",
)


@dataclass(frozen=True)
class Variable:
    """A column that is asked about or makes groups, and where its nulls and unknown values are
    counted, as in `make_categorical_counts`.
    """

    column: str
    categories: Sequence[Any] | None = None
    nulls: Value | LeftOut | None = None
    unknown: Value | LeftOut | None = None


@dataclass(frozen=True)
class Question:
    """The question as the user put it, whoever counts the answer; not checked against any data yet.

    Attributes
    ----------
    variables : tuple[Variable, ...]
        The columns whose categories are counted.
    joint : bool
        Whether the labels are tuples, one entry for each column, as those of a joint table.
    prior : Prior or {"auto", "learned"}
        A positive number for every category, or one for each in their order or as a mapping from
        their labels; `"learned"`, for a posterior that learns it from the release; or `"auto"`,
        until it is put to a query (`priors`).
    ordered : Sequence[str] or None
        The columns whose values are in order, for a prior that is learned.
    size : int or None
        The number of records, where it is public.
    cells : Sequence[Sequence[str or int or bool]] or None
        Of a joint table, those that are counted; None for all.
    groups : tuple[Variable, ...]
        The columns that say which group a record is in; empty without groups.
    merge : Mapping[str or int or bool, Sequence[str or int or bool or tuple]] or None
        From each merged category's label to the labels that are counted in it.
    """

    variables: tuple[Variable, ...]
    joint: bool = False
    prior: Prior | Literal["auto", "learned"] = "auto"
    ordered: Sequence[str] | None = None
    size: int | None = None
    cells: Sequence[Sequence[Value]] | None = None
    groups: tuple[Variable, ...] = ()
    merge: Mapping[Value, Sequence[Label]] | None = None

    @property
    def learned(self) -> bool:
        """True where the posterior learns its prior."""
        return isinstance(self.prior, str) and self.prior == "learned"

    @property
    def parts(self) -> tuple[tuple[Label, ...], ...]:
        """The labels that each merged category stands for, cells as tuples; empty where none are
        merged.
        """
        return merged_parts(self.merge or {})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(variable.column for variable in self.variables)

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the columns that make groups."""
        return tuple(variable.column for variable in self.groups)

    @classmethod
    def of(
        cls,
        column: Columns,
        *,
        by: Columns | None = None,
        categories: Categories | None = None,
        nulls: Policy | None = None,
        unknown: Policy | None = None,
        cells: Sequence[Sequence[Value]] | None = None,
        **others: Any,
    ) -> "Question":
        """Make a question of the arguments of `posterior`; `others` are the other attributes.

        Raises
        ------
        ValueError, TypeError
            Where they do not fit each other.
        """
        names, joint = as_names(column, "column"), not isinstance(column, str)
        of_groups = [] if by is None else as_names(by, "by")
        every = [*names, *of_groups]
        if not names or (by is not None and not of_groups) or len(set(every)) < len(every):
            raise ValueError(
                f"column={told(column)}, by={told(by)}: must name at least one column each, and no"
                " column twice; a group by a column that is asked for has one category alone."
            )
        if joint and categories is not None and not isinstance(categories, Mapping):
            raise TypeError(
                f"categories={told(categories)}: of several columns, must be a mapping from the"
                f" name of each to its labels, as in categories={{{names[0]!r}: [...]}}."
            )
        if cells is not None and not (joint and isinstance(cells, Sequence)):
            raise TypeError(
                f"cells={told(cells)}: must be a list of tuples of labels, of a joint table; pass"
                " several columns, as in ['region', 'vote']."
            )
        by_argument = {"categories": categories, "nulls": nulls, "unknown": unknown}
        spread = [
            _of_columns(value, names, of_groups, argument)
            for argument, value in by_argument.items()
        ]
        variables = tuple(map(Variable, every, *spread))
        groups = variables[len(names) :]
        return cls(variables[: len(names)], joint, cells=cells, groups=groups, **others)


def _of_columns(value: Any, names: list[str], of_groups: list[str], argument: str) -> list[Any]:
    """Spread an argument over the columns asked for and those of groups: a mapping gives each its
    own, None where it names none; any other value holds for every column asked for.
    """
    if not isinstance(value, Mapping):
        return [plain(value)] * len(names) + [None] * len(of_groups)
    columns = [*names, *of_groups]
    unknown = [column for column in value if column not in columns]
    if unknown:
        groups = " or grouped by" if of_groups else ""
        remedy = "" if of_groups else "; columns that make groups are named by by=['region']"
        raise ValueError(
            f"{argument}={told(value)}: {unknown[0]!r} is not among the columns asked for{groups},"
            f" which are {', '.join(map(repr, columns))}{remedy}."
        )
    return [plain(value.get(column)) for column in columns]


def as_cell(cell: Any, length: int) -> tuple[Value, ...]:
    """A cell as a tuple of labels, one for each column."""
    if isinstance(cell, str) or not isinstance(cell, Sequence) or len(cell) != length:
        raise TypeError(f"cells: {cell!r} must be a tuple of {length} labels, one for each column.")
    return tuple(map(plain, cell))


@runtime_checkable
class Countable(Protocol):
    """A query that can count, whatever its data are in: the door for other kinds than OpenDP's
    polars queries. Where it limits the rows of each identifier by a fixed rule, its attribute
    `kept` may say so in words, as `PrivacyGuarantee.kept` does.
    """

    def counts_of(self, question: Question) -> tuple[Transformation, Query]:
        """The transformation from the space of the base query to a `CountsSpace`, and the base
        query, which has the budget and the Context.

        Reads none.

        Raises
        ------
        ValueError, TypeError
            For a question that does not fit the data.
        """


@runtime_checkable
class Discoverable(Protocol):
    """A query that can count values which nobody listed, as `Countable` counts listed ones."""

    @property
    def base(self) -> Query:
        """The base query, which has the budget and the Context."""

    def counts_of_values(
        self, column: Any, *, always: Sequence[Any], nulls: Any
    ) -> tuple[Transformation, Query]:
        """The transformation from the space of the base query to the counts of all values of a
        column (`extend.framework.counting_values`), and the base query.

        Reads no data.

        Raises
        ------
        ValueError, TypeError
            For a column or arguments that do not fit.
        """
