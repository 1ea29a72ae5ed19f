"""Temporary files are private, and nothing of what they hold is left, however a process ends."""

import gc
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest

from opendp_bayes.trusted import temporary_files
from tests.helpers.ended import PATIENCE, ready
from tests.helpers.sources import ROOT

RECORD = "somebody's record"
has_no_names = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system shows no open files by their numbers"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(params=["without a name", "named"])
def _named(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of systems."""
    if request.param == "named":
        monkeypatch.setattr(temporary_files, "_OPEN_FILES", Path("/nowhere"))


def written(temporary: Path) -> list[Path]:
    """The files below a folder, without links."""
    return [path for path in temporary.rglob("*") if not path.is_symlink() and path.is_file()]


@pytest.mark.usefixtures("_named")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_reads_it(temporary: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with temporary_files.TemporaryFile() as path:
            path.write_text(RECORD)
            assert path.read_text() == RECORD
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("_named")
def test_a_file_goes_once_and_its_path_is_never_that_of_another(temporary: Path) -> None:
    """The number of an open file is used again; a scan of the first must not read the second."""
    file, other = temporary_files.TemporaryFile(), temporary_files.TemporaryFile()
    file.close()
    file.close()
    assert list(temporary.rglob("data")) == [other.path]
    del other
    gc.collect()
    assert list(temporary.iterdir()) == []
    first = temporary_files.TemporaryFile()
    pl.DataFrame({"vote": ["a"]}).write_parquet(first.path)
    scan = pl.scan_parquet(first.path)
    assert scan.collect().height == 1
    first.close()
    second = temporary_files.TemporaryFile()
    pl.DataFrame({"vote": ["b", "b"]}).write_parquet(second.path)
    with pytest.raises(FileNotFoundError):
        scan.collect()


@pytest.mark.usefixtures("_named")
def test_one_that_cannot_be_made_leaves_nothing(temporary, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("full")

    for name in ("symlink_to", "touch"):
        monkeypatch.setattr(Path, name, full)
    with pytest.raises(OSError, match="full"):
        temporary_files.TemporaryFile()
    gc.collect()
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "absent"))
    with pytest.raises(FileNotFoundError):
        temporary_files.TemporaryFile()


@has_no_names
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_no_data(temporary: Path, number: signal.Signals) -> None:
    with ready(temporary, "tests.helpers.holding") as process:
        (link,) = temporary.rglob("data")
        held = Path(os.readlink(link).replace("self", str(process.pid)))
        assert held.read_text() == RECORD
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
    assert written(temporary) == []


def test_a_process_that_is_ended_leaves_a_named_file(temporary: Path) -> None:
    """Negative control."""
    with ready(temporary, "tests.helpers.holding", "named") as process:
        process.kill()
        process.wait(PATIENCE)
    assert [path.read_text() for path in written(temporary)] == [RECORD]


PROGRAM = """
import os, sys, tempfile
from opendp_bayes.trusted.temporary_files import TemporaryFile
kept = TemporaryFile()
kept.path.write_text("x")
if {forks} and not os.fork():
    sys.exit()  # which is none of its own
if {forks}:
    os.wait()
assert kept.path.read_text() == "x"
raise SystemExit(3)
"""


@pytest.mark.parametrize("forks", [False, hasattr(os, "fork")])
def test_it_goes_with_the_process_that_made_it_and_with_no_child(temporary, forks):
    program = PROGRAM.format(forks=forks)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, check=False)
    assert done.returncode == 3
    assert list(temporary.iterdir()) == []
