"""Run tests in a copy of the project, in processes forked after the slow imports."""

import compileall
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from cosmic_ray.work_item import TestOutcome

from tests.mutants.covering import Recorder, Selection

PROJECT = Path(__file__).parents[2]
_IMPORTED = "opendp.prelude", "pandas", "polars", "scipy.optimize", "scipy.stats"
#: Characters of the end of what pytest prints that are kept, with the test that failed.
_PRINTED = 1000
#: A mistake may ask for any amount of memory: bytes that it gets.
_MEMORY = 8 << 30


class Copy:
    """The files that git knows, as they are in the work tree, for mistakes to be planted in."""

    def __init__(self, place: Path) -> None:
        self.place = place
        shutil.rmtree(place, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
        )
        for file in filter(None, listed.stdout.split("\0")):
            if (PROJECT / file).is_file():
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / file, place / file)
        for package in (place / "opendp_bayes", *place.glob("plugins/*")):
            compileall.compile_dir(package, quiet=1)
        for name in _IMPORTED:
            importlib.import_module(name)

    @property
    def _log(self) -> Path:
        return self.place.with_suffix(".log")

    def printed(self) -> str:
        """The end of what tests have printed."""
        return self._log.read_text(errors="replace")[-_PRINTED:]

    def run(self, tests: list[str], seconds: dict[str, float]) -> tuple[TestOutcome, str]:
        """What the tests, given by their node ids, come to up to the first that fails, and the end
        of what they print. Those that a mistake has sent into an endless loop count as failed.
        """
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        status, printed = self._fork(
            lambda: _pytest(files, "-x", plugins=[Selection(tests, seconds)])
        )
        return _outcome(status, printed)

    def record(self, modules: list[str], kept: dict[str, Path]) -> None:
        """Keep which lines of the modules the tests of each file run, and their seconds."""

        def recorded() -> int:
            sys.dont_write_bytecode = False  # what pytest makes of the tests, which do not change
            recorder = Recorder(self.place / module for module in modules)
            code = _pytest(list(kept), plugins=[recorder])
            recorder.write(self.place, kept)
            return code

        status, printed = self._fork(recorded)
        if status:
            raise SystemExit(f"Tests fail without any mistake.\n{printed}")

    def _fork(self, run: Callable[[], int]) -> tuple[int, str]:
        """The status with which a child that runs this ends, and the end of what it prints."""
        child = os.fork()
        if not child:
            self._child(run)
        status = os.waitpid(child, 0)[1]
        return status, self.printed()

    def _child(self, run: Callable[[], int]) -> None:
        """Run this in the copy, and end. Nothing compiled is written: a file that changes twice in
        a second would be taken for the one that was compiled.
        """
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            os.chdir(self.place)
            with self._log.open("w") as printed:
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
            sys.dont_write_bytecode = True
            sys.path[:] = [
                *map(str, [self.place, *sorted(self.place.glob("plugins/*"))]),
                *filter(_elsewhere, sys.path),
            ]
            for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
                del sys.modules[name]
            code = run()
        except BaseException:  # noqa: BLE001 - what was forked never goes on as its parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)


def _elsewhere(place: str) -> bool:
    """Whether this is no folder of the project itself, whose environment may be inside of it."""
    path = Path(place or ".")
    return not path.is_relative_to(PROJECT) or path.is_relative_to(sys.prefix)


def _outcome(status: int, printed: str) -> tuple[TestOutcome, str]:
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        if ended in (signal.SIGINT, signal.SIGTERM):  # somebody stops the run
            raise SystemExit(1)
        return TestOutcome.KILLED, f"ended by {signal.Signals(ended).name}"
    survived = os.waitstatus_to_exitcode(status) in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    return (TestOutcome.SURVIVED if survived else TestOutcome.KILLED), printed


def _pytest(tests: list[str], *options: str, plugins: list[object]) -> int:
    options = ("-q", "--tb=line", "-p", "no:cacheprovider", *options)
    return int(pytest.main([*options, *tests], plugins=plugins))
