"""Removals that this process owes: files that go with it, however it ends. Python's exit, SIGTERM
and SIGHUP are heard here; a child that was forked owes nothing of its parent's.

A handler in Python waits until the main thread is back from the code of another language, such as
a long scan. A second thread therefore reads what Python writes at once where a signal arrives.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from opendp_bayes.trusted.interrupts import handler_below, system

_SIGNALS: tuple[int, ...] = (
    () if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)  # which Windows never sends
)


@dataclass(frozen=True)
class _Owed:
    """What is done at the end, and the open file that is held until then."""

    remove: Callable[[], object]
    held: int | None

    def drop(self) -> None:
        if self.held is not None:
            with suppress(OSError):
                os.close(self.held)


class _Owner:
    """Everything that one process owes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owed: dict[Path, _Owed] = {}
        self.pipe: tuple[int, int] | None = None
        self._heard: dict[int, bytes] = {}  # signals, with what the system calls then
        self._hears_exit = False

    def owe(self, path: Path, owed: _Owed) -> None:
        with self.lock:
            self._hear_exit()
            self._hear_signals()
            self.owed[path] = owed

    def settle(self, path: Path, *, done: bool) -> None:
        """Take a path off the list, after its removal or without."""
        with self.lock:
            owed = self.owed.get(path)
            if owed is None:
                return
            if done:  # and on the list until then: a signal may come in between
                with suppress(OSError):
                    owed.remove()
            del self.owed[path]
            owed.drop()
            if not self.owed:
                self._leave_signals()

    def settle_all(self) -> None:
        for path in list(self.owed):
            self.settle(path, done=True)

    def end(self, number: int) -> None:
        """Remove everything, and let the signal do what it does by default."""
        with self.lock:  # so that no other thread makes anything new
            self.settle_all()
            _restore_default(number)
            os.kill(os.getpid(), number)

    def forget(self) -> None:
        """Leave everything to the parent of this process, and its locks with it."""
        for owed in self.owed.values():
            owed.drop()
        self._leave_signals()
        for number in self.pipe or ():
            with suppress(OSError):
                os.close(number)

    def _hear_exit(self) -> None:
        if self._hears_exit:
            return
        self._hears_exit = True
        processes = sys.modules.get("multiprocessing.util")
        if processes is None:
            atexit.register(_settle_all)
        else:  # which is also heard in its children, and after they have been waited for
            processes.Finalize(None, _settle_all, exitpriority=-1)

    def _hear_signals(self) -> None:
        """Take over the signals that would end this process by default, where Python lets us."""
        if not _is_main() or os.getpid() == 1:  # of a container: by default they do nothing there
            return
        for number in _SIGNALS:
            if not any(handler_below(number)):  # nor ignored
                signal.signal(number, _ended)
                self._heard[number] = handler_below(number)
        if self._heard and self.pipe is None:
            self._watch()
        if self._heard and self.pipe is not None:
            _exchange_wakeup(-1, self.pipe[1])

    def _watch(self) -> None:
        pipe = os.pipe()
        os.set_blocking(pipe[1], False)
        try:
            threading.Thread(
                target=_watched, args=pipe[:1], name="opendp-bayes-signals", daemon=True
            ).start()
            self.pipe = pipe
        except RuntimeError:  # no thread starts any more: Python's handler has to do
            for number in pipe:
                os.close(number)

    def _leave_signals(self) -> None:
        """Restore the default of the signals that nobody has taken over since."""
        if not _is_main():
            return
        if self.pipe is not None:
            _exchange_wakeup(self.pipe[1], -1)
        for number, below in self._heard.items():
            if signal.getsignal(number) is _ended and handler_below(number) == below:
                _restore_default(number)  # first, so that Python forgets none that has come
                signal.signal(number, signal.SIG_DFL)
        self._heard.clear()


def owe(path: Path, remove: Callable[[], object], held: int | None = None) -> None:
    """Let a file or folder go with this process, by `settle` at the latest.

    Parameters
    ----------
    path : names it.
    remove : removes it; what it raises as `OSError` is passed over.
    held : an open file that is closed after that.
    """
    _owner.owe(path, _Owed(remove, held))


def settle(path: Path) -> None:
    """Remove it, if this process owes that."""
    _owner.settle(path, done=True)


def keep(path: Path) -> None:
    """Owe its removal no longer."""
    _owner.settle(path, done=False)


@contextmanager
def together() -> Iterator[None]:
    """A block that no other thread's removals come between, nor the end that they are part of."""
    with _owner.lock:
        yield


def _settle_all() -> None:
    _owner.settle_all()


def _ended(number: int, frame: FrameType | None) -> None:
    """Handler of the signals."""
    _owner.end(number)


def _watched(number: int) -> None:
    """Read the signals as they come."""
    with suppress(OSError):
        while received := os.read(number, 64):
            for each in received:
                if each in _SIGNALS and signal.getsignal(each) is _ended:
                    _owner.end(each)


def _restore_default(number: int) -> None:
    """Give a signal its default action below Python, from whichever thread."""
    system().signal(number, None)


def _exchange_wakeup(expected: int, new: int) -> None:
    """Let Python write signals here, unless they go to somebody else."""
    found = signal.set_wakeup_fd(new, warn_on_full_buffer=False)
    if found not in (expected, new):
        signal.set_wakeup_fd(found)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _begin_anew() -> None:
    global _owner
    _owner.forget()
    _owner = _Owner()


_owner = _Owner()
if sys.platform != "win32":
    os.register_at_fork(
        before=lambda: _owner.lock.acquire(),
        after_in_parent=lambda: _owner.lock.release(),
        after_in_child=_begin_anew,
    )
