"""Tables of files: what is known of their columns before a record is read, and their records as
text, each value by itself. Those of SPSS, Stata and SAS, as pyreadstat reads them.

No type is taken from values. A number that is whole is written without a point, whatever else is
in its column, so that 1.0 is 1.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import polars as pl

from opendp_bayes.trusted.boundary import silenced
from opendp_bayes.trusted.kinds import column_named
from opendp_bayes_office.files.csv_text import FileError

#: By extension, the function of pyreadstat that reads a file.
_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
STATISTICAL = ("SPSS", "Stata", "SAS")
#: Kinds of files that hold value labels; SAS keeps them in a catalogue.
LABELLED = ("SPSS", "Stata")
WORKBOOK = "a workbook"
#: Records of SPSS, Stata and SAS that are in memory at a time.
_BATCH = 50_000
#: Formats of numbers that are dates, those that are times of a day, and those that are whole.
_DATES = {
    "SPSS": r"([AEJS]?DATE|QYR|MOYR|WKYR)\d*",
    "Stata": r"%-?t?d.*",
    "SAS": (
        r"((E|B|IS)8601DA|(DDMM|MMDD)YY[BCDNPS]?|YYMMDD[BCDNPS]?|(MMYY|YYMM)[CDNPS]?|YYQR?[CDNPS]?"
        r"|DATE|DAY|DOWNAME|JULDAY|JULIAN|MONNAME|MONTH|MONYY|QTRR?|WEEKDAT[EX]|WEEKDAY|WORDDAT[EX]"
        r"|YEAR|YYMON)[\d.]*"
    ),
}
_TIMES = {
    "SPSS": r"(DATETIME|YMDHMS)[\d.]*",
    "Stata": r"%-?t[cC].*",
    "SAS": r"(DATETIME|DATEAMPM|(E|B|IS)8601DT|DT(DATE|MONYY|WKDATX|YEAR|YYQC))[\d.]*",
}
_WHOLE = {"SPSS": r"[FN]\d+(\.0)?", "Stata": r"(?!)", "SAS": r"F?\d+(\.0)?"}
#: The day from which they count, in days from 1970, and the milliseconds in what they count.
_FROM = {"SPSS": -141_428, "Stata": -3_653, "SAS": -3_653}
_DAY = 86_400_000
#: Days from 1970 of the first day of the year 1 and the last one of 9999.
_YEARS = (-719_162, 2_932_896)
_DAYS_AS, _TIMES_AS = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S"
#: The most rows of a sheet, as in Excel and LibreOffice.
MOST_ROWS = 1 << 20
T = TypeVar("T")


class TooLargeError(Exception):
    """A workbook has more than is read."""


@dataclass(frozen=True)
class Table:
    """A table of which no record is read yet.

    Attributes
    ----------
    header : tuple[str, ...]
        The names of its columns in their order; "" for one without a name.
    copy : Callable[[BinaryIO], None]
        Writes the records to a file, as lines of CSV in UTF-8, all values as text.
    separator : str, default ","
        Between the values of such a line.
    types : Mapping[str, DataType]
        Of columns by name, as the file describes them; all others are text.
    labels : Mapping[str, Mapping[str, str]]
        Of columns by name, the value labels by their codes, as text and in order, without those of
        codes that stand for no value.
    """

    header: tuple[str, ...]
    copy: Callable[[BinaryIO], None]
    separator: str = ","
    types: Mapping[str, pl.DataType] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def typed(self, text: pl.LazyFrame) -> pl.LazyFrame:
        """The columns in their types, row by row; what does not fit is null."""
        return text.with_columns(
            column_named(column).str.to_datetime(_TIMES_AS, time_unit="ms", strict=False)
            if dtype == pl.Datetime("ms")
            else column_named(column).cast(dtype, strict=False)
            for column, dtype in self.types.items()
            if column not in self.labels
        )


def withheld(read: Callable[[], T], file: str, kind: str) -> T:
    """Read a file, with any error withheld and dropped: it may show a value."""
    problem = (
        f"cannot be read as {kind}; check that it is what its extension says, and that its text is"
        " in the encoding that it says or that --encoding or encoding = 'latin-1' names"
    )
    try:
        with silenced():
            return read()
    except (KeyboardInterrupt, SystemExit):
        raise
    except TooLargeError:
        problem = (
            f"is larger than a sheet that is read, of at most {MOST_ROWS} rows. Leave out what"
            " stands far from the table, or save the sheet as CSV"
        )
    except BaseException:  # noqa: BLE001, S110 - a panic of another library is no Exception
        pass
    raise FileError(f"data={file}: {problem}.")


def statistical_table(
    path: Path, file: str, kind: str, encoding: str = "", *, labels: bool | str = False
) -> Table:
    """The table of a file of SPSS, Stata or SAS, of which the description alone is read.

    Parameters
    ----------
    path : Path
        Of the file.
    file : str
        What messages call it.
    kind : str
        In `STATISTICAL`.
    encoding : str, default ""
        Of its texts, as Python calls it; "" for what the file says.
    labels : bool or str, default False
        Whether a code becomes its value label; of SAS, the catalogue that has them, from the folder
        of the file. A code without a label stays as it is.

    Raises
    ------
    FileError
        For a file that cannot be read, and a catalogue that has no labels of the columns.
    """
    import pyreadstat

    named = codecs.lookup(encoding).name.upper() if encoding else None
    options: dict[str, Any] = {"output_format": "dict", "encoding": named}  # no frame of pandas
    read = partial(
        getattr(pyreadstat, _READERS[path.suffix.lower()]),
        str(path),
        disable_datetime_conversion=True,
        **options,
    )
    # So that what stands for no value is described.
    ranges = {"user_missing": True} if kind in LABELLED else {}
    described = withheld(lambda: read(metadataonly=True, **ranges)[1], file, kind)
    if isinstance(labels, str):
        catalogue = partial(pyreadstat.read_sas7bcat, str(path.parent / labels), **options)
        _, formats = withheld(catalogue, labels, "a catalogue of SAS")
        described.variable_value_labels = {
            column: formats.value_labels[form]
            for column, form in described.variable_to_label.items()
            if form in formats.value_labels
        }
        if not described.variable_value_labels:
            raise FileError(
                f"data={labels}: has labels for none of the columns of {file}; name the catalogue"
                " with its formats."
            )
    columns = [_Column.described(kind, described, column) for column in described.column_names]

    def batch(start: int) -> pl.DataFrame:
        records, _ = read(row_offset=start, row_limit=_BATCH)
        return pl.DataFrame([column.text(records[column.name]) for column in columns])

    def copy(target: BinaryIO) -> None:
        start, height = 0, _BATCH
        while height == _BATCH:
            rows = withheld(partial(batch, start), file, kind)
            rows.write_csv(target, include_header=False)
            start, height = start + _BATCH, rows.height

    return Table(
        tuple(described.column_names),
        copy,
        types={column.name: column.type for column in columns},
        labels={column.name: column.coded for column in columns if labels and column.labels},
    )


@dataclass(frozen=True)
class _Column:
    """A column of a file, as the file describes it.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
        Of the file.
    type : DataType
        Of its values.
    bits : int
        Of its numbers.
    labels : Mapping[Any, str]
        Of the codes that stand for a value.
    """

    name: str
    kind: str
    type: pl.DataType
    bits: int
    labels: Mapping[Any, str]

    @classmethod
    def described(cls, kind: str, described: Any, column: str) -> "_Column":
        """The column of this name in what pyreadstat says of a file."""
        stored = described.readstat_variable_types[column]
        written = described.original_variable_types.get(column) or ""
        forms = {pl.Date(): _DATES, pl.Datetime("ms"): _TIMES, pl.Int64(): _WHOLE}
        dtype: pl.DataType = next(
            (dtype for dtype, forms in forms.items() if re.fullmatch(forms[kind], written)),
            pl.Float64(),
        )
        if stored == "string":
            dtype = pl.String()
        elif stored.startswith("int") and not dtype.is_temporal():
            dtype = pl.Int64()
        missing = described.missing_ranges.get(column, []) if kind == "SPSS" else []
        labels = {
            (code.rstrip(" ") if isinstance(code, str) else code): label
            for code, label in described.variable_value_labels.get(column, {}).items()
            if isinstance(code, str) == (stored == "string")  # Stata's .a is 'a'
            and label.strip()
            and not any(extent["lo"] <= code <= extent["hi"] for extent in missing)
        }
        bits = 32 if stored == "float" else 64
        return cls(column, kind, dtype, bits, {code: labels[code] for code in sorted(labels)})

    @property
    def coded(self) -> dict[str, str]:
        """The labels by their codes as text."""
        return dict(zip(self.text(list(self.labels)), self.labels.values(), strict=True))

    def text(self, values: list[Any]) -> pl.Series:
        """Values as text, each by itself."""
        kind = pl.String() if self.type == pl.String() else pl.Float64()
        value = column_named(self.name)
        # A text is filled up with blanks.
        text = value.str.strip_chars_end(" ") if kind == pl.String() else self._number(value)
        series = pl.Series(self.name, values, kind, strict=False)
        return series.to_frame().select(text).to_series()

    def _number(self, value: pl.Expr) -> pl.Expr:
        """Numbers as text; those of dates and times as these are written in ISO 8601."""
        if not self.type.is_temporal():
            whole = pl.when((value == value.floor()) & (value.abs() < 2**63)).then(value)
            plain = value.cast(pl.Float32) if self.bits == 32 else value
            written = whole.cast(pl.Int64, strict=False).cast(pl.String)
            return written.fill_null(pl.when(value.is_finite()).then(plain).cast(pl.String))
        in_days = self.type == pl.Date() and self.kind != "SPSS"
        a_day = 1 if in_days else {"SPSS": 86_400, "Stata": _DAY, "SAS": 86_400}[self.kind]
        days = (value / a_day).floor()
        within = ((value - days * a_day) * (_DAY // a_day)).floor()
        days = days + _FROM[self.kind]
        moment = pl.when(days.is_between(*_YEARS)).then(days * _DAY + within)
        form = _DAYS_AS if self.type == pl.Date() else _TIMES_AS
        return moment.cast(pl.Int64, strict=False).cast(pl.Datetime("ms")).dt.to_string(form)
