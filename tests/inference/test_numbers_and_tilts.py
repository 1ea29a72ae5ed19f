"""Numbers of records and their tilts: that all that matter are there, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import numbers_and_tilts, sums
from opendp_bayes.inference.convolution.number_of_records import private, public
from opendp_bayes.inference.convolution.numbers_and_tilts import numbers_of
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.envelope import posterior, random_setting
from tests.helpers.given_noise import categories_of, given_noise

TIMES = np.array([1, 1, 2])


@pytest.mark.parametrize("scale", [0.5, 100.0, 1e6])
@pytest.mark.parametrize("size", [0, 1, 300, 10**4])
def test_the_mean_of_the_sum_is_at_a_public_size(scale, size):
    categories = categories_of([30, 200, -5], np.ones(3), DiscreteLaplace(scale))
    known = numbers_of(categories, TIMES, public(size, 4.0))
    (mean,), (variance,) = known.moments.mean @ TIMES, known.moments.variance @ TIMES
    assert abs(mean - size) <= 0.3 * max(np.sqrt(variance), 0.5)
    assert known.sizes.tolist() == [size]


@pytest.mark.parametrize(
    "prior", [stats.poisson(2000), stats.randint(700, 800), stats.geom(1e-3), None]
)
def test_parts_of_a_private_number_hold_all_that_matter(prior):
    """Their masses sum to what each number weighs, under whichever tilt."""
    categories = categories_of([30, 400, 12], np.ones(3), DiscreteLaplace(20.0))
    total = private(categories, prior)
    known = numbers_of(categories, TIMES, total)
    moments = known.moments
    shares = known.masses / known.masses.max(axis=0)
    assert np.all(shares.max(axis=0) > 0)
    logs = moments.log_sums(TIMES)[:, None] - moments.tilts[:, None] * known.sizes
    hats = known.masses / np.exp(logs[known.tilt] + total.log_weight(known.sizes) - known.log_norm)
    assert hats.sum(axis=0) == pytest.approx(hats.sum(axis=0)[0], rel=1e-6)
    if prior is not None:
        assert prior.cdf(known.sizes[-1]) - prior.cdf(known.sizes[0] - 1) > 0.5


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


def test_numbers_that_weigh_nothing_are_left_out():
    """Noise says nothing of a number with a prior; what is beyond reaches far."""
    number, prior = stats.geom(0.25, loc=-1), np.full(5, 1e5)
    drawn, noise = [9000, -4000, 2000, -2000, 0], DiscreteGaussian(9500.0)
    found = given_noise(drawn, prior, noise, records_prior=number).records
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
        assert found.counts.mean().sum() == pytest.approx(found.records.mean()[0], rel=1e-3)
    assert found.probabilities.mean().sum() == pytest.approx(1, abs=3e-3)


@pytest.mark.parametrize("drawn", [(10, 10), (10, 400, -30)])
def test_too_many_parts_are_refused(drawn, monkeypatch):
    monkeypatch.setattr(numbers_and_tilts, "_MOST", 4)
    with pytest.raises(ValueError, match=r"too large for .*private .*narrower"):
        given_noise(drawn, [1e5] * len(drawn), DiscreteLaplace(1e6))


def test_sums_of_private_numbers_agree_or_say_so(monkeypatch):
    """Only the tail of the noise is seen, so that the number of records is not known at all."""
    found = given_noise((-3_529_224, -1_090_643), [0.3, 0.3], FlooredLaplace(1e6))
    with pytest.warns(UserWarning, match=r"less exact .* differ by a share of 0.016"):
        assert found.probabilities.mean().sum() == pytest.approx(0.987, abs=2e-3)
    found = given_noise((10, 400, -30), [1.0, 5.0, 2.0], DiscreteLaplace(20.0))
    monkeypatch.setattr(sums, "MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match=r"concentration, 8, .*private number"):
        _ = found.probabilities


@pytest.mark.parametrize("size", [3060, 2500])
def test_a_number_far_from_what_was_drawn_is_reached(size):
    drawn, prior, noise = [60, 20, 900, 40], [1.0, 0.1, 5.0, 0.5], DiscreteLaplace(5.0)
    found = given_noise(drawn, prior, noise, size=size)
    off = found.counts.mean().sum() - size
    assert abs(off) < 2e-3 * found.counts.std().max()


@pytest.mark.parametrize(
    ("named", "known"),
    [
        ("size: 38", {"size": 38}),
        ("records_prior: 38 to 40", {"records_prior": stats.randint(38, 41)}),
    ],
)
def test_a_number_that_no_tilt_reaches_is_refused(named, known):
    with pytest.raises(ValueError, match=rf"{named} records are not compatible.*check them"):
        given_noise([6, 0], [2e5, 2e5], DiscreteGaussian(0.05), **known)


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
    [("_STEP", 3.0, 6940, 6000), ("_STEP", 3.0, None, 6000), ("_LONGEST", 16, None, 6000)],
)
def test_warns_once_where_sums_do_not_agree(name, value, size, most, monkeypatch):
    """Of too few points, and of steps too long."""
    monkeypatch.setattr(sums, name, value)
    monkeypatch.setattr(sums, "_CUMULANT", 1e9)
    monkeypatch.setattr(sums, "_SEEN", 0)
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


def test_the_fourth_cumulants_of_many_counts_do_not_add_up(monkeypatch):
    """A thousand on a lattice that is longer than each of them is wide: the density of their sum
    is that of finer ones to 1e-4, and with longer steps it would not be.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(400, 900, 20)
    categories, times = categories_of(drawn, np.ones(20), DiscreteLaplace(60.0)), np.full(20, 50)
    known, off = numbers_of(categories, times, public(int(times @ drawn), 1000.0)), {}
    row = np.zeros(9, dtype=int)
    at = known.moments.mean[0] @ times + 1000.0 * np.arange(-4, 5)

    def densities(**values):
        with monkeypatch.context() as patched:
            for name, value in values.items():
                patched.setattr(sums, name, value)
            return sums.Sums(known, times).laws(times[:, None]).read(row, at)

    right = densities(_STEP=0.01)
    for name, cumulant in (("finer", sums._CUMULANT), ("as long", 1e9)):
        off[name] = np.max(np.abs(densities(_CUMULANT=cumulant, _STEP=0.14) / right - 1))
    assert off["finer"] < 3e-4
    assert off["as long"] > 3e-3
