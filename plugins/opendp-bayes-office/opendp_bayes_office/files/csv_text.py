"""The text of a CSV file: its encoding, its header, and its records in UTF-8, written so that
polars reads them without fail, whatever they hold.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np

from opendp_bayes.release_format.kind_of_text import UTF_16
from opendp_bayes_office.files.encodings import UTF_8

#: Compressed files by what they begin with, as no text does.
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: Characters that are decoded at a time, and the most that quotes may hold together.
_BLOCK, _LONGEST = 1 << 20, 1 << 26
#: The first line by which Excel says what separates values.
_SAYS = re.compile(r'"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)
_QUOTE, _NEW_LINE = b'"\n'  # as numbers
#: Encodings of units of several bytes, and those by which they are read: the mark of a file says
#: which of two it is.
_UNITS = {name: (name,) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")} | {
    name: (f"{name}-le", f"{name}-be") for name in ("utf-16", "utf-32")
}


class FileError(Exception):
    """A file cannot be read; the message names it, what is wrong and what to do, and tells nothing
    of its content.
    """


class _MarkedError(UnicodeError):
    """Text that is to be read in UTF-8 and says that it is in UTF-16."""


class _QuotesError(ValueError):
    """Text whose quotes make one record of lines that need not be one."""


@contextmanager
def decoded(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a file, which may be compressed; lines end as they do there."""
    with path.open("rb") as file:
        start = file.read(4)
    kind = next((kind for magic, kind in COMPRESSED.items() if start.startswith(magic)), None)
    _check_mark(start, encoding)
    if kind is None:
        with path.open(encoding=encoding, newline="") as text:
            yield text
        return
    import pyarrow as pa  # reads zstd, too

    with (
        pa.input_stream(str(path), compression=kind) as stream,
        io.TextIOWrapper(stream, encoding, newline="") as text,
    ):
        yield text


@contextmanager
def decoded_input(stream: BinaryIO, encoding: str) -> Iterator[TextIO]:
    """The text of standard input, which stays open; raises `FileError` if it is compressed."""
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]
    text = io.TextIOWrapper(buffered, encoding, newline="")
    try:
        start = buffered.peek(4)
        _check_mark(start, encoding)
        if start.startswith(tuple(COMPRESSED)):
            raise FileError(
                "FILE -: standard input is compressed. Give the name of the file, or decompress it"
                " before, as in gzip -dc FILE.csv.gz | opendp-bayes ..."
            )
        yield text
    finally:
        text.detach()
        buffered.detach()


def _check_mark(start: bytes, encoding: str) -> None:
    if encoding == UTF_8 and start.startswith(UTF_16):
        raise _MarkedError


@contextmanager
def text_errors(name: str, encoding: str) -> Iterator[None]:
    """A block that decodes; raises `FileError`, which tells nothing of the text, where that
    fails.
    """
    try:
        yield
    except _MarkedError:
        problem = (
            "is text in UTF-16. Say so: --encoding utf-16, or in a specification encoding ="
            " 'utf-16'."
        )
    except _QuotesError:
        problem = (
            "has quotes between which lines end that do not begin and end a value, so that records"
            ' would be read as parts of others. Write a value with a quote in it as "5"" pipe".'
        )
    except UnicodeError:
        problem = (
            f"is not text in {encoding}. Name the encoding that it is in: --encoding latin-1, for"
            " example, or in a specification encoding = 'latin-1'."
        )
    except OSError:
        problem = "cannot be read as CSV; check that it is what its extension says."
    else:
        return
    raise FileError(f"FILE {name}: {problem}")


def header_of(text: TextIO) -> tuple[str, str | None]:
    """The first line that is not empty, and those that its quotes include, but no more than a
    block: a quote that nothing ends would include the whole file. Before it there may be a line
    that says what separates values, and which character that is.
    """
    lines: list[str] = []
    length, quotes, said = 0, 0, None
    while length < _BLOCK and (line := text.readline(_BLOCK)):
        line = line if lines else line.removeprefix("\ufeff")
        if not lines and (found := _SAYS.fullmatch(line)):
            said = found[1]
        elif lines or line.strip():
            lines.append(line)
            length, quotes = length + len(line), quotes + line.count('"')
            if quotes % 2 == 0:
                break
    found_lines = "".join(lines)
    _check_ends(found_lines, text.encoding)
    return _with_plain_ends(found_lines).rstrip("\n"), said


def values_of(line: str, separator: str, *, trim: bool) -> list[str]:
    """The values of a record, or the names of a header; raises `csv.Error` where it is neither."""
    # A blank that separates is not one around a value.
    skipped = trim and separator != " "
    return next(csv.reader([line], delimiter=separator, skipinitialspace=skipped), [])


def _with_plain_ends(lines: str) -> str:
    return lines.replace("\r\n", "\n").replace("\r", "\n") if "\r" in lines else lines


def _check_ends(lines: str, encoding: str) -> None:
    """Raise `UnicodeError` where the bytes of an end of a line are parts of two characters: after a
    line with a byte too many all lines up to the next such one would be read as one.
    """
    for order in _UNITS.get(encoding, ()):
        content = lines.encode(order)
        for end in "\r\n":
            if content.count(end.encode(order)) != lines.count(end):
                raise UnicodeError


def copy_records(
    text: TextIO, copy: BinaryIO, separator: str, *, trim: bool, keep_blank: bool
) -> None:
    """Append the rest of a text to a copy in UTF-8, in which every line ends with LF, and every
    quote begins or ends a value or is doubled. Lines of blanks alone are left out, or are to be
    kept, without a character.

    Raises `_QuotesError` where lines end between quotes that do not begin and end a value: one
    would let thousands of lines be read as part of its own.

    Raises
    ------
    UnicodeError
        For bytes that do not fit.
    """
    blank = re.compile(rf"^[^\S\n{re.escape(separator)}]+$", re.MULTILINE)
    for lines in _whole_records(text):
        content = _emptied(lines, blank).encode(UTF_8)
        if _QUOTE in content and not _are_plain(content, separator):
            content = _written(content.decode(UTF_8), separator, trim=trim).encode(UTF_8)
        copy.write(content if keep_blank else _without_blank(content))


def _emptied(lines: str, blank: re.Pattern[str]) -> str:
    """Lines, those of blanks alone without a character, but not within quotes."""
    if not blank.search(lines):
        return lines
    quotes, parts = 0, []
    for line in lines.split("\n"):
        parts.append("" if quotes % 2 == 0 and blank.fullmatch(line) else line)
        quotes += line.count('"')
    ends = "" if parts[-1] == line else "\n"  # of a line that the text does not end
    return "\n".join(parts) + ends


def _whole_records(text: TextIO) -> Iterator[str]:
    """The lines of a text in blocks, of which each ends where no quote is open."""
    parts: list[str] = []
    quotes = length = 0
    while lines := text.read(_BLOCK) + text.readline():
        _check_ends(lines, text.encoding)
        parts.append(lines := _with_plain_ends(lines))
        quotes += lines.count('"') if '"' in lines else 0  # to look for one takes no time
        length += len(lines)
        if quotes % 2 == 0:
            yield "".join(parts)
            parts, length = [], 0
        elif length > _LONGEST:
            raise _QuotesError
    if parts:
        raise _QuotesError


def _are_plain(content: bytes, separator: str) -> bool:
    """True if every quote begins or ends a value, or is one of two that stand for one."""
    at, is_end = np.frombuffer(b"\n" + content + b"\n", np.uint8), np.zeros(256, bool)
    is_end[[_NEW_LINE, ord(separator)]] = True
    places = np.flatnonzero(at == _QUOTE)
    if len(places) % 2:
        return False
    begin, end = places[::2], places[1::2]
    is_doubled = end[:-1] + 1 == begin[1:]
    begins, ends = is_end[at[begin - 1]], is_end[at[end + 1]]
    begins[1:] |= is_doubled
    ends[:-1] |= is_doubled
    return bool(begins.all() and ends.all())


def _without_blank(content: bytes) -> bytes:
    """Leave out lines without a character, but not within quotes."""
    at = np.frombuffer(b"\n" + content, np.uint8)
    is_new = at == _NEW_LINE
    is_blank = is_new[1:] & is_new[:-1]
    if not is_blank.any():
        return content
    is_blank &= np.cumsum(at[1:] == _QUOTE) % 2 == 0
    return at[1:][~is_blank].tobytes()


def _written(lines: str, separator: str, *, trim: bool) -> str:
    """Write records anew, as `csv` reads them."""
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    for record in _records(lines.removesuffix("\n").split("\n")):
        if not record or "\n" in record:
            if not _are_plain(record.encode(UTF_8), separator):
                raise _QuotesError
            written.write(f"{record}\n")
            continue
        try:
            writer.writerow(values_of(record, separator, trim=trim))
        except csv.Error:  # of a value of more than 128 KiB
            raise _QuotesError from None
    return written.getvalue()


def _records(lines: Iterable[str]) -> Iterator[str]:
    """Lines, those together between which a quote is open."""
    parts: list[str] = []
    quotes = 0
    for line in lines:
        parts.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0:
            yield "\n".join(parts)
            parts = []
