"""The steps of a query: conditions on single columns, and a limit on the rows of each identifier.
None of them fails, whatever the values are.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from opendp_bayes.extend import as_choice, told
from opendp_bayes_engines.kinds import Schema, as_carried, check_columns

Frame = nw.LazyFrame[Any]
#: The column with a random number for each row, by which rows are kept.
ORDER = "order"

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is_in": lambda column, constants: column.is_in(constants),
    "is_null": lambda column, is_so: column.is_null() if is_so else ~column.is_null(),
}


@dataclass(frozen=True)
class Condition:
    """Keep the rows whose value in one column compares so with a constant. A null never does, but
    by `is_null`.

    Attributes
    ----------
    column : str
        Its name.
    op : str
        One of `_OPERATORS`.
    constant : Any
        A value as it is within an engine; a list of them for `is_in`; a bool for `is_null`.
    """

    column: str
    op: str
    constant: Any

    @classmethod
    def checked(cls, condition: Any, schema: Schema) -> "Condition":
        """The condition, checked against the type of its column.

        Raises
        ------
        ValueError, TypeError
            For anything else.
        """
        if not (isinstance(condition, tuple) and len(condition) == 3):
            raise TypeError(
                f"conditions: {told(condition)} must be (column, op, constant), as in ('age', '>=',"
                " 18). Compute anything else in the table, or filter what engines.columns gives."
            )
        column, op, constant = condition
        check_columns(schema, [column], counted=True)
        as_choice(op, "op", list(_OPERATORS))
        if op == "is_null":
            if not isinstance(constant, bool):
                raise TypeError(f"constant={told(constant)}: must be True or False for 'is_null'.")
            return cls(column, op, constant)
        if op != "is_in":
            return cls(column, op, as_carried(constant, schema[column]))
        if not (isinstance(constant, (list, tuple)) and constant):
            raise TypeError(f"constant={told(constant)}: must be a list of values for 'is_in'.")
        return cls(column, op, [as_carried(value, schema[column]) for value in constant])

    def apply(self, frame: Frame, names: Mapping[str, str]) -> Frame:
        """The frame with those rows alone; `names` has the frame's names of the columns."""
        return frame.filter(_OPERATORS[self.op](nw.col(names[self.column]), self.constant))


@dataclass(frozen=True)
class Limit:
    """Keep at most `rows` rows of each value of `column`, drawn at random.

    The rows that are kept of one identifier say nothing of the rows of another.
    """

    column: str
    rows: int

    def apply(self, frame: Frame, names: Mapping[str, str]) -> Frame:
        """The frame with those rows alone; `names` has the frame's names of the columns."""
        number = nw.col(ORDER).rank("ordinal").over(names[self.column])
        return frame.filter(number <= self.rows)


Step = Condition | Limit
