"""Counts as they were drawn: what was drawn of some, and how probable it was."""

import numpy as np
import pytest

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace

LAWS = [DiscreteLaplace(2.0), FlooredLaplace(1.5), DiscreteGaussian(3.0)]
NOISED = (True, False, True)


@pytest.mark.parametrize("law", LAWS)
def test_only_counts_with_noise_say_anything_at_any_places(law):
    looks, counts = DrawnCounts.of((5, -3, 40), law, NOISED), np.array([[3, 9, 38], [5, 0, 41]])
    right = law.log_mass(np.array([5, 0, 40]) - counts) * NOISED
    assert looks.log_mass(counts) == pytest.approx(right)
    assert looks.log_likelihood(counts) == pytest.approx(right.sum(axis=1))
    assert not looks.is_complete
    whole = DrawnCounts.of((5, -3, 40), law)
    assert whole.is_complete
    assert whole.log_likelihood(counts) == pytest.approx(
        law.log_mass(np.array([5, -3, 40]) - counts).sum(axis=1)
    )
    looks, counts = DrawnCounts.of((5, -3, 40), law, NOISED), np.arange(12).reshape(3, 4)
    each = looks.log_mass(counts, (slice(None), None))
    assert each == pytest.approx(
        np.stack([looks.log_mass(row, at) for at, row in enumerate(counts)])
    )
    some = looks.chosen([2, 1])
    assert some.drawn.tolist() == [40, -3]
    assert some.noised.tolist() == [True, False]
    placed = looks.placed(([0, 1, 1], [1, 0, 1]), (2, 2))
    assert placed.drawn.tolist() == [[0, 5], [-3, 40]]
    assert placed.noised.tolist() == [[False, True], [False, True]]
    assert np.all(placed.log_mass(np.zeros((2, 2)))[:, 0] == 0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("step", [1, -2, np.array([[3], [-1]])])
def test_ratios_are_of_the_counts_after_and_before_a_step(law, step):
    looks, counts = DrawnCounts.of((5, -3, 40), law, NOISED), np.array([3, 9, 38])
    right = looks.log_mass(counts + step) - looks.log_mass(counts)
    assert looks.log_ratio(counts, step) == pytest.approx(right)
    at = np.array([2, 0])
    assert looks.log_ratio(counts[at], step, at) == pytest.approx(right[..., at])


def test_kinks_are_where_a_logarithm_has_no_second_derivative():
    looks = DrawnCounts.of((5, -3), DiscreteLaplace(2.0))
    assert [kink.tolist() for kink in looks.kinks] == [[5, -3]]
    assert DrawnCounts.of((5, -3), DiscreteGaussian(2.0)).kinks == []
    floored = DrawnCounts.of((5, -3), FlooredLaplace(2.0))
    assert [kink.tolist() for kink in floored.kinks] == [
        (floored.drawn - at).tolist() for at in FlooredLaplace.kinks
    ]
