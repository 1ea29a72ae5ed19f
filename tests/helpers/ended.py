"""Programs that are started with a temporary folder of their own, and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.sources import ROOT

#: Seconds that a machine with much to do may take.
PATIENCE = 600.0


@contextmanager
def started(temporary: Path, *program: object) -> Iterator[subprocess.Popen[bytes]]:
    """A module of Python with its arguments, killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, program)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=_heard if sys.platform != "win32" else None,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _heard() -> None:
    """Let the program hear SIGHUP also where tests run behind `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def ready(temporary: Path, *program: object) -> Iterator[subprocess.Popen[bytes]]:
    """One that has said that it is ready."""
    with started(temporary, *program) as process:
        assert line(process) == "ready"
        yield process


def line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def said(temporary: Path, *program: object) -> list[str]:
    """Everything that a program says until it ends by itself."""
    with started(temporary, *program) as process:
        output = process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == 0
        return output.decode().splitlines()


def files(temporary: Path) -> list[Path]:
    """What may hold data."""
    return [path for path in temporary.rglob("*") if not path.is_dir()]


def left(temporary: Path) -> list[str]:
    """Everything that is there, empty folders too."""
    return [path.name for path in temporary.iterdir()]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)
