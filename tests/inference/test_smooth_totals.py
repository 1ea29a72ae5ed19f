"""Interpolated sums over a private number of records against the sums themselves."""

from dataclasses import dataclass

import numpy as np
import pytest

from opendp_bayes.inference.convolution import smooth_totals
from opendp_bayes.inference.convolution.completions import ListedTotals
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.smooth_totals import SmoothTotals
from opendp_bayes.inference.laws.count_cells import NOTHING
from tests.helpers.noise_laws import DiscreteLaplace


@dataclass(frozen=True)
class Gamma:
    """A law like that of the sum of many counts with wide noise."""

    shape: float
    scale: float
    lowest: float = 0.0
    highest: float = 3e6
    seeds: np.ndarray = None
    is_smooth: bool = True
    log_peak: float | None = None

    @property
    def deviation(self):
        return np.sqrt(self.shape) * self.scale

    def log_density(self, values):
        safe = np.maximum(values, 1.0)
        heights = (self.shape - 1) * np.log(safe) - safe / self.scale
        return np.where(values > 0, heights, NOTHING)


def furthest():
    """Of the logarithms of sums, where counts are probable."""
    own, rest = Gamma(0.5, 5e4, highest=4e5), Gamma(14.5, 8e4)
    sizes = np.arange(78_000.0, 4_000_000.0, 15_000.0)
    weights = sizes / 8e4 - 15 * np.log(sizes) - (sizes / 2e6) ** 2
    listed = ListedTotals(sizes[None], weights)
    made = SmoothTotals.of(listed, listed, own, rest, 0.5, 14.5)
    counts = np.linspace(0, 3e5, 1001)
    right = listed.log_sums(rest, np.zeros(counts.size, dtype=np.int64), counts)
    return np.abs(made.log_sums(rest, np.zeros(1), counts) - right).max()


def test_knots_are_as_near_as_weights_of_the_number_of_records_ask_for():
    assert furthest() <= 1e-3


def test_knots_by_the_deviation_of_the_others_alone_are_seen_to_be_too_few(monkeypatch):
    """Negative control."""
    monkeypatch.setattr(smooth_totals, "_MOST", 0)
    assert furthest() > 3e-3


@pytest.mark.slow
def test_counts_add_up_where_noise_hides_how_many_there_are():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(10**6, rng.dirichlet(np.full(12, 2.0)))
    drawn = counts + np.rint(rng.laplace(0, 3e5, 12)).astype(np.int64)
    found = CountsGivenNoise(drawn, np.full(12, 2.0), DiscreteLaplace(3e5))
    assert found.counts.mean().sum() == pytest.approx(found.size.mean()[0], rel=1e-4)
