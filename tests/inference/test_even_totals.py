"""Sums over totals at even distances against sums over all."""

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.convolution.completions import ListedTotals
from opendp_bayes.inference.convolution.even_totals import evenly
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.count_laws import CountLaws

SIZES = np.arange(600, 1401)


def chosen(log_mass):
    """What stands for all sizes of a law whose logarithm is given, and all."""
    cells = Cells(np.zeros_like(SIZES), SIZES, SIZES)
    heights = np.maximum(log_mass(SIZES * 1.0), NOTHING)
    every = ListedTotals(SIZES[None] * 1.0, heights)

    def law(_category, sizes):
        return np.maximum(log_mass(sizes), NOTHING)

    size = CountLaws(cells, special.softmax(cells.log_masses(law)))
    return evenly(every, size, log_mass, law), every


def test_totals_of_a_smooth_law_are_few_and_sum_to_the_same():
    found, every = chosen(lambda sizes: stats.norm.logpdf(sizes, 1003, 40))
    assert found.totals.size < every.totals.size / 8
    for function in (np.ones_like, np.log, lambda n: stats.norm.pdf(n, 960, 25)):
        sums = [np.exp(t.log_weights) @ function(t.totals[0]) for t in (found, every)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-9)


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(lambda n: -np.abs(n - 1000) / 3 + 0 * n, id="a peak"),
        pytest.param(lambda n: np.where(n > 900, -((n - 880) / 100), -np.inf), id="an edge"),
        pytest.param(lambda n: np.log(1.01 + np.cos(2 * n)) - ((n - 1e3) / 60) ** 2, id="waves"),
    ],
)
def test_totals_of_any_other_law_are_all_there(law):
    found, every = chosen(law)
    assert found is every
