"""What is asked of the records, and the door for everything that can count them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike
from opendp.context import Query
from opendp.mod import Transformation

from opendp_bayes.released.data import Key, Label


@dataclass(frozen=True)
class Variable:
    """A column that is asked about, and where its nulls and unknown values are counted, as in
    `make_categorical_counts`.
    """

    column: str
    categories: Sequence[Label] | None = None
    nulls: Label | None = None
    unknown: Label | None = None


@dataclass(frozen=True)
class Question:
    """What is asked, whoever counts: as the user gave it, not checked yet.

    Attributes
    ----------
    variables : the columns whose categories are counted.
    prior : a positive number for every category, or one for each.
    size : the number of records, where it is public.
    by : the columns that say which group a record is in; empty without groups. A query that was
        grouped adds them itself.
    keys : the public groups.
    """

    variables: tuple[Variable, ...]
    prior: ArrayLike = 1.0
    size: int | None = None
    by: tuple[str, ...] = ()
    keys: Sequence[Key] | None = None


@runtime_checkable
class Countable(Protocol):
    """A query that can count, whatever its data are in: the door for other kinds than OpenDP's
    polars queries.
    """

    def counts_of(self, question: Question) -> tuple[Transformation, Query]:
        """The transformation from the space of the base query to a `CountsSpace`, and the base
        query, which has the budget and the Context.

        Raises `ValueError`/`TypeError` for a question that does not fit the data. Reads none.
        """
        ...
