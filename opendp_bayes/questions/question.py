"""The question put to the records, and the protocol for everything that can count its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from opendp.context import Query
from opendp.mod import Transformation

from opendp_bayes.mathematics.telling import told
from opendp_bayes.questions.left_out import LeftOut
from opendp_bayes.release_format.data import Key, Label, Value
from opendp_bayes.release_format.merging import merged_parts
from opendp_bayes.trusted.spaces import Prior

#: One column, or several whose joint table is asked for.
Columns = str | Sequence[str]
#: The categories of one column, or of several by name.
Categories = Sequence[Value] | Mapping[str, Sequence[Value]]
#: A label for every column, or for some by name; or `DROP`.
Policy = Value | LeftOut | Mapping[str, Value | LeftOut]
#: The arguments of `Question.of`, of one column, and of tables and groups.
_OF_A_COLUMN = ("column", "categories", "nulls", "unknown", "prior", "ordered", "size", "merge")
ARGUMENTS = (*_OF_A_COLUMN, "cells", "elsewhere", "keys")


@dataclass(frozen=True)
class Variable:
    """A column that is asked about, and where its nulls and unknown values are counted, as in
    `make_categorical_counts`.
    """

    column: str
    categories: Sequence[Value] | None = None
    nulls: Value | LeftOut | None = None
    unknown: Value | LeftOut | None = None


@dataclass(frozen=True)
class Question:
    """The question as the user put it, whoever counts the answer; not checked against any data yet.

    Attributes
    ----------
    variables : the columns whose categories are counted.
    joint : whether the labels are tuples, one entry for each column, as those of a joint table.
    prior : a positive number for every category, or one for each in their order or as a mapping
        from their labels; `"learned"`, for a posterior that learns it from the release; or
        `"auto"`, until it is put to a query (`priors`).
    ordered : the columns whose values are in order, for a prior that is learned.
    size : the number of records, where it is public.
    cells : of a joint table, those that are counted; None for all.
    elsewhere : of a joint table, the cell in which the records of all others are counted.
    by : the columns that say which group a record is in; empty without groups. A query that was
        grouped adds them itself.
    keys : the public groups.
    merge : from each merged category's label to the labels that are counted in it.
    """

    variables: tuple[Variable, ...]
    joint: bool = False
    prior: Prior | Literal["auto", "learned"] = "auto"
    ordered: Sequence[str] | None = None
    size: int | None = None
    cells: Sequence[Sequence[Value]] | None = None
    elsewhere: Sequence[Value] | None = None
    by: tuple[str, ...] = ()
    keys: Sequence[Key] | None = None
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

    @classmethod
    def of(
        cls,
        column: Columns,
        *,
        categories: Categories | None = None,
        nulls: Policy | None = None,
        unknown: Policy | None = None,
        **others: Any,
    ) -> "Question":
        """Make a question of the arguments of `posterior`; `others` are the other attributes.

        Raises `ValueError`/`TypeError` where they do not fit each other.
        """
        names = [column] if isinstance(column, str) else _as_names(column)
        joint = not isinstance(column, str)
        if joint and categories is not None and not isinstance(categories, Mapping):
            raise TypeError(
                f"categories={told(categories)}: of several columns, must be a mapping from the"
                " name of"
                f" each to its labels, as in categories={{{names[0]!r}: [...]}}."
            )
        rows = zip(
            names,
            _of_columns(categories, names, "categories"),
            _of_columns(nulls, names, "nulls"),
            _of_columns(unknown, names, "unknown"),
            strict=True,
        )
        question = cls(tuple(Variable(*row) for row in rows), joint, **others)
        for name in ("cells", "elsewhere"):
            if not joint and getattr(question, name) is not None:
                raise ValueError(
                    f"{name}={told(getattr(question, name))}: belongs to a joint table; pass"
                    " several"
                    " columns, as in ['region', 'vote']."
                )
        return question


def _as_names(columns: Any) -> list[str]:
    """The columns of a joint table, by name."""
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"column={told(columns)}: must be the name of a column, a str, or for a joint table a"
            " list"
            " of names; compute it in the plan first."
        )
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"column={told(columns)}: must name at least one column, and each once.")
    return list(columns)


def _of_columns(given: Any, names: list[str], argument: str) -> list[Any]:
    """Spread an argument over the columns: a mapping gives each its own, None where it names none;
    any other value holds for every column.
    """
    if not isinstance(given, Mapping):
        return [given] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{argument}={told(given)}: {unknown[0]!r} is not among the columns asked for, which"
            " are"
            f" {', '.join(map(repr, names))}."
        )
    return [given.get(name) for name in names]


@runtime_checkable
class Countable(Protocol):
    """A query that can count, whatever its data are in: the door for other kinds than OpenDP's
    polars queries. Where it limits the rows of each identifier by a fixed rule, its attribute
    `kept` may say so in words, as `Promise.kept` does.
    """

    def counts_of(self, question: Question) -> tuple[Transformation, Query]:
        """The transformation from the space of the base query to a `CountsSpace`, and the base
        query, which has the budget and the Context.

        Raises `ValueError`/`TypeError` for a question that does not fit the data. Reads none.
        """
        ...
