"""Raw data do not stay in the temporary folder when a process ends, however it ends."""

import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest
from opendp.context import loss_of, unit_of

import opendp_bayes as ob
from tests.helpers.command_line import run
from tests.helpers.ended import PATIENCE, files, left, line, ready, started, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

CONTEXTS = "tests.helpers.contexts_anew"
COMMAND = [
    "opendp_bayes_office",
    "release",
    "-",
    "--column=vote",
    "--categories=a,b",
    "--epsilon=1",
]
LINES = b"vote\n" + b"a\nb\nc\n\n" * 5000
SIGNALS = [signal.SIGTERM, signal.SIGHUP]


def read_by(process: subprocess.Popen[bytes], temporary: Path) -> None:
    """Let a command read lines from standard input, until there is a copy of some."""
    assert process.stdin is not None
    process.stdin.write(LINES)
    process.stdin.flush()
    until(lambda: any(temporary.glob("opendp-bayes-*/*")))  # Python tries the folder before


def ended_at_random(temporary: Path, number: signal.Signals, times: int) -> int:
    """End Contexts and commands, by turns, at moments at random; return how many held a file just
    before. A command gets no more lines every other time, so that it goes on to count.
    """
    held = 0
    for i in range(times):
        with started(temporary, *([CONTEXTS], COMMAND)[i % 2]) as process:
            if i % 2 == 0:
                assert line(process) == "ready"
            else:
                read_by(process, temporary)
                if i % 4 == 1 and process.stdin is not None:
                    process.stdin.close()
                    process.stdin = None
            time.sleep(random.uniform(0.0, 0.3))
            held += bool(files(temporary))
            process.send_signal(number)
            code = process.wait(PATIENCE)
            assert code == -number or (code == 0 and i % 4 == 1), code
            assert left(temporary) == [], f"after {i} that left nothing"
    return held


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_any_moment_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    assert ended_at_random(tmp_path, number, 2) > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_hundred_signals_leave_no_file(tmp_path: Path, number: signal.Signals) -> None:
    assert ended_at_random(tmp_path, number, 100) > 30


def test_a_signal_leaves_nothing_beside_the_output(tmp_path: Path) -> None:
    temporary, output = tmp_path / "temporary", tmp_path / "output"
    temporary.mkdir()
    output.mkdir()
    with started(temporary, *COMMAND, "--output", output / "release.json") as process:
        read_by(process, temporary)
        assert len(left(output)) == 1
        (file,) = files(temporary)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        process.terminate()
        assert process.wait(PATIENCE) == -signal.SIGTERM
    assert left(temporary) == left(output) == []


FORK = """
import os, sys
import polars as pl
import opendp_bayes as ob
kept = ob.on_disk(pl.DataFrame({"vote": ["a"]}))
if not os.fork():
    sys.exit()
os.wait()
kept.scan.collect_schema()
"""


def test_a_child_that_exits_leaves_its_parents_file(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", FORK], env=environment, check=True, timeout=PATIENCE)
    assert left(tmp_path) == []


@pytest.mark.parametrize("start", ["command", "context"])
def test_the_next_start_removes_what_a_killed_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    with ready(tmp_path, "tests.helpers.ending", "holding") as process:
        process.kill()
        process.wait(PATIENCE)
    assert len(files(tmp_path)) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if start == "command":
        run("plan", "--help")
    else:
        ob.context(
            pl.LazyFrame({"vote": ["a"]}),
            privacy_unit=unit_of(contributions=1),
            privacy_loss=loss_of(epsilon=1.0),
        )
    assert left(tmp_path) == []
