"""Shares of a budget by errors, where the best ones are known in closed form."""

import math

import numpy as np
import pytest

from opendp_bayes.planning.shares import solved_shares

FACTORS = {"a": 1.0, "b": 3.0, "c": 12.0, "d": 0.05}


def hyperbolas(power=1.0):
    return {name: lambda s, f=f: f / s**power for name, f in FACTORS.items()}


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_smallest_mean_of_powers_of_the_share(power):
    """By Lagrange: shares in proportion to `f^(1 / (1 + p))`."""
    shares = solved_shares(hyperbolas(power))
    wanted = np.array(list(FACTORS.values())) ** (1 / (1 + power))
    assert list(shares.values()) == pytest.approx(wanted / wanted.sum(), rel=1e-3)


def saturating(share, factor):
    """An error like a Hellinger distance: at most 1."""
    return math.tanh(factor / share)


def test_the_smallest_mean_of_bent_errors_is_not_improved_by_moving_the_budget():
    errors = {"low": lambda share: saturating(share, 0.03), "high": lambda s: 0.1 + 0.02 / s}
    best = solved_shares(errors)["low"]

    def mean(share):
        return errors["low"](share) + errors["high"](1 - share)

    others = np.linspace(0.001, 0.999, 999)
    assert mean(best) <= 1.001 * min(map(mean, others))
    assert mean(0.1) > 1.1 * mean(best)


def test_one_question_gets_the_whole_and_no_error_is_computed():
    assert solved_shares({"a": lambda share: 1 / 0}) == {"a": 1.0}


def test_errors_of_nothing_have_equal_shares():
    shares = solved_shares({"a": lambda share: 0.0, "b": lambda share: 0.0})
    assert list(shares.values()) == pytest.approx([0.5, 0.5])
