"""Means and intervals of a release, which tables, pictures and frames show."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.display.sheet import labelled_frame
from opendp_bayes.mathematics.validation import Floats, as_level
from opendp_bayes.release_format.data import Key, Label, ReleasedData

if TYPE_CHECKING:
    import polars as pl

#: A posterior says little where its standard deviations are above this share of the prior's.
_LITTLE = 0.9
#: More groups than these, which know nothing of each other, are computed together.
_FEW = 20
#: In place of estimates that a display which comes by itself does not wait for.
TAKES_LONG = (
    "The noise-aware posterior of this release takes long, and is not waited for here: print its"
    " sheet. Intervals that ignore the noise are left out, because they are too narrow."
)


class Estimate(NamedTuple):
    """Mean, standard deviation and ends of the equal-tailed interval of the probability of every
    category, arrays of shape `(k,)`; or of all groups, one after the other.
    """

    mean: Floats
    std: Floats
    lower: Floats
    upper: Floats


def plug_in_estimate(release: ReleasedData, level: float = 0.95) -> Estimate:
    """Estimate from the plug-in posterior with concentration `a`, whose marginals are
    `Beta(a_i, sum(a) - a_i)`.

    Raises
    ------
    ValueError
        Unless `0 < level < 1`.
    """
    from scipy import stats

    a = release.concentration
    return estimate_of(stats.beta(a, a.sum() - a), as_level(level))


def estimate_of(posterior: Any, level: float) -> Estimate:
    """Estimate from what has means, deviations and intervals, these of probability `level`."""
    return Estimate(posterior.mean(), posterior.std(), *posterior.interval(level))


def results_of(
    aware: Estimate | None, counts: Sequence[int], level: float
) -> "dict[str, pl.Series | Floats]":
    """Columns of estimates, if there are any, of the `level` of the intervals, and of counts."""
    import polars as pl

    return {
        **(aware._asdict() if aware else {}),
        "level": pl.Series([level] * len(counts), dtype=pl.Float64),
        "count": pl.Series(list(counts), dtype=pl.Int64),
    }


def estimates_frame(
    estimate: Estimate,
    labels: Sequence[Label | None],
    counts: Sequence[int],
    level: float,
    groups: Iterable[Key] = (None,),
) -> "pl.DataFrame":
    """The estimates of any result: `group`, which is null where there are none, `category`, whose
    null is everything else, `mean`, `std`, `lower`, `upper`, the `level` of the intervals and the
    released `count`.
    """
    rows = list(product(groups, labels))
    named: dict[str, Any] = {"group": [key for key, _ in rows]}
    named["category"] = [label for _, label in rows]
    return labelled_frame(named, results_of(estimate, counts, level))


def estimate_of_groups(groups: Any, level: float) -> Estimate:
    """Estimate all groups of a `GroupedRelease`: many that know nothing of each other all at once,
    and otherwise from the posterior of each.
    """
    shape = len(groups), len(groups.categories)
    estimates, is_computed = np.empty((4, *shape)), np.zeros(shape[0], dtype=np.bool_)
    if are_computed_together(groups):
        from opendp_bayes.inference.convolution.many_tables import shares_of_tables
        from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
        from opendp_bayes.inference.likelihood.of_counts import noise_of

        noise = noise_of("release", next(iter(groups.values()))).noise
        noisy = DrawnCounts.of(groups.noisy_counts, noise)
        estimates, is_computed = shares_of_tables(noisy, np.array(groups.prior), level)
    for group in np.flatnonzero(~is_computed).tolist():
        estimates[:, group] = estimate_of(groups[groups.groups[group]].posterior, level)
    return Estimate(*estimates.reshape(4, -1))


def are_computed_together(groups: Any) -> bool:
    """True if there are many groups, with noise on counts, which know nothing of each other."""
    alone = len(groups) > _FEW and groups.whole is None
    return alone and bool(next(iter(groups.values())).setting.adds_noise)


def says_little(prior: Sequence[float], estimate: Estimate) -> NDArray[np.bool_]:
    """True, for each group, where no category is known much better than from a prior that was not
    learned alone: each standard deviation is above 0.9 of the prior's.
    """
    share = np.array(prior) / np.sum(prior)
    std_of_prior = np.sqrt(share * (1 - share) / (np.sum(prior) + 1))
    return np.all(estimate.std.reshape(-1, share.size) > _LITTLE * std_of_prior, axis=1)


def estimate_or_reason(result: Any, level: float, *, wait: bool) -> Estimate | str:
    """The noise-aware estimate, or a sentence that says why there is none.

    Without `wait` there is none that takes seconds, unless its posterior was computed before, but
    `TAKES_LONG`: a display that comes by itself, as that of a notebook does, must not take them.
    """
    try:
        return result._estimate(level) if wait or result._is_quick() else TAKES_LONG
    except ValueError as error:
        return f"There is no noise-aware posterior of this release: {error}"
