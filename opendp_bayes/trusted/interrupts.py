"""Ctrl-C around OpenDP: held back while its core runs, let through where our own code runs long.

OpenDP's core calls Python, and a `KeyboardInterrupt` in the code between the two ends the
interpreter. Nothing can be caught there, so it must not be raised there: in `deferred_interrupts`
Ctrl-C waits until the core has returned, or until `interruptible` code is reached below it, whose
caller turns what is raised into an ordinary failure of the callback.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]
_LARGEST_SIGACTION = 1024  # bytes, several times what any system's struct needs


class _Deferral:
    """The handler of SIGINT that holds it back for the handler before it, which usually raises."""

    def __init__(self, outer: _Handler) -> None:
        self.outer = outer
        self.is_open = False  # whether it may be told now
        self.is_due = False  # whether it must be told later

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_due = True
        if not _is_in_opendp(frame):
            self.tell()

    def tell(self) -> None:
        """Tell the outer handler where it may raise. It is told again at the end if it did, because
        what it raises in a callback goes no further.
        """
        if self.is_due and self.is_open:
            self.is_open = False
            self.outer(signal.SIGINT, None)
            self.is_open, self.is_due = True, False


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back during the block (`_handled`), in which numpy treats underflow as 0 as it
    usually does, whatever the caller's process asks of it: most probabilities here are that small.
    """
    import numpy as np  # which what calls this waits for, and not what only shows a message

    with _handled(is_open=False), np.errstate(under="ignore"):
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through during the block, which calls nothing of OpenDP's and runs long, inside of
    `deferred_interrupts`. Whatever is between the two must not let a `KeyboardInterrupt` pass
    OpenDP's core: `guarded` makes it a failure of the callback.
    """
    with _handled(is_open=True):
        yield


@contextmanager
def _handled(is_open: bool) -> Iterator[None]:
    """Let Ctrl-C through during the block, or hold it back; then it is delivered when the outermost
    block is over, to the handler that was in place, whose `KeyboardInterrupt` replaces any other
    exception.

    Other threads than the main one never see Ctrl-C, so nothing is done there, nor where SIGINT has
    no handler in Python.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
    elif isinstance(handler, _Deferral):
        before, handler.is_open = handler.is_open, is_open
        try:
            handler.tell()
            yield
        finally:
            handler.is_open = before
        handler.tell()
    elif is_open:
        yield
    else:
        deferral = _Deferral(handler)
        _set_handler(deferral)
        try:
            yield
        finally:
            _set_handler(handler)
            if deferral.is_due:
                try:
                    handler(signal.SIGINT, None)
                except KeyboardInterrupt as interrupt:
                    raise interrupt from None  # what it made fail is of no interest


def _is_in_opendp(frame: FrameType | None) -> bool:
    """True if code of OpenDP's runs on top of ours: it may at any time, when an object of its kind
    is collected.
    """
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("opendp", "opendp_bayes"):
            return bool(package == "opendp")
        frame = frame.f_back
    return False


def _set_handler(handler: _Handler) -> None:
    """Set Python's handler of SIGINT under the one that the system calls.

    That may be another: polars puts its own before Python's, which stops a scan, and `signal`
    would remove it for good.
    """
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, handler)
        return
    action = _action_below(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
    finally:
        ctypes.CDLL(None).sigaction(signal.SIGINT, action, None)


def _action_below(number: int) -> "ctypes.Array[ctypes.c_char]":
    action = ctypes.create_string_buffer(_LARGEST_SIGACTION)
    ctypes.CDLL(None).sigaction(number, None, action)
    return action
