"""Posteriors of categories as their users see them: mixtures of Dirichlet distributions, and the
noise-aware one of a release.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from opendp_bayes.inference.answers.by_label import grouped_positions, positions_of
from opendp_bayes.inference.answers.category_answers import independent_draws
from opendp_bayes.inference.answers.comparison import Comparison, standard_error
from opendp_bayes.inference.answers.joint_table import JointTable
from opendp_bayes.inference.answers.nearest_dirichlet import nearest_dirichlet
from opendp_bayes.inference.answers.quantity_answers import QuantityAnswers
from opendp_bayes.inference.engines.true_counts import TrueCounts
from opendp_bayes.inference.laws.beta_mixture import BetaMixture
from opendp_bayes.inference.sampling.markov_chain import Chains, Diagnostics
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.protocol import is_lawful
from opendp_bayes.release_format.combination import Combination
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import are_same

T = TypeVar("T", bound="MixturePosterior")


class MixturePosterior(QuantityAnswers, ABC):
    """The posterior of the category probabilities as a mixture of Dirichlet distributions, of
    which groups of categories and some among themselves are mixtures, too.
    """

    @abstractmethod
    def _made(
        self: T, true_counts: TrueCounts, categories: tuple[Label, ...], prior: tuple[float, ...]
    ) -> T:
        """The posterior of other categories."""

    def merged(self: T, groups: Mapping[Label, Iterable[Label]]) -> T:
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
        return self._made(self._true_counts.merged(members), labels, prior)

    def dirichlet(self) -> Floats:
        """Concentration, shape `(k,)`, of the Dirichlet distribution nearest to the posterior, as a
        prior for what takes conjugate ones: of all Dirichlet distributions D the one with the
        smallest Kullback-Leibler divergence `KL(posterior || D)`, which has the posterior's
        expected values of every `ln θ_i`.

        The posterior is a mixture of Dirichlets, which this is not: use `sample` where it matters.

        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
        >>> promise = Promise(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(0.01), promise)
        >>> release.posterior.dirichlet().round(6).tolist()
        [4.0, 6.0]
        """
        return nearest_dirichlet(self._marginals)

    def given(self: T, categories: Iterable[Label]) -> T:
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
        return self._made(self._true_counts.given(places), labels, prior)

    def to_arviz(self, draws: int = 1000, seed: int | None = 0) -> Any:
        """An `xarray.DataTree` as ArviZ from version 1 on reads it, whose `posterior` has the
        variable `theta` of dimensions `(chain, draw, category)`; needs the extra `arviz`.

        The draws of the Markov chains, or where there are none, four chains of `draws` independent
        draws each. Raises `ImportError` without arviz-base, which is for Python 3.11 and later;
        `sample` needs no more than this package.
        """
        try:
            from arviz_base import from_dict
        except ImportError:
            raise ImportError(
                "to_arviz needs arviz-base, which is for Python 3.11 and later: pip install"
                " 'opendp-bayes[arviz]', or take draws from sample()."
            ) from None
        rng = np.random.default_rng(seed)
        chains = self._true_counts.chains if isinstance(self._true_counts, Chains) else None
        counts = (
            self._true_counts.sample(4 * draws, rng).reshape(4, draws, -1)
            if chains is None
            else chains
        )
        theta = self._given(counts.reshape(-1, counts.shape[-1]), rng).reshape(counts.shape)
        labels = [str(label) for label in self.categories]
        return from_dict(
            {"posterior": {"theta": theta}},
            coords={"category": labels},
            dims={"theta": ["category"]},
        )

    def _estimates(self) -> str:
        """Means and standard deviations, for `repr`."""
        estimates = zip(self.categories, self.mean(), self.std(), strict=True)
        return ", ".join(f"{label!r}: {mean:.4g} ± {std:.2g}" for label, mean, std in estimates)


class NoiseAwarePosterior(MixturePosterior, JointTable):
    r"""The posterior of the category probabilities given a release: `p(θ | r) ∝ sum_x P(r | x) p(x)
    Dirichlet(θ; prior + x)` over the possible counts x.

    Made by `release.posterior` or `noise_aware_posterior`, and by `merged` and `given` of another.
    Arrays over categories have shape `(k,)`, in the order of `categories`.

    Attributes
    ----------
    release : the release, or the `Combination` of several.
    categories : the labels of the categories: the release's, unless `merged` or `given` made it.
    prior : concentration of the prior of their probabilities.
    axes : the variables of a joint table (`marginal`, `conditional`); empty otherwise.
    diagnostics : of Markov chains (`Diagnostics`) or of weighted draws (`WeightDiagnostics`), or
        None where the posterior was computed without any.

    Source: `docs/posterior.md`.
    """

    def __init__(
        self,
        release: ReleasedData | Combination,
        true_counts: TrueCounts,
        categories: tuple[Label, ...] | None = None,
        prior: tuple[float, ...] | None = None,
    ) -> None:
        labels = release.categories if categories is None else categories
        super().__init__(labels, release.prior if prior is None else prior, true_counts)
        self.release: ReleasedData | Combination = release
        self.axes = release.axes if categories is None else ()

    def _made(
        self, true_counts: TrueCounts, categories: tuple[Label, ...], prior: tuple[float, ...]
    ) -> "NoiseAwarePosterior":
        return NoiseAwarePosterior(self.release, true_counts, categories, prior)

    def _smallest(self, places: list[int], mixture: BetaMixture) -> float:
        """Every law gives every data set some probability. A mechanism that states none may not,
        and the mixture says what there is.
        """
        of = self.release.releases if isinstance(self.release, Combination) else (self.release,)
        if all(is_lawful(release.mechanism) for release in of):
            return super()._smallest(places, mixture)
        return float(mixture.b.min())

    def compare(self, other: "NoiseAwarePosterior", seed: int | None = 0) -> Comparison:
        """The difference of the probabilities of each category, this posterior's minus the other's,
        for two independent data sets.

        Raises `ValueError` if the two do not have the same categories in the same order.
        """
        if not are_same(self.categories, other.categories):
            raise ValueError(
                f"other: has the categories {other.categories}, not"
                f" {self.categories}; compare posteriors of the same categories."
            )
        first, second = np.random.SeedSequence(seed).spawn(2)
        draws = self._draws(first) - other._draws(second)
        larger = (draws > 0).mean(axis=0)
        number = len(draws)
        effective = 1 / (1 / self._effective(number) + 1 / other._effective(number) - 1 / number)
        std = np.sqrt(self.std() ** 2 + other.std() ** 2)
        return Comparison(
            self.categories,
            self.mean() - other.mean(),
            std,
            larger,
            standard_error(larger, effective),
            draws,
        )

    def __repr__(self) -> str:
        how = "exact"
        if isinstance(self.diagnostics, Diagnostics):
            how = (
                f"by Markov chains, R-hat {self.diagnostics.r_hat.max():.3f}, ESS"
                f" {self.diagnostics.ess.min():.0f}"
            )
        elif self.diagnostics:
            how = f"by importance sampling, ESS {self.diagnostics.ess.min():.0f}"
        elif np.isfinite(behind := independent_draws(self._true_counts)):
            how = f"by {behind:.0f} independent draws"
        return f"NoiseAwarePosterior({{{self._estimates()}}}, {how})"
