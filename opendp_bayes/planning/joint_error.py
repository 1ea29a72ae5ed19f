"""Errors of tables of the same records that are estimated together, from public numbers alone.

A table's shares are the sum of independent parts, one for each set W of its variables: what the
margin on W says beyond the margins on fewer variables, in `prod_{v in W} (k_v - 1)` dimensions.
Every table that holds W measures that part. Independent noise on its cells has equal variance in
every dimension, so the best estimate weighs the tables by precision. The number of records is no
part of a share. This is least squares, where no count is known to be at least 0: an approximation
for counts that are large beside the noise.

Questions whose categories are sums of those of one of them are levels of a tree (`tree_errors`).

Source: Xiao, He, Zhang and Kifer, "An optimal and scalable matrix mechanism for noisy marginals
under convex loss functions" (2023), for the parts of a table.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.mechanisms.laws import AdditiveNoise, SimplexNoise
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.tree_errors import CountTree

Part = frozenset[str]


class Together(ABC):
    """Questions about the same records that are estimated together."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the questions, in the order of all arrays."""

    @abstractmethod
    def ratios(self, variances: Floats) -> Floats:
        """Standard deviations of the errors of the questions' shares when all are estimated
        together, as parts of those of each alone, from the `variances` of the noise; both
        `(questions,)`.
        """

    def others_without(self, variances: Floats) -> Floats:
        """Factors by which the errors of the other questions would grow, on average, without each
        of them, shape `(questions,)`; 1 for one that tells nothing about others.
        """
        every, places = self.ratios(variances), np.arange(variances.size)
        found = np.ones(variances.size)
        for place in places if variances.size > 1 else []:
            # Noise without end says nothing; of itself what comes out has no meaning.
            with np.errstate(divide="ignore", invalid="ignore"):
                left = self.ratios(np.where(places == place, np.inf, variances))
            found[place] = np.mean(np.delete(left / every, place))
        return found


@dataclass(frozen=True)
class Blocks(Together):
    """Questions of which those of one block tell nothing about those of another."""

    blocks: tuple[Together, ...]

    @property
    def names(self) -> list[str]:
        """The names of the questions, block by block."""
        return [name for block in self.blocks for name in block.names]

    def ratios(self, variances: Floats) -> Floats:
        """Those of each block, as in `Together`."""
        ends = np.cumsum([len(block.names) for block in self.blocks])
        parts = np.split(variances, ends[:-1])
        found = [block.ratios(part) for block, part in zip(self.blocks, parts, strict=True)]
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class JointLevels(Together):
    """Questions whose categories are sums of those of one of them, any two nested.

    `parts`: by name, the category that each of the finest cells is a part of, shape `(cells,)`.
    """

    parts: Mapping[str, Integers]

    @property
    def names(self) -> list[str]:
        """The names of the questions."""
        return list(self.parts)

    def ratios(self, variances: Floats) -> Floats:
        """As in `Together`; several questions of one level weigh by precision."""
        sizes = np.array([int(part.max()) + 1 for part in self.parts.values()])
        parts = list(self.parts.values())
        _, first, level = np.unique(-sizes, return_index=True, return_inverse=True)
        precision = np.bincount(level, 1 / variances)
        together = CountTree.of([parts[at] for at in first]).errors(1 / precision)
        sums = np.array([float(errors.sum()) for errors in together])[level]
        return np.sqrt(sums / (variances * (sizes - 1)))


@dataclass(frozen=True)
class JointTables(Together):
    """Tables of the same records.

    Attributes
    ----------
    scopes : the variables of each table, by its name.
    levels : the number of labels of each variable.
    """

    scopes: Mapping[str, Part]
    levels: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        return list(self.scopes)

    def ratios(self, variances: Floats) -> Floats:
        """As in `Together`, by the parts of the tables."""
        held, dimensions = self._parts
        precision = held @ (1 / (variances * self._cells))
        told = np.divide(dimensions, precision, np.zeros_like(precision), where=precision > 0)
        together, own = told @ held, dimensions @ held
        alone = np.where(own > 0, variances * self._cells * own, 1.0)
        return np.sqrt(np.where(own > 0, together, 1.0) / alone)  # a share of one label is 1

    @cached_property
    def _cells(self) -> Floats:
        return (
            np.array([math.prod(self.levels[v] for v in scope) for scope in self.scopes.values()])
            * 1.0
        )

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """Mark the parts of each table, shape `(parts, tables)`; and the parts' dimensions."""
        scopes = list(self.scopes.values())
        parts = {
            frozenset(part)
            for scope in scopes
            for number in range(1, len(scope) + 1)
            for part in combinations(sorted(scope), number)
        }
        held = np.array([[part <= scope for scope in scopes] for part in parts]) * 1.0
        dimensions = [math.prod(self.levels[v] - 1 for v in part) for part in parts]
        return held, np.array(dimensions, dtype=np.float64)


def noise_variance(setting: Setting) -> float | None:
    """Variance of the noise on a count, about; None where the mechanism adds none."""
    law = setting.law
    if isinstance(law, AdditiveNoise):
        return typical_std(law.noise) ** 2
    # Of counts with a known sum, half of the norm on each side is Laplace noise on each.
    return 2 * (2 * law.scale) ** 2 if isinstance(law, SimplexNoise) else None
