r"""The probability of a release as a function of the counts that it was made from, up to a factor
that does not depend on them.

Nothing here needs to be private or exact to the last digit: the release is already public. Where a
sum over all candidates would take too long it is taken over cells (`laws.count_cells`), and smooth
functions of the counts are interpolated; `docs/research/computation.md` states the error and the
tests measure it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.normalisers import (
    POWER_WEIGHTS,
    POWERS,
    coin_curves,
    coin_sums_at,
    coin_tables,
    curves,
    distances,
    most_probable,
    normalisers_at,
    position,
    tables,
)
from opendp_bayes.mathematics.simplex import number_of_candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.exponential.permute_and_flip import flip_quadrature
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights, Flips, SimplexNoise
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import ReleasedData

#: Data sets of three or more categories up to which they are listed for an exponential mechanism.
LARGEST_LIST = 200_000
#: Data sets up to which the `log_pmf` of a mechanism that states no law is called for each.
_LARGEST_CALLS = 2_000
#: The largest scale of noise on the counts, which keeps sums of draws within machine integers.
_WITHIN_INTEGERS = 1e12


@dataclass(frozen=True, eq=False)
class OverCandidates(ABC):
    """Likelihood of what a mechanism has `drawn` that weighs all candidates by the Hellinger
    distances of their posteriors: it follows from sums over them, which are functions of the data
    set. These are curves for two categories, and for more, tables of all data sets.
    """

    drawn: Integers
    prior: Floats
    law: Any

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.drawn.sum())

    def distances(self, counts: Integers) -> Floats:
        """Hellinger distances of posteriors from the released one, shape `(m,)`."""
        return distances(counts, self.drawn, self.prior)

    def log_likelihood(self, counts: Integers) -> Floats:
        """Log-likelihood of every row of `counts`, shape `(m, k)`; for two categories, or as few
        data sets as can be listed.
        """
        key = self.law, self.size, tuple(self.prior.tolist())
        if self.prior.size == 2:
            return self._from_sums(self._curves(*key)(position(counts[:, 0], self.size)), counts)
        return self._from_sums(self._tables(*key)[ranks(counts, self.size)], counts)

    def computed(self, counts: Integers) -> Floats:
        """Log-likelihood of some of the data sets that can be listed, without interpolation."""
        prior = tuple(self.prior.tolist())
        return self._from_sums(
            self._sums_at(ranks(counts, self.size), self.law, self.size, prior), counts
        )

    #: The sums, shape `(m, functions)`: of two categories, of all data sets, and of some of these.
    _curves: ClassVar[Callable[..., Any]]
    _tables: ClassVar[Callable[..., Floats]]
    _sums_at: ClassVar[Callable[..., Floats]]

    @abstractmethod
    def _from_sums(self, sums: Floats, counts: Integers) -> Floats:
        """Log-likelihood of rows of counts whose sums are known."""


@dataclass(frozen=True, eq=False)
class Weighing(OverCandidates):
    """`exp(-H(posterior(x), released) / w(x)) / Z(x)`, of which the normaliser `Z(x)` is a sum over
    all candidates.
    """

    law: ExponentialWeights
    _curves = staticmethod(curves)
    _tables = staticmethod(tables)
    _sums_at = staticmethod(normalisers_at)

    def _from_sums(self, sums: Floats, counts: Integers) -> Floats:
        log_width, log_normaliser = sums.T
        return -self.distances(counts) * np.exp(-log_width) - log_normaliser


@dataclass(frozen=True, eq=False)
class Flipping(OverCandidates):
    """Permute-and-flip: `p_r` times the integral over t from 0 to 1 of `prod_{s != r} (1 - t p_s)`,
    `p_s = exp(-H(posterior(x), s) / scale)`.

    The product over the candidates other than x and r is written with power sums of their coins,
    `ln prod (1 - t p_s) = -sum_m t^m S_m / m`, of which the later terms are an integral over m.
    """

    law: Flips
    _curves = staticmethod(coin_curves)
    _tables = staticmethod(coin_tables)
    _sums_at = staticmethod(coin_sums_at)

    def _from_sums(self, sums: Floats, counts: Integers) -> Floats:
        sums = np.exp(sums)
        exponents = self.distances(counts) / self.law.scale
        coins = np.exp(-exponents)
        points, weights, ends = flip_quadrature(sums[:, 0])
        terms = POWER_WEIGHTS * sums * ends[:, None] ** POWERS
        integral = np.zeros(len(counts))
        for point, weight in zip(points, weights, strict=True):
            t = point * ends
            log_product = np.log1p(-t) - terms @ point**POWERS
            integral += weight * ends * np.exp(log_product) / (1 - t * coins)
        return np.log(integral) - exponents


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A likelihood that the mechanism computes itself, for rows of counts of shape `(m, k)`."""

    drawn: Integers
    log_likelihood: Callable[[Integers], Floats]


Likelihood = DrawnCounts | Weighing | Flipping | Tabulated


def likelihood_of(setting: Setting, drawn: ArrayLike) -> Likelihood:
    """The likelihood of what a mechanism has `drawn`, shape `(k,)`, in its setting.

    Raises
    ------
    ValueError
        For noise of a scale beyond 10^12, and where a mechanism that does not state its law has no
        other way to a likelihood (`_tabulated_likelihood`).
    """
    drawn = np.asarray(drawn, dtype=np.int64)
    if setting.law is None:
        return _tabulated_likelihood(setting, drawn)
    return _of_law(setting.law, setting, drawn)


def noise_of(argument: str, release: ReleasedData) -> DrawnCounts:
    """Read what was drawn for a release, which an argument names, with its noise.

    Raises
    ------
    ValueError
        Where that is not noise on each count.
    """
    likelihood = likelihood_of(release.setting, release.noisy_counts)
    if not isinstance(likelihood, DrawnCounts):
        raise ValueError(
            f"{argument}: was made by {release.mechanism.name!r}; needs noise on the counts, as"
            " KNormParameters, LaplaceParameters and GaussianParameters draw."
        )
    return likelihood


def _tabulated_likelihood(setting: Setting, released: Integers) -> Tabulated:
    """The likelihood of `released`, shape `(k,)`, under a mechanism that does not state its law.

    It may have a method `log_likelihood(released, counts, prior)`: the
    log-probability of `released` given each row of `counts`, shape `(m, k)`, up to a constant
    common to all rows. Otherwise its `log_pmf` is called for every data set, of which there may be
    2000. Raises `ValueError` where neither is possible.
    """
    mechanism: Any = setting.mechanism
    prior, size = setting.prior_array, setting.size
    if size is None:
        raise ValueError(
            f"mechanism={mechanism.name!r}: states no law, and with a private number of records a"
            " posterior needs noise on the counts (docs: Extending, The law)."
        )
    if hasattr(mechanism, "log_likelihood"):
        return Tabulated(released, partial(_of_plugin, mechanism, released, prior))
    if (number := number_of_candidates(size, released.size)) > _LARGEST_CALLS:
        raise ValueError(
            f"mechanism={mechanism.name!r}: its log_pmf would have to be called for {number:.3g}"
            f" data sets; the limit is {_LARGEST_CALLS}. Give the mechanism a method"
            " log_likelihood(released, counts, prior), for counts of shape (m, k) (docs: Reading a"
            " posterior)."
        )
    return Tabulated(released, partial(_of_every_data_set, mechanism, released, prior))


def _of_plugin(mechanism: Any, released: Integers, prior: Floats, counts: Integers) -> Floats:
    result = np.asarray(mechanism.log_likelihood(released, counts, prior), dtype=np.float64)
    if result.shape != (len(counts),) or not np.all(result < np.inf):
        raise ValueError(
            f"mechanism={mechanism.name!r}: its log_likelihood returned nan, inf or the shape"
            f" {result.shape} for {len(counts)} rows of counts; it must return one number below inf"
            " for each."
        )
    return result


def _of_every_data_set(
    mechanism: Any, released: Integers, prior: Floats, counts: Integers
) -> Floats:
    result = np.empty(len(counts))
    for row, data in enumerate(counts):
        support, log_p = mechanism.log_pmf(data, prior)
        result[row] = logsumexp(log_p[(support == released).all(axis=1)])
    return result


def log_likelihoods(
    likelihoods: Sequence[Likelihood], counts: Integers, log_prior: Floats
) -> Floats:
    """The log-likelihood of all releases together at every data set, in lexicographic order, shape
    `(data sets, k)`.

    Where it is interpolated in tables, it is computed at the data sets that are most probable given
    all releases and what they weigh without them, `log_prior`; what it is off by there, in the
    mean, is taken off the others.
    """
    by_release = [likelihood.log_likelihood(counts) for likelihood in likelihoods]
    log_weights = log_prior + np.sum(by_release, axis=0)
    probable = most_probable(log_weights)
    if probable.size and counts.shape[1] > 2:
        share = softmax(log_weights[probable])
        for likelihood, values in zip(likelihoods, by_release, strict=True):
            if isinstance(likelihood, OverCandidates):
                computed = likelihood.computed(counts[probable])
                values -= share @ (values[probable] - computed)
                values[probable] = computed
    return np.asarray(np.sum(by_release, axis=0))


@singledispatch
def _of_law(law: Any, setting: Setting, noisy_counts: Integers) -> Likelihood:
    raise TypeError(f"law={law!r}: has no likelihood; add a handler for its family.")


@_of_law.register
def _(law: AdditiveNoise, setting: Setting, noisy_counts: Integers) -> Likelihood:
    _check_scale(law.noise.scale)
    if not all(law.noised):
        _check_total(noisy_counts, setting.size)
    return DrawnCounts.of(noisy_counts, law.noise, law.noised)


@_of_law.register
def _(law: SimplexNoise, setting: Setting, noisy_counts: Integers) -> Likelihood:
    # Of counts with the sum of what was drawn, half of the norm on each side is noise on each.
    _check_scale(law.scale)
    _check_total(noisy_counts, setting.size)
    return DrawnCounts.of(noisy_counts, DiscreteLaplace(2 * law.scale))


@_of_law.register
def _(law: ExponentialWeights, setting: Setting, noisy_counts: Integers) -> Likelihood:
    _check_counts(noisy_counts, setting.size)
    return Weighing(noisy_counts, setting.prior_array, law)


@_of_law.register
def _(law: Flips, setting: Setting, noisy_counts: Integers) -> Likelihood:
    _check_counts(noisy_counts, setting.size)
    k, size = noisy_counts.size, int(noisy_counts.sum())
    if k > 2 and number_of_candidates(size, k) > LARGEST_LIST:
        # So many coins that all products are exponentials: their sum is what matters.
        return Weighing(noisy_counts, setting.prior_array, law.limit)
    return Flipping(noisy_counts, setting.prior_array, law)


def _check_scale(scale: float) -> None:
    if scale > _WITHIN_INTEGERS:
        raise ValueError(
            f"scale={scale!r}: must be at most {_WITHIN_INTEGERS:.0e} records; noise of a larger"
            " scale leaves nothing to learn from a release."
        )


def _check_total(noisy_counts: Integers, size: int | None) -> None:
    if sum(noisy_counts.tolist()) != size:  # machine integers may overflow
        raise ValueError(
            f"noisy_counts={noisy_counts.tolist()}: must sum to size={size}, which this mechanism"
            " keeps; no run of it draws anything else."
        )


def _check_counts(noisy_counts: Integers, size: int | None) -> None:
    if noisy_counts.min() < 0:
        raise ValueError(
            f"noisy_counts={noisy_counts.tolist()}: must be at least 0, because this mechanism"
            " draws counts."
        )
    _check_total(noisy_counts, size)
