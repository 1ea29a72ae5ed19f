"""The boundary between our Python and OpenDP's core: feature flags, callbacks, and checks of the
maps OpenDP takes on trust.

OpenDP believes a privacy map whatever it returns, shows the text of a callback's exception to the
analyst, and aborts the interpreter on a `BaseException` inside a callback. Every callback of this
package goes through `guarded`; every map through `checked_map`.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from threading import RLock
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import polars as pl
from opendp.mod import Domain, ExtrinsicDomain

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.trusted.opendp_internals import GLOBAL_FEATURES

#: The number of standard error.
_ERRORS = 2
_FEATURES = ("contrib", "honest-but-curious")
T = TypeVar("T")
PROBES = (0, 1, 2, 3, 4, 8, 16, 64)  # distances at which a map is checked when it is built


class ContractError(ValueError):
    """The input is outside the declared domain in a way that is public. The only error whose
    message may leave a callback.
    """


class ReleaseError(RuntimeError):
    """A release failed while data were read, and has used its budget. The message does not
    depend on the data.

    Where it failed after it had been drawn, `drawn` is what was drawn.
    """

    drawn: Any = None


class Unchanging:
    """An object whose attributes are set when it is made, in its `__dict__`, and not afterwards."""

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError(
            f"{name}: is what the {type(self).__name__} was made with, and stays. Make another one."
        )

    __delattr__ = __setattr__


def require_features(caller: str) -> None:
    """Raise `ValueError` with the line to type unless the OpenDP features that user-defined
    components need are enabled.

    Parameters
    ----------
    caller : str
        The name of the function that needs them, for the message.
    """
    missing = [feature for feature in _FEATURES if feature not in GLOBAL_FEATURES]
    if missing:
        raise ValueError(
            f"{caller} builds on components that OpenDP has not vetted, so it needs these OpenDP"
            f" features enabled first: {', '.join(missing)}. Run `import opendp.prelude as dp;"
            f" dp.enable_features({', '.join(map(repr, _FEATURES))})`."
        )


class _Silence:
    """Stands for the pattern of a warning's text in a filter: it matches any, as long as anything
    is silenced.
    """

    blocks: ClassVar[set[object]] = set()  # running now, in any thread
    lock: ClassVar[Any] = RLock()
    errors: int | None = None  # where standard error led, while it leads nowhere

    def match(self, text: str) -> bool:
        return bool(self.blocks)


_SILENCE = _Silence()
_FILTER = ("ignore", _SILENCE, Warning, None, 0)


@contextmanager
def silenced() -> Iterator[None]:
    """Show no warning while the block runs, whichever thread gives it, and nothing that a library
    writes to standard error by its number, as a panic of polars does: both may show a value.

    `warnings.catch_warnings` swaps the filters of the whole process, so that of two threads the
    first to leave would let the other's warnings through, and the second end them for good. One
    filter that comes first, and matches nothing outside of such blocks, has no such order. Standard
    error comes back with the end of the last block.
    """
    filters = cast(list[Any], warnings.filters)
    if not filters or filters[0] is not _FILTER:
        filters.insert(0, _FILTER)
    block = object()
    try:
        with _SILENCE.lock:
            _SILENCE.blocks.add(block)
            if _SILENCE.errors is None:
                with suppress(OSError):  # there is none
                    _SILENCE.errors = os.dup(_ERRORS)
                    _lead_errors(os.open(os.devnull, os.O_WRONLY))
        yield
    finally:
        with _SILENCE.lock:
            _SILENCE.blocks.discard(block)
            if not _SILENCE.blocks and _SILENCE.errors is not None:
                _lead_errors(_SILENCE.errors)
                _SILENCE.errors = None


def _lead_errors(number: int) -> None:
    """Let standard error lead where an open file of this number leads, and close that one."""
    os.dup2(number, _ERRORS)
    os.close(number)


def guarded(function: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Wrap a callback so that it fails only with a message that cannot depend on the data.

    The original exception is dropped outside its `except` block, so that not even its context
    reaches the analyst.
    """

    def callback(arg: Any) -> Any:
        try:
            with silenced(), np.errstate(all="ignore"):  # a warning, too, may depend on the data
                return function(arg)
        except ContractError as error:
            message = str(error)
        except BaseException:  # noqa: BLE001 - anything else would end the interpreter
            message = (
                f"{what} failed. The cause is withheld, because it may depend on the data; run the"
                " same plan on public data to see it."
            )
        raise RuntimeError(message)

    return callback


def withheld(
    read: Callable[[], T], what: str, remedy: str = "run the plan of the frame yourself to see it"
) -> T:
    """Read a frame outside of a callback, with any error but that of a file withheld, and dropped
    as in `guarded`.
    """
    try:
        with silenced():
            return read()
    except OSError:
        raise
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - polars promises no kind
        message = (
            f"{what} failed. The cause is withheld, because it may show a value, or a name that is"
            f" somebody's record; {remedy}."
        )
    raise RuntimeError(message)


def guarded_map(function: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Wrap a map, which never sees data: its own errors pass, and an interrupt does not abort the
    interpreter. How numpy treats overflow is no matter of the caller's.
    """

    def callback(d_in: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function(d_in)
        except (TypeError, ValueError):
            raise
        except BaseException as error:  # noqa: BLE001 - see guarded
            message = f"{what} stopped at {type(error).__name__}."
        raise RuntimeError(message)

    return callback


def checked_map(
    privacy_map: Callable[[Any], tuple[float, ...]], what: str
) -> Callable[[Any], tuple[float, ...]]:
    """Check a privacy map, which returns a tuple of bounds, and wrap it so that each later value is
    checked too.

    At construction it must be zero at distance 0, defined, non-negative and non-decreasing at
    `PROBES`; at each later distance, no less than at the probes below it. Infinity, which promises
    nothing, is allowed. Raises `ValueError` otherwise.
    """
    probed: dict[int, tuple[float, ...]] = {}

    def checked(d_in: Any) -> tuple[float, ...]:
        values = privacy_map(d_in)
        for value in values:
            if not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
                raise ValueError(
                    f"{what}: its privacy map returned {values!r} at d_in={d_in}; every bound must"
                    " be a number of at least 0."
                )
        distance = Distance.of(d_in)
        nearer = (probe for probe in probed if Distance.of(probe) <= distance)
        below = max(nearer, default=None)
        if below is not None and any(
            now < before for now, before in zip(values, probed[below], strict=True)
        ):
            raise ValueError(
                f"{what}: its privacy map falls from {probed[below]!r} to {values!r} at"
                f" d_in={d_in}; it must not decrease."
            )
        return tuple(float(value) for value in values)

    for probe in PROBES:
        probed[probe] = checked(probe)
    if any(probed[0]):
        raise ValueError(
            f"{what}: its privacy map returned {probed[0]!r} at d_in=0; it must be 0 there."
        )
    return checked


def descriptor_of(domain: Domain, kind: type[T], made_by: str) -> T:
    """Return a copy of the descriptor of an OpenDP user domain if it is of `kind`, otherwise raise
    `ValueError` naming what makes such a domain.

    The domain hands its descriptor to anyone; what a map or a sampler reads must be out of reach.
    Its identifier, the only thing that OpenDP compares, tells its space from every other.
    """
    descriptor = domain.descriptor if isinstance(domain, ExtrinsicDomain) else None
    if not (isinstance(descriptor, kind) and getattr(descriptor, "identifier", "") == repr(domain)):
        raise ValueError(f"input_domain={told(domain)}: must be the output of {made_by}.")
    return deepcopy(descriptor)
