"""Which tests run which lines, and how long they take: a mistake needs those alone that meet it."""

import ast
import json
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
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

    def write(self, place: Path, kept: Path) -> None:
        """Keep what was seen, with paths from `place` on. What an import runs has no test."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {
            str(Path(file).relative_to(place)): dict(data.contexts_by_lineno(file))
            for file in data.measured_files()
        }
        kept.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


class Selection:
    """While pytest collects: these tests alone, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

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
    def read(cls, kept: Path) -> "Covered":
        return cls(**json.loads(kept.read_text()))

    def tests(self, path: str, source: str, first: int, patience: float) -> list[str]:
        """The tests that meet a mistake that begins in line `first` of a module, until they come
        to `patience` seconds: all of the module where an import runs the line.
        """
        lines = self.lines.get(path, {})
        met = {test for line in statement(source, first) for test in lines.get(str(line), [])}
        if met == {""}:
            met = {test for tests in lines.values() for test in tests}
        chosen, total = [], 0.0
        for test in sorted(met - {""}, key=self._order(Path(path).name)):
            total += self.seconds[test]
            if chosen and total > patience:
                break
            chosen.append(test)
        return chosen

    def _order(self, module: str):  # type: ignore[no-untyped-def]
        def key(test: str) -> tuple[int, bool, str, float]:
            file = test.split("::")[0]
            seconds = self.seconds[test]
            slow = sum(seconds > limit for limit in _QUICK)
            return slow, not file.endswith(f"/test_{module}"), file, seconds

        return key


def statement(source: str, line: int) -> range:
    """The lines of the innermost statement in which a line is, without those of its body."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        decorators = [each.lineno for each in getattr(node, "decorator_list", [])]
        start, end = min([node.lineno, *decorators]), node.end_lineno or node.lineno
        if body := getattr(node, "body", None):
            end = max(start, body[0].lineno - 1)
        if start <= line <= end:
            found = range(start, end + 1)
    return found
