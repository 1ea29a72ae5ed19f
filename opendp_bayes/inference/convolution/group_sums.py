"""Laws of the sums of groups of categories, and of the others, on the grid of the sum of all."""

from collections.abc import Iterator

import numpy as np

from opendp_bayes.inference.convolution.grid import Grid
from opendp_bayes.inference.convolution.grids import grids_of, is_fine_from
from opendp_bayes.inference.convolution.sum_laws import GridLaw, SumLaw
from opendp_bayes.mathematics.validation import Floats, Integers

#: Sums are read off a grid with steps longer than one count if their deviation is so many steps.
_FINE = 20.0


def on_one_grid(
    grids: list[Grid], times: Integers, lowest: Floats, highest: Floats
) -> Iterator[tuple[SumLaw, SumLaw]] | None:
    """Of groups in which each row is so many times, shape `(groups, rows)`, on the grid of the sum
    of all or, where its steps are too long for one of them, on the finest for all sums within the
    bounds of `tails`; None where that is too coarse as well.
    """
    windows, multiplicity = grids[0].windows, grids[0].multiplicity
    mean = float(multiplicity @ windows.mean)
    both = np.stack([times, multiplicity - times], axis=1)  # the group, and the others
    middle, ends = both @ windows.mean, [both @ end for end in windows.ends]
    # A part of the sum stays as near to its mean as the whole does.
    least = np.maximum(np.floor(middle - (mean - lowest[0])), ends[0])
    most = np.minimum(np.ceil(middle + (highest[0] - mean)), ends[1])
    deviations = np.sqrt(both @ windows.variance)

    def suits(grids: list[Grid]) -> bool:
        step = grids[0].step
        fine = deviations.min() >= _FINE * step and least.min() >= is_fine_from(step)
        return len(grids) == 1 and (step == 1 or bool(fine))

    if np.any(times.sum(axis=0) > multiplicity):
        return None
    if not suits(grids):
        grids = grids_of(windows, multiplicity, lowest, highest)
        if not suits(grids):
            return None
    grid = grids[0]
    counts = both.sum(axis=2)

    def law(values: GridLaw, group: int, part: int) -> SumLaw:
        place = group, part
        ends = float(least[place]), float(most[place])
        return SumLaw([values], *ends, float(deviations[place]), int(counts[place]))

    return (
        (law(own, group, 0), law(rest, group, 1))
        for group, (own, rest) in enumerate(grid.groups(times))
    )
