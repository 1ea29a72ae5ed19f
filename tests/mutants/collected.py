"""Mistakes in functions imported already, each in a process forked after one collection."""

import gc
import os
from collections.abc import Generator
from inspect import CO_OPTIMIZED
from multiprocessing.connection import Connection
from types import CodeType, FunctionType

import pytest

from tests.mutants.covering import Selection


class Collected:
    """While pytest runs, with all tests collected: wait to be told of a mistake and of the tests
    that meet it, run them in a child that has the mistake, and answer with how the child ended, or
    with nothing where the mistake is not in functions alone.
    """

    def __init__(self, told: Connection, seconds: dict[str, float]) -> None:
        self._told = told
        self._seconds = seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        gc.unfreeze()
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()
        tests = session.items[:]
        session.items[:] = []
        while told := self._told.recv():
            names, file, before, after = told
            exchanged = _exchanged(functions, file, before, after)
            child = None if exchanged is None else os.fork()
            if child == 0:
                for function, code in exchanged or []:
                    function.__code__ = code
                selection = Selection(names, self._seconds)
                session.config.pluginmanager.register(selection)
                session.items[:] = tests
                selection.pytest_collection_modifyitems(session.items)
                break
            self._told.send(child and os.waitpid(child, 0)[1])
        return (yield)


def _exchanged(
    functions: list[FunctionType], file: str, before: str, after: str
) -> list[tuple[FunctionType, CodeType]] | None:
    """Which functions of a file get which code, None where that is not all that changes."""
    old, new = (compile(text, file, "exec", dont_inherit=True) for text in (before, after))
    found = []
    pairs = changed(old, new)
    for was, becomes in pairs or []:
        holders = [
            each for each in functions if each.__code__ == was and each.__code__.co_filename == file
        ]
        if not holders or len(was.co_freevars) != len(becomes.co_freevars):
            return None
        found += [(each, becomes) for each in holders]
    return None if pairs is None else found


def changed(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """The functions in which two texts differ, None if they differ in more."""
    nested = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if _outside(old) != _outside(new):
        return None
    found = []
    for a, b in zip(*nested, strict=True):
        if a != b and a.co_flags & CO_OPTIMIZED:  # a function, not the body of a class
            found.append((a, b))
        elif a != b:
            inner = changed(a, b)
            if inner is None:
                return None
            found += inner
    return found


def _outside(code: CodeType) -> CodeType:
    """The code without that of the functions and classes in it."""
    constants = [None if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_consts=tuple(constants))
