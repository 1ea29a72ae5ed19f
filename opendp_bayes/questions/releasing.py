"""Post-processing, outside of what is trusted: from what a measurement drew to what users get."""

from collections.abc import Callable
from typing import Any, TypeVar

from opendp.core import new_function
from opendp.mod import Measurement

from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.results.release import Release
from opendp_bayes.trusted.boundary import ReleaseError, guarded
from opendp_bayes.trusted.measurements import restated

R = TypeVar("R")


def releasing(measurement: Any, result: Callable[[Any], Any] = Release.of) -> Measurement:
    """The measurement with a step behind it that makes a `Release`, or another `result`, of the
    data that it draws. Its attribute `accounting` stays.
    """
    made: Any = measurement >> new_function(guarded(result, "release"), TO="ExtrinsicObject")
    made.accounting = measurement.accounting
    return made


def promising(
    result: Callable[[Any], R], loss: PrivacyLoss, *, d_in: int, truncated: bool, kept: str
) -> Callable[[Any], R]:
    """The function that makes a `result` of what was drawn for one record, with the promise to one
    privacy unit (`restated`). It holds nothing of a query.
    """
    return lambda drawn: result(restated(drawn, loss, d_in=d_in, truncated=truncated, kept=kept))


def converted(drawn: Any, convert: Callable[[Any], R]) -> R:
    """Make what the user gets of what was drawn, and paid for. Raises `ReleaseError`, which carries
    it, where that fails.
    """
    try:
        return convert(drawn)
    except Exception as error:
        failed = ReleaseError(
            "the release was made and debited, but nothing could be made of it; what was drawn is"
            " the attribute drawn of this exception."
        )
        failed.drawn = drawn
        raise failed from error
