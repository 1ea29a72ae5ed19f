"""Report the progress of a computation that takes longer than a second."""

from typing import Protocol


class Progress(Protocol):
    """Called with the name of a step, how much of it is done, and how much there is."""

    def __call__(self, step: str, done: int, total: int, /) -> None: ...


def silent(step: str, done: int, total: int, /) -> None:
    """The progress that nobody watches."""
