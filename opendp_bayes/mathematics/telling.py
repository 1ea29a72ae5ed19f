"""Tell a user something: a value of theirs in an error, which may be a frame by mistake, and a
warning at the line of theirs that led to it.
"""

import functools
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

#: Longest text and longest list that are shown as they are.
_LONGEST = 300
#: The most names that are listed one by one.
_MOST_NAMES = 20
#: The most objects and lists in each other that anything this package reads has, some twice over.
DEEPEST = 16
_PLAIN = (bool, int, float, complex, str, Fraction, np.generic, date, type, type(None))
_OURS = ("opendp", "opendp_bayes")
#: Code between a user's line and a warning: this package, and what computes a property once.
_INSIDE = str(Path(__file__).parents[1]), functools.__file__


def told(value: Any) -> str:
    """The repr of a plain value, of a collection of few, or of an object of OpenDP's or this
    package's; of anything else the type alone, because it may hold records: a frame, a column of
    one, an array, rows.
    """
    items = (
        [*value.keys(), *value.values()]
        if isinstance(value, Mapping)
        else value
        if isinstance(value, (list, tuple, set, frozenset, range))
        else [value]
    )
    plain = all(map(_is_plain, items))
    if plain and len(items) <= _LONGEST and len(text := repr(value)) <= _LONGEST:
        return text
    kind = type(value)
    path = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"<{path}>"


def listed_names(known: Iterable[Any]) -> str:
    """The reprs of known names; of many the first, and how many others there are.

    Examples
    --------
    >>> listed_names(["yes", "no"])
    "'yes', 'no'"
    """
    names = list(map(repr, known))
    return shortly(names, len(names), _MOST_NAMES)


def shortly(parts: Iterable[Any], number: int, most: int = 100) -> str:
    """The texts of so many parts with commas; of many the first, and how many others there are.

    Examples
    --------
    >>> shortly(range(1000), 1000)[-12:]
    'and 900 more'
    """
    shown = list(map(str, islice(parts, most)))
    left = number - len(shown)
    return ", ".join([*shown, f"and {left} more"] if left else shown)


def meant(word: Any, possible: Iterable[Any]) -> str:
    """Ask whether a known name was meant, one that begins like the name given or is spelled much
    like it; empty where there is none.

    Examples
    --------
    >>> meant("Laplace", ["gaussian_parameters", "laplace_parameters"])
    " Did you mean 'laplace_parameters'?"
    """
    text = str(word).casefold() if isinstance(word, (str, tuple)) else ""
    names = {str(candidate).casefold(): candidate for candidate in possible}
    near = [
        *(candidate for candidate in names if text and candidate.startswith(text)),
        *get_close_matches(text, names, n=1),
    ]
    return f" Did you mean {names[near[0]]!r}?" if near else ""


@contextmanager
def depth_told(what: str, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """A block that reads what others wrote; raises an error of a `kind` in place of the
    interpreter's, where that is nested too deep for it.
    """
    try:
        yield
    except RecursionError:
        raise kind(
            f"{what}: has objects or lists too deep in each other; must have at most {DEEPEST}"
            " levels."
        ) from None


def warn(message: str) -> None:
    """Warn with a `UserWarning` at the nearest line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.character):  # a text of an array, which is a str of Python's, too
        return False
    return isinstance(value, _PLAIN) or type(value).__module__.split(".")[0] in _OURS
