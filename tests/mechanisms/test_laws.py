"""What the families of laws say of themselves."""

import math

import numpy as np
import pytest

from opendp_bayes import GaussianParameters, KNormParameters
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import SATURATION, AdditiveNoise, saturated


def of(*noised: bool) -> AdditiveNoise:
    return AdditiveNoise(DiscreteLaplace(1.0), noised)


def test_a_record_moves_one_count_and_a_changed_one_two() -> None:
    assert [of(True, True, True).moved(size) for size in (None, 5)] == [1, 2]
    assert [of(True, False).moved(size) for size in (None, 5)] == [1, 1]
    assert [of(True, True, False).moved(size) for size in (None, 5)] == [1, 2]


def test_what_is_not_noised_is_what_the_others_leave() -> None:
    drawn = of(True, False, True).completed(np.array([[3, -1], [0, 9]]), 6)
    assert drawn.tolist() == [[3, 4, -1], [0, -3, 9]]
    assert of(True, True).completed(np.array([[3, -1]]), 6).tolist() == [[3, -1]]
    assert of(True, False, True).completed(np.array([7, -2]), 9).tolist() == [7, 4, -2]
    several = of(True, False, True).completed(np.full((2, 5, 2), 1), 9)
    assert several.tolist() == [[[1, 7, 1]] * 5] * 2


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_rest_of_very_large_draws_does_not_wrap_around(sign: int) -> None:
    """Their sum is beyond the machine integers."""
    drawn = of(True, True, True, False).completed(np.full((1, 3), sign * SATURATION), 6)
    assert drawn.tolist() == [[sign * SATURATION] * 3 + [-sign * SATURATION]]


def test_saturation_and_cuts() -> None:
    """Those of a private number are where they are clamped; of K-norm noise on two categories
    where released counts end.
    """
    beyond = np.array([2**70, -(2**70), 2**62, -(2**62), 5], dtype=object)
    assert saturated(beyond).tolist() == [2**62, -(2**62), 2**62, -(2**62), 5]
    nowhere, prior = (-math.inf, math.inf), np.ones(3)
    assert of(True, True).cut == GaussianParameters(2.0).law(10, prior).cut == nowhere
    private = GaussianParameters(2.0, total="private")
    clamped = private.project(np.array([-5, 0, 7]), None)
    assert private.law(None, prior).cut == (clamped.min(), math.inf)
    assert KNormParameters(0.25).law(7, np.ones(2)).cut == (0, 7)
    assert KNormParameters(0.25).law(None, np.ones(2)).cut == (0, math.inf)
