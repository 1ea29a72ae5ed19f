"""Gaussian noise on the counts: the law by definition, the samples, the projection, the error."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from opendp_bayes import GaussianParameters, KNormParameters, calibrate
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms import gaussian_parameters
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from tests.helpers import oracles
from tests.helpers.sweeps import slow


@pytest.mark.parametrize(
    "scale", [0.2, 1.0, 3.7, 50.0, pytest.param(1500.0, marks=pytest.mark.slow)]
)
def test_noise(scale: float) -> None:
    """Mass and tails, against sums; beyond scale 1000 by integrals."""
    noise, reach = DiscreteGaussian(scale), math.ceil(38 * scale) + 2
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-((z / scale) ** 2) / 2)
    mass /= mass.sum()
    assert np.exp(noise.log_mass(z)) == pytest.approx(mass, rel=1e-9, abs=1e-300)
    for value in (-3, 0, 1, 2, math.ceil(scale), math.ceil(9 * scale)):
        for tail, seen in ((noise.log_at_least, z >= value), (noise.log_at_most, z <= value)):
            truth = mass[seen].sum()
            assert math.exp(tail(value)) == pytest.approx(truth, rel=1e-7)
    for origin, step in ((0, 1), (3, -2), (-5, 0.5)):
        ratio = noise.log_mass(origin + step) - noise.log_mass(origin)
        assert noise.log_ratio(origin, step) == pytest.approx(ratio, rel=1e-9, abs=1e-12)
    beyond = noise.reach(20.0) + 1
    assert noise.log_mass(beyond) < noise.log_mass(0) - 20


@pytest.mark.parametrize("scale", [0.4, 2.0, 2000.0])
def test_simulated_noise(scale: float) -> None:
    drawn = DiscreteGaussian(scale).simulate((40_000,), np.random.default_rng(3))
    assert drawn.dtype == np.int64
    if scale < 1000:
        oracles.check_draws(drawn, lambda factor: oracles.noise_law("gaussian", factor * scale))
    else:
        assert stats.kstest(drawn, stats.norm(scale=scale).cdf).pvalue > oracles.FALSE_ALARM


def law_by_definition(counts: oracles.Counts, scale: float) -> oracles.Law:
    """Every noise vector, moved to its projection, than which no counts are nearer."""
    noise = {z: p for z, p in oracles.noise_law("gaussian", scale).items() if p > 1e-31}
    sets = np.array(oracles.data_sets(sum(counts), len(counts)))
    law = dict.fromkeys(map(tuple, sets.tolist()), 0.0)
    reach = max(noise)
    for move in np.ndindex(*(2 * reach + 1,) * len(counts)):
        drawn = np.array(counts) + move - reach
        moved = GaussianParameters(1.0).project(drawn, sum(counts))
        assert ((drawn - moved) ** 2).sum() == ((drawn - sets) ** 2).sum(axis=1).min()
        law[tuple(moved.tolist())] += math.prod(noise[z - reach] for z in move)
    return law


@pytest.mark.parametrize(
    ("counts", "scale"),
    [
        *(((0, 5), 0.7), ((2, 1, 0), 0.4)),
        *slow([((2, 1, 0), 0.9), ((3, 4), 1.5), ((1, 1, 2), 0.5)]),
    ],
)
def test_law(counts: oracles.Counts, scale: float) -> None:
    stated = oracles.law_of(GaussianParameters(scale), counts, [1.0] * len(counts))
    truth = law_by_definition(counts, scale)
    likely = {outcome: p for outcome, p in truth.items() if p > 1e-12}
    assert stated.keys() == truth.keys()
    assert max(abs(stated[outcome] / p - 1) for outcome, p in likely.items()) < 1e-9
    assert sum(stated.values()) == pytest.approx(1, rel=1e-12)
    wrong = law_by_definition(counts, 1.1 * scale)
    assert oracles.largest_relative_difference(stated, wrong) > 1e-2


@pytest.mark.parametrize("counts", [(3, 4), (0, 5), (2, 1, 0)])
def test_samples(counts: oracles.Counts) -> None:
    def law(factor: float) -> oracles.Law:
        return oracles.law_of(GaussianParameters(factor * 0.9), counts, [1.0] * len(counts))

    oracles.check_draws(GaussianParameters(0.9).sample(counts, 1.0, draws=20_000), law)


def test_draws_have_independent_noise_on_every_count() -> None:
    drawn = GaussianParameters(1.2).draw((7, 0, 2), 1.0, draws=20_000) - (7, 0, 2)
    both = oracles.noise_law("gaussian", 1.2)
    for index in range(3):
        assert not oracles.rejects(Counter(drawn[:, index].tolist()), both)
    sums = Counter((drawn[:, 0] + drawn[:, 2]).tolist())
    of_sum: dict[int, float] = {}
    for (z, p), (y, q) in ((a, b) for a in both.items() for b in both.items()):
        of_sum[z + y] = of_sum.get(z + y, 0.0) + p * q
    assert not oracles.rejects(sums, of_sum)


@pytest.mark.parametrize("mechanism", [GaussianParameters(1.0), KNormParameters(1.0)])
def test_draws_whose_sum_no_machine_integer_holds(mechanism: Any) -> None:
    """A draw is at most so large; all categories get as much."""
    drawn = np.full((1, 4), 2**62)
    assert mechanism.project(drawn, 8).tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize(("size", "k", "scale"), [(30, 2, 0.5), (12, 3, 0.4), (1, 3, 0.2)])
def test_the_farthest_candidates_have_noise_that_leads_there(size, k, scale):
    """However little noise there is: at least the probability of going straight there."""
    counts = np.array([size, *[0] * (k - 1)])
    found, log_p = GaussianParameters(scale).log_pmf(counts, 1.0)
    straight = DiscreteGaussian(scale).log_mass(found - counts).sum(axis=1)
    assert np.all(log_p >= straight - 1e-9)
    assert log_p.max() < 0


@pytest.mark.parametrize(("size", "scale"), [(1, 4.0), (3, 1.0), (5, 2.5)])
def test_no_candidate_lacks_a_part_of_its_probability(size: int, scale: float) -> None:
    """By noise of up to 14 deviations beyond the straight way."""
    mechanism, reach = GaussianParameters(scale), math.ceil(size + 14 * scale)
    noise = np.indices((2 * reach + 1,) * 2).reshape(2, -1).T - reach
    masses = np.exp(DiscreteGaussian(scale).log_mass(noise).sum(axis=1))
    released = mechanism.project(np.array([size, 0]) + noise, size)[:, 0]
    found, log_p = mechanism.log_pmf([size, 0], 1.0)
    wanted = np.bincount(released, masses, size + 1)[found[:, 0]]
    assert np.exp(log_p) == pytest.approx(wanted, rel=1e-11)


def test_projection_favours_no_category() -> None:
    """Rounding adds at most 1/4 to a variance and moves no mean."""
    counts, mechanism = np.array([50, 40, 30, 20]), GaussianParameters(3.0)
    drawn = counts + DiscreteGaussian(3.0).simulate((200_000, 4), np.random.default_rng(5))
    fair, largest = mechanism.project(drawn, 140) - counts, nearest_counts(drawn, 140) - counts
    assert fair.mean(axis=0) == pytest.approx(np.zeros(4), abs=0.03)
    assert np.max(np.abs(largest.mean(axis=0))) > 0.3
    assert fair.var(axis=0) == pytest.approx(np.full(4, 9 * 3 / 4), abs=0.35)
    same = np.full(4, 35) + drawn - counts
    fair, largest = mechanism.project(same, 140) - 35, nearest_counts(same, 140) - 35
    assert fair.var(axis=0).mean() == pytest.approx(9 * 3 / 4, abs=0.35)
    assert largest.var(axis=0).mean() > 9 * 3 / 4 + 1


# The error under ρ.
@pytest.mark.parametrize(
    ("k", "ratios"),
    [(2, (1.21, 1.09)), (3, (1.43, 1.37)), pytest.param(10, (1.78, 1.7), marks=pytest.mark.slow)],
)
def test_error_under_rho_beside_k_norm_noise_at_the_bound_of_its_epsilon(k, ratios):
    """Expected Euclidean error where no count is near 0, simulated to about 0.5 %: K-norm noise
    whose `ε^2 / 2` is the budget, which is what a pure bound gives.
    """
    rng, prior = np.random.default_rng(0), np.ones(k)
    for rho, ratio in zip((0.1, 0.5), ratios, strict=True):
        gaussian = calibrate(GaussianParameters(1.0), size=10**6, prior=prior, rho=rho)
        proven = calibrate(
            KNormParameters(1.0), size=10**6, prior=prior, rho=rho, accounting="proven"
        )
        z = gaussian.law(10**6, prior).noise.simulate((40_000, k), rng)
        counts = np.full(k, 1000)
        ours = np.sqrt(((gaussian.project(counts + z, 1000 * k) - counts) ** 2).sum(axis=1))
        theirs = proven.draw(counts, prior, 40_000) - counts
        found = np.sqrt((theirs**2).sum(axis=1)).mean() / ours.mean()
        assert found == pytest.approx(ratio, rel=0.03)
        closed = math.exp(gammaln(k / 2) - gammaln((k - 1) / 2)) * math.sqrt(2) * gaussian.scale
        if gaussian.scale > 3:
            assert ours.mean() == pytest.approx(closed, rel=0.03)


@pytest.mark.parametrize(("size", "moved"), [(10, 2), (None, 1)])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
@pytest.mark.parametrize("d_in", [1, 3])
def test_an_epsilon_with_delta_is_above_the_bound_of_its_rho(size, moved, delta, d_in, monkeypatch):
    """In ball arithmetic; and by as much as the error of the root allows it to be off."""
    mechanism, setting = GaussianParameters(1.7), {"size": size, "prior": np.ones(2)}
    rho = oracles.arb(moved * d_in**2) / (2 * oracles.arb(1.7) ** 2)
    root = (rho * -oracles.arb(delta).log()).sqrt()
    found = mechanism.proven_loss(d_in, delta=delta, **setting).epsilon
    assert oracles.arb(found) >= rho + 2 * root
    assert found == pytest.approx(float((rho + 2 * root).mid()), rel=1e-13)
    monkeypatch.setattr(gaussian_parameters, "_FLOAT_ERROR", 0.1)
    enlarged = mechanism.proven_loss(d_in, delta=delta, **setting).epsilon
    assert enlarged == pytest.approx(float((rho + 2 * root / 0.9).mid()), rel=1e-13)
