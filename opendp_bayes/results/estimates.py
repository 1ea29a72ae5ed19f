"""Means and intervals of a release, which tables, pictures and frames show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from opendp_bayes.display.sheet import labelled_frame
from opendp_bayes.display.wording import group_name
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
    "The noise-aware posterior of this release takes long: call release.posterior, then show the"
    " release again. Intervals that ignore the noise are left out, because they are too narrow."
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
    results = {
        **results_of(aware, release.counts, level),
        **{f"plug_in_{name}": of for name, of in (plug_in._asdict() if plug_in else {}).items()},
    }
    return labelled_frame(release.values_of_axes or {"category": release.categories}, results)


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
    groups: Sequence[str | None] = (None,),
) -> "pl.DataFrame":
    """The estimates of any result: `group`, which is null where there are none, `category`, whose
    null is everything else, `mean`, `std`, `lower`, `upper`, the `level` of the intervals and the
    released `count`.
    """
    import polars as pl

    names = [None if label is None else group_name(label) for label in labels]
    return pl.DataFrame(
        {
            "group": [group for group in groups for _ in names],
            "category": names * len(groups),
            **estimate._asdict(),
            "level": np.full(len(counts), float(level)),
            "count": counts,
        },
        schema_overrides={"group": pl.String, "category": pl.String, "count": pl.Int64},
    )


def grouped_frame(
    keys: Iterable[Key], labels: Mapping[str, Sequence[Label]], results: Mapping[str, Any]
) -> "pl.DataFrame":
    """Rows of labels and results, as many for each group, after a column of the groups."""
    import polars as pl

    known = pl.Series([None if key is None else group_name(key) for key in keys], dtype=pl.String)
    frame = labelled_frame({name: [*of] * len(known) for name, of in labels.items()}, results)
    name = "group"
    while name in frame.columns:
        name += "_"
    rows = np.repeat(np.arange(len(known)), frame.height // len(known))
    return frame.select(known[rows].alias(name), pl.all())


def estimate_of_groups(groups: Any, level: float) -> Estimate:
    """Estimate all groups of a `GroupedRelease`: many that know nothing of each other all at once,
    and otherwise from the posterior of each.
    """
    shape = len(groups), len(groups.categories)
    found, known = np.empty((4, *shape)), np.zeros(shape[0], dtype=np.bool_)
    if are_computed_together(groups):
        from opendp_bayes.inference.convolution.many_tables import shares_of_tables
        from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
        from opendp_bayes.inference.likelihood.of_counts import noise_of

        noise = noise_of("release", next(iter(groups.values()))).noise
        noisy = DrawnCounts.of(groups.drawn, noise)
        found, known = shares_of_tables(noisy, np.array(groups.prior), level)
    for at in np.flatnonzero(~known).tolist():
        found[:, at] = noise_aware_estimate(groups[groups.groups[at]], level)
    return Estimate(*found.reshape(4, -1))


def are_computed_together(groups: Any) -> bool:
    """True if there are many groups, with noise on counts, which know nothing of each other."""
    alone = len(groups) > _FEW and groups.whole is None
    return alone and bool(next(iter(groups.values())).setting.adds_noise)


def says_little(prior: Sequence[float], estimate: Estimate) -> NDArray[np.bool_]:
    """True, for each group, where no category is known much better than from a prior that was not
    learned alone: each standard deviation is above 0.9 of the prior's.
    """
    share = np.array(prior) / np.sum(prior)
    known = np.sqrt(share * (1 - share) / (np.sum(prior) + 1))
    return np.all(estimate.std.reshape(-1, share.size) > _LITTLE * known, axis=1)


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
