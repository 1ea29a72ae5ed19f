"""One posterior of tables at several levels, whose answers add up: of each level the counts and the
probabilities, as every posterior asks for them.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.inference.answers.ordered import Quantiles
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.whole_numbers import NumberPosterior
from opendp_bayes.inference.engines import Engine, Groups, IndependentDraws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_laws import CountLaws, grouped
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    RandomState,
    as_generator,
    as_level,
)
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import ByLabel, position_of
from opendp_bayes.surveys.levels.concentrations import with_learned_concentrations
from opendp_bayes.surveys.levels.tree import NestedTables
from opendp_bayes.surveys.levels.tree_counts import TreeCounts

#: Counts that are less probable are left out of laws.
_LEFT_OUT = 1e-13
#: Draws behind what merged categories and quantiles are, of few categories and of many.
_DRAWS, _FEWEST_DRAWS = 8000, 500
#: Numbers that are drawn at a time, and that are kept of all draws.
_AT_A_TIME, _KEPT = 1 << 22, 1 << 25
#: The variance of a probability is at least this, relative to its mean's square.
_SMALLEST = 1e-14


class LevelCounts(Engine):
    """The true counts of a level, and draws of its probabilities, which stand for counts and prior
    of other posteriors.

    Parameters
    ----------
    whole : TreeCounts
        The counts of all levels.
    parent : ndarray of int
        The count that each count is a part of; -1 of the root, the last.
    levels : Sequence[ndarray of int]
        Numbers of the counts of each level, the root's first, this level last.
    order : ndarray of int
        Of the categories among the counts of this level.
    """

    draws_shares = True

    def __init__(
        self, whole: TreeCounts, parent: Integers, levels: Sequence[Integers], order: Integers
    ) -> None:
        self._whole, self._parent, self._levels = whole, parent, list(levels)
        self._numbers = levels[-1][order]
        self._nodes, self.prior = whole.tree.node_of[self._numbers], np.zeros(order.size)

    @cached_property
    def counted(self) -> "LevelCounts":
        """These counts, which are drawn themselves."""
        counts = copy(self)
        counts.draws_shares = False
        return counts

    @cached_property
    def counts(self) -> CountLaws:
        """The laws of the true counts."""
        return self._law_of(self._nodes)

    @cached_property
    def records(self) -> CountLaws:
        """The law of the number of records."""
        return self._law_of(np.array([self._whole.tree.nodes - 1]))

    def _laws(self, nodes: Integers) -> tuple[Integers, Integers, Floats, NDArray[np.bool_]]:
        """The `laws` of some nodes without counts that are hardly probable, and which are left."""
        row, counts, masses = self._whole.laws(nodes)
        seen = masses > _LEFT_OUT
        return row[seen], counts[seen], masses[seen], seen

    def _law_of(self, nodes: Integers) -> CountLaws:
        row, counts, masses, _ = self._laws(nodes)
        return CountLaws.of_numbers(row, counts, masses / np.bincount(row, masses)[row])

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """Mixtures of Betas with the mean and variance that a probability has given its count."""
        row, counts, masses, seen = self._laws(self._nodes)
        first, second = (logs[seen] for logs in self._whole.shares_of(self._nodes))
        mean = np.exp(first)
        variance = mean**2 * np.maximum(np.expm1(second - 2 * first), _SMALLEST)
        a, b = BetaMixtures.parameters(mean, np.maximum(1 - mean, _SMALLEST), variance)
        return grouped(a, b, masses, counts.astype(np.float64), b, row)

    def sample(self, draws: int, rng: np.random.Generator) -> Any:
        """Draws of the probabilities, or of the counts alone, shape `(draws, k)`."""
        return self._drawn(draws, rng)[1 if self.draws_shares else 0]

    def _drawn(self, draws: int, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Draws of the counts and of the probabilities, which are the same for every level that is
        drawn with a generator in the same state.
        """
        step = max(_AT_A_TIME // self._whole.tree.nodes, 16)
        parts = []
        for begin in range(0, draws, step):
            generator = rng.spawn(1)[0]
            parts.append(self._block(min(step, draws - begin), generator))
        counts, shares = (np.concatenate(blocks, axis=1) for blocks in zip(*parts, strict=True))
        return counts.T, shares.T

    def _block(self, draws: int, rng: np.random.Generator) -> tuple[Integers, Floats]:
        tree, prior = self._whole.tree, self._whole.weights.prior
        counts = np.zeros((tree.nodes, draws), dtype=np.int64)
        shares = np.zeros((self._parent.size, draws))
        for_root, *for_levels = rng.spawn(len(self._levels))
        counts[-1] = self._whole.draw_root(draws, for_root)
        shares[-1] = 1.0
        for above, level, generator in zip(
            self._levels, self._levels[1:], for_levels, strict=False
        ):
            sums = np.isin(tree.family, above)
            for nodes in reversed(tree.rounds):
                if sums[nodes].any():
                    self._whole.split(nodes[sums[nodes]], counts, generator)
            concentration = prior[level, None] + counts[tree.node_of[level]]
            within = self._parent[level]
            shares[level] = shares[within] * _within(concentration, within, generator)
        return counts[self._nodes], shares[self._numbers]

    def merged(self, groups: Groups) -> Engine:
        return self.drawn.merged(groups)

    def given(self, categories: Sequence[int]) -> Engine:
        return self.drawn.given(categories)

    def sample_sums(self, groups: Groups, draws: int, rng: np.random.Generator) -> Floats:
        """Draws of the probabilities of groups, some of those that are kept."""
        return np.asarray(self.drawn.sample_sums(groups, draws, rng))

    @cached_property
    def drawn(self) -> "SharesDrawn":
        number = min(max(_KEPT // self._numbers.size, _FEWEST_DRAWS), _DRAWS)
        counts, shares = self._drawn(number, np.random.default_rng(0))
        return SharesDrawn(shares, counted=IndependentDraws(counts))


class SharesDrawn(IndependentDraws):
    """Independent draws of probabilities, which stand for counts; `counted` are the true counts of
    the same draws.
    """

    draws_shares = True


def _within(concentration: Floats, family: Integers, rng: np.random.Generator) -> Floats:
    """Dirichlet draws of the families, one beside the other; shape `(counts, size)`."""
    logs = np.log(rng.standard_gamma(concentration + 1))
    logs -= rng.standard_exponential(concentration.shape) / concentration
    families, row_of = np.unique(family, return_inverse=True)
    top = np.full((families.size, logs.shape[1]), -np.inf)
    np.maximum.at(top, row_of, logs)
    shares = np.exp(logs - top[row_of])
    total = np.zeros(top.shape)
    np.add.at(total, row_of, shares)
    return shares / total[row_of]


_INDENT = "\u2003"  # kept by HTML
_ADD_UP = "Posterior means of the true counts, which add up from level to level."

#: Among more categories than these, whose counts are on average smaller than so many standard
#: deviations of their noise, intervals of quantiles rest on the prior (`docs/levels.md`).
_FEW, _CLEAR = 4, 2.0


class LevelPosterior(NoiseAwarePosterior):
    """The posterior of the probabilities and the true counts of one level, given the releases of
    all levels: it answers what the posterior of one release does.

    Means, standard deviations, intervals and laws of counts are computed. What is said of merged
    categories, and of some among themselves, rests on draws. Draws with the same seed are those of
    the other levels: their rows add up.
    """

    def __init__(
        self,
        releases: Sequence[ReleasedData],
        engine: Engine,
        categories: tuple[Label, ...] | None = None,
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
        resolution: Callable[[], Floats] | None = None,
    ) -> None:
        super().__init__(releases, engine, categories, axes, unordered)
        #: Makes the `resolution` of the categories of a release; those made of others have none.
        self._resolution = resolution

    def quantiles(self, levels: Sequence[float], *, edges: ArrayLike | None = None) -> Quantiles:
        """Several quantiles at once, as of every posterior; warns of those that lie in groups whose
        categories have less than two standard deviations of their noise in records.
        """
        quantiles = super().quantiles(levels, edges=edges)
        if self._resolution is not None:
            clear = self._resolution()
            warn_of_blurred(
                {
                    level: float(clear[position_of(quantile.category, self.categories)])
                    for level, quantile in quantiles.items()
                }
            )
        return quantiles

    def __repr__(self) -> str:
        return f"LevelPosterior({{{self._estimates()}}})"


class LevelsPosterior(UnderflowIsZero, ByLabel[str, LevelPosterior]):
    """One posterior of the same records at several levels: a mapping from the name of each release
    to the `LevelPosterior` of its categories.

    Every level agrees with every other, in the means and in each draw. Made by `Survey.posterior`
    where questions are nested.

    Raises `TypeError` unless both are mappings by name.

    Source: `docs/levels.md`.

    Parameters
    ----------
    releases : Mapping[str, Release]
        Of the same records, of which each one's categories are sums of those of the finest.
    parts : Mapping[str, ndarray of int]
        By name, for each cell of the finest, the place of the category of the release that the cell
        is a part of, shape `(cells,)`.

    Attributes
    ----------
    names
        Of the levels, as the releases were named.
    concentrations
        By name, the concentration of the Dirichlet prior of each category among those that are
        parts of the same one, or of the same half of one, which was learned.
    """

    def __init__(self, releases: Mapping[str, ReleasedData], parts: Mapping[str, Integers]) -> None:
        if not isinstance(releases, Mapping) or not isinstance(parts, Mapping):
            raise TypeError(
                "releases, parts: must be mappings from the names of levels, as `Survey.posterior`"
                " gives them."
            )
        self._tables = tables = NestedTables.of(releases, parts)
        self.names = tuple(releases)
        self._whole, learned = with_learned_concentrations(
            tables.parent, tables.level, tables.looks, tables.size, tables.highest, tables.members
        )
        last = len(tables.levels) - 1
        self.concentrations = {
            release_name: float(learned[last - tables.places[release_name][0]])
            for release_name in self.names
        }
        levels = []
        for release_name, (level, order) in tables.places.items():
            counts = LevelCounts(self._whole, tables.parent, tables.levels[: level + 1], order)
            clear = partial(resolution, tables, self._whole, release_name)
            levels.append(
                (release_name, LevelPosterior([releases[release_name]], counts, resolution=clear))
            )
        super().__init__(levels, ("level", "levels"))

    @property
    def records(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        return self[self.names[0]].records

    @property
    def log_evidence(self) -> float:
        """`ln P(drawn)` with the learned concentrations."""
        return self._whole.log_evidence

    def rows(self) -> list[tuple[int, str, int]]:
        """List the categories of all levels as rows of one table, each before those that are parts
        of it: how many levels are above, the name of the level, and the place in its `categories`.
        """
        places, above = self._tables.places, self._tables.parent.tolist()
        # One of several looks.
        names = {places[level_name][0]: level_name for level_name in reversed(self.names)}
        path: dict[int, tuple[int, ...]] = {len(above) - 1: ()}  # of places, from the root down
        rows = []
        for depth, (at, level_name) in enumerate(sorted(names.items())):
            numbers = self._tables.levels[at][places[level_name][1]]
            for position, number in enumerate(numbers.tolist()):
                part_of = above[number]
                while part_of not in path:  # a half
                    part_of = above[part_of]
                path[number] = (*path[part_of], position)
                rows.append((path[number], (depth, level_name, position)))
        return [row for _, row in sorted(rows)]

    def sheet(self, level: float = 0.95) -> Sheet:
        """One table of all levels: below each category, indented, those that are parts of it, with
        the posterior mean and the interval of probability `level` of their true counts.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level = as_level(level)
        rows = self.rows()
        figures = {}
        for level_name in {level_name for _, level_name, _ in rows}:
            counts = self[level_name].counts
            figures[level_name] = list(
                zip(counts.mean(), counts.std(), *counts.interval(level), strict=True)
            )
        shown = []
        for depth, level_name, position in rows:
            mean, std, lower, upper = figures[level_name][position]
            label = f"{_INDENT * depth}{self[level_name].categories[position]}"
            shown.append((label, figure(mean, std), f"{lower} – {upper}"))
        kinds = ", ".join(dict.fromkeys(level_name for _, level_name, _ in sorted(rows)))
        headings = kinds, "Records", f"{100 * level:.6g} % interval"
        return Sheet((Table(headings, shown),), (_ADD_UP,))

    def _repr_html_(self) -> str:
        return self.sheet()._repr_html_()

    def __str__(self) -> str:
        return str(self.sheet().first(50))

    def sample(self, size: int = 1, random_state: RandomState = None) -> dict[str, Floats]:
        """Draws of the probabilities of every level, by name, shapes `(size, k)`, whose rows add
        up; repeatable with a seed as `random_state`.
        """
        if not isinstance(random_state, int):
            random_state = int(as_generator(random_state).integers(2**32))
        return {
            level_name: posterior.sample(size, random_state)
            for level_name, posterior in self.items()
        }

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{level_name}: {len(posterior.categories)}" for level_name, posterior in self.items()
        )
        return f"LevelsPosterior({levels} categories)"


def resolution(tables: NestedTables, whole: TreeCounts, name: str) -> Floats:
    """The expected number of records in each category of a level, on average over those that are
    parts of the same one, in standard deviations of their noise; infinite where these are few.

    Shape `(categories,)`.
    """
    depth, order = tables.places[name]
    nodes = tables.levels[depth][order]
    is_released = np.zeros(tables.parent.size, dtype=bool)
    is_released[-1] = True  # the root
    for level, _ in tables.places.values():
        is_released[tables.levels[level]] = True
    above = tables.parent[nodes]
    while not is_released[above].all():  # beyond halves
        above = np.where(is_released[above], above, tables.parent[above])
    row, counts, masses = whole.laws(whole.tree.node_of[nodes])
    mean = np.bincount(row, masses * counts, nodes.size)
    _, family, number = np.unique(above, return_inverse=True, return_counts=True)
    looks = [look.noisy.noise for look in tables.looks if np.isin(nodes, look.counts).all()]
    precision = sum(typical_std(noise) ** -2 for noise in looks)
    deviations = (np.bincount(family, mean) / number)[family] * np.sqrt(precision)
    return np.asarray(np.where(number[family] > _FEW, deviations, np.inf))


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
            " categories (docs: Levels, Ordered categories)."
        )
