"""Tables of the weights of counts, with an axis for each data set."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: Entries of all tables that are transformed.
_LARGEST = 1 << 25


def check_entries(entries: float) -> None:
    """Raise `ValueError` where tables of so many entries take too long."""
    if entries > _LARGEST:
        raise ValueError(
            f"releases: the tables of their counts take {entries:.2g} entries together, more than"
            f" {_LARGEST:.2g}. Combine fewer releases, or releases of less noise."
        )


def moments(
    windows: Sequence[Sequence[Integers]], logs: Sequence[Floats], tilt: Floats
) -> tuple[Floats, Floats]:
    """Means and covariances of the sums over the categories, of tilted tables."""
    axes = range(tilt.size)
    mean, covariance = np.zeros(tilt.size), np.zeros((tilt.size, tilt.size))
    for row, log_table in zip(windows, logs, strict=True):
        table = special.softmax(log_table + along(row, tilt))
        grid = np.meshgrid(*row, indexing="ij", sparse=True)
        own = np.array([(table * grid[axis]).sum() for axis in axes])
        away = [grid[axis] - own[axis] for axis in axes]
        mean += own
        covariance += [[(table * away[a] * away[b]).sum() for b in axes] for a in axes]
    return mean, covariance


def along(windows: Sequence[Integers], tilt: Floats) -> Floats:
    """The tilt's part of the logarithms of weights, on a grid."""
    rates = [rate * window for rate, window in zip(tilt, windows, strict=True)]
    return np.asarray(sum(np.meshgrid(*rates, indexing="ij", sparse=True)))
