"""The noise-aware posterior of a release."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from opendp_bayes.inference.answers.comparison import Comparison
from opendp_bayes.inference.answers.joint_table import (
    cells_with,
    check_others,
    collapsed,
    positions_among,
)
from opendp_bayes.inference.answers.mixture_posterior import MixturePosterior
from opendp_bayes.inference.answers.quantities import Quantities, independent_draws
from opendp_bayes.inference.engines.true_counts import TrueCounts
from opendp_bayes.inference.laws.beta_differences import BetaDifferences
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.sampling.markov_chain import Diagnostics
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.protocol import is_lawful
from opendp_bayes.release_format.combination import Combination
from opendp_bayes.release_format.data import Label, ReleasedData, Value
from opendp_bayes.release_format.labels import are_same

N = TypeVar("N", bound="NoiseAwarePosterior")


class NoiseAwarePosterior(MixturePosterior):
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
        self._before: Callable[[], None] | None = None

    @property
    def learned(self) -> Quantities:
        """Posteriors of what was learned about the prior, by name; none where it was given."""
        return Quantities([])

    def _on_first_use(self, before: Callable[[], None]) -> "NoiseAwarePosterior":
        """Call a function once, before the laws of this posterior, but of no other, are asked."""
        self._before = before
        return self

    def _begin(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            before()

    @property
    def _counted(self) -> TrueCounts:
        self._begin()
        return super()._counted

    @property
    def _marginals(self) -> BetaMixtures:
        self._begin()
        return super()._marginals

    def _made(
        self: N, true_counts: TrueCounts, categories: tuple[Label, ...], prior: tuple[float, ...]
    ) -> N:
        return type(self)(self.release, true_counts, categories, prior)

    def _smallest(self, places: list[int], mixture: BetaMixture) -> float:
        """Every law gives every data set some probability. A mechanism that states none may not,
        and the mixture says what there is.
        """
        of = self.release.releases if isinstance(self.release, Combination) else (self.release,)
        if all(is_lawful(release.mechanism) for release in of):
            return super()._smallest(places, mixture)
        return float(mixture.b.min())

    def marginal(self: N, *variables: str) -> N:
        """The posterior of the probabilities of one variable, or of a table of several in the order
        given, whatever the others are.

        The probability of a value is the sum of those of its cells, which is Dirichlet given the
        counts as they are, so nothing is lost. Values are in the order of the cells.
        Raises `ValueError`/`TypeError` for what is no table or no variable of it, and where less
        than two values remain.

        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release
        >>> promise = Promise(9, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> cells = (("n", "yes"), ("n", "no"), ("s", "yes"), ("s", "no"))
        >>> axes = ("region", "vote")
        >>> drawn, mechanism = (3, 2, 1, 3), LaplaceParameters(2.0)
        >>> table = Release(drawn, cells, (1.0,) * 4, mechanism, promise, axes).posterior
        >>> table.marginal("vote").categories
        ('yes', 'no')
        >>> table.conditional("vote", region="n").mean().round(2).tolist()
        [0.55, 0.45]
        """
        kept = positions_among(self.axes, variables)
        return self._collapsed(kept, range(len(self.categories)))

    def conditional(self: N, /, *variables: str, **given: Value) -> N:
        """The posterior of the probabilities of one variable, or of a table of several, among the
        records for which other variables have the values `given`.

        It is a mixture of Dirichlets too: probabilities within some cells are Dirichlet given their
        counts. Without `variables`, of all that are not given. Raises `ValueError`/`TypeError` for
        what is no table, no variable or no value of it, and where less than two values remain.
        """
        names = variables or [name for name in self.axes if name not in given]
        kept = positions_among(self.axes, names)
        check_others(given, names)
        inside = set(range(len(self.categories)))
        for place, value in zip(
            positions_among(self.axes, given, "given"), given.values(), strict=True
        ):
            inside &= cells_with(self.axes, self.categories, place, value)
        return self._collapsed(kept, sorted(inside))

    def _collapsed(self: N, kept: Sequence[int], inside: Sequence[int]) -> N:
        """The posterior of the variables at `kept` among the cells at `inside`."""
        labels, together = collapsed(self.axes, self.categories, kept, inside)
        found = self._true_counts
        if len(inside) < len(self.categories):
            found = found.given(inside)
        if together != [[number] for number in range(len(inside))]:
            found = found.merged(together)
        prior = tuple(sum(self.prior[inside[number]] for number in group) for group in together)
        made = self._made(found, labels, prior)
        made.axes = tuple(self.axes[place] for place in kept) if len(kept) > 1 else ()
        return made

    def _part(self: N, release: ReleasedData) -> N:
        """The posterior of one group of a table of groups: conditional on being in it."""
        inside = range(release.start, release.start + release.k)
        return type(self)(release, self._true_counts.given(inside))

    def compare(self, other: "NoiseAwarePosterior") -> Comparison:
        """The difference of the probabilities of each category, this posterior's minus the other's,
        for two independent data sets. Nothing is drawn.

        Raises `ValueError` if the two do not have the same categories in the same order.
        """
        if not are_same(self.categories, other.categories):
            raise ValueError(
                f"other: has the categories {other.categories}, not"
                f" {self.categories}; compare posteriors of the same categories."
            )
        behind = [independent_draws(each._true_counts) for each in (self, other)]
        laws = BetaDifferences(self._marginals, other._marginals)
        draws = 1 / sum(1 / each for each in behind) if np.inf not in behind else min(behind)

        def sample(size: int, seed: int | None) -> Floats:
            seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
            return self.sample(size, seeds[0]) - other.sample(size, seeds[1])

        return Comparison(self.categories, laws, draws, sample)

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
