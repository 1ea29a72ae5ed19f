"""The posteriors of groups that borrow strength from each other."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.conditionals import keyed
from opendp_bayes.inference.dirichlet import dirichlet
from opendp_bayes.inference.estimates import Estimate
from opendp_bayes.inference.likelihood import IndependentNoise, likelihood_of
from opendp_bayes.inference.markov_chain import Diagnostics, r_hat_and_ess
from opendp_bayes.inference.pooling import Chains, Model
from opendp_bayes.inference.shown import Shown
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_prior, as_size
from opendp_bayes.released.data import Key, Label, ReleasedData
from opendp_bayes.report.sheet import Body, Column, Sheet, Table
from opendp_bayes.report.wording import group_name

if TYPE_CHECKING:
    import polars as pl

#: Chains, sweeps of the first run, of which a quarter is dropped, and doublings of it.
_CHAINS, _FIRST_RUN, _DOUBLINGS = 4, 400, 4
#: The median of the prior of κ, in records, which is log-logistic.
_MEDIAN = 10.0
#: Fewer effective draws are warned about, or a larger R-hat.
_FEWEST_EFFECTIVE, _LARGEST_R_HAT = 50, 1.1


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
        total, mixtures = self.concentration.sum(axis=1), []
        weights = np.full(total.size, 1 / total.size)
        for a in self.concentration.T:
            alike = keyed(a, total - a, weights, a, total - a)
            mixtures.append(BetaMixture.grouped(alike.a, alike.b, alike.weights, alike.key))
        return BetaMixtures.joined(mixtures)

    def __repr__(self) -> str:
        shown = zip(self.categories, self.mean(), self.std(), strict=True)
        text = ", ".join(f"{label!r}: {mean:.4g} ± {std:.2g}" for label, mean, std in shown)
        return f"PooledPosterior({{{text}}})"


class Pooled(Shown, Mapping[Key, PooledPosterior]):
    """A mapping from each group to its `PooledPosterior`, made by `GroupedRelease.pooled`.

    Attributes
    ----------
    categories : the labels of the categories.
    kappa : draws of κ, in records that the other groups are worth to one; shape `(draws,)`.
    m : draws of the mean probabilities, shape `(draws, k)`.
    diagnostics : of the chains (`Diagnostics`): R-hat and effective draws of ln κ first, then of
        every entry of m.
    """

    def __init__(
        self, groups: tuple[Key, ...], categories: tuple[Label, ...], a: Floats, counts: Integers
    ) -> None:
        self.categories = categories
        self._groups, self._a, self._counts = groups, a.reshape(-1, a.shape[-1]), counts
        self.kappa = self._a.sum(axis=1)
        self.m = self._a / self.kappa[:, None]
        self.diagnostics = replace(diagnostics_of(a), categories=("ln κ", *categories))

    def __getitem__(self, key: Key) -> PooledPosterior:
        if key not in self._groups:
            shown = ", ".join(map(repr, self._groups))
            raise KeyError(f"{key!r}: is not a group; the groups are {shown}.")
        counts = self._counts[..., self._groups.index(key), :].reshape(self._a.shape)
        return PooledPosterior(self.categories, self._a + counts)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for every group and category: `mean`, `std`, and the ends
        `lower` and `upper` of the equal-tailed interval of probability `level`.

        `group` and `category` are text. Raises `ValueError` unless `0 < level < 1`.
        """
        import polars as pl

        parts = []
        for key, one in self.items():
            lower, upper = one.interval(level)
            parts.append(
                pl.DataFrame(
                    {
                        "group": [group_name(key)] * len(self.categories),
                        "category": list(map(group_name, self.categories)),
                        "mean": one.mean(),
                        "std": one.std(),
                        "lower": lower,
                        "upper": upper,
                    }
                )
            )
        return pl.concat(parts)

    def sheet(self, level: float = 0.95) -> Sheet:
        """What tables show: means and intervals of probability `level` for every group, how alike
        the groups are, and the diagnostics. Raises `ValueError` unless `0 < level < 1`.
        """
        bodies = []
        for key, one in self.items():
            shown = Estimate(one.mean(), one.std(), *one.interval(level)).shown()
            rows = zip(map(group_name, self.categories), *shown, strict=True)
            bodies.append(Body(tuple(rows), group=group_name(key)))
        columns = (
            *(Column(name, number=False) for name in ("Group", "Category")),
            *(Column(name) for name in ("Pooled\nmean", f"{100 * level:.6g} %\ninterval")),
        )
        ends = [0.5, (1 - level) / 2, (1 + level) / 2]
        middle, low, high = map(_records, np.quantile(self.kappa, ends))
        notes = (
            f"The others are worth {middle} records to a group ({100 * level:.6g} %: {low} to"
            f" {high}).",
            f"Markov chains: R-hat {self.diagnostics.r_hat.max():.3f}, effective draws"
            f" {self.diagnostics.ess.min():.0f}.",
        )
        return Sheet((Table(columns, tuple(bodies)),), notes)

    def __rich__(self) -> Any:
        from opendp_bayes.report import terminal  # which needs rich, of the extra `cli`

        return terminal.rendered(self.sheet())

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.kappa, [0.025, 0.5, 0.975])
        return (
            f"Pooled({len(self)} groups, kappa={middle:.3g} (95 %: {low:.3g} to {high:.3g}),"
            f" R-hat {self.diagnostics.r_hat.max():.3f}, ESS {self.diagnostics.ess.min():.0f})"
        )


def _records(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def diagnostics_of(a: Floats) -> Diagnostics:
    """Of draws of κ m, shape `(chains, draws, k)`."""
    kappa = a.sum(axis=-1, keepdims=True)
    values = np.concatenate([np.log(kappa), a / kappa], axis=-1)
    found = [r_hat_and_ess(values[..., i]) for i in range(values.shape[-1])]
    r_hat, ess = zip(*found, strict=True)
    return Diagnostics(np.array(r_hat), np.array(ess), *a.shape[:2])


def pooled(
    releases: Mapping[Key, ReleasedData],
    *,
    m_prior: ArrayLike = 1.0,
    kappa_prior: Any = None,
    effective_draws: int = 100,
    seed: int | None = 0,
) -> Pooled:
    """`GroupedRelease.pooled`, of releases of the same categories with noise on all counts."""
    keys: tuple[Key, ...] = tuple(releases)
    each = list(releases.values())
    first = each[0]
    prior = as_prior(m_prior, first.k)
    kappa_prior = stats.fisk(1.0, scale=_MEDIAN) if kappa_prior is None else kappa_prior
    support = getattr(kappa_prior, "support", lambda: (-1.0, 0.0))()
    if not callable(getattr(kappa_prior, "logpdf", None)) or support[0] < 0:
        raise ValueError(
            f"kappa_prior={kappa_prior!r}: must be a frozen continuous distribution on positive"
            " numbers, such as scipy.stats.gamma(2, scale=10)."
        )
    effective = as_size(effective_draws, "effective_draws")
    drawn = np.array([release.drawn for release in each])
    likelihood = likelihood_of(first.mechanism, drawn[0], np.array(first.prior), None)
    assert isinstance(likelihood, IndependentNoise)  # noqa: S101  # the only kind of a grouped release
    chains = Chains(
        Model(drawn, likelihood.noise, prior, kappa_prior), _CHAINS, np.random.default_rng(seed)
    )
    a, counts = _run(chains, effective)
    found = Pooled(keys, first.categories, a, counts)
    ess, r_hat = found.diagnostics.ess.min(), found.diagnostics.r_hat.max()
    if ess < min(effective, _FEWEST_EFFECTIVE) or r_hat > _LARGEST_R_HAT:
        warnings.warn(
            f"the chains of kappa and m have not met: effective sample size {ess:.0f}, R-hat"
            f" {r_hat:.3f} (docs: Groups that borrow strength). Ask for more effective_draws, or"
            " give a narrower kappa_prior.",
            stacklevel=3,
        )
    return found


def _run(chains: Chains, effective: int) -> tuple[Floats, Integers]:
    """κ m and the counts after each sweep, `(chains, draws, k)` and `(chains, draws, G, k)`."""
    a: list[Floats] = []
    counts: list[Integers] = []
    for _ in range(_FIRST_RUN // 4):
        chains.sweep(adapt=True)
    wanted = _FIRST_RUN - _FIRST_RUN // 4
    for _ in range(_DOUBLINGS + 1):
        while len(a) < wanted:
            chains.sweep(adapt=False)
            a.append(chains.concentration)
            counts.append(chains.counts.copy())
        found = diagnostics_of(np.stack(a, axis=1))
        if found.ess.min() >= effective and found.r_hat.max() < 1.05:
            break
        wanted *= 2
    # The first quarter may still remember where the chains began.
    kept = slice(len(a) // 4, None)
    return np.stack(a[kept], axis=1), np.stack(counts[kept], axis=1)
