"""The text of a CSV file: its encoding, its header, and the rest of it in UTF-8."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, TextIO

from opendp_bayes.release_format.kind_of_text import UTF_16
from opendp_bayes.trusted.encodings import UTF_8

#: Compressed files by what they begin with, as no text does.
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: Characters that are decoded at a time.
_BLOCK = 1 << 20
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


class _Quotes:
    """Quotes in the lines of a text, which may enclose ends of lines only where they begin and end
    a value: else a stray one would let thousands of lines be read as part of its own.
    """

    def __init__(self, separator: str) -> None:
        self._ends = f"{separator}\r\n"
        self.is_open = False
        self.are_wrong = False
        self._begin_a_value = True
        self._enclose_lines = False

    def read(self, text: str) -> None:
        """Look at the next lines."""
        if self.is_open or '"' in text:
            for line in text.split("\n"):
                self._read_line(line)

    def _read_line(self, line: str) -> None:
        parts = line.split('"')
        if not self.is_open and len(parts) % 2:
            return
        for at, part in enumerate(parts[1:], start=1):
            before = parts[at - 1]
            self.is_open = not self.is_open
            if not self.is_open:
                self.are_wrong |= self._enclose_lines and part[:1] not in self._ends
            elif before or at == 1:  # otherwise the second of two, which is part of the value
                self._begin_a_value = not before or before[-1] in self._ends
                self._enclose_lines = False
        if self.is_open:
            self._enclose_lines = True
            self.are_wrong |= not self._begin_a_value


@contextmanager
def decoded(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a file, which may be compressed; lines end as they do there."""
    with path.open("rb") as file:
        start = file.read(4)
    kind = next((kind for magic, kind in COMPRESSED.items() if start.startswith(magic)), None)
    _check_mark(start, encoding)
    if kind is None:
        with path.open(encoding=encoding, newline="\n") as text:
            yield text
        return
    import pyarrow as pa  # reads zstd, too

    with (
        pa.input_stream(str(path), compression=kind) as stream,
        io.TextIOWrapper(stream, encoding, newline="\n") as text,
    ):
        yield text


@contextmanager
def decoded_input(stream: BinaryIO, encoding: str) -> Iterator[TextIO]:
    """The text of standard input, which stays open; raises `FileError` if it is compressed."""
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]
    text = io.TextIOWrapper(buffered, encoding, newline="\n")
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


def header_of(text: TextIO) -> str:
    """The first line that is not empty, and those that its quotes include, but no more than a
    block: a quote that nothing ends would include the whole file.
    """
    lines, length, quotes = [""], 0, 0
    while length < _BLOCK and (line := text.readline(_BLOCK)):
        lines.append(line)
        length += len(line)
        quotes += line.count('"')
        if quotes % 2 == 0 and line.strip("\ufeff\r\n\t "):
            break
    found = "".join(lines)
    _check_ends(found, text.encoding)
    return found.removeprefix("\ufeff")


def _check_ends(lines: str, encoding: str) -> None:
    """Raise `UnicodeError` where the bytes of an end of a line are parts of two characters: after a
    line with a byte too many all lines up to the next such one would be read as one.
    """
    for order in _UNITS.get(encoding, ()):
        if lines.encode(order).count("\n".encode(order)) != lines.count("\n"):
            raise UnicodeError


def read_all(text: TextIO, separator: str, copy: Path | None) -> None:
    """Decode the rest of a text, and append it to a copy in UTF-8 where there is one; raise
    `_QuotesError` where its quotes do not fit, and `UnicodeError` where its bytes do not.
    """
    quotes = _Quotes(separator)
    with nullcontext() if copy is None else copy.open("a", encoding=UTF_8, newline="") as file:
        while lines := text.read(_BLOCK) + text.readline():
            _check_ends(lines, text.encoding)
            quotes.read(lines)
            if file is not None:
                file.write(lines)
    if quotes.are_wrong or quotes.is_open:
        raise _QuotesError
