"""Report the progress of a computation that takes longer than a second."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

#: Called with the name of a step, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def silent(step: str, done: int, total: int, /) -> None:
    """The progress that nobody watches."""


def waiting(what: str) -> AbstractContextManager[Any]:
    """A block that shows, on a terminal's standard error, what is being done, and for how long;
    nothing elsewhere, without rich, and in another such block.
    """
    try:
        from opendp_bayes.display.terminal import shown_while
    except ImportError:
        return nullcontext()
    return shown_while(what)
