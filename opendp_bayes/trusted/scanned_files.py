"""Files of Parquet and Arrow as lazy frames: one file, a folder, or all that match a pattern."""

from glob import glob as matching
from pathlib import Path

import polars as pl

#: What a file is, by its extension in lower case.
KINDS = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}


def scan_files(path: Path, *, glob: bool = False) -> pl.LazyFrame:
    """The columns of a file of Parquet or Arrow, of all files of Parquet in a folder, or of all
    whose paths match a pattern. No row is read.

    No column is made of the paths, and no part of a file is left out by what its footer says of the
    values.

    Raises
    ------
    ValueError
        For files that cannot be read, or not together.
    """
    if not glob and path.is_file():
        return _scan([path], KINDS[path.suffix.lower()], path.name)
    if not glob and not path.is_dir():
        raise ValueError(f"data={path}: is not a file; check the path.")
    parts = _parts_of(path, glob=glob)
    schemas = [list(_scan([file], "Parquet", file.name).collect_schema().items()) for file in parts]
    if any(schema != schemas[0] for schema in schemas):
        raise ValueError(
            f"data={path.name}: not all its files have the same columns, in the same types and"
            " order; write them anew, alike."
        )
    return _scan(parts, "Parquet", path.name)


def _scan(paths: list[Path], kind: str, source: str) -> pl.LazyFrame:
    """The columns of files of one kind."""
    try:
        if kind == "Parquet":
            scan = pl.scan_parquet(paths, glob=False, hive_partitioning=False, use_statistics=False)
        else:
            scan = pl.scan_ipc(paths, glob=False)
        scan.collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        scan = None  # the cause, which may have values, is dropped
    if scan is None:
        raise ValueError(
            f"data={source}: cannot be read as {kind}; check that it is what its extension says."
        )
    return scan


def _parts_of(path: Path, *, glob: bool) -> list[Path]:
    """The files of Parquet in a folder, or those whose paths match a pattern, in order; names that
    begin with a point or an underscore are those of programs.
    """
    if glob:
        files = [Path(file) for file in matching(str(path), recursive=True)]
    else:
        files = [file for file in path.rglob("*") if file.suffix.lower() == ".parquet"]
    # The names of each file, without those that were named themselves.
    names = {
        file: file.relative_to(path).parts if file.is_relative_to(path) else (file.name,)
        for file in files
    }
    parts = [
        file
        for file in files
        if file.is_file() and not any(folder.startswith((".", "_")) for folder in names[file])
    ]
    if any(file.suffix.lower() != ".parquet" for file in parts):
        raise ValueError(
            f"data={path}: glob=True is for files of Parquet alone, and others match; end it with"
            " .parquet."
        )
    if not parts:
        raise ValueError(
            f"data={path}: {'matches' if glob else 'is a folder, and holds'} no file of Parquet;"
            " check the path."
        )
    return sorted(parts)
