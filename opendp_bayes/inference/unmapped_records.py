"""Says of a release that nearly all records are none of the categories, as where these are
misspelt: from what was drawn alone, so that it costs nothing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.display.wording import group_name, listed
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms.integer_noise import typical_mean, typical_std
from opendp_bayes.release_format.data import Key, ReleasedData
from opendp_bayes.release_format.labels import are_same, distinct
from opendp_bayes.release_format.merging import merged_in

#: It is said where more than this share of the records is unmatched, at counts that are as far from
#: what was drawn as they are with this probability.
SHARE, CERTAINTY = 0.9, 0.95
#: The standard normal quantile of `CERTAINTY`.
_SURE = float(special.ndtri(CERTAINTY))
#: The same of two counts that are both on the safe side.
_BOTH = float(special.ndtri((1 + CERTAINTY) / 2))
#: The most categories that are named.
_MOST_NAMED = 5
_LOOK = "check the spelling, capitals and spaces of the categories"


def unmatched_in(release: ReleasedData) -> Iterator[str]:
    """Yield a sentence for every column of a release whose label `unknown` has nearly all records,
    and one where noise alone may have made all counts.

    It is said where the share of these records is surely above 0.9, given what was drawn
    (`docs/reading.md`); of mechanisms that add noise to counts.
    """
    size = release.size if release.whole is None else release.group_size
    yield from _of_columns([release], _noise_in(release), range(release.k), size)


def unmatched_in_groups(releases: Mapping[Key, ReleasedData], by: Iterable[str]) -> Iterator[str]:
    """Yield these sentences of all groups of a grouped release together, which the columns `by`
    make. One more is for a public number of records of which nearly all are in no group, and one
    names groups whose counts may be noise alone, where most groups have more.
    """
    tables, names = list(releases.values()), list(by)
    columns, whole = listed(names, "and") if names else "the groups", tables[0].whole
    if whole is None:
        noisy_counts = np.concatenate([table.noisy_counts for table in tables])
        noisy, size = _noise_in(tables[0], noisy_counts), None
    else:
        noisy, size = _noise_in(whole), whole.size
    cells = range(sum(table.k for table in tables))
    if noisy is not None and whole is not None:
        share = share_of(noisy, np.array([whole.k - 1]), np.arange(whole.k), size)
        if share is not None:
            yield f"{_about(share)} are in no group: {_LOOK} of {columns}."
    yield from _of_columns(tables, noisy, cells, None)
    if noisy is not None:
        ends = np.cumsum([0, *(table.k for table in tables)])
        sums = [
            _sum_of(noisy, np.arange(*ends_of_group)) for ends_of_group in pairwise(ends.tolist())
        ]
        empty = [
            group
            for group, (total, width) in zip(releases, sums, strict=True)
            if total < _SURE * width < math.inf
        ]
        if empty and 2 * len(empty) <= len(tables):
            yield (
                f"The counts of {_named(list(map(group_name, empty)))} may be noise alone: if you"
                f" expect more records there, {_LOOK} of {columns}."
            )


def share_of(
    noisy: DrawnCounts, cells: Integers, among: Integers, size: int | None
) -> float | None:
    """The share of some cells in the records of those `among` which they are, whose number `size`
    is public or not; None unless it is surely above `SHARE`.

    That is where the least number in these cells has such a share beside the largest in the others,
    both together with probability `CERTAINTY`, the noise of a sum being taken for normal.
    """
    others = np.setdiff1d(among, cells)
    (first, deviation), (second, deviation_of_others) = (
        _sum_of(noisy, positions) for positions in (cells, others)
    )
    if size is not None:  # either sum tells both
        if deviation_of_others < deviation:
            first, deviation = size - second, deviation_of_others
        first, deviation_of_others = min(max(first, 0.0), float(size)), deviation
        second = size - first
    least, most = first - _BOTH * deviation, max(second, 0.0) + _BOTH * deviation_of_others
    if math.isinf(most) or least * (1 - SHARE) <= most * SHARE:
        return None
    return first / (first + max(second, 0.0))


def _of_columns(
    tables: list[Any], noisy: DrawnCounts | None, cells: range, size: int | None
) -> Iterator[str]:
    """Yield the sentences of the columns of releases whose cells follow each other."""
    release = tables[0]
    labels = [labels_of_cell for table in tables for labels_of_cell in merged_in(table)]
    for axis, (column, unknown) in enumerate(zip(release.columns, release.unknown, strict=False)):
        if unknown is None:
            continue
        values = [
            [label[axis] if isinstance(label, tuple) else label for label in values_of_cell]
            for values_of_cell in labels
        ]
        alone = [
            all(are_same(value, unknown) for value in values_of_cell) for values_of_cell in values
        ]
        all_values = distinct(value for values_of_cell in values for value in values_of_cell)
        others = [value for value in all_values if not are_same(value, unknown)]
        share = share_of(noisy, np.flatnonzero(alone), np.array(cells), size) if noisy else None
        if share is not None:
            yield f"{_about(share)} of {column} are none of {_named(others)}: {_LOOK}."
    own_total = release.whole is None and size is None
    if noisy is not None and own_total and all(label is None for label in release.unknown):
        total, width = _sum_of(noisy, np.array(cells))
        if total < _SURE * width and release.columns:
            columns = listed(list(release.columns), "and")
            yield (
                f"All counts together are {max(total, 0.0):.0f}, which may be noise alone: if you"
                f" expect more records, {_LOOK} of {columns}."
            )


def _noise_in(release: ReleasedData, noisy_counts: Any = None) -> DrawnCounts | None:
    """The counts drawn for a release, or `noisy_counts`, with the noise; None where it is not noise
    on counts.
    """
    table = release.whole or release
    if not table.setting.adds_noise:
        return None
    noisy = noise_of("release", table)
    if noisy_counts is not None:
        return DrawnCounts.of(noisy_counts, noisy.noise)
    return noisy if release.whole is None else noisy.chosen(list(release.inside))


def _sum_of(noisy: DrawnCounts, cells: Integers) -> tuple[float, float]:
    """The sum of what was drawn of some counts, and the standard deviation of its noise, infinite
    where one of them was not drawn.
    """
    total = noisy.drawn[cells].sum(dtype=np.float64) - cells.size * typical_mean(noisy.noise)
    is_drawn = noisy.noised[cells].all()
    width = typical_std(noisy.noise) * math.sqrt(cells.size) if is_drawn else math.inf
    return float(total), max(width, 1e-9)


def _named(values: list[Any]) -> str:
    """Some values by name, and how many others there are."""
    shown = list(map(str, values[:_MOST_NAMED]))
    left = len(values) - len(shown)
    return listed([*shown, f"{left} more"], "and") if left else ", ".join(shown)


def _about(share: float) -> str:
    number = round(100 * share)
    return f"About {number} % of the records" if number < 100 else "Nearly all records"
