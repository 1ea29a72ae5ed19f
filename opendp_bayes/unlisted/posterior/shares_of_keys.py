"""Posterior of the shares of keys, by draws."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_size

#: Numbers drawn for means and intervals, and the fewest and the most draws.
_DRAWN, _FEWEST, _MOST = 4_000_000, 400, 4000


class SharesOfKeys:
    """The posterior of the shares of keys, and perhaps of everything else, which is last: shape
    `(k,)`, with a sum of 1.

    The records of a key are those of a Poisson law whose mean is its share of all. Means and
    intervals rest on draws; keys with the same noisy count have the same.

    Parameters
    ----------
    intensities : Callable[[int, Generator], ndarray]
        Draws so many of the means, shape `(number, k)`.
    kinds : ndarray of int
        Which keys have the same posterior, shape `(k,)`.
    """

    def __init__(
        self, intensities: Callable[[int, np.random.Generator], Floats], kinds: Integers
    ) -> None:
        self._intensities, self._kinds = intensities, kinds

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of all shares together, shape `(number, k)`."""
        found = self._intensities(as_size(number, "number", "draws"), rng)
        found /= found.sum(axis=1, keepdims=True)
        return found

    @cached_property
    def _drawn(self) -> list[tuple[Integers, Floats]]:
        """Keys with the same posterior, and the draws of their shares."""
        kinds = self._kinds
        if not kinds.size:
            return []
        number = int(np.clip(_DRAWN // kinds.size, _FEWEST, _MOST))
        drawn, order = self.draws(number, np.random.default_rng(0)), np.argsort(kinds)
        parts = np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)
        return [(part, drawn[:, part].reshape(-1)) for part in parts]

    def _each(self, of: Callable[[Floats], ArrayLike], *shape: int) -> Floats:
        """What is computed from the draws of each kind, for all keys of it."""
        found = np.empty((self._kinds.size, *shape))
        for part, drawn in self._drawn:
            found[part] = of(drawn)
        return found

    @cached_property
    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._each(np.mean)

    @cached_property
    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._each(np.std)

    def interval(self, level: float = 0.95) -> Floats:
        """Both ends of the equal-tailed credible intervals, shape `(k, 2)`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level = as_level(level)
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        return self._each(lambda drawn: np.quantile(drawn, ends), 2)
