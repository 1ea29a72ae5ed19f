"""Tilts of a private number of records: how many there are, and what happens where too many are."""

import warnings

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import part_of_total, sums_by_pairs, tilts
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.noised_categories import Categories
from opendp_bayes.inference.convolution.number_of_records import private
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

PRIORS = {
    "none": None,
    "Poisson": stats.poisson(2000),
    "uniform": stats.randint(100, 40_000),
    "geometric": stats.geom(1e-4),
}


@pytest.mark.parametrize("concentration", [0.3, 1.0, 40.0, 1e5])
@pytest.mark.parametrize("name", PRIORS)
def test_weights_of_numbers_are_below_their_bounds(name, concentration):
    prior = np.full(2, concentration / 2)
    noised = np.ones(2, dtype=bool)
    drawn = np.array([900, 700])
    total = private(Categories(drawn, noised, prior, DiscreteLaplace(300.0)), PRIORS[name])
    rng = np.random.default_rng(0)
    for tilt in (-2.0, -1e-3, 0.0, 1e-3, 0.5):
        for _ in range(6):
            low, high = np.sort(rng.integers(total.lowest, total.highest, 2)).tolist()
            sizes = np.unique(np.linspace(low, high, 3000).astype(np.int64)).astype(float)
            right = np.max(total.log_weight(sizes) - tilt * sizes)
            bound = total.most(low, high, tilt)
            assert right <= bound + 1e-9 * abs(bound)
            if high - low <= 1 << 12:
                assert bound == pytest.approx(right, abs=1)


@pytest.mark.parametrize(("scale", "several"), [(3.0, False), (300.0, True)])
def test_as_many_tilts_as_the_number_of_records_needs(scale, several):
    made = CountsGivenNoise([60, 20, 90, 40], [1.0, 0.1, 5.0, 0.5], DiscreteGaussian(scale))
    assert (len(made._parts) > 1) == several


def test_tilts_of_numbers_that_weigh_nothing_are_not_summed(monkeypatch):
    """Of 500 unequal priors whose counts are all next to nothing."""
    made = []

    def summed(*given):
        made.append(given)
        return sums_by_pairs.SumsByPairs(*given)

    monkeypatch.setattr(part_of_total, "SumsByPairs", summed)
    prior = np.geomspace(1e-4, 1e6, 500)
    found = CountsGivenNoise(np.zeros(500, dtype=int), prior, DiscreteLaplace(0.34))
    assert len(made) <= 8
    assert found.size.mean()[0] < 5


@pytest.mark.parametrize("drawn", [(10, 10), (10, 400, -30)])
def test_too_many_tilts_are_refused_before_anything_is_summed(drawn, monkeypatch):
    def summed(*_):
        raise AssertionError("a sum was computed")

    monkeypatch.setattr(part_of_total, "SumsByPairs", summed)
    monkeypatch.setattr(tilts, "_MOST_TILTS", 40)
    with pytest.raises(
        ValueError, match=r"too large for this uncertain a private number.*narrower"
    ):
        CountsGivenNoise(drawn, [1e5] * len(drawn), DiscreteLaplace(1e6))


@pytest.mark.parametrize("size", [3060, 2500])
def test_a_number_that_no_tilt_reaches_is_refused(size, monkeypatch):
    drawn, prior, noise = [60, 20, 900, 40], [1.0, 0.1, 5.0, 0.5], DiscreteLaplace(5.0)
    found = CountsGivenNoise(drawn, prior, noise, size=size)
    assert found.counts.mean().sum() == pytest.approx(size)
    monkeypatch.setattr(tilts, "_OFF", 1e3)
    with pytest.raises(ValueError, match=rf"size: no law of {size} records.*check the size"):
        CountsGivenNoise(drawn, prior, noise, size=size)


def warned(size):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        drawn, prior = [60_000, 20, 900, 40], [1.0, 0.1, 5.0, 0.5]
        found = CountsGivenNoise(drawn, prior, DiscreteLaplace(5.0), size=size)
        assert np.all(found.probabilities.mean() > 0)
        found.counts.mean()
    return sum("may be less exact than the 1e-3" in str(each.message) for each in said)


@pytest.mark.parametrize("size", [None, 60_940])
@pytest.mark.parametrize(
    ("name", "value"),
    [("_MOST_POINTS", 64), ("_STEP", 3.0), ("_REACH", -2.0)],
    ids=["too few points", "steps too long", "laws cut"],
)
def test_warns_once_where_sums_do_not_agree(name, value, size, monkeypatch):
    assert not warned(size)
    monkeypatch.setattr(sums_by_pairs, name, value)
    assert warned(size) == 1
