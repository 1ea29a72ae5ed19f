"""Sheets of workbooks of Excel (`.xlsx`, `.xlsm`), which openpyxl reads row by row, each cell as
text by itself.
"""

import datetime
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from openpyxl import load_workbook
from openpyxl.utils.datetime import from_excel
from openpyxl.utils.escape import unescape

from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.reading import Reading
from opendp_bayes_office.files.tables import MOST_ROWS, WORKBOOK, Table, TooLargeError, withheld

#: A row: the text of each cell, None for an error, and "" for one that is blank.
Row = list[str | None]
#: The most columns of a sheet, as in Excel and LibreOffice.
MOST_COLUMNS = 1 << 14
#: The most characters of a row, of records in memory at a time, and of all.
_LONGEST, _BATCH_OF_TEXT, _MOST_TEXT = 1 << 24, 1 << 24, 1 << 32
#: The most bytes of a part of a file: of one with sheets, of one that lists the others or their
#: styles, and of any other.
_SHEETS, _LISTS, _OTHERS = 1 << 30, 1 << 24, 1 << 28
#: Formats of days that every file of Chinese, Japanese and Korean programs knows, by number, and
#: openpyxl does not.
_DAYS = frozenset([*range(27, 37), *range(50, 59)])


def workbook_table(path: Path, file: str, how: Reading) -> Table:
    """The table of a sheet of a workbook, whose first row that is not empty names the columns, or
    one so many rows below it.

    An empty row is no record: a sheet ends with its last cell, so that one record there decides how
    many empty rows stand before it.

    Parameters
    ----------
    path : Path
        Of the workbook.
    file : str
        What messages call it.
    how : Reading
        The name of the sheet, None for the only one, and rows around the names.

    Raises
    ------
    FileError
        For a file that cannot be read and a sheet that is not there.
    """
    book = withheld(lambda: opened_workbook(path), file, WORKBOOK)
    with ExitStack() as refused:  # a file that is not read further is closed
        refused.callback(book.close)
        names = [worksheet.title for worksheet in book.worksheets]
        sheet = names[0] if how.sheet is None and len(names) == 1 else how.sheet
        if sheet not in names:
            raise FileError(
                f"data={file}: has the sheets {', '.join(map(repr, names))}; name one of them: by"
                f" the option --sheet, by sheet = {names[0]!r} in a specification or an owner's"
                f" file, or by sheet={names[0]!r} in Python."
            )
        table = book[sheet]
        header = withheld(
            lambda: next(islice(rows_of(table), how.rows_above, None), []), file, WORKBOOK
        )
        while header and not header[-1]:
            header.pop()
        if not header:
            raise FileError(f"data={file}: its first row must name the columns, and it has none.")
        refused.pop_all()

    def copy(target: BinaryIO) -> None:
        before = how.rows_above + 1 + how.skip_rows
        records = _in_batches(islice(rows_of(table), before, None), len(header))
        with closing(book):
            while (batch := withheld(lambda: next(records, None), file, WORKBOOK)) is not None:
                batch.write_csv(target, include_header=False)

    return Table(tuple(column or "" for column in header), copy)


def _in_batches(rows: Iterator[Row], width: int) -> Iterator[pl.DataFrame]:
    """The records of a sheet of so many columns, as many together as take little memory."""
    names = dict.fromkeys(map(str, range(width)), pl.String)
    batch: list[Row] = []
    height = size = held = 0
    for row in rows:
        batch.append([text or None for text in row[:width]] + [None] * (width - len(row)))
        length = width + sum(map(len, filter(None, row)))
        height, held = height + 1, held + length
        if height > MOST_ROWS or length > _LONGEST or size + held > _MOST_TEXT:
            raise TooLargeError
        if held > _BATCH_OF_TEXT:
            yield pl.DataFrame(batch, names, orient="row")
            batch, size, held = [], size + held, 0
    if batch:
        yield pl.DataFrame(batch, names, orient="row")


def opened_workbook(path: Path) -> Any:
    """The workbook of openpyxl's in a file, if no part of it is too large."""
    with zipfile.ZipFile(path) as archive:  # which reads no more of a part than is stated there
        for item in archive.infolist():
            if item.file_size > _most_bytes(item.filename.lower()):
                raise TooLargeError
    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    if not book.worksheets:  # as of Strict Open XML, which openpyxl does not read
        raise ValueError
    return book


def _most_bytes(part: str) -> int:
    if part.endswith((".rels", "[content_types].xml", "workbook.xml", "styles.xml")):
        return _LISTS
    return _SHEETS if "/worksheets/" in part else _OTHERS


def rows_of(sheet: Any) -> Iterator[Row]:
    """The rows of a sheet of openpyxl's that have a cell which is not blank."""
    sheet.reset_dimensions()  # which programs state wrongly
    for height, cells in enumerate(sheet.rows):
        if height >= MOST_ROWS or len(cells) > MOST_COLUMNS:
            raise TooLargeError
        row = ["" if cell.value is None else _text(cell, sheet.parent.epoch) for cell in cells]
        if any(text != "" for text in row):
            yield row


def _text(cell: Any, epoch: datetime.datetime) -> str | None:
    value = cell.value
    if cell.data_type == "e":
        return None
    if isinstance(value, str):
        if "_x" in value:  # `_x000D_` is a character that XML cannot hold, or half of one
            halves = unescape(value).encode("utf-16-le", "surrogatepass")
            value = halves.decode("utf-16-le", "replace")
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        if not (cell.has_style and cell.style_array.numFmtId in _DAYS):
            return number(value)
        value = from_excel(value, epoch)
    return moment(value)


def number(value: float) -> str:
    """The shortest text that reads back as this number, without a point where it is whole."""
    if value == int(value) and abs(value) < 2**63:
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    if exponent == "-05":  # as polars writes the others, whose files have types
        return f"{Decimal(repr(value)):f}"
    return f"{digits}e{int(exponent)}" if exponent else digits


def moment(value: datetime.date | datetime.time | datetime.timedelta) -> str:
    """A day, a time or a duration of whole milliseconds as text; a day's midnight is the day."""
    if not isinstance(value, datetime.timedelta):
        return str(value).removesuffix(" 00:00:00").removesuffix("000")
    seconds, fraction = divmod(abs(value), datetime.timedelta(seconds=1))
    sign = "-" if value < datetime.timedelta() else ""
    decimals = f".{fraction.microseconds // 1000:03}" if fraction else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{decimals}"
