r"""The common part of the exponential mechanisms: `P(r | x) ∝ exp(-H(posterior(x), r) / w(x))` over
every posterior of the same size.

They differ in the width `w(x)` and in what can be proved about it. The probability that the sampler
realises is within `exp(±2 e)` of this law, where `e` is `exponent_error`; a log-likelihood ratio is
therefore within `4 e` of the ideal one, and `certified_loss` adds that.
"""

import math
from abc import abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp

from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.exponential.sensitivity import RELATIVE_ERROR, global_sensitivity
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.rounding import round_up, upper_end
from opendp_bayes.mathematics.simplex import (
    candidate_sums,
    candidates,
    check_enumerable,
    log_number_of_candidates,
)
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_counts,
    as_distance,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms.laws import ExponentialWeights, Widths
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import DrawnCounts
from opendp_bayes.samplers.exponential.hellinger_candidates import (
    HellingerSampler,
    check_categories,
)


class Chosen(DrawnCounts):
    """A mechanism that chooses one of the candidates."""

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Return the draw unchanged: it is counts already."""
        return drawn

    @abstractmethod
    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` for sizes and priors that it cannot be used for."""

    def _checked(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        counts = as_counts(counts)
        prior, size = as_prior(prior, counts.size), int(counts.sum())
        self.check(size=as_size(size) if size else 0, prior=prior)
        return counts, prior


def public_size(user: str, size: int | None) -> int:
    """Return `size`; raise `ValueError` that names `user` where it is private: the candidates
    depend on it.
    """
    if size is None:
        raise ValueError(
            f"{user}: its candidates are the posteriors of `size` records, so the number of records"
            " must be public. Under add/remove neighbours use LaplaceParameters, or state the"
            " privacy unit as changes and pass size=."
        )
    return size


def candidate_distances(counts: Integers, prior: Floats) -> Floats:
    """`H(posterior(counts), r)` for every candidate `r` in the order of `simplex.candidates`, shape
    `(c,)`, entries in `[0, 1]`.

    By the separable form: k tables of size + 1 gaps, then sums. The distance of `counts` to
    themselves is exactly 0.
    """
    split = np.arange(counts.sum() + 1)
    counts_of_category = counts[:, None]
    tables = gap_above(
        prior[:, None] + np.minimum(counts_of_category, split),
        np.abs(split - counts_of_category) / 2,
    )
    return distance_from_divergence(candidate_sums(list(tables)))


def score_error(k: int) -> Fraction:
    """Bound on the absolute error of an entry of `candidate_distances` for `k` categories (docs:
    Numerics, "Scores").
    """
    return Fraction(RELATIVE_ERROR) + Fraction(k + 8, 2**53)


def score_change(d_in: int, *, size: int, prior: Floats) -> float:
    """Bound on the change of any computed score between data sets at distance `d_in`: `d_in GS`,
    and the error of a score at each of the two.

    Rounded up; 0 at distance 0. `prior` has shape `(k,)`. Source: `docs/research/proofs.md`,
    "Scores".
    """
    records = as_distance(d_in)
    if records == 0:
        return 0.0
    largest_change = Fraction(upper_end(global_sensitivity(size, prior), RELATIVE_ERROR))
    return round_up(records * largest_change + 2 * score_error(prior.size))


#: A mechanism is refused where more than this share of its releases would not depend on the data,
#: whatever they are,
LARGEST_UNIFORM_SHARE = 0.99
#: unless it has at most so many candidates: then the scale is at fault, not their number.
FEW_CANDIDATES = 1000


class PosteriorExponential(Chosen, Widths):
    """Exponential mechanism over the simplex of candidate posteriors. Subclasses are frozen
    dataclasses with a `scale`, and have a `width` and a `smallest_width`.
    """

    def law(self, size: int | None, prior: Floats) -> ExponentialWeights:
        """Exponential weights with the width of this mechanism."""
        return ExponentialWeights(self)

    @abstractmethod
    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """Certified loss between data sets at distance `d_in`."""

    def log_error(self, size: int, prior: Floats) -> float:
        """As in `Widths`: both log-probabilities are within `2 exponent_error` of the ideal."""
        return round_up(4 * exponent_error(self.smallest_width(size, prior), prior.size))

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` where the size is private, because the candidate set depends on it."""
        public_size(type(self).__name__, size)
        check_categories(prior.size)

    def check_informative(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` where nearly every release would ignore the data.

        This is decided from public numbers: `uniform_share` at the smallest width
        (`docs/research/mechanisms.md`, "Many candidates").
        """
        size = public_size(type(self).__name__, size)
        log_candidates = log_number_of_candidates(size, prior.size)
        share = uniform_share(size, prior, 1 / self.smallest_width(size, prior))
        if share < LARGEST_UNIFORM_SHARE or log_candidates <= math.log(FEW_CANDIDATES + 0.5):
            return
        epsilon = self.proven_loss(1, size=size, prior=prior).epsilon
        same_loss = (
            f"(scale={1 / epsilon:.3g}), which has the same loss," if math.isfinite(epsilon) else ""
        )
        raise ValueError(
            f"scale={self.scale!r}: with size={size} and {prior.size} categories there are so many"
            f" candidates that about {math.floor(1000 * share) / 10}% or more of the releases of"
            f" {type(self).__name__} would be uniform draws from them, whatever the data. Use"
            f" KNormParameters{same_loss} or a smaller scale."
        )

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, in lexicographic order, and their log-probabilities given
        `counts`, shape `(c,)`.

        Raises
        ------
        ValueError
            If there are too many candidates to enumerate.
        """
        counts, prior = self._checked(counts, prior)
        size, k = int(counts.sum()), counts.size
        check_enumerable(size, k)
        exponents = np.zeros(1)
        if size:
            exponents = candidate_distances(counts, prior) / self.width(counts, prior)
        return candidates(size, k), -exponents - logsumexp(-exponents)

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw candidates, shape `(draws, k)`, for any number of records and categories, by
        `opendp_bayes.samplers.exponential.hellinger_candidates`.
        """
        counts, prior = self._checked(counts, prior)
        if not counts.any():
            return np.zeros((draws, counts.size), dtype=np.int64)
        return HellingerSampler(counts, prior, self.width(counts, prior)).draw(draws)


def uniform_share(size: int, prior: Floats, largest_exponent: float) -> float:
    """About the smallest probability, over all data sets, that a release is a uniform draw,
    independent of the data; exponents are at most `c`.

    With `e^-c` of the weight of every candidate set aside, the release is uniform with probability
    floor / (floor + peak). The peak is largest for counts that are all equal.
    """
    equal = np.full((1, prior.size), (size + math.fsum(prior)) / prior.size)
    log_floor, log_peak = floor_and_peak(size, equal, np.array([largest_exponent]))
    return float(expit(log_floor - log_peak)[0])


def floor_and_peak(
    size: int, concentrations: Floats, largest_exponents: Floats
) -> tuple[Floats, Floats]:
    """Logarithms of the two parts of the normaliser: `|R| e^-c`, and about `sum over r of e^(-c H)
    - e^-c`; shapes `(m,)`.

    For posteriors `a` of shape `(m, k)` and exponents that are at most `c`, shape `(m,)`. `H^2 = 1
    - e^-D` and `D` is nearly `sum_i (r_i - x_i)^2 / (8 a_i)`, so that the sum becomes an integral
    over the radius (`docs/research/mechanisms.md`, "Many candidates").
    """
    # The same exponent of many data sets, where widths are those of all, has one integral.
    exponents, place = np.unique(largest_exponents, return_inverse=True)
    c, j = exponents[:, None], concentrations.shape[1] - 1
    log_candidates = log_number_of_candidates(size, j + 1)
    log_sphere = math.log(2) + j / 2 * math.log(math.pi) - math.lgamma(j / 2)
    # Of the lattice, in a unit of volume.
    log_points = (
        j / 2 * math.log(8)
        + (np.log(concentrations).sum(axis=1) - np.log(concentrations.sum(axis=1))) / 2
    )
    # The integrand over the logarithm of the radius; it has its bulk between k / c and sqrt(k).
    largest = float(largest_exponents.max())
    log_radius = np.linspace(
        -math.log1p(largest) - 14,
        math.log(math.sqrt(j) + 10 + math.sqrt(2 * math.log1p(largest))),
        1000,
    )
    squared = np.exp(2 * log_radius)
    distance = distance_from_divergence(squared)
    with np.errstate(divide="ignore"):  # far away there is nothing above e^-c
        excess = -c * distance + np.log(-np.expm1(-c * np.exp(-squared) / (1 + distance)))
    log_integral = (
        log_sphere
        + log_points
        + log_sum_exp(j * log_radius + excess, axis=1)[place]
        + math.log(log_radius[1] - log_radius[0])
    )
    log_peak = np.minimum(
        np.logaddexp(log_integral, 0.0), log_candidates + np.log(-np.expm1(-largest_exponents))
    )
    return log_candidates - largest_exponents, log_peak


def exponent_error(smallest_width: float, k: int) -> Fraction:
    """Bound on the error of the logarithm of an unnormalised probability, given a lower bound on
    the width.

    An exponent is at most `1 / smallest_width`; its relative error is that of the distance
    (`RELATIVE_ERROR`, and k roundings of the sum) and of the width (`RELATIVE_ERROR` and a few
    roundings). The sampler's decisions add `2^-47` of the exponent and `2^-41` for each category
    (`docs/research/numerics.md`, "Acceptance"). Proof: `docs/research/proofs.md`, "The sampler's
    error".
    """
    largest = round_up(1 / Fraction(smallest_width))
    relative = 2 * Fraction(RELATIVE_ERROR) + Fraction(k + 8, 2**53) + Fraction(1, 2**47)
    return Fraction(largest) * relative + Fraction(k, 2**41)


def certified_loss(ideal: Fraction, error: Fraction) -> PrivacyLoss:
    """The loss of an exponential mechanism whose ideal log-likelihood ratio has sup and spread at
    most `ideal`, sampled within `error`.

    The normaliser adds nothing to the spread, and a spread of `r` gives `r^2 / 8` under
    zero-concentrated divergence (`docs/research/proofs.md`, "The exponential mechanism", "Bounded
    range" and "The sampler's error").
    """
    bound = ideal + 4 * error
    return PrivacyLoss(epsilon=round_up(bound), range=round_up(bound), rho=round_up(bound**2 / 8))
