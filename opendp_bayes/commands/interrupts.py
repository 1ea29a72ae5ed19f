"""Every Ctrl-C of the command line, counted, so that an error that one became in a callback is told
from others.
"""

import signal
from typing import Any, NoReturn

#: Every Ctrl-C so far. In a callback of OpenDP it becomes an error like any other, and this tells
#: it from one.
interrupts: list[int] = []


def count_interrupts() -> None:
    """Count Ctrl-C from now on; to be called before polars is imported, which adds a handler of its
    own that stops a scan.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: Any) -> NoReturn:
    interrupts.append(number)
    raise KeyboardInterrupt
