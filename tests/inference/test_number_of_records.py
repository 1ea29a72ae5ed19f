"""The number of records: its weights, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution.number_of_records import private
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from tests.helpers.given_noise import categories_of


def known(drawn, scale=2.0, prior=1.0):
    return categories_of(drawn, np.full(len(drawn), prior), DiscreteLaplace(scale))


def test_weights_and_ranges_of_private_sizes_that_something_bounds():
    categories = known([30, 12])
    total = private(categories, stats.randint(50, 60))
    assert (total.lowest, total.highest) == (50, 59)
    step = np.diff(total.log_weight(np.array([51.0, 52.0])))
    assert step == pytest.approx(np.log(52) - np.log(51 + 2))
    assert private(categories, None).lowest == 0
    assert private(categories, stats.randint(7, 8)).is_point
    open_ended = categories_of([3, 0], np.ones(2), DiscreteLaplace(1.0), [True, False])
    with pytest.raises(ValueError, match="records_prior"):
        private(open_ended, None)
    assert private(open_ended, stats.poisson(30)).highest < 200
    with pytest.raises(ValueError, match="no number of records"):
        private(known([3, 4]), stats.randint(-5, -1))
    with pytest.raises(ValueError, match="1e15"):
        private(known([1, 2], 2.0**60), None)


@pytest.mark.parametrize("numbers", [[3, 40, 44], [3, 4, 5, 6, 7, 9], [7, 8, 10]])
def test_a_prior_of_the_number_of_records_with_gaps_is_refused(numbers):
    gappy = stats.rv_discrete(values=(numbers, np.full(len(numbers), 1 / len(numbers))))
    with pytest.raises(ValueError, match="records_prior: has gaps"):
        private(known([30, 12]), gappy)
    whole = np.arange(3, 8)
    without = stats.rv_discrete(values=(whole, np.full(5, 0.2)))
    assert private(known([30, 12]), without).highest == 7


@pytest.mark.parametrize("records_prior", [stats.poisson(10**6), stats.nbinom(20, 2e-5)])
def test_a_prior_far_above_what_was_drawn_is_refused_before_memory_is_asked_for(records_prior):
    """Negative controls: the same where as many were drawn, and a prior that reaches down."""
    with pytest.raises(ValueError, match=r"records_prior: .* records.* at most 32768"):
        private(known([5, 3, 0, 2]), records_prior)
    mean = int(records_prior.mean())
    assert private(known([mean, 3, 0, 2]), records_prior).highest > mean
    assert private(known([5, 3, 0, 2]), stats.randint(0, 10**6)).highest > 10**5
