"""Post-processing, outside of what is trusted: from what a measurement drew to what users get."""

from collections.abc import Callable
from typing import Any, TypeVar

from opendp.core import new_function
from opendp.mod import Measurement

from opendp_bayes.results.release import Release
from opendp_bayes.trusted.boundary import ReleaseError, guarded

R = TypeVar("R")


def releasing(measurement: Any, result: Callable[[Any], Any] = Release.of) -> Measurement:
    """The measurement with a step behind it that makes a `Release`, or another `result`, of the
    data that it draws. Its attribute `accounting` stays.
    """
    made: Any = measurement >> new_function(guarded(result, "release"), TO="ExtrinsicObject")
    made.accounting = measurement.accounting
    return made


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
