"""From a release to its noise-aware posterior, by the first way that is within reach."""

import math
import warnings
from itertools import accumulate
from typing import Any

import numpy as np

from opendp_bayes.inference.likelihood import (
    LARGEST_LIST,
    Flipping,
    IndependentNoise,
    Tabulated,
    Weighing,
    likelihood_of,
)
from opendp_bayes.inference.markov_chain import by_metropolis
from opendp_bayes.inference.normaliser import by_interpolation
from opendp_bayes.inference.posterior import NoiseAwarePosterior
from opendp_bayes.inference.true_counts import (
    Convolved,
    Listed,
    SizeWeight,
    TrueCounts,
    TwoCategories,
    log_prior_weight,
)
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers, as_size
from opendp_bayes.released.data import ReleasedData

#: Fewer effective draws are warned about.
_FEWEST_EFFECTIVE = 100
#: Multiplications of a convolution that take about a second.
_QUICK_WORK = 5 * 10**8


def noise_aware_posterior(
    release: ReleasedData,
    *,
    size_prior: Any = None,
    effective_draws: int = 4000,
    seed: int | None = 0,
) -> NoiseAwarePosterior:
    """The posterior given a release, its noise taken into account.

    Parameters
    ----------
    release : a `Release`.
    size_prior : where the number of records is private, its prior: a frozen discrete distribution
        of scipy, such as `scipy.stats.poisson(1000)`. By default every number is equally probable.
    effective_draws : the effective sample size of Markov chains or weighted draws, where they are
        needed.
    seed : of those draws. Exponential mechanisms for three or more categories draw from the
        operating system's source as well, which has no seed.

    Two categories, few data sets, and noise on the counts need no draws (`docs/posterior.md`).
    Raises `ValueError` for a mechanism whose probabilities are out of reach. Warns where draws do
    not agree or are worth few independent ones.

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
    >>> from opendp_bayes import noise_aware_posterior
    >>> promise = Promise(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    >>> noise_aware_posterior(release)
    NoiseAwarePosterior({'a': 0.4263 ± 0.23, 'b': 0.5737 ± 0.23}, exact)
    """
    if size_prior is not None and (
        release.size is not None or not callable(getattr(size_prior, "logpmf", None))
    ):
        wanted = (
            "a frozen discrete distribution with a method logpmf"
            if release.size is None
            else f"None, because the number of records, {release.size}, is public"
        )
        raise ValueError(f"size_prior={size_prior!r}: must be {wanted}.")
    log_size_prior: SizeWeight = _any_size if size_prior is None else size_prior.logpmf
    effective = as_size(effective_draws, "effective_draws")
    posterior = NoiseAwarePosterior(
        release, _true_counts(release, log_size_prior, effective, np.random.default_rng(seed))
    )
    found = posterior.diagnostics
    if found is not None:
        ess, r_hat, log_error = (
            found.ess.min(),
            getattr(found, "r_hat", np.ones(1)).max(),
            getattr(found, "log_error", 0.0),
        )
        if ess < min(effective, _FEWEST_EFFECTIVE) or r_hat > 1.05 or log_error > 0.5:
            warnings.warn(
                "the posterior of this release was not found reliably: effective sample size"
                f" {ess:.0f}, R-hat {r_hat:.3f}, error of the log-likelihood {log_error:.2f} (docs:"
                " Noise-aware posterior, Diagnostics).",
                stacklevel=2,
            )
    return posterior


def is_quick(*releases: ReleasedData) -> bool:
    """Whether the posteriors of the releases take together at most a second or two with the default
    settings.

    They must not need random draws, a list of all data sets, or probabilities from a plugin. Raises
    `ValueError` where a posterior is refused.
    """
    # Stops where it is too much.
    return all(work <= _QUICK_WORK for work in accumulate(map(_work, releases)))


def _work(release: ReleasedData) -> float:
    """Multiplications of the posterior's convolutions; infinite where it is not by convolution."""
    prior, size = np.array(release.prior), release.size
    likelihood = likelihood_of(release.mechanism, np.array(release.drawn), prior, size)
    if size is not None and release.k == 2:
        return math.inf if isinstance(likelihood, Tabulated) else 0.0
    counts = (
        Convolved.of(likelihood, prior, size, _any_size)
        if isinstance(likelihood, IndependentNoise)
        else None
    )
    return math.inf if counts is None else float(counts.work)


def _true_counts(
    release: ReleasedData, log_size_prior: SizeWeight, effective: int, rng: np.random.Generator
) -> TrueCounts:
    """The posterior of the counts, by the first way that is within reach."""
    drawn, prior, size = np.array(release.drawn), np.array(release.prior), release.size
    if size == 0:
        return Listed(np.zeros((1, release.k), dtype=np.int64), np.zeros(1), prior)
    likelihood = likelihood_of(release.mechanism, drawn, prior, size)
    if size is not None and release.k == 2:
        return TwoCategories(likelihood.log_likelihood, int(drawn[0]), prior, size)
    if isinstance(likelihood, IndependentNoise):
        convolved = Convolved.of(likelihood, prior, size, log_size_prior)
        if convolved is None:
            raise ValueError("windows too wide")
        return convolved
    if size is None:
        raise ValueError(
            f"mechanism={release.mechanism.name!r}: with a private number of records, the posterior"
            " of a release is known only for LaplaceParameters."
        )
    if isinstance(likelihood, Flipping) or number_of_candidates(size, release.k) <= LARGEST_LIST:
        counts = candidates(size, release.k)
        return Listed(
            counts,
            likelihood.log_likelihood(counts) + log_prior_weight(counts, prior).sum(axis=1),
            prior,
        )
    if isinstance(likelihood, Weighing):
        return by_interpolation(likelihood, prior, effective, rng)
    return by_metropolis(likelihood, prior, effective, rng)


def _any_size(sizes: Integers) -> Floats:
    """The default prior on a private number of records: every number is equally probable."""
    return np.zeros(np.shape(sizes))
