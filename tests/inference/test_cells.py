"""Cells: a partition, fine where it was asked to be and nowhere too coarse."""

import numpy as np
import pytest

from opendp_bayes.inference.cells import cell_of, five_percent_cells, graded_edges, halved_to


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


def test_long_cells_are_cut_evenly():
    edges = halved_to(np.array([0, 1, 11, 12]), np.array([5.0, 4.0, 0.1]))
    assert edges.tolist() == [0, 1, 4, 7, 11, 12]


def test_every_value_is_found_in_its_cell():
    edges = graded_edges(5000, [70])
    values = np.arange(5001)
    cells = cell_of(values, edges)
    assert np.all(edges[cells] <= values)
    assert np.all(values < edges[cells + 1])


def test_five_percent_cells_do_not_merge_what_is_further_apart():
    values = np.arange(100_000)
    cells = five_percent_cells(values)
    assert np.all(np.diff(cells) >= 0)
    for cell in (0, 7, 19, 40, 100):
        inside = values[cells == cell]
        assert inside.size == 0 or inside[-1] <= 1.06 * inside[0]
    assert np.unique(cells[:20]).size == 20
