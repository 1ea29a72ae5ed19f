"""The text of a CSV file: its encoding, its header, and its records in UTF-8, written so that
polars reads them without fail, whatever they hold.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

from opendp_bayes_office.files.encodings import UTF_8

_GZIP = b"\x1f\x8b"
#: Characters that are decoded at a time, and the most that quotes may hold together.
_BLOCK, _LONGEST = 1 << 20, 1 << 26
#: Encodings of units of several bytes, and those by which they are read: the mark of a file says
#: which of two it is.
_UNITS = {name: (name,) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")} | {
    name: (f"{name}-le", f"{name}-be") for name in ("utf-16", "utf-32")
}
_QUOTES = (
    "has a quotation mark that opens inside a value or is never closed, so that records would be"
    ' read as parts of others. Write a value with a quote in it as "5"" pipe".'
)


class FileError(ValueError):
    """A file cannot be read; the message names it, what is wrong and what to do, and tells nothing
    of its content.
    """


@contextmanager
def decoded(stream: Any, encoding: str) -> Iterator[TextIO]:
    """The text of a buffered stream, which may be compressed and stays open; lines end as they do
    there.
    """
    is_compressed = stream.peek(2).startswith(_GZIP)
    content = gzip.GzipFile(fileobj=stream) if is_compressed else stream
    text = io.TextIOWrapper(content, encoding, newline="")
    try:
        yield text
    finally:
        text.detach()


@contextmanager
def text_errors(name: str, encoding: str) -> Iterator[None]:
    """A block that decodes; raises `FileError`, which tells nothing of the text, where that
    fails.
    """
    try:
        yield
        return
    except csv.Error:
        problem = _QUOTES
    except UnicodeError:
        problem = (
            f"is not text in {encoding}. Name the encoding that it is in, such as latin-1, or"
            " utf-16 where it was saved as Unicode: --encoding latin-1, or in a specification"
            " encoding = 'latin-1'."
        )
    except (OSError, EOFError, zlib.error):
        problem = "cannot be read as CSV; check that it is what its extension says."
    raise FileError(f"data={name}: {problem}")


def header_of(text: TextIO) -> str:
    """The first line that is not empty, and those that its quotes include, but no more than a
    block: a quote that nothing ends would include the whole file.
    """
    lines = ""
    while len(lines) < _BLOCK and (line := text.readline(_BLOCK)):
        lines += line if lines else line.removeprefix("\ufeff")
        if not lines.strip():
            lines = ""
        elif lines.count('"') % 2 == 0:
            break
    _check_ends(lines, text.encoding)
    return _with_plain_ends(lines).rstrip("\n")


def values_of(line: str, separator: str, *, trim: bool, strict: bool = False) -> list[str]:
    """The values of a record, or the names of a header; raises `csv.Error` where it is neither."""
    reader = csv.reader(
        [line],
        delimiter=separator,
        skipinitialspace=trim and separator != " ",  # which is not one around a value
        strict=strict,
    )
    return next(reader, [])


def _with_plain_ends(lines: str) -> str:
    return lines.replace("\r\n", "\n").replace("\r", "\n")


def _check_ends(lines: str, encoding: str) -> None:
    """Raise `UnicodeError` where the bytes of an end of a line are parts of two characters: after a
    line with a byte too many all lines up to the next such one would be read as one.
    """
    for order in _UNITS.get(encoding, ()):
        content = lines.encode(order)
        for end in "\r\n":
            if content.count(end.encode(order)) != lines.count(end):
                raise UnicodeError


def copy_records(text: TextIO, copy: BinaryIO, separator: str, *, trim: bool) -> None:
    """Append the rest of a text to a copy in UTF-8, in which every line ends with LF, and every
    quote begins or ends a value or is doubled. Lines of blanks alone are left out.

    Raises
    ------
    UnicodeError
        For bytes that do not fit.
    csv.Error
        Where lines end between quotes that do not begin and end a value: one would let thousands of
        lines be read as part of its own. And for a value of more than 128 KiB.
    """
    of = re.escape(separator)
    blank = re.compile(rf"^[^\S\n{of}]*\n", re.MULTILINE)
    quoted = re.compile(rf'(?<![^\n{of}])"[^"]*(?:""[^"]*)*"(?![^\n{of}])')
    for block in _blocks(text):
        if '"' not in block:
            block = blank.sub("", block)
        elif '"' in quoted.sub("", block) or blank.search(block):
            block = "".join(
                _rewritten(record, separator, trim)
                for record in _records(block.split("\n")[:-1])
                if not blank.fullmatch(f"{record}\n")
            )
        copy.write(block.encode(UTF_8))


def _blocks(text: TextIO) -> Iterator[str]:
    """The lines of a text in blocks, of which each ends where no quote is open."""
    block = ""
    while lines := text.read(_BLOCK) + text.readline():
        _check_ends(lines, text.encoding)
        block += _with_plain_ends(lines)
        if block.count('"') % 2 == 0:
            yield block if block.endswith("\n") else f"{block}\n"
            block = ""
        elif len(block) > _LONGEST:
            raise csv.Error
    if block:
        raise csv.Error


def _records(lines: list[str]) -> Iterator[str]:
    """Lines, those together between which a quote is open."""
    parts: list[str] = []
    quotes = 0
    for line in lines:
        parts.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0:
            yield "\n".join(parts)
            parts = []


def _rewritten(record: str, separator: str, trim: bool) -> str:
    """A record as `csv` reads it; what includes lines, by quotes alone that enclose a value."""
    line = io.StringIO()
    values = values_of(record, separator, trim=trim, strict="\n" in record)
    csv.writer(line, delimiter=separator, lineterminator="\n").writerow(values)
    return line.getvalue()
