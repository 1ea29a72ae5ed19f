"""The families of laws by which mechanisms draw, stated once: everything else follows from them.

A mechanism states its law, and accounting, inference and planning read the family, never the
mechanism; an audit, which must not believe it, reads its probabilities and its draws. A new
mechanism of a family here is one file and a line of the registry; a new family is a class here and
a case in accounting and in inference.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import (
    exact_integers,
    log_squares,
    noise_vectors,
    norm_to_list,
)
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Draws beyond this are cut off, so that they fit into machine integers: post-processing.
SATURATION = 2**62


def saturated(drawn: NDArray[Any]) -> Integers:
    """Draws, machine integers or Python's, cut off at `SATURATION`."""
    return np.clip(drawn, -SATURATION, SATURATION).astype(np.int64)


@dataclass(frozen=True)
class AdditiveNoise:
    """Independent draws `x_i + Z_i`, `Z_i` from `noise`, on the counts that are `noised`, one entry
    for each category; the others are not drawn.

    Cutting draws off at the ends `cut`, where given, does not change what is released.
    """

    noise: IntegerNoise
    noised: tuple[bool, ...]
    cut: tuple[float, float] = (-math.inf, math.inf)

    def moved(self, size: int | None) -> int:
        """The most noised counts that one record moves, by 1 each: a changed record where `size` is
        public, a record added or removed where it is None.
        """
        return min(sum(self.noised), 1 if size is None else 2)

    def completed(self, noised: Integers, size: int) -> Integers:
        """Complete the draws of the noised counts, shape `(..., j)`, to an array of shape `(...,
        k)`: a count that is not noised takes the records, of `size`, that the others leave.
        """
        noisy_counts = np.empty((*noised.shape[:-1], len(self.noised)), dtype=np.int64)
        noisy_counts[..., np.array(self.noised)] = noised
        if not all(self.noised):
            remainder = np.clip(size - exact_integers(noised).sum(axis=-1), -SATURATION, SATURATION)
            noisy_counts[..., np.flatnonzero(np.logical_not(self.noised))[0]] = remainder
        return noisy_counts

    def windows(self, counts: Integers, reach: float) -> list[tuple[int, int, int]]:
        """Every noised count, with the least and the largest draw from it, which are at most
        `reach` away; what is drawn beyond an end may be taken for that end.
        """
        low, high = self.cut
        return [
            (count, int(max(count - reach, low)), int(min(count + reach, high)))
            for count in counts[np.array(self.noised)].tolist()
        ]

    def listed(self, windows: Sequence[tuple[int, int, int]], size: int) -> tuple[Integers, Floats]:
        """Every draw within some windows, shape `(c, k)`, and their log-probabilities, shape
        `(c,)`.
        """
        marginals = [log_clamped(self.noise, *window) for window in windows]
        values = np.indices([marginal.size for marginal in marginals]).reshape(len(windows), -1).T
        draws = self.completed(values + [low for _, low, _ in windows], size)
        return draws, reduce(np.add.outer, marginals).ravel()


def log_clamped(noise: IntegerNoise, count: int, low: int, high: int) -> Floats:
    """`ln P(clamp(count + Z, low, high) = y)` for y = low..high, shape `(high - low + 1,)`."""
    if low == high:
        return np.zeros(1)
    log_p = noise.log_mass(np.arange(low, high + 1) - count)
    log_p[0], log_p[-1] = noise.log_at_most(low - count), noise.log_at_least(high - count)
    return log_p


@dataclass(frozen=True)
class SimplexNoise:
    """Draws `x + z` with `P(z) ∝ exp(-||z||_1 / (2 scale))` on the integer z that sum to 0."""

    scale: float

    def listed(self, k: int, log_rest: float, most: int) -> tuple[Integers, Floats] | None:
        """Every z of k numbers up to a norm, shape `(c, k)`, beyond which all weigh less than
        `exp(log_rest)` as `norm_to_list` says, and their log-probabilities, shape `(c,)`; None
        where there are more than `most`.
        """
        largest = norm_to_list(k, self.scale, log_rest, most)
        if largest is None:
            return None
        noise = noise_vectors(largest, k)
        log_weights = -np.maximum(noise, 0).sum(axis=1) / self.scale
        return noise, log_weights - self.log_normaliser(k)

    def log_normaliser(self, k: int) -> float:
        """`ln sum_z exp(-||z||_1 / (2 scale))`, from the generating function of the shell sizes."""
        return log_squares(k - 1, self.scale) - (k - 1) * math.log(-math.expm1(-1 / self.scale))


class Widths(ABC):
    """The width `w(x)` of an exponential mechanism at every data set x of `size` records: a value
    with a hash, so that results for one serve its equals.
    """

    def width(self, counts: Integers, prior: Floats) -> float:
        """Width at one data set, shape `(k,)`, of at least one record."""
        return float(self.widths_at(counts[None], prior)[0])

    def widths(self, size: int, prior: Floats) -> Floats:
        """Widths at every data set, in the order of `simplex.candidates`."""
        return self.widths_at(candidates(size, prior.size), prior)

    @abstractmethod
    def widths_at(self, counts: Integers, prior: Floats) -> Floats:
        """Widths at every row of `counts`, shape `(m, k)`, all with the same positive sum, within
        `RELATIVE_ERROR` and two roundings.
        """

    @abstractmethod
    def smallest_width(self, size: int, prior: Floats) -> float:
        """A lower bound on all of them; `size` is at least 1."""

    @abstractmethod
    def log_error(self, size: int, prior: Floats) -> float:
        """Bound on the difference between any log-probability as computed and as sampled."""


@dataclass(frozen=True)
class ExponentialWeights:
    """`P(r | x) = exp(-H(posterior(x), posterior(r)) / w(x)) / Z(x)` over the r of x's size."""

    widths: Widths


@dataclass(frozen=True)
class Flips:
    """Permute-and-flip over the r of x's size: the first in random order whose coin shows heads,
    with probability `exp(-H(posterior(x), posterior(r)) / scale)`.

    `limit` is the law that it comes to where the coins are many and small.
    """

    scale: float
    limit: ExponentialWeights


Law = AdditiveNoise | SimplexNoise | ExponentialWeights | Flips
