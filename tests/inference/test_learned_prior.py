"""Learned priors: chains against weighted draws from the prior, calibrated by simulation, and what
the posterior answers.
"""

import warnings
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from scipy import special, stats
from threadpoolctl import threadpool_info, threadpool_limits

import opendp_bayes as ob
from opendp_bayes.inference.learned import learned_counts as module, sweeps as sweeps_module
from opendp_bayes.inference.learned.drawn_cells import DrawnCells, columns
from opendp_bayes.inference.learned.intensity_law import SHAPE, STEP, UNIT, IntensityLaw
from opendp_bayes.inference.learned.margins import SCALES, handed_down, margins_of, nested
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.inference.learned.sweeps import Draw, Sweeps
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers.learned_model import by_chains, expected, ranks, table
from tests.helpers.oracles import FALSE_ALARM
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten

#: Largest difference of a mean, in standard errors of two simulations with few chains: a value of
#: Student's t with 15 degrees of freedom is larger by chance with probability 2e-5.
FAR = 6.0
ONE_LOOK = table([3, 1, 0], DiscreteLaplace(2.0), (3,))
OTHER_LOOK = table([1, 2, 1], DiscreteGaussian(1.5), (3,))
TWO_LOOKS = replace(ONE_LOOK, looks=[*ONE_LOOK.looks, *OTHER_LOOK.looks])
TABLES = {
    "two cells": (table([3, 1], DiscreteLaplace(1.0), (2,)), ()),
    "public number": (table([6, -2, 0], DiscreteLaplace(1.5), (3,), size=5), ()),
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
    """The posterior by chains of a fifth of the usual length."""
    shorter = patch.multiple(module, _DROPPED=60, _RUNS=[(np.inf, 150, 0)])
    with shorter, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few effective draws
        return ob.noise_aware_posterior(
            released(*arguments, **options.pop("of", {})), prior="learned", **options
        )


@pytest.fixture(scope="module")
def posterior():
    return learned((30, 2, 7, 11, -1, 19))


def distance(of, found, ordered=(), sweeps=300, draws=20_000, weighted=True):
    """The largest difference between chains and weighted draws, in standard errors."""
    theta, counts = by_chains(found, ordered, sweeps=sweeps, weighted=weighted)
    mean, number, spread, behind = expected(of, ordered, draws)
    far = []
    for chains, exact, of_exact in ((theta, mean, spread), (counts, number, None)):
        error = chains.std(axis=0, ddof=1) / np.sqrt(len(chains))
        more = 3 * error if of_exact is None else of_exact / np.sqrt(behind)
        far.append(np.abs(chains.mean(axis=0) - exact) / np.hypot(error, more))
    return np.max(far)


@pytest.mark.parametrize(
    "name", ["two variables", pytest.param("without noise", marks=pytest.mark.slow)]
)
def test_chains_agree_with_weighted_draws_from_the_prior(name):
    of, ordered = TABLES[name]
    assert distance(of, of, ordered, sweeps=100, draws=5000) < FAR


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_long_chains_agree_with_weighted_draws_from_the_prior(name):
    of, ordered = TABLES[name]
    assert distance(of, of, ordered, sweeps=5000, draws=400_000) < FAR


def test_chains_for_another_scale_do_not_agree():
    of, _ = TABLES["two cells"]
    assert distance(of, table([3, 1], DiscreteLaplace(8.0), (2,)), sweeps=200) > 2 * FAR


def test_draws_are_repeated_in_their_order_as_often_as_they_weigh():
    drawn = [
        Draw(np.full((2, 3), at), *np.full((4, 2, 1), at), np.log([weight, 1.0]))
        for at, weight in enumerate([1.0, 4.0, 1e-9, 3.0])
    ]
    found = module._by_weight(drawn, np.random.default_rng(0))
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
    assert uniform(simulated(6, (4,), DiscreteLaplace(3.0), False, sweeps=60)) > FALSE_ALARM
    wrong = {"taken_for": DiscreteGaussian(0.4), "sweeps": 30}
    assert uniform(simulated(20, (4,), DiscreteLaplace(30.0), False, **wrong)) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    ("shape", "number", "sweeps"),
    [
        ((5,), 150, 300),
        ((50,), 100, 300),
        ((500,), 40, 400),
        ((2, 3), 150, 300),
        ((10, 5), 100, 300),
        ((25, 20), 40, 400),
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


def test_margins_that_have_effects():
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


def test_walks_go_along_the_ordered_variable():
    places = {name: np.arange(12) // 3**at % (3 if at == 0 else 4) for at, name in enumerate("ab")}
    margins = {m.variables: m for m in margins_of({**places, "c": np.zeros(12, int)}, ["a"])}
    assert margins["a", "b"].smooth
    assert (margins["a", "b"].walks, margins["a", "b"].steps) == (4, 3)
    assert not margins["b",].smooth


def test_what_margins_hand_down_leaves_locations_and_their_prior():
    rng = np.random.default_rng(8)
    places = {"a": np.arange(12) // 4, "b": np.arange(12) % 4, "c": np.zeros(12, int)}
    margins = {m.variables: m for m in margins_of({n: p[1:] for n, p in places.items()}, [])}
    outer, inner = margins["a",], margins["a", "b"]
    assert (0, 3) in nested(list(margins.values()))
    assert nested(margins_of(places, ["a"])) == [(1, 5), (2, 5)]
    tau = [np.full(4000, at) for at in (16, 10)]
    first, second = (
        np.rint(rng.normal(0, SCALES[at[0]] / STEP, (4000, margin.number))).astype(int)
        for at, margin in zip(tau, (outer, inner), strict=True)
    )
    before = first[:, outer.level] + second[:, inner.level]
    spread = first.std(axis=0), second.std(axis=0)
    for _ in range(5):
        taken, given = handed_down((outer, first, tau[0]), (inner, second, tau[1]), rng)
        first, second = first + taken, second + given
    assert np.mean(taken != 0) > 0.5
    assert np.all(first[:, outer.level] + second[:, inner.level] == before)
    assert first.std(axis=0) == pytest.approx(spread[0], rel=0.08)
    assert second.std(axis=0) == pytest.approx(spread[1], rel=0.08)
    assert np.abs(first.mean(axis=0)).max() < 0.1 * spread[0].max()


def test_components_shift_as_a_whole_or_are_lost():
    law = IntensityLaw(np.log(4.0), 100)
    one_each = np.eye(law.base.size, dtype=int)
    for units in (1, -1):
        before, after = np.nonzero(law.shifted(one_each, units))
        assert 0.8 * law.base.size < len(before) < law.base.size
        assert (before[0], after[0]) == (0, 0)  # the empty one stays
        kernels = law.kernels[np.array([before[1:], after[1:]]) - 1]
        down, up = kernels if units > 0 else kernels[::-1]
        assert up[:, UNIT:] == pytest.approx(down[:, :-UNIT], rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("ordered", [(), ("a",)])
def test_shifted_locations_leave_the_prior(ordered):
    """Levels of margins, locations and components drawn from the prior have one law before and
    after, and not where the prior's ratio is left out. Each p-value at 1e-6.
    """
    rng, chains = np.random.default_rng(4), 6000
    of = table([3] * 12, DiscreteLaplace(1.0), (4, 3))
    places = {"a": np.arange(12) // 3, "b": np.arange(12) % 3}
    law, margins = IntensityLaw(of.origin(), of.largest), margins_of(places, ordered)

    def moved(by_prior):
        sweeps = Sweeps(of, law, margins, chains, np.random.default_rng(7))
        sweeps.tau = [np.full(chains, at) for at in (20, 16)]
        sweeps.effects = []
        for margin, tau in zip(margins, sweeps.tau, strict=True):
            shape = (chains, margin.walks, margin.steps)
            effects = np.rint(rng.normal(0, SCALES[tau[0]] / STEP, shape)).astype(int)
            if margin.smooth:
                effects[..., 0] = np.rint(rng.normal(0, 1 / STEP, shape[:2]))
                effects = effects.cumsum(axis=-1)
            sweeps.effects.append(effects.reshape(chains, -1))
        levels = (each[:, m.level] for each, m in zip(sweeps.effects, margins, strict=True))
        sweeps.location = sum(levels)
        cells = np.array([rng.multinomial(12, row) for row in law.prior_weights(chains, rng)])
        seen = [(*sweeps.effects[0].T[:1], sweeps.location.mean(axis=1), cells @ ranked)]
        with nullcontext() if by_prior else patch.object(IntensityLaw, "log_prior", ignored):
            for _ in range(3):
                cells = sweeps._shift_locations(cells)
        seen.append((*sweeps.effects[0].T[:1], sweeps.location.mean(axis=1), cells @ ranked))
        levels = (each[:, m.level] for each, m in zip(sweeps.effects, margins, strict=True))
        assert np.array_equal(sweeps.location, sum(levels))
        assert np.mean(seen[1][1] != seen[0][1]) > 0.2
        return min(stats.ks_2samp(*both).pvalue for both in zip(*seen, strict=True))

    def ignored(law, cells):
        return np.zeros(len(cells))

    ranked = np.append(0, law.kernels @ np.arange(law.gammas))
    assert moved(by_prior=True) > FALSE_ALARM
    assert moved(by_prior=False) < FALSE_ALARM


@pytest.mark.parametrize(("uniform", "column"), [(0.0, 0), (np.nextafter(1.0, 0.0), 2)])
def test_a_column_is_of_the_own_row_whatever_sums_are_rounded_to(uniform, column):
    p = np.random.default_rng(3).random((2000, 3)) + 0.1
    for precision in (p, p.astype(np.float32)):
        assert np.all(columns(precision, np.arange(2000), np.full(2000, uniform)) == column)


def test_a_column_of_many_rows_is_drawn_in_proportion_in_32_bits_too():
    p = np.tile(np.array([0.999, 0.001], dtype=np.float32), (40_000, 1))
    at = np.arange(40_000)
    found = columns(p, at, np.random.default_rng(0).random(40_000)).mean()
    error = np.sqrt(0.001 / 40_000)
    assert abs(found - 0.001) < 5 * error


def test_weights_that_are_divided_anew_agree_with_the_cells():
    """Weights from the prior and cells drawn given them have one law before and after, and not
    where every division is accepted. Each p-value at 1e-6.
    """
    rng, chains, cells = np.random.default_rng(6), 3000, 60
    of = table([3] * cells, DiscreteLaplace(1.0), (cells,))
    law = IntensityLaw(of.origin(), of.largest)
    centres = np.append(0, law.kernels @ np.arange(law.gammas))
    large = np.where(centres > np.median(centres), 0.98, 0.02)
    likelihood = np.tile([large, 1 - large], (chains, 1)).T  # of a large cell, and of another
    weights = law.prior_weights(chains, rng)
    number = rng.binomial(cells, weights @ large)
    number = np.stack([number, cells - number], axis=1)

    def seen(weights):
        masses = np.array([weights @ large, weights @ (1 - large)]).T
        return [weights[:, 0], weights @ centres, (number * np.log(masses)).sum(axis=1)]

    def divided(least):
        sweeps = Sweeps(of, law, [], chains, np.random.default_rng(7))
        sweeps.weights = weights.copy()
        rows = SimpleNamespace(chain=np.arange(chains).repeat(2), number=number.ravel())
        with patch.object(sweeps_module, "_TINY", least):
            sweeps._share_anew(likelihood, rows)
        assert sweeps.weights.sum(axis=1) == pytest.approx(1)
        assert np.mean(np.abs(sweeps.weights - weights).max(axis=1) > 0.01) > 0.9
        pairs = zip(seen(weights), seen(sweeps.weights), strict=True)
        return min(stats.ttest_rel(*both).pvalue for both in pairs)

    assert divided(sweeps_module._TINY) > FALSE_ALARM
    assert divided(1.0) < FALSE_ALARM


def test_probabilities_of_a_count_sum_to_one_at_every_location():
    law = IntensityLaw(np.log(4.0), 100)
    weights = law.prior_weights(2, np.random.default_rng(0))
    larger = IntensityLaw(np.log(4.0), 100_000)
    few = larger.log_masses(larger.evidence(), np.arange(120), weights, -50, -20)
    assert np.exp(few).sum(axis=1) == pytest.approx(1.0, abs=1e-3)


def test_chains_start_where_components_reach_every_count():
    of = table([10**7, 3, 0, 8], DiscreteLaplace(2.0), (2, 2))
    law, margins = IntensityLaw(np.log(5.0), of.largest), margins_of(of.variables, ())
    Sweeps(of, law, margins, 2, np.random.default_rng(0)).sweep()
    at_the_origin = Sweeps(of, law, margins, 2, np.random.default_rng(0))
    at_the_origin.location *= 0
    with pytest.raises(RuntimeWarning, match="invalid value"):
        at_the_origin.sweep()


def exact_masses(of, x, points):
    """P(drawn, x | point) of the first cell, by all counts x, a row for each mean."""
    odds = SHAPE / (SHAPE + np.exp(STEP * np.atleast_1d(points)[:, None]))
    noise = np.exp(of.log_noise(x[None, None], np.array([0])))[0, 0]
    return stats.nbinom.pmf(x, SHAPE, odds) * noise


#: Of wide noise, those that are tried every time.
WIDE = {(DiscreteLaplace, 100), (DiscreteGaussian, -500)}


@pytest.mark.parametrize(
    ("of", "other", "error"),
    [
        (TWO_LOOKS, ONE_LOOK, 1e-6),
        (table([90, -3, 90], DiscreteLaplace(2.0), (3,)), ONE_LOOK, 1e-6),
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
    law = IntensityLaw(np.log(40.0), of.largest)
    masses = exact_masses(of, np.arange(of.largest + 1), law.points).sum(axis=1)
    exact = masses / masses.max()
    far = []
    for each in (of, other):
        cells = DrawnCells(each, law)
        found = law.evidence(cells.shares).masses[cells.kind[0]]
        far.append(np.abs(found - exact).max())
    assert far[0] < error
    assert far[1] > 1.2 * error


def masses_at(cells, points):
    """Masses of the nodes of every kind of cells, each at a point."""
    odds = SHAPE / (SHAPE + np.exp(STEP * np.array(points)[:, None]))
    return np.exp(cells.log_mass + stats.nbinom.logpmf(cells.nodes, SHAPE, odds))


@pytest.mark.parametrize(("y", "scale", "point"), [(-2, 2.0, 4), (150, 3.0, 48), (900, 300.0, 62)])
def test_counts_are_drawn_given_points(y, scale, point):
    """The p-value of the cumulative probabilities at 1e-6; four points on, they differ."""
    of, rng = table([y], DiscreteLaplace(scale), (1,)), np.random.default_rng(2)
    cells = DrawnCells(of, IntensityLaw(np.log(40.0), of.largest))
    x, one = np.arange(of.largest + 1), np.zeros(1, dtype=int)
    drawn = cells.drawn(masses_at(cells, [point]), one, np.zeros((4000, 1), int), rng)[0][:, 0]

    def p_value(exact):
        cumulative = np.append(0.0, np.cumsum(exact_masses(of, x, exact)))
        cumulative /= cumulative[-1]
        return stats.kstest(rng.uniform(cumulative[drawn], cumulative[drawn + 1]), "uniform").pvalue

    assert p_value(point) > FALSE_ALARM
    assert p_value(point + 4) < FALSE_ALARM


@pytest.mark.parametrize(
    "noised", [(True, True, False), pytest.param((True,) * 3, marks=pytest.mark.slow)]
)
def test_counts_of_a_public_sum_have_their_law_by_all_counts_and_weigh_its_probability(noised):
    """Within five standard errors; those of three records more are not."""
    of = table([6, 4, 1], DiscreteLaplace(1.5), (3,), size=9, noised=noised)
    cells = DrawnCells(of, IntensityLaw(of.origin(), of.largest))
    masses, states = masses_at(cells, [14, 18, -3]), 2000
    p = np.zeros((3, of.largest + 1))
    for row, kind in enumerate(cells.kind):
        of_kind = masses[kind] / masses[kind].sum() / np.exp(cells._taken[kind])
        np.add.at(p[row], cells.nodes[kind], np.where(cells.log_mass[kind] > -np.inf, of_kind, 0.0))
    x = np.array(list(product(range(of.largest + 1), repeat=3)))

    def exact(size):
        rows = x[x.sum(axis=1) == size]
        joint = p[np.arange(3), rows].prod(axis=1)
        return joint.sum(), joint @ rows / joint.sum()

    of_cell = np.tile(cells.kind, (states, 1))
    rng = np.random.default_rng(1)
    counts, log_weights = cells.drawn(masses, np.arange(len(masses)), of_cell, rng)
    weights = np.exp(log_weights) / 8**4
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
    sweeps = Sweeps(of, IntensityLaw(of.origin(), of.largest), [], 4, np.random.default_rng(0))

    def away():
        mean, variance = sweeps._cells.moments(*sweeps._count_laws())
        return np.max(np.abs(mean - of.size) / np.sqrt(variance))

    assert away() > 5
    sweeps.settle(100)
    assert away() < 4


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


def test_answers_agree_with_its_own_draws(posterior):
    draws = posterior.sample(40_000, random_state=1)
    assert draws.mean(axis=0) == pytest.approx(posterior.mean(), abs=0.005)
    assert draws.std(axis=0) == pytest.approx(posterior.std(), abs=0.005)
    lower, upper = posterior.interval(0.9)
    inside = ((lower < draws) & (draws < upper)).mean(axis=0)
    assert inside == pytest.approx(0.9, abs=0.05)  # of 300 states of the chains
    assert posterior.mean().sum() == pytest.approx(1.0, abs=1e-3)


def test_a_difference_above_0_is_a_ratio_above_1_and_as_sure(posterior):
    """Both are of the two categories among themselves, whose draws are worth more."""
    for first, second in combinations(posterior.categories, 2):
        ratio = posterior.ratio(first, second).probability()
        assert posterior.difference(first, second).probability() == ratio


def test_marginals_and_conditionals_are_those_of_draws(posterior):
    draws = posterior.sample(40_000, random_state=1).reshape(-1, 2, 3)
    marginal, given = posterior.marginal("y"), posterior.conditional("y", x="a")
    assert marginal.mean() == pytest.approx(draws.sum(axis=1).mean(axis=0), abs=0.005)
    assert marginal.std() == pytest.approx(draws.sum(axis=1).std(axis=0), abs=0.005)
    among = draws[:, 0] / draws[:, 0].sum(axis=1, keepdims=True)
    assert given.mean() == pytest.approx(among.mean(axis=0), abs=0.005)
    assert given.std() == pytest.approx(among.std(axis=0), abs=0.005)
    assert marginal.counts.mean().sum() == pytest.approx(posterior.records.mean())


def test_counts_and_probabilities_are_of_the_same_draws(posterior):
    counts, theta = (
        posterior.counts.sample(4000, random_state=3),
        posterior.sample(4000, random_state=3),
    )
    assert np.corrcoef(counts[:, 0] / counts.sum(axis=1), theta[:, 0])[0, 1] > 0.5


def test_comparisons_quantities_and_predictions(posterior):
    assert posterior.difference(("a", "u"), ("a", "v")).mean() > 0.2
    assert posterior.odds(("a", "u")).interval()[0] > 0
    assert posterior.ratio(("a", "u"), ("b", "w")).interval()[0] > 0.5
    assert posterior.quantity(lambda p: p["a", "u"] * 2).mean() == pytest.approx(
        2 * posterior.mean()[0], rel=0.02
    )
    assert posterior.predictive(50, 20, random_state=0).sum(axis=1).tolist() == [50] * 20
    plain = released((30, 2, 7, 11, -1, 19)).posterior
    assert posterior.compare(plain).mean() == pytest.approx(posterior.mean() - plain.mean())
    assert posterior.diagnostics.chains == 4


def test_repr_and_what_was_learned(posterior):
    assert "prior learned by Markov chains, R-hat" in repr(posterior)
    names = list(posterior.learned)
    assert names == ["empty cells", "spread of cells", "effects of x", "effects of y"]
    lower, upper = posterior.learned["empty cells"].interval()
    assert 0 <= lower < upper < 1
    assert dict(released((30, 2, 7, 11, -1, 19)).posterior.learned) == {}


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
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in [
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
    refused("prior=None: must be 'learned' where ordered is given", ordered=["x"])
    refused("must be a sequence of names", prior="learned", ordered="x", error=TypeError)
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


@pytest.mark.parametrize("prior", [3.0, [1.0, 2.0, 0.5, 4.0, 1.0, 1.0]])
@pytest.mark.parametrize("learned_prior", [True, False])
def test_another_prior_is_that_of_a_release_that_was_asked_for_with_it(prior, learned_prior):
    own = released((30, 2, 7, 11, -1, 19))
    own = replace(own, learned_prior=learned_prior)
    array = tuple(np.broadcast_to(prior, 6).tolist())
    found = ob.noise_aware_posterior(own, prior=prior)
    same = ob.noise_aware_posterior(replace(own, prior=array, learned_prior=False))
    assert found.mean().tolist() == same.mean().tolist()
    assert own.prior == (1.0,) * 6, "the release stays as it was"


def test_another_prior_of_one_group_is_that_of_all():
    table = released((30, 2, 7, 11, 1, 19), size=70)
    group = next(iter(table.by("x").values()))
    found = ob.noise_aware_posterior(group, prior=3.0)
    other = next(iter(replace(table, prior=(3.0,) * 6).by("x").values())).posterior
    assert found.mean() == pytest.approx(other.mean())


def test_chains_calculate_in_one_thread_and_leave_the_others_as_they_are(monkeypatch):
    """Threads that wait for each other over small matrices take most of the time."""
    seen, run = [], module._run

    def threads():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    def watched(*arguments):
        seen.append(threads())
        return run(*arguments)

    shorten(monkeypatch)
    monkeypatch.setattr(module, "_run", watched)
    with threadpool_limits(2, "blas"):
        before = threads()
        ob.noise_aware_posterior(released([3, 1, 4, 1, 5, 9]), prior="learned")
        after = threads()
    assert seen == [[1] * len(before)]
    assert after == before == [2] * len(before)


@pytest.mark.parametrize("scale", [5.0, 20.0])
def test_counts_of_wide_noise_are_no_larger_than_their_law_says(scale):
    """Half a record more in each cell would be many deviations of the number of all records."""
    noise, drawn = DiscreteLaplace(scale), np.array([300, 150, 200])
    of = NoisedTable([DrawnCounts.of(drawn, noise)], None)
    cells = DrawnCells(of, IntensityLaw(of.origin(), of.largest))
    points, of_cell = np.rint(np.log(drawn) / STEP), np.tile(cells.kind, (20_000, 1))
    masses = masses_at(cells, points[np.argsort(cells.kind)])
    counts, _ = cells.drawn(masses, np.arange(3), of_cell, np.random.default_rng(0))
    x = np.arange(of.largest)[:, None]
    intensities = np.exp(STEP * points)
    log_p = stats.nbinom(SHAPE, SHAPE / (SHAPE + intensities)).logpmf(x)
    p = special.softmax(log_p + noise.log_mass(drawn - x), axis=0)
    mean = (p * x).sum(axis=0)
    std = np.sqrt((p * x**2).sum(axis=0) - mean**2)
    limit = stats.norm.isf(FALSE_ALARM / 6) * np.sqrt((std**2).sum() / 20_000)
    assert abs((counts.mean(axis=0) - mean).sum()) < limit
    # Negative control: half a record more is noticed.
    assert abs((counts.mean(axis=0) + 0.5 - mean).sum()) > limit
