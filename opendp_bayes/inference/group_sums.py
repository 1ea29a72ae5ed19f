"""Laws of the sums of groups of categories, and of the others, on the grid of the sum of all."""

from collections.abc import Iterator

import numpy as np

from opendp_bayes.inference.sum_laws import GridLaw, SumLaw
from opendp_bayes.inference.sums import Grid, is_fine_from
from opendp_bayes.mathematics.validation import Integers

#: Sums are read off a grid with steps longer than one count if their deviation is so many steps.
_FINE = 8.0


def on_one_grid(
    grid: Grid, times: Integers, lowest: float, highest: float
) -> Iterator[tuple[SumLaw, SumLaw]] | None:
    """Of groups in which each row is so many times, shape `(groups, rows)`, where the sum of all
    is between two numbers; None where the grid is too coarse for one of them.
    """
    windows, multiplicity = grid.windows, grid.multiplicity
    mean = float(multiplicity @ windows.mean)
    both = np.stack([times, multiplicity - times], axis=1)  # the group, and the others
    middle, ends = both @ windows.mean, [both @ end for end in windows.ends]
    # A part of the sum stays as near to its mean as the whole does.
    least = np.maximum(np.floor(middle - (mean - lowest)), ends[0])
    most = np.minimum(np.ceil(middle + (highest - mean)), ends[1])
    deviations = np.sqrt(both @ windows.variance)
    overlapping = np.any(times.sum(axis=0) > multiplicity)
    blurred = deviations.min() < _FINE * grid.step or least.min() < is_fine_from(grid.step)
    if overlapping or (grid.step > 1 and blurred):
        return None
    counts = both.sum(axis=2)

    def law(values: GridLaw, group: int, part: int) -> SumLaw:
        place = group, part
        ends = float(least[place]), float(most[place])
        return SumLaw([values], *ends, float(deviations[place]), int(counts[place]))

    return (
        (law(own, group, 0), law(rest, group, 1))
        for group, (own, rest) in enumerate(grid.groups(times))
    )
