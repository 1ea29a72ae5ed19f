"""Underflow is 0, whatever the caller has asked of numpy: most probabilities of inference are that
small.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from inspect import isfunction
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def underflow_is_zero(function: Callable[P, R]) -> Callable[P, R]:
    """The function, in which numpy takes what is too small for a float as 0."""

    @wraps(function)
    def shielded(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(under="ignore"):
            return function(*args, **kwargs)

    return shielded


class UnderflowIsZero:
    """In the methods and properties of every subclass, underflow is 0."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for attribute, member in list(vars(cls).items()):
            if isfunction(member):
                setattr(cls, attribute, underflow_is_zero(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, attribute, member.getter(underflow_is_zero(member.fget)))
            elif isinstance(member, cached_property):
                member.func = underflow_is_zero(member.func)
