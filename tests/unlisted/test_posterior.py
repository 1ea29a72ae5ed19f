"""Posteriors of keys that nobody listed, against enumeration, simulation and closed forms."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.learned.intensity_law import SMOOTH
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.unlisted.posterior.counts_of_keys import (
    LARGEST_SHIFT,
    MANY_ALIKE,
    MANY_SMALL,
    CountsOfKeys,
    counts_of_keys,
)
from opendp_bayes.unlisted.posterior.law_of_keys import Lattice, LawOfKeys, _Known
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys, NoisyRest, farthest_noise
from opendp_bayes.unlisted.thresholds import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)
from tests.helpers import oracles
from tests.helpers.sweeps import some_of
from tests.helpers.worlds_of_keys import (
    CHAINS,
    NONE,
    WORLDS,
    Held,
    World,
    effective,
    released,
    run,
    simulated,
)

SMALL = OptimalThreshold(1.0, 0.02, 0.8)
LAWS = [SMALL, LaplaceThreshold(1.5, 6), GaussianThreshold(2.0, 7)]
#: So many standard deviations a normal number is off with probability `FALSE_ALARM`.
FAR = float(stats.norm.isf(oracles.FALSE_ALARM / 2))


def components() -> tuple[Floats, Floats]:
    """Intensities and shapes of two kinds of keys."""
    return np.array([1.5, 9.0]), np.array([256.0, 256.0])


def given(law: Threshold, weights: Floats, most: int = 400) -> LawOfKeys:
    """A law of keys that is known: so many of each of the two kinds."""
    mean, shape = components()
    n = np.arange(most)
    pmf = stats.nbinom.pmf(n, shape[:, None], (shape / (shape + mean))[:, None])
    pmf[:, 0] = 0.0
    weights = np.atleast_2d(weights)
    return LawOfKeys(mean, shape, pmf, weights)


def noise_mass(law: Threshold, z: int) -> float:
    first, masses = law.masses
    return float(masses[z - first]) if first <= z < first + masses.size else 0.0


def enumerated(law: Threshold, weights: Floats, noisy: int) -> dict[int, float]:
    """P(n | a key is shown with `noisy`), count by count, from the definition."""
    mean, shape = components()
    counts = np.arange(1, 200)
    prior = weights @ stats.nbinom.pmf(counts, shape[:, None], (shape / (shape + mean))[:, None])
    found = {
        n: p * noise_mass(law, noisy - n) * (noisy >= law.threshold)
        for n, p in zip(counts.tolist(), prior.tolist(), strict=True)
    }
    whole = sum(found.values())
    return {n: p / whole for n, p in found.items()}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_counts_of_shown_keys_are_those_of_listing_all_counts(law: Threshold) -> None:
    weights = np.array([50.0, 4.0])
    noisy = law.threshold + np.array([0, 0, 1, 3, 9])
    found = CountsOfKeys(NoisyKeys(law, noisy, NONE), given(law, weights))
    for i, y in enumerate(noisy):
        masses = enumerated(law, weights, int(y))
        n, p = np.array(list(masses)), np.array(list(masses.values()))
        mean = float(n @ p)
        assert found.mean[i] == pytest.approx(mean, rel=1e-9)
        assert found.std[i] == pytest.approx(math.sqrt((n - mean) ** 2 @ p), rel=1e-8)
        for level in (0.5, 0.95):
            lower, upper = found.interval(level)[i]
            assert p[n < lower].sum() <= (1 - level) / 2 < p[n <= lower].sum()
            assert p[n < upper].sum() < (1 + level) / 2 <= p[n <= upper].sum() + 1e-12


def test_a_crowd_is_warned_of_and_slopes_are_right() -> None:
    """Negative control: the prior of all keys is not divided by the chance to be shown."""
    weights, y = np.array([50.0, 4.0]), SMALL.threshold
    right = enumerated(SMALL, weights, y)
    n = np.array(list(right))
    wrong = np.array(list(right.values())) / SMALL.shown(n)
    found = CountsOfKeys(NoisyKeys(SMALL, np.array([y]), NONE), given(SMALL, weights))
    assert abs(found.mean[0] - n @ wrong / wrong.sum()) > 0.1
    of, rng = known(SMALL, [SMALL.threshold, SMALL.threshold + 3], 40), np.random.default_rng(5)
    t, precision = rng.normal(0, 1, of.points.means.size), of.precision(0.3)
    slope = of.loss(t, precision)[1]
    for j in (0, 5, 20, t.size - 1):
        step = 1e-5 * (np.arange(t.size) == j)
        up, down = of.loss(t + step, precision)[0], of.loss(t - step, precision)[0]
        assert slope[j] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-5)
    one = released(WORLDS[CROWD], np.random.default_rng(10))
    found = counts_of_keys(one.keys)
    assert found.shift > LARGEST_SHIFT
    assert found.warning == MANY_SMALL
    few = counts_of_keys(released(WORLDS["60 lognormal(3, 1)"], np.random.default_rng(10)).keys)
    assert few.warning is None
    assert counts_of_keys(NoisyKeys(SMALL, NONE, NONE)).shift == 0.0


def test_two_laws_of_keys_are_mixed_and_move_all_counts_together() -> None:
    weights = np.array([[500.0, 0.01], [0.01, 50.0]])
    noisy = SMALL.threshold + np.array([0, 2])
    found = CountsOfKeys(NoisyKeys(SMALL, noisy, NONE), given(SMALL, weights))
    each = [[enumerated(SMALL, a, int(y)) for y in noisy] for a in weights]
    joint: dict[tuple[int, int], float] = {}
    for one, two in each:
        for (n, p), (m, q) in itertools.product(one.items(), two.items()):
            joint[n, m] = joint.get((n, m), 0.0) + p * q / 2
    assert found.mean[1] == pytest.approx(sum(m * p for (_, m), p in joint.items()), rel=1e-9)
    # Every draw has another law than the one before, so that those of one call are not independent;
    # of calls for one draw they are.
    rng = np.random.default_rng(1)
    draws = [
        (int(n), int(m)) for n, m in np.concatenate([found.draws(1, rng) for _ in range(2000)])
    ]
    assert not oracles.rejects(draws, joint)
    first: dict[int, float] = {}
    second: dict[int, float] = {}
    for (n, m), p in joint.items():
        first[n], second[m] = first.get(n, 0.0) + p, second.get(m, 0.0) + p
    apart = {(n, m): first[n] * second[m] for n, m in joint}
    assert oracles.rejects(draws, apart), "negative control: counts that do not move together"


@pytest.mark.parametrize(
    "law", [*LAWS, pytest.param(GaussianThreshold(150.0, 900), marks=pytest.mark.slow)], ids=str
)
def test_draws_agree_with_means_deviations_and_intervals(law: Threshold) -> None:
    rng = np.random.default_rng(2)
    above = rng.integers(0, 40 * max(1, int(law.std)), 150)
    listed = np.array([max(law.masses[0], -3), 5, 400])
    found = counts_of_keys(NoisyKeys(law, law.threshold + above, listed))
    draws = found.draws(2560, rng)  # each law of keys as often
    error = found.std / math.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - found.mean) < (FAR + 1) * error + found._lattice.unit).all()
    peaked = np.sqrt(stats.kurtosis(draws, axis=0) + 2)
    assert (
        np.abs(draws.std(axis=0) / found.std - 1) < (FAR + 1) * peaked / 2 * error / found.std
    ).all()
    lower, upper = found.interval(0.9).T
    inside = ((lower <= draws) & (draws <= upper)).mean(axis=0)
    assert (inside > 0.9 - FAR * math.sqrt(0.09 / len(draws)) - 0.005).all()
    assert (draws[:, : above.size] >= 1).all()
    assert (found.interval(1 - 1e-9)[: above.size] >= 1).all()
    assert (draws[:, above.size :] >= 0).all()


# What is learned from: the likelihood of the law of all keys.
def known(law: Threshold, drawn: list[int], rest: int | None = None) -> _Known:
    of_rest = None if rest is None else NoisyRest(rest, DiscreteLaplace(5.0))
    keys = NoisyKeys(law, np.array(drawn, dtype=np.int64), NONE, of_rest)
    return _Known(keys, Lattice(law))


def simulated_keys(
    law: Threshold, of: _Known, weights: Floats, which: list[int], number: int
) -> Iterator[tuple[Integers, Floats, Integers, Any]]:
    """Keys of some intensities in so many simulations: in which, intensity, count, and if shown."""
    rng, shape = np.random.default_rng(3), 256.0
    for a, m in zip(weights, of.points.means[which], strict=True):
        where = np.repeat(np.arange(number), rng.poisson(a, number))
        intensity = m * rng.standard_gamma(shape, where.size) / shape
        counts = rng.poisson(intensity)
        shown = (counts > 0) & (counts + simulated(law, counts.size, rng) >= law.threshold)
        yield where, intensity, counts, shown


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_shown_and_hidden_keys_are_as_many_as_in_simulations(law: Threshold) -> None:
    of, weights, which, number = known(law, []), np.array([20.0, 6.0]), [10, 27], 20_000
    mean, shown, hidden = of.points.means[which], np.zeros(number), np.zeros(number)
    for where, _, counts, visible in simulated_keys(law, of, weights, which, number):
        shown += np.bincount(where[visible], minlength=number)
        hidden += np.bincount(where, counts * ~visible, minlength=number)
    expected = weights @ of.shown[[10, 27]]
    records = weights @ of.hidden[[10, 27]]
    variance = weights @ of.hidden_squares[[10, 27]]
    assert abs(shown.mean() - expected) < FAR * math.sqrt(expected / number)
    assert abs(shown.var() / expected - 1) < FAR * math.sqrt(3 / number)
    assert abs(hidden.mean() - records) < FAR * math.sqrt(variance / number)
    assert abs(hidden.var() / variance - 1) < FAR * math.sqrt(4 / number)
    assert abs(np.corrcoef(shown, hidden)[0, 1]) < FAR / math.sqrt(number)
    # Negative control: hidden keys that have as many records as all of their kind.
    assert abs(hidden.mean() - weights @ mean) > FAR * math.sqrt(variance / number)


def log_likelihood(of, law, drawn, rest, weights, *, hidden=True):
    """Minus the logarithm of the density of what was released, key by key and count by count."""
    counts = np.arange(1, 900)
    r = 1 / np.maximum(1 / 256, 1 / 64 - 1 / of.points.means)
    prior = weights @ stats.nbinom.pmf(counts, r[:, None], (r / (r + of.points.means))[:, None])
    last = Lattice(law).end  # noisy counts beyond are left out
    seen = range(law.threshold, last + 1)
    shown = np.array([sum(noise_mass(law, y - n) for y in seen) for n in counts.tolist()])
    found = prior @ (shown if hidden else 0 * shown)
    for y in drawn:
        found -= math.log(
            sum(p * noise_mass(law, y - n) for n, p in zip(counts, prior, strict=True))
        )
    away = counts * (1 - law.shown(counts))
    expected, variance = prior @ away, prior @ (counts * away) + 2 * 5.0**2
    return float(found + (rest - expected) ** 2 / (2 * variance) + math.log(variance) / 2)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_likelihood_of_a_law_of_keys_is_that_of_its_definition(law: Threshold) -> None:
    drawn, rest = [law.threshold, law.threshold + 2, law.threshold + 15], 60
    of, rng = known(law, drawn, rest), np.random.default_rng(4)
    flat = np.zeros((of.points.means.size, of.points.means.size))
    differences, wrong = [], []
    for _ in range(3):
        t = rng.normal(0.0, 1.0, of.points.means.size) - np.log(of.points.means)
        weights = np.exp(of.x(t)[0])
        mine = float(of.loss(t, flat)[0])
        differences.append(mine - log_likelihood(of, law, drawn, rest, weights))
        wrong.append(mine - log_likelihood(of, law, drawn, rest, weights, hidden=False))
    assert np.ptp(differences) < 1e-6
    assert np.ptp(wrong) > 0.1, "negative control: without the keys that are not shown"


def test_what_is_learned_is_the_most_probable_law_or_certain() -> None:
    rng = np.random.default_rng(6)
    one = released(WORLDS["60 lognormal(3, 1)"], rng)
    of = _Known(one.keys, Lattice(one.keys.law))
    at = np.full(of.shown.size, of.centre)
    for smooth in SMOOTH:
        precision = of.precision(smooth)
        at = of.most_probable(at, precision)
        best = of.loss(at, precision)[0]
        for _ in range(20):
            near = at + 0.05 * rng.standard_normal(at.size)
            assert of.loss(near, precision)[0] > best - 1e-4
    law = LaplaceThreshold(0.02, 3)
    found = counts_of_keys(NoisyKeys(law, np.array([3, 4, 90]), np.array([0, 7])))
    assert found.mean == pytest.approx([3, 4, 90, 0, 7], abs=1e-9)
    assert found.std == pytest.approx(np.zeros(5), abs=1e-6)
    assert found.interval().tolist() == [[3, 3], [4, 4], [90, 90], [0, 0], [7, 7]]


# Limits.


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_far_from_the_threshold_only_noise_is_unknown(law: Threshold) -> None:
    first, masses = law.masses
    z = first + np.arange(masses.size)
    found = counts_of_keys(NoisyKeys(law, np.array([10_000]), np.array([20_000])))
    assert found.law is None
    assert found.mean == pytest.approx([10_000 - z @ masses, 20_000 - z @ masses])
    assert found.std == pytest.approx([law.std, law.std])
    ascending = np.cumsum(masses[::-1])
    ends = [int((ascending < share).sum()) - z[-1] for share in (0.025, 0.975)]
    assert (found.interval() - [[10_000], [20_000]]).tolist() == [ends, ends]
    assert effective(found) == math.inf


def test_listed_keys_have_a_flat_prior_in_any_units(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = np.array([-2, 0, 3, 12])
    found = counts_of_keys(NoisyKeys(LAWS[2], NONE, noisy))
    for i, y in enumerate(noisy):
        n = np.arange(60)
        p = np.array([noise_mass(LAWS[2], int(y) - int(one)) for one in n])
        assert found.mean[i] == pytest.approx(n @ p / p.sum())
    law, rng = GaussianThreshold(61.0, 350), np.random.default_rng(7)
    counts = rng.poisson(np.exp(5.5 + rng.standard_normal(300)))
    noisy = counts + simulated(law, counts.size, rng)
    keys = NoisyKeys(law, noisy[noisy >= law.threshold], NONE)
    coarse = counts_of_keys(keys)
    monkeypatch.setattr("opendp_bayes.unlisted.posterior.law_of_keys._RESOLVED", 1000)
    fine = counts_of_keys(keys)
    assert (fine._lattice.unit, coarse._lattice.unit) == (1, 6)
    assert np.abs(fine.mean - coarse.mean).max() < 0.05 * law.std
    assert np.median(np.abs(fine.std / coarse.std - 1)) < 0.005
    assert np.abs(fine.interval() - coarse.interval()).max() < 0.1 * law.std
    of_shares = [np.log(counts.shares.std).mean() for counts in (fine, coarse)]
    assert of_shares[0] == pytest.approx(of_shares[1], abs=0.03)


def test_wide_noise_in_units_has_the_moments_of_the_noise() -> None:
    for law in (GaussianThreshold(150.0, 901), LaplaceThreshold(1000.0, 20_001)):
        lattice = Lattice(law)
        assert lattice.unit > 1
        assert lattice.masses.sum() == pytest.approx(1.0)
        z = lattice.last - np.arange(lattice.masses.size)
        records = lattice.unit * z + lattice.start + (lattice.unit - 1) / 2
        assert abs(records @ lattice.masses) < 1.0
        assert math.sqrt(records**2 @ lattice.masses) == pytest.approx(law.std, rel=1e-3)
        assert lattice.units(np.array([law.threshold])) == lattice.threshold
        assert lattice.units(np.array([law.threshold - 1])) == lattice.threshold - 1


@pytest.mark.parametrize(
    ("drawn", "rest"), some_of(itertools.product([[], [0], [0, 5000]], [None, -1000, 0, 40]), 3)
)
def test_few_keys_and_any_rest_have_a_posterior(drawn: list[int], rest: int | None) -> None:
    law = OptimalThreshold(0.1, 1e-6, 0.08)
    of_rest = None if rest is None else NoisyRest(rest, DiscreteGaussian(30.0))
    noisy = law.threshold + np.array(drawn, dtype=np.int64)
    found = counts_of_keys(NoisyKeys(law, noisy, NONE, of_rest))
    assert found.mean.shape == found.std.shape == (len(drawn),)
    assert np.isfinite(found.interval()).all()
    assert found.draws(3, np.random.default_rng(0)).shape == (3, len(drawn))
    assert found.shares.mean.sum() == pytest.approx(float(len(drawn) > 0))
    if rest is None:
        assert found.shares_of_all is None
    else:
        assert found.shares_of_all is not None
        assert found.shares_of_all.mean.sum() == pytest.approx(1.0)
        assert found.shares_of_all.interval().shape == (len(drawn) + 1, 2)


# Shares.
def test_shares_and_intensities_are_those_of_their_components() -> None:
    law = LaplaceThreshold(0.02, 3)
    keys = NoisyKeys(law, NONE, np.array([30, 10]), NoisyRest(20, DiscreteLaplace(0.02)))
    found = counts_of_keys(keys)
    for shares, own, other in ((found.shares, 31, 11), (found.shares_of_all, 31, 32)):
        assert shares is not None
        exact = stats.beta(own, other)
        assert shares.mean[0] == pytest.approx(exact.mean(), abs=FAR * exact.std() / 60)
        assert shares.std[0] == pytest.approx(exact.std(), rel=0.1)
        assert shares.interval(0.9)[0] == pytest.approx(exact.ppf([0.05, 0.95]), abs=0.02)
    draws = found.shares.draws(50, np.random.default_rng(0))
    assert draws.sum(axis=1) == pytest.approx(np.ones(50))
    law, weights = LaplaceThreshold(0.02, 3), np.array([40.0, 3.0])
    found = CountsOfKeys(NoisyKeys(law, np.array([4]), NONE), given(law, weights))
    drawn = found.intensities(4000, np.random.default_rng(8))[:, 0]
    mean, shape = components()
    chance = weights * stats.nbinom.pmf(4, shape, shape / (shape + mean))
    chance /= chance.sum()
    own = (4 + shape) / (1 + shape / mean)
    assert drawn.mean() == pytest.approx(chance @ own, abs=FAR * drawn.std() / math.sqrt(4000))


def test_hidden_intensities_are_as_in_simulations() -> None:
    """Keys whose counts came out low are hidden: their intensities are larger than their counts."""
    weights, which, noise, number = np.array([20.0, 6.0]), [10, 27], 5.0, 20_000
    of, records, intensities = known(SMALL, [], 40), np.zeros(number), np.zeros(number)
    for where, intensity, counts, shown in simulated_keys(SMALL, of, weights, which, number):
        records += np.bincount(where, counts * ~shown, number)
        intensities += np.bincount(where, intensity * ~shown, number)
    every = np.zeros((1, of.points.means.size))
    every[0, which] = weights
    assert intensities.mean() > 1.02 * records.mean()
    given_rest = np.cov(records, intensities)
    told = given_rest[0, 0] + 2 * noise**2  # about the variance of the noise of the rest
    expected = intensities.mean() + given_rest[0, 1] / told * (40 - records.mean())
    found = of.everything_else(every)
    assert found is not None
    std = math.sqrt(given_rest[1, 1] - given_rest[0, 1] ** 2 / told)
    assert found[0, 0] == pytest.approx(expected, abs=0.03 * std)
    assert found[1, 0] == pytest.approx(std, rel=0.03)
    # Negative control: the intensity of as many records under a flat prior.
    assert abs(found[0, 0] - 41) > 0.1 * std
    assert known(SMALL, []).everything_else(every) is None


def share_of_everything_else(world: World, number: int) -> tuple[float, float, float, CountsOfKeys]:
    """The truth, the shares of draws that are less, also under a flat prior; the posterior."""
    rng = np.random.default_rng([number, *world.name.encode()])
    one = released(world, rng)
    keys, truth = one.keys, one.everything_else
    found = counts_of_keys(keys, random_state=number)
    assert found.shares_of_all is not None
    draws = found.shares_of_all.draws(400, rng)[:, -1]
    own = found.intensities(400, rng)[:, :-1].sum(axis=1)
    assert keys.rest is not None
    flat = rng.standard_gamma(keys.rest.draws(400, rng) + 1.0)
    return truth, float((draws < truth).mean()), float((flat / (own + flat) < truth).mean()), found


def near(low: float, high: float) -> World:
    """300 keys whose intensities are spread evenly about the threshold."""
    name = f"300 from {low} to {high}"
    return World(name, 1, 1e-8, lambda rng: rng.uniform(low, high, 300))


def check_everything_else(worlds: Sequence[World], runs: int) -> None:
    """Where many keys are near the threshold, and no warning is given."""
    ranks, flat = [], []
    for world in worlds:
        for number in range(runs):
            _, rank, other, found = share_of_everything_else(world, number)
            if found.warning is None:
                ranks.append(rank)
            flat.append(other)
    held = sum(0.025 < rank < 0.975 for rank in ranks)
    assert stats.binom.cdf(held, len(ranks), 0.9) > oracles.FALSE_ALARM
    held = sum(0.025 < rank < 0.975 for rank in flat)
    assert stats.binom.cdf(held, len(flat), 0.9) < oracles.FALSE_ALARM, "negative control"


@pytest.mark.slow
def test_the_share_of_everything_else_is_held_in_several_worlds() -> None:
    worlds = [near(1, 40), near(5, 35), near(10, 30), WORLDS["60 lognormal(3, 1)"]]
    check_everything_else(worlds, 10)


def test_keys_that_are_alike_are_warned_of_and_have_the_same_interval() -> None:
    alike = share_of_everything_else(WORLDS["3000 equal, mean 20"], 0)
    assert alike[3].warning == MANY_ALIKE
    truth, draws = alike[0], alike[3].shares_of_all
    assert draws is not None
    assert draws.mean[-1] == pytest.approx(truth, rel=0.06)
    without = NoisyKeys(alike[3].keys.law, alike[3].keys.noisy_counts, NONE)
    assert counts_of_keys(without).warning is None
    law = OptimalThreshold(1.0, 1e-8)
    found = counts_of_keys(
        NoisyKeys(law, np.array([25, 19, 25]), NONE, NoisyRest(12, DiscreteLaplace(5.0)))
    )
    assert found.mean[0] == found.mean[2]
    assert found.shares.interval()[0].tolist() == found.shares.interval()[2].tolist()


# What holds without a model.
@pytest.mark.parametrize(
    ("epsilon", "away", "share"), [(0.2, 15, 0.9552), (0.05, 60, 0.9515), (0.02, 150, 0.9507)]
)
def test_the_interval_of_the_rest_has_its_proved_share(epsilon, away, share):
    noise = DiscreteLaplace(1 / epsilon)
    assert farthest_noise(noise, 0.025) == away
    z = np.arange(-5000, 5001)
    covered = np.exp(noise.log_mass(z))[np.abs(z) <= away].sum()
    assert round(covered, 4) == share
    assert NoisyRest(100, noise).interval() == (max(0, 100 - away), 100 + away)
    assert NoisyRest(-away - 5, noise).interval() == (0.0, 0.0)
    for hidden in (0, 1, away, 10 * away):  # whatever the number of hidden records
        ends = [(max(0, hidden + i - away), max(0, hidden + i + away)) for i in z.tolist()]
        held = np.array([low <= hidden <= high for low, high in ends])
        assert np.exp(noise.log_mass(z))[held].sum() >= 0.95


def test_hidden_keys_are_bounded_and_their_sum_is_drawn_flat() -> None:
    noise = DiscreteLaplace(4.0)
    h = np.arange(300)
    p = np.exp(noise.log_mass(-2 - h))
    law = dict(zip(h.tolist(), (p / p.sum()).tolist(), strict=True))
    draws = NoisyRest(-2, noise).draws(20_000, np.random.default_rng(9)).tolist()
    assert not oracles.rejects(draws, law)
    wide = NoisyRest(10**9, DiscreteLaplace(1e6))
    drawn = wide.draws(20_000, np.random.default_rng(9))
    assert drawn.std() == pytest.approx(math.sqrt(2) * 1e6, rel=0.1)
    law = OptimalThreshold(1.0, 1e-8)
    assert NoisyKeys(law, NONE, NONE).hidden_bound(0.95) == 20
    assert 1 - float(law.shown(20)) == pytest.approx(0.0836, abs=5e-5)
    assert 1 - float(law.shown(21)) == pytest.approx(0.0308, abs=5e-5)
    noise = DiscreteLaplace(5.0)
    assert NoisyKeys(law, NONE, NONE, NoisyRest(1000, noise)).hidden_bound() == 20
    assert NoisyKeys(law, NONE, NONE, NoisyRest(-60, noise)).hidden_bound() == 0


@pytest.mark.parametrize("law", some_of(LAWS, 1), ids=lambda law: law.name)
def test_a_bound_is_given_and_wrong_at_most_as_often_as_it_says(law: Threshold) -> None:
    """All outcomes of one label that holds all hidden records, listed."""
    noise, level = DiscreteLaplace(3.0), 0.9
    z = np.arange(-150, 151)
    chance = np.exp(noise.log_mass(z))
    most = law.least_shown(0.99) + 2
    bounds = {
        rest: NoisyKeys(law, NONE, NONE, NoisyRest(rest, noise)).hidden_bound(level)
        for rest in range(-150, 151 + most)
    }
    alone = [
        (1 - float(law.shown(n))) * chance[[n > bounds[n + int(i)] for i in z]].sum()
        for n in range(1, most)
    ]
    assert max(alone) <= 1 - level + 1e-9
    # Negative control: for a label picked after looking nothing is promised.
    without = NoisyKeys(law, NONE, NONE).hidden_bound(level)
    assert 1 - float(law.shown(without + 1)) ** 100 > 1 - level


# Coverage.

#: Of intervals of 95 %, those of counts hold the truth in a share of these cases, also where counts
#: are whole numbers of few keys; four keys that share what is not known of their law count as one.
#: With `FALSE_ALARM` the number that do is beyond what a share at either end would give.
LEAST, MOST, SHARING = 0.94, 0.985, 4
CROWD = "crowd B: 200 of 200, 20 000 of 60"


def rarely(found: Sequence[Held], what: str, of: str = "keys") -> bool:
    """Whether so few intervals hold the truth that `LEAST` is refuted."""
    hits, number = (sum(getattr(one, name) for one in found) // SHARING for name in (what, of))
    return bool(stats.binom.cdf(hits, number, LEAST) < oracles.FALSE_ALARM)


def check_coverage(name: str, runs: int) -> None:
    flat, _, learned = zip(*(run(WORLDS[name], number) for number in range(runs)), strict=True)
    for what in ("counts", "shares", "probabilities"):
        assert not rarely(learned, what), what
    held, number = sum(one.counts for one in learned), sum(one.keys for one in learned)
    above = stats.binom.sf(held // SHARING - 1, number // SHARING, MOST)
    assert above > oracles.FALSE_ALARM, "intervals are too long"
    bias = abs(sum(one.sum_bias for one in learned)) / math.sqrt(runs)
    if name == CROWD:
        assert rarely(flat, "near", "keys_near"), "negative control: the crowd is taken at its word"
    if not name.startswith("crowd"):
        assert not rarely(learned, "near", "keys_near")
        assert max(one.shift for one in learned) < LARGEST_SHIFT
        assert bias < FAR
    if name == "3000 equal, mean 20":
        off = abs(sum(one.sum_bias for one in flat)) / math.sqrt(runs)
        assert off > FAR, "negative control: sums under a flat prior"


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_of_every_world_hold_the_truth(name: str) -> None:
    check_coverage(name, 3)


def test_markov_chains_meet() -> None:
    rng = np.random.default_rng(11)
    one = released(WORLDS["60 lognormal(3, 1)"], rng)
    found = counts_of_keys(one.keys)
    assert found.law is not None
    assert effective(found) > 100
    other = counts_of_keys(one.keys, random_state=12)
    assert np.abs((found.mean - other.mean) / found.std).max() < 0.2
    assert counts_of_keys(one.keys).mean.tolist() == found.mean.tolist()
    # Negative control: chains that stay where they are.
    stuck = np.tile(found.law.weights[:CHAINS], (len(found.law.weights) // CHAINS, 1))
    apart = CountsOfKeys(one.keys, dataclasses.replace(found.law, weights=stuck))
    assert effective(apart) <= 33


@pytest.mark.parametrize("scale", [3.0, 40.0, 150.0, 900.0])
@pytest.mark.parametrize("kind", [LaplaceThreshold, GaussianThreshold])
def test_far_from_the_threshold_a_count_is_about_what_was_drawn(kind: type, scale: float) -> None:
    """In whichever units the noise is taken, of a listed value too."""
    drawn = np.array([10**6, 10**6 + 17])
    found = counts_of_keys(NoisyKeys(kind(scale, 10), drawn, drawn))
    assert found.mean == pytest.approx(np.tile(drawn, 2), abs=1)
    assert found.interval(0.9).mean(axis=1) == pytest.approx(np.tile(drawn, 2), abs=1)
