"""The examples in the docstrings are run."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

import opendp_bayes_smoothed

MODULES = [module.name for module in iter_modules(opendp_bayes_smoothed.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = import_module(f"opendp_bayes_smoothed.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    modules = (import_module(f"opendp_bayes_smoothed.{name}") for name in MODULES)
    assert sum(bool(test.examples) for module in modules for test in finder.find(module)) >= 4
