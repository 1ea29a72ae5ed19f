"""Write results to standard output, and to new files, which are tried before data are read.

A release has used its budget once it was made. From then on it is not lost, whatever fails: a disk,
a pipe, the posterior, or the patience of whoever waits for it.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opendp_bayes_office.commands.errors import fail, say

if TYPE_CHECKING:
    from opendp_bayes.display.sheet import Sheet

#: Exit code of a command that did what it was to do, but could not write its result.
NOT_WRITTEN = 3
#: In place of a file: its content is printed, and nothing else is.
PRINTED = Path("-")
#: Characters of a name that a file gets.
_LONGEST = 60


def beside(file: Path, title: str) -> Path:
    """A new JSON file in the folder of a file, or in the working directory for standard input, with
    both names in its own.
    """
    stem = "" if file == PRINTED else file.name.partition(".")[0]
    words = re.sub(r"\W+", "-", title).strip("-")[:_LONGEST] or "release"
    ends = chain([""], (f"-{number}" for number in count(2)))
    paths = (file.parent / f"{'-'.join(filter(None, [stem, words]))}{end}.json" for end in ends)
    return next(path for path in paths if not os.path.lexists(path))


def text_in(path: Path) -> str:
    """The text of a file, or of standard input; exits with a message where it cannot be read."""
    try:
        content = sys.stdin.buffer.read() if path == PRINTED else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        fail(f"{path}: cannot be read ({error.strerror}).")
    except UnicodeDecodeError:
        fail(f"{path}: is not text in UTF-8; save it in that encoding.")


def display(*shown: "Sheet | str") -> None:
    """Print sheets and texts, one below the other, on standard output, as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    echo("\n".join(text if isinstance(text, str) else text.text(width) for text in shown))


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A block that shows, on a terminal's standard error, what is being done, and for how long."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    is_off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_off) as line:
        line.add_task(what, total=None)
        yield


def echo(text: str, *, newline: bool = True) -> None:
    """Print a text on standard output and make sure that it arrived; exits with a message and
    `NOT_WRITTEN` if it did not.
    """
    with written("standard output"):
        try:
            typer.echo(text, nl=newline)
            sys.stdout.flush()
        except OSError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - or the interpreter would fail again
            raise


@contextmanager
def keeping(path: Path) -> Iterator[Callable[[str], None]]:
    """A block in which releases are made, which hands their JSON to a function that keeps it: in a
    `NewFile`, or where that cannot be written, on standard error.
    """
    from opendp_bayes import ReleaseInterrupted

    file, releases = NewFile(path), list[str]()

    def keep(text: str) -> None:
        releases.append(text)
        file.write(text.encode() + b"\n")

    try:
        yield keep
    except BaseException as error:
        if isinstance(error, ReleaseInterrupted) and not releases:
            keep(error.release.to_json())
        if releases:
            place = (
                f"it is in {path}, and `opendp-bayes show` prints it."
                if file.is_written
                else f"it could not be written, so it is here: {releases[0]}"
            )
            say(f"the release was made and has used its budget; {place}")
        elif isinstance(error, KeyboardInterrupt):
            say("stopped; nothing was released.")
        raise


class NewFile:
    """A file that replaces no other, or standard output. Whether it can be made is tried at once;
    it is there once it has its content, so that a process that is killed before leaves no name.

    Attributes
    ----------
    path
        Of the file, or `PRINTED`.
    is_written
        Whether it has its content.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.is_written = path, False
        try:
            if path != PRINTED:
                path.touch(exist_ok=False)
                path.unlink()
        except FileExistsError:
            fail(
                f"--output {path}: exists already, and may hold a release that has used budget;"
                " name a new file, or move that one."
            )
        except OSError as error:
            fail(f"--output {path}: cannot be written ({error.strerror}); name another file.")

    def write(self, content: bytes) -> None:
        """Write all the content; exits with a message and `NOT_WRITTEN` where that fails."""
        if self.path == PRINTED:
            echo(content.decode(), newline=False)
        else:
            with written(self.path), open(self.path, "xb") as file, ExitStack() as failed:
                failed.callback(self.path.unlink)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                failed.pop_all()
        self.is_written = True


@contextmanager
def written(what: object) -> Iterator[None]:
    """A block that writes; exits with a message and `NOT_WRITTEN` where that fails."""
    try:
        yield
    except OSError as error:
        fail(f"{what}: cannot be written ({error.strerror}).", code=NOT_WRITTEN)
