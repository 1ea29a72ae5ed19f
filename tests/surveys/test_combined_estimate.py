"""One estimate from those of several synthetic data sets, by pencil and paper."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob

ESTIMATES, VARIANCES = [1.0, 2.0, 6.0], [0.5, 1.0, 1.5]  # mean 3, variance 7; mean 1


@pytest.mark.parametrize(
    ("kind", "variance", "freedom"),
    [
        ("population", 1 + 28 / 3, 2 * (1 + 3 / 28) ** 2),
        ("predictive", 28 / 3 - 1, 2 * (1 - 3 / 28) ** 2),
    ],
)
def test_the_numbers_of_a_small_case(kind: Any, variance: float, freedom: float) -> None:
    combined = ob.combine_estimates(ESTIMATES, VARIANCES, kind=kind)
    assert combined.estimate == 3.0
    assert combined.variance == pytest.approx(variance)
    assert combined.degrees_of_freedom == pytest.approx(freedom)
    reach = stats.t.ppf(0.9, freedom) * variance**0.5
    assert combined.interval(0.8) == pytest.approx((3 - reach, 3 + reach))


def test_copies_that_agree_have_at_least_the_variance_of_one() -> None:
    """A difference near 0 is mostly chance."""
    combined = ob.combine_estimates([2.0, 2.0, 2.0], VARIANCES, kind="predictive")
    assert combined.variance == pytest.approx(1.0)
    assert combined.degrees_of_freedom == pytest.approx(0.5)
    assert ob.combine_estimates([2.0] * 3, VARIANCES, kind="population").std == pytest.approx(1.0)


def test_a_copy_whose_analysis_failed_is_told() -> None:
    good = np.full((5, 2), 0.2)
    failed = good.copy()
    failed[3, 1] = 500.0
    estimates = np.arange(10.0).reshape(5, 2)
    ob.combine_estimates(estimates, good, kind="population")
    rare = np.array([0.0, 0.0, 0.0, 1e-9])  # a share of 0 in most copies
    ob.combine_estimates(rare, rare, kind="population")
    with pytest.warns(UserWarning, match="1000 times their median"):
        ob.combine_estimates(estimates, failed, kind="population")
