"""The posterior of a release with Gaussian noise, by its definition over every data set."""

import numpy as np
import pytest

from opendp_bayes import GaussianParameters
from tests.helpers import brute_force

#: What is stated of means, and of cumulative probabilities.
ERROR = 1e-3
GRID = np.linspace(0.02, 0.98, 25)
DRAWN = [
    ((5, 7), (1.0, 1.0), 1.0),
    ((15, -6), (0.5, 2.0), 3.0),  # drawn far from counts, with another sum
    ((3, 1, 2), (1.0, 1.0, 1.0), 0.6),
    ((9, 4, 3), (0.3, 1.0, 2.0), 2.0),
    ((-4, 2, 1), (1.0, 0.2, 1.0), 4.0),
    ((2, 0, 3, -1), (1.0, 1.0, 1.0, 1.0), 1.5),
]


def agrees(made, largest=None):
    found = made.posterior
    means = brute_force.mean(made, largest)
    cdf = brute_force.cdf(made, GRID, largest)
    return max(
        np.max(np.abs(found.mean() - means)),
        np.max(np.abs(np.stack([found.cdf(value) for value in GRID]) - cdf)),
    )


@pytest.mark.parametrize(("drawn", "prior", "scale"), DRAWN)
def test_a_public_number_of_records(release, drawn, prior, scale):
    """What was drawn does not sum to it; the true counts do."""
    size = 12 if len(drawn) < 4 else 8
    made = release(GaussianParameters(scale), drawn, size, prior)
    assert sum(drawn) != size or len(drawn) == 2
    assert sum(made.counts) == size
    assert agrees(made) <= ERROR
    other = release(GaussianParameters(scale), (drawn[0] + 2, *drawn[1:]), size, prior)
    assert np.max(np.abs(other.posterior.mean() - brute_force.mean(made))) > ERROR


@pytest.mark.parametrize(("drawn", "prior", "scale"), DRAWN[:4])
def test_a_private_number_of_records(release, drawn, prior, scale):
    made = release(GaussianParameters(scale), drawn, None, prior)
    assert made.counts == tuple(np.maximum(drawn, 0).tolist())
    largest = max(drawn) + int(9 * scale) if len(drawn) == 2 else max(drawn) + int(6 * scale)
    assert agrees(made, largest) <= ERROR


def test_total_private_with_a_public_number_of_records(release):
    """The projection does not use the number of records; the posterior does."""
    made, kept = (
        release(GaussianParameters(2.0, total), (9, 4, -3), 12, None) for total in ("private", None)
    )
    assert (made.counts, kept.counts) == ((9, 4, 0), (8, 4, 0))
    assert made.posterior.mean() == pytest.approx(kept.posterior.mean(), abs=1e-9)
