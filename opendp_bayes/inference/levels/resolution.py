"""Says where quantiles lie among categories whose noise is as large as their counts."""

from collections.abc import Mapping

import numpy as np

from opendp_bayes.inference.levels.nested_tables import NestedTables
from opendp_bayes.inference.levels.tree_counts import TreeCounts
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Among more categories than these, whose counts are on average smaller than so many standard
#: deviations of their noise, intervals of quantiles rest on the prior (`docs/levels.md`).
_FEW, _CLEAR = 4, 2.0


def resolution(tables: NestedTables, whole: TreeCounts, name: str) -> Floats:
    """The expected number of records in each category of a level, on average over those that are
    parts of the same one, in standard deviations of their noise; infinite where these are few.

    Shape `(categories,)`.
    """
    at, order = tables.places[name]
    own = tables.levels[at][order]
    asked = np.zeros(tables.parent.size, dtype=bool)
    asked[-1] = True  # the root
    for level, _ in tables.places.values():
        asked[tables.levels[level]] = True
    above = tables.parent[own]
    while not asked[above].all():  # beyond halves
        above = np.where(asked[above], above, tables.parent[above])
    row, counts, masses = whole.laws(whole.tree.place[own])
    mean = np.bincount(row, masses * counts, own.size)
    _, family, number = np.unique(above, return_inverse=True, return_counts=True)
    looks = [look.noisy.noise for look in tables.looks if np.isin(own, look.counts).all()]
    precision = sum(typical_std(noise) ** -2 for noise in looks)
    found = (np.bincount(family, mean) / number)[family] * np.sqrt(precision)
    return np.asarray(np.where(number[family] > _FEW, found, np.inf))


def warn_of_blurred(quantiles: Mapping[float, float]) -> None:
    """Warn of quantiles, by level, in categories whose `resolution` is too small."""
    blurred = {level: clear for level, clear in quantiles.items() if clear < _CLEAR}
    if blurred:
        levels = ", ".join(f"{level:g}" for level in blurred)
        warn(
            f"quantiles: of the levels {levels} lie in groups whose categories have"
            f" {min(blurred.values()):.3g} standard deviations of their noise in records, less than"
            f" {_CLEAR:g}. Within such a group the intervals rest on what other groups look like,"
            " and may hold the truth less often than they say: ask with a larger budget or fewer"
            " categories (docs: Levels, Ordered categories).",
        )
