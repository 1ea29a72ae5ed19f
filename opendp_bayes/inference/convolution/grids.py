"""Grids for the sums of counts: how long their steps are, and where a finer one is needed."""

import numpy as np
from scipy import fft

from opendp_bayes.inference.convolution.grid import ZOOM, Grid
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.mathematics.validation import Floats, Integers

#: The longest cycles for few and for many categories, and the entries of all together.
_LONGEST, _LONGEST_OF_MANY, _ENTRIES = 1 << 20, 1 << 14, 1 << 22
#: A finer grid near 0 has steps `_FINER` times shorter; a coarser one is used from `ZOOM / _FINER`
#: of its steps on.
_FINER = 32
#: A grid has so many steps in a deviation of a smooth sum: one whose variance is at least so many
#: times that of any one count.
_STEPS, _ALIKE = 64, 16


def is_fine_from(step: int) -> float:
    """The sum from which on a grid with such steps needs no zoom."""
    return step * ZOOM / _FINER


def grids_of(
    windows: Windows, multiplicity: Integers, lowest: Floats, highest: Floats
) -> list[Grid]:
    """The grid for all sums between the bounds of `tails`, and those near 0 that its step is too
    long for, from the finest on.
    """
    span = float((highest - lowest).max()) + 1
    longest = int(np.clip(_ENTRIES // multiplicity.size, _LONGEST_OF_MANY, _LONGEST))
    step = max(1, int(np.ceil(span / longest)))
    grids = [Grid(windows, multiplicity, step, _length(span, step))]
    while step > 1 and lowest.min() < is_fine_from(step):
        step = -(-step // _FINER)
        grids.insert(0, Grid(windows, multiplicity, step, 2 * ZOOM, zoom=True))
    return grids


def coarsest_of(
    windows: Windows, multiplicity: Integers, lowest: Floats, highest: Floats
) -> list[Grid]:
    """As `grids_of`, but with steps as long as the sum of all counts and the sums of all but one
    allow for being smooth.
    """
    variance, largest = float(multiplicity @ windows.variance), float(windows.variance.max())
    step = int(np.sqrt(variance - largest) / _STEPS) if variance >= _ALIKE * largest else 1
    if step > 1 and lowest.min() >= is_fine_from(step):
        span = float((highest - lowest).max()) + 1
        grid = Grid(windows, multiplicity, step, _length(span, step))
        if grid.shows_all:
            return [grid]
    return grids_of(windows, multiplicity, lowest, highest)


def _length(span: float, step: int) -> int:
    return int(fft.next_fast_len(max(int(np.ceil(span / step)) + 8, 16), real=True))
