"""What a budget of a query is, in each measure."""

import math

import opendp.prelude as dp
import pytest

from opendp_bayes.framework.budget import check_query_budget, delta_of, loss_in
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


@pytest.mark.parametrize("budget", [1e-300, 2.0, 1e300, (1.0, 0.0), (1.0, 1e-6)])
def test_a_budget_that_buys_something(budget):
    check_query_budget(budget)


@pytest.mark.parametrize("budget", [0.0, (0.0, 1e-6), -1.0, math.nan, math.inf, (math.inf, 1e-6)])
def test_a_budget_that_buys_nothing(budget):
    with pytest.raises(ValueError, match="epsilon or rho must be finite and greater than 0"):
        check_query_budget(budget)


def test_the_delta_of_a_budget_is_that_of_approximate_losses_alone():
    assert delta_of(dp.approximate(PURE), (1.0, 1e-6)) == 1e-6
    assert delta_of(dp.approximate(PURE), None) == 0.0
    assert delta_of(dp.approximate(ZCDP), (1.0, 1e-6)) == 0.0
    assert delta_of(PURE, 1.0) == delta_of(ZCDP, 1.0) == 0.0


def test_a_loss_in_each_measure():
    loss = PrivacyLoss(epsilon=1.0, range=1.5, rho=0.25, delta=1e-6)
    assert loss_in(PURE)(loss) == (1.0,)
    assert loss_in(ZCDP)(loss) == (0.25,)
    assert loss_in(dp.approximate(PURE))(loss) == (1.0, 1e-6)
    assert loss_in(dp.approximate(ZCDP))(loss) == (0.25, 0.0)
