"""Totals at even distances: a sum over them is as good as one over many more where the weights are
smooth, since the error of such a sum falls faster than any power of the distance.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.completions import ListedTotals
from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats, Integers

#: Distances of totals, in standard deviations of their law.
_STEP = 0.3
#: How near the logarithms of sums over the totals and over every second have to be, and that of
#: the sum over the law's own cells, which is less accurate.
_SAME, _NEAR = 1e-9, 3e-4


def evenly(
    every: ListedTotals,
    size: CountLaws,
    log_weight: Callable[[Floats], Floats],
    log_mass: Callable[[Integers, Floats], Floats],
) -> ListedTotals:
    """What stands for the totals of the law `size` at even distances; `every`, nodes of its cells,
    where that is not as good or not shorter.

    `log_weight` of the totals is without that of the counts, `log_mass` of the law is with it.
    """
    step = int(_STEP * size.std()[0])
    lowest, highest = int(size.cells.first[0]), int(size.cells.last[-1])
    if step < 1 or (highest - lowest) // step >= every.log_weights.size:
        return every
    sizes = np.arange(lowest, highest + 1, step, dtype=np.float64)
    heights = log_mass(np.zeros(sizes.size, dtype=np.int64), sizes)
    own = size.cells.log_masses(log_mass)
    fine = special.logsumexp(heights) + np.log(step)
    coarse = [special.logsumexp(part) + np.log(2 * step) for part in (heights[::2], heights[1::2])]
    good = np.ptp([fine, *coarse]) <= _SAME and abs(fine - special.logsumexp(own)) <= _NEAR
    if not good:
        return every
    kept = heights > NOTHING / 2
    return ListedTotals(sizes[None, kept], log_weight(sizes[kept]) + np.log(step))
