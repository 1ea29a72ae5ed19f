r"""Expected error of a release given the true counts, expected width of an interval made from it,
and the score of a mechanism: its expected error at proportions of interest.

Public counts, real or guessed, go in, and never data. Where the outcomes that matter can be listed,
every expectation is a sum over them: all outcomes of an exponential mechanism, or those of additive
noise up to where the rest, weighted by its size, is less than about 1e-6 of what is not 0.
Otherwise the release is simulated; noise and permute-and-flip with a fixed seed, so that the same
question has the same answer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.accounting.calibration import counts_in_proportion
from opendp_bayes.mathematics.exponential.hellinger import hellinger_distance
from opendp_bayes.mathematics.validation import Floats, Integers, as_size
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.release_law import ReleaseLaw, release_law

#: Components of the mixture from which an interval's width is taken.
_CELLS = 512
#: The probability of that interval, of what is below it, and half the width of a standard normal
#: law's.
_LEVEL, _TAIL, _QUANTILE = 0.95, 0.025, 1.959964
#: Of two mechanisms whose errors differ by less than this part the one listed first is recommended:
#: noise on the counts, which is the simplest.
INDIFFERENCE = 0.01
#: Share of the first category where one is almost empty.
_EDGE = 0.01


@dataclass(frozen=True)
class ExpectedError:
    """Expected distance of the released posterior from the posterior of the true `counts`, over the
    randomness of the mechanism.

    Attributes
    ----------
    counts : tuple[int, ...]
        The true counts, made up from public proportions.
    hellinger : float
        Mean Hellinger distance between the two posteriors, `E[H(posterior, released posterior)]`.
    interval_width : float
        Approximate mean width of the noise-aware 95 % intervals, mean over categories: the least of
        three. They are the width of the central 95 % of the released posteriors mixed over
        releases; that of a normal law whose precision is the sum of the prior's and that of the
        release; and that of the prior. Near the edge of the simplex the intervals are shorter,
        because they know where the edge is.
    standard_error : float
        Of `hellinger`; 0 where it was summed.
    method : {"exact", "simulated"}
        `"exact"`, a sum over the outcomes, or `"simulated"`.
    """

    counts: tuple[int, ...]
    hellinger: float
    interval_width: float
    standard_error: float
    method: Literal["exact", "simulated"]


def expected_error(setting: Setting, counts: Integers) -> ExpectedError:
    """The error of a mechanism at true counts of shape `(k,)`."""
    law, distance = _distances(setting, counts)
    categories = [0] if counts.size == 2 else range(counts.size)  # the other one's are as wide
    return ExpectedError(
        counts=tuple(counts.tolist()),
        hellinger=float(law.weights @ distance),
        interval_width=_mean_width(law, setting.prior_array, int(counts.sum()), categories),
        standard_error=float(np.std(distance) / math.sqrt(distance.size)) if law.simulated else 0.0,
        method="simulated" if law.simulated else "exact",
    )


def _distances(setting: Setting, counts: Integers) -> tuple[ReleaseLaw, Floats]:
    """The law of a release, and the distance of each outcome from the posterior of the counts."""
    law, prior = release_law(setting, counts), setting.prior_array
    return law, hellinger_distance(prior + law.counts, prior + counts)


def expected_width(setting: Setting, counts: Integers, part: slice) -> float:
    """`ExpectedError.interval_width` of the categories in `part` alone, whose probabilities are
    divided by their sum: of one group among several.

    Categories with the same count and prior are alike, so one of them stands for all.
    """
    law, prior = release_law(setting, counts), setting.prior_array
    alike = np.stack([counts[part], prior[part]])
    first, times = np.unique(alike, axis=1, return_index=True, return_counts=True)[1:]
    law_of_part, records = ReleaseLaw(law.counts[:, part], law.weights), int(counts[part].sum())
    widths = [_mean_width(law_of_part, prior[part], records, [place]) for place in first.tolist()]
    return float(times @ widths / times.sum())


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
    return {proportion: tuple(share.tolist()) for proportion, share in shares.items()}


def mean_error(errors: Mapping[str, float]) -> float:
    """The score of a mechanism, from its Hellinger error for each of the proportions."""
    scored = [errors["stated"]] if "stated" in errors else list(errors.values())
    return math.fsum(scored) / len(scored)


def score_of(setting: Setting, shares: Mapping[str, Any], records: int) -> float:
    """The score that a plan would give to a mechanism, in less time."""
    wanted, distances = {"stated": shares["stated"]} if "stated" in shares else shares, {}
    for proportion, share in wanted.items():
        counts = counts_in_proportion(records, setting.prior_array, share)
        law, distance = _distances(setting, counts)
        distances[proportion] = float(law.weights @ distance)
    return mean_error(distances)


def preferred(scores: Sequence[float]) -> int:
    """The first whose score is within `INDIFFERENCE` of the smallest."""
    smallest = min(scores)
    return next(i for i, score in enumerate(scores) if score <= smallest * (1 + INDIFFERENCE))


def _mean_width(law: ReleaseLaw, prior: Floats, records: int, categories: Sequence[int]) -> float:
    """The mean over some categories of the width of their intervals, of so many true records."""
    from opendp_bayes.inference.laws.beta_mixture import BetaMixtures

    released, prior_total = prior + law.counts, float(prior.sum())
    total, widths = released.sum(axis=1), []
    ends = (special.betaincinv(prior, prior_total - prior, tail) for tail in (1 - _TAIL, _TAIL))
    beforehand = np.subtract(*ends)
    for i in categories:
        mean = released[:, i] / total
        cell = np.floor(
            (mean - mean.min()) * (_CELLS / max(np.ptp(mean), 1e-300)) * (1 - 1e-12)
        ).astype(np.int64)
        mixed = BetaMixtures.grouped(released[:, i], total - released[:, i], law.weights, cell)
        lower, upper = mixed.interval(_LEVEL)
        normal = _normal_width(law.weights, mean, float(prior[i]), prior_total, records)
        widths.append(min(float((upper - lower)[0]), normal, float(beforehand[i])))
    return math.fsum(widths) / len(widths)


def _normal_width(weights: Floats, mean: Floats, prior: float, whole: float, records: int) -> float:
    """The width of an interval if what the release says of a share, and its prior, were normal."""
    if not records:
        return math.inf
    middle = float(weights @ mean)
    of_prior = prior * (whole - prior) / (whole**2 * (whole + 1))
    noise = float(weights @ (mean - middle) ** 2) * (1 + whole / records) ** 2
    of_release = middle * (1 - middle) / records + noise
    return float(2 * _QUANTILE / math.sqrt(1 / of_prior + 1 / of_release))
