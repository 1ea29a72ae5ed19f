"""Show the progress of a long command on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from opendp_bayes.display.progress import Progress, silent


@contextmanager
def bar(first: str, *, quiet: bool) -> Iterator[Progress]:
    """A progress bar on the terminal's standard error, with the name of the first step; nothing if
    `quiet` or if that is not a terminal. A step of 0 things has no known end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task(first, total=None)

        def show(step: str, done: int, total: int, /) -> None:
            shown.update(task, description=step, completed=done, total=total or None)

        yield show
