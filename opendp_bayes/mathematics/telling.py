"""Tell a user something: a value of theirs in an error, which may be a frame by mistake, and a
warning at the line of theirs that led to it.
"""

import functools
import sys
import warnings
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

#: Longest text and longest list that are shown as they are.
_LONGEST = 300
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
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"<{name}>"


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
