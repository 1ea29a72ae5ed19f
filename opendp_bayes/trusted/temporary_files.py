"""Temporary files that hold data. Where the system has files without a name, they are such files:
they go with the process, however it ends.
"""

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from weakref import finalize

#: Where a process finds its open files by their numbers, also those without a name.
_OPEN_FILES = Path("/proc/self/fd")


class TemporaryFile:
    """An empty file that only its owner can read, at its `path`.

    It goes by `close`, at the end of a `with` block, when the object is collected, and when the
    process that made it ends. A process that is killed leaves it where the system has no files
    without a name; otherwise a link to nothing. Raises `OSError` where it cannot be made.
    """

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="opendp-bayes-")
        # The path is never used again, as the number of an open file is.
        self.path = Path(folder, "data")
        closing = ExitStack()
        self._remove = finalize(self, _removed, folder, closing, os.getpid())
        if _OPEN_FILES.is_dir():
            file = closing.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self.path.symlink_to(_OPEN_FILES / str(file.fileno()))
        else:
            self.path.touch(0o600)

    def close(self) -> None:
        """Remove the file; a second time, it does nothing."""
        self._remove()

    def __enter__(self) -> Any:
        return self.path

    def __exit__(self, *failure: object) -> None:
        self.close()


def _removed(folder: str, closing: ExitStack, process: int) -> None:
    """Remove a folder, unless it is that of the process which this one was forked from, and close
    the file.
    """
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    closing.close()
