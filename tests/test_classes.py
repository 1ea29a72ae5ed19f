"""What a class of values is, by what it holds: nobody can change it, arrays have no equality."""

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import opendp_bayes
import opendp_bayes_smoothed

_ARRAYS = "Floats", "Integers", "NDArray", "ndarray"


def classes() -> list[type[Any]]:
    """Every dataclass of the packages."""
    found: dict[type[Any], None] = {}
    for package in (opendp_bayes, opendp_bayes_smoothed):
        place = Path(package.__file__).parent
        for file in sorted(place.rglob("[!_]*.py")):
            name = ".".join(file.relative_to(place.parent).with_suffix("").parts)
            module = importlib.import_module(name)
            for each in vars(module).values():
                if dataclasses.is_dataclass(each) and each.__module__ == name:
                    found[each] = None
    return list(found)


CLASSES = classes()


def test_no_value_can_be_changed_and_arrays_are_compared_by_identity() -> None:
    """Equality of arrays is an array, and they have no hash."""
    assert len(CLASSES) > 100
    assert [each for each in CLASSES if not each.__dataclass_params__.frozen] == []

    def holds_arrays(each: type[Any]) -> bool:
        return any(
            name in str(field.type) for field in dataclasses.fields(each) for name in _ARRAYS
        )

    arrays = [each for each in CLASSES if holds_arrays(each)]
    assert len(arrays) > 30
    assert [each for each in arrays if each.__eq__ is not object.__eq__] == []
