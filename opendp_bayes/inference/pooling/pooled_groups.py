"""The groups that are pooled: those of a grouped release, or the values of some variables of a
joint table.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.inference.pooling.pooled_draws import BYTES_OF_DRAWS, Target, draws_of
from opendp_bayes.inference.pooling.private_sizes import PrivateSizes
from opendp_bayes.inference.pooling.public_sizes import PublicSizes
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import MOST_BYTES, Floats, Integers, as_names
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import SimplexNoise
from opendp_bayes.release_format.data import Key, Label, ReleasedData
from opendp_bayes.release_format.labels import numbered


@dataclass(frozen=True, eq=False)
class PooledGroups:
    """Counts by group and category, and what is public of their sums.

    Attributes
    ----------
    noisy : DrawnCounts
        The counts as they were drawn, shape `(G, k)`.
    sizes : tuple[int, ...] or None
        The public numbers of records of the groups, or None.
    mean_size : float
        Of the groups before, where only the number of all records is public; otherwise infinite.
    unordered : tuple[str or int or bool or tuple, ...]
        The categories that are in no order.
    """

    keys: tuple[Key, ...]
    categories: tuple[Label, ...]
    noisy: DrawnCounts
    sizes: tuple[int, ...] | None = None
    mean_size: float = math.inf
    unordered: tuple[Label, ...] = ()

    def draws(
        self, m_prior: Floats, kappa_prior: Any, effective: int, rng: np.random.Generator
    ) -> tuple[Floats, Integers, float]:
        """Draw κ m and the counts, `(draws, k)` and `(draws, G, k)`, and the number of effective
        draws: so many, where that can be had.
        """
        noisy, counts = self.noisy, np.maximum(self.noisy.drawn, 0)
        most = MOST_BYTES // (counts.size * BYTES_OF_DRAWS)
        if effective > most:
            raise ValueError(
                f"ess={effective}: so many draws of {counts.size} counts need about"
                f" {effective * MOST_BYTES / most / 1e9:.3g} GB; must be at most {most}, for"
                f" {MOST_BYTES / 1e9:g} GB."
            )
        evidence = (
            PrivateSizes(noisy, self.mean_size)
            if self.sizes is None
            else PublicSizes(noisy, np.array([*map(nearest_counts, counts, self.sizes)]))
        )
        shares = m_prior / m_prior.sum() + counts.sum(axis=0)
        target = Target(evidence, kappa_prior, m_prior)
        return draws_of(target, shares / shares.sum(), effective, rng, counts.size)


def groups_of_release(releases: Mapping[Key, ReleasedData]) -> PooledGroups:
    """Groups for `GroupedRelease.pooled`, which stand alone or are parts of one table."""
    groups, mean_size = list(releases.values()), math.inf
    first = groups[0]
    sizes = None if first.group_size is None else tuple(group.group_size or 0 for group in groups)
    if first.whole is None:
        counts = np.array([group.noisy_counts for group in groups])
        noisy = DrawnCounts.of(counts, noise_of("pooled", first).noise)
    else:
        table = noise_of("pooled", first.whole) if sizes else _without_sum(first.whole)
        noisy = table.chosen(np.arange(table.drawn.size - 1).reshape(len(groups), -1))
        mean_size = _mean_size(first.whole.size, len(groups) + 1)
    return PooledGroups(tuple(releases), first.categories, noisy, sizes, mean_size, first.unordered)


def groups_of_table(release: ReleasedData, by: str | Sequence[str]) -> PooledGroups:
    """Groups for `Release.pooled`: the values of the variables `by`, with those of the others as
    categories.
    """
    names = as_names(by, "by")
    keys, categories, places = cells_by(release, names)
    noisy = _without_sum(release).chosen(places)
    if not noisy.is_complete:
        raise ValueError(
            f"pooled: was made by {release.mechanism}, which leaves one count without noise; needs"
            " noise on every count of a table, as KNormParameters, GaussianParameters and"
            " LaplaceParameters(scale, total='bounded') draw. Or take the posterior with"
            " prior='learned'."
        )
    others = [axis for axis, variable in enumerate(release.axes) if variable not in names]
    unordered = release.unordered_values(others[0]) if len(others) == 1 else ()
    mean_size = _mean_size(release.size, len(keys))
    return PooledGroups(keys, categories, noisy, mean_size=mean_size, unordered=unordered)


def _mean_size(size: int | None, groups: int) -> float:
    """The mean number of records of groups where that of all is public; otherwise infinite."""
    return math.inf if size is None else max(size, 1) / groups


def _without_sum(release: ReleasedData) -> DrawnCounts:
    """Take noise of sum 0, on the simplex, for independent noise under which the differences of two
    counts vary as much.
    """
    noisy, law = noise_of("pooled", release), release.setting.law
    if not isinstance(law, SimplexNoise):
        return noisy
    k = noisy.drawn.size
    return DrawnCounts.of(
        noisy.drawn, DiscreteLaplace(law.scale * math.sqrt((4 * k - 2) / (k + 1)))
    )


def cells_by(
    release: ReleasedData, by: Sequence[str], argument: str = "by"
) -> tuple[tuple[Key, ...], tuple[Label, ...], Integers]:
    """The groups that some variables of a joint table make, the labels of the others, and the place
    of the cell of each group and label, shape `(G, k)`.

    Raises
    ------
    ValueError, TypeError
        For other names, and for a table that is not of every combination.
    """
    if release.whole is not None:
        raise ValueError(
            f"{argument}={told(by)}: this release is one group of a table of groups; take the"
            " release of all, with the posterior of each group."
        )
    others = [variable for variable in release.axes if variable not in by]
    if not by or not others or len(by) + len(others) != len(release.axes):
        shown = ", ".join(map(repr, release.axes)) or "none, because it is not of a joint table"
        raise ValueError(
            f"{argument}={told(by)}: must name some variables of a joint table, each once, but"
            f" not all of them; those of this release are {shown}."
        )
    keys, rows = _values(release, by)
    categories, columns = _values(release, others)
    shape = len(keys), len(categories)
    if len(release.categories) != len(keys) * len(categories) or min(shape) < 2:
        raise ValueError(
            f"{argument}={told(by)}: needs a table with a cell for every combination of values, of"
            f" at least two groups and two categories; there are {len(release.categories)} cells"
            f" for {len(keys)} groups and {len(categories)} categories."
        )
    places = np.empty(shape, dtype=np.int64)
    places[rows, columns] = np.arange(len(release.categories))
    return keys, cast(tuple[Label, ...], categories), places


def _values(release: ReleasedData, names: Sequence[str]) -> tuple[tuple[Any, ...], Integers]:
    """The values of some variables, tuples where they are several, and which one every cell has."""
    columns = [release.values_of_axes[variable] for variable in names]
    rows = np.column_stack([numbered(values) for values in columns])
    _, first, places = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    cells = list(zip(*columns, strict=True))
    distinct = [cells[i] if len(names) > 1 else cells[i][0] for i in first]
    return tuple(distinct), places.reshape(-1)
