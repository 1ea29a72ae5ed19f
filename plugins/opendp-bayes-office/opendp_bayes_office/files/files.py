"""The columns of a file, as a scan: nothing is read but their names and types."""

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from opendp_bayes.release_format.casts import how_to_cast
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.trusted.kinds import ColumnKind, column_named, kind_of
from opendp_bayes.trusted.scanned_files import KINDS, scan_files
from opendp_bayes.trusted.temporary_files import TemporaryFile
from opendp_bayes_office.files.csv_text import (
    FileError,
    copy_records,
    decoded,
    header_of,
    text_errors,
    values_of,
)
from opendp_bayes_office.files.encodings import UTF_8, as_encoding, as_separator, check_text
from opendp_bayes_office.files.reading import Reading, Steps
from opendp_bayes_office.files.tables import (
    LABELLED,
    STATISTICAL,
    WORKBOOK,
    Table,
    statistical_table,
)

EXTENSIONS = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "CSV"),
    **KINDS,
    **dict.fromkeys((".sav", ".zsav"), "SPSS"),
    ".dta": "Stata",
    **dict.fromkeys((".sas7bdat", ".xpt"), "SAS"),
    **dict.fromkeys((".xlsx", ".xlsm"), WORKBOOK),
}
STANDARD_INPUT = Path("-")
#: What messages call it.
_PIPED = "standard input"
_AS_IT_IS = Reading()
#: What a copy of text begins with, in place of names.
_FIRST_LINE = b"_\n"


@dataclass(frozen=True)
class Source:
    """A file, and how it is read.

    Attributes
    ----------
    path : Path
        Where it is; of text, in `scannable`, where its records are copied to.
    name : str
        What messages call it.
    extension : str
        In `EXTENSIONS`.
    how : Reading
        What its owner says of it.
    frame : LazyFrame or None
        Of Parquet and Arrow, their columns.
    table : Table or None
        Of what else is read, in `scannable`, its table.
    """

    path: Path
    name: str
    extension: str
    how: Reading
    frame: pl.LazyFrame | None = None
    table: Any = None

    @property
    def kind(self) -> str:
        return EXTENSIONS[self.extension]

    @property
    def may_lack_header(self) -> bool:
        """True if what stands for the names of its columns may be a record."""
        return self.kind in ("CSV", WORKBOOK)

    @property
    def encoding(self) -> str:
        """The encoding of its text; "" for what a file of SPSS, Stata or SAS says."""
        if self.how.encoding is not None:
            return as_encoding(self.how.encoding)
        return "" if self.kind in STATISTICAL else UTF_8

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns of a text in their order; empty for other files."""
        names = () if self.table is None else self.table.header
        return tuple(map(str.strip, names)) if self.how.trim else names

    def scan(self) -> pl.LazyFrame:
        """All columns; nothing is read yet."""
        if self.frame is not None:
            return self.frame
        # Every value is read as text: inferring types would look at the data. A line with too many
        # fields is read as far as it goes, because whether a release succeeds must not depend on
        # the records. Names are given to the columns afterwards: polars would change them. The
        # first line is ours, because polars treats it otherwise than all others: it passes over
        # empty lines and a byte order mark there, and looks whether it is compressed.
        scan = pl.scan_csv(
            self.path,
            separator=self.table.separator,
            has_header=True,
            schema={str(position): pl.String() for position in range(len(self.header))},
            null_values=[""],
            truncate_ragged_lines=True,
            raise_if_empty=False,
            glob=False,
        )
        nameless = self.kind == WORKBOOK or self.header.count("") > 1
        return scan.select(
            pl.col(str(position)).alias(column)
            for position, column in enumerate(self.header)
            if column or not nameless
        )

    def schema(self) -> pl.Schema:
        """The names and types of all columns; raises `FileError` for a file that cannot be read."""
        try:
            return self.scan().collect_schema()
        except (pl.exceptions.PolarsError, OSError):
            raise FileError(
                f"data={self.name}: cannot be read as {self.kind}; check that it is what its"
                " extension says."
            ) from None

    def complete(self) -> None:
        """Copy the records of text before anything is released.

        Raises
        ------
        FileError
            For what is no text in its encoding: what stands for an invalid character would be a
            value that no category has.
        """
        if self.table is None:
            return
        with text_errors(self.name, self.encoding), self.path.open("wb") as copy:
            copy.write(_FIRST_LINE)
            self.table.copy(copy)

    def labels(self, column: str) -> dict[str, str]:
        """The value labels of a column by their codes as text, as values are read."""
        labels = {} if self.table is None else self.table.labels.get(column, {})
        return {code: label.strip() if self.how.trim else label for code, label in labels.items()}

    def codebook(self, column: str, steps: Steps) -> list[str]:
        """The value labels of a column, in the order of their codes, but for those of codes that
        stand for no value.
        """
        none = self.how.codes(steps)
        labels = self.labels(column).items()
        return distinct([label for code, label in labels if code not in none and label not in none])


def source(path: Path, how: Reading = _AS_IT_IS) -> Source:
    """Choose how to read a file by its extension; standard input is CSV, and a folder is Parquet.

    Raises
    ------
    FileError
        For an unknown extension and a path that is no file, and raises `ValueError` for what does
        not go with such a file.
    """
    several = path.is_dir()
    file = "-.csv" if path == STANDARD_INPUT else ".parquet" if several else path.name.lower()
    extension = next((ending for ending in EXTENSIONS if file.endswith(ending)), "")
    if not extension:
        raise FileError(
            f"data={path}: has extension {path.suffix!r}; must be one of {', '.join(EXTENSIONS)}."
            " Convert the file, a workbook to .xlsx, and others as R does by"
            " arrow::write_parquet(frame, 'survey.parquet'); or rename it to what it is."
        )
    if path != STANDARD_INPUT and not several and not path.is_file():
        raise FileError(f"data={path}: is not a file; check the path.")
    kind = EXTENSIONS[extension]
    for option, kinds in (
        ("separator", ("CSV",)),
        ("encoding", ("CSV", *STATISTICAL)),
        ("rows_above", ("CSV", WORKBOOK)),
        ("skip_rows", ("CSV", WORKBOOK)),
        ("labels", ("SAS",) if isinstance(how.labels, str) else LABELLED),
        ("sheet", (WORKBOOK,)),
    ):
        value = getattr(how, option)
        if value not in (None, False) and kind not in kinds:
            of_sas = ", or name the catalogue with the labels, labels='formats.sas7bcat'"
            raise ValueError(
                f"{option}={value!r}: is for {' and '.join(kinds)}, and {path.name} is {kind};"
                f" leave it out{of_sas if option == 'labels' and kind == 'SAS' else ''}."
            )
    check_text(how.separator, how.encoding)
    frame = scan_files(path) if extension in KINDS else None
    return Source(path, _PIPED if path == STANDARD_INPUT else path.name, extension, how, frame)


@contextmanager
def scannable(data: Source) -> Iterator[Source]:
    """A source that can be read more than once: of text a copy in UTF-8, a temporary file, which
    only its owner can read and which is removed after the block, or with the process.

    Until `complete` nothing is released of what was read, so that what is wrong about options and
    columns is found before.
    """
    if data.frame is not None:
        yield data
        return
    with ExitStack() as opened:
        if data.kind == "CSV":
            table = _csv(data, opened)
        elif data.kind == WORKBOOK:
            from opendp_bayes_office.files.workbooks import workbook_table

            table = workbook_table(data.path, data.name, data.how)
        else:
            table = statistical_table(
                data.path, data.name, data.kind, data.encoding, labels=data.how.labels
            )
        data = replace(data, table=table, path=opened.enter_context(TemporaryFile()))
        names = list(filter(None, data.header))
        if len(set(names)) < len(names):  # which it is, is not said: it may be somebody's value
            raise FileError(
                f"data={data.name}: two of its columns have one name; rename all but one."
            )
        yield data


def _csv(data: Source, opened: ExitStack) -> Table:
    """The table of a text whose header has been read, which is closed with what is opened."""
    how, encoding = data.how, data.encoding
    with text_errors(data.name, encoding):
        file: Any = (
            sys.stdin.buffer if data.name == _PIPED else opened.enter_context(data.path.open("rb"))
        )
        stream: Any = file if hasattr(file, "peek") else io.BufferedReader(file)
        text = opened.enter_context(decoded(stream, encoding))
        lines = [header_of(text) for _ in range(how.rows_above + 1 + how.skip_rows)]
    usual = "\t" if data.extension.startswith(".tsv") else ","
    try:
        separator = as_separator(how.separator or usual, encoding)
        names = values_of(lines[how.rows_above], separator, trim=how.trim)
    except ValueError as error:
        raise FileError(f"data={data.name}: {error}") from None
    except csv.Error:
        names = []
    if not names:
        raise FileError(
            f"data={data.name}: cannot be read as CSV; its first line must name the columns."
        )
    return Table(
        tuple(names), partial(copy_records, text, separator=separator, trim=how.trim), separator
    )


def read(
    path: str | PathLike[str],
    *,
    labels: bool | str | PathLike[str] = False,
    sheet: str | None = None,
) -> pl.DataFrame:
    """The records of a file, one line one record. Types are those that the file states: text, where
    it states none.

    Parameters
    ----------
    path : str or path
        The file, whose extension says what it is.
    labels : bool, str or path
        Whether codes of SPSS and Stata become their value labels; of SAS, the catalogue of these.
    sheet : str, optional
        Of a workbook, the name of the sheet; it may be left out where there is one.

    Raises
    ------
    ValueError
        For a file that cannot be read.
    """
    catalogue = labels if isinstance(labels, bool) else str(Path(labels).absolute())
    with scannable(source(Path(path), Reading(labels=catalogue, sheet=sheet))) as opened:
        opened.complete()
        frame = opened.scan()
        if opened.table is not None:
            coded = {column: opened.labels(column) for column in opened.table.labels}
            frame = opened.table.typed(frame).with_columns(
                column_named(column).replace(texts) for column, texts in coded.items()
            )
        return frame.collect()


def kinds_of(data: Source, columns: Sequence[str] | None = None) -> dict[str, ColumnKind]:
    """Describe these columns, or all, as values are counted: dates are text, as in CSV, 2026-05-01.

    Raises
    ------
    FileError
        For one that is not there.
    """
    schema = data.schema()
    for column in columns or ():
        if column not in schema:
            _refuse_absent(data, schema, column)
    return {
        column: kind_of(pl.String() if schema[column] == pl.Date else schema[column])
        for column in (schema if columns is None else columns)
    }


def frame_of(
    data: Source, columns: Mapping[str, Steps], identifier: str | None = None
) -> pl.LazyFrame:
    """These columns as text, or as an Enum where the type says which values there are, after what
    is done to each value by itself: blanks around it, codes for none, value labels, recodes. Those
    of an identifier are persons, whatever code they are.

    Raises
    ------
    FileError
        For a file that cannot be read, and a column that is not there or is of another type.
    """
    persons = [] if identifier is None else [identifier]
    kinds = kinds_of(data, [*columns, *persons])
    values = {
        column: _cleaned(data, column, kinds[column], steps) for column, steps in columns.items()
    }
    values |= {column: _as_text(data, column, kinds[column]) for column in persons}
    return data.scan().select(value.alias(column) for column, value in values.items())


def _as_text(data: Source, column: str, kind: ColumnKind) -> pl.Expr:
    """The values of a column as text, without blanks around them where that is so. A Categorical
    is text, too, because its encoding depends on the data.
    """
    if kind.kind == "other":
        raise FileError(
            f"column {column!r} of {data.name} has type {kind.type}; must be text, Enum, Boolean,"
            f" integer or date. {how_to_cast(kind.type, column, 'before')}"
        )
    value = column_named(column).cast(pl.String, strict=False)
    if not data.how.trim:
        return value
    value = value.str.strip_chars()
    return pl.when(value != "").then(value)


def _cleaned(data: Source, column: str, kind: ColumnKind, steps: Steps) -> pl.Expr:
    """The values of a column after all that is done to each."""
    value, codes = _as_text(data, column, kind), data.how.codes(steps)
    label = value.replace(data.labels(column))
    label = pl.when(~(value.is_in(codes) | label.is_in(codes))).then(label)
    declared = ("true", "false") if kind.kind == "boolean" else kind.declared
    if declared is None or steps.recode:
        return label.replace(steps.recoded)
    return label.cast(pl.Enum([text for text in declared if text not in codes]), strict=False)


def _refuse_absent(data: Source, schema: pl.Schema, column: str) -> None:
    """Raise `FileError` for a column that is not there. Without a header line the names are
    somebody's record, so they are not shown.
    """
    where = f"column {column!r} is not in"
    if not data.may_lack_header:
        names = ", ".join(map(repr, schema))
        raise FileError(f"{where} {data.name}; must be one of {names}.")
    line, mark = "row", ""
    if data.kind == "CSV":
        line, mark = "line", f", and --separator, which is {data.table.separator!r}"
    raise FileError(
        f"{where} the first {line} of {data.name}, which must name the columns; check spelling,"
        f" capitals and blanks{mark}. Where {line}s stand above the names, count them:"
        " --rows-above 1."
    )
