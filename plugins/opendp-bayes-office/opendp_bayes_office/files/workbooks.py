"""Sheets of workbooks, each cell as text by itself, as fastexcel reads them."""

import re
import zipfile
from functools import reduce
from pathlib import Path
from typing import IO

import fastexcel
import polars as pl

from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.tables import MOST_ROWS, WORKBOOK, Table, TooLargeError, withheld

#: The most bytes of a part of a file: of one with sheets, of one that lists the others or their
#: styles, and of any other.
_SHEETS, _LISTS, _OTHERS = 1 << 30, 1 << 24, 1 << 28
#: The most cells from the first to the last one; the reader has memory for each.
_MOST_CELLS = 100_000_000
_PLACE, _LONGEST_PLACE = re.compile(rb"""\br=["']([A-Z]{1,9})(\d{1,9})["']"""), 32
#: Bytes of a sheet that are searched for places of cells at a time.
_BLOCK = 1 << 20
#: What a day is at midnight, and what stands between a day and a time elsewhere.
_MIDNIGHT, _ISO = r"^(\d{4}-\d\d-\d\d)[ T]00:00:00Z?$", r"^(\d{4}-\d\d-\d\d)T([\d:.]+)Z?$"


def workbook_table(path: Path, file: str, sheet: str | None) -> Table:
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

    Raises
    ------
    FileError
        For a file that cannot be read, or is too large, and a sheet that is not there.
    """
    if zipfile.is_zipfile(path):
        withheld(lambda: _check_size(path), file, WORKBOOK)
    book = withheld(lambda: fastexcel.read_excel(path), file, WORKBOOK)
    names = book.sheet_names
    if sheet is None and len(names) == 1:
        sheet = names[0]
    if sheet not in names:
        raise FileError(
            f"FILE {file}: has the sheets {', '.join(map(repr, names))}; name one of them: by the"
            f" option --sheet, by sheet = {names[0]!r} in a specification or an owner's file, or by"
            f" sheet={names[0]!r} in Python."
        )

    def filled() -> pl.DataFrame:
        every = book.load_sheet(sheet, header_row=None, dtypes="string").to_polars()
        text = pl.all().str.replace(_MIDNIGHT, "$1").str.replace(_ISO, "$1 $2")
        cells = every.select(pl.when(text != "").then(text).name.keep())
        return cells.filter(~pl.all_horizontal(pl.all().is_null()))

    rows = withheld(filled, file, WORKBOOK)
    header = tuple(name or "" for name in rows.row(0)) if rows.height else ()
    if not any(header):
        raise FileError(f"FILE {file}: its first row must name the columns, and it has none.")
    return Table(header, lambda: iter([rows[1:]]))


def _check_size(path: Path) -> None:
    """Raise `TooLargeError` for a file whose parts, or the rectangle of whose cells, take too much
    memory. The second is known of Open XML alone; of OpenDocument the reader sees to it.
    """
    with zipfile.ZipFile(path) as archive:  # which reads no more of a part than is stated there
        for part in archive.infolist():
            name = part.filename.lower()
            if part.file_size > _most_bytes(name):
                raise TooLargeError
            if "/worksheets/" in name:
                with archive.open(part) as content:
                    _check_cells(content)


def _check_cells(content: IO[bytes]) -> None:
    columns, last, rest = {b"A"}, 1, b""
    while block := content.read(_BLOCK):
        window = rest + block
        places = _PLACE.findall(window)
        columns |= {column for column, _ in places}
        last = max(last, *(int(row) for _, row in places), 1)
        rest = window[-_LONGEST_PLACE:]
    width = max(reduce(lambda number, letter: 26 * number + letter - 64, of, 0) for of in columns)
    if last > MOST_ROWS or width * last > _MOST_CELLS:
        raise TooLargeError


def _most_bytes(part: str) -> int:
    if part.endswith((".rels", "[content_types].xml", "workbook.xml", "styles.xml")):
        return _LISTS
    return _SHEETS if "/worksheets/" in part or part == "content.xml" else _OTHERS
