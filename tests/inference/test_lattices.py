"""Laws on lattices: moments that are kept, and what is between points."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution.lattices import Lattices, quantiles, spread


def bell(origin, step, mean, deviation):
    """A row with a normal law on so many points that nothing is left out."""
    origin = origin // step * step
    points = int(2 * (mean - origin) / step)
    places = origin + step * np.arange(points)
    masses = stats.norm(mean, deviation).pdf(places) * step
    return origin, step, masses


def moments(lattices, row):
    places = lattices.origin[row] + lattices.step[row] * np.arange(lattices.points)
    masses = lattices.masses[row]
    return [masses @ (places - 500.0) ** power for power in range(4)]


def test_masses_are_handed_on_with_three_moments():
    rng = np.random.default_rng(0)
    places, masses = rng.uniform(10, 990, 50), rng.random(50)
    made = spread(np.zeros(50, int), places, masses, np.array([0]), np.array([8]), 130)
    right = [masses @ (places - 500) ** power for power in range(4)]
    assert moments(made, 0) == pytest.approx(right, rel=1e-9)
    nearest = np.bincount(np.rint(places / 8).astype(int), masses, 130)
    rounded = Lattices(np.array([0]), np.array([8]), nearest[None])
    assert moments(rounded, 0)[1] != pytest.approx(right[1], rel=1e-9)  # the nearest point is not


def test_between_points_a_law_is_nearly_what_it_is():
    laws = Lattices.gathered([bell(0, 8, 500, 60)])
    sums = np.array([350.0, 421.0, 500.5, 613.0])
    found = laws.density(np.zeros(4, int), sums)
    assert found == pytest.approx(stats.norm(500, 60).pdf(sums), rel=1e-4)
    assert laws.density(np.zeros(2, int), np.array([-1.0, 1e6])).tolist() == [0.0, 0.0]


def test_quantiles_are_where_a_law_has_its_weight():
    laws = Lattices.gathered([bell(0, 1, 500, 30)])
    found = np.sort(quantiles(laws)[0])
    assert found[0] == pytest.approx(500 - 3.72 * 30, abs=2)
    assert found[-1] == pytest.approx(500 + 3.72 * 30, abs=2)
    assert 500 in found
