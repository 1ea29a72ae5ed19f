"""Submit a measurement to a Context: one debit, and one entry in its ledger."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from opendp.context import Context, Query
from opendp.mod import (
    Measurement,
    OpenDPException,
)

from opendp_bayes.trusted.boundary import ReleaseError
from opendp_bayes.trusted.budget import (
    check_remaining,
)
from opendp_bayes.trusted.handed_out import lock_of
from opendp_bayes.trusted.interrupts import deferred_interrupts

#: What `guarded` raises, in OpenDP's account of it.
_CALLBACK_MESSAGE = re.compile(r"^RuntimeError: (.*)$", re.MULTILINE)


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
        if "one query at a time" in str(error):
            raise ValueError(
                "query: the Context is answering another query of OpenDP's or of a Context within"
                " it, in another thread, and takes one at a time; nothing was released or spent."
                " Ask again afterwards, or make these releases in one thread."
            ) from None
        if "out of queries" in str(error):
            raise ValueError(
                "query: the Context has answered as many queries as its budget was divided for, so"
                " nothing was released or spent. Keep the releases that were made, or divide the"
                " budget by more queries, as in split_evenly_over=2."
            ) from None
        if "insufficient budget" in str(error):
            raise ValueError(
                f"query: its privacy loss {measurement.map(d_in)} exceeds the share of the budget"
                f" that is next, {context.d_mids[0] if context.d_mids else 0}: it was asked with an"
                " earlier share, which another release took. Nothing was released or spent; ask"
                " again, with a new `context.query()`."
            ) from None
        ours = _CALLBACK_MESSAGE.search(str(error))
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
    context: Context | None = query._context
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
