"""Laws of sums against convolution."""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.convolution.grid import Grid, tails
from opendp_bayes.inference.convolution.grids import coarsest_of, grids_of
from opendp_bayes.inference.convolution.noised_categories import Categories
from opendp_bayes.inference.convolution.sum_laws import SumLaw, cubic_weights
from opendp_bayes.inference.convolution.tilted_counts import Windows
from tests.helpers.noise_laws import DiscreteLaplace

GAPS = np.array([3e-14] * 20 + [1.0] * 2)
DRAWN, PRIOR, TIMES = (40, 3, -5), (1.0, 0.01, 4.0), np.array([2, 1, 3])


def windows(scale=4.0, last=400):
    noised = np.ones(3, dtype=bool)
    categories = Categories(np.array(DRAWN), noised, np.array(PRIOR), DiscreteLaplace(scale))
    return Windows.of(categories, -0.01, last)


def direct(made, times, last=400):
    """The law of the sum, by convolution of all counts."""
    law, counts = np.ones(1), np.arange(last + 1)
    for i, count in enumerate(times):
        row = np.full(last + 1, i)
        p = special.softmax(made.log_probability(row, counts.astype(float)))
        for _ in range(count):
            law = np.convolve(law, p)
    return law


def law_of(grid_laws, lowest, highest):
    return SumLaw(list(grid_laws), float(lowest), float(highest), 1.0, 3)


@pytest.mark.parametrize("step", [1, 3])
def test_sums_of_all_and_of_all_but_one(step):
    made = windows(scale=20.0)
    low, high = tails(made, TIMES)
    length = 2000 // step
    grid = Grid(made, TIMES, step, length)
    sums = np.arange(150, 260)
    right = direct(made, TIMES)[sums]
    found = np.exp(law_of([grid.whole()], low[0], high[0]).log_density(sums))
    assert found == pytest.approx(right, rel=1e-4 if step == 1 else 2e-3)
    for row, law in enumerate(grid.others()):
        times = TIMES - (np.arange(3) == row)
        right = direct(made, times)[sums]
        found = np.exp(law_of([law], low[row + 1], high[row + 1]).log_density(sums))
        assert found == pytest.approx(right, rel=1e-4 if step == 1 else 2e-3)


def test_sums_of_what_follows():
    made, ones = windows(), np.ones(3, dtype=np.int64)
    grid = Grid(made, ones, 1, 1500)
    laws = list(grid.later())
    right = direct(made, [0, 1, 1])
    found = np.exp(law_of([laws[0]], 0, 1000).log_density(np.arange(100)))
    assert found == pytest.approx(right[:100], abs=1e-13)


def test_blocks_do_not_change_the_sums(monkeypatch):
    made = windows()
    whole = [law.values for law in Grid(made, TIMES, 1, 1500).others()]
    monkeypatch.setattr("opendp_bayes.inference.convolution.grid._BLOCK", 1500)
    grid = Grid(made, TIMES, 1, 1500)
    assert len(grid.blocks()) == 3
    for law, right in zip(grid.others(), whole, strict=True):
        assert law.values == pytest.approx(right, abs=1e-15)


def test_tails_hold_the_sum():
    made = windows()
    low, high = tails(made, TIMES)
    law = direct(made, TIMES)
    sums = np.arange(law.size)
    assert law[(sums < low[0]) | (sums > high[0])].sum() < 1e-14
    assert high[0] - low[0] < 400


def test_a_zoom_is_right_near_zero_where_the_grid_is_not(monkeypatch):
    """Atoms at 0 and a wide rest."""
    noised = np.ones(3, dtype=bool)
    prior = np.array([0.01, 0.02, 0.1])
    categories = Categories(np.array([5, 50, 9]), noised, prior, DiscreteLaplace(1e4))
    made, ones = Windows.of(categories, 0.0, 3000), np.ones(3, dtype=np.int64)
    monkeypatch.setattr("opendp_bayes.inference.convolution.grids._LONGEST", 700)
    monkeypatch.setattr("opendp_bayes.inference.convolution.grids._LONGEST_OF_MANY", 700)
    for module in ("grid", "grids"):
        monkeypatch.setattr(f"opendp_bayes.inference.convolution.{module}.ZOOM", 512)
    monkeypatch.setattr("opendp_bayes.inference.convolution.grids._FINER", 16)
    low, high = tails(made, ones)
    grids = grids_of(made, ones, low, high)
    assert [grid.zoom for grid in grids] == [True, False]
    law = law_of([grid.whole() for grid in grids], low[0], high[0])
    right = direct(made, ones, 3000)
    sums = np.concatenate([np.arange(20), np.arange(20, 2500, 7)])
    assert np.exp(law.log_density(sums)) == pytest.approx(right[sums], rel=5e-3)
    coarse = law_of([grids[1].whole()], low[0], high[0])
    assert np.exp(coarse.log_density(np.zeros(1))) != pytest.approx(right[:1], rel=0.5)


def many(drawn, prior, scale, last):
    drawn = np.array(drawn)
    noised = np.ones(drawn.size, dtype=bool)
    categories = Categories(drawn, noised, np.ones(drawn.size) * prior, DiscreteLaplace(scale))
    made = Windows.of(categories, 0.0, last)
    ones = np.ones(drawn.size, dtype=np.int64)
    return made, ones, tails(made, ones)


def test_a_smooth_sum_has_a_coarse_grid_and_the_same_law():
    drawn = np.arange(600, 640)
    made, ones, (low, high) = many(drawn, 1.0, 40.0, 2500)
    (coarse,), (fine,) = (choose(made, ones, low, high) for choose in (coarsest_of, grids_of))
    assert (coarse.step, fine.step) == (5, 1)
    sums = np.arange(int(low[0]), int(high[0]) + 1)
    middle = np.abs(sums - ones @ made.mean) < 6 * np.sqrt(ones @ made.variance)
    for left_out in (None, 0, 39):
        laws = [
            grid.whole() if left_out is None else list(grid.others())[left_out]
            for grid in (coarse, fine)
        ]
        place = sums[middle] - (0 if left_out is None else int(made.mean[left_out]))
        found, right = (law.density(place.astype(float)) for law in laws)
        assert found == pytest.approx(right, rel=1e-3, abs=1e-6 * right.max())


@pytest.mark.parametrize(
    ("drawn", "prior", "scale"),
    [
        pytest.param([600] * 30 + [5], 1.0, 1.0, id="no deviation of several counts"),
        pytest.param([600, 30, 30], 1.0, 200.0, id="one of the counts decides"),
        pytest.param([0] * 40, 0.5, 40.0, id="sums near 0"),
        # Each is 0 or near 2000, so that the sum is near a multiple of 2000.
        pytest.param([2000] * 20 + [10**5] * 2, GAPS, 64.0, id="sums with gaps"),
    ],
)
def test_a_sum_that_is_not_smooth_or_narrow_or_near_zero_keeps_its_grid(drawn, prior, scale):
    made, ones, bounds = many(drawn, prior, scale, 200_000)
    assert [grid.step for grid in coarsest_of(made, ones, *bounds)] == [1]


def test_the_cubic_through_four_points():
    place = np.array([4.0, 5.25, 9.9])
    base, weights = cubic_weights(place)
    points = base + np.arange(4)[:, None]
    for power in range(4):
        assert (weights * points**power).sum(axis=0) == pytest.approx(place**power)
