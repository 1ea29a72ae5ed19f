"""The file of a ledger, which is locked itself: no file beside it, which somebody could remove.

It is read and appended to by the descriptor that holds the lock, so that what is checked is what
is written to. It is never replaced: a file that takes its name has no lock of ours.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from opendp_bayes.trusted.account import Entry, LedgerError, line_of
from opendp_bayes.trusted.interrupts import interruptible

#: As text Windows would write other line feeds.
_BINARY = getattr(os, "O_BINARY", 0)
_BLOCK = 1 << 20
#: Seconds after which a lock that somebody else has is asked for again.
_PAUSE = 0.01

if sys.platform == "win32":
    import msvcrt

    #: A byte behind the end of any ledger: what is locked there nobody else can read.
    _PLACE = 1 << 30
    _TAKEN: type[OSError] = PermissionError

    def _take(number: int) -> None:
        os.lseek(number, _PLACE, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

    def _give(number: int) -> None:
        os.lseek(number, _PLACE, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    _TAKEN = BlockingIOError

    def _take(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _give(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_UN)


@dataclass(frozen=True)
class LedgerFile:
    """A ledger's file while it is locked.

    Attributes
    ----------
    number : the descriptor that holds the lock.
    text : everything that the file held when it was locked.
    """

    path: Path
    number: int
    text: bytes

    def append(self, entry: Entry) -> None:
        """Append a line, and wait until it is on the disk. What a full disk took of it is removed
        again.

        Raises `LedgerError` where the line cannot be written, or the file has another text or name
        than when it was locked.
        """
        is_new = not self.text
        start = b"" if is_new or self.text.endswith(b"\n") else b"\n"
        with file_errors(self.path, "written"):
            self._check_same()
            _write(self.number, start + line_of(entry), len(self.text))
            if is_new:
                _sync_directory(self.path.parent)

    def _check_same(self) -> None:
        same = _has_name(self.path, self.number)
        if not same or os.fstat(self.number).st_size != len(self.text):
            raise LedgerError(
                f"ledger {self.path}: was replaced or written to since it was locked, so what was"
                " made meanwhile is not handed out, and nothing is entered. Let nothing but this"
                " package write there, and ask again."
            )


@contextmanager
def locked(path: Path, *, new: bool = False) -> Iterator[LedgerFile]:
    """Hold the lock of a ledger during the block. Others wait; Ctrl-C ends the wait.

    Parameters
    ----------
    path : the file.
    new : whether it is made where it is not there.

    Raises `LedgerError` where it cannot be opened, written or locked.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if new else 0)
    number = _held(path, flags, "made" if new else "opened")
    try:
        with file_errors(path, "read"):
            text = _text(number)
        yield LedgerFile(path, number, text)
    finally:
        _let_go(number)


def text_of(path: Path) -> bytes:
    """All of a ledger's file, which need not be writable, as it is between two entries. Where it
    cannot be locked nobody writes.
    """
    with file_errors(path, "opened"):
        number = os.open(path, os.O_RDONLY | _BINARY)
        try:
            with suppress(LedgerError):
                _wait(path, number)
            return _text(number)
        finally:
            _let_go(number)


@contextmanager
def file_errors(path: Path, action: str) -> Iterator[None]:
    """Raise `LedgerError` for an error of the system, with what could not be done."""
    try:
        yield
    except OSError as error:
        advice = (
            " A ledger is made by giving it a total, as in epsilon=3.0."
            if isinstance(error, FileNotFoundError) and action == "opened"
            else ""
        )
        raise LedgerError(
            f"ledger {path}: cannot be {action} ({error.strerror or error}), so nothing is released"
            f" or spent.{advice}"
        ) from None


def _held(path: Path, flags: int, action: str) -> int:
    """Open and lock the file that has the name when it is locked."""
    while True:
        with file_errors(path, action):
            number = os.open(path, flags | _BINARY, 0o666)
        try:
            _wait(path, number)
            with suppress(FileNotFoundError):
                if _has_name(path, number):
                    return number
        except BaseException:
            os.close(number)
            raise
        _let_go(number)


def _wait(path: Path, number: int) -> None:
    """Lock an open file as soon as nobody else has it locked."""
    with file_errors(path, "locked"), interruptible():
        while True:
            try:
                return _take(number)
            except _TAKEN:
                time.sleep(_PAUSE)


def _let_go(number: int) -> None:
    """Unlock and close a file: a child of this process may have it open still."""
    with suppress(OSError):
        _give(number)
    os.close(number)


def _has_name(path: Path, number: int) -> bool:
    """True if the name leads to the open file."""
    return os.path.samestat(path.stat(), os.fstat(number))


def _text(number: int) -> bytes:
    os.lseek(number, 0, os.SEEK_SET)
    return b"".join(iter(lambda: os.read(number, _BLOCK), b""))


def _write(number: int, line: bytes, length: int) -> None:
    """Write all of a line at the end of a file of this length, or none of it."""
    try:
        rest = line
        while rest:
            rest = rest[os.write(number, rest) :]
        os.fsync(number)
    except OSError:
        with suppress(OSError):
            os.ftruncate(number, length)
        raise


def _sync_directory(path: Path) -> None:
    """Let the name of a new file be on the disk, too, where the system can."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
