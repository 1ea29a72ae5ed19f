"""Hand out a Context's queryable, through which every release goes, and its answers. A measurement
is submitted to it with one debit, and one entry in its ledger, both before data are read: whatever
fails afterwards has used its budget.

OpenDP's objects remember what made them: a queryable the frame, an answer the queryable. They are
handed out without, so that no public name leads from a Context to its data, or around its ledger.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from threading import RLock
from typing import Any

import polars as pl
from opendp.combinators import make_adaptive_composition
from opendp.context import Context
from opendp.extras.polars import OnceFrame
from opendp.measurements import make_user_measurement
from opendp.mod import Measurement, OdometerQueryable, Queryable

from opendp_bayes.mathematics.telling import told
from opendp_bayes.trusted.account import Loss
from opendp_bayes.trusted.boundary import ReleaseError, withheld
from opendp_bayes.trusted.budget import (
    as_entry,
    as_tuple,
    check_remaining,
    name_of,
    shown,
    unit_in_words,
)
from opendp_bayes.trusted.interrupts import ReleaseInterrupted, uninterrupted
from opendp_bayes.trusted.ledger import Intent, Ledger
from opendp_bayes.trusted.opendp_internals import RAISED_BY_CALLBACK, forget_origin

#: Of Contexts that OpenDP made one is asked at a time. Ours have a lock each.
_LOCK = RLock()
#: What is drawn anew by every collect, or freed by OpenDP when it leaves the collection it is in.
_FLEETING = (pl.LazyFrame, OnceFrame, Queryable, OdometerQueryable)


def handed_out_queryable(context: Context, ledger: Ledger | None, alive: Any = None) -> Any:
    """The queryable of a Context that was just made, which enters each release in the ledger before
    data are read. `alive` is kept for as long as anybody has it or an answer of it.
    """
    shares, consumed = context.d_mids, context.d_mids_consumed
    accountant, d_in = context.accountant, deepcopy(context.d_in)  # which nobody can change
    measure, unit = accountant.output_measure, unit_in_words(accountant.input_metric, d_in)

    def entered(query: Measurement) -> AbstractContextManager[Intent]:
        if ledger is None:
            return nullcontext(Intent(Loss()))
        return ledger.entered(as_entry(measure, query.map(d_in)), unit)

    def spent() -> None:
        if shares:  # which a Context counts after its queryable has answered
            consumed.append(shares.pop(0))  # type: ignore[arg-type]

    return _asked(context.queryable, alive, RLock(), d_in, entered, spent)


def handed_out(answer: Any, alive: Any, lock: Any) -> Any:
    """An answer of OpenDP's as it may be handed out: without the queryable that gave it, a frame to
    be collected once, and a queryable that answers in like manner, under the lock of that one.

    Raises
    ------
    ValueError
        For a LazyFrame, and for frames and queryables in collections.
    """
    forget_origin(answer)
    if isinstance(answer, OnceFrame):
        return AnsweredFrame(answer, alive)
    if isinstance(answer, (Queryable, OdometerQueryable)):
        return _asked(answer, alive, lock)
    _check_answer(answer)
    return answer


def _check_answer(answer: Any, refused: Any = pl.LazyFrame) -> None:
    if isinstance(answer, refused):
        raise ValueError(
            f"query: its answer is a {type(answer).__name__}, or has one within,"
            " which draws anew in every collect, or which OpenDP has freed by now, so it is debited"
            " and not handed out. Let the measurement end in OpenDP's OnceFrame or in what its"
            " collect() gives, and ask for each on its own, or for a Context within, by"
            " `query.compositor(...)`."
        )
    items: Any = answer.values() if type(answer) is dict else answer
    for item in items if type(answer) in (list, tuple, dict) else ():
        _check_answer(item, _FLEETING)


class AnsweredFrame(OnceFrame):
    """The answer to a query of OpenDP's own on a frame, which is collected once."""

    def __init__(self, frame: OnceFrame, alive: Any) -> None:
        # A function has no attribute that leads to the frame, or to what is kept for it.
        self._collect: Any = lambda: (frame.collect(), alive)

    def collect(self) -> pl.DataFrame:
        """Draw the answer and return it.

        Raises
        ------
        ValueError
            From the second time on, and `RuntimeError`, without a cause, where reading the data
            fails.
        """
        if self._collect is None:
            raise ValueError("query: its answer was collected already; keep what collect() gave.")
        collecting = "query: collecting its answer, which was debited when it was released,"
        answer, _ = withheld(self._collect, collecting)
        forget_origin(answer)
        self._collect = None
        return answer

    def lazy(self) -> pl.LazyFrame:
        """Raise `ValueError`: every collect of a LazyFrame is another draw, for one debit."""
        raise ValueError(
            "query: lazy() would draw anew in every collect, for one debit. Use collect(), and"
            " collect().lazy() to go on with what was drawn."
        )


class _Asked:
    """A queryable of the class that OpenDP looks for, which holds functions alone."""

    def __init__(self, queryable: Any, answer: Callable[[Any], Any], lock: Any) -> None:
        self.query_type = getattr(queryable, "query_type", None)
        self.lock, self._answer = lock, answer
        self._loss: Any = lambda d_in: queryable.privacy_loss(d_in)  # a bound method tells it

    def __call__(self, query: Any) -> Any:
        return self._answer(query)

    def privacy_loss(self, d_in: Any) -> Any:
        return self._loss(d_in)

    invoke = __call__
    __repr__ = object.__repr__  # that of OpenDP reads what is not here


class _AskedQueryable(_Asked, Queryable):
    """A compositor."""


class _AskedOdometer(_Asked, OdometerQueryable):
    """A filter."""


def _asked(
    queryable: Any,
    alive: Any,
    lock: Any,
    distance: Any = None,
    entered: Callable[[Measurement], AbstractContextManager[Intent]] = (
        lambda query: nullcontext(Intent(Loss()))
    ),
    spent: Callable[[], None] = lambda: None,
) -> Any:
    """A queryable as it may be handed out, which answers one question at a time under a lock. It is
    debited before data are read, and answers within the block `entered`; `spent` is called for what
    is debited and not handed out. `distance` is that of its Context, if it has one.
    """
    process = os.getpid()
    forget_origin(queryable)

    def asked(query: Any) -> Any:
        run = None
        with lock:
            _check_question(query, process)
            try:
                with entered(query) as intent:
                    run = debited(queryable, query, distance)
                    intent.is_reading = True
                    released = run()
                return handed_out(released, alive, lock)
            except BaseException:
                if run is not None:
                    spent()
                raise

    def answer(query: Any) -> Any:
        try:
            return uninterrupted(lambda: asked(query))
        except ReleaseInterrupted:
            spent()
            raise

    is_odometer = isinstance(queryable, OdometerQueryable)
    return (_AskedOdometer if is_odometer else _AskedQueryable)(queryable, answer, lock)


#: A filter of OpenDP's in this measure fails at every queryable that it gives.
_NOT_NESTED = "Approximate(ZeroConcentratedDivergence)"


def debited(ask: Callable[[Any], Any], query: Measurement, d_in: Any) -> Callable[[], Any]:
    """Debit a measurement, and return the function that gives its answer, or raises `ReleaseError`
    for whatever failed.

    OpenDP debits a measurement after it has run, and a filter refuses one after it has run. So what
    is asked for first is a compositor of this measurement alone, at the distance `d_in`, which
    reads nothing. Where there can be none, what is asked for is a measurement that never fails, but
    answers that this one has: so it is debited or refused alike.
    """
    cost = "It uses its budget all the same, as the release would have"
    if d_in is not None:
        loss = query.map(d_in)
        cost += f": {shown(as_tuple(loss))} ({query.output_measure})"
    spaces = *query.input_space, query.output_measure
    if d_in is None or name_of(query.output_measure) == _NOT_NESTED:
        outcome = ask(make_user_measurement(*spaces, lambda data: _outcome(query, data), query.map))
    else:
        compositor = ask(make_adaptive_composition(*spaces, d_in, [loss]))
        outcome = None

    def answer() -> Any:
        result, problem = outcome or _outcome(compositor, query)
        if problem:
            raise ReleaseError(f"{problem} {cost}.")
        return result

    return answer


def _outcome(ask: Callable[[Any], Any], question: Any) -> tuple[Any, str]:
    """An answer, or what is said where there is none."""
    try:
        return ask(question), ""
    except BaseException as error:  # noqa: BLE001 - polars promises no kind
        message = RAISED_BY_CALLBACK.search(str(error))
    return None, _WITHHELD if message is None else message[1]


_WITHHELD = (
    "query: it failed while data were read. The cause is withheld, because it may show a value; run"
    " the same plan on public data to see it."
)


def _check_question(query: Any, process: int) -> None:
    """Raise for what OpenDP cannot be asked: the interpreter would end, or spend a budget twice."""
    if not isinstance(query, Measurement):
        raise TypeError(
            f"query={told(query)}: a Context answers a Measurement, as a query's resolve() gives."
        )
    if os.getpid() != process:
        raise ValueError(
            "query: its Context was opened by another process, of which this one is a copy, and"
            " both would spend its budget. Open a Context in each, with one ledger for all."
        )


# --- Submitting


def submitted(context: Context, measurement: Measurement, d_in: Any) -> Any:
    """Release a measurement on the data of the Context and debit it, after checking that the
    remaining budget suffices.

    Of several threads one at a time is answered: between the check and the debit there must be no
    other, or a filter would refuse everything after.

    Raises
    ------
    ValueError
        Where it does not; `OpenDPException` where the Context has no query left, or the share that
        is next is smaller.
    ReleaseError
        If reading the data fails, which is debited, with a message that does not depend on them.
    """
    with getattr(context.queryable, "lock", _LOCK):
        check_remaining(context, measurement.map(d_in))
        if isinstance(context.queryable, _Asked):
            return context(measurement)
        return debited(context, measurement, d_in)()
