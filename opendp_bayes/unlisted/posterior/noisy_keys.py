"""Data of a release of keys that nobody listed, and what holds without a model."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Integers, as_level, as_size
from opendp_bayes.unlisted.thresholds import RestNoise, Threshold


@dataclass(frozen=True, eq=False)
class NoisyKeys:
    """Noisy counts of one release, all public.

    Raises `TypeError` for what is no whole number, and `ValueError` for a count that the law cannot
    give, or for `rest` without its noise.

    Parameters
    ----------
    law : Threshold
        Noise of each key, and the least noisy count that is shown.
    noisy_counts : ndarray of int
        Noisy counts of the keys that were shown, shape `(s,)`.
    listed : ndarray of int
        Noisy counts of keys that are shown whatever their count, shape `(l,)`.
    rest : int or None
        Noisy number of records of all hidden keys together, in records; None if not released.
    rest_noise : RestNoise or None
        Noise of `rest`.
    """

    law: Threshold
    noisy_counts: Integers
    listed: Integers
    rest: int | None = None
    rest_noise: RestNoise | None = None

    def __post_init__(self) -> None:
        threshold, lowest = self.law.threshold, self.law.masses[0]
        object.__setattr__(
            self, "noisy_counts", _noisy_counts(self.noisy_counts, "noisy_counts", threshold)
        )
        object.__setattr__(self, "listed", _noisy_counts(self.listed, "listed", lowest))
        if (self.rest is None) != (self.rest_noise is None):
            raise ValueError("rest, rest_noise: must both be given, or both be None.")

    def rest_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Both ends, which belong to it, of the interval of the records of all hidden keys: it
        holds them with at least the probability `level`, whatever their number.

        Source: `docs/unlisted.md`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`, or without `rest`.
        """
        noisy_rest, noise = self._bought()
        away = farthest_noise(noise, (1 - as_level(level)) / 2)
        return float(max(0, noisy_rest - away)), float(max(0, noisy_rest + away))

    def rest_draws(self, number: int, rng: np.random.Generator) -> Integers:
        """Draws of the records of all hidden keys under a flat prior, shape `(number,)`.

        Raises
        ------
        ValueError
            Without `rest`.
        """
        noisy_rest, noise = self._bought()
        reach = noise.reach(40.0)
        low, high = max(0, noisy_rest - reach), max(0, noisy_rest) + reach
        step = max(1, (high - low) // 100_000)  # of wide noise, steps too small to be seen
        hidden = np.arange(low, high + 1, step)
        log_mass = noise.log_mass(noisy_rest - hidden)
        cumulative = np.cumsum(np.exp(log_mass - log_mass.max()))
        position = np.searchsorted(cumulative, rng.random(number) * cumulative[-1])
        return np.asarray(hidden[position] + rng.integers(step, size=number))

    def hidden_bound(self, level: float = 0.95, labels: int = 1) -> int:
        """`hidden_bound` of this release."""
        return hidden_bound(
            self.law, level, labels=labels, rest=self.rest, rest_noise=self.rest_noise
        )

    def _bought(self) -> tuple[int, RestNoise]:
        if self.rest is None or self.rest_noise is None:
            raise ValueError("rest=None: the release has no number of hidden records.")
        return self.rest, self.rest_noise


def hidden_bound(
    law: Threshold,
    level: float = 0.95,
    *,
    labels: int = 1,
    rest: int | None = None,
    rest_noise: RestNoise | None = None,
) -> int:
    """The most records that a key has which is not shown: the chance that the bound is given and
    wrong is at most `1 - level`, whatever the counts.

    That is promised for so many `labels` together, fixed before the output is seen. For one that
    is picked after looking nothing is promised.

    Source: `docs/unlisted.md`.

    Parameters
    ----------
    law : Threshold
        Noise of each key, and the least noisy count that is shown.
    level : float, default 0.95
        A probability.
    labels : int, default 1
        Number of labels that bounds are asked for.
    rest : int, optional
        Noisy number of records of all hidden keys, none of which has more than all have.
    rest_noise : RestNoise, optional
        Noise of `rest`.

    Raises
    ------
    ValueError
        Unless `0 < level < 1` and `labels >= 1`.
    """
    wrong, labels = 1 - as_level(level), as_size(labels, "labels", "labels")
    if rest is None or rest_noise is None:
        return law.least_shown(1 - wrong / labels) - 1
    # A count is above one of the two bounds by itself, so that one label needs no division.
    wrong = wrong if labels == 1 else wrong / 2
    alone = law.least_shown(1 - wrong / labels) - 1
    return min(alone, max(0, rest + farthest_noise(rest_noise, wrong)))


def farthest_noise(noise: RestNoise, share: float) -> int:
    """The least t for which `P(Z > t)` and `P(Z < -t)` are each at most `share`."""

    def beyond(t: int) -> float:
        return max(float(noise.log_at_least(t + 1)), float(noise.log_at_most(-t - 1)))

    low, high, wanted = -1, noise.reach(80.0), math.log(share)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beyond(middle) <= wanted else (middle, high)
    return high


def _noisy_counts(value: ArrayLike, name: str, least: int) -> Integers:
    array: Any = np.asarray(value)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{name}: must be a sequence of whole numbers.")
    if array.size and array.min() < least:
        raise ValueError(f"{name}: every entry must be at least {least}, by the law of the noise.")
    return array.astype(np.int64)
