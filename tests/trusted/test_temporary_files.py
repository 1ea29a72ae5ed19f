"""Temporary files are private, and a sweep removes those of dead processes and nothing else."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opendp_bayes.trusted import temporary_files
from opendp_bayes.trusted.temporary_files import (
    TemporaryFile,
    _locked,
    _machine,
    _swept,
    sweep,
)
from tests.helpers.ended import PATIENCE, files, left, line, started
from tests.helpers.sources import ROOT

fcntl = pytest.importorskip("fcntl")  # which Windows does not have
HOST, BOOT = _machine()
OURS = f"opendp-bayes-{HOST}-{BOOT}-0123456789abcdef"
SOMEBODY = 65534


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def dead(temporary: Path, name: str = OURS) -> Path:
    """A folder as a process left it that was killed."""
    folder = temporary / name
    folder.mkdir(mode=0o700)
    (folder / "data").write_text("somebody's record")
    return folder


# --- a file


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_its_owner_reads_it(temporary: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with TemporaryFile() as path:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert path.parent.parent == temporary
            path.write_text("somebody's record")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert left(temporary) == []


def test_it_goes_once_and_when_it_is_collected(temporary: Path) -> None:
    file, other = TemporaryFile(), TemporaryFile()
    assert len(files(temporary)) == 2
    file.remove()
    file.remove()
    assert files(temporary) == [other.path]
    del other
    assert left(temporary) == []


def test_what_is_held_open_of_it_is_closed_with_it(temporary: Path) -> None:
    def next_number() -> int:
        number = os.open(os.devnull, os.O_RDONLY)
        os.close(number)
        return number

    before = next_number()
    with TemporaryFile():
        assert next_number() > before, "its folder is held, and locked"
    assert next_number() == before


def test_one_that_cannot_be_made_leaves_nothing(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "absent"))
    with pytest.raises(FileNotFoundError):
        TemporaryFile()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def full(*_: object) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "close", full)
    with pytest.raises(OSError, match="full"):
        TemporaryFile()
    monkeypatch.undo()
    assert left(temporary) == []


def test_a_writer_that_opens_the_file_once_more_cannot_save_it(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, unlink = TemporaryFile(), os.unlink
    again = [file.path]

    def unlinked(*given: Any, **named: Any) -> None:
        unlink(*given, **named)
        while again:
            again.pop().write_text("somebody's record")

    monkeypatch.setattr(os, "unlink", unlinked)
    file.remove()
    assert not again
    assert left(temporary) == []


# --- a sweep


def test_what_a_dead_process_left_is_swept(temporary: Path) -> None:
    dead(temporary)
    dead(temporary, OURS.replace(HOST, "0" * 8))  # of another container
    dead(temporary, OURS.replace(BOOT, "0" * 8)[:-1] + "0")  # before the machine was started anew
    (temporary / f"{OURS[:-1]}1").mkdir()  # killed before there was a file
    sweep()
    assert left(temporary) == []


def test_a_process_sweeps_once(temporary: Path) -> None:
    sweep()
    dead(temporary)
    sweep()
    TemporaryFile().remove()
    assert left(temporary) == [OURS]
    _swept.cache_clear()
    TemporaryFile().remove()
    assert left(temporary) == []


def of_another_machine(temporary: Path) -> Path:
    return dead(temporary, f"opendp-bayes-{'0' * 8}-{'1' * 8}-0123456789abcdef")


def of_another_name(temporary: Path) -> Path:
    return dead(temporary, f"{OURS}0")


def of_an_older_version(temporary: Path) -> Path:
    return dead(temporary, "opendp-bayes-x8s9_k2p")


def locked(temporary: Path) -> Path:
    folder = dead(temporary)
    HELD.append(_locked(folder))
    return folder


def of_another_user(temporary: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    folder = dead(temporary)
    os.chown(folder, SOMEBODY, SOMEBODY)
    return folder


def linked(temporary: Path) -> Path:
    """A link that was planted, to a folder of the user's own."""
    folder = dead(temporary.parent, "precious")
    (temporary / OURS).symlink_to(folder)
    return folder


def with_more_in_it(temporary: Path) -> Path:
    folder = dead(temporary)
    (folder / "data").rename(folder / "precious")
    return folder


def with_a_folder_in_it(temporary: Path) -> Path:
    folder = dead(temporary)
    (folder / "data").unlink()
    (folder / "data").mkdir()
    (folder / "data" / "precious").write_text("kept")
    return folder


HELD: list[int] = []


@pytest.mark.parametrize(
    "planted",
    [
        of_another_machine,
        of_another_name,
        of_an_older_version,
        locked,
        of_another_user,
        linked,
        with_more_in_it,
        with_a_folder_in_it,
    ],
    ids=lambda planted: planted.__name__,
)
def test_what_else_is_there_stays(temporary: Path, planted: Callable[[Path], Path]) -> None:
    folder = planted(temporary)
    before, found = left(temporary), files(folder)
    assert found
    sweep()
    assert (left(temporary), files(folder)) == (before, found)
    while HELD:
        os.close(HELD.pop())


def test_a_sweep_that_does_not_ask_for_locks_takes_files_in_use(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    folder = locked(temporary)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    sweep()
    assert not folder.exists()
    os.close(HELD.pop())


def test_a_link_in_a_folder_goes_and_what_it_leads_to_stays(temporary: Path) -> None:
    precious = temporary.parent / "precious"
    precious.write_text("kept")
    folder = dead(temporary)
    (folder / "data").unlink()
    (folder / "data").symlink_to(precious)
    sweep()
    assert left(temporary) == []
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("plant", [os.mkfifo, Path.touch])
def test_what_is_no_folder_stays_and_stops_nobody(
    temporary: Path, plant: Callable[[Path], None]
) -> None:
    plant(temporary / OURS)
    other = dead(temporary, f"{OURS[:-1]}0")
    sweep()
    assert not other.exists()
    assert left(temporary) == [OURS]


def test_without_a_temporary_folder_nothing_is_swept(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "absent"))
    sweep()

    def none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    sweep()


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def late(folder: Path) -> int:
        if len(taken) < 2:
            taken.append(folder)
            number = _locked(folder)  # a sweep, which has come this far, or to its end
            if len(taken) == 2:
                folder.rmdir()
                os.close(number)
            else:
                HELD.append(number)
        return _locked(folder)

    monkeypatch.setattr(temporary_files, "_locked", late)
    with TemporaryFile() as path:
        assert len(taken) == 2
        assert path.parent not in taken
        assert path.exists()
        taken[0].rmdir()
        os.close(HELD.pop())
    assert left(temporary) == []


def test_a_folder_that_is_swept_while_it_is_opened_is_made_anew(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock would be that of a folder that is not there."""
    swept, flock = [], fcntl.flock

    def late(number: int, how: int) -> None:
        if not swept:
            swept.extend(temporary.iterdir())
            swept[0].rmdir()
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with TemporaryFile() as path:
        assert len(swept) == 1
        assert path.parent not in swept
        assert path.exists()
    assert left(temporary) == []


def test_where_there_are_no_locks_files_go_with_their_process_and_are_not_swept(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlocked(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", unlocked)
    dead(temporary)
    with TemporaryFile() as path:
        assert path.exists()
    assert left(temporary) == [OURS]


# --- other processes


def test_a_lock_ends_with_the_process_that_made_it_though_its_child_lives_on(
    temporary: Path,
) -> None:
    with started(temporary, "tests.helpers.ending", "orphaned") as process:
        process.wait(PATIENCE)
        assert line(process) == "ready"
        child = int(line(process))
        assert len(files(temporary)) == 1
        os.kill(child, 0)
        sweep()
        assert left(temporary) == []
        os.kill(child, 9)


CONTAINER = ["unshare", "--pid", "--uts", "--fork", "--kill-child", "sh", "-c"]


def containers() -> bool:
    """Whether this user may make them here."""
    found = shutil.which("unshare") is not None
    return found and subprocess.run([*CONTAINER, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not containers(), reason="makes a container")
def test_the_first_process_of_another_container_is_alive(temporary: Path) -> None:
    """Its number is 1, its machine has another name, and SIGTERM does not end it."""
    program = f"hostname elsewhere && exec {sys.executable} -m tests.helpers.ending first"
    process = subprocess.Popen(
        [*CONTAINER, program],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
    )
    try:
        assert line(process) == "ready"
        (file,) = files(temporary)
        assert HOST not in file.parent.name
        sweep()
        assert files(temporary) == [file]
    finally:
        process.kill()
        process.communicate()
    _swept.cache_clear()
    sweep()
    assert left(temporary) == []
