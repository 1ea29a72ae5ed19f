"""The score of a mechanism: its expected error at proportions of interest."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting.calibration import counts_in_proportion
from opendp_bayes.mathematics.validation import Floats, Integers, as_size
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.expected_error import ExpectedError, expected_error, hellinger_error

#: Of two mechanisms whose errors differ by less than this part the one listed first is recommended:
#: noise on the counts, which is the simplest.
INDIFFERENCE = 0.01
#: Share of the first category where one is almost empty.
_EDGE = 0.01


def records_of(size: int | None, guess_size: int | None) -> int:
    """The number of records that errors are for: the public one, or the guess of a private one."""
    if (size is None) == (guess_size is None):
        raise ValueError(
            f"size={size!r}, guess_size={guess_size!r}: give one of them: size= with the public"
            " number of records, or guess_size= with a guess of a private one."
        )
    return as_size(guess_size, "guess_size") if size is None else as_size(size)


def proportions_of_interest(
    prior: Floats, records: int, stated: ArrayLike | None
) -> dict[str, tuple[float, ...]]:
    k = prior.size
    shares = {
        "balanced": np.full(k, 1 / k),
        "skewed": np.array([0.2, 0.8]) if k == 2 else np.exp2(np.arange(k)) / (2.0**k - 1),
        "edge": np.append(_EDGE, np.full(k - 1, (1 - _EDGE) / (k - 1))),
    }
    if stated is not None:
        counts_in_proportion(records, prior, stated)  # which refuses what is not proportions
        shares["stated"] = np.asarray(stated, dtype=np.float64) / np.sum(stated)
    return {name: tuple(share.tolist()) for name, share in shares.items()}


def mean_error(errors: Mapping[str, float]) -> float:
    """The score of a mechanism, from its Hellinger error for each of the proportions."""
    scored = [errors["stated"]] if "stated" in errors else list(errors.values())
    return math.fsum(scored) / len(scored)


def score_of(setting: Setting, shares: Mapping[str, Any], records: int) -> float:
    """The score that a plan would give to a mechanism, in less time."""
    wanted = {"stated": shares["stated"]} if "stated" in shares else shares
    counts = counts_at(wanted, setting, records)
    return mean_error({name: hellinger_error(setting, at) for name, at in counts.items()})


def errors_at(
    setting: Setting, shares: Mapping[str, Any], records: int
) -> dict[str, ExpectedError]:
    """The expected error at each of the proportions of so many records."""
    counts = counts_at(shares, setting, records)
    return {name: expected_error(setting, at) for name, at in counts.items()}


def counts_at(shares: Mapping[str, Any], setting: Setting, records: int) -> dict[str, Integers]:
    """Counts of so many records in each of the proportions."""
    prior = setting.prior_array
    return {name: counts_in_proportion(records, prior, share) for name, share in shares.items()}


def preferred(scores: Sequence[float]) -> int:
    """The first whose score is within `INDIFFERENCE` of the smallest."""
    smallest = min(scores)
    return next(i for i, score in enumerate(scores) if score <= smallest * (1 + INDIFFERENCE))
