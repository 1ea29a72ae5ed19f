"""Cells: a partition, fine where it was asked to be and nowhere too coarse."""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.laws.count_cells import Cells, graded_edges


@pytest.mark.parametrize(
    ("last", "around"),
    [
        (0, []),
        (1, [0]),
        (31, [7]),
        (1000, [3]),
        (10**6, [0]),
        (10**6, [300_000, 999_999]),
        (10**12, [5 * 10**11]),
    ],
)
def test_cells_make_up_the_range_and_grow_with_the_distance_from_the_points(last, around):
    edges = graded_edges(last, around)
    assert edges[0] == 0
    assert edges[-1] == last + 1
    lengths = np.diff(edges)
    assert np.all(lengths >= 1)
    points = np.array([0, last, *around])
    away = np.min(
        [
            np.where(edges[:-1] > p, edges[:-1] - p, np.maximum(p - edges[1:] + 1, 0))
            for p in points
        ],
        axis=0,
    )
    assert np.all(lengths <= np.maximum(1, away / 31))
    assert edges.size <= 2 * points.size * (40 + 33 * np.log(max(last, 3)))


def test_sums_of_masses_whose_logarithms_would_overflow():
    cells = Cells(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 9, 0]))
    log_masses = np.random.default_rng(2).normal(size=(3, 4)) * 2000
    log_masses[0, 1:] = -np.inf
    right = [special.logsumexp(log_masses[:2]), special.logsumexp(log_masses[2])]
    assert cells.log_sums(log_masses) == pytest.approx(right)
