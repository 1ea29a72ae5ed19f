"""Sheets of workbooks, row by row, each cell as text by itself: Office Open XML (`.xlsx`, `.xlsm`),
Excel's binary forms (`.xlsb`, `.xls`) and OpenDocument (`.ods`).

Sheets are parsed piece by piece in Python: nothing is kept for cells between those that a file has,
so that no cell makes the reader ask for memory, and nothing that a file holds ends the process.
"""

import datetime
import io
import posixpath
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any, Literal, Protocol
from xml.etree import ElementTree
from xml.parsers import expat

#: A row: by the number of the column its text, or None for an error. Blank cells are not in it.
Row = dict[int, str | None]
#: What a number is shown as.
Form = Literal["number", "date", "time", "duration"]
#: The most rows and columns of a sheet, as in Excel and LibreOffice.
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
#: The most bytes of a part that is held in memory, of one of tables of contents, of one that is
#: passed through, and of a text or an element there.
_HELD, _TABLE_OF, _PASSED, _LONGEST = 1 << 28, 1 << 24, 1 << 32, 1 << 24
_PIECE, _DEEPEST = 1 << 16, 200
_A_DAY = 86_400_000
#: Numbers of formats that every file knows; all others are in it.
_KNOWN: dict[int, Form] = {
    **dict.fromkeys([14, 15, 16, 17, 22, *range(27, 37), *range(50, 59)], "date"),
    **dict.fromkeys([18, 19, 20, 21, 45, 47], "time"),
    46: "duration",
}
#: Of a format, what is shown as it stands, and colours, conditions and languages.
_LITERAL = re.compile(
    r'"[^"]*"?|\\.|[_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]|general|am/pm|a/p|e[+-]', re.IGNORECASE
)
_ERROR = re.compile(r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!|[A-Z_]+!)|Err:\d{3}")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_SPACE = "http://www.w3.org/XML/1998/namespace space"
_REFERENCE = re.compile(r"([A-Z]{1,3})\d*")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z?)?")
_ISO_TIME = re.compile(r"(-?)P(?:(\d+)D)?T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?")


class TooLargeError(Exception):
    """A workbook has more than is read."""


class Workbook(Protocol):
    """A file of sheets.

    Attributes
    ----------
    sheets : their names.
    """

    sheets: tuple[str, ...]

    def rows(self, sheet: str) -> Iterator[Row]:
        """The rows of a sheet that have a cell which is not blank."""


def opened_workbook(path: Path) -> Workbook:
    """The workbook in a file, by its extension."""
    extension = path.suffix.lower()
    if extension == ".ods":
        return _OpenDocument(path)
    if extension == ".xls":
        return _Old(path)
    return _Binary(path) if extension == ".xlsb" else _OpenXml(path)


# --- Numbers


def form_of(code: str) -> Form:
    """What the code of a format shows a number as."""
    plain = _LITERAL.sub("", code).partition(";")[0].lower()
    if "[" in plain:
        return "duration"
    if re.search("[yde]", plain):
        return "date"
    if re.search("[hs]", plain):
        return "time"
    return "date" if "m" in plain else "number"


def as_text(value: float, form: Form = "number", *, is_1904: bool = False) -> str | None:
    """A number of a cell as text; None for one that is not finite."""
    if value - value != 0:
        return None
    if form == "number":
        return number(value)
    at = round(value * _A_DAY)
    if form == "duration":
        return _clock(at)
    day, within = divmod(at, _A_DAY)
    if not 0 <= day <= (2_957_003 if is_1904 else 2_958_465):  # the last day of the year 9999
        return number(value)
    if day == 0 and (form == "time" or not is_1904):
        return _clock(within)
    if is_1904:
        on = str(datetime.date(1904, 1, 1) + datetime.timedelta(day))
    elif day == 60:  # which no other calendar has
        on = "1900-02-29"
    else:
        on = str(datetime.date(1899, 12, 30 if day > 60 else 31) + datetime.timedelta(day))
    return f"{on} {_clock(within)}" if within else on


def number(value: float) -> str:
    """The shortest text that reads back as this number, without a point where it is whole."""
    if value == int(value) and abs(value) < 2**63:
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    if exponent == "-05":  # as polars writes the others, whose files have types
        return f"{Decimal(repr(value)):f}"
    return f"{digits}e{int(exponent)}" if exponent else digits


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(abs(milliseconds), 1000)
    minutes, second = divmod(seconds, 60)
    sign, part = "-" if milliseconds < 0 else "", f".{rest:03}" if rest else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}{part}"


def _of_iso(written: str) -> str:
    """A date, a time of a day or a duration in ISO 8601, written as `as_text` writes it."""
    try:
        if found := _ISO_TIME.fullmatch(written):
            days, hours, minutes, seconds = (
                float((of or "0").replace(",", ".")) for of in found.groups()[1:]
            )
            at = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
            return _clock(-at if found[1] else at)
        if found := _ISO.fullmatch(written):
            hours, minutes, seconds = (float(of or 0) for of in found.groups()[1:])
            day, within = divmod(round(((hours * 60 + minutes) * 60 + seconds) * 1000), _A_DAY)
            on = str(datetime.date.fromisoformat(found[1]) + datetime.timedelta(day))
            return f"{on} {_clock(within)}" if within else on
    except (OverflowError, ValueError):  # of no day that there is
        pass
    return written


def _unescaped(text: str) -> str:
    """A text of Office Open XML, in which `_x000D_` stands for a character of XML's own."""
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# --- Parts of a file


class _Zip:
    """A workbook whose parts are files of a zip archive."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        self._files = {of.filename.lower(): of for of in self._archive.infolist()}

    def _part(self, name: str, most: int) -> IO[bytes]:
        """A part, of so many bytes at most."""
        file = self._files[name.lower()]
        if file.file_size > most:
            raise TooLargeError
        return self._archive.open(file)

    def _tree(self, name: str) -> ElementTree.Element:
        """A part that is a table of contents."""
        with self._part(name, _TABLE_OF) as part:
            return ElementTree.fromstring(part.read())  # noqa: S314 - expat limits its entities

    def _related(self, name: str) -> dict[str, tuple[str, str]]:
        """By its identifier, each part that this one is related to: the kind, and the name."""
        folder, file = posixpath.split(name)
        found: dict[str, tuple[str, str]] = {}
        where = posixpath.join(folder, "_rels", f"{file}.rels").lower()
        for one in self._tree(where) if where in self._files else ():
            target = posixpath.normpath(posixpath.join("/", folder, one.get("Target", "")))
            found[one.get("Id", "")] = one.get("Type", "").rpartition("/")[2], target.lstrip("/")
        return found


class _Handler:
    """Takes what a parser of XML finds in a part, and keeps the rows that have ended.

    Attributes
    ----------
    starts : what is done where an element begins, by its name as the parser has it.
    ends : the same where it ends.
    rows : that have ended.
    depth : of the element.
    size : the characters of the row.
    text : of the value that is being read; None where none is.
    """

    def __init__(self) -> None:
        self.starts: dict[str, Callable[[Mapping[str, str]], object]] = {}
        self.ends: dict[str, Callable[[], object]] = {}
        self.rows: list[Any] = []
        self.depth = self.size = 0
        self.text: str | None = None

    def data(self, text: str) -> None:
        if self.text is not None:
            self.grow(len(text))
            self.text += text

    def grow(self, characters: int) -> None:
        self.size += characters
        if self.size > _LONGEST:
            raise TooLargeError

    def first(self, name: str) -> None:
        """The first element begins."""

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self.depth:
            self.first(name)
        self.depth += 1
        if started := self.starts.get(name):
            started(attributes)

    def _end(self, name: str) -> None:
        self.depth -= 1
        if ended := self.ends.get(name):
            ended()

    def read(self, part: IO[bytes]) -> Iterator[Any]:
        """The rows of a part, piece by piece."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self.data
        length, at_end = 0, False
        while not at_end:
            piece = part.read(_PIECE)
            length, at_end = length + len(piece), not piece
            parser.Parse(piece, at_end)
            if self.depth > _DEEPEST or length - parser.CurrentByteIndex > _LONGEST:
                raise TooLargeError
            yield from self.rows
            self.rows = []


# --- Office Open XML


class _OfMain(_Handler):
    """A part whose elements are in the namespace of its first one; others are of extensions.

    Attributes
    ----------
    value : the text of the value.
    spoken : whether it is how a text is spoken, which is no part of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.value, self.spoken = "", False

    def first(self, name: str) -> None:
        space = name.rpartition(" ")[0]
        starts = {"t": self.start_text, "rPh": self.start_spoken} | self.started()
        ends = {"t": self.end_text, "rPh": self.end_spoken} | self.ended()
        self.starts = {f"{space} {name}": of for name, of in starts.items()}
        self.ends = {f"{space} {name}": of for name, of in ends.items()}

    def started(self) -> dict[str, Callable[[Mapping[str, str]], object]]:
        """What is done where an element of this name begins."""
        return {}

    def ended(self) -> dict[str, Callable[[], object]]:
        """What is done where an element of this name ends."""
        return {}

    def start_text(self, attributes: Mapping[str, str]) -> None:
        if not self.spoken:
            self.text, self.is_kept = "", attributes.get(_SPACE) == "preserve"

    def end_text(self) -> None:
        if self.text is not None:
            self.value += self.text if self.is_kept else self.text.strip(" \t\r\n")
            self.text = None

    def start_spoken(self, attributes: Mapping[str, str]) -> None:
        self.spoken = True

    def end_spoken(self) -> None:
        self.spoken = False


class _Texts(_OfMain):
    """The texts that cells share, as rows."""

    def started(self) -> dict[str, Callable[[Mapping[str, str]], object]]:
        return {"si": self.start_shared}

    def ended(self) -> dict[str, Callable[[], object]]:
        return {"si": lambda: self.rows.append(_unescaped(self.value))}

    def start_shared(self, attributes: Mapping[str, str]) -> None:
        self.value, self.size = "", 0


class _Cells(_OfMain):
    """The rows of a sheet."""

    def __init__(self, texts: list[str], written: Callable[[float, int], str | None]) -> None:
        super().__init__()
        self.texts, self.written = texts, written
        self.row: Row = {}
        self.column, self.kind, self.style, self.is_computed = -1, "n", 0, False

    def started(self) -> dict[str, Callable[[Mapping[str, str]], object]]:
        return {
            "row": self.start_row,
            "c": self.start_cell,
            "v": self.start_value,
            "f": self.start_formula,
        }

    def ended(self) -> dict[str, Callable[[], object]]:
        return {"row": self.end_row, "c": self.end_cell, "v": self.end_value}

    def start_row(self, attributes: Mapping[str, str]) -> None:
        self.row, self.column, self.size = {}, -1, 0

    def start_cell(self, attributes: Mapping[str, str]) -> None:
        reference = attributes.get("r")
        self.column = self.column + 1 if reference is None else column_of(reference)
        if self.column >= MOST_COLUMNS:
            raise TooLargeError
        self.kind, self.style = attributes.get("t", "n"), int(attributes.get("s") or 0)
        self.value, self.is_computed = "", False

    def start_value(self, attributes: Mapping[str, str]) -> None:
        self.text = ""

    def start_formula(self, attributes: Mapping[str, str]) -> None:
        self.is_computed = True

    def end_value(self) -> None:
        if self.kind != "inlineStr":  # which is in elements of its own
            self.value = self.text or ""
        self.text = None

    def end_row(self) -> None:
        if self.row:
            self.rows.append(self.row)

    def end_cell(self) -> None:
        if not self.value:
            return
        kind, value = self.kind, self.value
        read: str | None = value
        if kind == "s":
            read = self.texts[int(value)]
        elif kind == "n":
            read = self.written(float(value), self.style)
        elif kind == "b":
            read = "true" if value.strip() in ("1", "true") else "false"
        elif kind == "d":
            read = _of_iso(value)
        elif kind == "e" or ((kind == "str" or self.is_computed) and _ERROR.fullmatch(value)):
            read = None
        else:
            read = _unescaped(value)
        if read != "":
            self.grow(len(read or ""))
            self.row[self.column] = read


@lru_cache(maxsize=1 << 15)
def _column(letters: str) -> int:
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return column - 1


def column_of(reference: str) -> int:
    """The number of the column of a cell, such as 1 of B7."""
    found = _REFERENCE.match(reference)
    if found is None:
        raise ValueError
    return _column(found[1])


class _OpenXml(_Zip):
    """A workbook of Office Open XML."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        parts = self._related("").values()
        book = next((name for kind, name in parts if kind == "officeDocument"), "xl/workbook.xml")
        self._parts = self._related(book)
        self._names, self._is_1904 = self._contents(book)
        self.sheets = tuple(self._names)

    def _contents(self, book: str) -> tuple[dict[str, str], bool]:
        """The part of each sheet by its name, and whether days are counted from 1904."""
        tree = self._tree(book)
        space = tree.tag.rpartition("}")[0] + "}"
        names = {}
        for one in tree.iterfind(f"{space}sheets/{space}sheet"):
            (related,) = [of for name, of in one.attrib.items() if name.endswith("}id")]
            kind, part = self._parts[related]
            if kind == "worksheet":
                names[one.attrib["name"]] = part
        about = tree.find(f"{space}workbookPr")  # of its own: an extension has another one
        return names, about is not None and about.get("date1904") in ("1", "true")

    def _named(self, kind: str) -> str | None:
        return next((name for of, name in self._parts.values() if of == kind), None)

    @cached_property
    def _forms(self) -> list[Form]:
        """What numbers are shown as, by style."""
        if (name := self._named("styles")) is None:
            return []
        tree = self._tree(name)
        space = tree.tag.rpartition("}")[0] + "}"
        codes = {
            int(one.attrib["numFmtId"]): one.attrib["formatCode"]
            for one in tree.iterfind(f"{space}numFmts/{space}numFmt")
        }
        numbers = (
            int(one.get("numFmtId", "0")) for one in tree.iterfind(f"{space}cellXfs/{space}xf")
        )
        return [_form(number, codes) for number in numbers]

    @cached_property
    def _texts(self) -> list[str]:
        if (name := self._named("sharedStrings")) is None:
            return []
        with self._part(name, _HELD) as part:
            return list(_Texts().read(part))

    def _written(self, value: float, style: int) -> str | None:
        form = self._forms[style] if style < len(self._forms) else "number"
        return as_text(value, form, is_1904=self._is_1904)

    def rows(self, sheet: str) -> Iterator[Row]:
        with self._part(self._names[sheet], _PASSED) as part:
            yield from _Cells(self._texts, self._written).read(part)


def _form(number: int, codes: Mapping[int, str]) -> Form:
    return form_of(codes[number]) if number in codes else _KNOWN.get(number, "number")


# --- Excel's binary forms


class _Binary(_OpenXml):
    """A workbook of the same parts, each a sequence of records of bytes."""

    def _records(self, name: str, most: int) -> Iterator[tuple[int, bytes]]:
        """The records of a part: the kind, and the content."""
        with self._part(name, most) as raw, io.BufferedReader(raw, _PIECE) as part:  # type: ignore[type-var]
            while first := part.read(1):
                kind, size, shift, more = first[0], 0, 0, True
                if kind > 127:
                    kind = kind & 127 | part.read(1)[0] << 7
                while more and shift < 28:
                    byte = part.read(1)[0]
                    size, shift, more = size | (byte & 127) << shift, shift + 7, byte > 127
                if size > _LONGEST:
                    raise TooLargeError
                yield kind, part.read(size)

    def _contents(self, book: str) -> tuple[dict[str, str], bool]:
        names, is_1904 = {}, False
        for kind, content in self._records(book, _TABLE_OF):
            if kind == 153:
                is_1904 = bool(content[0] & 1)
            elif kind == 156:
                related, end = _text_at(content, 8)
                of, part = self._parts[related]
                if of == "worksheet":
                    names[_text_at(content, end)[0]] = part
        return names, is_1904

    @cached_property
    def _forms(self) -> list[Form]:
        if (name := self._named("styles")) is None:
            return []
        codes, forms, of_cells = {}, [], False
        for kind, content in self._records(name, _TABLE_OF):
            if kind == 44:
                codes[int.from_bytes(content[:2], "little")] = _text_at(content, 2)[0]
            elif kind in (617, 618):
                of_cells = kind == 617
            elif kind == 47 and of_cells:
                forms.append(_form(int.from_bytes(content[2:4], "little"), codes))
        return forms

    @cached_property
    def _texts(self) -> list[str]:
        if (name := self._named("sharedStrings")) is None:
            return []
        records = self._records(name, _HELD)
        return [_text_at(content, 1)[0] for kind, content in records if kind == 19]

    def rows(self, sheet: str) -> Iterator[Row]:
        row: Row = {}
        for kind, content in self._records(self._names[sheet], _PASSED):
            if kind in (0, 146):  # a row begins, or the last one ended
                if row:
                    yield row
                row = {}
            elif kind in _OF_CELLS:
                column = int.from_bytes(content[:4], "little")
                if column >= MOST_COLUMNS:
                    raise TooLargeError
                style = int.from_bytes(content[4:7], "little")
                if (read := self._value(kind, style, content)) != "":
                    row[column] = read

    def _value(self, kind: int, style: int, content: bytes) -> str | None:
        if kind in (3, 11):
            return None
        if kind in (4, 10):
            return "true" if content[8] else "false"
        if kind == 7:
            return self._texts[int.from_bytes(content[8:12], "little")]
        if kind in (6, 8, 62):
            text, _ = _text_at(content, 9 if kind == 62 else 8)
            return None if kind == 8 and _ERROR.fullmatch(text) else text
        if kind == 2:
            return self._written(_short_number(content[8:12]), style)
        return self._written(struct.unpack_from("<d", content, 8)[0], style)


#: Kinds of records that are cells: short number, error, Boolean, number, text, shared text, the
#: same of formulas, and a text with forms.
_OF_CELLS = frozenset([*range(2, 12), 62])


def _text_at(content: bytes, at: int) -> tuple[str, int]:
    """The text at a place, and where it ends."""
    (length,) = struct.unpack_from("<I", content, at)
    end = at + 4 + 2 * length
    if end > len(content):
        raise ValueError
    return content[at + 4 : end].decode("utf-16-le", "replace"), end


def _short_number(content: bytes) -> float:
    """A number of 30 bits: whole or the upper half of one, as it is or times 100."""
    (bits,) = struct.unpack("<i", content)
    whole = bits >> 2
    value: float = (
        whole if bits & 2 else struct.unpack("<d", b"\0\0\0\0" + struct.pack("<i", whole << 2))[0]
    )
    return value / 100 if bits & 1 else value


class _Old:
    """A workbook of Excel up to 2003, which xlrd reads."""

    def __init__(self, path: Path) -> None:
        import xlrd

        self._book = xlrd.open_workbook(
            path, formatting_info=True, on_demand=True, ragged_rows=True, logfile=io.StringIO()
        )
        self.sheets = tuple(self._book.sheet_names())

    def rows(self, sheet: str) -> Iterator[Row]:
        book, of = self._book, self._book.sheet_by_name(sheet)
        forms = [form_of(book.format_map[style.format_key].format_str) for style in book.xf_list]
        for at in range(of.nrows):
            row: Row = {}
            for column, cell in enumerate(of.row(at)):
                if cell.ctype == 1:
                    row[column] = cell.value
                elif cell.ctype in (2, 3):
                    row[column] = as_text(
                        cell.value, forms[cell.xf_index], is_1904=bool(book.datemode)
                    )
                elif cell.ctype == 4:
                    row[column] = "true" if cell.value else "false"
                elif cell.ctype == 5:
                    row[column] = None
            if row := {column: text for column, text in row.items() if text != ""}:
                yield row


# --- OpenDocument

_OF = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TABLE, _TEXT = (f"{_OF}{name}:1.0 " for name in ("office", "table", "text"))
_CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 "
#: Notes, and how a text is spoken, which are no part of it.
_ASIDE = (f"{_OFFICE}annotation", f"{_TEXT}note", f"{_TEXT}ruby-text")
#: What stands for blanks, tabs and ends of lines until those of the XML itself are left out.
_AS_KEPT = str.maketrans("\x01\x02\x03", " \t\n")


class _Sheets(_Handler):
    """The rows of a sheet of OpenDocument, or, without one, the names of all sheets."""

    def __init__(self, sheet: str | None = None) -> None:
        super().__init__()
        self.sheet, self.is_inside, self.tables, self.asides = sheet, False, 0, 0
        self.row: Row = {}
        self.cell: Mapping[str, str] = {}
        self.paragraphs: list[str] = []
        self.column, self.times, self.height = 0, 1, 0
        self.starts = {
            f"{_TABLE}table": self.start_table,
            f"{_TABLE}table-row": self.start_row,
            f"{_TABLE}table-cell": self.start_cell,
            f"{_TABLE}covered-table-cell": self.start_cell,
            f"{_TEXT}p": self.start_paragraph,
            f"{_TEXT}s": lambda attributes: self.add("\x01", attributes.get(f"{_TEXT}c", "1")),
            f"{_TEXT}tab": lambda attributes: self.add("\x02"),
            f"{_TEXT}line-break": lambda attributes: self.add("\x03"),
            **dict.fromkeys(_ASIDE, self.start_aside),
        }
        self.ends = {
            f"{_TABLE}table": self.end_table,
            f"{_TABLE}table-row": self.end_row,
            f"{_TABLE}table-cell": lambda: self.end_cell(self._value() if self.is_inside else ""),
            f"{_TABLE}covered-table-cell": lambda: self.end_cell(""),
            f"{_TEXT}p": self.end_paragraph,
            **dict.fromkeys(_ASIDE, self.end_aside),
        }

    def start_table(self, attributes: Mapping[str, str]) -> None:
        self.tables += 1
        if self.tables == 1 and self.sheet is None:
            self.rows.append(attributes[f"{_TABLE}name"])
        name = attributes.get(f"{_TABLE}name")
        self.is_inside = self.tables == 1 and self.sheet is not None and name == self.sheet

    def end_table(self) -> None:
        self.tables -= 1
        self.is_inside = False

    def start_row(self, attributes: Mapping[str, str]) -> None:
        self.row, self.column, self.size = {}, 0, 0
        self.times = int(attributes.get(f"{_TABLE}number-rows-repeated", "1"))

    def start_cell(self, attributes: Mapping[str, str]) -> None:
        self.cell, self.paragraphs = attributes, []

    def start_aside(self, attributes: Mapping[str, str]) -> None:
        self.asides += 1

    def end_aside(self) -> None:
        self.asides -= 1

    def start_paragraph(self, attributes: Mapping[str, str]) -> None:
        if self.is_inside and not self.asides:
            self.text = ""

    def add(self, character: str, times: str = "1") -> None:
        if self.text is not None and not self.asides:
            self.grow(int(times))
            self.text += character * int(times)

    def data(self, text: str) -> None:
        if not self.asides:
            super().data(text)

    def end_paragraph(self) -> None:
        if self.text is not None and not self.asides:
            plain = re.sub("[ \t\r\n]+", " ", self.text).lstrip(" ")
            self.paragraphs.append(plain.translate(_AS_KEPT))
            self.text = None

    def end_cell(self, read: str | None) -> None:
        times = int(self.cell.get(f"{_TABLE}number-columns-repeated", "1"))
        if read != "":
            if self.column + times > MOST_COLUMNS:
                raise TooLargeError
            self.grow(len(read or "") * times)
            self.row |= dict.fromkeys(range(self.column, self.column + times), read)
        self.column += times

    def end_row(self) -> None:
        if self.is_inside and self.row:
            self.height += self.times
            if self.height > MOST_ROWS:
                raise TooLargeError
            self.rows += [self.row] * self.times

    def _value(self) -> str | None:
        """The text of the cell that ends, None for an error."""
        cell, shown = self.cell, "\n".join(self.paragraphs)
        is_computed = f"{_TABLE}formula" in cell
        if cell.get(f"{_CALC}value-type") == "error" or (is_computed and _ERROR.fullmatch(shown)):
            return None
        kind = cell.get(f"{_OFFICE}value-type", "")
        if kind in ("float", "percentage", "currency"):
            return as_text(float(cell[f"{_OFFICE}value"]))
        if kind in ("date", "time"):
            return _of_iso(cell[f"{_OFFICE}{kind}-value"])
        if kind == "boolean":
            return cell[f"{_OFFICE}boolean-value"]
        return cell.get(f"{_OFFICE}string-value") or shown


class _OpenDocument(_Zip):
    """A workbook of OpenDocument."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sheets = tuple(self._read(None))

    def _read(self, sheet: str | None) -> Iterator[Any]:
        with self._part("content.xml", _PASSED) as part:
            yield from _Sheets(sheet).read(part)

    def rows(self, sheet: str) -> Iterator[Row]:
        return self._read(sheet)
