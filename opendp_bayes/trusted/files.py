"""The columns of a file, as a scan: nothing is read but their names and types."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TextIO

import polars as pl

from opendp_bayes.trusted.csv_text import (
    FileError,
    decoded,
    decoded_input,
    header_of,
    read_all,
    text_errors,
)
from opendp_bayes.trusted.encodings import UTF_8, as_encoding, as_separator
from opendp_bayes.trusted.kinds import COMPARED_AS, ColumnKind, kind_of
from opendp_bayes.trusted.temporary_files import TemporaryFile

EXTENSIONS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".csv.gz": "CSV",
    ".tsv.gz": "CSV",
    ".csv.zst": "CSV",
    ".tsv.zst": "CSV",
    ".parquet": "Parquet",
    ".ipc": "Arrow IPC",
    ".arrow": "Arrow IPC",
    ".feather": "Arrow IPC",
}
STANDARD_INPUT = Path("-")
#: Integers with values that Int64 does not have.
_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)
#: What messages call it.
_PIPED = "standard input"
#: Ends with what is wrong about a column: its name, and the problem.
Refuse = Callable[[str, str], NoReturn]


@dataclass(frozen=True)
class Source:
    """A file, and how it is read.

    Attributes
    ----------
    path : where it is.
    name : what messages call it.
    extension : in `EXTENSIONS`.
    separator : between the values of a line of CSV.
    encoding : of the text of CSV.
    rest : of CSV that is being read, what follows the header.
    copy : whether `path` is a copy in UTF-8, of which there is only the header until `complete`.
    """

    path: Path
    name: str
    extension: str
    separator: str
    encoding: str = UTF_8
    rest: TextIO | None = None
    copy: bool = False

    @property
    def title(self) -> str:
        """Its name without the extension."""
        return re.sub(rf"{re.escape(self.extension)}$", "", self.name, flags=re.IGNORECASE)

    @property
    def kind(self) -> str:
        return EXTENSIONS[self.extension]

    def scan(self) -> pl.LazyFrame:
        """All columns; nothing is read yet."""
        if self.kind == "Parquet":
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == "Arrow IPC":
            return pl.scan_ipc(self.path, glob=False)
        # Every value is read as text: inferring types would look at the data. A line with too many
        # fields is read as far as it goes, because whether a release succeeds must not depend on
        # the records. Invalid text was refused by `complete`; if the file has changed since, it is
        # read as far as it goes, too.
        return pl.scan_csv(
            self.path,
            separator=self.separator,
            infer_schema=False,
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
            glob=False,
        )

    def complete(self) -> None:
        """Read all of CSV before anything is released, and complete the copy where there is one.

        Raises `FileError` for what is no text in its encoding: what stands for an invalid
        character would be a value that no category has.
        """
        if self.rest is not None:
            with text_errors(self.name, self.encoding):
                read_all(self.rest, self.separator, self.path if self.copy else None)


def source(path: Path, separator: str | None, encoding: str | None = None) -> Source:
    """Choose how to read FILE by its extension; standard input is CSV.

    Raises `FileError` for an unknown extension and a path that is no file, and raises
    `ValueError` for a separator or an encoding that does not fit.
    """
    name = path.name.lower()
    known = (extension for extension in EXTENSIONS if name.endswith(extension))
    extension = ".csv" if path == STANDARD_INPUT else next(known, "")
    if not extension:
        raise FileError(
            f"FILE {path}: has extension {path.suffix!r}; must be one of {', '.join(EXTENSIONS)}."
            " Convert the file, or rename it to what it is."
        )
    if path != STANDARD_INPUT and not path.is_file():
        raise FileError(f"FILE {path}: is not a file; check the path.")
    found = Source(path, path.name, extension, "\t" if extension.startswith(".tsv") else ",")
    for option, given in (("separator", separator), ("encoding", encoding)):
        if given is not None and found.kind != "CSV":
            raise ValueError(
                f"{option}={given!r}: is for CSV, and {path.name} is {found.kind}; leave it out."
            )
    if encoding is not None:
        found = replace(found, encoding=as_encoding(encoding))
    if separator is not None:
        found = replace(found, separator=as_separator(separator, found.encoding))
    return found


@contextmanager
def scannable(found: Source) -> Iterator[Source]:
    """A source that can be read more than once and in UTF-8: standard input, and CSV in another
    encoding, as a temporary file, which only its owner can read and which is removed after the
    block, or with the process.

    Until `complete` nothing is read of CSV but the header, so that what is wrong about options and
    columns is found before the records have come.
    """
    if found.kind != "CSV":
        yield found
        return
    piped = found.path == STANDARD_INPUT
    found = replace(found, name=_PIPED if piped else found.name)
    with ExitStack() as opened:
        with text_errors(found.name, found.encoding):
            text = opened.enter_context(
                decoded_input(sys.stdin.buffer, found.encoding)
                if piped
                else decoded(found.path, found.encoding)
            )
            header = header_of(text)
        found = replace(found, rest=text)
        if piped or found.encoding != UTF_8:
            found = replace(found, path=opened.enter_context(TemporaryFile()), copy=True)
            found.path.write_text(header, encoding=UTF_8, newline="")
        yield found


def schema_of(found: Source) -> pl.Schema:
    """The names and types of all columns; raises `FileError` for a file that cannot be read."""
    try:
        return found.scan().collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        if found.name == _PIPED:
            raise FileError(
                "FILE -: standard input cannot be read as CSV; its first line must name the"
                " columns."
            ) from None
        advice = (
            "its first line must name the columns"
            if found.kind == "CSV"
            else "check that it is what its extension says"
        )
        raise FileError(f"FILE {found.name}: cannot be read as {found.kind}; {advice}.") from None


def scan_columns(
    found: Source, columns: Sequence[str], refuse: Refuse, identifier: str | None = None
) -> pl.LazyFrame:
    """These columns, each as Enum, String, Boolean or Int64, which stands for every integer type.

    An identifier of integers that need not fit in Int64 becomes text: all beyond it would be null,
    and so one person. `refuse` is told of a column that is not there or is of another type. Raises
    `FileError` for a file that cannot be read.
    """
    scan, schema = found.scan(), schema_of(found)
    types = {column: _plain_type(found, schema, column, refuse) for column in columns}
    if identifier is not None and schema[identifier] in _WIDE:
        types[identifier] = pl.String()
    return scan.select(pl.col(name).cast(dtype, strict=False) for name, dtype in types.items())


def named_columns(
    found: Source, columns: Sequence[str] | None, refuse: Refuse
) -> dict[str, ColumnKind]:
    """Describe these columns, or all; `refuse` is told of one that is absent."""
    schema = schema_of(found)
    for column in columns or ():
        _check_in(found, schema, column, refuse)
    return {name: kind_of(schema[name]) for name in (schema if columns is None else columns)}


def _check_in(found: Source, schema: pl.Schema, column: str, refuse: Refuse) -> None:
    """Refuse a column that is not there."""
    if column not in schema:
        # Without a header line the names are somebody's record, so they are not shown.
        if found.kind == "CSV":
            refuse(
                column,
                f"is not in the first line of {found.name}, which must name the columns; check the"
                f" spelling, the header and the separator ({found.separator!r}).",
            )
        known = ", ".join(map(repr, schema))
        refuse(column, f"is not in {found.name}; must be one of {known}.")


def _plain_type(found: Source, schema: pl.Schema, column: str, refuse: Refuse) -> pl.DataType:
    """The type in which a column is counted. A Categorical becomes text, because its encoding
    depends on the data.
    """
    _check_in(found, schema, column, refuse)
    known = kind_of(schema[column])
    if known.kind == "other":
        refuse(
            column,
            f"has type {known.type}; must be text, Enum, Boolean or integer. Bin or convert its"
            " values first.",
        )
    return COMPARED_AS[known.kind] if known.declared is None else schema[column]
