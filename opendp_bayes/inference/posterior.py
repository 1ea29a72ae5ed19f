"""The noise-aware posterior of a release, as its user sees it."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.beta_mixture import BetaMixture
from opendp_bayes.inference.dirichlet import dirichlet
from opendp_bayes.inference.importance import WeightDiagnostics, Weighted
from opendp_bayes.inference.likelihood import (
    LARGEST_LIST,
    ExponentialWeights,
    Flips,
    IndependentNoise,
    ProjectedNoise,
    Tabulated,
    likelihood_of,
)
from opendp_bayes.inference.markov_chain import Chains, Diagnostics, by_gibbs, by_metropolis
from opendp_bayes.inference.normaliser import by_interpolation
from opendp_bayes.inference.true_counts import (
    Convolved,
    Listed,
    SizeWeight,
    TrueCounts,
    TwoCategories,
    log_prior_weight,
)
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_level, as_size

if TYPE_CHECKING:
    from opendp_bayes.results.release import Release

Interval = Literal["equal-tailed", "highest density", "simultaneous"]

#: Draws behind every number that is estimated by simulation.
_DRAWS = 40_000
#: Fewer effective draws are warned about.
_FEWEST_EFFECTIVE = 100
#: Multiplications of a convolution that take about a second.
_QUICK_WORK = 5 * 10**8


class Probability(NamedTuple):
    """A probability estimated from posterior draws, with its Monte Carlo standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """The difference of the category probabilities of two releases, first minus second; every array
    has shape `(k,)`.

    Attributes
    ----------
    mean, std : posterior mean and standard deviation of each difference.
    probability : posterior probability that the first is larger.
    standard_error : Monte Carlo standard error of `probability`.
    """

    mean: Floats
    std: Floats
    probability: Floats
    standard_error: Floats
    _draws: Floats = field(repr=False)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of the equal-tailed intervals of the differences, two arrays of shape `(k,)`, from
        draws.
        """
        level = as_level(level)
        lower, upper = np.quantile(self._draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper


class NoiseAwarePosterior:
    r"""The posterior of the category probabilities given a release: `p(θ | r) ∝ sum_x P(r | x) p(x)
    Dirichlet(θ; prior + x)` over the possible counts x.

    Made by `release.posterior` or `noise_aware_posterior`. Arrays over categories have shape
    `(k,)`, in the order of `release.categories`.

    Attributes
    ----------
    release : the release.
    diagnostics : of Markov chains (`Diagnostics`) or of weighted draws (`WeightDiagnostics`), or
        None where the posterior was computed without any.

    Source: `docs/posterior.md`.
    """

    def __init__(self, release: "Release", true_counts: TrueCounts) -> None:
        self.release = release
        self._true_counts = true_counts

    @property
    def diagnostics(self) -> Diagnostics | WeightDiagnostics | None:
        """Effective sample sizes, and R-hat of Markov chains; None where nothing was drawn."""
        return (
            self._true_counts.diagnostics
            if isinstance(self._true_counts, (Chains, Weighted))
            else None
        )

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return np.array([marginal.mean() for marginal in self._all_marginals])

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.sqrt([marginal.variance() for marginal in self._all_marginals])

    def pdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior density of every category at the values of shape `(...)`; shape `(...,
        k)`.
        """
        return np.stack([marginal.pdf(values) for marginal in self._all_marginals], axis=-1)

    def cdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior probability of being at most the values, of shape `(...)`; shape
        `(..., k)`.
        """
        return np.stack([marginal.cdf(values) for marginal in self._all_marginals], axis=-1)

    def interval(
        self, level: float = 0.95, kind: Interval = "equal-tailed"
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends of credible intervals of probability `level`, two arrays of shape
        `(k,)`.

        Parameters
        ----------
        level : between 0 and 1.
        kind : `"equal-tailed"`; `"highest density"`, the shortest interval; or `"simultaneous"`,
            equal-tailed intervals widened until all of them
        hold together
            with probability `level` (by simulation).

        Raises `ValueError` for another level or kind.
        """
        level = as_level(level)
        as_choice(kind, "kind", ("equal-tailed", "highest density", "simultaneous"))
        if kind == "simultaneous":
            level = self._pointwise_level(level)
        ends = [
            m.shortest_interval(level) if kind == "highest density" else m.interval(level)
            for m in self._all_marginals
        ]
        lower, upper = np.array(ends).T
        return lower, upper

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws of the category probabilities, shape `(size, k)`. A `seed` makes them repeatable."""
        rng = np.random.default_rng(seed)
        return self._given(self._true_counts.sample(as_size(size), rng), rng)

    def predictive(self, size: int, draws: int = 4000, seed: int | None = None) -> Integers:
        """Draws of the counts of `size` further records from the posterior predictive distribution,
        shape `(draws, k)`.
        """
        rng = np.random.default_rng(seed)
        size = as_size(size)
        return rng.multinomial(
            size, self._given(self._true_counts.sample(as_size(draws, "draws"), rng), rng)
        )

    def probability(
        self,
        event: Callable[[Floats], NDArray[np.bool_]],
        draws: int = _DRAWS,
        seed: int | None = 0,
    ) -> Probability:
        """The posterior probability of an event, with its Monte Carlo standard error.

        `event` is a function of the probabilities, an array of shape `(k, draws)` so that
        `theta[0]` is the first category in every draw; it returns booleans of shape `(draws,)`, as
        `lambda theta: theta[0] > theta[1]` does. Raises `ValueError` if it returns anything else.
        """
        theta = self.sample(as_size(draws, "draws"), seed)
        holds = np.asarray(event(theta.T))
        if holds.dtype != np.bool_ or holds.shape != (draws,):
            raise ValueError(
                f"event: returned an array of {holds.dtype} and shape {holds.shape}; must be"
                f" booleans of shape ({draws},), one for each draw."
            )
        return Probability(
            float(holds.mean()), float(_standard_error(holds.mean(), self._effective(draws)))
        )

    def compare(self, other: "NoiseAwarePosterior", seed: int | None = 0) -> Comparison:
        """The difference of the probabilities of each category, this posterior's minus the other's,
        for two independent data sets.

        Raises `ValueError` if the two releases do not have the same categories in the same order.
        """
        if self.release.categories != other.release.categories:
            raise ValueError(
                f"other: has the categories {other.release.categories}, not"
                f" {self.release.categories}; compare releases of the same categories."
            )
        first, second = np.random.SeedSequence(seed).spawn(2)
        draws = self._draws(first) - other._draws(second)
        larger = (draws > 0).mean(axis=0)
        effective = 1 / (1 / self._effective(_DRAWS) + 1 / other._effective(_DRAWS) - 1 / _DRAWS)
        std = np.sqrt(self.std() ** 2 + other.std() ** 2)
        return Comparison(
            self.mean() - other.mean(), std, larger, _standard_error(larger, effective), draws
        )

    def to_arviz(self, draws: int = 1000, seed: int | None = 0) -> Any:
        """An `arviz.InferenceData` with the variable `theta` of dimensions `(chain, draw,
        category)`; needs the extra `arviz`.

        The draws of the Markov chains, or where there are none, four chains of `draws` independent
        draws each. Raises `ImportError` without arviz.
        """
        try:
            # Once a day, by a note in the user's cache folder, ArviZ announces its next version.
            with warnings.catch_warnings():
                announcement = r"\s*ArviZ is undergoing a major refactor"
                warnings.filterwarnings("ignore", announcement, FutureWarning)
                import arviz
        except ImportError:
            raise ImportError("to_arviz needs arviz: pip install 'opendp-bayes[arviz]'.") from None
        rng = np.random.default_rng(seed)
        chains = self._true_counts.counts if isinstance(self._true_counts, Chains) else None
        counts = (
            self._true_counts.sample(4 * draws, rng).reshape(4, draws, -1)
            if chains is None
            else chains
        )
        theta = self._given(counts.reshape(-1, counts.shape[-1]), rng).reshape(counts.shape)
        labels = [str(label) for label in self.release.categories]
        return arviz.from_dict(
            posterior={"theta": theta}, coords={"category": labels}, dims={"theta": ["category"]}
        )

    def __repr__(self) -> str:
        means = ", ".join(
            f"{label!r}: {mean:.4g} ± {std:.2g}"
            for label, mean, std in zip(
                self.release.categories, self.mean(), self.std(), strict=True
            )
        )
        how = "exact"
        if isinstance(self.diagnostics, Diagnostics):
            how = (
                f"by Markov chains, R-hat {self.diagnostics.r_hat.max():.3f}, ESS"
                f" {self.diagnostics.ess.min():.0f}"
            )
        elif self.diagnostics:
            how = f"by importance sampling, ESS {self.diagnostics.ess.min():.0f}"
        return f"NoiseAwarePosterior({{{means}}}, {how})"

    @cached_property
    def _all_marginals(self) -> list[BetaMixture]:
        return [self._true_counts.marginal(category) for category in range(self.release.k)]

    def _given(self, counts: Integers, rng: np.random.Generator) -> Floats:
        return dirichlet(np.array(self.release.prior) + counts, rng)

    def _draws(self, seed: np.random.SeedSequence) -> Floats:
        rng = np.random.default_rng(seed)
        return self._given(self._true_counts.sample(_DRAWS, rng), rng)

    def _effective(self, draws: int) -> float:
        """Independent draws that `draws` draws are worth: those from Markov chains are no more than
        the chains themselves.
        """
        return (
            draws
            if self.diagnostics is None
            else 1 / (1 / draws + 1 / float(self.diagnostics.ess.min()))
        )

    def _pointwise_level(self, level: float) -> float:
        """The level at which equal-tailed intervals hold for all categories at once with
        probability `level`, from ranks of draws.
        """
        if self.release.k == 2:
            return level
        draws = self._draws(np.random.SeedSequence(0))
        ranks = (np.argsort(np.argsort(draws, axis=0), axis=0) + 0.5) / len(draws)
        return float(np.quantile(np.abs(2 * ranks - 1).max(axis=1), level))


def noise_aware_posterior(
    release: "Release", *, size_prior: Any = None, effective_draws: int = 4000, seed: int | None = 0
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

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Release, noise_aware_posterior
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), 8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
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


def is_quick(*releases: "Release") -> bool:
    """Whether the posteriors of the releases take together at most a second or two with the default
    settings.

    They must not need random draws, a list of all data sets, or probabilities from a plugin. Raises
    `ValueError` where a posterior is refused.
    """
    return all(
        work <= _QUICK_WORK for work in accumulate(map(_work, releases))
    )  # stops where it is too much


def _work(release: "Release") -> float:
    """Multiplications of the posterior's convolutions; infinite where it is not by convolution."""
    prior, size = np.array(release.prior), release.size
    likelihood = likelihood_of(
        release.mechanism, np.array(release.counts, dtype=np.int64), prior, size
    )
    if size is not None and release.k == 2:
        return math.inf if isinstance(likelihood, Tabulated) else 0.0
    counts = (
        Convolved.of(likelihood, prior, size, _any_size)
        if isinstance(likelihood, IndependentNoise)
        else None
    )
    return math.inf if counts is None else float(counts.work)


def _true_counts(
    release: "Release", log_size_prior: SizeWeight, effective: int, rng: np.random.Generator
) -> TrueCounts:
    """The posterior of the counts, by the first way that is within reach."""
    released, prior, size = (
        np.array(release.counts, dtype=np.int64),
        np.array(release.prior),
        release.size,
    )
    if size == 0:
        return Listed(np.zeros((1, release.k), dtype=np.int64), np.zeros(1), prior)
    likelihood = likelihood_of(release.mechanism, released, prior, size)
    if size is not None and release.k == 2 and not isinstance(likelihood, ProjectedNoise):
        return TwoCategories(likelihood.log_likelihood, int(released[0]), prior, size)
    if isinstance(likelihood, IndependentNoise):
        return Convolved.of(likelihood, prior, size, log_size_prior) or by_gibbs(
            likelihood, prior, size, log_size_prior, effective, rng
        )
    if isinstance(likelihood, ProjectedNoise):
        return by_gibbs(likelihood, prior, size, log_size_prior, effective, rng)
    if size is None:
        raise ValueError(
            f"mechanism={release.mechanism.name!r}: with a private number of records, the posterior"
            " of a release is known only for LaplaceParameters."
        )
    if isinstance(likelihood, Flips) or number_of_candidates(size, release.k) <= LARGEST_LIST:
        counts = candidates(size, release.k)
        return Listed(
            counts,
            likelihood.log_likelihood(counts) + log_prior_weight(counts, prior).sum(axis=1),
            prior,
        )
    if isinstance(likelihood, ExponentialWeights):
        return by_interpolation(likelihood, prior, effective, rng)
    return by_metropolis(likelihood, prior, effective, rng)


def _any_size(sizes: Integers) -> Floats:
    """The default prior on a private number of records: every number is equally probable."""
    return np.zeros(np.shape(sizes))


def _standard_error(share: Any, draws: float) -> Any:
    """Of a share among so many independent draws; not 0 where all of them agree."""
    safer = (share * draws + 1) / (draws + 2)
    return np.sqrt(safer * (1 - safer) / draws)
