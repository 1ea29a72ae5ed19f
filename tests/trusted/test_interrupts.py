"""Ctrl-C ends no interpreter in a release, loses none that was debited, and is delivered."""

# ruff: noqa: PT012 - what a block under pytest.raises does until it is left is what is tested

import contextlib
import ctypes
import faulthandler
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
from opendp_bayes.queries import bound_query, posterior_query
from opendp_bayes.surveys import survey_query
from opendp_bayes.trusted import boundary, queryable_proxy
from opendp_bayes.trusted.interrupts import deferred_interrupts, deliver_interrupt
from tests import helpers
from tests.helpers.contexts import checked_context, plain_context

VOTES = pl.LazyFrame({"vote": ["a", "b"] * 20}, schema={"vote": pl.Enum(["a", "b"])})


def handler_below(number: int) -> int | None:
    """Address of what the system calls for a signal: the first field."""
    action = (ctypes.c_void_p * 128)()
    ctypes.CDLL(None).sigaction(number, None, action)
    return action[0]


def strike() -> None:
    """Ctrl-C here: Python calls the handler before the next line."""
    signal.raise_signal(signal.SIGINT)


# --- the two blocks
def test_an_interrupt_waits_also_for_nested_blocks() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        strike()
        done = True
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    reached = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        with deferred_interrupts():
            strike()
            reached.append("inner")
        reached.append("outer")
    assert reached == ["inner", "outer"]
    with deferred_interrupts():
        deliver_interrupt()
    deliver_interrupt()
    with pytest.raises(ValueError, match="own"), deferred_interrupts():
        raise ValueError("own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_replaces_the_error_that_it_caused() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, deferred_interrupts():
        strike()
        raise boundary.ReleaseError("the callback failed")
    assert caught.value.__suppress_context__


def test_it_is_delivered_where_it_may_be_and_once() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        strike()
        reached.append("held")
        deliver_interrupt()
        reached.append("not reached")
    assert reached == ["held"]
    with deferred_interrupts():
        strike()
        with pytest.raises(KeyboardInterrupt):
            deliver_interrupt()
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        strike()
        with deferred_interrupts():
            deliver_interrupt()
            reached.append("not reached")
    assert reached == ["held"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no handlers below Python's")
def test_a_handler_below_python_s_stays_where_it_is() -> None:
    """As polars has one, which stops a scan; here it is that of `faulthandler`."""
    of_python = handler_below(signal.SIGINT)
    with open(os.devnull, "w") as nowhere:
        faulthandler.register(signal.SIGINT, nowhere, chain=True)
        try:
            found = handler_below(signal.SIGINT)
            with deferred_interrupts():
                within = handler_below(signal.SIGINT)
            after = handler_below(signal.SIGINT)
        finally:
            faulthandler.unregister(signal.SIGINT)
    assert found != of_python
    assert within == after == found


def test_a_handler_of_the_users_own_is_asked_once_and_need_not_raise() -> None:
    asked = []
    before = signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    try:
        with pytest.raises(ValueError, match="own"), deferred_interrupts():
            strike()
            deliver_interrupt()
            assert asked == [signal.SIGINT], "called as soon as it may raise"
            raise ValueError("own")
        assert len(asked) == 1
        with deferred_interrupts():
            strike()
            assert len(asked) == 1
        assert len(asked) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_ignored_signal_and_other_threads_leave_the_handler_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupts():
            strike()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    seen = []

    def work() -> None:
        with deferred_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_another_thread_does_not_deliver_what_is_held_back_for_the_main_thread() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        strike()
        thread = threading.Thread(target=lambda: done.append(deliver_interrupt()))
        thread.start()
        thread.join()
        done.append(None)
    assert done == [None, None]


# --- releases
def context(releases: int = 2, delta: float = 0.0) -> Any:
    return plain_context(VOTES, loss={"epsilon": 1.0, "delta": delta or None}, parts=releases)


def test_an_interrupt_while_counting_stops_the_release_and_is_paid_for(monkeypatch):
    """It may come after a failure, which nobody is to have for nothing."""
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


@pytest.mark.parametrize("taken", ["default", "own"])
@pytest.mark.parametrize("when", ["before", "while"])
@pytest.mark.parametrize("asked", ["categories", "discover"])
def test_counting_stops_at_once_where_the_handler_raises(taken, when, asked, monkeypatch):
    """As in an engine's, which asks Python's; one that takes note has its release."""
    delta = 1e-6 * (asked == "discover")
    whole, over, noted = context(delta=delta), [], []
    query: Any = ob.posterior(whole.query(), "vote", nulls="a")
    if asked == "discover":
        query = ob.discover(whole.query(), "vote", nulls="a")
    collect = pl.LazyFrame.collect

    def counted(*args: Any, **options: Any) -> Any:
        if when == "while":
            strike()
        over.append(1)
        return collect(*args, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", counted)
    if when == "before":
        monkeypatch.setattr(boundary, "silenced", lambda: contextlib.nullcontext(strike()))
    if taken == "default":
        with pytest.raises(KeyboardInterrupt):
            query.release()
    else:
        signal.signal(signal.SIGINT, lambda *_: noted.append(1))
        try:
            query.release()
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    assert (bool(over), bool(noted)) == (taken == "own",) * 2
    assert len(whole.current_privacy_loss()) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


@pytest.mark.skipif(sys.platform == "win32", reason="has no handler of polars that stays")
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
        with pytest.raises(ob.ReleaseInterrupted, match=r"sys\.last_value\.release") as caught:
            query.release()
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.release.mechanism == mechanism
    assert caught.value.release.d_in == 1
    assert len(whole.current_privacy_loss()) == 1


@pytest.mark.parametrize("call", ["resolve", "release"])
def test_an_interrupt_waits_for_the_search_for_a_scale_and_nothing_is_debited(call, monkeypatch):
    whole = context()
    query = ob.posterior(whole.query(), "vote", nulls="a", mechanism="laplace_parameters")
    fit, reached = query._bound.fit, []

    def search(loss: Any) -> Any:
        strike()
        reached.append("the rest of the search")
        return fit(loss)

    monkeypatch.setattr(query, "_bound", replace(query._bound, fit=search))
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(query, call)()
    assert reached
    assert type(caught.value) is KeyboardInterrupt
    assert whole.current_privacy_loss() == []


def test_what_an_interrupt_has_debited_uses_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of OpenDP's own query, which is lost: the next one has the next share."""
    whole: Any = checked_context(VOTES, loss={"epsilon": 3.0}, parts=None, split_by_weights=[1, 2])
    outcome = queryable_proxy._outcome

    def interrupted(*arguments: Any) -> Any:
        strike()
        return outcome(*arguments)

    def released() -> Any:
        return whole.query().select(dp.len(signed=True)).release()

    with monkeypatch.context() as patch:
        patch.setattr(queryable_proxy, "_outcome", interrupted)
        with pytest.raises(KeyboardInterrupt):
            released()
    assert (whole.d_mids_consumed, whole.d_mids) == ([1.0], [2.0])
    assert released().collect().shape == (1, 1)
    assert (whole.d_mids_consumed, whole.d_mids) == ([1.0, 2.0], [])


@pytest.mark.parametrize("asking", ["one question", "a survey"])
def test_an_interrupt_waits_for_the_measurement(asking, monkeypatch):
    """OpenDP is never left in the middle of making one."""
    questions = {"votes": {"column": "vote", "nulls": "a", "mechanism": "laplace_parameters"}}
    query: Any = (
        ob.posterior(context().query(), **questions["votes"])
        if asking == "one question"
        else ob.survey(context().query(), questions)
    )
    made, make = [], bound_query.measurement_of

    def interrupted(*arguments: Any, **options: Any) -> Any:
        found = make(*arguments, **options)
        strike()
        made.append(found)
        return found

    monkeypatch.setattr(bound_query, "measurement_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        query.resolve()
    assert made


QUESTION = {"column": "vote", "nulls": "a", "mechanism": "laplace_parameters"}


OF_QUERY = bound_query.BoundQuery, "settled"


@pytest.mark.parametrize(
    ("place", "name", "call"),
    [
        (posterior_query, "ask", lambda query: ob.posterior(query, **QUESTION)),
        (survey_query, "ask", lambda query: ob.survey(query, {"votes": QUESTION})),
        (*OF_QUERY, lambda query: ob.posterior(query, **QUESTION).summarize()),
        (*OF_QUERY, lambda query: repr(ob.posterior(query, **QUESTION))),
        (*OF_QUERY, lambda query: ob.survey(query, {"votes": QUESTION}).summarize()),
    ],
    ids=["posterior", "survey", "summary", "repr", "summary of a survey"],
)
def test_an_interrupt_waits_for_what_a_query_asks_of_opendp(place, name, call, monkeypatch):
    reached, original = [], getattr(place, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        strike()
        reached.append(name)
        return original(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(context().query())
    assert reached


# --- in a process of their own
IN_THE_GLUE = """
import signal, sys
sys.modules["sklearn"] = None  # the prelude would load it, which takes a second
import opendp._convert, opendp.prelude as dp, polars as pl
import opendp_bayes as ob
from opendp_bayes.trusted import interrupts

if sys.argv[1] == "unprotected":
    interrupts._set_handler = lambda handler: None
dp.enable_features("contrib", "honest-but-curious")
votes = pl.LazyFrame({"vote": ["a", "b"] * 20}, schema={"vote": pl.Enum(["a", "b"])})
context = dp.Context.compositor(
    data=votes,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)
query = ob.posterior(context.query(), "vote", nulls="a")
invoke, counted, collect = opendp._convert.c_to_py, [], pl.LazyFrame.collect
def collected(*args, **options):
    counted.append(True)
    return collect(*args, **options)
pl.LazyFrame.collect = collected
def interrupted(*args):
    if sys._getframe(1).f_code.co_name == "_invoke_py_callback":
        if sys.argv[2] == "all" or counted:
            signal.raise_signal(signal.SIGINT)
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
        (True, "all", "KeyboardInterrupt"),
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
                line = child.stdout.readline()
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
