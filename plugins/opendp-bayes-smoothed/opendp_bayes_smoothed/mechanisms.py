"""The sampling-histogram mechanisms as values: the paper's Algorithm 2 and Appendix F, and
Algorithm 4 with additive noise.

They are made by the constructors in `framework`, and no query finds them by name: a name is read
where a document is. `proven_loss` states what differential privacy promises, whatever the data;
what smoothed differential privacy promises is in `losses`, under a measure of its own.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes import PrivacyLoss
from opendp_bayes.extend import (
    NO_BOUND,
    NO_LOSS,
    as_choice,
    as_counts,
    as_distance,
    as_positive,
    as_prior,
    candidates,
    check_enumerable,
    discrete_laplaces,
    register_for_documents,
    round_up,
    upper_end,
)
from opendp_bayes_smoothed.arguments import samples_of
from opendp_bayes_smoothed.draws import (
    LARGEST_SIZE,
    Floats,
    Integers,
    Replacement,
    draw_of,
    log_sampled,
)
from opendp_bayes_smoothed.sampling import draw_histogram


class _OfASample:
    """Base of both mechanisms: they see a sample of a public number of records."""

    scale: float
    rate: float
    replacement: Replacement

    def __post_init__(self) -> None:
        as_positive(self.scale, "scale")
        samples_of(self.rate, 1)
        as_choice(self.replacement, "replacement", ("without", "with"))

    def samples(self, size: int) -> int:
        """The number of records that are drawn from `size`."""
        return samples_of(self.rate, size)

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the number of records is private, or above 10^9."""
        self._public(size)

    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Release independently and exactly, shape `(draws, k)`."""
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        samples = self.samples(int(counts.sum()))
        released = [
            [self._noised(x) for x in draw_histogram(counts.tolist(), samples, self.replacement)]
            for _ in range(draws)
        ]
        return np.array(released, dtype=np.int64).reshape(draws, counts.size)

    def drawn(self, d_in: int, size: int) -> float:
        """The probability that one of `d_in` records is drawn, rounded up: at most `d_in T / n`
        without replacement, attained for one record, and `1 - (1 - d_in / n)^T` with it.
        """
        samples = self.samples(size)
        if self.replacement == "without" or d_in >= size:
            return round_up(min(Fraction(1), Fraction(d_in * samples, size)))
        return min(1.0, upper_end(-math.expm1(samples * math.log1p(-d_in / size)), 2.0**-48))

    def _noised(self, count: int) -> int:
        return count

    def _public(self, size: int | None) -> int:
        name = type(self).__name__
        if size is None:
            raise ValueError(
                f"size=None: {name} draws a share of the records, so their number must be public;"
                " state the privacy unit as changes."
            )
        if not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"size={size}: {name} takes from 1 to {LARGEST_SIZE:.0e} records.")
        return size


@dataclass(frozen=True)
class SamplingHistogram(_OfASample):
    """Release the histogram of `T = ceil(ceil(rate n) / max(scale, 1))` records drawn at random.
    The only noise is that of the sampling.

    Parameters
    ----------
    scale : float
        Positive number that divides the number drawn where it is above 1; this is how `calibrate`
        finds a number of samples that fits a δ, and never more than the rate asks for: below 1 no
        loss is promised.
    rate : float
        Share of the records that is drawn at most, in `(0, 1]`: the paper's η. `T / n` draws T.
    replacement : {"without", "with"}
        How records are drawn: Algorithm 2, or Appendix F.

    The released counts sum to T, not to n. The number of records must be public.

    Under differential privacy the loss is `(0, T/n)`, the probability that the record is drawn, and
    no finite ε needs less (Theorem 3 iii): as a pure loss it is infinite.

    >>> SamplingHistogram(rate=0.998).samples(1000)
    998
    """

    scale: float = 1.0
    rate: float = 1.0
    replacement: Replacement = "without"
    name: ClassVar[str] = "sampling_histogram"

    def samples(self, size: int) -> int:
        """The number of records that are drawn from `size`."""
        return math.ceil(super().samples(size) / max(Fraction(1), Fraction(self.scale)))

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """All histograms of T records, shape `(c, k)`, and their log-probabilities, shape `(c,)`,
        minus infinity for impossible ones.
        """
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        samples = self.samples(int(counts.sum()))
        check_enumerable(samples, counts.size)
        support = candidates(samples, counts.size)
        return support, log_sampled(draw_of(self.replacement), counts, support)

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: NDArray[np.float64], delta: float = 0.0
    ) -> PrivacyLoss:
        """`(0, drawn(d_in, size))` if that is at most `delta`, otherwise no bound
        (`docs/smoothed.md`, "Differential privacy").
        """
        d_in = as_distance(d_in)
        if d_in == 0:
            return NO_LOSS
        drawn = self.drawn(d_in, self._public(size))
        if delta == 0 or self.scale < 1:
            return NO_BOUND
        return PrivacyLoss(
            epsilon=0.0 if drawn <= delta else math.inf, rho=math.inf, range=math.inf, delta=drawn
        )


@dataclass(frozen=True)
class NoisySamplingHistogram(_OfASample):
    """Release the histogram of `T = ceil(rate n)` records drawn without replacement, with noise on
    every count (Algorithm 4).

    Given the histogram h, `P(y) ∝ exp(-||y - h||_1 / scale)` over all non-negative integers:
    independent discrete Laplace noise on every count, drawn again until the count is not negative.
    The paper's ε is `4 / scale`. The released counts need not sum to T.

    Parameters
    ----------
    scale : float
        Float Positive number, in records.
    rate : float
        Float Share of the records that is drawn, in `(0, 1]`.
    """

    scale: float
    rate: float = 1.0
    name: ClassVar[str] = "noisy_sampling_histogram"
    replacement: ClassVar[Replacement] = "without"  # type: ignore[misc]

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Raises `ValueError`: the released counts are unbounded."""
        raise ValueError(
            "NoisySamplingHistogram: the released counts are unbounded, so their probabilities"
            " cannot be enumerated."
        )

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: NDArray[np.float64], delta: float = 0.0
    ) -> PrivacyLoss:
        """`d_in ln(1 + (T/n) (e^ε₀ - 1))`, with ε₀ the loss of the noise alone
        (`docs/smoothed.md`, "Differential privacy"); pure, so `delta` is ignored.
        """
        d_in = as_distance(d_in)
        if d_in == 0:
            return NO_LOSS
        size = self._public(size)
        epsilon = d_in * Fraction(amplified(self.noise_loss, self.samples(size) / size))
        return PrivacyLoss(
            epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(epsilon**2 / 2)
        )

    @property
    def noise_loss(self) -> float:
        """The loss of the noise on the histogram, for one record changed: `2 / scale + ln(1 + q -
        q²)`, `q = exp(-1 / scale)`, rounded up.
        """
        rate = 1 / self.scale
        return upper_end(2 * rate + math.log1p(-math.exp(-rate) * math.expm1(-rate)), 2.0**-48)

    def _noised(self, count: int) -> int:
        return noised(count, Fraction(self.scale))


for _kind in (SamplingHistogram, NoisySamplingHistogram):
    register_for_documents(_kind)


def amplified(epsilon: float, share: float) -> float:
    """`ln(1 + share (e^ε - 1))`, rounded up: the loss after drawing that share without replacement
    (Balle, Barthe and Gaboardi 2018).
    """
    if epsilon > 700:  # beyond the range of floats; sampling never hurts
        return epsilon
    return min(
        epsilon, upper_end(math.log1p(share * (1 + 2.0**-50) * math.expm1(epsilon)), 2.0**-40)
    )


def noised(count: int, scale: Fraction) -> int:
    """A sample of `P(y) ∝ exp(-|y - count| / scale)`, `y >= 0`, below 2^62: less than two draws of
    discrete Laplace noise on average.
    """
    while True:
        value = count + int(discrete_laplaces(scale, 1)[0])
        if value >= 0:
            return min(value, 2**62)  # saturation is post-processing
