"""Counts and probabilities of one level of a tree, as every posterior asks for them."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.engines.engine import ByDraws, Groups, IndependentDraws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.mixtures_of_counts import grouped
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree_counts import TreeCounts

#: Counts that are less probable are left out of laws.
_LEFT_OUT = 1e-13
#: Draws behind what merged categories and quantiles are, of few categories and of many.
_DRAWS, _FEWEST_DRAWS = 8000, 500
#: Numbers that are drawn at a time, and that are kept of all draws.
_AT_A_TIME, _KEPT = 1 << 22, 1 << 25
#: The variance of a probability is at least this, relative to its mean's square.
_SMALLEST = 1e-14


class LevelCounts(ByDraws):
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
