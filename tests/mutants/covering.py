"""Which tests run which lines, and how long they take: a mistake needs those alone that meet it."""

import ast
import json
import math
import signal
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from coverage import Coverage

#: Tests are run in this order of their seconds, those of one file together: most mistakes are
#: noticed by the first of them.
_QUICK = 0.05, 0.3, 2.0


class Recorder:
    """While pytest runs: the lines of some files that each test runs, and its seconds."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._coverage = Coverage(data_file=None, include=list(map(str, files)))
        self._coverage.start()
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start
            self._coverage.switch_context("")

    def write(self, place: Path, kept: dict[str, Path]) -> None:
        """Keep what was seen of each file of tests; what an import runs is kept with every file."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {
            str(Path(file).relative_to(place)): data.contexts_by_lineno(file)
            for file in data.measured_files()
        }
        for file, path in kept.items():
            of_file = f"{file}::"
            found = {
                module: {
                    line: [test for test in tests if not test or test.startswith(of_file)]
                    for line, tests in met.items()
                }
                for module, met in lines.items()
            }
            seconds = {test: s for test, s in self.seconds.items() if test.startswith(of_file)}
            path.write_text(json.dumps({"seconds": seconds, "lines": found}))


class Selection:
    """While pytest runs: these tests alone, in this order, each with ten times its own seconds of
    the processor: a mistake may send it into an endless loop. If it waits for ever, an alarm ends
    it in the end.
    """

    def __init__(self, tests: list[str], seconds: dict[str, float]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self._seconds = {test: seconds[test] for test in tests}
        signal.alarm(120 + math.ceil(20 * sum(self._seconds.values())))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        signal.setitimer(signal.ITIMER_PROF, 3.0 + 10.0 * self._seconds[item.nodeid])
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place),
            key=lambda item: self._place[item.nodeid],
        )


@dataclass(frozen=True)
class Covered:
    """What a recorder has kept: the seconds of each test, and the tests of each line."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    @classmethod
    def read(cls, kept: Iterable[Path]) -> "Covered":
        """What was kept of some files of tests."""
        seconds: dict[str, float] = {}
        lines: dict[str, dict[str, list[str]]] = {}
        for found in (json.loads(path.read_text()) for path in kept):
            seconds |= found["seconds"]
            for module, met in found["lines"].items():
                for line, tests in met.items():
                    lines.setdefault(module, {}).setdefault(line, []).extend(tests)
        return cls(seconds, lines)

    def tests(self, path: str, source: str, first: int, patience: float) -> list[str]:
        """The tests that meet a mistake in line `first`, until they come to `patience` seconds."""
        met = self._met(path, source, first)
        if met == {""}:  # an import alone runs it, and whoever imports it may notice
            met = set(self.seconds)
        elif "" in met:  # who runs none of the lines may look at what an import has made
            met |= self.seconds.keys() - self._running
        chosen, total = [], 0.0
        for test in sorted(met - {""}, key=self._order(Path(path).name)):
            total += self.seconds[test]
            if chosen and total > patience:
                break
            chosen.append(test)
        return chosen

    @cached_property
    def _running(self) -> set[str]:
        """The tests that run a line."""
        return {test for lines in self.lines.values() for tests in lines.values() for test in tests}

    def _met(self, path: str, source: str, first: int) -> set[str]:
        lines = self.lines.get(path, {})
        return {test for line in meeting(source, first) for test in lines.get(str(line), [])}

    def _order(self, module: str):  # type: ignore[no-untyped-def]
        def key(test: str) -> tuple[int, bool, str, float]:
            file = test.split("::")[0]
            seconds = self.seconds[test]
            slow = sum(seconds > limit for limit in _QUICK)
            return slow, not file.endswith(f"/test_{module}"), file, seconds

        return key


def meeting(source: str, line: int) -> range:
    """Lines of which a test runs one if it meets a mistake in this line: those of the statement
    without its body. What an import runs is met by whoever runs any of the module; the head of a
    function, by whoever runs the function.
    """
    node: ast.AST = ast.parse(source)
    found, in_function = range(1, source.count("\n") + 2), False
    while inner := _holding(node, line):
        node = inner
        start, end = _start(inner), inner.end_lineno or inner.lineno
        body = getattr(inner, "body", None)
        in_body = body is not None and line >= body[0].lineno
        if in_function:
            found = range(start, max(start + 1, body[0].lineno) if body else end + 1)
        elif isinstance(inner, ast.FunctionDef):
            found, in_function = range(start, end + 1), in_body
    return found


def _holding(node: ast.AST, line: int) -> ast.stmt | ast.ExceptHandler | None:
    """The statement of a block that holds a line."""
    blocks = (ast.stmt, ast.ExceptHandler)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, blocks) and _start(child) <= line <= (child.end_lineno or 0):
            return child
    return None


def _start(node: ast.stmt | ast.ExceptHandler) -> int:
    """The first line of a statement, which is that of its first decorator."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
