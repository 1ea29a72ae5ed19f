"""The boundary between our Python and OpenDP's core: feature flags, callbacks, and checks of the
maps OpenDP takes on trust.

OpenDP believes a privacy map whatever it returns, shows the text of a callback's exception to the
analyst, and aborts the interpreter on a `BaseException` inside a callback. Every callback of this
package goes through `guarded`; every map through `checked_map`.
"""

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from opendp.mod import GLOBAL_FEATURES, Domain, ExtrinsicDomain

_FEATURES = ("contrib", "honest-but-curious")
PROBES = (0, 1, 2, 3, 4, 8, 16, 64)  # distances at which a map is checked when it is built


class ContractError(ValueError):
    """The input is outside the declared domain in a way that is public. The only error whose
    message may leave a callback.
    """


class ReleaseError(RuntimeError):
    """A release failed while data were read. The message does not depend on the data."""


def require_features(caller: str) -> None:
    """Raise `ValueError` saying what to type unless the OpenDP features that user-defined
    components need are enabled.
    """
    missing = [feature for feature in _FEATURES if feature not in GLOBAL_FEATURES]
    if missing:
        raise ValueError(
            f"{caller} builds on components that OpenDP has not vetted, so it needs these OpenDP"
            f" features enabled first: {', '.join(missing)}. Run `import opendp.prelude as dp;"
            f" dp.enable_features({', '.join(map(repr, _FEATURES))})`."
        )


def guarded(function: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Wrap a callback so that it fails only with a message that cannot depend on the data.

    The original exception is dropped outside its `except` block, so that not even its context
    reaches the analyst.
    """

    @wraps(function)
    def callback(arg: Any) -> Any:
        try:
            with (
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
            ):  # a warning, too, may depend on the data
                warnings.simplefilter("ignore")
                return function(arg)
        except ContractError as error:
            message = str(error)
        except BaseException:
            message = (
                f"{what} failed. The cause is withheld, because it may depend on the data; run the"
                " same plan on public data to see it."
            )
        raise RuntimeError(message)

    return callback


def guarded_map(function: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Wrap a map, which never sees data: its own errors pass, and an interrupt does not abort the
    interpreter.
    """

    @wraps(function)
    def callback(d_in: Any) -> Any:
        try:
            return function(d_in)
        except (TypeError, ValueError):
            raise
        except BaseException as error:  # noqa: BLE001 - see guarded
            message = f"{what} stopped at {type(error).__name__}."
        raise RuntimeError(message)

    return callback


def checked_map(
    privacy_map: Callable[[int], tuple[float, ...]], what: str
) -> Callable[[int], tuple[float, ...]]:
    """Check a privacy map, which returns a tuple of bounds, and wrap it so that each later value is
    checked too.

    At construction it must be zero at distance 0, defined, non-negative and non-decreasing at
    `PROBES`; at each later distance, no less than at the probes below it. Infinity, which promises
    nothing, is allowed. Raises `ValueError` otherwise.
    """
    probed: dict[int, tuple[float, ...]] = {}

    def checked(d_in: int) -> tuple[float, ...]:
        values = privacy_map(d_in)
        for value in values:
            if not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
                raise ValueError(
                    f"{what}: its privacy map returned {values!r} at d_in={d_in}; every bound must"
                    " be a number of at least 0."
                )
        below = max((probe for probe in probed if probe <= d_in), default=None)
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


def descriptor_of(domain: Domain, kind: type, made_by: str) -> Any:
    """Return the descriptor of an OpenDP user domain if it is of `kind`, otherwise raise
    `ValueError` naming what makes such a domain.
    """
    descriptor = domain.descriptor if isinstance(domain, ExtrinsicDomain) else None
    if not (
        isinstance(descriptor, kind) and getattr(descriptor, "identifier", None) == repr(domain)
    ):
        raise ValueError(f"input_domain={domain}: must be the output of {made_by}.")
    return descriptor
