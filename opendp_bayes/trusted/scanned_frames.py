"""Frames of polars, pandas, Arrow and what else narwhals reads, as lazy frames for OpenDP. A frame
in memory becomes a temporary file: OpenDP would copy it with every query.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import polars as pl

from opendp_bayes.mathematics.telling import told
from opendp_bayes.trusted.boundary import ContractError, silenced, withheld
from opendp_bayes.trusted.kinds import column_named
from opendp_bayes.trusted.temporary_files import TemporaryFile

#: A filter is applied to the rows, after they were read. Polars would drop parts of a Parquet file
#: unread by their least and largest values, which leave out NaN: one record more in a part could
#: bring a thousand back.
EVERY_ROW = pl.QueryOptFlags(predicate_pushdown=False)


def collected(frame: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a frame, read in pieces."""
    return frame.collect(engine="streaming", optimizations=EVERY_ROW)


class on_disk(TemporaryFile):  # noqa: N801 - reads as a function, `with on_disk(frame) as scan`
    """Write a frame to a private temporary file of Parquet and scan it from there.

    A frame held in memory is serialised into OpenDP and back for every query: slow, and memory that
    is never freed. A scan crosses as a file name.

    The whole frame is written, so select the columns that are needed first. The file is readable by
    its owner only, and is removed at the end of the `with` block. Without one it is removed by
    `close()`, when the object is collected, or when the process ends (`docs/limits.md`, "Temporary
    files"). The file is needed for as long as a Context uses the scan.

    Raises `RuntimeError`, without a cause, where a lazy frame fails.

    Examples
    --------
    >>> import polars as pl
    >>> with on_disk(pl.DataFrame({"vote": ["a", "b"]})) as scan:
    ...     scan.collect().height
    2
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
            raise TypeError(
                f"frame: must be a polars DataFrame or LazyFrame, not {type(frame).__name__}."
            )
        super().__init__()
        withheld(lambda: self._write(frame.lazy()), "frame: writing it to a file")

    def _write(self, frame: pl.LazyFrame) -> None:
        schema = frame.collect_schema()
        # An Enum is stored as its codes, which polars reads back several times faster.
        self._enums = {
            column: dtype for column, dtype in schema.items() if isinstance(dtype, pl.Enum)
        }
        codes = frame.with_columns(column_named(column).to_physical() for column in self._enums)
        sink = codes.sink_parquet(self.path, compression="lz4", statistics=False, lazy=True)
        # The streaming writer of polars 1.36 panics on long columns of few bits a row.
        sink.collect(engine="in-memory", optimizations=EVERY_ROW)

    @property
    def scan(self) -> pl.LazyFrame:
        """A LazyFrame over the file."""
        return _cast(pl.scan_parquet(self.path), self._enums)

    def __enter__(self) -> pl.LazyFrame:
        return self.scan


_FROM_PYTHON = (
    "its rows come from a Python function, as those of register_io_source and scan_pyarrow_dataset"
    " do, and OpenDP may end the process when it frees one. Collect the frame, or write it by"
    " frame.sink_parquet(path) and pass pl.scan_parquet(path)."
)


def _is_from_python(frame: pl.LazyFrame) -> bool:
    """True if rows of a frame come from a Python function. Reads nothing."""

    def steps(visitor: Any) -> Iterator[str]:
        with suppress(NotImplementedError):  # a step that polars has no view of
            yield type(visitor.view_current_node()).__name__
        for number in visitor.get_inputs():
            visitor.set_node(number)
            yield from steps(visitor)

    return "PythonScan" in steps(frame._ldf.visit())


def require_file(frame: pl.LazyFrame) -> None:
    """Raise `ContractError` where the file that is scanned is gone, or is none but a Python
    function. Reads names and types alone.
    """
    try:
        frame.collect_schema()
        if _is_from_python(frame):
            raise ContractError(f"the frame of the Context is not read: {_FROM_PYTHON}")
    except FileNotFoundError:
        raise ContractError(
            "the file that the Context scans is not there any more, so nothing was read. Make every"
            " release inside the block `with on_disk(frame) as scan:`, which removes its file at"
            " the end."
        ) from None


# --- Frames

#: Types that OpenDP has no domain for, and the ones in which they are the same numbers.
_WIDER: dict[Any, Any] = {
    pl.Int8: pl.Int32,
    pl.Int16: pl.Int32,
    pl.UInt8: pl.UInt32,
    pl.UInt16: pl.UInt32,
}


def scanned(frame: Any) -> tuple[pl.LazyFrame, on_disk | None, dict[str, str]]:
    """The frame as OpenDP takes it; the file of ours that it is read from, if it was in memory; and
    columns by name that are not in it, with the reason.
    """
    if type(frame).__module__.startswith("narwhals."):
        frame = frame.to_native()
    if isinstance(frame, on_disk):
        return _widened(frame.scan), frame, {}
    if isinstance(frame, pl.LazyFrame):
        widened = _widened(frame)
        if withheld(lambda: _is_from_python(frame), "frame: looking up its source"):
            raise ValueError(f"data={told(frame)}: {_FROM_PYTHON}")
        return widened, None, {}
    left_out: dict[str, str] = {}
    if not isinstance(frame, pl.DataFrame):
        frame, left_out = _of_narwhals(frame)
    file = on_disk(_widened(frame.lazy()))
    return file.scan, file, left_out


def _widened(frame: pl.LazyFrame) -> pl.LazyFrame:
    schema = withheld(frame.collect_schema, "frame: looking up its names and types")
    narrow = {column: _WIDER[dtype] for column, dtype in schema.items() if dtype in _WIDER}
    return _cast(frame, narrow)


def _cast(frame: pl.LazyFrame, types: Mapping[str, Any]) -> pl.LazyFrame:
    return frame.with_columns(column_named(column).cast(dtype) for column, dtype in types.items())


def _of_narwhals(native: Any) -> tuple[pl.DataFrame, dict[str, str]]:
    """Data in memory that are not in polars, and the columns that are left out, with the reason."""
    package = type(native).__module__.partition(".")[0]
    kind = type(native).__name__ if package == "builtins" else f"{package}.{type(native).__name__}"
    try:
        import narwhals as nw
    except ImportError:
        raise ImportError(
            f"data={kind}: is not a frame of polars, and narwhals, which reads others, is not"
            " installed. Run `pip install 'opendp-bayes[frames]'`, or make it one yourself."
        ) from None
    try:
        with silenced():
            frame = nw.from_native(native, eager_only=True)
    except TypeError:
        raise TypeError(
            f"data={kind}: must be a LazyFrame or a DataFrame of polars, a DataFrame of pandas or"
            " a table of pyarrow. Make one first, as in pl.DataFrame(...); of a table of an engine"
            " opendp_bayes_engines.columns(table, [...]) makes one (pip install"
            " opendp-bayes-engines)."
        ) from None
    except nw.exceptions.DuplicateError:
        frame = None
    if frame is None:
        # Not which: of a file without a header, its columns are somebody's record.
        raise ValueError(f"data={kind}: two columns have one name; rename them.")
    left_out: dict[str, str] = {}
    if frame.implementation.is_pandas_like():
        left_out = {
            str(column): (
                "has the type object of pandas, whose values may be of any kind, so that their"
                " reading would depend on the data; it is left out of the Context. Say which kind"
                f" in the frame, as in frame.astype({{{str(column)!r}: 'string'}})."
            )
            for column, dtype in native.dtypes.items()
            if str(dtype) == "object"
        }
    converted = withheld(
        lambda: frame.drop(list(left_out)).to_polars(),
        f"data={kind}: making its columns those of polars",
        "convert it yourself, and pass the frame of polars",
    )
    coded = (
        column for column, dtype in converted.schema.items() if dtype in (pl.Categorical, pl.Enum)
    )
    texts = (column_named(column).cast(pl.String) for column in coded)
    return converted.with_columns(texts), left_out
