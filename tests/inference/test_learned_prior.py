"""Learned priors: chains against weighted draws from the prior, calibrated by simulation, and what
the posterior answers.
"""

import warnings
from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from scipy import special, stats
from threadpoolctl import threadpool_info, threadpool_limits

import opendp_bayes as ob
from opendp_bayes.inference.answers import learned_posterior
from opendp_bayes.inference.learned.cells import Cells, Draw
from opendp_bayes.inference.learned.intensity_law import HamiltonianChains, Points
from opendp_bayes.inference.learned.noised_table import Effects, NoisedTable, margins_of
from opendp_bayes.inference.likelihood import drawn_counts
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers.learned_model import by_chains, expected, ranks, table
from tests.helpers.oracles import FALSE_ALARM
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten
from tests.helpers.sweeps import slow

#: Largest difference of a mean, in standard errors of two simulations with few chains: a value of
#: Student's t with 15 degrees of freedom is larger by chance with probability 2e-5.
FAR = 6.0
ONE_LOOK = table([3, 1, 0], DiscreteLaplace(2.0), (3,))
OTHER_LOOK = table([1, 2, 1], DiscreteGaussian(1.5), (3,))
TWO_LOOKS = replace(ONE_LOOK, looks=[*ONE_LOOK.looks, *OTHER_LOOK.looks])
TABLES = {
    "two cells": (table([3, 1], DiscreteLaplace(1.0), (2,)), ()),
    "public number": (table([6, -2, 0], DiscreteLaplace(1.5), (3,), size=5), ()),
    "private number": (table([6, -2, 0], DiscreteLaplace(1.5), (3,)), ()),
    "two variables": (table([4, 1, 0, 3], DiscreteGaussian(1.2), (2, 2)), ()),
    "two variables, public": (table([5, 2, -1, 1], DiscreteLaplace(2.0), (2, 2), size=7), ()),
    "without noise": (
        table([2, 0, 4], DiscreteLaplace(1.0), (3,), 6, noised=(True, True, False)),
        (),
    ),
    "far from the sum": (table([6, 4, 1], DiscreteGaussian(2.0), (3,), size=5), ()),
    "two looks": (TWO_LOOKS, ()),
    "ordered": (table([0, 3, 6], DiscreteLaplace(1.0), (3,)), ("v0",)),
}
LAPLACE = ob.LaplaceParameters(2.0, total="private")
CELLS = tuple((row, column) for row in "ab" for column in "uvw")


def released(drawn, mechanism=LAPLACE, size=None, cells=CELLS, axes=("x", "y")):
    return ob.Release(drawn, cells, (1.0,) * len(drawn), mechanism, guarantee(size), axes)


def learned(*arguments, **options):
    """The posterior by chains that are not made longer."""
    shorter = patch.multiple(learned_posterior, _BEFORE=20, _MOVES=150, _APART=1, _DOUBLINGS=0)
    with shorter, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few effective draws
        return ob.noise_aware_posterior(
            released(*arguments, **options.pop("of", {})), prior="learned", **options
        )


@pytest.fixture(scope="module")
def posterior():
    return learned((30, 2, 7, 11, -1, 19))


def distance(of, found, ordered=(), sweeps=100, draws=20_000, weighted=True):
    """The largest difference between chains and weighted draws, in standard errors."""
    theta, counts = by_chains(found, ordered, sweeps=sweeps, weighted=weighted)
    mean, number, spread, behind = expected(of, ordered, draws)
    far = []
    for chains, exact, of_exact in ((theta, mean, spread), (counts, number, None)):
        error = chains.std(axis=0, ddof=1) / np.sqrt(len(chains))
        more = 3 * error if of_exact is None else of_exact / np.sqrt(behind)
        far.append(np.abs(chains.mean(axis=0) - exact) / np.hypot(error, more))
    return np.max(far)


LONG = {"sweeps": 1000, "draws": 200_000}
MORE = [("two variables", {}), ("without noise", {}), *((name, LONG) for name in TABLES)]


@pytest.mark.parametrize(("name", "length"), [("two cells", {}), *slow(MORE)])
def test_chains_agree_with_weighted_draws_from_the_prior(name, length):
    of, ordered = TABLES[name]
    assert distance(of, of, ordered, **length) < FAR


def test_chains_for_another_scale_do_not_agree():
    of, _ = TABLES["two cells"]
    assert distance(of, table([3, 1], DiscreteLaplace(20.0), (2,))) > 1.2 * FAR


def test_draws_are_repeated_in_their_order_as_often_as_they_weigh():
    drawn = [
        Draw(np.full((2, 3), at), *np.full((5, 2, 1), at), np.log([weight, 1.0]))
        for at, weight in enumerate([1.0, 4.0, 1e-9, 3.0])
    ]
    found = learned_posterior._by_weight(drawn, np.random.default_rng(0))
    assert found.counts.shape == (2, 4, 3)
    assert found.counts[1, :, 0].tolist() == [0, 1, 2, 3]
    assert found.mean[0, :, 0].tolist() in ([0, 1, 1, 3], [1, 1, 3, 3])


def uniform(found):
    """The smallest p-value of Kolmogorov's test over what is ranked."""
    return min(stats.kstest(column, "uniform").pvalue for column in np.array(found).T)


def simulated(number, *arguments, **options):
    return [
        ranks(*arguments, np.random.default_rng([seed, 5]), **options) for seed in range(number)
    ]


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform_and_not_for_another_scale():
    """Of three ranks and their distances from the middle, each p-value at 1e-6."""
    assert uniform(simulated(6, (4,), DiscreteLaplace(3.0), False, sweeps=30)) > FALSE_ALARM
    wrong = {"taken_for": DiscreteGaussian(0.4), "sweeps": 30}
    assert uniform(simulated(20, (4,), DiscreteLaplace(30.0), False, **wrong)) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    ("shape", "number", "sweeps"),
    [
        ((5,), 150, 100),
        ((50,), 100, 100),
        ((500,), 40, 100),
        ((2, 3), 150, 100),
        ((10, 5), 100, 100),
        ((25, 20), 40, 100),
    ],
)
def test_ranks_of_the_truth_are_uniform(shape, number, sweeps, public):
    found = simulated(number, shape, DiscreteLaplace(2.0), public, sweeps=sweeps)
    assert uniform(found) > FALSE_ALARM


@pytest.mark.slow
def test_ordered_effects_find_a_smooth_truth():
    place, scale = np.arange(24), 12.0
    truth = 150 * np.exp(-(((place - 10) / 5) ** 2))
    drawn = np.rint(truth).astype(int) + DiscreteLaplace(scale).simulate(
        place.shape, np.random.default_rng(4)
    )
    mechanism = ob.LaplaceParameters(scale, total="private")
    options = {"of": {"cells": tuple(range(24)), "axes": ()}}
    plain = learned(tuple(drawn.tolist()), mechanism, **options)
    smooth = learned(tuple(drawn.tolist()), mechanism, ordered=["age"], **options)
    shares = truth / truth.sum()
    errors = [((one.mean() - shares) ** 2).sum() for one in (plain, smooth)]
    assert errors[1] < 0.85 * errors[0]


def test_margins_that_have_effects_and_the_covariance_of_a_walk():
    """In three combinations of another variable; not those of a variable without order."""
    places = {name: np.arange(16) // 2**at % 2 for at, name in enumerate("abcd")}

    def named(number):
        variables = {name: places[name] for name in "abcd"[:number]}
        return ["".join(margin.variables) for margin in margins_of(variables, [])]

    assert [named(number) for number in (1, 2, 3)] == [
        [],
        ["a", "b"],
        ["a", "b", "c", "ab", "ac", "bc"],
    ]
    assert named(4) == [*"abcd", "ab", "ac", "ad", "bc", "bd", "cd"]
    places = {"a": np.arange(18) // 3, "b": np.arange(18) % 3}
    size, centred = 6, np.eye(6) - 1 / 6
    until = np.tril(np.ones((size, size)))[:, 1:]  # sums of steps
    walk = centred @ until @ until.T @ centred
    far = []
    for ordered in (["a"], []):
        margin = margins_of({**places, "c": np.zeros(18, int)}, ordered)[3]
        waves = margin.effects(np.diag(margin.reach))
        table = waves.reshape(-1, 6, 3)
        assert np.abs([table.sum(axis=1).max(), table.sum(axis=2).max()]).max() < 1e-12
        first = table[:, :, 0]
        far.append(np.abs(first.T @ first - walk * 2 / 3).max())
    assert far[0] < 1e-12
    assert far[1] > 0.1


def test_coordinates_of_effects_have_the_density_of_their_prior():
    """Up to a constant; and not without the change of volume."""
    rng = np.random.default_rng(3)
    places = {"a": np.arange(12) // 3, "b": np.arange(12) % 3}
    margins = margins_of(places, ["a"])
    known = rng.exponential(1.0, 12)
    effects = Effects(margins, known, rng.poisson(5.0, 12), 1.0)
    u = 0.5 * rng.standard_normal((20, effects.start.size))
    loss, slope = effects.loss(u, np.zeros((20, 12)))
    log_tau, log_p, volume, start = effects.log_tau(u), np.zeros(20), np.zeros(20), 0
    for at, margin in enumerate(margins):
        tau, v = np.exp(log_tau[:, at, None]), u[:, start : start + margin.reach.size]
        start += margin.reach.size
        of_c = margin.back(known[None], 2) + (tau * margin.reach) ** -2
        log_p += stats.norm.logpdf(v / np.sqrt(of_c), 0, tau * margin.reach).sum(axis=1)
        log_p += stats.halfcauchy.logpdf(tau[:, 0]) + log_tau[:, at]
        volume -= np.log(of_c).sum(axis=1) / 2
    assert np.ptp(loss + log_p + volume) < 1e-8
    assert np.ptp(loss + log_p) > 0.1
    for j in (0, 4, u.shape[1] - 1):
        step = 1e-5 * (np.arange(u.shape[1]) == j)
        up, down = (effects.loss(u + by, np.zeros((20, 12)))[0] for by in (step, -step))
        assert slope[:, j] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("ordered", [(), ("v0",)])
@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_slopes_are_those_of_the_likelihood(shape, ordered):
    cells = Cells(table([30, 4, 0, -2, 7, 1], DiscreteLaplace(2.0), shape), ordered)
    rng = np.random.default_rng(1)
    a = rng.exponential(0.1, (2, cells.shown.size))
    u = cells.start + 0.3 * rng.standard_normal((2, cells.start.size))
    _, of_a, of_u = cells.likelihood(a, u)
    for j in (0, 5, a.shape[1] // 2):
        step = 1e-3 * (np.arange(a.shape[1]) == j)
        up, down = (cells.likelihood(a + by, u)[0] for by in (step, -step))
        assert of_a[:, j] == pytest.approx((up - down) / 2e-3, rel=1e-3, abs=1e-2)
    for j in range(u.shape[1]):
        step = 1e-2 * (np.arange(u.shape[1]) == j)
        up, down = (cells.likelihood(a, u + by)[0] for by in (step, -step))
        assert of_u[:, j] == pytest.approx((up - down) / 2e-2, rel=1e-2, abs=1e-2)


def test_probabilities_of_counts_sum_to_one_where_chains_start():
    points = Points(-3.0, 5.0)
    assert points.pmf(np.arange(4000)).sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    assert points.pmf(np.arange(40)).sum(axis=1).min() < 0.1
    cells = Cells(table([10**7, 3, 0, 8], DiscreteLaplace(2.0), (2, 2)))
    a = np.full((1, cells.shown.size), 4 / cells.shown.size)

    def missed(u):
        """Minus the log-likelihood, without the prior of effects."""
        return (cells.likelihood(a, u)[0] - cells._effects.loss(u, np.zeros((1, 4)))[0]).item()

    near, far = missed(cells.start[None]), missed(-cells.start[None])
    assert near < 60 < far


def exact_masses(of, x, means, shapes):
    """P(drawn, x | point) of the first cell, by all counts x, a row for each point."""
    means, shapes = (np.atleast_1d(each)[:, None] for each in (means, shapes))
    noise = np.exp(of.log_noise(x[None, None], np.array([0])))[0, 0]
    return stats.nbinom.pmf(x, shapes, shapes / (shapes + means)) * noise


#: Of wide noise, those that are tried every time.
WIDE = {(DiscreteLaplace, 100), (DiscreteGaussian, -500)}


@pytest.mark.parametrize(
    ("of", "other", "error"),
    [
        (TWO_LOOKS, ONE_LOOK, 1e-4),
        (table([90, -3, 90], DiscreteLaplace(2.0), (3,)), ONE_LOOK, 1e-4),
        *(
            pytest.param(
                table([y], noise(300.0), (1,)),
                table([y], noise(390.0), (1,)),
                0.02,
                marks=[pytest.mark.slow] * ((noise, y) not in WIDE),
            )
            for noise in (DiscreteLaplace, DiscreteGaussian)
            for y in (-500, 100, 4000)
        ),
    ],
)
def test_what_was_drawn_is_as_likely_as_by_all_counts(of, other, error):
    """Where many counts share a node, two in a hundred of the largest likelihood at most, and
    more for noise that is 30 % wider.
    """
    points = Cells(of)
    x = np.arange(of.largest + 1)
    exact = exact_masses(of, x, points._means, points._shapes).sum(axis=1)
    far = []
    for each in (of, other):
        cells = Cells(replace(each, looks=each.looks), ())
        found = cells.like[cells.kind[0]][: exact.size]
        far.append(np.abs(found - exact[: found.size] / exact.max()).max())
    assert far[0] < error
    assert far[1] > 1.2 * error


def at_points(cells, *points, states=1):
    """Chains of which all cells are of some points, equally often."""
    weights = np.zeros((states, cells.shown.size))
    weights[:, list(points)] = 1 / len(points)
    return SimpleNamespace(weights=weights, others=np.empty((states, 0)))


@pytest.mark.parametrize(("y", "scale", "point"), [(-2, 2.0, 28), (150, 3.0, 64), (900, 300.0, 76)])
def test_counts_are_drawn_given_points(y, scale, point):
    """The p-value of the cumulative probabilities at 1e-6; four points on, they differ."""
    of, rng = table([y], DiscreteLaplace(scale), (1,)), np.random.default_rng(2)
    cells, x = Cells(of), np.arange(of.largest + 1)
    drawn = cells.drawn(at_points(cells, point, states=4000), rng)[0].counts[:, 0]

    def p_value(at):
        exact = exact_masses(of, x, cells._means[at], cells._shapes[at])
        cumulative = np.append(0.0, np.cumsum(exact))
        cumulative /= cumulative[-1]
        return stats.kstest(rng.uniform(cumulative[drawn], cumulative[drawn + 1]), "uniform").pvalue

    assert p_value(point) > FALSE_ALARM
    assert p_value(point + 4) < FALSE_ALARM


@pytest.mark.parametrize(
    "noised", [(True, True, False), pytest.param((True,) * 3, marks=pytest.mark.slow)]
)
def test_counts_of_a_public_sum_have_their_law_by_all_counts_and_weigh_its_probability(
    noised, monkeypatch
):
    """Within five standard errors; those of three records more are not. Every count is a node."""
    monkeypatch.setattr(drawn_counts, "_OF_ROOT", 0.0)
    of = table([6, 4, 1], DiscreteLaplace(1.5), (3,), size=9, noised=noised)
    cells, states, points = Cells(of), 2000, np.array([20, 38, 42])
    masses = sum(cells._count_laws(cells.kind, np.full(3, point)) for point in points)
    p = np.zeros((3, of.largest + 1))
    for row, kind in enumerate(cells.kind):
        of_kind = masses[row] / masses[row].sum() / np.exp(cells._taken[kind])
        nodes = cells.nodes[kind].astype(int)
        np.add.at(p[row], nodes, np.where(cells.log_mass[kind] > -np.inf, of_kind, 0.0))
    x = np.array(list(product(range(of.largest + 1), repeat=3)))

    def exact(size):
        rows = x[x.sum(axis=1) == size]
        joint = p[np.arange(3), rows].prod(axis=1)
        return joint.sum(), joint @ rows / joint.sum()

    draw, _ = cells.drawn(at_points(cells, *points, states=states), np.random.default_rng(1))
    counts, weights = draw.counts, np.exp(draw.log_weight) / 8**4
    assert np.all(counts[weights > 0].sum(axis=1) == 9)

    def far(size):
        mass, mean = exact(size)
        of_mass = abs(weights.mean() - mass) / weights.std()
        apart = (weights[:, None] * (counts - mean)).mean(axis=0)
        of_mean = np.abs(apart).max() / (weights[:, None] * (counts - mean)).std(axis=0).max()
        return max(of_mass, of_mean) * np.sqrt(states)

    assert far(9) < 5
    assert far(12) > 10


def test_tilted_counts_come_to_the_public_sum():
    """Of noise whose sum is twelve deviations off the sum of counts."""
    drawn, noise = np.arange(20) + 30, DiscreteGaussian(4.0)
    of = table(drawn, noise, (20,), size=int(drawn.sum() - 12 * 4.0 * np.sqrt(20)))
    cells, rng = Cells(of), np.random.default_rng(0)

    def away():
        chains = HamiltonianChains(cells, 4, rng)
        chains.move(15, adapt=True)
        counts = cells.drawn(chains, rng)[1]
        sums = counts.sum(axis=1)
        cells.begin_at(chains, rng)
        return np.abs(sums.mean() - of.size) / np.sqrt(counts.var(axis=2).sum(axis=1).mean())

    found = [away() for _ in range(6)]
    assert found[0] > 5
    assert found[-1] < 2


@pytest.mark.slow
def test_a_public_number_far_from_what_was_drawn_is_found_reliably():
    """Gaussian noise whose sum is ten of its deviations from the number of records."""
    drawn, mechanism = (31, 42, 25, 18, 60, 33), ob.GaussianParameters(3.0)
    size = sum(drawn) - round(10 * 3.0 * np.sqrt(6))
    found = learned(drawn, mechanism, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sums far from what was drawn
        fixed = released(drawn, mechanism, size).posterior.counts.mean()
    assert found.records.mean() == size
    assert found.diagnostics.ess.min() > 60  # of 300 draws
    assert found.counts.mean() == pytest.approx(fixed, abs=1.0)


def test_counts_and_probabilities_are_of_the_same_draws(posterior):
    """Both are of the two categories among themselves, whose draws are worth more."""
    for first, second in combinations(posterior.categories, 2):
        ratio = posterior.difference(first, second).probability()
        assert posterior.difference(first, second).probability() == ratio
    counts, theta = (
        posterior.counts.sample(4000, random_state=3),
        posterior.sample(4000, random_state=3),
    )
    assert np.corrcoef(counts[:, 0] / counts.sum(axis=1), theta[:, 0])[0, 1] > 0.5


def test_a_seed_determines_the_posterior(monkeypatch):
    shorten(monkeypatch)
    one = released((3, 9, 4), cells=("a", "b", "c"), axes=())
    means = [
        ob.noise_aware_posterior(one, prior="learned", random_state=seed).mean()
        for seed in (1, 1, 2)
    ]
    assert np.all(means[0] == means[1])
    assert np.all(means[0] != means[2])


@pytest.mark.parametrize(
    ("drawn", "mechanism", "size"),
    [
        ((300, 200, 505), ob.GaussianParameters(4.0, total="private"), None),
        *slow(
            [
                ((300, 200, 505), ob.LaplaceParameters(3.0), 1005),
                ((500_100, 299_950, 199_950), ob.KNormParameters(100.0), 1_000_000),
                ((200_000, 100_000, 300_100), ob.KNormParameters(1e3), 600_100),
                ((300, 200, 505), ob.LaplaceParameters(0.1, total="private"), None),
                ((300, 200, 505), ob.LaplaceParameters(5.0, "floored", "private"), None),
            ]
        ),
    ],
)
def test_large_counts_are_as_under_a_fixed_prior(drawn, mechanism, size):
    of = {"cells": ("a", "b", "c"), "axes": ()}
    fixed = released(drawn, mechanism, size, **of).posterior
    found = learned(drawn, mechanism, size, of=of)
    assert found.mean() == pytest.approx(fixed.mean(), abs=0.4 * fixed.std().max())
    assert found.std() == pytest.approx(fixed.std(), rel=0.2)
    assert found.counts.std() == pytest.approx(fixed.counts.std(), rel=0.25, abs=0.05)


def test_a_public_number_of_records_is_kept(monkeypatch):
    shorten(monkeypatch)
    one = released((5, 2, 3, -2, 1, 0), ob.KNormParameters(2.0), 9)
    found = ob.noise_aware_posterior(one, prior="learned")
    assert found.records.mean() == 9
    assert np.all(found.counts.sample(100, random_state=0).sum(axis=1) == 9)


def test_noise_of_a_million_on_a_thousand_million_records():
    drawn = (200_000_000, 99_000_000, 301_000_000, -400_000)
    of = {"cells": (*"abcd",), "axes": ()}
    found = learned(drawn, ob.LaplaceParameters(1e6, total="private"), of=of)
    assert found.records.mean() == pytest.approx(600_000_000, abs=3e6)
    assert found.counts.std()[:3] == pytest.approx(1.41e6, rel=0.2)
    assert found.counts.mean()[3] < 1e6


def refused(message, *, of=None, error=ValueError, **options):
    with pytest.raises(error, match=message):
        ob.noise_aware_posterior(of or released((30, 2, 7, 11, -1, 19)), **options)


def test_wrong_arguments():
    refused("prior='flat': must be a number, one for each category, or 'learned'", prior="flat")
    refused("prior=0.0: every entry must be greater than 0", prior=0.0)
    refused(r"prior=\[1.0, 2.0\]: has shape \(2,\); must have 6 entries", prior=[1.0, 2.0])
    refused("ordered=.*: goes with a learned prior; leave out prior", prior=1.0, ordered=["x"])
    refused("prior=None: .*'learned', as it must be where ordered is given", ordered=["x"])
    refused("ordered=3: must be a name", prior="learned", ordered=3, error=TypeError)
    refused("must be variables of the table: 'x', 'y'", prior="learned", ordered=["z"])
    refused("records_prior=.*: must be None", prior="learned", records_prior=stats.poisson(30))
    one = released((3, 4), cells=("a", "b"), axes=())
    refused(
        "must be one name, for there is one column", of=one, prior="learned", ordered=["a", "b"]
    )
    drawn = ob.Release(
        (3, 5), ("a", "b"), (1.0, 1.0), ob.mechanisms.HellingerExponential(0.1), guarantee(8)
    )
    refused("what 'hellinger_exponential' draws depends on the prior", of=drawn, prior="learned")
    refused("what 'hellinger_exponential' drew depends on the prior that", of=drawn, prior=2.0)


def test_chains_calculate_in_one_thread_and_leave_the_others_as_they_are(monkeypatch):
    """Threads that wait for each other over small matrices take most of the time."""
    seen, run = [], learned_posterior._run

    def threads():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    def watched(*arguments):
        seen.append(threads())
        return run(*arguments)

    shorten(monkeypatch)
    monkeypatch.setattr(learned_posterior, "_run", watched)
    with threadpool_limits(2, "blas"):
        before = threads()
        ob.noise_aware_posterior(released([3, 1, 4, 1, 5, 9]), prior="learned")
        after = threads()
    assert seen == [[1] * len(before)]
    assert after == before == [2] * len(before)


@pytest.mark.parametrize("scale", [5.0, 20.0])
def test_counts_of_wide_noise_are_no_larger_than_their_law_says(scale):
    """Half a record more in each cell would be many deviations of the number of all records."""
    noise, drawn = DiscreteLaplace(scale), np.array([230, 180, 200])
    of = NoisedTable([DrawnCounts.of(drawn, noise)], None)
    cells, point = Cells(of), 1 + round((np.log(200.0) + 3.0) / 0.125)
    chains = at_points(cells, point, states=20_000)
    counts = cells.drawn(chains, np.random.default_rng(0))[0].counts
    x, shape = np.arange(of.largest)[:, None], cells._shapes[point]
    log_p = stats.nbinom(shape, shape / (shape + cells._means[point])).logpmf(x)
    p = special.softmax(log_p + noise.log_mass(drawn - x), axis=0)
    mean = (p * x).sum(axis=0)
    std = np.sqrt((p * x**2).sum(axis=0) - mean**2)
    limit = stats.norm.isf(FALSE_ALARM / 6) * np.sqrt((std**2).sum() / 20_000)
    assert abs((counts.mean(axis=0) - mean).sum()) < limit
    # Negative control: half a record more is noticed.
    assert abs((counts.mean(axis=0) + 0.5 - mean).sum()) > limit


@pytest.mark.parametrize(
    ("own", "asked", "used"), [(("x",), None, ("x",)), (("x",), [], []), ((), ["x"], ["x"])]
)
def test_the_order_that_is_asked_for_is_above_that_of_the_release(own, asked, used):
    """None asks for the release's own; an empty list for none."""
    release = replace(released((3, 2, 7, 1, 0, 4)), learned_prior=True, ordered=own)
    with patch.object(learned_posterior, "learned_posterior", lambda *asked: asked[2]):
        assert ob.noise_aware_posterior(release, prior="learned", ordered=asked) == used


@pytest.mark.parametrize(("draws", "apart"), [(200, 0.0), (20, 0.0), (200, 3.0)])
def test_chains_have_met_with_enough_draws_that_agree(draws, apart):
    """Few draws agree as well as many do, so that either measure alone would end the chains."""
    shift = apart * np.arange(4)[:, None, None]
    means = 50 + shift + np.random.default_rng(0).normal(size=(4, draws, 3))
    assert (learned_posterior._met(means) is not None) == (draws == 200 and not apart)
