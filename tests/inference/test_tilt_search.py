"""Tilts of a private number of records: how many there are, and what happens where too many are."""

import warnings

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import sums, tilt_search, tilted_sums
from tests.helpers.envelope import posterior, random_setting
from tests.helpers.given_noise import given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace


@pytest.mark.parametrize(("scale", "several"), [(3.0, False), (300.0, True)])
def test_as_many_tilts_as_the_number_of_records_needs(scale, several):
    made = given_noise([60, 20, 90, 40], [1.0, 0.1, 5.0, 0.5], DiscreteGaussian(scale))
    assert (len(made._sums) > 1) == several


def test_tilts_of_numbers_that_weigh_nothing_are_not_summed(monkeypatch):
    """Of 500 unequal priors whose counts are all next to nothing."""
    made = []

    def summed(*given):
        made.append(given)
        return sums.Sums(*given)

    monkeypatch.setattr(tilted_sums, "Sums", summed)
    prior = np.geomspace(1e-4, 1e6, 500)
    found = given_noise(np.zeros(500, dtype=int), prior, DiscreteLaplace(0.34))
    assert len(made) <= 8
    assert found.records.mean()[0] < 5


@pytest.mark.parametrize(
    "scale", [200.0, pytest.param(3e4, marks=pytest.mark.slow)], ids=["some tilts", "hundreds"]
)
def test_draws_below_0_under_a_huge_prior_make_the_number_geometric(scale):
    """All counts are above what was drawn, so that each record more costs `exp(-1 / scale)`."""
    found = given_noise([-5, -7, 0], [1e6] * 3, DiscreteLaplace(scale)).records
    right = stats.geom(-np.expm1(-1 / scale), loc=-1)
    assert found.mean()[0] == pytest.approx(right.mean(), abs=1e-4 * scale)
    assert found.std()[0] == pytest.approx(right.std(), abs=1e-4 * scale)
    places = right.ppf([0.01, 0.1, 0.5, 0.9, 0.99]).astype(int)
    np.testing.assert_allclose(found.cdf(places[:, None])[:, 0], right.cdf(places), atol=1e-4)


def test_numbers_that_weigh_nothing_are_crossed_in_few_tilts(monkeypatch):
    """Noise says nothing of a number with a prior; what is beyond reaches a hundred times farther
    than tilts that overlap would in a minute.
    """
    made, of = [], tilt_search.TiltedCounts.of.__func__

    def counted(cls, *given):
        made.append(given)
        return of(cls, *given)

    monkeypatch.setattr(tilt_search.TiltedCounts, "of", classmethod(counted))
    number, prior = stats.geom(0.25, loc=-1), np.full(5, 1e5)
    drawn, noise = [9000, -4000, 2000, -2000, 0], DiscreteGaussian(9500.0)
    found = given_noise(drawn, prior, noise, records_prior=number).records
    assert len(made) < 150
    assert found.mean()[0] == pytest.approx(number.mean(), rel=1e-2)
    assert found.std()[0] == pytest.approx(number.std(), rel=1e-2)


@pytest.mark.parametrize(("number", "scale"), [(4300, 214_828.0), (115, 733_148.0)])
def test_lattices_end_where_numbers_weigh_nothing(number, scale):
    """Under wide noise the law of the sum reaches a thousand times farther than a prior of the
    number; a step as long as this law tells no number from another.
    """
    drawn, records_prior = [-334_529, 532_028, 11_204], stats.geom(1 / number, loc=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = given_noise(drawn, [0.3] * 3, DiscreteLaplace(scale), records_prior=records_prior)
        assert found.counts.mean().sum() == pytest.approx(found.records.mean()[0], rel=1e-4)
    assert found.probabilities.mean().sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("drawn", [(10, 10), (10, 400, -30)])
def test_too_many_tilts_are_refused_before_anything_is_summed(drawn, monkeypatch):
    def summed(*_):
        raise AssertionError("a sum was computed")

    monkeypatch.setattr(tilted_sums, "Sums", summed)
    monkeypatch.setattr(tilt_search, "_MOST_TILTS", 40)
    with pytest.raises(ValueError, match=r"too large for .*private .*narrower"):
        given_noise(drawn, [1e5] * len(drawn), DiscreteLaplace(1e6))


@pytest.mark.parametrize("size", [3060, 2500])
def test_a_number_that_no_tilt_reaches_is_refused(size, monkeypatch):
    drawn, prior, noise = [60, 20, 900, 40], [1.0, 0.1, 5.0, 0.5], DiscreteLaplace(5.0)
    found = given_noise(drawn, prior, noise, size=size)
    assert found.counts.mean().sum() == pytest.approx(size)
    monkeypatch.setattr(tilt_search, "_OFF", 1e3)
    with pytest.raises(
        ValueError, match=rf"size: {size} records are not compatible.*check the size"
    ):
        given_noise(drawn, prior, noise, size=size)


def warned(size, most=6000):
    """How often the laws of so many records are said to be less exact."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        drawn, prior = [most, 20, 900, 40], [1.0, 0.1, 5.0, 0.5]
        known = {"records_prior": stats.randint(0, 10**6)} if size is None else {"size": size}
        found = given_noise(drawn, prior, DiscreteLaplace(5.0), **known)
        assert np.all(found.probabilities.mean() > 0)
        found.counts.mean()
    return sum("may be less exact than the 1e-2" in str(each.message) for each in said)


@pytest.mark.parametrize("size", [None, 6940])
def test_says_nothing_where_sums_agree(size):
    assert not warned(size)


@pytest.mark.parametrize(
    ("name", "value", "size", "most"),
    [
        ("_MOST_POINTS", 24, 6940, 6000),
        ("_STEP", 3.0, 6940, 6000),
        ("_STEP", 3.0, None, 6000),
        # Of fewer records no sum needs that many points.
        pytest.param("_MOST_POINTS", 64, None, 60_000, marks=pytest.mark.slow),
    ],
)
def test_warns_once_where_sums_do_not_agree(name, value, size, most, monkeypatch):
    """Of too few points, and of steps too long."""
    monkeypatch.setattr(sums, name, value)
    assert warned(size, most) == 1


def test_what_a_transform_rounds_to_is_not_the_posterior():
    """Beyond the last tilt that matters, weights of numbers rise for thousands of records: 22 648
    were found where 1030 are, and a category without any law. Draws from the prior, weighted by
    the noise, have 1019 with a standard error of about 10.
    """
    found = posterior(random_setting(np.random.default_rng([91, 76])))
    counts = found.counts.mean()  # which warns where sums that should agree do not
    assert np.all(np.diff(found.probabilities.start) > 0)
    assert counts.sum() == pytest.approx(found.records.mean()[0], rel=1e-3)
    assert found.records.mean()[0] == pytest.approx(1030, rel=0.02)
