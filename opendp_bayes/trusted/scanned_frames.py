"""Frames of polars, pandas, Arrow and what else narwhals reads, as lazy frames for OpenDP."""

from os import PathLike
from typing import Any

import polars as pl

from opendp_bayes.trusted.boundary import silenced, withheld
from opendp_bayes.trusted.on_disk import on_disk
from opendp_bayes.trusted.temporary_files import sweep

#: Types that OpenDP has no domain for, and the ones in which they are the same numbers.
_WIDER: dict[Any, Any] = {
    pl.Int8: pl.Int32,
    pl.Int16: pl.Int32,
    pl.UInt8: pl.UInt32,
    pl.UInt16: pl.UInt32,
}


def scanned(frame: Any) -> tuple[pl.LazyFrame, on_disk | None]:
    """The frame as OpenDP takes it, and the file that it is read from where that is ours."""
    sweep()
    if type(frame).__module__.startswith("narwhals."):
        frame = frame.to_native()
    if isinstance(frame, pl.LazyFrame):
        return _widened(frame), None
    if not isinstance(frame, pl.DataFrame):
        frame = _of_narwhals(frame)
    file = on_disk(_widened(frame.lazy()))
    return file.scan, file


def _widened(frame: pl.LazyFrame) -> pl.LazyFrame:
    schema = withheld(frame.collect_schema, "frame: looking up its names and types")
    narrow = {name: _WIDER[of] for name, of in schema.items() if of in _WIDER}
    return frame.cast(narrow) if narrow else frame  # type: ignore[arg-type]


def _of_narwhals(given: Any) -> pl.DataFrame:
    """Data in memory that are not in polars."""
    package = type(given).__module__.partition(".")[0]
    kind = type(given).__name__ if package == "builtins" else f"{package}.{type(given).__name__}"
    try:
        import narwhals as nw
    except ImportError:
        raise ImportError(
            f"frame={kind}: is not a frame of polars, and narwhals, which reads others, is not"
            " installed. Run `pip install 'opendp-bayes[frames]'`, or make it one yourself."
        ) from None
    try:
        with silenced():
            frame = nw.from_native(given)
    except TypeError:
        raise TypeError(
            f"frame={kind}: must be a LazyFrame or a DataFrame of polars, a DataFrame of pandas or"
            f" a table of pyarrow.{_advice(given)}"
        ) from None
    except nw.exceptions.DuplicateError:
        frame = None
    if frame is None:
        # Not which: of a file without a header, its columns are somebody's record.
        raise ValueError(f"frame={kind}: two columns have one name; rename them.")
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            f"frame={kind}: is a frame of an engine, which counts itself; open it by"
            " `opendp_bayes_engines.context`, with the same arguments (pip install"
            " opendp-bayes-engines)."
        )
    if frame.implementation.is_pandas_like():
        mixed = [str(name) for name, of in given.dtypes.items() if str(of) == "object"]
        if mixed:
            raise TypeError(
                f"frame: column {mixed[0]!r} has the type object of pandas, whose values may be of"
                " any kind, so that their reading would depend on the data. Say which, as in"
                f" frame.astype({{{mixed[0]!r}: 'string'}})."
            )
    try:
        made = frame.to_polars()
    except Exception:  # noqa: BLE001 - of many kinds, and some show a value
        made = None
    if made is None:
        raise TypeError(
            f"frame={kind}: a column cannot be made one of polars, for a reason that is withheld,"
            " because it may show a value. Convert it yourself, and pass the frame of polars."
        )
    coded = [name for name, of in made.schema.items() if of in (pl.Categorical, pl.Enum)]
    return made.with_columns(pl.col(coded).cast(pl.String)) if coded else made


def _advice(given: Any) -> str:
    """A sentence on how a frame is made of what is none."""
    if isinstance(given, (str, PathLike)):
        return " A file is read by polars, as in pl.scan_parquet or pl.scan_csv."
    tables = ("__arrow_c_stream__", "__arrow_c_array__", "__array__")
    if isinstance(given, (dict, list)) or any(hasattr(given, name) for name in tables):
        return " Make one of it first, as in pl.DataFrame(...)."
    return ""
