"""Underflow is 0, whatever the caller has asked of numpy: most probabilities of inference are that
small.
"""

from functools import cached_property
from inspect import isfunction
from typing import Any

import numpy as np


class UnderflowIsZero:
    """In the methods and properties of every subclass, underflow is 0."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shield = np.errstate(under="ignore")
        for attribute, member in list(vars(cls).items()):
            if isfunction(member):
                setattr(cls, attribute, shield(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, attribute, member.getter(shield(member.fget)))
            elif isinstance(member, cached_property):
                member.func = shield(member.func)
