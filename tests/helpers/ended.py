"""Programs that are started with a temporary folder of their own, to be ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.sources import ROOT

#: Seconds that a machine with much to do may take.
PATIENCE = 600.0


@contextmanager
def ready(temporary: Path, *program: object) -> Iterator[subprocess.Popen[bytes]]:
    """A module of Python that has said that it is ready; killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, program)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=_heard if sys.platform != "win32" else None,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == "ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def _heard() -> None:
    """Let the program hear SIGHUP also where tests run behind `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
