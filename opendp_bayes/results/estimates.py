"""Means and intervals of a release, which tables, pictures and frames show."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from opendp_bayes.display.sheet import labelled_frame
from opendp_bayes.display.wording import group_name
from opendp_bayes.mathematics.validation import Floats, as_level
from opendp_bayes.release_format.data import Key, Label, ReleasedData

if TYPE_CHECKING:
    import polars as pl

#: A posterior says little where its standard deviations are above this share of the prior's.
_LITTLE = 0.9
#: In place of estimates that a display which comes by itself does not wait for.
TAKES_LONG = (
    "The noise-aware posterior of this release takes long: call release.posterior, then show the"
    " release again. Intervals that ignore the noise are left out, because they are too narrow."
)


class Estimate(NamedTuple):
    """Mean, standard deviation and ends of the equal-tailed interval of the probability of every
    category, arrays of shape `(k,)`.
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
    own, whole, tail = release.concentration, release.concentration.sum(), (1 - as_level(level)) / 2
    rest, mean = whole - own, own / whole
    std = np.sqrt(mean * (rest / whole) / (whole + 1))
    lower, upper = (special.betaincinv(own, rest, part) for part in (tail, 1 - tail))
    return Estimate(mean, std, lower, upper)


def noise_aware_estimate(release: Any, level: float = 0.95) -> Estimate:
    """Estimate from `release.posterior`, which is computed if it was not.

    Raises
    ------
    ValueError
        Unless `0 < level < 1`, or where the posterior is refused.
    """
    level = as_level(level)  # before the posterior is computed
    return estimate_of(release.posterior, level)


def estimate_of(posterior: Any, level: float) -> Estimate:
    """Estimate from what has means, deviations and intervals, these of probability `level`."""
    return Estimate(posterior.mean(), posterior.std(), *posterior.interval(level))


def frame_of(
    release: ReleasedData, aware: Estimate | None, plug_in: Estimate | None, level: float
) -> "pl.DataFrame":
    """A row for each category: its labels, the noise-aware estimates, the probability of the
    intervals, the released count, and the estimates that ignore the noise.
    """
    import polars as pl

    results = {
        **(aware._asdict() if aware else {}),
        "level": pl.Series([level] * release.k, dtype=pl.Float64),
        "count": pl.Series(list(release.counts), dtype=pl.Int64),
        **{f"plug_in_{name}": of for name, of in (plug_in._asdict() if plug_in else {}).items()},
    }
    return labelled_frame(release.values_of_axes or {"category": release.categories}, results)


def estimates_frame(
    estimate: Estimate, labels: Sequence[Label | None], counts: Sequence[int], level: float
) -> "pl.DataFrame":
    """The estimates of any result: `group`, which is null, `category`, whose null is everything
    else, `mean`, `std`, `lower`, `upper`, the `level` of the intervals and the released `count`.
    """
    import polars as pl

    names = [None if label is None else group_name(label) for label in labels]
    return pl.DataFrame(
        {
            "group": [None] * len(names),
            "category": names,
            **estimate._asdict(),
            "level": np.full(len(names), float(level)),
            "count": counts,
        },
        schema_overrides={"group": pl.String, "category": pl.String, "count": pl.Int64},
    )


def grouped_frame(frames: Mapping[Key, "pl.DataFrame"]) -> "pl.DataFrame":
    """The frames of groups below each other, after a column of the groups."""
    import polars as pl

    name, parts = "group", []
    for group, frame in frames.items():
        while name in frame.columns:
            name += "_"
        shown = pl.lit(None if group is None else group_name(group), dtype=pl.String)
        parts.append(frame.select(shown.alias(name), pl.all()))
    return pl.concat(parts)


def says_little(release: ReleasedData, estimate: Estimate) -> bool:
    """True where no category is known much better than from the prior alone, unless it was learned:
    each standard deviation is above 0.9 of the prior's.
    """
    if release.learned_prior:
        return False
    prior = np.array(release.prior)
    mean = prior / prior.sum()
    known = np.sqrt(mean * (1 - mean) / (prior.sum() + 1))
    return bool(np.all(estimate.std > _LITTLE * known))


def estimate_or_reason(release: Any, level: float = 0.95, *, wait: bool) -> Estimate | str:
    """The noise-aware estimate, or a sentence that says why there is none.

    Without `wait` there is none that takes seconds (`is_quick`), unless `release.posterior` was
    computed before, but `TAKES_LONG`: a display that comes by itself, as that of a notebook does,
    must not take them.

    Raises
    ------
    ValueError
        Unless `0 < level < 1`.
    """
    from opendp_bayes.inference.ways import is_quick

    level = as_level(level)
    try:
        if not (wait or release.has_posterior or is_quick(release)):
            return TAKES_LONG
        return noise_aware_estimate(release, level)
    except ValueError as error:
        return f"There is no noise-aware posterior of this release: {error}"
