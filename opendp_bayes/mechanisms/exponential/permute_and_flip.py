"""Permute-and-flip on the Hellinger score: noisy max with exponential noise, never less accurate
than EHD of the same scale.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.simplex import candidate, candidates, check_enumerable
from opendp_bayes.mathematics.validation import Floats, Integers, as_prior, as_size
from opendp_bayes.mechanisms.exponential.hellinger_exponential import HellingerExponential
from opendp_bayes.mechanisms.exponential.posterior_exponential import (
    Chosen,
    candidate_distances,
    public_size,
    score_change,
)
from opendp_bayes.mechanisms.laws import Flips
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.samplers.coins import among_heads

#: Bound on the error of a log-probability: that of the quadrature weights, 7e-13, and of a sum over
#: the candidates; besides the roundings of the exponents, which are at most `1 / scale`.
LAW_ERROR = 2.0**-38
#: With this reach and this many nodes the quadrature of `log_pmf` has a truncation error below
#: 1e-17 (docs: Numerics, "Permute-and-flip").
_REACH = 40.0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class PermuteAndFlip(Chosen):
    """Go through the candidate posteriors in random order; release the first whose coin, of
    probability `exp(-H / scale)`, shows heads.

    `H = H(posterior(x), r)`. The same as the candidate with the largest `-H` after exponential
    noise of mean `scale` on each, which is how OpenDP names it. ε is that of EHD with the same
    scale; the released posterior is nearer to the true one, for every data set, in the sense that
    the distribution of `H` is stochastically smaller (`docs/research/proofs.md`,
    "Permute-and-flip").

    Needs a public number of records. Source: McKenna and Sheldon, "Permute-and-Flip: A new
    mechanism for differentially private selection", 2020.

    Parameters
    ----------
    scale : float
        Positive number. ε is `2 GS / scale`.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import PermuteAndFlip
    >>> candidates, log_p = PermuteAndFlip(scale=0.5).log_pmf([1, 1], 1.0)
    >>> dict(zip(map(tuple, candidates.tolist()), (2.718281828459045**log_p).round(4).tolist()))
    {(0, 2): 0.1883, (1, 1): 0.6234, (2, 0): 0.1883}
    """

    scale: float
    name: ClassVar[str] = "permute_and_flip"

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` where the size is private (the candidate set depends on it) or there
        are too many candidates.
        """
        check_enumerable(public_size(type(self).__name__, size), prior.size)

    def law(self, size: int | None, prior: Floats) -> Flips:
        """Flips of coins, which many and small ones make the exponential mechanism's weights."""
        return Flips(self.scale, HellingerExponential(self.scale).law(size, prior))

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, in lexicographic order, and their log-probabilities given
        `counts`, shape `(c,)`, in time linear in c.

        Raises
        ------
        ValueError
            If there are too many candidates to enumerate.
        """
        counts, prior = self._checked(counts, prior)
        return candidates(int(counts.sum()), counts.size), log_permute_and_flip(
            candidate_distances(counts, prior) / self.scale
        )

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw candidates, shape `(draws, k)`: the law of the computed distances, taken as
        rational numbers, exactly.
        """
        counts, prior = self._checked(counts, prior)
        chosen = among_heads(candidate_distances(counts, prior), Fraction(self.scale), draws)
        n, k = int(counts.sum()), counts.size
        released = [candidate(index, n, k) for index in chosen.tolist()]
        return np.array(released, dtype=np.int64).reshape(draws, k)

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`epsilon = 2 d_in GS / scale` and the error of the scores; twice that for the range and
        `epsilon^2 / 2` for rho.

        Unlike for EHD the range is not `epsilon`, and neither bound can be halved
        (`docs/research/proofs.md`, "Permute-and-flip").
        """
        epsilon = (
            2
            * Fraction(score_change(d_in, size=as_size(size), prior=as_prior(prior)))
            / Fraction(self.scale)
        )
        return PrivacyLoss(
            epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(epsilon**2 / 2)
        )


def log_permute_and_flip(exponents: Floats) -> Floats:
    """Log-probabilities of permute-and-flip with coins `p_r = exp(-exponents[r])`, shape `(c,)`;
    the smallest exponent is 0.

    `P(r) = p_r * integral over t from 0 to 1 of prod_{j != r} (1 - p_j t)`, by Gauss-Legendre
    quadrature, whose terms are all positive. The integrand is at most `exp(-(S - 1) t)`, `S = sum
    p_j`, so no more than `_REACH / (S - 1)` of the interval counts.
    """
    coins = np.exp(-exponents)
    integral = np.zeros(coins.size)
    points, weights, end = flip_quadrature(np.array(coins.sum() - 1.0))
    for t, weight in zip(points * end, weights * end, strict=True):
        integral += weight * np.exp(np.log1p(-t * coins).sum()) / (1 - t * coins)
    return np.log(integral) - exponents


def flip_quadrature(others: Floats) -> tuple[Floats, Floats, Floats]:
    """Quadrature for the integral over t from 0 to 1 of a function that is at most
    `exp(-others t)`.

    Returns nodes and weights between 0 and 1, shape `(nodes,)` each, and the ends by which to
    multiply both, of the shape of `others`.
    """
    ends = np.minimum(1.0, _REACH / np.maximum(others, 1e-300))
    return (_POINTS + 1) / 2, _WEIGHTS / 2, ends
