"""One column of a file, as a scan: nothing is read but the names and types of the columns."""

from pathlib import Path

import polars as pl

from opendp_bayes.commands.errors import fail

EXTENSIONS = {
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".ipc": "Arrow IPC",
    ".arrow": "Arrow IPC",
    ".feather": "Arrow IPC",
}


def scan_column(path: Path, column: str) -> tuple[pl.LazyFrame, pl.DataType]:
    """The column as a frame of its own, and its type: Enum, String, Boolean or Int64, which stands
    for every integer type.

    Exits with a message for an unknown extension, an unreadable file, a column that is not there or
    one of another type.
    """
    if path.suffix.lower() not in EXTENSIONS:
        fail(
            f"FILE {path}: has extension {path.suffix!r}; must be one of {', '.join(EXTENSIONS)}."
            " Convert the file, or rename it to what it is."
        )
    if not path.is_file():
        fail(f"FILE {path}: is not a file; check the path.")
    scan = _scan(path)
    try:
        schema = scan.collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        fail(
            f"FILE {path}: cannot be read as {EXTENSIONS[path.suffix.lower()]}; check that it is"
            " what its extension says."
        )
    if column not in schema:
        if (
            path.suffix.lower() == ".csv"
        ):  # without a header line the names are somebody's record, so they are not shown
            fail(
                f"--column {column!r}: is not in the first line of {path.name}, which must name the"
                " columns; check the spelling and the header."
            )
        fail(
            f"--column {column!r}: is not in {path.name}; must be one of"
            f" {', '.join(map(repr, schema))}."
        )
    dtype = _plain(schema[column])
    if dtype is None:
        fail(
            f"--column {column!r}: has type {schema[column]}; must be text, Enum, Boolean or"
            " integer. Bin or convert its values first."
        )
    return scan.select(pl.col(column).cast(dtype, strict=False)), dtype


def _scan(path: Path) -> pl.LazyFrame:
    match EXTENSIONS[path.suffix.lower()]:
        case "CSV":
            # Every value is read as text: inferring types would look at the data. A line with
            # invalid text or too many fields is read as far as it goes, because whether a release
            # succeeds must not depend on the records.
            return pl.scan_csv(
                path,
                infer_schema=False,
                encoding="utf8-lossy",
                truncate_ragged_lines=True,
                glob=False,
            )
        case "Parquet":
            return pl.scan_parquet(path, glob=False)
        case _:
            return pl.scan_ipc(path, glob=False)


def _plain(dtype: pl.DataType) -> pl.DataType | None:
    """The type in which a column is counted. A Categorical becomes text, because its encoding
    depends on the data.
    """
    if isinstance(dtype, pl.Enum) or dtype in (pl.String, pl.Boolean):
        return dtype
    if isinstance(dtype, pl.Categorical):
        return pl.String()
    return pl.Int64() if dtype.is_integer() else None
