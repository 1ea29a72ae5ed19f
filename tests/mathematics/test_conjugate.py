"""Conjugate updates."""

import numpy as np
import pytest

from opendp_bayes.research import binomial_beta, multinomial_dirichlet


def test_binomial_beta_counts_successes_first() -> None:
    assert binomial_beta(n=10, x=7).tolist() == [8.0, 4.0]
    assert binomial_beta(n=10, x=7, prior=0.5).tolist() == [7.5, 3.5]
    assert binomial_beta(n=0, x=0, prior=[2, 3]).tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("n", "x"), [(10, 11), (10, -1), (-1, 0), (-1, -1)])
def test_binomial_beta_refuses_impossible_counts(n: int, x: int) -> None:
    with pytest.raises(ValueError, match=rf"x={x}: must be between 0 and n={n}\."):
        binomial_beta(n=n, x=x)


def test_multinomial_dirichlet_is_prior_plus_counts() -> None:
    result = multinomial_dirichlet(x=np.array([3, 0, 2]), prior=[0.5, 1.0, 2.0])
    assert result.tolist() == [3.5, 1.0, 4.0]
    assert result.dtype == np.float64


def test_updates_in_two_steps_or_one() -> None:
    once = multinomial_dirichlet(x=[4, 6, 1], prior=0.25)
    twice = multinomial_dirichlet(x=[3, 1, 1], prior=multinomial_dirichlet(x=[1, 5, 0], prior=0.25))
    assert once.tolist() == twice.tolist()


def test_multinomial_dirichlet_refuses_invalid_input() -> None:
    with pytest.raises(ValueError, match=r"x: .*between"):
        multinomial_dirichlet(x=[-1, 2])
    with pytest.raises(TypeError, match=r"x: has dtype float64; .*whole"):
        multinomial_dirichlet(x=[0.5, 2])
    with pytest.raises(ValueError, match=r"prior=.*: has shape \(3,\).* 2 entries"):
        multinomial_dirichlet(x=[1, 2], prior=[1, 1, 1])
