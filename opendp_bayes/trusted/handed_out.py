"""Hand out a Context's queryable, through which every release goes, and its answers. A measurement
is submitted to it with one debit, and one entry in its ledger.

OpenDP's objects remember what made them: a queryable the frame, an answer the queryable. They are
handed out without, so that no public name leads from a Context to its data, or around its ledger.
"""

import os
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from threading import Lock, RLock
from typing import Any, TypeVar

import polars as pl
from opendp.context import Context, Query
from opendp.extras.polars import OnceFrame
from opendp.mod import (
    Measurement,
    OdometerQueryable,
    OpenDPException,
    Queryable,
)

from opendp_bayes.mathematics.telling import told
from opendp_bayes.trusted.account import Loss
from opendp_bayes.trusted.boundary import ReleaseError, withheld
from opendp_bayes.trusted.budget import (
    as_entry,
    check_remaining,
    unit_in_words,
)
from opendp_bayes.trusted.interrupts import deferred_interrupts
from opendp_bayes.trusted.ledger import Ledger
from opendp_bayes.trusted.opendp_internals import (
    BUSY,
    RAISED_BY_CALLBACK,
    TOO_SMALL,
    USED_UP,
    forget_origin,
    parts_of,
)

_LOCKS: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
_LOCKING = Lock()


def lock_of(queryable: Any) -> Any:
    """The lock of everything that asks a queryable, whichever Contexts have it."""
    with _LOCKING:
        return _LOCKS.setdefault(queryable, RLock())


def debit_of(context: Context) -> Callable[[Measurement], tuple[Loss, str]]:
    """The function from a measurement to its loss and the privacy unit that it is for, which nobody
    can change afterwards.
    """
    accountant, d_in = context.accountant, deepcopy(context.d_in)
    measure, unit = accountant.output_measure, unit_in_words(accountant.input_metric, d_in)
    return lambda query: (as_entry(measure, query.map(d_in)), unit)


def handed_out_queryable(context: Context, ledger: Ledger | None, alive: Any = None) -> Any:
    """The queryable of a Context that was just made, which enters each release in the ledger before
    it is handed out. `alive` is kept for as long as anybody has it or an answer of it.
    """
    shares, consumed = context.d_mids, context.d_mids_consumed

    def spent() -> None:
        if shares:  # which a Context counts after its queryable has answered
            consumed.append(shares.pop(0))  # type: ignore[arg-type]

    if ledger is None:
        return _asked(context.queryable, alive, spent=spent)
    debit = debit_of(context)
    return _asked(context.queryable, alive, lambda query: ledger.entered(*debit(query)), spent)


def handed_out(answer: Any, alive: Any = None) -> Any:
    """An answer of OpenDP's as it may be handed out: without the queryable that gave it, a frame to
    be collected once, and a queryable that answers in like manner.

    Raises `ValueError` for a LazyFrame, and for frames and queryables in collections.
    """
    forget_origin(answer)
    if isinstance(answer, OnceFrame):
        return _keeping(alive, AnsweredFrame(answer))
    if isinstance(answer, (Queryable, OdometerQueryable)):
        return _asked(answer, alive)
    _check_answer(answer)
    return answer


def _check_answer(answer: Any) -> None:
    if isinstance(answer, pl.LazyFrame):
        raise ValueError(
            "query: its answer is a LazyFrame, of which every collect is another draw, so it is"
            " debited and not handed out. Let the measurement end in OpenDP's OnceFrame or in what"
            " its collect() gives."
        )
    items: Any = answer.values() if type(answer) is dict else answer
    for item in items if type(answer) in (list, tuple, dict) else ():
        if isinstance(item, (OnceFrame, Queryable, OdometerQueryable)):
            raise ValueError(
                f"query: its answer has a {type(item).__name__} within, which OpenDP has freed by"
                " now, so it is debited and not handed out. Ask for each on its own, or for a"
                " Context within, by `query.compositor(...)`."
            )
        _check_answer(item)


class AnsweredFrame(OnceFrame):
    """The answer to a query of OpenDP's own on a frame, which is collected once."""

    def __init__(self, frame: OnceFrame) -> None:
        collect: Callable[[], pl.DataFrame] = lambda: frame.collect()  # noqa: E731 - tells no frame
        self._collect: Callable[[], pl.DataFrame] | None = collect

    def collect(self) -> pl.DataFrame:
        """Draw the answer and return it.

        Raises `ValueError` from the second time on, and `RuntimeError`, without a cause, where
        reading the data fails.
        """
        if self._collect is None:
            raise ValueError("query: its answer was collected already; keep what collect() gave.")
        answer: pl.DataFrame = handed_out(withheld(self._collect, "query: collecting its answer"))
        self._collect = None
        return answer

    def lazy(self) -> pl.LazyFrame:
        """Raise `ValueError`: every collect of a LazyFrame is another draw, for one debit."""
        raise ValueError(
            "query: lazy() would draw anew in every collect, for one debit. Use collect(), and"
            " collect().lazy() to go on with what was drawn."
        )


class _Asked:
    """A queryable of the class that OpenDP looks for, which answers one question at a time."""

    _answer: Callable[[Any], Any]

    def __call__(self, query: Any) -> Any:
        with lock_of(self):
            return self._answer(query)


class _AskedQueryable(_Asked, Queryable):
    def __init__(self, queryable: Queryable, answer: Callable[[Any], Any]) -> None:
        self.query_type, self._answer = queryable.query_type, answer


class _AskedOdometer(_Asked, OdometerQueryable):
    def __init__(self, queryable: OdometerQueryable, answer: Callable[[Any], Any]) -> None:
        of: Any = queryable
        self._shown, self._answer = repr(queryable), answer
        self._loss: Any = lambda d_in: of.privacy_loss(d_in)  # a bound method tells its object

    def invoke(self, query: Any) -> Any:
        return self(query)

    def privacy_loss(self, d_in: Any) -> Any:
        return self._loss(d_in)

    def __repr__(self) -> str:
        return self._shown


def _asked(
    queryable: Queryable | OdometerQueryable,
    alive: Any,
    entered: Callable[[Measurement], AbstractContextManager[None]] = lambda query: nullcontext(),
    spent: Callable[[], None] = lambda: None,
) -> Any:
    """A queryable as it may be handed out, whose answers are made within the block `entered`.
    `spent` is told of an answer that is debited and not handed out.
    """
    process = os.getpid()
    forget_origin(queryable)

    def answer(query: Any) -> Any:
        _check_question(query, process)
        is_debited = False
        try:
            with entered(query):
                given = queryable(query)
                is_debited = True
            return handed_out(given, alive)
        except BaseException:
            if is_debited:
                spent()
            raise

    if isinstance(queryable, OdometerQueryable):
        return _keeping(alive, _AskedOdometer(queryable, answer))
    return _keeping(alive, _AskedQueryable(queryable, answer))


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


def _keeping(alive: Any, handed: Any) -> Any:
    """Keep something for as long as what was handed out, where no name of that leads to it."""
    weakref.finalize(handed, id, alive).atexit = False
    return handed


# --- Submitting


def submitted(context: Context, measurement: Measurement, d_in: Any) -> Any:
    """Release a measurement on the data of the Context and debit it, after checking that the
    remaining budget suffices.

    Raises `ValueError` where it does not, and `ReleaseError` if reading the data fails, with a
    message that does not depend on them. Of several threads one at a time is answered: between the
    check and the debit there must be no other, or a filter would refuse everything after.
    """
    try:
        with lock_of(context.queryable):
            check_remaining(context, measurement.map(d_in))
            return context(measurement)
    except OpenDPException as error:
        if BUSY in str(error):
            raise ValueError(
                "query: the Context is answering another query of OpenDP's or of a Context within"
                " it, in another thread, and takes one at a time; nothing was released or spent."
                " Ask again afterwards, or make these releases in one thread."
            ) from None
        if USED_UP in str(error):
            raise ValueError(
                "query: the Context has answered as many queries as its budget was divided for, so"
                " nothing was released or spent. Keep the releases that were made, or divide the"
                " budget by more queries, as in split_evenly_over=2."
            ) from None
        if TOO_SMALL in str(error):
            raise ValueError(
                f"query: its privacy loss {measurement.map(d_in)} exceeds the share of the budget"
                f" that is next, {context.d_mids[0] if context.d_mids else 0}: it was asked with an"
                " earlier share, which another release took. Nothing was released or spent; ask"
                " again, with a new `context.query()`."
            ) from None
        ours = RAISED_BY_CALLBACK.search(str(error))
        if ours is None:
            raise
        raise ReleaseError(ours[1]) from None


S = TypeVar("S")


class ReleaseInterrupted(KeyboardInterrupt):
    """Ctrl-C came when a release could no longer be stopped: it was made and debited.

    `release` is that release. In a notebook or at a prompt it is `sys.last_value.release`.
    """

    def __init__(self, release: Any) -> None:
        super().__init__(
            "the release had been made and debited; it is the attribute release of this exception,"
            " at a prompt `sys.last_value.release`."
        )
        self.release = release


def released_by(query: Query, data: Any, make: Callable[[Context], S]) -> S:
    """Let `make` release and debit from the Context of the query, with Ctrl-C held back as
    described at `PosteriorQuery.release`.
    """
    context = parts_of(query).context
    if data is not None or context is None:
        raise ValueError("release: the query must belong to a Context, which holds the data.")
    released: S | None = None
    try:
        with deferred_interrupts():
            released = make(context)
    except KeyboardInterrupt:
        if released is None:
            raise
        raise ReleaseInterrupted(released) from None
    return released
