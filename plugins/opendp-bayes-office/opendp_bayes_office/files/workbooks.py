"""Sheets of workbooks, row by row, each cell as text by itself: Office Open XML (`.xlsx`, `.xlsm`),
which openpyxl reads, and OpenDocument (`.ods`).
"""

import datetime
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, repeat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.tables import MOST_ROWS, WORKBOOK, Table, TooLargeError, withheld

#: A row: by the number of the column its text, or None for an error. Blank cells are not in it.
Row = dict[int, str | None]
#: The most columns of a sheet, as in Excel and LibreOffice.
MOST_COLUMNS = 1 << 14
#: The most characters of a row, of records in memory at a time, and of all.
_LONGEST, _BATCH_OF_TEXT, _MOST_TEXT = 1 << 24, 1 << 24, 1 << 32
#: The most bytes of a part of a file: of one with sheets, of one that lists the others or their
#: styles, and of any other.
_SHEETS, _LISTS, _OTHERS = 1 << 30, 1 << 24, 1 << 28
#: The most blanks that are one element.
_BLANKS = 1 << 16


@dataclass(frozen=True)
class Workbook:
    """A file of sheets.

    Attributes
    ----------
    sheets : tuple[str, ...]
        Their names.
    rows : Callable[[str], Iterator[Row]]
        The rows of the sheet of a name that have a cell which is not blank.
    """

    sheets: tuple[str, ...]
    rows: Callable[[str], Iterator[Row]]


def workbook_table(path: Path, file: str, sheet: str | None, skip_rows: int = 0) -> Table:
    """The table of a sheet of a workbook, whose first row that is not empty names the columns.

    An empty row is no record: a sheet ends with its last cell, so that one record there decides how
    many empty rows stand before it.

    Parameters
    ----------
    path : Path
        Of the workbook.
    file : str
        What messages call it.
    sheet : str or None
        Its name; None for the only one.
    skip_rows : int, default 0
        Rows below the names that are no records.

    Raises
    ------
    FileError
        For a file that cannot be read and a sheet that is not there.
    """
    book = withheld(lambda: opened_workbook(path), file, WORKBOOK)
    names = book.sheets
    if sheet is None and len(names) == 1:
        sheet = names[0]
    if sheet not in names:
        raise FileError(
            f"FILE {file}: has the sheets {', '.join(map(repr, names))}; name one of them: by the"
            f" option --sheet, by sheet = {names[0]!r} in a specification or an owner's file, or by"
            f" sheet={names[0]!r} in Python."
        )
    first = withheld(lambda: next(book.rows(sheet), {}), file, WORKBOOK)
    named = {column: name for column, name in first.items() if name}
    if not named:
        raise FileError(f"FILE {file}: its first row must name the columns, and it has none.")
    header = tuple(named.get(column, "") for column in range(max(named) + 1))

    def batches() -> Iterator[pl.DataFrame]:
        records = _in_batches(islice(book.rows(sheet), 1 + skip_rows, None), len(header))
        while (batch := withheld(lambda: next(records, None), file, WORKBOOK)) is not None:
            yield batch

    return Table(header, batches)


def _in_batches(rows: Iterator[Row], width: int) -> Iterator[pl.DataFrame]:
    """The records of a sheet of so many columns, as many together as take little memory."""
    names = list(map(str, range(width)))
    batch: list[list[str | None]] = []
    height = size = held = 0
    for row in rows:
        batch.append([row.get(column) for column in range(width)])
        length = width + sum(map(len, filter(None, row.values())))
        height, held = height + 1, held + length
        if height > MOST_ROWS or length > _LONGEST or size + held > _MOST_TEXT:
            raise TooLargeError
        if held > _BATCH_OF_TEXT:
            yield pl.DataFrame(batch, dict.fromkeys(names, pl.String), orient="row")
            batch, size, held = [], size + held, 0
    if batch:
        yield pl.DataFrame(batch, dict.fromkeys(names, pl.String), orient="row")


def opened_workbook(path: Path) -> Workbook:
    """The workbook in a file, by its extension, if no part of it is too large."""
    with zipfile.ZipFile(path) as archive:  # which reads no more of a part than is stated there
        for part in archive.infolist():
            if part.file_size > _most_bytes(part.filename.lower()):
                raise TooLargeError
    book = _open_document(path) if path.suffix.lower() == ".ods" else _open_xml(path)
    if not book.sheets:  # as of Strict Open XML, which openpyxl does not read
        raise ValueError
    return book


def _most_bytes(part: str) -> int:
    if part.endswith((".rels", "[content_types].xml", "workbook.xml", "styles.xml")):
        return _LISTS
    return _SHEETS if "/worksheets/" in part or part == "content.xml" else _OTHERS


# --- Values


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
    seconds, rest = divmod(abs(value), datetime.timedelta(seconds=1))
    sign, part = "-" if value < datetime.timedelta() else "", f".{rest.microseconds // 1000:03}"
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{sign}{clock}{part if rest else ''}"


# --- Office Open XML

#: Formats of days that every file of Chinese, Japanese and Korean programs knows, by number, and
#: openpyxl does not.
_DAYS = frozenset([*range(27, 37), *range(50, 59)])


def _open_xml(path: Path) -> Workbook:
    from openpyxl import load_workbook
    from openpyxl.utils.datetime import from_excel
    from openpyxl.utils.escape import unescape

    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)

    def text(cell: Any) -> str | None:
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
            value = from_excel(value, book.epoch)
        return moment(value)

    def rows(sheet: str) -> Iterator[Row]:
        book[sheet].reset_dimensions()  # which programs state wrongly
        for height, cells in enumerate(book[sheet].rows):
            if height >= MOST_ROWS or len(cells) > MOST_COLUMNS:
                raise TooLargeError
            filled = {at: text(cell) for at, cell in enumerate(cells) if cell.value is not None}
            if row := {at: text for at, text in filled.items() if text != ""}:
                yield row

    return Workbook(tuple(sheet.title for sheet in book.worksheets), rows)


# --- OpenDocument

_OF = "{urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TABLE, _TEXT = (f"{_OF}{name}:1.0}}" for name in ("office", "table", "text"))
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
_ERROR = re.compile(r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!|[A-Z_]+!)|Err:\d{3}")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z?)?")
_ISO_TIME = re.compile(r"(-?)P(?:(\d+)D)?T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?")
#: Notes, and how a text is spoken, which are no part of it.
_ASIDE = (f"{_OFFICE}annotation", f"{_TEXT}note", f"{_TEXT}ruby-text")
#: What stands for elements of blanks until blanks of the XML itself are left out.
_KEPT = {f"{_TEXT}s": "\x01", f"{_TEXT}tab": "\x02", f"{_TEXT}line-break": "\x03"}
_AS_KEPT = str.maketrans("\x01\x02\x03", " \t\n")


def _open_document(path: Path) -> Workbook:
    def rows(sheet: str) -> Iterator[Row]:
        for name, row in _tables(path):
            if name == sheet and row is not None and (cells := _cells(row)):
                yield from repeat(cells, int(row.get(f"{_TABLE}number-rows-repeated", "1")))

    return Workbook(tuple(name for name, row in _tables(path) if row is None), rows)


def _tables(path: Path) -> Iterator[tuple[str, ElementTree.Element | None]]:
    """The name of each sheet where it begins, with None, and with each of its rows."""
    name = ""
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as part:
        events = ElementTree.iterparse(part, ("start", "end"))  # noqa: S314 - expat limits its entities
        for event, element in events:
            if event == "start" and element.tag == f"{_TABLE}table":
                name = element.get(f"{_TABLE}name", "")
                yield name, None
            elif event == "end" and element.tag == f"{_TABLE}table-row":
                yield name, element
                element.clear()


def _cells(row: ElementTree.Element) -> Row:
    cells: Row = {}
    column = 0
    for cell in row:
        times = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
        text = _value(cell) if cell.tag == f"{_TABLE}table-cell" else ""  # one that is covered
        if text != "":
            if column + times > MOST_COLUMNS:
                raise TooLargeError
            cells |= dict.fromkeys(range(column, column + times), text)
        column += times
    return cells


def _value(cell: ElementTree.Element) -> str | None:
    shown = "\n".join(
        re.sub("[ \t\r\n]+", " ", _shown(part)).lstrip(" ").translate(_AS_KEPT)
        for part in cell.iterfind(f"{_TEXT}p")
    )
    is_computed = cell.get(f"{_TABLE}formula") is not None
    if cell.get(f"{_CALC}value-type") == "error" or (is_computed and _ERROR.fullmatch(shown)):
        return None
    kind = cell.get(f"{_OFFICE}value-type", "")
    if kind in ("float", "percentage", "currency"):
        return number(float(cell.attrib[f"{_OFFICE}value"]))
    if kind in ("date", "time"):
        return _of_iso(cell.attrib[f"{_OFFICE}{kind}-value"])
    if kind == "boolean":
        return cell.attrib[f"{_OFFICE}boolean-value"]
    return cell.get(f"{_OFFICE}string-value") or shown


def _shown(part: ElementTree.Element) -> str:
    """The text of a paragraph or of a part of it."""
    times = int(part.get(f"{_TEXT}c", "1"))
    if times > _BLANKS:
        raise TooLargeError
    text = _KEPT.get(part.tag, "") * times + (part.text or "")
    for inner in part:
        text += ("" if inner.tag in _ASIDE else _shown(inner)) + (inner.tail or "")
    return text


def _of_iso(written: str) -> str:
    """A day, a time or a duration in ISO 8601, to the millisecond."""
    if not (read := _ISO_TIME.fullmatch(written) or _ISO.fullmatch(written)):
        return written
    first, *of = read.groups()
    *days, hours, minutes, seconds = (float((one or "0").replace(",", ".")) for one in of)
    within = datetime.timedelta(sum(days), round(seconds, 3), minutes=minutes, hours=hours)
    if days:
        return moment(-within if first else within)
    return moment(datetime.datetime.fromisoformat(first) + within)
