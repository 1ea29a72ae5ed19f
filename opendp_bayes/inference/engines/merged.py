"""Engines that compute laws of groups of categories, and groups as categories of such an engine."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.inference.engines.engine import Engine, Groups, summed
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Integers


class ByLaws(Engine):
    """An engine that computes the laws of single categories and of groups of them."""

    @abstractmethod
    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        """The laws of the counts of groups of categories, and of their probabilities; of no group
        that holds all categories, or none.
        """

    @abstractmethod
    def given(self, categories: Sequence[int]) -> "ByLaws": ...

    def merged(self, groups: Groups) -> "Merged":
        return Merged(self, groups)

    def cumulative(self, ends: Integers) -> BetaMixtures:
        return self.merged([range(end) for end in ends.tolist()]).probabilities


class Merged(ByLaws):
    """The counts of groups of categories, each of them a sum."""

    def __init__(self, whole: ByLaws, groups: Groups) -> None:
        self._whole, self._groups = whole, groups
        self.prior = summed(whole.prior, groups)

    @cached_property
    def _laws(self) -> list[tuple[CountLaws, BetaMixtures]]:
        counts, probabilities = self._whole.counts, self._whole.probabilities
        groups = [group for group in self._groups if len(group) > 1]
        several = iter(self._whole.together(groups) if groups else [])
        return [
            next(several)
            if len(group) > 1
            else (counts.chosen(np.array(group)), probabilities[group[0]])
            for group in self._groups
        ]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        return BetaMixtures.joined([mixture for _, mixture in self._laws])

    @cached_property
    def counts(self) -> CountLaws:
        return CountLaws.joined([law for law, _ in self._laws])

    @property
    def records(self) -> CountLaws:
        return self._whole.records

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        return self._whole.together([self._members(group) for group in groups])

    def merged(self, groups: Groups) -> "Merged":
        return Merged(self._whole, [self._members(group) for group in groups])

    def given(self, categories: Sequence[int]) -> "Merged":
        """The categories of these groups among themselves."""
        inside = sorted(self._members(categories))
        place = {category: position for position, category in enumerate(inside)}
        some = [[place[member] for member in self._groups[group]] for group in categories]
        return Merged(self._whole.given(inside), some)

    def sample(self, draws: int, rng: np.random.Generator) -> Any:
        return self._whole.sample_sums(self._groups, draws, rng)

    def sample_sums(self, groups: Groups, draws: int, rng: np.random.Generator) -> Any:
        return self._whole.sample_sums([self._members(group) for group in groups], draws, rng)

    def _members(self, groups: Sequence[int]) -> list[int]:
        return [member for group in groups for member in self._groups[group]]
