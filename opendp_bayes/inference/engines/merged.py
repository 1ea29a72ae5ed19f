"""Groups of categories as categories, where the counts are known by their laws and not listed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Integers

#: Positions of the categories of each group.
Groups = Sequence[Sequence[int]]


class Counted(Protocol):
    """The posterior distribution of counts, and of the probabilities of their categories."""

    @property
    def probabilities(self) -> BetaMixtures:
        """The posteriors of the probabilities of all categories."""
        ...

    @property
    def counts(self) -> CountLaws:
        """The laws of the counts of all categories."""
        ...

    @property
    def size(self) -> CountLaws:
        """The law of their sum, the number of records."""
        ...

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Draws of the counts, shape `(size, k)`."""
        ...

    def sample_sums(self, groups: Groups, size: int, rng: np.random.Generator) -> Integers:
        """Draws of the counts of groups, which have every category once, shape `(size, groups)`."""
        ...


def first_ones(ends: Integers) -> list[range]:
    """The first categories, as many as each of `ends` says."""
    return [range(end) for end in ends.tolist()]


class Whole(Counted, Protocol):
    """The counts of all categories."""

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixture]]:
        """The laws of the counts of groups, and of their probabilities."""
        ...

    def given(self, categories: Sequence[int]) -> "Whole":
        """The counts of some, and their probabilities divided by the sum of these."""
        ...


class Merged:
    """The counts of groups of categories, each of them a sum; every category is in one group."""

    def __init__(self, whole: Whole, groups: Groups) -> None:
        self._whole, self._groups = whole, groups

    @cached_property
    def _several(self) -> list[tuple[CountLaws, BetaMixture]]:
        groups = [group for group in self._groups if len(group) > 1]
        return self._whole.together(groups) if groups else []

    @cached_property
    def probabilities(self) -> BetaMixtures:
        several, every = iter(self._several), self._whole.probabilities
        return BetaMixtures.joined(
            [every[group[0]] if len(group) == 1 else next(several)[1] for group in self._groups]
        )

    @cached_property
    def counts(self) -> CountLaws:
        several, every = iter(self._several), self._whole.counts
        one = [every.chosen(np.array([group[0]])) for group in self._groups if len(group) == 1]
        alone = iter(one)
        return CountLaws.joined(
            [next(alone) if len(group) == 1 else next(several)[0] for group in self._groups]
        )

    @property
    def size(self) -> CountLaws:
        return self._whole.size

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixture]]:
        return self._whole.together([self._members(group) for group in groups])

    def cumulative(self, ends: Integers) -> BetaMixtures:
        """The probabilities of the first groups together, for so many of them as `ends` says."""
        return Merged(self._whole, [self._members(some) for some in first_ones(ends)]).probabilities

    def merged(self, groups: Groups) -> "Merged":
        return Merged(self._whole, [self._members(group) for group in groups])

    def given(self, categories: Sequence[int]) -> "Merged":
        """The categories of these groups among themselves."""
        inside = sorted(self._members(categories))
        place = {category: position for position, category in enumerate(inside)}
        some = [[place[member] for member in self._groups[group]] for group in categories]
        return Merged(self._whole.given(inside), some)

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        return self._whole.sample_sums(self._groups, size, rng)

    def sample_sums(self, groups: Groups, size: int, rng: np.random.Generator) -> Integers:
        return self._whole.sample_sums([self._members(group) for group in groups], size, rng)

    def _members(self, groups: Sequence[int]) -> list[int]:
        return [member for group in groups for member in self._groups[group]]


def summed(rows: Any, groups: Groups) -> Any:
    """The sums over the groups of counts, or of a prior, of shape `(..., k)`."""
    return np.stack([rows[..., list(group)].sum(axis=-1) for group in groups], axis=-1)
