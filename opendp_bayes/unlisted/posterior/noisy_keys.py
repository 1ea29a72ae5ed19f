"""Data of a release of keys that nobody listed, and what holds without a model."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import picked
from opendp_bayes.mathematics.validation import Integers, as_level
from opendp_bayes.unlisted.thresholds import RestNoise, Threshold


@dataclass(frozen=True, eq=False)
class NoisyRest:
    """The noisy number of records of all hidden keys together, and its noise."""

    noisy_count: int
    noise: RestNoise

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Both ends, which belong to it, of the interval of the records of all hidden keys: it
        holds them with at least the probability `level`, whatever their number.

        Source: `docs/unlisted.md`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        away = farthest_noise(self.noise, (1 - as_level(level)) / 2)
        return float(max(0, self.noisy_count - away)), float(max(0, self.noisy_count + away))

    def draws(self, number: int, rng: np.random.Generator) -> Integers:
        """Draws of the records of all hidden keys under a flat prior, shape `(number,)`."""
        reach = self.noise.reach(40.0)
        low, high = max(0, self.noisy_count - reach), max(0, self.noisy_count) + reach
        step = max(1, (high - low) // 100_000)  # of wide noise, steps too small to be seen
        hidden = np.arange(low, high + 1, step)
        log_mass = self.noise.log_mass(self.noisy_count - hidden)
        place = picked(np.exp(log_mass - log_mass.max())[None], np.array(0), rng.random(number))
        return np.asarray(hidden[place] + rng.integers(step, size=number))


@dataclass(frozen=True, eq=False)
class NoisyKeys:
    """Noisy counts of one release, all public.

    Attributes
    ----------
    law : Threshold
        Noise of each key, and the least noisy count that is shown.
    noisy_counts : ndarray of int
        Noisy counts of the keys that were shown, shape `(s,)`, none of them below the threshold.
    listed : ndarray of int
        Noisy counts of keys that are shown whatever their count, shape `(l,)`.
    rest : NoisyRest or None
        Of all hidden keys together; None if not released.
    """

    law: Threshold
    noisy_counts: Integers
    listed: Integers
    rest: NoisyRest | None = None

    def hidden_bound(self, level: float = 0.95) -> int:
        """The most records that a key has which is not shown: the chance that the bound is given
        and wrong is at most `1 - level`, whatever the counts.

        That is promised for one label, fixed before the output is seen. For one that is picked
        after looking nothing is promised.

        Source: `docs/unlisted.md`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level, rest = as_level(level), self.rest
        alone = self.law.least_shown(level) - 1
        if rest is None:
            return alone
        # A count is above one of the two bounds by itself, so that each may be as wrong.
        return min(alone, max(0, rest.noisy_count + farthest_noise(rest.noise, 1 - level)))


def farthest_noise(noise: RestNoise, share: float) -> int:
    """The least t for which `P(Z > t)` and `P(Z < -t)`, which are equal, are at most `share`."""
    return bisect_left(
        range(noise.reach(80.0)), -math.log(share), key=lambda t: -float(noise.log_at_least(t + 1))
    )
