"""The data of a Context: a frame that its engine has not read yet, steps upon it, and the sizes of
its groups.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import narwhals as nw
import polars as pl

from opendp_bayes.extend.framework import Axis, Keys
from opendp_bayes_engines.kinds import Column, Kind
from opendp_bayes_engines.steps import Frame, Schema, Step
from opendp_bayes_engines.values import Batches, batch_of, rows_of

_NUMBER = "number"
#: The column that says whether a value is a category.
FOUND = "found"
#: Adds that column to groups: of which frame, which column, and the categories.
Found = Callable[[Frame, str, list[Any]], Frame]


def is_in(groups: Frame, value: str, known: list[Any]) -> Frame:
    """The categories as constants, which every engine understands."""
    found = nw.col(value).is_in(known) if known else nw.lit(False)
    return groups.with_columns(found.alias(FOUND))


class Held(Protocol):
    """A frame of some engine, with the steps of a plan upon it. Nothing runs before `groups` or
    `values`.
    """

    def then(self, step: Step) -> "Held": ...

    def groups(self, columns: Sequence[Axis], schema: Schema) -> pl.DataFrame:
        """The number of rows of each combination of categories, as `Cells.counts` reads it.

        `schema` is that of the last step. There is at most one row for each combination of
        categories, a null and another value of each column: nothing else leaves the engine.
        """
        ...

    def values(self, keys: Keys, schema: Schema) -> Batches:
        """The number of rows, or people, of every value, as `counting_values` reads them."""
        ...


@dataclass(frozen=True, eq=False)
class Lazy:
    """A frame of an engine with lazy frames of its own, through narwhals.

    Attributes
    ----------
    frame : as narwhals sees it.
    settings : of `collect`.
    check : raises `ContractError` where the engine, as it is when it counts, would not count alike.
    quiet : a context in which the engine says nothing of what it reads.
    found : adds a column that says whether a value is a category.
    texts : makes texts of values that need not be any.
    read : the numbers of rows of each value of `KEY`, each value in one row of one frame.
    """

    frame: Frame
    read: Callable[[Frame, Column], Iterator[pl.DataFrame]]
    settings: tuple[tuple[str, Any], ...] = ()
    check: Callable[[], None] = lambda: None
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext
    found: Found = is_in
    texts: Callable[[Frame], Frame] = lambda rows: rows

    def then(self, step: Step) -> "Lazy":
        return replace(self, frame=step.apply(self.frame))

    def groups(self, columns: Sequence[Axis], schema: Schema) -> pl.DataFrame:
        with self.quiet():
            self.check()
            groups = grouped(self.frame, columns, schema, self.found)
            return groups.collect("polars", **dict(self.settings)).to_native()

    def values(self, keys: Keys, schema: Schema) -> Batches:
        column = schema[keys.column]
        with self.quiet():
            self.check()
            rows = rows_of(self.frame, keys, schema, self.texts)
            for numbers in self.read(rows, column):
                yield batch_of(numbers, column)


def grouped(
    frame: Frame,
    columns: Sequence[Axis],
    schema: Schema,
    found: Found,
) -> Frame:
    """Group by the values themselves, as fast as the engine can. The groups, which are few, are
    then grouped by the labels that may leave it.
    """
    values = {f"value_{at}": column.column for at, column in enumerate(columns)}
    groups = (
        frame.select(*(nw.col(column).alias(value) for value, column in values.items()))
        .group_by(*values)
        .agg(nw.len().cast(nw.Int64).alias(_NUMBER))
    )
    for value, of in zip(values, columns, strict=True):
        groups = _kept(groups, value, of, schema[of.column], found)
    return groups.group_by(*values).agg(nw.col(_NUMBER).sum().cast(nw.Int64))


def _kept(
    groups: Frame,
    value: str,
    of: Axis,
    column: Column,
    found: Found,
) -> Frame:
    """The groups with every value that is neither a category nor null replaced by one other."""
    if column.kind is Kind.BOOLEAN:
        return groups
    known: list[Any] = list(of.values)
    held = nw.col(value)
    if column.kind is Kind.STRING:
        if column.dtype != "String":
            groups = groups.with_columns(held.cast(nw.String))
        other = max(known, key=len, default="") + "?"  # a text that is no category
        return found(groups, value, known).with_columns(
            nw.when(held.is_null() | nw.col(FOUND)).then(held).otherwise(nw.lit(other))
        )
    if column.kind is Kind.INTEGER and column.dtype != "Int64":
        groups = groups.with_columns(held.cast(nw.Int64))
    if column.dtype.startswith("U") and column.kind is Kind.WIDE:
        known = [one for one in known if one >= 0]
    within = nw.when(nw.col(FOUND)).then(held).cast(nw.Int64)
    taken = set(known)
    number = next(number for number in range(len(taken) + 1) if number not in taken)
    other_number = nw.lit(number, dtype=nw.Int64)  # one that is no category
    return found(groups, value, known).with_columns(
        nw.when(held.is_null() | nw.col(FOUND)).then(within).otherwise(other_number).alias(value)
    )


@contextmanager
def silent(*loggers: logging.Logger) -> Iterator[None]:
    """Let loggers say nothing while the block runs."""
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled
