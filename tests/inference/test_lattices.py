"""Laws on lattices: moments that are kept, and what is between points."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution.lattices import Lattices, spreading


def bell(step, mean, deviation):
    """A normal law on so many points that nothing is left out."""
    places = step * np.arange(int(2 * mean / step))
    masses = stats.norm(mean, deviation).pdf(places)
    return Lattices(np.array([0]), np.array([step]), masses[None])


def moments(lattices, row):
    places = lattices.origin[row] + lattices.step[row] * np.arange(lattices.points)
    masses = lattices.masses[row]
    return [masses @ (places - 500.0) ** power for power in range(4)]


def test_masses_are_handed_on_with_three_moments():
    rng = np.random.default_rng(0)
    places, masses = rng.uniform(10, 990, 50), rng.random(50)
    made = spreading(np.zeros(50, int), places / 8, 1, 130) @ masses
    made = Lattices(np.array([0]), np.array([8]), made[None])
    right = [masses @ (places - 500) ** power for power in range(4)]
    assert moments(made, 0) == pytest.approx(right, rel=1e-9)
    nearest = np.bincount(np.rint(places / 8).astype(int), masses, 130)
    rounded = Lattices(np.array([0]), np.array([8]), nearest[None])
    assert moments(rounded, 0)[1] != pytest.approx(right[1], rel=1e-9)  # the nearest point is not


def test_between_points_a_law_is_nearly_what_it_is():
    laws = bell(8, 500, 60)
    sums = np.array([350.0, 421.0, 500.5, 613.0])
    found = laws.read(np.zeros(4, int), sums)
    assert found == pytest.approx(stats.norm(500, 60).pdf(sums), rel=1e-4)
    assert laws.read(np.zeros(2, int), np.array([-1.0, 1e6])).tolist() == [0.0, 0.0]


def test_rows_of_several_have_as_many_points_each():
    laws = Lattices.joined([bell(8, 500, 60), bell(4, 300, 20)])
    sums = np.array([480.0, 310.0])
    right = [stats.norm(500, 60).pdf(480), stats.norm(300, 20).pdf(310)]
    assert laws.read(np.array([0, 1]), sums) == pytest.approx(right, rel=1e-4)
    assert laws.read(np.array([1, 0]), sums) != pytest.approx(right, rel=1e-4)
