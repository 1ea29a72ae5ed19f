"""What a process owes is removed once, by that process, however it ends; and nobody's handler of a
signal is in the way of another.
"""

import json
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from opendp_bayes.trusted import removals
from tests.helpers.ended import PATIENCE, files, left, line, ready, said

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

PROGRAM = "tests.helpers.ending"
SIGNALS = [signal.SIGTERM, signal.SIGHUP]

# --- one process


def test_what_is_owed_is_removed_once_and_what_is_kept_is_not(tmp_path: Path) -> None:
    removed = []
    removals.owe(tmp_path, lambda: removed.append(1))
    removals.settle(tmp_path)
    removals.settle(tmp_path)
    assert removed == [1]
    removals.owe(tmp_path, lambda: removed.append(2))
    removals.keep(tmp_path)
    removals.settle(tmp_path)
    assert removed == [1]


def test_what_cannot_be_removed_stops_nothing_else(tmp_path: Path) -> None:
    def refused() -> None:
        raise PermissionError(tmp_path)

    removed: list[int] = []
    removals.owe(tmp_path / "refused", refused)
    removals.owe(tmp_path / "other", lambda: removed.append(1))
    removals.settle(tmp_path / "refused")
    removals.settle(tmp_path / "other")
    assert removed == [1]


def end_at_random(temporary: Path, number: signal.Signals, how: str, times: int) -> None:
    for i in range(times):
        with ready(temporary, PROGRAM, how) as process:
            time.sleep(random.uniform(0.0, 0.1))
            process.send_signal(number)
            assert process.wait(PATIENCE) == -number
        assert left(temporary) == [], f"after {i} that left nothing"


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("how", ["again_and_again", "threads"])
def test_a_signal_at_any_moment_leaves_nothing(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    end_at_random(tmp_path, number, how, 5)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("how", ["again_and_again", "threads"])
def test_a_hundred_signals_leave_nothing(tmp_path: Path, number: signal.Signals, how: str) -> None:
    end_at_random(tmp_path, number, how, 100)


def test_where_signals_are_not_heard_files_stay(tmp_path: Path) -> None:
    """Negative control."""
    with ready(tmp_path, PROGRAM, "holding", "broken") as process:
        process.terminate()
        assert process.wait(PATIENCE) == -signal.SIGTERM
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_process_at_once_that_is_busy_outside_of_python(
    tmp_path: Path, number: signal.Signals
) -> None:
    with ready(tmp_path, PROGRAM, "busy") as process:
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait(600.0) == -number
    assert left(tmp_path) == []


def test_a_file_that_only_a_thread_made_goes_with_the_exit(tmp_path: Path) -> None:
    assert said(tmp_path, PROGRAM, "thread_alone") == ["True", "1"]
    assert left(tmp_path) == []


# --- handlers of others


def test_signals_are_heard_only_while_there_is_a_file(tmp_path: Path) -> None:
    assert said(tmp_path, PROGRAM, "at_rest") == ["True", "False", "True", "-1"]


def test_the_first_process_of_a_container_hears_no_signal_that_does_nothing_there(
    tmp_path: Path,
) -> None:
    assert said(tmp_path, PROGRAM, "as_first") == ["True"]
    assert left(tmp_path) == []


def test_an_earlier_handler_stays_the_only_one(tmp_path: Path) -> None:
    with ready(tmp_path, PROGRAM, "earlier_handler") as process:
        process.send_signal(signal.SIGHUP)  # which it ignores
        time.sleep(0.2)
        assert process.poll() is None
        assert len(files(tmp_path)) == 1
        process.terminate()
        assert line(process) == "heard SIGTERM"
        assert process.wait(PATIENCE) == 7
    assert left(tmp_path) == []


def test_a_later_handler_may_pass_a_signal_on(tmp_path: Path) -> None:
    with ready(tmp_path, PROGRAM, "later_handler") as process:
        process.terminate()
        assert line(process) == "heard SIGTERM"
        assert process.wait(PATIENCE) == -signal.SIGTERM
    assert left(tmp_path) == []


def test_a_later_handler_stays_when_the_last_file_goes(tmp_path: Path) -> None:
    assert said(tmp_path, PROGRAM, "overtaken") == ["heard SIGTERM", "True"]
    assert left(tmp_path) == []


def test_a_later_handler_may_go_on_with_its_files(tmp_path: Path) -> None:
    with ready(tmp_path, PROGRAM, "once_only") as process:
        process.terminate()
        assert (line(process), line(process)) == ("heard SIGTERM", "1")
        assert process.poll() is None


def test_a_handler_that_python_does_not_know_of_stays(tmp_path: Path) -> None:
    with ready(tmp_path, PROGRAM, "below_python") as process:
        process.terminate()
        assert "most recent call first" in line(process)
        assert process.poll() is None
        assert len(files(tmp_path)) == 1


def test_a_loop_of_asyncio_hears_its_signals(tmp_path: Path) -> None:
    with ready(tmp_path, PROGRAM, "in_a_loop") as process:
        process.send_signal(signal.SIGUSR1)
        assert line(process) == "heard SIGUSR1"
        process.terminate()
        assert (line(process), line(process)) == ("heard SIGTERM", "2")
        assert process.wait(PATIENCE) == 0
    assert left(tmp_path) == []


# --- children

FORKED = [
    ["exited", 3, True, 1],
    ["left", 3, True, 1],
    ["collected", 3, True, 1],
    ["terminated", -signal.SIGTERM, True, 1],
    ["with_its_own", 3, True, 1],
    ["killed_with_its_own", -signal.SIGKILL, True, 2],
    ["sweeping", 3, True, 1],
]


def test_a_forked_child_leaves_its_parents_file_and_takes_its_own(tmp_path: Path) -> None:
    assert [json.loads(each) for each in said(tmp_path, PROGRAM, "forks")] == FORKED
    assert left(tmp_path) == []


def test_a_fork_that_is_not_noticed_takes_its_parents_file(tmp_path: Path) -> None:
    """Negative control."""
    first = said(tmp_path, PROGRAM, "forks", "broken")[0]
    assert json.loads(first) == ["exited", 3, False, 0]


@pytest.mark.parametrize("method", ["forked", "spawned"])
def test_files_of_children_of_multiprocessing_go_with_them(tmp_path: Path, method: str) -> None:
    lines = said(tmp_path, PROGRAM, f"{method}_children")
    assert [json.loads(each) for each in lines if each != "ready"] == [
        [0, 1],
        [-signal.SIGTERM, 1],
    ]
    assert left(tmp_path) == []


def test_a_child_that_is_waited_for_reads_its_parents_file_to_the_end(tmp_path: Path) -> None:
    assert said(tmp_path, PROGRAM, "waited_for") == ["somebody's record"]
    assert left(tmp_path) == []
