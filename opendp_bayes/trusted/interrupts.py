"""Ctrl-C around OpenDP: held back while its core runs.

OpenDP's core calls Python, and a `KeyboardInterrupt` in the code between the two ends the
interpreter. Nothing can be caught there, so it must not be raised there: in `deferred_interrupts`
Ctrl-C waits until the core has returned. A callback that counts stops at once all the same: what is
raised in one becomes its failure.
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
        self.is_due = False
        self.may_raise = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_due = True
        if self.may_raise:
            self.may_raise = False
            raise KeyboardInterrupt

    def deliver(self) -> None:
        """Call the handler before it, if Ctrl-C came."""
        if self.is_due:
            self.is_due = False
            self.outer(signal.SIGINT, None)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back during the block. When the outermost block is over, it is delivered to the
    handler that was in place, whose `KeyboardInterrupt` replaces any other exception.

    Other threads than the main one never see Ctrl-C, so nothing is done there, nor where SIGINT has
    no handler in Python. In the block numpy treats underflow as 0 as it usually does, whatever the
    caller's process asks of it: most probabilities here are that small.
    """
    import numpy as np  # which what calls this waits for, and not what only shows a message

    handler = _handler()
    with np.errstate(under="ignore"):
        if handler is None or isinstance(handler, _Deferral):
            yield
            return
        deferral = _Deferral(handler)
        _set_handler(deferral)
        try:
            yield
        finally:
            _set_handler(handler)
            try:
                deferral.deliver()
            except KeyboardInterrupt as interrupt:
                raise interrupt from None  # what it made fail is of no interest


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the block, by a `KeyboardInterrupt` at once if it is held back already. The
    block lies in a callback that catches it. One that only takes note of Ctrl-C, in a handler of
    the caller's own, is not stopped.
    """
    handler = _handler()
    if not isinstance(handler, _Deferral) or handler.outer is not signal.default_int_handler:
        yield
        return
    handler.may_raise = True
    try:
        if handler.is_due:
            raise KeyboardInterrupt
        yield
    finally:
        handler.may_raise = False


def deliver_interrupt() -> None:
    """Deliver Ctrl-C now if it is held back. Nothing of OpenDP's may be at work."""
    handler = _handler()
    if isinstance(handler, _Deferral):
        handler.deliver()


def _handler() -> _Handler | None:
    """The handler of SIGINT in Python; None in threads that never see it."""
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    return handler if is_main and callable(handler) else None


def _set_handler(handler: _Handler) -> None:
    """Set Python's handler of SIGINT under the one that the system calls.

    That may be another: polars puts its own before Python's, which stops a scan, and `signal`
    would remove it for good.
    """
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, handler)
        return
    sigaction = ctypes.CDLL(None).sigaction
    action = ctypes.create_string_buffer(_LARGEST_SIGACTION)
    sigaction(signal.SIGINT, None, action)
    try:
        signal.signal(signal.SIGINT, handler)
    finally:
        sigaction(signal.SIGINT, action, None)
