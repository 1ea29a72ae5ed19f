r"""What the exponential mechanisms share: `P(r | x) ∝ exp(-H(posterior(x), r) / w(x))` over every posterior of the same size.

They differ in the width `w(x)` and in what can be proved about it. The probability that the sampler realises is within `exp(±2 e)` of this law,
where `e` is `exponent_error`; a log-likelihood ratio is therefore within `4 e` of the ideal one, and `certified_loss` adds that.
"""

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes._rounding import round_up
from opendp_bayes._validation import Floats, Integers, as_counts, as_prior
from opendp_bayes.mechanisms.scores import candidate_distances, check_candidates
from opendp_bayes.privacy_loss import PrivacyLoss
from opendp_bayes.sampling import ExactCategorical, draws, weight_error
from opendp_bayes.sensitivity import RELATIVE_ERROR
from opendp_bayes.simplex import candidate, candidates


class PosteriorExponential(ABC):
    """Exponential mechanism over the simplex of candidate posteriors, sampled by enumeration. Subclasses are frozen dataclasses."""

    @abstractmethod
    def _width(self, counts: Integers, prior: Floats) -> float:
        """`w(x)`, within `RELATIVE_ERROR` and two roundings."""

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` where the size is private (the candidate set depends on it) or there are too many candidates."""
        check_candidates(type(self).__name__, size=size, k=prior.size)

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, in lexicographic order, and their log-probabilities given `counts`, shape `(c,)`.

        Raises `ValueError` if there are too many candidates to enumerate.
        """
        counts, prior = self._checked(counts, prior)
        exponents = self._exponents(counts, prior)
        return candidates(int(counts.sum()), counts.size), -exponents - logsumexp(-exponents)

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` releases, shape `(size, k)`, from the exact categorical sampler of `opendp_bayes.sampling`."""
        counts, prior = self._checked(counts, prior)
        sampler = ExactCategorical(self._exponents(counts, prior))
        n = int(counts.sum())
        return np.array([candidate(int(index), n, counts.size) for index in draws(sampler, size)], dtype=np.int64).reshape(size, counts.size)

    def _checked(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        counts = as_counts(counts)
        prior = as_prior(prior, counts.size)
        self.check(size=int(counts.sum()), prior=prior)
        return counts, prior

    def _exponents(self, counts: Integers, prior: Floats) -> Floats:
        """`H(posterior(x), r) / w(x)` for every candidate."""
        if not counts.any():
            return np.zeros(1)
        return candidate_distances(counts, prior) / self._width(counts, prior)


def exponent_error(smallest_width: float, k: int) -> Fraction:
    """Bound on the error of the logarithm of an unnormalised probability, given a lower bound on the width.

    An exponent is at most `1 / smallest_width`; its relative error is that of the distance (`RELATIVE_ERROR`, and k roundings of the sum) and of
    the width (`RELATIVE_ERROR` and a few roundings). The conversion to an integer weight adds `weight_error`.
    """
    largest = round_up(1 / Fraction(smallest_width))
    relative = 2 * Fraction(RELATIVE_ERROR) + Fraction(k + 8, 2**53)
    return Fraction(largest) * relative + Fraction(weight_error(largest))


def certified_loss(ideal: Fraction, error: Fraction, delta: float = 0.0) -> PrivacyLoss:
    """The loss of an exponential mechanism whose ideal log-likelihood ratio has sup and spread at most `ideal`, sampled within `error`.

    A spread of `r` gives `r^2 / 8` under zero-concentrated divergence (`docs/proofs.md`, "Bounded range").
    """
    bound = ideal + 4 * error
    return PrivacyLoss(epsilon=round_up(bound), range=round_up(bound), rho=round_up(bound**2 / 8), delta=delta)
