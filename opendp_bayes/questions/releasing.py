"""Post-processing, outside of what is trusted: from what a measurement drew to what users get."""

from collections.abc import Callable
from typing import Any

from opendp.core import new_function
from opendp.mod import Measurement

from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.results.release import Release
from opendp_bayes.trusted.boundary import guarded


def releasing(measurement: Any, result: Callable[[ReleasedData], Any] = Release.of) -> Measurement:
    """The measurement with a step behind it that makes a `Release`, or another `result`, of the
    data that it draws. Its attribute `accounting` stays.
    """
    made: Any = measurement >> new_function(guarded(result, "release"), TO="ExtrinsicObject")
    made.accounting = measurement.accounting
    return made
