"""Errors of a specification, by the steps to the field that is wrong."""

from collections.abc import Sequence


class SpecificationError(ValueError):
    """A specification is wrong."""


class FieldError(SpecificationError):
    """A field of a specification is wrong: a path of steps to it, and the problem.

    Examples
    --------
    >>> print(FieldError(("results", 1, "share"), "must be a number."))
    results[1].share: must be a number.
    """

    def __init__(self, path: Sequence[str | int], problem: str) -> None:
        steps = (f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in path)
        where = "".join(steps).lstrip(".") or "the file"
        super().__init__(f"{where}{'' if problem.startswith('=') else ': '}{problem}")


def _shown(step: str) -> str:
    return step if step and "." not in step else f'"{step}"'
