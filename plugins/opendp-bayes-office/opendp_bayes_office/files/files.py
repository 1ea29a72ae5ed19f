"""The columns of a file, as a scan: nothing is read but their names and types."""

import csv
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TextIO

import polars as pl

from opendp_bayes.mathematics.telling import meant, told
from opendp_bayes.release_format.casts import how_to_cast
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.labels import distinct, twins
from opendp_bayes.trusted.kinds import (
    COMPARED_AS,
    TYPE_OF,
    ColumnKind,
    column_named,
    is_pattern,
    kind_of,
)
from opendp_bayes.trusted.scanned_files import KINDS, scan_files
from opendp_bayes.trusted.temporary_files import TemporaryFile
from opendp_bayes_office.files.csv_text import (
    FileError,
    copy_records,
    decoded,
    decoded_input,
    header_of,
    text_errors,
    values_of,
)
from opendp_bayes_office.files.encodings import UTF_8, as_encoding, as_separator
from opendp_bayes_office.files.tables import (
    LABELLED,
    STATISTICAL,
    WORKBOOK,
    Table,
    statistical_table,
    workbook_table,
)

EXTENSIONS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".csv.gz": "CSV",
    ".tsv.gz": "CSV",
    ".csv.zst": "CSV",
    ".tsv.zst": "CSV",
    **KINDS,
    ".sav": "SPSS",
    ".zsav": "SPSS",
    ".por": "SPSS",
    ".dta": "Stata",
    ".sas7bdat": "SAS",
    ".xpt": "SAS",
    ".xlsx": WORKBOOK,
    ".xlsm": WORKBOOK,
    ".ods": WORKBOOK,
}
#: Where labels of SAS are.
_OF_SAS = ", or name the catalogue of SAS with the labels, labels='formats.sas7bcat'"
#: What R alone reads, and workbooks of binary forms.
_OF_R, _BINARY = (".rds", ".rda", ".rdata"), (".xlsb", ".xls")
STANDARD_INPUT = Path("-")
#: Integers with values that Int64 does not have, and what stands for these: another value, and
#: not none.
_WIDE, _BEYOND = (pl.UInt64, pl.Int128, pl.UInt128), -(2**63)
#: What messages call it.
_PIPED = "standard input"
#: What a copy of text begins with, in place of names.
_FIRST_LINE = b"_\n"
_NEVER = "can never be a value"
_REMEDY = "write it as the file has it, or leave it out."
#: Ends with what is wrong about a column: its name, and the problem.
Refuse = Callable[[str, str], NoReturn]


@dataclass(frozen=True)
class Cleaning:
    """Steps that change each value of a file by itself, by the word of whoever owns the data.

    Attributes
    ----------
    trim : bool
        Leave out blanks around every text, and around the names of CSV.
    null_values : tuple[str or int or bool, ...]
        Texts and whole numbers that stand for no value, in columns of their type.
    of_columns : Mapping[str, tuple[str or int or bool, ...]]
        The same for columns by name.
    keep_blank : bool
        Whether an empty line of CSV is a record without a value.
    labels : bool or str
        Whether codes of SPSS and Stata become their value labels; of SAS, the catalogue that has
        them, from the folder of the file.
    """

    trim: bool = False
    null_values: tuple[Value, ...] = ()
    of_columns: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    keep_blank: bool = False
    labels: bool | str = False


@dataclass(frozen=True)
class Source:
    """A file, and how it is read.

    Attributes
    ----------
    path : Path
        Where it is; of text, in `scannable`, where its records are copied to.
    frame : LazyFrame or None
        Of Parquet and Arrow, their columns.
    name : str
        What messages call it.
    extension : str
        In `EXTENSIONS`.
    separator : str or None
        Between the values of a line of CSV; None for that of the file.
    encoding : str
        Of its text; "" for what a file of SPSS, Stata or SAS says.
    header : tuple[str, ...]
        Of text, the names of its columns in their order.
    rest : TextIO or None
        Of CSV that is being read, what follows the header.
    table : Table or None
        Of what else is read as text, its table.
    cleaning : Cleaning
        What is done to each value.
    sheet : str or None
        Of a workbook, the name of the sheet; None for the only one.
    """

    path: Path
    name: str
    extension: str
    separator: str | None = None
    encoding: str = UTF_8
    header: tuple[str, ...] = ()
    rest: TextIO | None = None
    table: Table | None = None
    cleaning: Cleaning = Cleaning()
    sheet: str | None = None
    frame: pl.LazyFrame | None = None

    @property
    def title(self) -> str:
        """Its name without the extension."""
        return re.sub(rf"{re.escape(self.extension)}$", "", self.name, flags=re.IGNORECASE)

    @property
    def kind(self) -> str:
        return EXTENSIONS[self.extension]

    @property
    def is_text(self) -> bool:
        """True if all its values are read as text."""
        return self.extension not in KINDS

    @property
    def may_lack_header(self) -> bool:
        """True if what stands for the names of its columns may be a record."""
        return self.kind in ("CSV", WORKBOOK)

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
            separator=self.separator or "",
            has_header=True,
            schema={str(at): pl.String() for at in range(len(self.header))},
            null_values=[""],
            truncate_ragged_lines=True,
            raise_if_empty=False,
            glob=False,
        )
        nameless = self.kind == WORKBOOK or self.header.count("") > 1
        return scan.select(
            pl.col(str(at)).alias(name)
            for at, name in enumerate(self.header)
            if name or not nameless
        )

    def complete(self) -> None:
        """Copy the records of text before anything is released.

        Raises
        ------
        FileError
            For what is no text in its encoding: what stands for an invalid character would be a
            value that no category has.
        """
        if self.table is None and self.rest is None:
            return
        with text_errors(self.name, self.encoding), self.path.open("wb") as copy:
            copy.write(_FIRST_LINE)
            if self.table is not None:
                self.table.copy(copy)
            elif self.rest is not None and self.separator is not None:
                how = self.cleaning
                copy_records(
                    self.rest, copy, self.separator, trim=how.trim, keep_blank=how.keep_blank
                )


def source(
    path: Path,
    separator: str | None,
    encoding: str | None = None,
    cleaning: Cleaning = Cleaning(),
    sheet: str | None = None,
    *,
    glob: bool = False,
) -> Source:
    """Choose how to read FILE by its extension; standard input is CSV, and a folder is Parquet, as
    are all files whose paths match FILE where it is a `glob`.

    Raises
    ------
    FileError
        For an unknown extension and a path that is no file, and raises `ValueError` for what does
        not go with such a file.
    """
    several = glob or path.is_dir()
    name = ".parquet" if several else path.name.lower()
    known = (extension for extension in EXTENSIONS if name.endswith(extension))
    extension = ".csv" if path == STANDARD_INPUT else next(known, "")
    if name.endswith(_OF_R):
        raise FileError(
            f"FILE {path}: is read by R alone. Write it there as Parquet,"
            " arrow::write_parquet(frame, 'survey.parquet'), or as CSV, write.csv(frame,"
            " 'survey.csv', row.names = FALSE, na = '')."
        )
    if name.endswith(_BINARY):
        raise FileError(
            f"FILE {path}: is a workbook of a binary form, which is not read; save it as .xlsx or"
            " CSV."
        )
    if not extension:
        raise FileError(
            f"FILE {path}: has extension {path.suffix!r}; must be one of {', '.join(EXTENSIONS)}."
            " Convert the file, or rename it to what it is."
        )
    if path != STANDARD_INPUT and not several and not path.is_file():
        raise FileError(f"FILE {path}: is not a file; check the path.")
    found = Source(path, path.name, extension, cleaning=cleaning, sheet=sheet)
    catalogued = isinstance(cleaning.labels, str)
    for option, given, kinds in (
        ("separator", separator, ("CSV",)),
        ("encoding", encoding, ("CSV", *STATISTICAL)),
        ("blank_lines", "null" if cleaning.keep_blank else None, ("CSV",)),
        ("labels", cleaning.labels or None, ("SAS",) if catalogued else LABELLED),
        ("sheet", sheet, (WORKBOOK,)),
    ):
        if given is not None and found.kind not in kinds:
            *others, last = ["workbooks" if of == WORKBOOK else of for of in kinds]
            known_to = f"{', '.join(others)} and {last}" if others else last
            raise ValueError(
                f"{option}={given!r}: is for {known_to}, and {path.name} is {found.kind}; leave it"
                f" out{_OF_SAS if given is True and found.kind == 'SAS' else ''}."
            )
    if encoding is not None:
        found = replace(found, encoding=as_encoding(encoding))
    elif found.kind in STATISTICAL:
        found = replace(found, encoding="")
    if separator is not None:
        found = replace(found, separator=as_separator(separator, found.encoding))
    if found.is_text:
        return found
    try:
        return replace(found, frame=scan_files(path, glob=glob))
    except ValueError as error:
        problem = str(error).replace("data=", "FILE ", 1)
    raise FileError(problem)


@contextmanager
def scannable(found: Source) -> Iterator[Source]:
    """A source that can be read more than once: of text a copy in UTF-8, a temporary file, which
    only its owner can read and which is removed after the block, or with the process.

    Until `complete` nothing is read of text but the header, and what a file says of its columns, so
    that what is wrong about options and columns is found before the records have come.
    """
    if not found.is_text:
        yield found
        return
    if found.kind != "CSV":
        table = _table(found)
        called = tuple(map(str.strip, table.header)) if found.cleaning.trim else table.header
        _check_differ(found, called)
        with TemporaryFile() as copy:
            yield replace(found, path=copy, separator=",", header=called, table=table)
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
            header, said = header_of(text)
        usual = "\t" if found.extension.startswith(".tsv") else ","
        try:
            separator = found.separator or as_separator(said or usual, found.encoding)
            names = values_of(header, separator, trim=found.cleaning.trim)
            names = [name.strip() for name in names] if found.cleaning.trim else names
        except ValueError as error:
            raise FileError(f"FILE {found.name}: {error}") from None
        except csv.Error:
            names = []
        if not names:
            raise FileError(
                f"FILE {'-: standard input' if piped else f'{found.name}:'} cannot be read as CSV;"
                " its first line must name the columns."
            )
        _check_differ(found, names)
        copy = opened.enter_context(TemporaryFile())
        yield replace(found, path=copy, separator=separator, header=tuple(names), rest=text)


def _check_differ(found: Source, names: Sequence[str]) -> None:
    """Raise `FileError` for two columns of one name. Which it is, is not said: without a header, it
    is somebody's value.
    """
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise FileError(f"FILE {found.name}: two of its columns have one name; rename all but one.")


def _table(found: Source) -> Table:
    """The table of a file that is read as text and is no CSV."""
    if found.kind == WORKBOOK:
        return workbook_table(found.path, found.name, found.sheet)
    labels = found.cleaning.labels
    return statistical_table(found.path, found.name, found.kind, found.encoding, labels=labels)


def _labels(found: Source, column: str) -> dict[str, str]:
    """The value labels of a column by their codes as text, as values are read."""
    labels = {} if found.table is None else found.table.labels.get(column, {})
    trim = found.cleaning.trim
    return {code: label.strip() if trim else label for code, label in labels.items()}


def understood(found: Source, column: str, value: Value) -> Value:
    """A value that somebody names, as the records have it: where all values are text, a whole
    number is text, too, and a code that the file describes is its label.

    Raises
    ------
    ValueError
        For a text that is a code, and the label of another one.
    """
    if not found.is_text or isinstance(value, bool):
        return value
    labels, text = _labels(found, column), str(value)
    label = labels.get(text, text)
    if label != text and isinstance(value, str) and text in labels.values():
        raise ValueError(
            f"{told(value)}: is a code, and the label of another one; write the code that is meant"
            " as a whole number."
        )
    return label


def null_codes(found: Source, column: str, of: type[Value] = str) -> list[Value]:
    """The values of a column of such a type that stand for none."""
    how = found.cleaning
    codes = (*how.of_columns.get(column, ()), *how.null_values)
    return [understood(found, column, code) for code in codes if found.is_text or type(code) is of]


def codebook(found: Source) -> dict[str, list[str]]:
    """The value labels of columns by name, in the order of their codes, as values are read."""
    book = {}
    for name in {} if found.table is None else found.table.labels:
        none = null_codes(found, name)
        book[name] = distinct([of for of in _labels(found, name).values() if of not in none])
    return book


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
    try:
        how = labels if isinstance(labels, bool) else str(Path(labels).absolute())
        found = source(Path(path), None, cleaning=Cleaning(labels=how), sheet=sheet)
        with scannable(found) as opened:
            opened.complete()
            frame = opened.scan()
            return (frame if opened.table is None else opened.table.typed(frame)).collect()
    except FileError as error:
        problem = str(error).replace("FILE ", "data=", 1)
    raise ValueError(problem)


def schema_of(found: Source) -> pl.Schema:
    """The names and types of all columns; raises `FileError` for a file that cannot be read."""
    try:
        return found.scan().collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(
            f"FILE {found.name}: cannot be read as {found.kind}; check that it is what its"
            " extension says."
        ) from None


def scan_columns(
    found: Source, columns: Sequence[str], refuse: Refuse, identifier: str | None = None
) -> pl.LazyFrame:
    """These columns, each as Enum, String, Boolean or Int64, which stands for every integer type.

    An identifier of integers that need not fit in Int64 becomes text: all beyond it would be null,
    and so one person. `refuse` is told of a column that is not there or is of another type.

    Raises
    ------
    FileError
        For a file that cannot be read.
    """
    schema = schema_of(found)
    types = {column: _plain_type(found, schema, column, refuse) for column in columns}
    if identifier is not None and schema[identifier] in _WIDE:
        types[identifier] = pl.String()
    values = {name: _value(found, name, of, refuse) for name, of in types.items()}
    _check_codes(found, schema, columns, refuse)
    if identifier is not None:  # whose codes are persons
        values[identifier] = _text(found, identifier, types[identifier])
    values |= {name_in_plan(name): of for name, of in values.items()}
    return found.scan().select(of.alias(name) for name, of in values.items())


def _text(found: Source, name: str, dtype: pl.DataType) -> pl.Expr:
    """The values of a column in a type, of text without blanks around them where that is so."""
    given = column_named(name)
    value = given.cast(dtype, strict=False)
    if dtype == pl.Int64:
        value = pl.when(value.is_null() & given.is_not_null()).then(_BEYOND).otherwise(value)
    if not (found.cleaning.trim and dtype == pl.String):
        return value
    value = value.str.strip_chars()
    return pl.when(value != "").then(value) if found.is_text else value


def _value(found: Source, name: str, dtype: pl.DataType, refuse: Refuse) -> pl.Expr:
    """The values of a column in a type, without those that stand for none."""
    of = TYPE_OF[kind_of(dtype).kind]
    for code in found.cleaning.of_columns.get(name, ()):
        if type(code) is not of and not found.is_text:
            refuse(name, f"null_values={told(code)}: must be {of.__name__}, as the column is.")
    codes = null_codes(found, name, of)
    if isinstance(dtype, pl.Enum):
        dtype = pl.Enum([label for label in dtype.categories if label not in codes])
    value = _text(found, name, dtype)
    if isinstance(dtype, pl.Enum) or not codes:
        return value
    return pl.when(~value.is_in([of(code) for code in codes])).then(value)


def _check_codes(found: Source, schema: pl.Schema, columns: Sequence[str], refuse: Refuse) -> None:
    """Refuse a code for no value that can never be there, by what the file says of its columns."""
    how = found.cleaning
    for name in columns:
        for code in how.of_columns.get(name, ()):
            if not _can_be(found, schema, name, code):
                refuse(name, f"null_values={told(code)}: {_NEVER} in this column; {_REMEDY}")
    for code in how.null_values:
        if not any(_can_be(found, schema, name, code) for name in schema):
            problem = f"null_values={told(code)}: {_NEVER} in any of its columns; {_REMEDY}"
            raise FileError(f"FILE {found.name}: {problem}")


def _can_be(found: Source, schema: pl.Schema, name: str, code: Value) -> bool:
    """False if the description of a column says that no value of it is this one."""
    if found.is_text:
        form = None if found.table is None else found.table.forms.get(name)
        labels, text = _labels(found, name), str(code)
        known = form is None or re.fullmatch(form, text) is not None
        return known or text in labels.values() or text in labels
    dtype: Any = schema[name]
    if type(code) is not TYPE_OF.get(_kind_in_file(dtype).kind):
        return False
    if isinstance(dtype, pl.Enum):
        return code in dtype.categories
    if isinstance(code, int):
        least, most = pl.select(least=dtype.min(), most=dtype.max()).row(0)
        return bool(least <= code <= most)
    return True


def name_in_plan(name: str) -> str:
    """The name by which a plan may mean a column of `scan_columns`, which has those columns twice
    that polars takes for patterns.
    """
    return f"{name} (by name)" if is_pattern(name) else name


def named_columns(
    found: Source, columns: Sequence[str] | None, refuse: Refuse
) -> dict[str, ColumnKind]:
    """Describe these columns, or all; `refuse` is told of one that is absent."""
    schema = schema_of(found)
    for column in schema if columns is None else columns:
        _check_in(found, schema, column, refuse)
    return {name: _kind_in_file(schema[name]) for name in (schema if columns is None else columns)}


def _kind_in_file(dtype: pl.DataType) -> ColumnKind:
    """Describe a column of a file, whose dates are text, as in CSV: 2026-05-01."""
    return kind_of(pl.String() if dtype == pl.Date else dtype)


def _check_in(found: Source, schema: pl.Schema, column: str, refuse: Refuse) -> None:
    """Refuse a column that is not there."""
    if column not in schema:
        # Without a header line the names are somebody's record, so they are not shown.
        if found.kind == "CSV":
            refuse(
                column,
                f"is not in the first line of {found.name}, which must name the columns; check the"
                f" spelling, the header and the separator ({found.separator!r})."
                + _near(column, schema),
            )
        if found.kind == WORKBOOK:
            refuse(
                column,
                f"is not in the first row of {found.name}, which must name the columns; check the"
                f" spelling and the header.{_near(column, schema)}",
            )
        known = ", ".join(map(repr, schema))
        refuse(column, f"is not in {found.name}; must be one of {known}.")


def _near(column: str, schema: pl.Schema) -> str:
    """A sentence on a name that is there and nearly the one that is asked for."""
    if any(twins([column, name]) for name in schema):
        return (
            " A name there differs from it in nothing but blanks around it or the form of Unicode."
        )
    return " A name there is spelled much like it." if meant(column, schema) else ""


def _plain_type(found: Source, schema: pl.Schema, column: str, refuse: Refuse) -> pl.DataType:
    """The type in which a column is counted. A Categorical becomes text, because its encoding
    depends on the data.
    """
    _check_in(found, schema, column, refuse)
    known = _kind_in_file(schema[column])
    if known.kind == "other":
        refuse(
            column,
            f"has type {known.type}; must be text, Enum, Boolean, integer or date."
            f" {how_to_cast(known.type, column, 'before')}",
        )
    return COMPARED_AS[known.kind] if known.declared is None else schema[column]
