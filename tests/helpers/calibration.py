"""Simulation-based calibration: probabilities from the prior, data from them, a release from the
data, and where the truth lies in the posterior.

With the right posterior, the posterior probability of lying below the truth is uniform on [0, 1];
so an equal-tailed interval of level L holds the truth with probability L. Source: Talts,
Betancourt, Simpson, Vehtari and Gelman, "Validating Bayesian inference algorithms with
simulation-based calibration".
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mechanisms.protocol import drawn_by
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import oracles

Floats = NDArray[np.float64]
LEVELS = (0.5, 0.9, 0.95)

#: Name, template and whether the number of records is public. The scale is found from ε.
MECHANISMS: dict[str, tuple[Any, bool]] = {
    "discrete Laplace": (ob.LaplaceParameters(1.0), True),
    "floored Laplace (LSHist)": (ob.LaplaceParameters(1.0, "floored"), True),
    "floored Laplace, bounded (LSZhang)": (ob.LaplaceParameters(1.0, "floored", "bounded"), True),
    "K-norm": (ob.KNormParameters(1.0), True),
    "Gaussian": (ob.GaussianParameters(1.0), True),
    "EHD": (ob.mechanisms.HellingerExponential(1.0), True),
    "EHDS, γ = 1": (ob.mechanisms.SmoothHellingerExponential(1.0), True),
    "β = 0.05": (ob.mechanisms.SmoothHellingerExponential(1.0, beta=0.05), True),
    "discrete Laplace, n private": (ob.LaplaceParameters(1.0, total="private"), False),
    "floored Laplace, n private": (ob.LaplaceParameters(1.0, "floored", "private"), False),
    "Gaussian, n private": (ob.GaussianParameters(1.0), False),
    "permute-and-flip": (ob.mechanisms.PermuteAndFlip(1.0), True),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    mechanism: str
    k: int
    size: int
    epsilon: float

    @property
    def public(self) -> bool:
        return MECHANISMS[self.mechanism][1]

    @property
    def exponential(self) -> bool:
        return isinstance(
            MECHANISMS[self.mechanism][0],
            (
                ob.mechanisms.HellingerExponential,
                ob.mechanisms.SmoothHellingerExponential,
                ob.mechanisms.PermuteAndFlip,
            ),
        )

    def scaled(self, prior: Floats) -> Any:
        """The mechanism whose loss is ε, or whose ρ is half its square; it falls with the scale."""
        template, public = MECHANISMS[self.mechanism]
        low, high = 1e-6, 1e9
        for _ in range(60):
            scale = math.sqrt(low * high)
            found = replace(template, scale=scale).proven_loss(
                1, size=self.size if public else None, prior=prior
            )
            pure = math.isfinite(found.epsilon)
            loss = found.epsilon if pure else math.sqrt(2 * found.rho)
            low, high = (scale, high) if loss > self.epsilon else (low, scale)
        return replace(template, scale=high)

    def runs(self) -> bool:
        """Whether so many categories and records are not refused, as those that drown the data."""
        prior = np.ones(self.k)
        try:
            size = self.size if self.public else None
            Setting.of(self.scaled(prior), size, prior).check_informative()
        except ValueError:
            return False
        return True


#: Settings with categories that hardly anyone is in, or with too many data sets to list, and the
#: prior that their probabilities are drawn from.
RARE = {
    Cell("K-norm", 4, 2000, 0.5): (0.02, 0.02, 1.0, 1.0),
    Cell("K-norm", 4, 1_000_000, 1 / 3000): (0.3, 0.3, 0.3, 1.0),
    Cell("K-norm", 10, 2000, 0.5): (0.02,) * 7 + (1.0,) * 3,
    Cell("EHDS, γ = 1", 3, 2000, 1.0): (1.0, 1.0, 1.0),
    Cell("EHDS, γ = 1", 3, 2000, 0.5): (0.1, 1.0, 1.0),
}


def simulate(
    cell: Cell,
    draws: int,
    seed: int,
    prior: Sequence[float] | None = None,
    records_prior: Any = None,
    cdf: Callable[[ob.Release, Floats], Floats] | None = None,
) -> Floats:
    """For every draw, the posterior probability of lying below the true probability of each
    category; shape `(draws, k)`.

    With a `records_prior` the number of records is drawn from it, and the posterior uses it;
    otherwise it is `cell.size`, and a private one has the default prior. `cdf` gives another
    posterior's.
    """
    rng = np.random.default_rng(seed)
    alpha = np.ones(cell.k) if prior is None else np.array(prior)
    mechanism = cell.scaled(alpha)
    ranks = np.empty((draws, cell.k))

    @lru_cache(maxsize=100)  # few records have few releases
    def posterior(release: ob.Release) -> ob.NoiseAwarePosterior:
        return ob.noise_aware_posterior(release, records_prior=records_prior, ess=500)

    for row in range(draws):
        theta = rng.dirichlet(alpha)
        size = cell.size if records_prior is None else int(records_prior.rvs(random_state=rng))
        drawn = drawn_by(mechanism, rng.multinomial(size, theta), alpha)[0]
        release = ob.Release(
            tuple(drawn.tolist()),
            tuple(range(cell.k)),
            tuple(alpha.tolist()),
            mechanism,
            ob.PrivacyGuarantee(size if cell.public else None, 1, ob.PrivacyLoss(1, 1, 1), ""),
        )
        if cdf is not None:
            ranks[row] = cdf(release, theta)
        else:
            ranks[row] = np.diagonal(posterior(release).cdf(theta))
    return ranks


def plug_in(release: ob.Release, theta: Floats) -> Floats:
    """The same by the papers' posterior."""
    concentration = release.concentration
    return stats.beta.cdf(theta, concentration, concentration.sum() - concentration)


def coverage(ranks: Floats, level: float) -> float:
    """Share of the draws whose equal-tailed interval holds the truth, or the mean of several."""
    return float((np.abs(2 * ranks - 1) <= level).mean())


def rejects(ranks: Floats, bins: int = 10) -> bool:
    """Whether the ranks of one category, shape `(draws,)`, are not uniform: by a chi-square test
    over bins, or by the coverage at one of `LEVELS`.

    Every check rejects a correct posterior with probability at most `oracles.FALSE_ALARM`.
    """
    counts = Counter(np.minimum((ranks * bins).astype(int), bins - 1).tolist())
    if oracles.rejects(counts, dict.fromkeys(range(bins), 1 / bins)):
        return True
    inside = [int((np.abs(2 * ranks - 1) <= level).sum()) for level in LEVELS]
    return any(
        stats.binomtest(number, ranks.size, level).pvalue < oracles.FALSE_ALARM
        for number, level in zip(inside, LEVELS, strict=True)
    )
