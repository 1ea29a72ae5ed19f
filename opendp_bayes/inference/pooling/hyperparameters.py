"""Coordinates of κ and m of pooled groups, and their priors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.mathematics.validation import Floats

#: Logarithms of the concentrations as which those beyond count: groups are of one category as well,
#: or do not differ.
_LEAST, _MOST = np.log(1e-300), np.log(1e120)
#: How much of the prior of κ is left out at each end.
_LEFT_OUT = 1e-4


@dataclass(frozen=True, eq=False)
class Priors:
    """Priors of κ, a frozen continuous distribution of scipy, and of m, the concentration of a
    Dirichlet distribution, shape `(k,)`.

    Coordinates, shape `(..., k)`, are ln κ and then the logarithms of all entries of m but the last
    divided by the last.
    """

    kappa: Any
    m: Floats

    def ends(self) -> tuple[float, float]:
        """Between which values of ln κ the prior has nearly all of its mass."""
        low, high = np.log(self.kappa.ppf([_LEFT_OUT, 1 - _LEFT_OUT]))
        return float(low), float(high)

    def log_of(self, log_kappa: Floats) -> Floats:
        """The log-density of ln κ, elementwise."""
        with np.errstate(all="ignore"):
            found = self.kappa.logpdf(np.exp(log_kappa)) + log_kappa
        return np.where(np.isfinite(found), found, -np.inf)

    def log_density(self, coordinates: Floats) -> Floats:
        """The log-density of coordinates, shape `(...)`."""
        log_m = log_shares(coordinates[..., 1:])
        return np.asarray(self.log_of(coordinates[..., 0]) + (self.m * log_m).sum(axis=-1))

    def shares(self, coordinates: Floats) -> Floats:
        """m, shape `(..., k)`."""
        return np.asarray(np.exp(log_shares(coordinates[..., 1:])))


def log_shares(of_m: Floats) -> Floats:
    """Logarithms of m, shape `(..., k)`, from its coordinates, shape `(..., k - 1)`."""
    with_last = np.concatenate([of_m, np.zeros((*of_m.shape[:-1], 1))], axis=-1)
    return np.asarray(with_last - special.logsumexp(with_last, axis=-1, keepdims=True))


def concentrations(coordinates: Floats) -> Floats:
    """Compute κ m, shape `(..., k)`."""
    log_a = coordinates[..., :1] + log_shares(coordinates[..., 1:])
    return np.asarray(np.exp(np.clip(log_a, _LEAST, _MOST)))
