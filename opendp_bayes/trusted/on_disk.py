"""In-memory frames: a temporary file that OpenDP scans, instead of the frame itself, which it would
copy with every query.
"""

from types import TracebackType

import polars as pl

from opendp_bayes.trusted.boundary import ContractError, withheld
from opendp_bayes.trusted.temporary_files import TemporaryFile

#: A filter is applied to the rows, after they were read. Polars would drop parts of a Parquet file
#: unread by their least and largest values, which leave out NaN: one record more in a part could
#: bring a thousand back.
EVERY_ROW = pl.QueryOptFlags(predicate_pushdown=False)


class on_disk:  # noqa: N801 - reads as a function, `with on_disk(frame) as scan`
    """Write a frame to a private temporary file (Arrow for Enum columns alone, otherwise Parquet)
    and scan it from there.

    A frame held in memory is serialised into OpenDP and back for every query: slow, and memory that
    is never freed. A scan crosses as a file name.

    >>> import polars as pl
    >>> with on_disk(pl.DataFrame({"vote": ["a", "b"]})) as scan:
    ...     scan.collect().height
    2

    The whole frame is written, so select the columns that are needed first. The file is readable by
    its owner only and is removed at the end of the `with` block, or, without one, by `close()`,
    when the object is collected or when the process that made it ends, also by SIGTERM or SIGHUP.
    What a process left that was killed goes with the next one (`docs/limits.md`, "Temporary
    files"). The file is needed for as long as a Context uses the scan.

    Raises `RuntimeError`, without a cause, where a lazy frame fails.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
            raise TypeError(
                f"frame: must be a polars DataFrame or LazyFrame, not {type(frame).__name__}."
            )
        self._file = TemporaryFile()
        self._path = self._file.path
        withheld(lambda: self._write(frame.lazy()), "frame: writing it to a file")

    def _write(self, frame: pl.LazyFrame) -> None:
        schema = frame.collect_schema()
        # An Enum is stored as its codes, which polars reads back several times faster.
        self._enums = {name: dtype for name, dtype in schema.items() if isinstance(dtype, pl.Enum)}
        codes = frame.with_columns(pl.col(name).to_physical() for name in self._enums)
        # The quicker format for codes, the slower one for anything else.
        self._is_arrow = len(self._enums) == len(schema)
        if self._is_arrow:
            sink = codes.sink_ipc(self._path, compression="uncompressed", lazy=True)
            sink.collect(engine="streaming", optimizations=EVERY_ROW)
        else:
            sink = codes.sink_parquet(self._path, compression="lz4", statistics=False, lazy=True)
            # The streaming writer of polars 1.36 panics on long columns of few bits a row.
            sink.collect(engine="in-memory", optimizations=EVERY_ROW)

    @property
    def scan(self) -> pl.LazyFrame:
        """A LazyFrame over the file."""
        scan = pl.scan_ipc(self._path) if self._is_arrow else pl.scan_parquet(self._path)
        return scan.cast(self._enums)  # type: ignore[arg-type]

    def close(self) -> None:
        """Remove the file; scans of it stop working."""
        self._file.remove()

    def __enter__(self) -> pl.LazyFrame:
        return self.scan

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def require_file(frame: pl.LazyFrame) -> None:
    """Raise `ContractError` where the file that is scanned is gone. Reads names and types alone."""
    try:
        frame.collect_schema()
    except FileNotFoundError:
        raise ContractError(
            "the file that the Context scans is not there any more, so nothing was read. Make every"
            " release inside the block `with on_disk(frame) as scan:`, which removes its file at"
            " the end."
        ) from None
