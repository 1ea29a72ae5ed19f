r"""The probability of a release as a function of the counts that it was made from, up to a factor
that does not depend on them.

Nothing here needs to be private or exact to the last digit: the release is already public. Where a
sum over all candidates would take too long it is taken over cells (`laws.count_cells`), and smooth
functions of the counts are interpolated; `docs/research/computation.md` states the error and the
tests measure it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.normalisers import distances, normalisers
from opendp_bayes.mathematics.simplex import number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.exponential.permute_and_flip import flip_quadrature
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import (
    AdditiveNoise,
    ExponentialWeights,
    Flips,
    SimplexNoise,
    Widths,
)
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import ReleasedData

#: Data sets of three or more categories up to which they are listed.
LARGEST_LIST = 200_000
#: Of an exponential mechanism: each is compared with all candidates, in a second or two.
LARGEST_COMPARED = 10_000
#: Data sets up to which the `log_pmf` of a mechanism that states no law is called for each.
_LARGEST_CALLS = 2_000
#: The least sum of the coins of permute-and-flip: what an interpolated normaliser may be off by.
_NO_COINS = 1e-5
#: The largest scale of noise on the counts, which keeps sums of draws within machine integers.
_WITHIN_INTEGERS = 1e12


@dataclass(frozen=True, eq=False)
class Weighing:
    """Likelihood of what a mechanism has `drawn` that weighs all candidates by the Hellinger
    distances of their posteriors, `exp(-H(posterior(x), drawn) / w(x)) / Z(x)`, of which the
    normaliser `Z(x)` is a sum over all candidates.
    """

    drawn: Integers
    prior: Floats
    widths: Widths
    #: Powers of the weights whose sums it follows from.
    powers: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.drawn.sum())

    def log_likelihood(self, counts: Integers) -> Floats:
        """Log-likelihood of every row of `counts`, shape `(m, k)`; for two categories, or as few
        data sets as are listed.
        """
        prior = tuple(self.prior.tolist())
        values = normalisers(self.widths, self.powers, self.size, prior)(counts)
        return self.given(counts, values[:, 0], values[:, 1:])

    def given(self, counts: Integers, log_widths: Floats, log_sums: Floats) -> Floats:
        """Log-likelihood of rows of counts whose `ln w`, shape `(m,)`, is known, and the logarithms
        of the sums of the first powers of the weights, shape `(m, powers)`.
        """
        return -self._exponents(counts, log_widths) - log_sums[:, 0]

    def _exponents(self, counts: Integers, log_widths: Floats) -> Floats:
        return distances(counts, self.drawn, self.prior) * np.exp(-log_widths)


class Flipping(Weighing):
    """Permute-and-flip: `p_r` times the integral over t from 0 to 1 of `prod_{s != r} (1 - t p_s)`,
    where the weights `p_s = exp(-H(posterior(x), s) / scale)` are those of coins.

    The product is written with power sums of the coins other than that of x, which is certain:
    `-ln prod (1 - t p_s) = sum_m t^m S_m / m`. From the last known one on they are taken for those
    of coins that are all alike; if only `S_1` is known, of as many as there are candidates.
    """

    powers = 4

    def given(self, counts: Integers, log_widths: Floats, log_sums: Floats) -> Floats:
        exponents = self._exponents(counts, log_widths)
        sums = np.maximum(np.expm1(log_sums), _NO_COINS)
        power = np.arange(1, sums.shape[1] + 1)
        number = float(number_of_candidates(self.size, self.prior.size))
        before = sums[:, -2] if power.size > 1 else number
        coin = np.minimum(sums[:, -1] / before, 1.0)
        alike = sums[:, -1] / coin ** power[-1]
        rest = (sums - alike[:, None] * coin[:, None] ** power) / power
        integral, own = np.zeros(len(counts)), np.exp(-exponents)
        points, weights, ends = flip_quadrature(sums[:, 0])
        for point, weight in zip(points, weights, strict=True):
            t = point * ends
            log_product = alike * np.log1p(-t * coin) - (rest * t[:, None] ** power).sum(axis=1)
            integral += weight * ends * np.exp(np.log1p(-t) + log_product) / (1 - t * own)
        return np.log(integral) - exponents


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A likelihood that the mechanism computes itself, for rows of counts of shape `(m, k)`."""

    drawn: Integers
    log_likelihood: Callable[[Integers], Floats]


Likelihood = DrawnCounts | Weighing | Tabulated


def likelihood_of(setting: Setting, drawn: ArrayLike) -> Likelihood:
    """The likelihood of what a mechanism has `drawn`, shape `(k,)`, in its setting.

    Raises
    ------
    ValueError
        For noise of a scale beyond 10^12, for what the mechanism cannot draw, and where one that
        does not state its law has no other way to a likelihood (`_tabulated_likelihood`).
    TypeError
        For a law of an unknown family.
    """
    drawn = np.asarray(drawn, dtype=np.int64)
    match setting.law:
        case None:
            return _tabulated_likelihood(setting, drawn)
        case AdditiveNoise(noise=noise, noised=noised):
            _check_scale(noise.scale)
            if not all(noised):
                _check_sum(drawn, setting.size)
            return DrawnCounts.of(drawn, noise, noised)
        case SimplexNoise(scale=scale):
            # Of counts with the sum of what was drawn, half of the norm on each side is noise on
            # each.
            _check_scale(scale)
            _check_sum(drawn, setting.size)
            return DrawnCounts.of(drawn, DiscreteLaplace(2 * scale))
        case ExponentialWeights(widths=widths):
            _check_sum(drawn, setting.size, of_counts=True)
            return Weighing(drawn, setting.prior_array, widths)
        case Flips(limit=limit):
            _check_sum(drawn, setting.size, of_counts=True)
            return Flipping(drawn, setting.prior_array, limit.widths)
        case law:
            raise TypeError(f"law={law!r}: has no likelihood; add a case for its family.")


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
    2000. Raises `ValueError` where neither is possible; a private number of records has no list of
    data sets, which a way to the posterior refuses.
    """
    mechanism: Any = setting.mechanism
    prior, size = setting.prior_array, setting.size
    if hasattr(mechanism, "log_likelihood"):
        return Tabulated(released, partial(_of_plugin, mechanism, released, prior))
    number = 0 if size is None else number_of_candidates(size, released.size)
    if number > _LARGEST_CALLS:
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


def _check_scale(scale: float) -> None:
    if scale > _WITHIN_INTEGERS:
        raise ValueError(
            f"scale={scale!r}: must be at most {_WITHIN_INTEGERS:.0e} records; noise of a larger"
            " scale leaves nothing to learn from a release."
        )


def _check_sum(noisy_counts: Integers, size: int | None, *, of_counts: bool = False) -> None:
    """Raise `ValueError` for what a mechanism cannot draw that keeps the number of records, or that
    draws counts.
    """
    is_below = of_counts and noisy_counts.min() < 0
    if is_below or sum(noisy_counts.tolist()) != size:  # machine integers may overflow
        least = "be at least 0 and " if of_counts else ""
        raise ValueError(
            f"noisy_counts={noisy_counts.tolist()}: must {least}sum to size={size}, which this"
            " mechanism keeps; no run of it draws anything else."
        )
