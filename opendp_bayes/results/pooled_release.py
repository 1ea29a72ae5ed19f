"""The analyst's result of pooling: groups that borrow strength from each other."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.inference.pooling.pooled_posterior import Concentrations, estimates_of_groups
from opendp_bayes.inference.sampling.importance import WeightDiagnostics
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_generator,
    as_level,
    as_prior,
    as_size,
)
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.labels import position_of
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import Estimate, estimate_of, estimates_frame
from opendp_bayes.results.sheets import Estimated

if TYPE_CHECKING:
    import polars as pl

#: The median of the prior of κ, in records, which is log-logistic.
_MEDIAN = 10.0
#: More drawn counts than these are estimated together.
_TOGETHER = 1 << 20


class Pooled(Estimated, Mapping[Key, NoiseAwarePosterior]):
    """A mapping from each group to its posterior, which has no releases of its own, made by
    `GroupedRelease.pooled` and `Release.pooled`.

    Attributes
    ----------
    categories
        The labels of the categories.
    kappa
        Draws of κ, in records that the other groups are worth to one; shape `(draws,)`.
    m
        Draws of the mean probabilities, shape `(draws, k)`.
    noisy_counts
        What the mechanism drew for every group, shape `(G, k)`.
    guarantee
        What the release promises that this is computed from (`PrivacyGuarantee`).
    diagnostics
        Of the draws of κ and m (`WeightDiagnostics`): how many effective ones there are.
    """

    _WHOSE = "All groups together: "

    def __init__(
        self,
        groups: PooledGroups,
        guarantee: PrivacyGuarantee,
        a: Floats,
        counts: Integers,
        effective: float,
    ) -> None:
        self.guarantee = guarantee
        self._groups, self.categories, self.noisy_counts = (
            groups.keys,
            groups.categories,
            groups.noisy.drawn,
        )
        self._unordered, self._a, self._counts = groups.unordered, a, counts
        self.kappa = a.sum(axis=1)
        self.m = a / self.kappa[:, None]
        ess = np.full(len(self.categories), effective)
        self.diagnostics = WeightDiagnostics(ess, len(a), categories=self.categories)

    def __getitem__(self, key: Key) -> NoiseAwarePosterior:
        position = position_of(key, self._groups, ("group", "groups"))
        concentrations = Concentrations.of(self._a, self._counts[:, position], self.diagnostics)
        return NoiseAwarePosterior((), concentrations, self.categories, unordered=self._unordered)

    def __eq__(self, other: object) -> bool:
        return self is other  # a mapping's would compare posteriors that are made anew

    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Key]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for every group and category: `mean`, `std`, and the ends
        `lower` and `upper` of the equal-tailed interval of probability `level`, which is there too,
        and `noisy_count`, what was drawn.

        `group` and `category` are text.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        return self.estimates(level).rename({"count": "noisy_count"})

    def estimates(self, level: float = 0.95) -> "pl.DataFrame":
        """The estimates in the columns that results of all kinds have (`to_frame`), where `count`
        is what was drawn.
        """
        level = as_level(level)
        if self._counts.size > _TOGETHER:
            estimate = Estimate(*estimates_of_groups(self._a, self._counts, level))
        else:
            each = zip(*(estimate_of(one, level) for one in self.values()), strict=True)
            estimate = Estimate(*map(np.concatenate, each))
        noisy_counts = self.noisy_counts.ravel().tolist()
        return estimates_frame(estimate, self.categories, noisy_counts, level, self)

    def _shown(self, level: float, wait: bool) -> tuple["pl.DataFrame", list[str]]:
        """Means and intervals of every group, and how alike the groups are."""
        ends = [0.5, (1 - level) / 2, (1 + level) / 2]
        middle, low, high = map(_records, np.quantile(self.kappa, ends))
        notes = [
            f"The others are worth {middle} records to a group ({100 * level:.6g} %: {low} to"
            f" {high}).",
            f"Importance sampling: {self.diagnostics.ess.min():.0f} effective draws.",
        ]
        return self.to_frame(level), notes

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.kappa, [0.025, 0.5, 0.975])
        return (
            f"Pooled({len(self)} groups, kappa={middle:.3g} (95 %: {low:.3g} to {high:.3g}),"
            f" ESS {self.diagnostics.ess.min():.0f})"
        )


def _records(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def pooled(
    groups: PooledGroups,
    guarantee: PrivacyGuarantee,
    *,
    m_prior: ArrayLike = 1.0,
    kappa_prior: Any = None,
    ess: int = 100,
    random_state: int | None = 0,
) -> Pooled:
    """`GroupedRelease.pooled` and `Release.pooled`."""
    prior = as_prior(m_prior, len(groups.categories), "m_prior")
    if kappa_prior is None:
        kappa_prior = scipy.stats.fisk(1.0, scale=_MEDIAN)
    support = getattr(kappa_prior, "support", lambda: (-1.0, 0.0))()
    if not callable(getattr(kappa_prior, "logpdf", None)) or support[0] < 0:
        raise ValueError(
            f"kappa_prior={kappa_prior!r}: must be a frozen continuous distribution on positive"
            " numbers, such as scipy.stats.gamma(2, scale=10)."
        )
    effective, rng = as_size(ess, "ess", "draws"), as_generator(random_state)
    a, counts, worth = groups.draws(prior, kappa_prior, effective, rng)
    if worth < effective:
        raise ValueError(
            f"pooled: the draws of kappa and m are worth {worth:.0f} independent ones; they must be"
            f" worth ess={effective}. Merge categories, of which {len(prior)} are too many or too"
            " empty, take the posterior of each group, or of a joint table the one with"
            " prior='learned' (docs: Limits of pooling)."
        )
    return Pooled(groups, guarantee, a, counts, worth)
