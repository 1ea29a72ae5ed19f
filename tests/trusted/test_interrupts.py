"""Ctrl-C ends no interpreter in a release, loses none that was debited, and is delivered."""

# ruff: noqa: PT012 - what a block under pytest.raises does until it is left is what is tested

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import boundary, queryable_proxy
from opendp_bayes.trusted.interrupts import uninterrupted
from tests import helpers
from tests.helpers.contexts import checked_context, plain_context

VOTES = pl.LazyFrame({"vote": ["a", "b"] * 20}, schema={"vote": pl.Enum(["a", "b"])})


def strike(*_: object) -> None:
    """Ctrl-C here: Python calls the handler in the main thread, before its next line."""
    os.kill(os.getpid(), signal.SIGINT)  # which the system hands to the main thread
    time.sleep(0.4)  # until that has seen it


def carried(error: KeyboardInterrupt) -> Any:
    """The release that it carries; a plain one would end pytest."""
    assert isinstance(error, ob.ReleaseInterrupted)
    assert "sys.last_value.release" in str(error)
    return error.release


# --- the thread
def test_an_interrupt_waits_and_carries_what_was_made() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        uninterrupted(lambda: (strike(), strike(), "release")[-1])
    assert carried(caught.value) == "release"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert uninterrupted(lambda: 1) == 1, "a second call after the first"


def test_an_interrupt_replaces_the_error_that_came_with_it() -> None:
    def failed() -> None:
        strike()
        raise boundary.ReleaseError("the callback failed")

    with pytest.raises(KeyboardInterrupt) as caught:
        uninterrupted(failed)
    assert type(caught.value) is KeyboardInterrupt
    with pytest.raises(boundary.ReleaseError, match="of its own"):
        uninterrupted(lambda: raises(boundary.ReleaseError("of its own")))


def raises(error: BaseException) -> None:
    raise error


def test_within_another_thread_a_release_has_no_thread_of_its_own() -> None:
    threads = uninterrupted(lambda: (threading.current_thread(), uninterrupted(here)))
    assert threads[0] is threads[1] is not threading.main_thread()


def here() -> threading.Thread:
    return threading.current_thread()


def test_a_handler_of_the_users_own_is_asked_at_once_and_need_not_raise() -> None:
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    try:
        assert uninterrupted(lambda: (strike(), list(asked))[1]) == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


# --- releases
def context(releases: int = 2, delta: float = 0.0) -> Any:
    return plain_context(VOTES, loss={"epsilon": 1.0, "delta": delta or None}, parts=releases)


def test_an_interrupt_while_counting_stops_the_release_and_is_paid_for(monkeypatch):
    """As polars stops a scan; it may come after a failure, which nobody is to have for nothing."""
    whole = context()
    query = ob.posterior(whole.query(), "vote", nulls="a")

    def collect(*_: Any, **__: Any) -> None:
        strike()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as caught:
        patch.setattr(pl.LazyFrame, "collect", collect)
        query.release()
    assert type(caught.value) is KeyboardInterrupt
    assert whole.current_privacy_loss() == [0.5]
    assert query.release().k == 2, "the budget of the next is there"


@pytest.mark.parametrize("asked", ["categories", "discover"])
def test_counting_that_cannot_be_stopped_is_waited_for(asked, monkeypatch):
    """As an engine's, which sees no signal in a thread."""
    whole = context(delta=1e-6 * (asked == "discover"))
    query: Any = ob.posterior(whole.query(), "vote", nulls="a")
    if asked == "discover":
        query = ob.discover(whole.query(), "vote", nulls="a")
    collect, struck = pl.LazyFrame.collect, []

    def counted(*args: Any, **options: Any) -> Any:
        if not struck:
            struck.append(strike())
        return collect(*args, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", counted)
    with pytest.raises(KeyboardInterrupt) as caught:
        query.release()
    assert carried(caught.value).guarantee.is_stated
    assert len(whole.current_privacy_loss()) == 1


SCANNING = """
import os, signal, sys, threading, time
sys.modules["sklearn"] = None  # the prelude would load it, which takes a second
import opendp.prelude as dp, polars as pl
import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")
numbers = pl.LazyFrame({"a": range(3000)})
others = [numbers.rename({"a": name}) for name in "bc"]
votes = numbers.join(others[0], how="cross").join(others[1], how="cross")
votes = votes.select(vote=pl.col("a") > 9)
context = ob.context(
    votes,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)
query = ob.posterior(context.query(), "vote", nulls=True, mechanism="laplace_parameters")
struck = []
def strike():
    time.sleep(2)
    struck.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=strike).start()
try:
    query.release()
except KeyboardInterrupt as error:
    took = time.monotonic() - struck[0]
    print(type(error).__name__, context.current_privacy_loss(), took < 60, flush=True)
os._exit(0)
"""


def test_an_interrupt_stops_a_scan_of_polars() -> None:
    """Of 27 000 000 000 rows, which would take many minutes."""
    result = subprocess.run(
        [sys.executable, "-c", SCANNING], capture_output=True, text=True, timeout=600
    )
    assert result.stdout == "KeyboardInterrupt [1.0] True\n", result.stderr


def test_an_interrupt_after_the_counting_carries_the_release(monkeypatch):
    whole = context()
    mechanism = ob.LaplaceParameters(2.0, "floored", "private")
    query = ob.posterior(whole.query(), "vote", nulls="a", mechanism=mechanism)
    draw = ob.LaplaceParameters.draw

    def interrupted(*args: Any, **options: Any) -> Any:
        strike()
        return draw(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ob.LaplaceParameters, "draw", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            query.release()
    assert carried(caught.value).mechanism == mechanism
    assert carried(caught.value).d_in == 1
    assert len(whole.current_privacy_loss()) == 1


@pytest.mark.parametrize("call", ["resolve", "release"])
def test_an_interrupt_stops_the_search_for_a_scale_and_nothing_is_debited(call, monkeypatch):
    whole = context()
    query = ob.posterior(whole.query(), "vote", nulls="a", mechanism="laplace_parameters")
    monkeypatch.setattr(query, "_bound", replace(query._bound, fit=strike))
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(query, call)()
    assert type(caught.value) is KeyboardInterrupt
    assert whole.current_privacy_loss() == []


def test_what_an_interrupt_has_debited_uses_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of OpenDP's own query, which the exception carries: the next one has the next share."""
    whole: Any = checked_context(VOTES, loss={"epsilon": 3.0}, parts=None, split_by_weights=[1, 2])
    outcome = queryable_proxy._outcome

    def interrupted(*arguments: Any) -> Any:
        strike()
        return outcome(*arguments)

    def released() -> Any:
        return whole.query().select(dp.len(signed=True)).release()

    with monkeypatch.context() as patch:
        patch.setattr(queryable_proxy, "_outcome", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            released()
    assert carried(caught.value).collect().shape == (1, 1)
    assert (whole.d_mids_consumed, whole.d_mids) == ([1.0], [2.0])
    assert released().collect().shape == (1, 1)
    assert (whole.d_mids_consumed, whole.d_mids) == ([1.0, 2.0], [])


# --- in a process of their own
IN_THE_GLUE = """
import os, signal, sys, time
sys.modules["sklearn"] = None  # the prelude would load it, which takes a second
import opendp._convert, opendp.prelude as dp, polars as pl
import opendp_bayes as ob
from opendp_bayes.queries import base

if sys.argv[1] == "unprotected":
    base.uninterrupted = lambda release: release()
dp.enable_features("contrib", "honest-but-curious")
votes = pl.LazyFrame({"vote": ["a", "b"] * 20}, schema={"vote": pl.Enum(["a", "b"])})
context = dp.Context.compositor(
    data=votes,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)
query = ob.posterior(context.query(), "vote", nulls="a")
invoke, counted, struck, collect = opendp._convert.c_to_py, [], [], pl.LazyFrame.collect
query._settle()
def collected(*args, **options):
    counted.append(True)
    return collect(*args, **options)
pl.LazyFrame.collect = collected
def interrupted(*args):
    if sys._getframe(1).f_code.co_name == "_invoke_py_callback":
        if (sys.argv[2] == "all" or counted) and not struck:
            struck.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.4)
    return invoke(*args)
opendp._convert.c_to_py = interrupted
try:
    query.release()
except KeyboardInterrupt as error:
    print(type(error).__name__, len(context.current_privacy_loss()), flush=True)
"""


@pytest.mark.parametrize(
    ("protected", "when", "raised"),
    [
        (True, "all", "ReleaseInterrupted"),
        (True, "counted", "ReleaseInterrupted"),
        (False, "all", ""),
        pytest.param(False, "counted", "", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_between_opendp_and_a_callback(protected, when, raised):
    """Before and after the one that counts; the control ends the interpreter."""
    how = "protected" if protected else "unprotected"
    output: Any = {"capture_output": True, "text": True, "timeout": 600}
    result = subprocess.run([sys.executable, "-c", IN_THE_GLUE, how, when], **output)
    if protected:
        assert result.returncode == 0, result.stderr
        assert result.stdout == f"{raised} 1\n"
    else:
        assert result.returncode < 0, "ended by a signal, SIGABRT or SIGSEGV"


def interrupted_at_random(number: int, seed: int) -> Counter[tuple[str, bool, int]]:
    """How `number` releases ended that were interrupted at random moments; most take 10 to 100 ms.

    Whatever the moments are, every outcome but those below is an error.
    """
    rng = random.Random(seed)
    outcomes: Counter[tuple[str, bool, int]] = Counter()
    program = Path(helpers.__file__).with_name("interrupted.py")
    output: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, program, str(number)], **output) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            for _ in range(number):
                assert child.stdout.readline() == "now\n", child.stderr.read()
                time.sleep(0.15 * rng.random() ** 2)
                child.send_signal(signal.SIGINT)
                again = threading.Timer(3, child.send_signal, [signal.SIGINT])
                again.start()  # Python ignores what is raised in a destructor
                line = child.stdout.readline()
                again.cancel()
                assert line, child.stderr.read()
                outcomes[tuple(json.loads(line))] += 1
            assert child.wait(timeout=600) == 0
        finally:
            child.kill()
    return outcomes


#: Nothing made, and debited while rows are read alone; or made, debited and returned, or carried
#: by the exception.
CONSISTENT = {("stopped", False, at) for at in range(2)}
CONSISTENT |= {("returned", True, 1), ("carried", True, 1)}


@pytest.mark.slow
def test_a_thousand_releases_interrupted_at_random_moments() -> None:
    outcomes: Counter[tuple[str, bool, int]] = Counter()
    for seed in range(5):
        outcomes += interrupted_at_random(200, seed)
    while_reading = {("stopped", False, 1)}  # which takes little time
    assert set(outcomes) | while_reading == CONSISTENT, "and every one of them occurs"
    assert outcomes.total() == 1000
