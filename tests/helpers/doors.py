"""The public names, by the doors that have them."""

from types import ModuleType
from typing import Any

import opendp_bayes as ob


def names_of(door: ModuleType) -> dict[str, Any]:
    """What a module hands out, without modules."""
    return {
        name: value
        for name, value in ((name, getattr(door, name)) for name in dir(door))
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }


#: Of the package itself, and of its other doors.
PUBLIC: dict[str, Any] = {name: getattr(ob, name) for name in ob._HOME}
for _door in (ob.t, ob.m, ob.mechanisms, ob.unlisted):
    PUBLIC |= names_of(_door)
