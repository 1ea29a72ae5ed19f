"""Temporary files that hold data: each in a folder of its own, which goes with its process.

A folder is locked as long as its process lives, by the system itself: unlike the number of a
process, a lock is never anybody else's, and is seen from every container of the machine. A folder
of ours that is not locked is what a process left that was killed, and goes at the next `sweep`.
"""

import os
import re
import secrets
import sys
import tempfile
import weakref
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from zlib import crc32

from opendp_bayes.trusted import removals

if sys.platform != "win32":
    import fcntl

_PREFIX, _NAME = "opendp-bayes", "data"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class TemporaryFile:
    """An empty file that only its owner can read, in a folder that only its owner can enter.

    Both go by `remove`, at the end of a `with` block, when the object is collected, and when the
    process that made it ends: by itself, by SIGTERM or by SIGHUP. Another process never removes
    them while that one lives.

    Raises `OSError` where it cannot be made.
    """

    def __init__(self) -> None:
        sweep()
        with removals.together():
            self._folder = _made_folder()
            weakref.finalize(self, removals.settle, self._folder).atexit = False
            self.path = self._folder / _NAME
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def remove(self) -> None:
        """Remove the file and its folder. A second time, and in a forked child, it does nothing."""
        removals.settle(self._folder)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def sweep() -> None:
    """Remove, once in each process, what processes of this user left that were killed.

    Looks at folders alone that the package named and this user owns, on this machine, and whose
    lock nobody holds. Links are never followed. What cannot be looked at or removed stays.
    """
    with suppress(OSError):
        _swept(tempfile.gettempdir())


@cache
def _swept(directory: str) -> None:
    if sys.platform == "win32":  # which has no locks of folders
        return
    host, boot = _machine()
    ours = re.compile(f"{_PREFIX}-(?:{host}-[0-9a-f]{{8}}|[0-9a-f]{{8}}-{boot})-[0-9a-f]{{16}}")
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if ours.fullmatch(entry.name)]
    for folder in found:
        with suppress(OSError):
            number = _locked(folder)
            _emptied(folder, number)
            os.close(number)


def _made_folder() -> Path:
    """A new folder with its lock. One that is swept before it is locked is made anew."""
    name = "-".join([_PREFIX, *_machine(), secrets.token_hex(8)])
    folder = Path(tempfile.gettempdir()) / name
    removals.owe(folder, folder.rmdir)
    try:
        folder.mkdir(0o700)
    except OSError:
        removals.keep(folder)
        raise
    try:
        number = None if sys.platform == "win32" else _locked(folder)
    except (BlockingIOError, FileNotFoundError):
        removals.keep(folder)
        return _made_folder()
    except OSError:  # a file system without locks, where nothing is swept either
        number = None
    removals.owe(folder, partial(_emptied, folder, number), number)
    return folder


def _locked(folder: Path) -> int:
    """The folder, opened and locked until it is closed; raises `OSError` where it is locked, not
    there, no folder or somebody else's.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(number).st_uid != os.geteuid():
            raise PermissionError(folder)
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(number), os.lstat(folder)):
            raise FileNotFoundError(folder)
    except OSError:
        os.close(number)
        raise
    return number


def _emptied(folder: Path, number: int | None) -> None:
    """Remove a folder and its file, and nothing else that may be in it, as far as that goes."""
    for _ in range(2):  # whoever was about to write may open the file anew in between
        with suppress(OSError):
            os.unlink(folder / _NAME if number is None else _NAME, dir_fd=number)
        with suppress(OSError):
            folder.rmdir()


@cache
def _machine() -> tuple[str, str]:
    """Eight digits for the name of this machine, which stays when it starts anew, and eight for
    what all its containers share, whatever they are called.
    """
    host = os.uname().nodename if sys.platform != "win32" else "Windows"
    boot = _BOOT.read_text() if _BOOT.exists() else host
    return f"{crc32(host.encode()):08x}", f"{crc32(boot.encode()):08x}"


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_swept.cache_clear)
