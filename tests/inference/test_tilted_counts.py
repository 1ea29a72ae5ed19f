"""Cells of counts: modes that are narrow are found, and few cells hold all counts."""

import numpy as np

from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts, modes
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers.given_noise import categories_of


def known(law, drawn, prior):
    drawn = np.array(drawn)
    return categories_of(drawn, prior, law)


def test_few_cells_hold_a_billion_counts_and_modes_of_narrow_peaks_are_found():
    categories = known(DiscreteGaussian(50.0), (10**8, 500, -(10**7)), (1.0, 0.01, 1e6))
    counts = np.arange(4 * 10**7)[:2000]
    (found,) = modes(categories, np.zeros(1), 10**9)
    assert found[0] == 10**8
    assert abs(int(found[1]) - 495) <= 3  # and another one at 0
    row = np.full(counts.size, 2)
    anchor = np.zeros(3, dtype=np.int64)
    right = counts[np.argmax(categories.log_weight(row, counts, anchor))]
    assert found[2] == right
    categories = known(DiscreteLaplace(1e7), (3 * 10**8, 5), (0.5, 1e-6))
    cells = TiltedCounts.of(categories, np.zeros(1), 10**9).cells
    assert cells.first.size < 1000
    for i in range(2):
        first, last = cells.first[cells.category == i], cells.last[cells.category == i]
        assert np.all(first[1:] == last[:-1] + 1)
