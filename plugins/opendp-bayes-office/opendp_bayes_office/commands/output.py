"""Write results to standard output, and to files that are there whole or not at all.

A release has used its budget once it was made. From then on it is not lost, whatever fails: a disk,
a pipe, the posterior, or the patience of whoever waits for it.
"""

import io
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import typer

from opendp_bayes_office.commands.errors import fail, say

if TYPE_CHECKING:
    from opendp_bayes.display.sheet import Sheet

#: Exit code of a command that did what it was to do, but could not write its result.
NOT_WRITTEN = 3
#: In place of a file: its content is printed, and nothing else is.
PRINTED = Path("-")
_SHOWN = "`opendp-bayes show` prints it."
#: Characters of a name that a file gets.
_LONGEST = 60


def beside(file: Path, name: str) -> Path:
    """A new JSON file in the folder of a file, or of the files that match a pattern, or in the
    working directory for standard input, with both names in its own.
    """
    stem = "" if file == PRINTED else re.sub(r"[*?\[\]]", "", file.name.partition(".")[0])
    called = re.sub(r"\W+", "-", name).strip("-")[:_LONGEST] or "release"
    name = f"{stem}-{called}" if stem else called
    ends = chain([""], (f"-{number}" for number in count(2)))
    folder = next((of for of in file.parents if of.is_dir()), file.parent)
    names = (folder / f"{name}{end}.json" for end in ends)
    return next(path for path in names if not os.path.lexists(path))


def on_a_terminal() -> bool:
    """True if standard output is a terminal, which shows standard error as well."""
    return sys.stdout.isatty()


def display(*shown: "Sheet | str") -> None:
    """Print sheets and texts, one below the other, on standard output, as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    echo("\n".join(part if isinstance(part, str) else part.text(width) for part in shown))


def echo(text: str, *, newline: bool = True) -> None:
    """Print a text on standard output and make sure that it arrived; exits with a message and
    `NOT_WRITTEN` if it did not.
    """
    with written("standard output"):
        try:
            typer.echo(text, nl=newline)
            sys.stdout.flush()
        except OSError:
            _discard_standard_output()
            raise


class LikeStandardOutput(io.StringIO):
    """A buffer that is a terminal, and of the encoding, that standard output is."""

    def __init__(self) -> None:
        super().__init__()
        self._like = sys.stdout  # which may be redirected here

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._like.encoding

    def isatty(self) -> bool:
        return self._like.isatty()


class Kept:
    """A block in which a release is made, and kept once it was.

    `path` is the file for it. It is opened before the block, so that a place that cannot be written
    to is found before data are read. Without `path`, and where writing it fails after all, the
    release goes to a file in the working or the temporary directory if the block fails.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = None if path in (None, PRINTED) else NewFile(path)
        self._unsaved: str | None = None
        self._place = ""

    def __enter__(self) -> "Kept":
        return self

    def keep(self, text: str) -> None:
        """Keep the JSON of all releases."""
        self._unsaved = text
        if self._file is not None:
            with written(self._file.path):
                self._file.write(text.encode() + b"\n")
            self._place = f"it is in {self._file.path}, and {_SHOWN}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt) and self._unsaved is None:
            say("stopped; nothing was released.")
        if self._unsaved is not None and error is not None:
            place = self._place or _rescued(self._unsaved)
            say(f"the release was made and has used its budget; {place}")
        if self._file is not None:
            self._file.close()


class NewFile:
    """A file that is there whole or not at all, and that replaces no other.

    It is written under another name beside its own, which is opened at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if os.path.isdir(path):  # unlike `is_dir`, also of names that are too long
            fail(f"--output {path}: is a folder; name a file in it, which must not exist yet.")
        if not os.path.isdir(path.parent):
            fail(f"--output {path}: there is no folder {path.parent}; make it, or name another.")
        if os.path.lexists(path):
            fail(
                f"--output {path}: exists already, and may hold a release that has used budget;"
                " name a new file, or move that one."
            )
        self._beside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        try:
            self._file = open(self._beside, "xb")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            fail(f"--output {path}: cannot be written ({_reason(error)}); name another file.")

    def write(self, content: bytes) -> None:
        """Put the file, with this content, in its place."""
        with self._file as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(self._beside, self.path)  # unlike a new name, never replaces
        except OSError:
            if os.path.lexists(self.path):
                raise
            os.rename(self._beside, self.path)  # a file system without links

    def close(self) -> None:
        """Remove the file under the other name, if there is one."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._beside.unlink()


def _rescued(text: str) -> str:
    """Write the release where there is room for it; a sentence that says where."""
    for directory in (Path.cwd(), Path(tempfile.gettempdir())):
        with suppress(OSError):
            number, name = tempfile.mkstemp(".json", "opendp-bayes-release-", directory)
            try:
                with open(number, "w", encoding="utf-8") as file:
                    file.write(f"{text}\n")
                    file.flush()
                    os.fsync(number)
            except OSError:
                os.unlink(name)
                continue
            return f"it is in {name}, and {_SHOWN}"
    return f"no file could be written, so it is here: {text}"


@contextmanager
def written(what: object, advice: str = "") -> Iterator[None]:
    """A block that writes; exits with a message, `advice` after it, and `NOT_WRITTEN` where that
    fails.
    """
    try:
        yield
    except OSError as error:
        fail(f"{what}: cannot be written ({_reason(error)}).{advice}", code=NOT_WRITTEN)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _discard_standard_output() -> None:
    """Let the interpreter not fail a second time at its end, with the rest of the buffer."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
