"""Sums in logarithms and logits against SciPy's, at every size and with nothing in them."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from opendp_bayes.mathematics.log_space import log_sum_exp, logistic


@pytest.mark.parametrize("shape", [(1, 3), (5, 200), (3, 40, 7), (2, 0, 3)])
@pytest.mark.parametrize("center", [-1e4, 0.0, 700.0, 1e4])
def test_agrees_with_scipy(shape: tuple[int, ...], center: float) -> None:
    """Within 4 rounding errors of the largest value: exp() of `center` itself is 0 or infinite."""
    values = np.random.default_rng(0).normal(center, 30.0, shape)
    values[np.random.default_rng(1).random(shape) < 0.2] = -np.inf
    before = values.copy()
    for axis in range(len(shape)):
        if shape[axis]:
            with np.errstate(divide="ignore"):
                expected = logsumexp(values, axis=axis)
            found = log_sum_exp(values, axis)
            assert found.shape == expected.shape
            assert np.allclose(found, expected, rtol=2.0**-50, atol=2.0**-50)
    assert np.array_equal(values, before)


def test_ends_of_sums_and_of_logits() -> None:
    assert log_sum_exp(np.zeros((2, 0)), axis=1).tolist() == [-np.inf, -np.inf]
    values = np.array([[-np.inf, -np.inf], [np.inf, 0.0], [np.inf, -np.inf]])
    assert log_sum_exp(values, axis=1).tolist() == [-np.inf, np.inf, np.inf]
    logits = np.linspace(-700, 700, 1401)
    assert np.allclose(logistic(logits), expit(logits), rtol=2.0**-50, atol=0)
    assert logistic(np.array([-744.0, 744.0])).tolist() == [pytest.approx(np.exp(-744.0)), 1.0]
