"""Simulation-based calibration: a few settings by default, every setting behind the slow marker,
and the plug-in posterior as control.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.helpers import calibration
from tests.helpers.calibration import MECHANISMS, Cell
from tests.helpers.sweeps import slow, some_of

QUICK = [
    (Cell("discrete Laplace", 2, 200, 0.2), None, 200),
    (Cell("floored Laplace, bounded (LSZhang)", 3, 50, 1.0), (0.5, 1.0, 3.0), 200),
    (Cell("EHDS, γ = 1", 2, 50, 1.0), (0.5, 2.0), 200),
    (Cell("EHD", 3, 10, 1.0), None, 400),
    (Cell("permute-and-flip", 2, 50, 1.0), (2.0, 1.0), 200),
    (Cell("K-norm", 4, 2000, 0.5), calibration.RARE[Cell("K-norm", 4, 2000, 0.5)], 150),
]
#: A posterior takes longer. It is that of brute force in `test_counts_given_noise.py`.
PRIVATE = (Cell("discrete Laplace, n private", 2, 50, 1.0), None)
SETTINGS = [
    Cell(*setting) for setting in product(MECHANISMS, (2, 3, 7), (50, 200, 2000), (0.1, 1.0))
]


def records_prior(cell):
    """The number of records is drawn from its prior, or given."""
    return None if cell.public else stats.geom(1 / cell.size)


def ranks_of(cell, prior, draws, cdf=None):
    return calibration.simulate(cell, draws, 0, prior, records_prior(cell), cdf)


MORE = [(*of, 400) for of in (PRIVATE, *(row[:2] for row in QUICK))]


@pytest.mark.parametrize(("cell", "prior", "draws"), [*some_of(QUICK, 1), *slow(MORE)], ids=repr)
def test_ranks_are_uniform_and_intervals_hold(cell, prior, draws):
    assert not calibration.rejects(ranks_of(cell, prior, draws)[:, 0])


@pytest.mark.parametrize(("cell", "prior"), [setting[:2] for setting in QUICK[:2]], ids=repr)
def test_the_plug_in_posterior_fails_the_same_test(cell, prior):
    """Negative control; at n = 200, ε = 0.2 its nominal 95 % interval holds the truth in 78 % of
    simulations.
    """
    ranks = ranks_of(cell, prior, 400, calibration.plug_in)
    assert calibration.rejects(ranks[:, 0])
    assert calibration.coverage(ranks, 0.95) < 0.9


def test_a_scale_that_is_half_of_the_true_one_fails_too():
    """Negative control: the posterior for half of the noise that there was. Its nominal 95 %
    interval holds the truth in 80 % of simulations.
    """

    def half(release, theta):
        mechanism = replace(release.mechanism, scale=release.mechanism.scale / 2)
        return np.diagonal(replace(release, mechanism=mechanism).posterior.cdf(theta))

    assert calibration.rejects(ranks_of(Cell("EHD", 3, 20, 3.0), None, 400, half)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("cell", SETTINGS, ids=repr)
def test_every_mechanism_in_every_setting(cell):
    """Of the first and the last category, whose part differs for some mechanisms. 648 checks of a
    correct package fail with probability 3e-3.
    """
    if not cell.runs():
        pytest.skip("the mechanism refuses, because it has too many candidates")
    slow = cell.k > 2 and (cell.exponential or cell.mechanism == "K-norm" or not cell.public)
    ranks = calibration.simulate(cell, 200 if slow else 1000, 1, records_prior=records_prior(cell))
    assert not calibration.rejects(ranks[:, 0])
    assert not calibration.rejects(ranks[:, -1])


@pytest.mark.slow
@pytest.mark.parametrize("cell", calibration.RARE, ids=repr)
def test_rare_categories_and_many_data_sets(cell):
    """Every category. 85 checks of a correct package fail with probability 4e-4."""
    ranks = calibration.simulate(cell, 300, 2, calibration.RARE[cell])
    assert not any(calibration.rejects(column) for column in ranks.T)
