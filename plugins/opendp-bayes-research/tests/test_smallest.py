"""The smallest loss or size for an error, by plans with as much and with a little less."""

import pytest

from opendp_bayes import LaplaceParameters, plan
from opendp_bayes_research import smallest_epsilon, smallest_size

#: The errors are not measured here, but what is found by them.
pytestmark = pytest.mark.usefixtures("coarse_errors")


def test_the_smallest_epsilon_and_size_reach_the_error_and_little_less_does_not() -> None:
    prior, error = (1.0, 1.0), 0.1

    def score(size: int, epsilon: float) -> float:
        return (
            plan(size=size, prior=prior, epsilon=epsilon, mechanisms=[LaplaceParameters(1.0)])
            .rows[0]
            .score
        )

    epsilon = smallest_epsilon(error, size=500, prior=prior)
    assert score(500, epsilon) <= error < score(500, 0.998 * epsilon)
    size = smallest_size(error, epsilon=1.0, prior=prior)
    assert score(size, 1.0) <= error < score(size - 1, 1.0)
    assert smallest_size(error, epsilon=1.0, prior=prior, private=True) > 1
    assert smallest_epsilon(error, size=None, guess_size=500, prior=prior) > 0
