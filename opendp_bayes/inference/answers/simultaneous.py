"""Intervals that hold for all categories at once."""

import numpy as np

from opendp_bayes.mathematics.validation import Floats


def pointwise_level(draws: Floats, level: float) -> float:
    """The level at which equal-tailed intervals hold for all categories at once with probability
    `level`, from ranks of draws of shape `(draws, k)`.
    """
    # Of equal draws, as there are where all of them round to 1, the rank that is nearest to the
    # middle counts: an interval that holds one of them holds all.
    place = np.empty(draws.shape)
    for column, drawn in enumerate(draws.T):
        ascending = np.sort(drawn)
        first, last = (np.searchsorted(ascending, drawn, side) for side in ("left", "right"))
        place[:, column] = np.clip(len(draws) / 2, first + 0.5, last - 0.5) / len(draws)
    return float(np.quantile(np.abs(2 * place - 1).max(axis=1), level))
