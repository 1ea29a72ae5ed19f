"""Cells of counts: a partition of what weighs anything, fine where the weights are not smooth."""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts, modes
from opendp_bayes.inference.laws.count_cells import Cells
from tests.helpers.given_noise import categories_of
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace


def known(law, drawn, prior):
    drawn = np.array(drawn)
    return categories_of(drawn, prior, law)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8, 9, 101, 1000])
def test_nodes_sum_cubics_exactly_and_long_cells_of_degree_5_nearly(length):
    cells = Cells(np.array([0]), np.array([7]), np.array([6 + length]))
    x = np.arange(7, 7 + length) - 5.0
    for power in range(6):
        found = (cells.node_weights * (cells.nodes - 5) ** power).sum()
        allowed = 1e-12 if power < 4 or length in (1, 2, 3, 4, 8) else 0.5 / length
        assert found == pytest.approx((x**power).sum(), rel=allowed)
    assert np.all(cells.node_weights >= 0)
    assert np.all(cells.nodes == np.floor(cells.nodes))


def test_cells_are_cut_and_bounded():
    cells = Cells(np.array([0, 1]), np.array([0, 10]), np.array([9, 10]))
    cut = cells.cut(np.array([3, 5]))
    assert cut.first.tolist() == [0, 4, 7, 10]
    assert cut.last.tolist() == [3, 6, 9, 10]
    inside = cells.within(np.array([4, 11]), np.array([6, 12]))
    assert (inside.first.tolist(), inside.last.tolist()) == ([4], [6])


@pytest.mark.parametrize("tilt", [0.0, -0.4, 0.05])
@pytest.mark.parametrize("law", [DiscreteLaplace(9.0), DiscreteGaussian(30.0)])
def test_moments_against_every_count(law, tilt):
    categories = known(law, (100, -40, 5, 60), (1.0, 0.02, 30.0, 1e-4))
    tilted = TiltedCounts.of(categories, tilt + np.array([-0.01, 0.0, 0.01]), 3000)
    moments = tilted.under(np.array([tilt]))
    counts = np.arange(3001)
    for i in range(4):
        row = np.full(3001, i)
        logs = categories.log_weight(row, counts, tilted.anchor) + tilt * counts
        p = special.softmax(logs)
        mean = p @ counts
        std = np.sqrt(p @ (counts - mean) ** 2)
        assert moments.mean[0, i] == pytest.approx(mean, abs=1e-3 * std)
        assert np.sqrt(moments.variance[0, i]) == pytest.approx(std, rel=1e-3)
        first, last = (int(end[i]) for end in tilted.ends)
        assert p[:first].sum() + p[last + 1 :].sum() < 1e-15
        at = np.array([mean // 1])
        found = tilted.log_weight(np.array([i]), at) - moments.log_norm[0, i]
        found += tilt * (at - tilted.anchor[i])
        assert np.exp(found) == pytest.approx(p[int(at[0])], rel=1e-3)


def test_modes_of_narrow_peaks_are_found_in_a_wide_range():
    categories = known(DiscreteGaussian(50.0), (10**8, 500, -(10**7)), (1.0, 0.01, 1e6))
    counts = np.arange(4 * 10**7)[:2000]
    (found,) = modes(categories, np.zeros(1), 10**9)
    assert found[0] == 10**8
    assert abs(int(found[1]) - 495) <= 3  # and another one at 0
    row = np.full(counts.size, 2)
    anchor = np.zeros(3, dtype=np.int64)
    right = counts[np.argmax(categories.log_weight(row, counts, anchor))]
    assert found[2] == right


def test_few_cells_hold_a_billion_counts():
    categories = known(DiscreteLaplace(1e7), (3 * 10**8, 5), (0.5, 1e-6))
    cells = TiltedCounts.of(categories, np.zeros(1), 10**9).cells
    assert cells.first.size < 1000
    for i in range(2):
        first, last = cells.first[cells.category == i], cells.last[cells.category == i]
        assert np.all(first[1:] == last[:-1] + 1)
