"""Odd values of every kind in files of every kind, read with every two options that go together:
what is read is what stands in `every_reading.json`, where it can be looked at.
"""

import csv
import datetime
import io
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import xlsxwriter

from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.files import EXTENSIONS
from tests.helpers.asked_of_files import records_of
from tests.helpers.recorded import as_recorded

pyreadstat = pytest.importorskip("pyreadstat")
RECORDED = Path(__file__).with_name("every_reading.json")
TEXTS = ["a", " a", "a ", "a\t", "\ta", "a  b", "NA", "na", "-1", "01", "1.0", "1e3", "", " "]
TEXTS += [
    "null",
    "TRUE",
    "=1+1",
    "é",
    "e\u0301",
    "ß",
    "a\xa0",
    "a,b",
    "a;b",
    'a"b',
    "'a'",
    "x" * 90,
]
_MIDNIGHT, _LATE = datetime.time(0, 0), datetime.time(23, 59, 59)
DAYS = [datetime.date(*day) for day in ((1899, 12, 31), (1904, 1, 1), (2000, 2, 29), (2026, 3, 1))]
MOMENTS = [datetime.datetime.combine(day, at) for day in DAYS[1:] for at in (_MIDNIGHT, _LATE)]
COLUMNS: dict[str, list[Any]] = {
    "text": TEXTS,
    "whole": [0, 1, -1, 2, 99, None, 2**31, -(2**53)],
    "number": [0.0, -1.0, 0.1, 1.5, 1e-7, 1e15, None, 1 / 3],
    "day": DAYS,
    "moment": [*MOMENTS, datetime.datetime(2026, 3, 1, 0, 0, 1), None],
    " Odd name": ["x", None],
}
ROWS = list(zip_longest(*COLUMNS.values()))
#: Options of files of text, of sheets, of statistical files and of all.
OF_ALL: dict[str, Any] = {"trim": True, "null_values": ["NA", "", -1]}
OF_ROWS = OF_ALL | {"rows_above": 2, "skip_rows": 1}
OF_TEXT = OF_ROWS | {"separator": ";", "encoding": "utf-16"}
OF_LABELS = OF_ALL | {"labels": True}
OPTIONS: dict[str, dict[str, Any]] = {
    ".csv": OF_TEXT,
    ".xlsx": OF_ROWS | {"sheet": "second"},
    **dict.fromkeys((".sav", ".zsav", ".dta"), OF_LABELS),
    **dict.fromkeys((".parquet", ".arrow"), OF_ALL),
}
CASES = [
    (extension, names)
    for extension, options in OPTIONS.items()
    for number in range(3)
    for names in combinations(options, number)
]


def written(path: Path, how: dict[str, Any]) -> None:
    """A file with the rows, and with what the options are about."""
    above, below = [("from", "an", "office")] * how.get("rows_above", 0), []
    if "skip_rows" in how:
        below = [("?",) * len(COLUMNS)]
    if path.suffix == ".csv":
        text = io.StringIO()
        lines = csv.writer(text, delimiter=how.get("separator", ","), lineterminator="\n")
        lines.writerows([*above, [*COLUMNS], *below, *ROWS[:3]])
        text.write("\n \n")
        lines.writerows(ROWS[3:])
        path.write_bytes(text.getvalue().encode(how.get("encoding", "utf-8")))
    elif path.suffix == ".xlsx":
        with xlsxwriter.Workbook(path, {"remove_timezone": True}) as book:
            formats = {"day": "yyyy-mm-dd", "moment": "yyyy-mm-dd hh:mm:ss"}
            styles = {name: book.add_format({"num_format": of}) for name, of in formats.items()}
            for name in ("first", "second")[: 1 + ("sheet" in how)]:
                sheet = book.add_worksheet(name)
                for at, row in enumerate([*above, [*COLUMNS], *below, *ROWS]):
                    for column, value in enumerate(row):
                        style = styles.get([*COLUMNS][column])
                        if isinstance(value, datetime.date):
                            sheet.write_datetime(at, column, value, style)
                        elif isinstance(value, str):
                            sheet.write_string(at, column, value)
                        elif value is not None:
                            sheet.write_number(at, column, value)
    elif path.suffix in (".parquet", ".arrow"):
        frame = pl.DataFrame(ROWS, schema=[*COLUMNS], orient="row", infer_schema_length=None)
        frame = frame.drop("number", "moment").with_columns(flag=pl.col("whole") > 0)
        (frame.write_parquet if path.suffix == ".parquet" else frame.write_ipc)(path)
    else:
        frame = pd.DataFrame(ROWS, columns=[name.strip().replace(" ", "_") for name in COLUMNS])
        frame["text"] = frame["text"].str.replace("\t", " \t")
        labels: Any = {"whole": {0: "none", 1: " one", 99: "NA"}, "number": {0.0: "zero"}}
        writer = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
        more = {"compress": True} if path.suffix == ".zsav" else {}
        writer(frame, str(path), variable_value_labels=labels, **more)


def said(column: pl.Series) -> list[Any]:
    """The values up to the last one, and the number of rows."""
    values = column.cast(str).to_list()
    last = max((at for at, value in enumerate(values) if value is not None), default=-1)
    return [*values[: last + 1], len(values)]


@pytest.mark.parametrize(("extension", "names"), CASES)
def test_what_is_read_is_what_was_looked_at(
    extension: str, names: tuple[str, ...], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    how = {name: OPTIONS[extension][name] for name in names}
    path = tmp_path / f"odd{extension}"
    written(path, how)
    try:
        frame = records_of(path, **how)
        found: Any = {name: said(frame[name]) for name in frame.columns}
    except FileError as error:
        found = str(error).replace(str(tmp_path), "")
    case = " ".join((extension, *names))
    assert found == as_recorded(RECORDED, case, found, pytestconfig)


#: Endings that are read as another one is.
_AS_OTHERS = {".tsv", ".csv.gz", ".tsv.gz", ".xlsm", ".feather", ".ipc", ".xpt"}


def test_every_kind_of_file_is_read() -> None:
    """But for that of SAS, which nothing writes."""
    assert {*EXTENSIONS} - OPTIONS.keys() <= _AS_OTHERS | {".sas7bdat"}
