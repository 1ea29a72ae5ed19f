"""Files of Parquet and Arrow as lazy frames: one file, or all of a folder."""

from pathlib import Path

import polars as pl

from opendp_bayes.mathematics.telling import told

#: What a file is, by its extension in lower case.
KINDS = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}


def scan_files(path: Path) -> pl.LazyFrame:
    """The columns of a file of Parquet or Arrow, or of all files of Parquet in a folder and below.
    Files whose names begin with a point or an underscore belong to programs and are left out. No
    row is read.

    No column is made of the paths, and no part of a file is left out by what its footer says of the
    values.

    Raises
    ------
    ValueError
        For files that cannot be read, or not together.
    """
    if not path.is_dir():
        kind = KINDS.get(path.suffix.lower())
        if kind is None:
            raise ValueError(
                f"data={told(str(path))}: is no file of Parquet or Arrow. Others are read by"
                " opendp_bayes_office.read(path), from pip install opendp-bayes-office."
            )
        return _scan([path], kind, path.name)
    parts = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() == ".parquet"
        and file.is_file()
        and not any(name.startswith((".", "_")) for name in file.relative_to(path).parts)
    )
    if not parts:
        raise ValueError(f"data={path}: is a folder, and holds no file of Parquet; check the path.")
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
        scan = (
            pl.scan_parquet(paths, glob=False, hive_partitioning=False, use_statistics=False)
            if kind == "Parquet"
            else pl.scan_ipc(paths, glob=False)
        )
        scan.collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        scan = None  # the cause, which may have values, is dropped
    if scan is None:
        raise ValueError(
            f"data={source}: cannot be read as {kind}; check the path, and that it is what its"
            " extension says."
        )
    return scan
