"""Laws by which keys that nobody listed are shown: noise for each key, and the least noisy count
that is shown (`docs/research/proofs.md`, "Keys that nobody listed").

A key of n >= 1 records gets `Y = n + Z`, with independent Z, and is shown with Y where Y is at
least the threshold. A key without records is never shown.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_level,
    as_positive,
    as_scale,
    as_size,
)
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.laws import saturated
from opendp_bayes.samplers.inversion import exp_enclosure
from opendp_bayes.samplers.uniform import weighted_places

#: Bits of the whole-number weights of `OptimalThreshold`, and of the numbers they come from.
BITS, FINE = 128, 320
#: The most values of a law's table.
MOST_VALUES = 1_000_000
#: The largest scale, whose table has about as many values.
SMALLEST_SCALE, LARGEST_SCALE = 0.01, 10_000
#: Ranges of the parameters of `OptimalThreshold` whose weights 128 bits resolve.
SMALLEST_EPSILON, LARGEST_EPSILON, SMALLEST_DELTA = 1e-6, 50.0, 1e-20
#: A table leaves out values of less than about exp(-60), 1e-26, of the largest.
_DEPTH = 60.0


class Threshold(ABC):
    """Noise for each key, and the least noisy count that is shown. Subclasses are frozen
    dataclasses.
    """

    name: ClassVar[str]
    #: A key of n records is shown if `n + Z` is at least this.
    threshold: int

    @property
    @abstractmethod
    def masses(self) -> tuple[int, Floats]:
        """The first value of Z, and the probabilities of it and of those after it: all but less
        than 1e-18.
        """

    @abstractmethod
    def draws(self, number: int) -> Integers:
        """`number` samples of Z, exact, from a CSPRNG, shape `(number,)`; cut off where machine
        integers end.
        """

    @cached_property
    def std(self) -> float:
        """Standard deviation of Z, in records."""
        first, p = self.masses
        value = first + np.arange(p.size)
        mean = float(np.sum(p * value))
        return math.sqrt(float(np.sum(p * (value - mean) ** 2)))

    def shown(self, counts: ArrayLike) -> Floats:
        """Probability that a key of so many records is shown, elementwise: 0 for none."""
        counts = np.asarray(counts)
        first, at_least = self.masses[0], self._at_least
        position = np.clip(self.threshold - first - counts, 0, at_least.size).astype(np.int64)
        return np.where(counts >= 1, np.append(at_least, 0.0)[position], 0.0)

    def least_shown(self, share: float) -> int:
        """The least number of records of a key that is shown with at least the probability `share`,
        between 0 and 1.
        """
        share = as_level(share, argument="share")
        # Probabilities to be at least a value fall with it.
        largest = int(np.searchsorted(-self._at_least, -share, side="right")) - 1
        return max(1, self.threshold - self.masses[0] - largest)

    @cached_property
    def _at_least(self) -> Floats:
        """The probabilities that Z is at least each value of the table."""
        summed = np.minimum(np.cumsum(self.masses[1][::-1])[::-1], 1.0)
        summed[0] = 1.0
        return summed


@dataclass(frozen=True, init=False)
class OptimalThreshold(Threshold):
    """The law whose chance to show a key of any size is the largest that (epsilon, delta) allow,
    for one key and one record a person; the noisy counts come with it at no further loss.

    W is drawn from 1 to N with whole-number weights, `Z = threshold - W`: a key is shown if it has
    at least W records. The chance π(n) to be shown solves `π(n + 1) = min(e^epsilon π(n) + delta, 1
    - e^-decay (1 - π(n) - delta), 1)`, `π(0) = 0`; the threshold is the least n with `π(n) >= 1/2`.

    Raises `ValueError`/`TypeError` for others, and where W has more than a million values.

    Source: Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition selection",
    whose selection it is where `decay` is `epsilon`. Proof: `docs/research/proofs.md`, "The optimal
    law".

    Parameters
    ----------
    epsilon : float
        Number from 1e-6 to 50.
    delta : float
        Number below 1, at least 1e-20.
    decay : float, optional
        Number from 1e-6 to `epsilon`, which it is where not given. A smaller one leaves room for a
        release of what the hidden keys hold together.

    Examples
    --------
    >>> law = OptimalThreshold(1.0, 1e-8)
    >>> law.threshold, law.least_shown(0.95), law.least_shown(0.99), len(law.weights)
    (19, 21, 23, 37)
    """

    epsilon: float
    delta: float
    decay: float
    threshold: int = field(compare=False, repr=False)
    name: ClassVar[str] = "optimal_threshold"

    def __init__(self, epsilon: float, delta: float, decay: float | None = None) -> None:
        epsilon, delta = as_positive(epsilon, "epsilon"), as_level(delta, "1e-8", "delta")
        decay = epsilon if decay is None else as_positive(decay, "decay")
        for argument, rate in (("epsilon", epsilon), ("decay", decay)):
            if rate < SMALLEST_EPSILON:
                raise ValueError(
                    f"{argument}={told(rate)}: must be at least {SMALLEST_EPSILON:g}; no key would"
                    " be shown with less."
                )
        if epsilon > LARGEST_EPSILON:
            raise ValueError(
                f"epsilon={told(epsilon)}: must be at most {LARGEST_EPSILON:g}. A larger one shows"
                " no key more."
            )
        check_smallest_delta(delta)
        if decay > epsilon:
            raise ValueError(f"decay={told(decay)}: must be at most epsilon={told(epsilon)}.")
        if not _length(epsilon, decay, delta) <= MOST_VALUES:
            raise ValueError(
                f"epsilon={told(epsilon)}, decay={told(decay)}, delta={told(delta)}: the threshold"
                f" would be drawn from more than {MOST_VALUES} values; ask for a larger epsilon,"
                " for fewer keys a person, or for fewer queries."
            )
        for argument, value in (("epsilon", epsilon), ("delta", delta), ("decay", decay)):
            object.__setattr__(self, argument, value)
        ends = accumulate(self.weights)
        median = next(n for n, end in enumerate(ends, start=1) if 2 * end >= 1 << BITS)
        object.__setattr__(self, "threshold", median)

    @property
    def weights(self) -> tuple[int, ...]:
        """Weights of `W = 1, 2, ..., N`, whole numbers: the probabilities times 2^128."""
        return self._built[0]

    @property
    def chances(self) -> tuple[int, ...]:
        """The chances π(1), ..., π(N) = 1 from which the weights were rounded, times 2^320: those
        of a log-concave law, less at most 2^-250.
        """
        return tuple(_chances(Fraction(self.epsilon), Fraction(self.decay), self._built[1]))

    @property
    def _built(self) -> tuple[tuple[int, ...], Fraction]:
        return _weights(Fraction(self.epsilon), Fraction(self.decay), Fraction(self.delta))

    @cached_property
    def masses(self) -> tuple[int, Floats]:
        """The first value of Z, `threshold - N`, and the probabilities of it and of all others."""
        p = np.array([weight / (1 << BITS) for weight in reversed(self.weights)])
        return self.threshold - p.size, p

    def draws(self, number: int) -> Integers:
        """`number` samples of Z with exactly these weights, from a CSPRNG, shape `(number,)`."""
        return self.threshold - 1 - weighted_places(self.weights, BITS, number)


@dataclass(frozen=True)
class _NoiseWithThreshold(Threshold):
    """A law of the family of integer noise, and a threshold."""

    scale: float
    threshold: int
    _noises: ClassVar[type[DiscreteLaplace | DiscreteGaussian]]

    def __post_init__(self) -> None:
        scale = as_scale(self.scale)
        if scale > LARGEST_SCALE:
            raise ValueError(
                f"scale={told(scale)}: must be at most {LARGEST_SCALE}. Keys are found at a larger"
                " epsilon or rho only: ask for fewer keys a person, or for fewer queries."
            )
        if scale < SMALLEST_SCALE:
            raise ValueError(
                f"scale={told(scale)}: must be at least {SMALLEST_SCALE}, whose noise is nearly"
                " always 0 already."
            )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "threshold", as_size(self.threshold, "threshold"))

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The law of Z."""
        return self._noises(self.scale)

    @cached_property
    def masses(self) -> tuple[int, Floats]:
        """The first value of Z, and the probabilities of it and of those after it: all but less
        than 1e-18.
        """
        reach = self.noise.reach(_DEPTH) + 1
        return -reach, np.exp(self.noise.log_mass(np.arange(-reach, reach + 1)))

    def draws(self, number: int) -> Integers:
        """`number` samples of Z, exact for the rational value of the scale, shape `(number,)`."""
        return saturated(self.noise.draws(number))


@dataclass(frozen=True)
class LaplaceThreshold(_NoiseWithThreshold):
    """Discrete Laplace noise, `P(z) ∝ exp(-|z| / scale)`, and a threshold.

    Parameters
    ----------
    scale
        Number from .01 to 10000, in records.
    threshold
        Whole number of at least 1: the least noisy count that is shown.

    Examples
    --------
    >>> LaplaceThreshold(1.0, 20).least_shown(0.95)
    22
    """

    name: ClassVar[str] = "laplace_threshold"
    _noises = DiscreteLaplace


@dataclass(frozen=True)
class GaussianThreshold(_NoiseWithThreshold):
    """Discrete Gaussian noise, `P(z) ∝ exp(-z^2 / (2 scale^2))`, and a threshold.

    Parameters
    ----------
    scale
        Number from .01 to 10000, in records.
    threshold
        Whole number of at least 1: the least noisy count that is shown.

    Examples
    --------
    >>> GaussianThreshold(5.2, 31).least_shown(0.95)
    40
    """

    name: ClassVar[str] = "gaussian_threshold"
    _noises = DiscreteGaussian


#: The laws by their names.
LAWS: dict[str, type[Threshold]] = {
    law.name: law for law in (OptimalThreshold, LaplaceThreshold, GaussianThreshold)
}


#: Noise of the number of all hidden records.
RestNoise = DiscreteLaplace | DiscreteGaussian


@dataclass(frozen=True)
class Discovery:
    """The law by which keys are discovered, and the noise of the number of hidden records.

    Parameters
    ----------
    law : Threshold
        By which keys are shown.
    rest : RestNoise or None
        Noise of the number of records that all hidden keys hold together, a `DiscreteLaplace` or a
        `DiscreteGaussian`; None where that number is not released.
    """

    law: Threshold
    rest: RestNoise | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.law, Threshold):
            raise TypeError(f"law={told(self.law)}: must be a threshold law.")
        if not isinstance(self.rest, DiscreteLaplace | DiscreteGaussian | None):
            raise TypeError(
                f"rest={told(self.rest)}: must be DiscreteLaplace, DiscreteGaussian or None."
            )
        if self.rest is not None:
            as_scale(self.rest.scale)


def check_smallest_delta(delta: float) -> None:
    """Raise `ValueError` for a δ that `OptimalThreshold` does not take."""
    if delta < SMALLEST_DELTA:
        raise ValueError(
            f"delta={told(delta)}: must be at least {SMALLEST_DELTA:g}, of which the weights of"
            " this law keep their digits. LaplaceThreshold takes a smaller one."
        )


def excess(weights: tuple[int, ...], growth: Fraction, decay: Fraction) -> Fraction:
    """Return an upper bound on the δ of the law with these weights, of 2^128: exact but for
    `e^growth` and `e^decay`, which are rounded down.

    With d(w) the probabilities and `T(n) = P(W > n)`, it is the larger of `Σ (d(w) - e^growth d(w -
    1))+` and of the largest `Σ_{v <= n} (d(v) - e^growth d(v + 1))+ + (T(n) - e^decay T(n + 1))+`
    over n.
    """
    rise, fall = (exp_enclosure(-rate, FINE)[0] for rate in (growth, decay))
    padded = [0, *weights, 0]
    more = sum(max(0, (d << FINE) - rise * before) for before, d in pairwise(padded))
    seen = less = 0
    hidden = 1 << BITS
    for d, after in pairwise(padded):
        later = hidden - after
        seen += max(0, (d << FINE) - rise * after)
        less = max(less, seen + max(0, (hidden << FINE) - fall * later))
        hidden = later
    return Fraction(max(more, less), 1 << BITS + FINE)


@lru_cache(maxsize=64)
def _weights(
    growth: Fraction, decay: Fraction, delta: Fraction
) -> tuple[tuple[int, ...], Fraction]:
    """Weights whose `excess` is at most delta, which is the proof, whatever they come from; and the
    δ of the chances that they were rounded from.
    """
    target = delta
    while True:
        rounded = [0, *(end >> FINE - BITS for end in _chances(growth, decay, target))]
        weights = tuple(after - before for before, after in pairwise(rounded))
        surplus = excess(weights, growth, decay) - delta
        if surplus <= 0:
            return weights, target
        target -= 2 * surplus


def _chances(growth: Fraction, decay: Fraction, delta: Fraction) -> list[int]:
    """The chances π(1), π(2), ..., π(N) = 1 to be shown, times 2^320, rounded down at every step:
    less by at most a few units for each step and `1 / delta`.
    """
    whole, step = 1 << FINE, math.floor(delta * 2**FINE)
    rise, fall = exp_enclosure(-growth, FINE)[0], exp_enclosure(decay, FINE)[1]
    shown, chances = 0, []
    while shown < whole:
        grown = (rise * shown >> FINE) + step
        shown = min(grown, whole - (fall * (whole - shown - step) >> FINE), whole)
        chances.append(shown)
    return chances


def _length(growth: float, decay: float, delta: float) -> float:
    """N, about: the places where π rises by a factor, and those where `1 - π` falls by one."""
    with np.errstate(over="ignore"):
        turn: Any = -np.expm1(-decay) * (1 - delta) / (np.exp(growth) - np.exp(-decay))
        rising = np.log1p(turn * np.expm1(growth) / delta) / growth
        last = delta / np.expm1(decay)
        falling = np.log((1 - turn + last) / (delta + last)) / decay
    return float(rising + max(falling, 0.0) + 2)
