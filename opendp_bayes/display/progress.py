"""Report the progress of a computation that takes longer than a second."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar

#: Whether something is said to be done already.
_SHOWN: ContextVar[bool] = ContextVar("_SHOWN", default=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A block that shows, on a terminal's standard error, what is being done, and for how long;
    nothing elsewhere, without rich, and in another such block.
    """
    with ExitStack() as opened:
        with suppress(ImportError):
            _show(what, opened)
        yield


def _show(what: str, opened: ExitStack) -> None:
    """Show what is being done, where somebody looks on, until all that is `opened` is closed."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if _SHOWN.get() or not console.is_terminal:
        return
    opened.callback(_SHOWN.reset, _SHOWN.set(True))
    with suppress(OSError):  # a number of its own: libraries may write nothing to its
        number = os.dup(console.file.fileno())
        console.file = opened.enter_context(
            open(number, "w", encoding=console.encoding)  # noqa: SIM115
        )
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    line = Progress(*columns, console=console, transient=True)
    opened.enter_context(line).add_task(what, total=None)
