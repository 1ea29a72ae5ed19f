"""Posteriors computed once a run, for tests that show what they find and do not measure it."""

import pickle
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

import pytest

from opendp_bayes.inference import combine
from opendp_bayes.inference.answers import learned_posterior
from opendp_bayes.inference.ways import Way
from opendp_bayes.surveys import joint_posterior

#: The most that are kept; the oldest make room.
_MOST = 200
Store = dict[bytes, Any]
#: Of chains of the whole length, and of a tenth of it.
LONG: Store = {}
SHORT: Store = {}


def compute_once(patch: pytest.MonkeyPatch, store: Store) -> None:
    """Compute what is exact, learned, or of a survey once for the same arguments."""
    for module, name in (
        (Way, "exact"),
        (learned_posterior, "learned_posterior"),
        (combine, "learned_posterior"),
        (joint_posterior, "survey_posterior"),
    ):
        # What was remembered in another store is not what is computed here.
        patch.setattr(module, name, _once(unwrap(getattr(module, name)), store))


def _once(compute: Callable[..., Any], store: Store) -> Callable[..., Any]:
    @wraps(compute)
    def found(*arguments: Any, **options: Any) -> Any:
        try:
            key = pickle.dumps((compute.__name__, arguments, options))
        except (AttributeError, TypeError, pickle.PicklingError):  # of a test's own
            return compute(*arguments, **options)
        if key not in store:
            made = compute(*arguments, **options)
            if len(store) == _MOST:
                del store[next(iter(store))]
            store[key] = made
        return store[key]

    return found
