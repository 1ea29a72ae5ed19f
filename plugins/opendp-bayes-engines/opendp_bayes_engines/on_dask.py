"""Dask: frames are counted partition by partition, and types of pandas by which one record could
make that fail, or change, are refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from opendp_bayes.extend.framework import Axis, Keys
from opendp_bayes_engines.frames import Held, grouped, is_in
from opendp_bayes_engines.kinds import Kind
from opendp_bayes_engines.steps import Frame, Schema, Step, Truncate
from opendp_bayes_engines.values import KEY, Batches, batch_of, counted, rows_of


def on_dask(frame: Frame, schema: Schema) -> Held:
    """A Dask frame whose columns, and all that they are computed from, hold values of one type.

    Raises `ValueError` for others. Reads no rows.
    """
    native = frame.to_native()
    for name, dtype in native.dtypes.items():
        # A partition with a null among such integers has floats, whatever the frame says.
        if isinstance(dtype, np.dtype) and dtype.kind in "iub":
            raise ValueError(
                f"data: column {name!r} has the numpy type {dtype}, which holds no nulls, so that"
                " pandas makes floats of integers beside one. Use types that do: read_parquet(...,"
                " dtype_backend='pyarrow'), or `.astype('int64[pyarrow]')` for the column."
            )
    # As Dask will compute it: without columns that are dropped before anything is done with them.
    for node in native.optimize(fuse=False).expr.walk():
        for name, dtype in _types(node):
            if of_any_type(dtype):
                raise ValueError(
                    f"data: column {name!r} is, or is computed from, one of the pandas type"
                    f" {dtype}, which holds values of any type, so that one record could make a"
                    " release fail. Give it a type in pandas, before Dask has it, as in"
                    " `.astype('string[pyarrow]')`, or leave the column out."
                )
    return Partitioned(native, schema)


def of_any_type(dtype: Any) -> bool:
    """True if a type of pandas holds any objects of Python, or texts that need not be Unicode."""
    if getattr(dtype, "categories", None) is not None:
        dtype = dtype.categories.dtype
    return dtype == np.dtype(object) or getattr(dtype, "storage", None) == "python"


def _types(node: Any) -> Iterator[tuple[Any, Any]]:
    """The columns that a node of Dask's plan makes, and those of pandas that it begins with: Dask
    makes text of all of these before it leaves any out.
    """
    made = [node._meta]
    if "frame" in node._parameters and not hasattr(node.operand("frame"), "_meta"):
        made.append(node.operand("frame"))
    for frame in made:
        dtypes: Any = getattr(frame, "dtypes", None)
        if dtypes is None:
            continue
        if hasattr(dtypes, "items"):
            yield from dtypes.items()
        else:
            yield frame.name, dtypes


@dataclass(frozen=True, eq=False)
class Partitioned:
    """A Dask frame. Every partition is a polars frame while it is worked on, so that nulls are
    nulls and a plan means what it means everywhere; Dask reads, moves and schedules.
    """

    frame: Any
    schema: Schema
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> "Partitioned":
        return replace(self, steps=(*self.steps, step))

    @property
    def readable(self) -> list[str]:
        """The columns, those of a known kind first."""
        return sorted(self.schema, key=lambda name: self.schema[name].kind is Kind.OTHER)

    def groups(self, columns: Sequence[Axis], schema: Schema) -> pl.DataFrame:
        return self._added(
            {column.column for column in columns},
            lambda frame: grouped(frame, columns, schema, is_in),
        )

    def values(self, keys: Keys, schema: Schema) -> Batches:
        column = schema[keys.column]
        read = {keys.column} if keys.person is None else {keys.column, keys.person}

        # All rows of a person are in one partition: their number was limited before.
        def count(frame: Frame) -> Frame:
            return counted(rows_of(frame, keys, schema, _texts), column)

        yield batch_of(self._added(read, count), column)

    def _added(self, columns: set[str], count: "Counted") -> pl.DataFrame:
        """The numbers of all partitions, added up."""
        from dask.delayed import delayed
        from dask.utils import get_default_shuffle_method

        needed = columns.union(*(step.reads for step in self.steps))
        names = [name for name in self.schema if name in needed]
        # A frame without columns has no rows to polars: of constants alone, one is read with them.
        frame = self.frame[names or self.readable[:1]]
        for step in self.steps:
            if isinstance(step, Truncate):  # all rows of an identifier must meet in one partition
                method = get_default_shuffle_method()
                if method == "disk":  # which leaves folders behind, and rows in them when it ends
                    method = "tasks"
                frame = frame.shuffle(on=step.identifier, shuffle_method=method)
                break
        # Dask looks for frames of its own in each argument, but not in what a function carries.
        work = delayed(partial(_of_partition, steps=self.steps, count=count), pure=False)
        parts = [work(part) for part in frame.to_delayed()]
        add = delayed(_added, pure=False)
        while len(parts) > 1:
            parts = [add(parts[at : at + _TOGETHER]) for at in range(0, len(parts), _TOGETHER)]
        return parts[0].compute()


#: From the frame of a partition to its numbers.
Counted = Callable[[Frame], Frame]
_TOGETHER = 16  # partial counts that are added up at a time


def _of_partition(part: Any, steps: Sequence[Step], count: Counted) -> pl.DataFrame:
    if any(of_any_type(dtype) for dtype in part.dtypes):
        raise TypeError("a partition has a type that its frame does not state")
    frame = nw.from_native(pl.from_pandas(part).lazy())
    for step in steps:
        frame = step.apply(frame)
    return count(frame).collect("polars").to_native()


def _texts(rows: Frame) -> Frame:
    """Files of Dask may hold any bytes as text. As to other readers, these are no data."""
    return nw.from_native(rows.to_native().cast({KEY: pl.Binary}).cast({KEY: pl.String}))


def _added(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    *values, number = parts[0].columns
    return pl.concat(parts).group_by(values).agg(pl.col(number).sum())
