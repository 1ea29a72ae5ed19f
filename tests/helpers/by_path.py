"""Modules that are no part of a package."""

import importlib.util
from pathlib import Path
from types import ModuleType


def loaded(path: Path) -> ModuleType:
    """The module in a file, run once more."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification
    assert specification.loader
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found
