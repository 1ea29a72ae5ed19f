"""Values of κ and m of pooled groups in every chain, and the steps that move them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.validation import Floats

#: Logarithms of the concentrations as which those beyond count: groups are of one category as well,
#: or do not differ.
_LEAST, _MOST = np.log(1e-300), np.log(1e300)
#: Between which powers of e steps of ln κ are wider than their adapted width: where groups are of
#: one category each they must be short, and long where κ is large.
_SHORTER, _LONGER = -2.5, 0.7
#: Width of steps at first, wanted share of accepted ones, and how fast widths adapt.
_WIDTH, _ACCEPTED, _RATE = 0.5, 0.35, 0.15


@dataclass(frozen=True, eq=False)
class Priors:
    """Priors of κ, a frozen continuous distribution of scipy, and of m, the concentration of a
    Dirichlet distribution, shape `(k,)`.
    """

    kappa: Any
    m: Floats

    def start(self, share: Floats, chains: int) -> "Concentration":
        """κ at evenly spaced quantiles of its prior, and m in all chains at `share`."""
        log_kappa = np.log(self.kappa.ppf((np.arange(chains) + 0.5) / chains))
        log_m = np.broadcast_to(np.log(share / share.sum()), (chains, share.size))
        return Concentration(self, log_kappa, log_m, self.log_of(log_kappa))

    def log_of(self, log_kappa: Floats) -> Floats:
        """The log-density of ln κ, shape `(chains,)`."""
        with np.errstate(all="ignore"):
            found = self.kappa.logpdf(np.exp(log_kappa)) + log_kappa
        return np.where(np.isfinite(found), found, -np.inf)


@dataclass(frozen=True, eq=False)
class Concentration:
    """`log_kappa` and its prior log-density `of_kappa`, shape `(chains,)`, and `log_m`, shape
    `(chains, k)`.
    """

    priors: Priors
    log_kappa: Floats
    log_m: Floats
    of_kappa: Floats

    @property
    def a(self) -> Floats:
        """κ m, shape `(chains, k)`."""
        return np.exp(np.clip(self.log_kappa[:, None] + self.log_m, _LEAST, _MOST))

    @property
    def log_prior(self) -> Floats:
        """The log-density of `ln(κ m)`, shape `(chains,)`, which is also that of ln κ, the log-odds
        of one entry of m, and the ratios of the others: their volumes are in proportion.
        """
        found = self.of_kappa + (self.priors.m * self.log_m).sum(axis=-1)
        return np.where(np.isnan(found), -np.inf, found)

    def moved(self, kind: int, step: Floats) -> "Concentration":
        """Add `step`, shape `(chains,)`, to ln κ where `kind` is 0, and else to the log-odds of
        entry `kind - 1` of m. The ratios of its other entries stay.
        """
        if kind == 0:
            log_kappa = self.log_kappa + step
            of_kappa = self.priors.log_of(log_kappa)
            return replace(self, log_kappa=log_kappa, of_kappa=of_kappa)
        others = np.delete(self.log_m, kind - 1, axis=1)
        log_rest = log_sum_exp(others, axis=1)
        odds = self.log_m[:, kind - 1] - log_rest + step
        log_m = self.log_m - (log_rest + np.logaddexp(0, odds))[:, None]
        log_m[:, kind - 1] = -np.logaddexp(0, -odds)
        return replace(self, log_m=log_m)

    def where(self, accepted: Any, other: "Concentration") -> "Concentration":
        """The other's where it is accepted, shape `(chains,)`."""
        return replace(
            self,
            log_kappa=np.where(accepted, other.log_kappa, self.log_kappa),
            log_m=np.where(accepted[:, None], other.log_m, self.log_m),
            of_kappa=np.where(accepted, other.of_kappa, self.of_kappa),
        )


class Steps:
    """Steps of ln κ, of kind 0, and of the log-odds of each of k entries of m, in all chains.

    Those of a kind go the same way until one is refused, and then back: chains pass through what
    they hardly tell apart instead of wandering about in it. Both ways are as probable wherever a
    chain is, and what leads back from a step is one as long the other way, so that steps leave the
    posterior as it is.
    Source: Gustafson, "A guided walk Metropolis algorithm" (1998), section 2.
    """

    def __init__(self, k: int, chains: int, rng: np.random.Generator) -> None:
        self._rng, self._widths = rng, np.full(k + 1, _WIDTH)
        self._ways = rng.choice((-1.0, 1.0), size=(k + 1, chains))

    def proposed(self, kind: int) -> Floats:
        """The next of a kind, shape `(chains,)`."""
        rng, way = self._rng, self._ways[kind]
        step = self._widths[kind] * np.abs(rng.normal(size=way.size))
        if kind == 0:
            step *= np.exp(rng.uniform(_SHORTER, _LONGER, size=way.size))
        return step * way

    def accepted(self, kind: int, log_ratio: Floats, adapt: bool) -> Any:
        """Accept or refuse the steps of a kind, given the logarithm of the ratio of the densities;
        booleans of shape `(chains,)`.
        """
        log_ratio = np.where(np.isnan(log_ratio), -np.inf, log_ratio)
        found = -self._rng.standard_exponential(log_ratio.shape) < log_ratio
        self._ways[kind] *= np.where(found, 1.0, -1.0)
        if adapt:
            share = np.exp(np.minimum(log_ratio, 0)).mean()
            self._widths[kind] *= np.exp(_RATE * (share - _ACCEPTED))
        return found
