"""The smallest loss or size for an error, by plans with as much and with a little less."""

from typing import Any

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


def test_errors_that_are_not_reached() -> None:
    with pytest.raises(ValueError, match=r"error=1.0: must be below 1"):
        smallest_epsilon(1, size=9, prior=[1.0, 1.0])
    with pytest.raises(ValueError, match=r"error=0\.001: .*9 records .* up to 1000"):
        smallest_epsilon(1e-3, size=None, guess_size=9, prior=[1.0, 1.0], d_in=10**6)
    with pytest.raises(ValueError, match=r"error=1e-09: .*epsilon=0\.1 .* 10\^12 records"):
        smallest_size(1e-9, epsilon=0.1, prior=[1.0, 1.0])


def test_more_records_of_a_person_take_as_many_times_the_epsilon() -> None:
    """Laplace noise at d_in = 3 and 3 ε is that at 1 and ε."""
    setting: dict[str, Any] = {"size": 1000, "prior": [1.0, 2.0]}
    one, three = (smallest_epsilon(0.05, **setting, d_in=d_in) for d_in in (1, 3))
    assert three == pytest.approx(3 * one, rel=2e-3)
    sizes = [
        smallest_size(0.05, epsilon=d_in * 1.0, prior=[1.0, 2.0], d_in=d_in) for d_in in (1, 3)
    ]
    assert sizes[0] == sizes[1]
