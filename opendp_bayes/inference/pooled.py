"""The posteriors of groups that borrow strength from each other."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.components import keyed
from opendp_bayes.inference.dirichlet import dirichlet
from opendp_bayes.inference.markov_chain import Diagnostics, r_hat_and_ess
from opendp_bayes.inference.pooling import Chains, Model
from opendp_bayes.mathematics.validation import Floats, Integers, as_level
from opendp_bayes.released.data import Label

#: Chains, sweeps of the first run, and how often what follows its first quarter, in which steps
#: adapt, grows by a quarter.
_CHAINS, _FIRST_RUN, _GROWTHS = 4, 400, 13
#: Largest R-hat of chains that have met.
_MET = 1.05


@dataclass(frozen=True, eq=False)
class PooledPosterior:
    """The posterior of the category probabilities of one group, from draws of what they depend on:
    a mixture of Dirichlets, one for each draw.

    Attributes
    ----------
    categories : the labels of the categories, in whose order all arrays of shape `(k,)` are.
    concentration : of the Dirichlets, shape `(draws, k)`.
    """

    categories: tuple[Label, ...]
    concentration: Floats

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._marginals.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.sqrt(self._marginals.variance())

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of the equal-tailed credible intervals, two arrays of shape `(k,)`; `ValueError`
        unless `0 < level < 1`.
        """
        return self._marginals.interval(as_level(level))

    def cdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior probability of being at most the values, of shape `(...)`; shape
        `(..., k)`.
        """
        return self._marginals.cdf(np.asarray(values)[..., None])

    def pdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior densities at values of shape `(...)`; shape `(..., k)`."""
        return self._marginals.pdf(np.asarray(values)[..., None])

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws of the probabilities, shape `(size, k)`. A `seed` makes them repeatable."""
        rng = np.random.default_rng(seed)
        return dirichlet(self.concentration[rng.integers(len(self.concentration), size=size)], rng)

    @cached_property
    def _marginals(self) -> BetaMixtures:
        every, draws = self.concentration, len(self.concentration)
        # Sums of those before and after: the total has no digits left for what a large one leaves.
        before = np.cumsum(np.pad(every, ((0, 0), (1, 0)))[:, :-1], axis=1)
        after = np.cumsum(np.pad(every, ((0, 0), (0, 1)))[:, :0:-1], axis=1)[:, ::-1]
        mixtures, weights = [], np.full(draws, 1 / draws)
        for a, b in zip(every.T, (before + after).T, strict=True):
            alike = keyed(a, b, weights, a, b)
            mixtures.append(BetaMixture.grouped(alike.a, alike.b, alike.weights, alike.key))
        return BetaMixtures.joined(mixtures)

    def __repr__(self) -> str:
        shown = zip(self.categories, self.mean(), self.std(), strict=True)
        text = ", ".join(f"{label!r}: {mean:.4g} ± {std:.2g}" for label, mean, std in shown)
        return f"PooledPosterior({{{text}}})"


def diagnostics_of(a: Floats) -> Diagnostics:
    """Of draws of κ m, shape `(chains, draws, k)`."""
    kappa = a.sum(axis=-1, keepdims=True)
    values = np.concatenate([np.log(kappa), a / kappa], axis=-1)
    found = [r_hat_and_ess(values[..., i]) for i in range(values.shape[-1])]
    r_hat, ess = zip(*found, strict=True)
    return Diagnostics(np.array(r_hat), np.array(ess), *a.shape[:2])


def draws_of(model: Model, effective: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
    """κ m and the counts after each sweep, `(chains, draws, k)` and `(chains, draws, G, k)`, until
    there are so many effective draws or the chains are long.
    """
    chains = Chains(model, _CHAINS, rng)
    a: list[Floats] = []
    counts: list[Integers] = []
    for _ in range(_FIRST_RUN // 4):
        chains.sweep(adapt=True)
    wanted = _FIRST_RUN - _FIRST_RUN // 4
    for _ in range(_GROWTHS + 1):
        while len(a) < wanted:
            chains.sweep(adapt=False)
            a.append(chains.concentration)
            counts.append(chains.counts.copy())
        # The first eighth may still remember where the chains began.
        kept = slice(len(a) // 8, None)
        found = diagnostics_of(np.stack(a[kept], axis=1))
        if found.ess.min() >= effective and found.r_hat.max() < _MET:
            break
        wanted += wanted // 4
    return np.stack(a[kept], axis=1), np.stack(counts[kept], axis=1)
