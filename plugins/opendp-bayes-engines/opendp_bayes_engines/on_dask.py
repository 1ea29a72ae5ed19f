"""Dask: partitions are counted one by one, as polars frames, and their counts added up."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from opendp_bayes_engines.kinds import Column, Schema, schema_of
from opendp_bayes_engines.tables import NUMBER, Count, read_polars

_TYPES: dict[Any, Any] = {
    pa.bool_(): pl.Boolean,
    pa.int8(): pl.Int64,
    pa.int16(): pl.Int64,
    pa.int32(): pl.Int64,
    pa.int64(): pl.Int64,
    pa.uint8(): pl.Int64,
    pa.uint16(): pl.Int64,
    pa.uint32(): pl.Int64,
    pa.uint64(): pl.UInt64,
    pa.float32(): pl.Float32,
    pa.float64(): pl.Float64,
    pa.string(): pl.String,
    pa.large_string(): pl.String,
    pa.date32(): pl.Date,
}
#: Partitions that are worked on at once, and counts that are added up.
_TOGETHER = 16


@dataclass(frozen=True, eq=False)
class DaskTable:
    """A DataFrame of Dask, whose partitions are frames of pandas."""

    native: Any
    schema: Schema

    @classmethod
    def from_native(cls, frame: Any) -> "DaskTable":
        columns = ((column, _column(dtype)) for column, dtype in frame.dtypes.items())
        return cls(frame, schema_of(columns))

    def rows(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        from dask.delayed import delayed

        parts = self._parts(self.native[list(names)], names, lambda frame: frame)
        for start in range(0, len(parts), _TOGETHER):
            yield from delayed(parts[start : start + _TOGETHER]).compute()

    def counts(
        self, names: Sequence[str], count: Count, identifier: str | None = None
    ) -> Iterator[pl.DataFrame]:
        from dask.delayed import delayed
        from dask.utils import get_default_shuffle_method

        frame = self.native[list(names)]
        if identifier is not None:  # all of whose rows must meet in one partition
            clean = partial(_cleaned, schema=self._named(names))
            empty = pd.DataFrame(
                {column: pd.Series(dtype=frame.dtypes[column]) for column in names}
            )
            # Not by the disk, which leaves folders behind, and rows in them when it ends.
            method = "p2p" if get_default_shuffle_method() == "p2p" else "tasks"
            frame = frame.map_partitions(clean, meta=clean(empty))
            frame = frame.shuffle(on=identifier, shuffle_method=method)
        parts = self._parts(frame, names, count, in_order=identifier is not None)
        add = delayed(_added, pure=False)
        while len(parts) > 1:
            parts = [
                add(parts[start : start + _TOGETHER]) for start in range(0, len(parts), _TOGETHER)
            ]
        yield parts[0].compute()

    def _parts(
        self, frame: Any, names: Sequence[str], work: Count, *, in_order: bool = False
    ) -> list[Any]:
        """Apply `work` to each partition, lazily."""
        from dask.delayed import delayed

        of_part = partial(_of_part, schema=self._named(names), work=work, in_order=in_order)
        # Dask looks for frames of its own in each argument, but not in what a function carries.
        return [delayed(of_part, pure=False)(partition) for partition in frame.to_delayed()]

    def _named(self, names: Sequence[str]) -> Schema:
        return {column: self.schema[column] for column in names}


def _column(dtype: Any) -> Column:
    """Describe a column by its type of pandas. One of numpy holds no nulls, so that integers beside
    a null become floats; one of Python strings holds more than text.
    """
    kind = f"{dtype} of numpy" if isinstance(dtype, np.dtype) else str(dtype)
    if getattr(dtype, "storage", "") == "python" or (kind != str(dtype) and dtype.kind in "biu"):
        return Column(kind)
    with suppress(pa.ArrowException, TypeError):
        return Column(kind, _TYPES.get(pa.array(pd.Series(dtype=dtype), from_pandas=True).type))
    return Column(kind)


def _arrow(partition: Any, schema: Schema) -> pa.Table:
    """Columns of a partition, in which bytes that are not text are null."""
    if any(
        _column(partition.dtypes[label]).dtype != column.dtype for label, column in schema.items()
    ):
        raise TypeError("a partition has a type that its frame does not state")
    columns = {}
    for label, column in schema.items():
        values = pa.array(partition[label], from_pandas=True)
        columns[label] = _text(values) if column.dtype == pl.String else values
    return pa.table(columns)


def _text(values: Any) -> Any:
    data = values.cast(pa.large_binary())
    with suppress(pa.ArrowInvalid):
        return data.cast(pa.large_string())
    return pa.array(map(_decoded, data.to_pylist()), pa.large_string())


def _decoded(data: bytes | None) -> str | None:
    with suppress(UnicodeDecodeError):
        return None if data is None else data.decode()
    return None


def _cleaned(partition: Any, schema: Schema) -> Any:
    return _arrow(partition, schema).to_pandas(types_mapper=pd.ArrowDtype)


def _of_part(partition: Any, schema: Schema, work: Count, in_order: bool) -> pl.DataFrame:
    frame: Any = pl.from_arrow(_arrow(partition, schema))
    frame = read_polars(frame.lazy(), schema, list(schema), in_order=in_order)
    return work(nw.from_native(frame)).to_native().collect()


def _added(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).group_by(pl.exclude(NUMBER)).agg(pl.col(NUMBER).sum())
