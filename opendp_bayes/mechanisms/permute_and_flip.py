"""Permute-and-flip on the Hellinger score: noisy max with exponential noise, never less accurate than EHD of the same scale."""

from dataclasses import dataclass
from fractions import Fraction
from secrets import randbits
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes._rounding import round_up
from opendp_bayes._validation import Floats, Integers, as_counts, as_prior, as_scale, as_size
from opendp_bayes.mechanisms.knorm_parameters import exp_enclosure
from opendp_bayes.mechanisms.scores import candidate_distances, check_candidates, score_change
from opendp_bayes.privacy_loss import PrivacyLoss
from opendp_bayes.sampling import random_words, uniform_below
from opendp_bayes.simplex import candidate, candidates

#: Bound on the error of a log-probability: that of the quadrature weights, 7e-13, and of a sum over the candidates; besides the roundings of the
#: exponents, which are at most `1 / scale`.
LAW_ERROR = 2.0**-38
#: With this reach and this many nodes the quadrature of `log_pmf` has a truncation error below 1e-17 (docs: Numerics, "Permute-and-flip").
_REACH = 40.0
_NODES = 40
_COIN_BITS = 62  # of a uniform number and of a probability, at first
_LARGEST_BLOCK = 1 << 24  # flips of so many coins are remembered at a time


@dataclass(frozen=True)
class PermuteAndFlip:
    """Go through the candidate posteriors in random order; release the first whose coin, of probability `exp(-H / scale)`, shows heads.

    `H = H(posterior(x), r)`. The same as the candidate with the largest `-H` after exponential noise of mean `scale` on each, which is how OpenDP
    names it. ε is that of EHD with the same scale; the released posterior is nearer to the true one, for every data set, in the sense that the
    distribution of `H` is stochastically smaller (`docs/proofs.md`, "Permute-and-flip").

    Parameters
    ----------
    scale : positive number. ε is `2 GS / scale`.

    Needs a public number of records. Source: McKenna and Sheldon, "Permute-and-Flip: A new mechanism for differentially private selection", 2020.

    >>> from opendp_bayes import PermuteAndFlip
    >>> candidates, log_p = PermuteAndFlip(scale=0.5).log_pmf([1, 1], 1.0)
    >>> dict(zip(map(tuple, candidates.tolist()), (2.718281828459045**log_p).round(4).tolist()))
    {(0, 2): 0.1883, (1, 1): 0.6234, (2, 0): 0.1883}
    """

    scale: float
    name: ClassVar[str] = "permute_and_flip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale(self.scale))  # a float, whatever number was given

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` where the size is private (the candidate set depends on it) or there are too many candidates."""
        check_candidates(type(self).__name__, size=size, k=prior.size)

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, in lexicographic order, and their log-probabilities given `counts`, shape `(c,)`, in time linear in c.

        Raises `ValueError` if there are too many candidates to enumerate.
        """
        counts, prior = self._checked(counts, prior)
        return candidates(int(counts.sum()), counts.size), log_permute_and_flip(candidate_distances(counts, prior) / self.scale)

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` releases, shape `(size, k)`: the law of the computed distances, taken as rational numbers, exactly."""
        counts, prior = self._checked(counts, prior)
        coins = _Coins(candidate_distances(counts, prior), Fraction(self.scale))
        chosen, place = np.unique(_first_heads(coins, size), return_inverse=True)
        n, k = int(counts.sum()), counts.size
        released = [candidate(index, n, k) for index in chosen.tolist()]
        return np.array(released, dtype=np.int64).reshape(-1, k)[place]

    def proven_loss(self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0) -> PrivacyLoss:
        """`epsilon = 2 d_in GS / scale` and the error of the scores; twice that for the range and `epsilon^2 / 2` for rho.

        Unlike for EHD the range is not `epsilon`, and neither bound can be halved (`docs/proofs.md`, "Permute-and-flip").
        """
        epsilon = 2 * Fraction(score_change(d_in, size=as_size(size), prior=as_prior(prior))) / Fraction(self.scale)
        return PrivacyLoss(epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(epsilon**2 / 2))

    def _checked(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        counts = as_counts(counts)
        prior = as_prior(prior, counts.size)
        self.check(size=int(counts.sum()), prior=prior)
        return counts, prior


def log_permute_and_flip(exponents: Floats) -> Floats:
    """Log-probabilities of permute-and-flip with coins `p_r = exp(-exponents[r])`, shape `(c,)`; the smallest exponent is 0.

    `P(r) = p_r * integral over t from 0 to 1 of prod_{j != r} (1 - p_j t)`, by Gauss-Legendre quadrature, whose terms are all positive. The integrand
    is at most `exp(-(S - 1) t)`, `S = sum p_j`, so no more than `_REACH / (S - 1)` of the interval counts.
    """
    coins = np.exp(-exponents)
    others = coins.sum() - 1.0
    reach = min(1.0, _REACH / others) if others > 0 else 1.0
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    integral = np.zeros(coins.size)
    for t, weight in zip(reach * (points + 1) / 2, reach * weights / 2, strict=True):
        integral += weight * np.exp(np.log1p(-t * coins).sum()) / (1 - t * coins)
    return np.log(integral) - exponents


def _first_heads(coins: "_Coins", size: int) -> Integers:
    """The index of the first coin that shows heads in random order, for `size` releases.

    Indices are drawn until one has heads; one that was drawn before is passed over, so that those
    which are not are in random order.
    """
    number = coins.distances.size
    chosen = np.empty(size, dtype=np.int64)
    rows = max(1, _LARGEST_BLOCK // number)
    for start in range(0, size, rows):
        undecided = np.arange(min(rows, size - start))
        flipped = np.zeros((undecided.size, number), dtype=np.bool_)
        while undecided.size:
            index = uniform_below(np.full(undecided.size, number))
            fresh = ~flipped[undecided, index]
            flipped[undecided, index] = True
            heads = np.zeros(undecided.size, dtype=np.bool_)
            heads[fresh] = coins.flip(index[fresh])
            chosen[start + undecided[heads]] = index[heads]
            undecided = undecided[~heads]
    return chosen


class _Coins:
    """Coins of probabilities `exp(-distance / scale)`, exactly, for distances of shape `(c,)`.

    A coin shows heads if a uniform number, of which so many bits are drawn as are needed, is below
    an integer enclosure of its probability, and tails if it is above.
    """

    def __init__(self, distances: Floats, scale: Fraction) -> None:
        self.distances, self._scale = distances, scale
        self._low = np.full(distances.size, -1, dtype=np.int64)
        self._high = np.empty(distances.size, dtype=np.int64)

    def flip(self, index: Integers) -> NDArray[np.bool_]:
        """Whether each of these coins, shape `(m,)`, shows heads; independent of each other."""
        for i in np.unique(index[self._low[index] < 0]).tolist():
            self._low[i], self._high[i] = exp_enclosure(self._exponent(i), _COIN_BITS)
        words = (random_words(index.size) >> np.uint64(64 - _COIN_BITS)).astype(np.int64)
        heads = words < self._low[index]
        for place in np.flatnonzero(~heads & (words < self._high[index])).tolist():
            heads[place] = _is_below_exp(int(words[place]), self._exponent(index[place]))
        return heads

    def _exponent(self, i: int) -> Fraction:
        return Fraction(float(self.distances[i])) / self._scale


def _is_below_exp(word: int, x: Fraction) -> bool:
    """Whether a uniform number whose first `_COIN_BITS` bits are `word` is below `exp(-x)`."""
    if x == 0:
        return True
    bits = _COIN_BITS
    while True:
        word, bits = word << 64 | randbits(64), bits + 64
        low, high = exp_enclosure(x, bits)
        if word < low or word >= high:
            return word < low
