"""Says of a release that nearly all records are none of the categories, as where these are
misspelt: from what was drawn alone, so that it costs nothing.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from scipy import special

from opendp_bayes.display.wording import listed
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms.integer_noise import typical_mean, typical_std
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import are_same, distinct
from opendp_bayes.release_format.merging import merged_in

#: It is said where more than this share of the records is unmatched, at counts that are as far from
#: what was drawn as they are with this probability.
SHARE, CERTAINTY = 0.9, 0.95
#: The standard normal quantile of two counts that are both on the safe side.
_BOTH = float(special.ndtri((1 + CERTAINTY) / 2))
#: The most categories that are named.
_MOST_NAMED = 5
_LOOK = "check the spelling, capitals and spaces of the categories"


def unmatched_in(tables: Sequence[ReleasedData], by: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a sentence for every column of a release, or of all groups that the columns `by` make,
    whose label `unknown` has nearly all records; one where nearly all are in no group; and one
    where noise alone may have made all counts.

    It is said where the share of these records is surely above 0.9, given what was drawn
    (`docs/reading.md`); of mechanisms that add noise to counts.
    """
    release = tables[0]
    whole = release.whole or release
    if not whole.setting.adds_noise:
        return
    every, size = noise_of("release", whole), whole.size
    if release.whole is not None:
        noisy = every.chosen([place for table in tables for place in table.inside])
        share = None if by is None else share_of(every, np.array([whole.k - 1]), size)
        size = release.group_size if by is None else None
        if share is not None:
            columns = listed(list(by), "and") if by else "the groups"
            yield f"{_about(share)} are in no group: {_LOOK} of {columns}."
    else:
        noisy = DrawnCounts.of(
            np.concatenate([table.noisy_counts for table in tables]),
            every.noise,
            np.tile(every.noised, len(tables)),
        )
    labels = list(chain.from_iterable(map(merged_in, tables)))
    for axis, (column, unknown) in enumerate(zip(release.columns, release.unknown, strict=False)):
        values = [
            [label[axis] if isinstance(label, tuple) else label for label in labels_of_cell]
            for labels_of_cell in labels
        ]
        alone = [all(are_same(value, unknown) for value in of_cell) for of_cell in values]
        share = share_of(noisy, np.flatnonzero(alone), size)
        if share is not None and unknown is not None:
            others = [value for value in distinct(chain(*values)) if not are_same(value, unknown)]
            yield (
                f"{_about(share)} of {column} are none of"
                f" {shortly(others[:_MOST_NAMED], len(others))}: {_LOOK}."
            )
    total, width = _sum_of(noisy, np.arange(len(labels)))
    is_private = whole.size is None and all(label is None for label in release.unknown)
    if is_private and release.columns and total < _BOTH * width:
        yield (
            f"All counts together are {max(total, 0.0):.0f}, which may be noise alone: if you"
            f" expect more records, {_LOOK} of {listed(list(release.columns), 'and')}."
        )


def share_of(noisy: DrawnCounts, cells: Integers, size: int | None) -> float | None:
    """The share of some cells in all records, whose number `size` is public or not; None unless it
    is surely above `SHARE`.

    That is where the least number in these cells has such a share beside the largest in the others,
    both together with probability `CERTAINTY`, the noise of a sum being taken for normal.
    """
    others = np.setdiff1d(np.arange(noisy.drawn.size), cells)
    (first, width), (second, width_of_others) = _sum_of(noisy, cells), _sum_of(noisy, others)
    least, most = first - _BOTH * width, max(second, 0.0) + _BOTH * width_of_others
    if size is not None:  # either sum tells both
        least = max(least, size - most)
        most = size - least
    return first / (first + max(second, 0.0)) if least * (1 - SHARE) > most * SHARE else None


def _sum_of(noisy: DrawnCounts, cells: Integers) -> tuple[float, float]:
    """The sum of what was drawn of some counts, and the standard deviation of its noise: that of
    all counts where one of them has none, as it takes what the others leave.
    """
    total = noisy.drawn[cells].sum(dtype=np.float64) - cells.size * typical_mean(noisy.noise)
    number = cells.size if noisy.noised[cells].all() else noisy.drawn.size
    return float(total), typical_std(noisy.noise) * math.sqrt(number)


def _about(share: float) -> str:
    return "Nearly all records" if share > 0.995 else f"About {100 * share:.0f} % of the records"
