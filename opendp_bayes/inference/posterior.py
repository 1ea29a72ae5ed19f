"""The noise-aware posterior of a release, as its user sees it."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.beta_mixture import BetaMixtures
from opendp_bayes.inference.comparison import Comparison, Probability, standard_error
from opendp_bayes.inference.dirichlet import dirichlet
from opendp_bayes.inference.finite_population import CountsPosterior, NumberPosterior
from opendp_bayes.inference.importance import WeightDiagnostics, Weighted
from opendp_bayes.inference.joint import JointTable
from opendp_bayes.inference.labels import grouped_positions, position_of, positions_of
from opendp_bayes.inference.markov_chain import Chains, Diagnostics
from opendp_bayes.inference.one_category import CategoryPosterior
from opendp_bayes.inference.simultaneous import pointwise_level
from opendp_bayes.inference.true_counts import TrueCounts
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_level, as_size
from opendp_bayes.released.data import Label, ReleasedData

Interval = Literal["equal-tailed", "highest density", "simultaneous"]

#: Draws behind every number that is estimated by simulation.
_DRAWS = 40_000


class NoiseAwarePosterior(JointTable):
    r"""The posterior of the category probabilities given a release: `p(θ | r) ∝ sum_x P(r | x) p(x)
    Dirichlet(θ; prior + x)` over the possible counts x.

    Made by `release.posterior` or `noise_aware_posterior`, and by `merged` and `given` of another.
    Arrays over categories have shape `(k,)`, in the order of `categories`.

    Attributes
    ----------
    release : the release.
    categories : the labels of the categories: the release's, unless `merged` or `given` made it.
    prior : concentration of the prior of their probabilities.
    axes : the variables of a joint table (`marginal`, `conditional`); empty otherwise.
    diagnostics : of Markov chains (`Diagnostics`) or of weighted draws (`WeightDiagnostics`), or
        None where the posterior was computed without any.

    Source: `docs/posterior.md`.
    """

    def __init__(
        self,
        release: ReleasedData,
        true_counts: TrueCounts,
        categories: tuple[Label, ...] | None = None,
        prior: tuple[float, ...] | None = None,
    ) -> None:
        self.release = release
        self.categories = release.categories if categories is None else categories
        self.prior = release.prior if prior is None else prior
        self.axes = release.axes if categories is None else ()
        self._true_counts = true_counts

    @property
    def diagnostics(self) -> Diagnostics | WeightDiagnostics | None:
        """Effective sample sizes, and R-hat of Markov chains; None where nothing was drawn."""
        return (
            self._true_counts.diagnostics
            if isinstance(self._true_counts, (Chains, Weighted))
            else None
        )

    def __getitem__(self, label: Label) -> CategoryPosterior:
        """The probability of one category. Raises `KeyError` for what is none."""
        place = position_of(label, self.categories)
        return CategoryPosterior(label, self._marginals.chosen(np.array([place])))

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the true counts, those of the records that were counted."""
        return CountsPosterior(self.categories, self._true_counts.counts, self._true_counts.sample)

    @cached_property
    def size(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        return NumberPosterior(
            "records",
            self._true_counts.size,
            lambda size, rng: self._true_counts.sample(size, rng).sum(axis=1),
        )

    def merged(self, groups: Mapping[Label, Iterable[Label]]) -> "NoiseAwarePosterior":
        """The posterior with groups of categories as one category each.

        `groups` maps the label of each group to the categories in it; the categories of no group
        stay what they are and come last. The probabilities of groups are Dirichlet given the
        counts as those of categories are, so nothing is lost.

        Raises `ValueError`/`TypeError` for groups that are empty or overlap, or leave less than
        two categories.

        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
        >>> promise = Promise(9, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> labels = ("left", "green", "right")
        >>> release = Release((3, 2, 4), labels, (1.0,) * 3, LaplaceParameters(2.0), promise)
        >>> release.posterior.merged({"coalition": ["left", "green"]}).categories
        ('coalition', 'right')
        """
        labels, members = grouped_positions(groups, self.categories)
        prior = tuple(sum(self.prior[i] for i in group) for group in members)
        found = self._true_counts.merged(members)
        return NoiseAwarePosterior(self.release, found, labels, prior)

    def given(self, categories: Iterable[Label]) -> "NoiseAwarePosterior":
        """The posterior of the probabilities within some categories: of each divided by the sum of
        all of these.

        Its `counts` are those of the categories, and its `size` is their number of records.
        Raises `ValueError`/`TypeError` for less than two categories, or what is none.
        """
        places = positions_of(categories, self.categories, "categories")
        if len(places) < 2:
            raise ValueError(
                f"categories={[self.categories[i] for i in places]!r}: must be at least 2; the"
                " probability of one among itself is 1."
            )
        labels = tuple(self.categories[i] for i in places)
        prior = tuple(self.prior[i] for i in places)
        return NoiseAwarePosterior(self.release, self._true_counts.given(places), labels, prior)

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._marginals.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.sqrt(self._marginals.variance())

    def pdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior density of every category at the values of shape `(...)`; shape `(...,
        k)`.
        """
        return self._marginals.pdf(np.asarray(values)[..., None])

    def cdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior probability of being at most the values, of shape `(...)`; shape
        `(..., k)`.
        """
        return self._marginals.cdf(np.asarray(values)[..., None])

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
        if kind == "highest density":
            return self._marginals.shortest_interval(level)
        return self._marginals.interval(level)

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws of the category probabilities, shape `(size, k)`. A `seed` makes them
        repeatable.
        """
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
            float(holds.mean()), float(standard_error(holds.mean(), self._effective(draws)))
        )

    def compare(self, other: "NoiseAwarePosterior", seed: int | None = 0) -> Comparison:
        """The difference of the probabilities of each category, this posterior's minus the other's,
        for two independent data sets.

        Raises `ValueError` if the two do not have the same categories in the same order.
        """
        if self.categories != other.categories:
            raise ValueError(
                f"other: has the categories {other.categories}, not"
                f" {self.categories}; compare posteriors of the same categories."
            )
        first, second = np.random.SeedSequence(seed).spawn(2)
        draws = self._draws(first) - other._draws(second)
        larger = (draws > 0).mean(axis=0)
        effective = 1 / (1 / self._effective(_DRAWS) + 1 / other._effective(_DRAWS) - 1 / _DRAWS)
        std = np.sqrt(self.std() ** 2 + other.std() ** 2)
        return Comparison(
            self.mean() - other.mean(), std, larger, standard_error(larger, effective), draws
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
        chains = self._true_counts.chains if isinstance(self._true_counts, Chains) else None
        counts = (
            self._true_counts.sample(4 * draws, rng).reshape(4, draws, -1)
            if chains is None
            else chains
        )
        theta = self._given(counts.reshape(-1, counts.shape[-1]), rng).reshape(counts.shape)
        labels = [str(label) for label in self.categories]
        return arviz.from_dict(
            posterior={"theta": theta}, coords={"category": labels}, dims={"theta": ["category"]}
        )

    def __repr__(self) -> str:
        means = ", ".join(
            f"{label!r}: {mean:.4g} ± {std:.2g}"
            for label, mean, std in zip(self.categories, self.mean(), self.std(), strict=True)
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

    @property
    def _marginals(self) -> BetaMixtures:
        return self._true_counts.probabilities

    def _given(self, counts: Integers, rng: np.random.Generator) -> Floats:
        return dirichlet(np.array(self.prior) + counts, rng)

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
        if len(self.categories) == 2:
            return level
        return pointwise_level(self._draws(np.random.SeedSequence(0)), level)
