"""Interactions of pairs that no table holds: their law, the fitted joint law, its records."""

import warnings
from collections import Counter
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from math import factorial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import softmax

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.surveys.survey_tables import probabilities_of_tables
from opendp_bayes.surveys.survey_tables.consistent_draws import draw
from opendp_bayes.surveys.survey_tables.effects_of_tables import (
    BETWEEN,
    CENTRE,
    WITHIN,
    PairEffects,
    measured_effects,
)
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from opendp_bayes.surveys.survey_tables.probabilities_of_tables import (
    ImpliedTables,
    drawn_factors,
    drawn_interactions,
    fitted,
    learned_centre,
    open_pairs,
    probabilities,
)
from opendp_bayes.surveys.survey_tables.records import exchange, matched_records
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.tables import Model, NoisyTable
from tests.helpers import oracles
from tests.helpers.every_survey import margin

NOISE = DiscreteGaussian(3.0)


def look(scope: tuple[int, ...], drawn: Any, noise: Any = NOISE, noised: Any = True) -> NoisyTable:
    return NoisyTable(scope, DrawnCounts.of(drawn, noise, noised))


@lru_cache
def path(levels: tuple[int, ...] = (2, 3, 3, 2), size: int = 400, scale: float = 3.0) -> Model:
    """A path of tables of neighbours."""
    rng, noise = np.random.default_rng(3), DiscreteGaussian(scale)
    data = np.column_stack([rng.integers(k, size=size) for k in levels])
    data[:, 1:] = (
        data[:, 1:] + data[:, :-1] * (rng.random((size, len(levels) - 1)) < 0.5)
    ) % levels[1:]
    looks = []
    for v in range(len(levels) - 1):
        shape = levels[v : v + 2]
        counts = np.bincount(
            np.ravel_multi_index(data[:, v : v + 2].T, shape), minlength=np.prod(shape)
        )
        looks.append(look((v, v + 1), counts + noise.simulate(counts.shape, rng), noise))
    return Model(levels, looks, size, None)


# What was measured.
def dense(effects, levels, pairs, logs, y, std, n):
    """The slope of the objective at effects, from whole matrices: written out cell by cell."""
    cells = list(product(*map(range, levels)))
    blocks = [*((v,) for v in range(len(levels))), *pairs]
    rows, penalty = [], []
    for block in blocks:
        for of in product(*(range(levels[v]) for v in block)):
            rows.append([float(tuple(cell[v] for v in block) == of) for cell in cells])
            penalty.append(1 / 9 if len(block) == 1 else np.exp(-2 * logs[block]))
    features, penalty = np.array(rows), np.array(penalty)
    p = softmax(effects @ features)
    covariance = np.diag(p) - np.outer(p, p)
    noise = np.linalg.inv(std**2 * np.eye(p.size) + n * covariance)
    slopes = n * features @ covariance
    slope = slopes @ noise @ (y - n * p) - penalty * effects
    return slope, np.linalg.inv(slopes @ noise @ slopes.T + np.diag(penalty)), blocks


def test_effects_are_where_the_objective_is_level_and_strengths_where_theirs_is() -> None:
    """Of a table of three variables, whose whole fit is found from its parts."""
    levels, std, n = (2, 3, 2), 3.0, 500
    rng = np.random.default_rng(0)
    y = rng.multinomial(n, rng.dirichlet(np.full(12, 2.0))) + DiscreteGaussian(std).simulate(
        (12,), rng
    )
    found = measured_effects(levels, (look((0, 1, 2), y),), n)
    assert sorted(found) == [(0, 1), (0, 2), (1, 2)]
    logs = {pair: np.log(of.strength) for pair, of in found.items()}
    # Effects of the single variables, which are not returned: those at which the slope is level.
    start = np.zeros(7)
    ours = np.concatenate([of.mean for of in found.values()])

    def gap(margins: Any) -> Any:
        return dense(np.concatenate([margins, ours]), levels, found, logs, y, std, n)[0][:7]

    margins = optimize.root(gap, start, tol=1e-10).x
    slope, covariance, blocks = dense(
        np.concatenate([margins, ours]), levels, found, logs, y, std, n
    )
    step = covariance @ slope
    assert abs(step).max() < 0.03  # of the next step; a hundredth ends the fit
    at = 7
    for pair, of in found.items():
        own = slice(at, at := at + of.mean.size)
        np.testing.assert_allclose(of.root @ of.root.T, covariance[own, own], rtol=0.02, atol=2e-3)
        squares = float(np.sum(of.mean**2 + np.diag(covariance)[own]))

        def slope_of(log: float, squares: float = squares, cells: int = of.mean.size) -> float:
            variance = BETWEEN**2 + WITHIN**2
            return squares * np.exp(-2 * log) - cells - (log - CENTRE) / variance

        assert optimize.brentq(slope_of, -9, 4) == pytest.approx(logs[pair], abs=0.03)
    assert blocks[3:] == list(found)


def test_two_looks_at_a_table_are_one_with_less_noise_and_cells_without_noise_are_left_out():
    levels, y = (2, 2), np.array([90, 10, 20, 80])
    once = measured_effects(levels, (look((0, 1), y, DiscreteGaussian(5.0 / 2**0.5)),), 200)
    twice = measured_effects(levels, (look((0, 1), y, DiscreteGaussian(5.0)),) * 2, 200)
    np.testing.assert_allclose(twice[0, 1].mean, once[0, 1].mean)
    wrong = np.array([90, 10, 20, 999])
    rest = measured_effects(levels, (look((0, 1), wrong, noised=y < 80.5),), 200)
    near = measured_effects(levels, (look((0, 1), y),), 200)
    part = measured_effects(levels, (look((0, 1), y, noised=[True, True, True, False]),), 200)
    np.testing.assert_allclose(part[0, 1].mean, near[0, 1].mean, atol=0.1)
    assert rest[0, 1].mean.shape == (4,)
    assert measured_effects((2, 1), (look((0, 1), [5, 6]),), 11) == {}
    assert measured_effects((2,), (look((0,), [5, 6]),), 11) == {}


def test_the_least_noisy_table_tells_of_a_pair_and_strengths_are_told_apart() -> None:
    """Tables of known strengths: the fitted ones lie about them, over two orders of magnitude."""
    wide, narrow = DiscreteLaplace(40.0), DiscreteGaussian(2.0)
    levels, three = (2, 2, 2), np.full(8, 25)
    looks = (look((0, 1, 2), three, wide), look((0, 1), [90, 10, 20, 80], narrow))
    found = measured_effects(levels, looks, 200)
    alone = measured_effects(levels, looks[1:], 200)
    assert set(found) == {(0, 1), (0, 2), (1, 2)}
    assert found[0, 1].strength == alone[0, 1].strength > 2 * found[0, 2].strength
    rng = np.random.default_rng(1)
    for true in (0.1, 0.4, 1.2):
        logs = []
        for _ in range(20):
            effects = true * rng.standard_normal((4, 5))
            counts = rng.multinomial(20_000, softmax(effects.reshape(-1)))
            y = counts + NOISE.simulate(counts.shape, rng)
            logs.append(np.log(measured_effects((4, 5), (look((0, 1), y),), 20_000)[0, 1].strength))
        # Twelve free cells tell a logarithm to .2 each, and 20 tables to .05.
        assert np.mean(logs) == pytest.approx(np.log(true), abs=0.25)


@pytest.mark.parametrize("logs", [(), (0.2,), (-2.0, -1.0, -0.4, 0.1)])
def test_the_centre_of_strengths_is_learned(logs: tuple[float, ...]) -> None:
    """Against Bayes' rule on a grid."""
    grid = np.linspace(-6, 4, 20_001)
    weight = stats.norm.logpdf(grid, CENTRE, BETWEEN)
    for log in logs:
        weight = weight + stats.norm.logpdf(log, grid, WITHIN)
    p = softmax(weight)
    mean = p @ grid
    none = np.zeros(0)
    effects = {
        (0, at): PairEffects((1, 1), none, none, float(np.exp(x))) for at, x in enumerate(logs, 1)
    }
    centre, std = learned_centre(effects)
    assert centre == pytest.approx(mean, abs=1e-6)
    assert std == pytest.approx(np.sqrt(p @ (grid - mean) ** 2), abs=1e-6)


# What is drawn.
def test_interactions_are_of_the_pairs_that_no_clique_holds() -> None:
    model = path()
    assert open_pairs(model) == [(0, 2), (0, 3), (1, 3)]
    found = drawn_interactions(model, 400, 4000, np.random.default_rng(0))
    assert {pair: of.shape for pair, of in found.items()} == {
        (0, 2): (4000, 2, 3),
        (0, 3): (4000, 2, 2),
        (1, 3): (4000, 3, 2),
    }
    for of in found.values():
        np.testing.assert_array_equal(of[:2000], -of[2000:])
        # Half of an interaction's square lies along one direction of levels.
        centred = of - of.mean(axis=1, keepdims=True)
        centred = centred - centred.mean(axis=2, keepdims=True)
        assert np.median(np.sqrt((of**2).mean(axis=(1, 2)))) == pytest.approx(0.33, abs=0.2)
        first = np.linalg.svd(centred, compute_uv=False)[:, 0] ** 2
        assert np.mean(first / (centred**2).sum(axis=(1, 2))) > 0.75


def test_the_direction_follows_the_measured_pairs_of_more_than_one_level() -> None:
    """The first and last level of a variable differ most in its pair, so they do in the others."""
    y = np.array([[300, 20], [160, 160], [20, 300]]).reshape(-1)
    looks = [look((0, 1), y), look((2,), [480, 480])]
    model = Model((3, 2, 2), looks, 960, None)
    assert open_pairs(model) == [(0, 2), (1, 2)]
    of = drawn_interactions(model, 960, 4000, np.random.default_rng(0))[0, 2]
    slope = of[:, :, 1] - of[:, :, 0]
    ends, rest = slope[:, 0] - slope[:, 2], slope[:, 0] + slope[:, 2] - 2 * slope[:, 1]
    # Of independent levels the variances would be as 2 to 6.
    assert np.mean(ends**2) / np.mean(rest**2) > 0.55
    model = Model((2, 1, 2), [look((0,), [5, 6]), look((1,), [11]), look((2,), [4, 7])], 11, None)
    assert open_pairs(model) == [(0, 2)]
    found = drawn_interactions(model, 11, 8, np.random.default_rng(0))
    assert np.all(np.isfinite(found[0, 2]))


# The joint law.
def test_fitted_weights_keep_tables_interactions_and_empty_cells() -> None:
    """What has a clique's table changes no odds ratio of the outer two."""
    rng = np.random.default_rng(0)
    levels = np.indices((2, 3, 2)).reshape(3, -1)
    theta = rng.dirichlet(np.ones(12), size=5).T
    interaction = rng.normal(size=(2, 2))
    change = np.exp(interaction[levels[0], levels[2]])[:, None]
    tables = [levels[0] * 3 + levels[1], levels[1] * 2 + levels[2]]
    targets = [np.stack([theta[table == at].sum(axis=0) for at in range(6)]) for table in tables]
    found = fitted(np.ones_like(theta) * change, tables, targets, 500, 1e-14)
    for table, target in zip(tables, targets, strict=True):
        sums = np.stack([found[table == at].sum(axis=0) for at in range(6)])
        np.testing.assert_allclose(sums, target, rtol=1e-9)
    cube = found.reshape(2, 3, 2, 5)
    odds = cube[0, :, 0] * cube[1, :, 1] / cube[0, :, 1] / cube[1, :, 0]
    wanted = interaction[0, 0] + interaction[1, 1] - interaction[0, 1] - interaction[1, 0]
    np.testing.assert_allclose(np.log(odds), wanted, rtol=1e-9)
    weights = np.array([[0.0], [1.0], [1.0], [1.0]])
    found = fitted(weights, [np.array([0, 0, 1, 1])], [np.array([[0.3], [0.7]])], 30, 1e-12)
    np.testing.assert_allclose(found[:, 0], [0, 0.3, 0.35, 0.35])
    none = fitted(np.zeros((2, 1)), [np.array([0, 1])], [np.array([[0.0], [1.0]])], 3, 1e-12)
    assert none.tolist() == [[0.0], [0.0]]


@lru_cache
def implied(model: Model, seed: int = 0) -> tuple[ImpliedTables, Any]:
    rng = np.random.default_rng(seed)
    draws = draw(model, 50, rng)
    factors = drawn_factors(draws, rng)
    return ImpliedTables(model, factors, draws.shape, model.size or 0, rng), factors


@pytest.mark.parametrize("scope", [(0, 2), (3, 0), (1, 3), (3, 1, 0), (0, 1, 2, 3)])
def test_implied_tables_agree_with_the_cliques(scope: tuple[int, ...]) -> None:
    model = path()
    found, factors = implied(model)
    table = found.probabilities(scope).reshape(-1, *(model.levels[v] for v in scope))
    for part in [(v,) for v in scope] + [p for p in [(0, 1), (1, 2)] if set(p) <= set(scope)]:
        others = tuple(1 + at for at, v in enumerate(scope) if v not in part)
        own = table.sum(axis=others)
        if list(part) != [v for v in scope if v in part]:
            own = own.swapaxes(1, 2)
        want = probabilities(model, factors, part)
        np.testing.assert_allclose(own.reshape(want.shape), want, atol=1e-5)
        np.testing.assert_allclose(
            own.reshape(want.shape).mean(axis=0), want.mean(axis=0), atol=1e-9
        )


def test_a_cycle_is_filled_in_by_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maximum entropy has the tables of the draw; those of cliques are not drawn."""
    pairs, levels = [(0, 1), (1, 2), (2, 3), (0, 3)], (2, 3, 2, 3)
    rng, cells = np.random.default_rng(0), np.indices(levels).reshape(4, -1)
    data = rng.multinomial(400, rng.dirichlet(np.full(36, 0.5)))[None]
    looks = [look(pair, margin(data, levels, pair)[0]) for pair in pairs]
    model = Model(levels, looks, 400, None)
    assert open_pairs(model) == [(0, 2), (1, 3)]

    def none(model: Model, size: float, draws: int, rng: Any) -> Any:
        return {(0, 2): np.zeros((draws, 2, 2))}

    monkeypatch.setattr(probabilities_of_tables, "drawn_interactions", none)
    draws = draw(model, 50, rng)
    factors = drawn_factors(draws, rng)
    found = ImpliedTables(model, factors, draws.shape, 400, rng)
    number = draws.shape[1]
    row = int(0.5 * number / min(32, number))  # in the middle of the first stretch
    tables = [np.ravel_multi_index(cells[list(p)], [levels[v] for v in p]) for p in pairs]
    targets = [probabilities(model, factors, pair)[row][:, None] for pair in pairs]
    even = fitted(np.ones((36, 1)), tables, targets, 5000, 1e-12)[:, 0]
    for pair in open_pairs(model):
        want = margin(even[None], levels, pair)[0]
        np.testing.assert_allclose(found.probabilities(pair)[row], want, atol=2e-4)
    (within,) = [p for p in open_pairs(model) if set(p) <= set(model.tree.cliques[0])]
    diffuse, law = probabilities(model, factors, within), found.probabilities(within)
    assert np.all(diffuse.std(axis=0) > 1.1 * law.std(axis=0))


def test_implied_tables_agree_nearly_and_intervals_widen() -> None:
    model = path()
    found, _ = implied(model)
    pair = found.probabilities((0, 3))
    whole = found.probabilities((0, 1, 3)).reshape(-1, 2, 3, 2).sum(axis=2).reshape(-1, 4)
    assert abs(pair.mean(axis=0) - whole.mean(axis=0)).max() < 0.05 * pair.std(axis=0).min()
    model = path()
    found, factors = implied(model)
    before, after = probabilities(model, factors, (0, 3)), found.probabilities((0, 3))
    assert np.all(after.std(axis=0) > 2 * before.std(axis=0))
    assert np.all(abs(after.mean(axis=0) - before.mean(axis=0)) < before.std(axis=0))


def test_many_cells_are_drawn_and_give_about_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = path((3, 4, 3, 4, 3))
    listed, _ = implied(model)
    monkeypatch.setattr(probabilities_of_tables, "LARGEST_JOINT", 400)
    drawn, factors = implied.__wrapped__(model)
    for scope in ((0, 2), (1, 4), (0, 1, 3)):
        one, other = listed.probabilities(scope), drawn.probabilities(scope)
        np.testing.assert_allclose(other.sum(axis=1), 1, atol=1e-6)
        scale = one.std(axis=0)
        assert np.all(abs(other.mean(axis=0) - one.mean(axis=0)) < 0.5 * scale)
        # A few hundred interactions each tell a deviation to a tenth.
        assert np.median(other.std(axis=0) / scale) == pytest.approx(1, abs=0.15)
        plain = probabilities(model, factors, scope).std(axis=0)
        assert np.median(other.std(axis=0) / plain) > 1.3


# Records.
def every_matching(tables: dict[Any, Any], interaction: Any) -> dict[Any, float]:
    """Sets of records of a path, by listing how the second table follows the first."""
    one = [cell for cell, n in tables[0, 1].items() for _ in range(n)]
    other = [cell for cell, n in tables[1, 2].items() for _ in range(n)]
    weights: Counter[Any] = Counter()
    for order in permutations(range(len(other))):
        matched = [(a, b, other[at]) for (a, b), at in zip(one, order, strict=True)]
        if all(b == second for _, b, (second, _) in matched):
            records = tuple(sorted((a, b, c) for a, b, (_, c) in matched))
            weights[records] += np.exp(sum(interaction[a, c] for a, _, c in records))
    total = sum(weights.values())
    return {records: weight / total for records, weight in weights.items()}


def test_exchanged_records_have_their_law_and_their_tables() -> None:
    """Every set of six records that has the tables, by listing; without exchange they fail."""
    looks = [look((0, 1), [2, 1, 1, 2]), look((1, 2), [2, 1, 1, 2])]
    model = Model((2, 2, 2), looks, 6, 1.0)
    interaction = np.array([[0.9, -0.4], [-0.7, 0.5]])
    cells = list(product(range(2), repeat=2))
    tables = {scope: np.array([2, 1, 1, 2]) for scope in ((0, 1), (1, 2))}
    law = every_matching(
        {scope: dict(zip(cells, of, strict=True)) for scope, of in tables.items()}, interaction
    )
    rng, runs = np.random.default_rng(0), 2000
    found: dict[bool, Counter[Any]] = {True: Counter(), False: Counter()}
    for _ in range(runs):
        for exchanged in found:
            records = matched_records(model, tables, rng)
            if exchanged:
                exchange(records, model, {(0, 2): interaction}, rng)
                for scope, of in tables.items():
                    code = records[:, scope[0]] * 2 + records[:, scope[1]]
                    assert np.bincount(code, minlength=4).tolist() == of.tolist()
            found[exchanged][tuple(sorted(map(tuple, records.tolist())))] += 1
    p = {}
    for exchanged, of in found.items():
        observed = [of[records] for records in law]
        assert sum(observed) == runs
        p[exchanged] = stats.chisquare(observed, runs * np.array([*law.values()])).pvalue
    assert p[True] > oracles.FALSE_ALARM > p[False]


@pytest.mark.slow
def test_records_of_a_cycle_are_exchanged_as_well() -> None:
    """Every set of six records with the four tables of a cycle, by listing."""
    pairs, rng = [(0, 1), (1, 2), (2, 3), (0, 3)], np.random.default_rng(2)
    model = Model((2, 2, 2, 2), [look(pair, [2, 1, 1, 2]) for pair in pairs], 6, 1.0)
    (within,) = [pair for pair in open_pairs(model) if set(pair) <= set(model.tree.cliques[0])]
    interaction = np.array([[0.5, -0.5], [-0.5, 0.5]])
    interactions = dict.fromkeys(open_pairs(model), np.zeros((2, 2))) | {within: interaction}
    cells = np.indices((2, 2, 2, 2)).reshape(4, -1).T
    start = cells[[0, 5, 8, 10, 13, 15]]

    def sums(records: Any) -> Any:
        """Records in each cell of the four tables, of sets of shape `(sets, records, 4)`."""
        codes = np.stack([records[..., a] * 2 + records[..., b] for a, b in pairs], axis=-1)
        return (codes[..., None] == np.arange(4)).sum(axis=1)

    every = np.array(list(combinations_with_replacement(range(16), len(start))))
    law: dict[tuple[int, ...], tuple[float, float]] = {}
    for chosen in every[np.all(sums(cells[every]) == sums(start[None]), axis=(1, 2))].tolist():
        orders = 1 / np.prod([factorial(chosen.count(cell)) for cell in set(chosen)])
        change = interaction[tuple(cells[chosen][:, within].T)].sum()
        law[tuple(chosen)] = orders * np.exp(change), orders
    assert len(law) == 22
    found: Counter[Any] = Counter()
    for _ in range(400):
        records = rng.permutation(start)
        exchange(records, model, interactions, rng)
        found[tuple(sorted((records @ [8, 4, 2, 1]).tolist()))] += 1
    observed = [found[records] for records in law]
    assert sum(observed) == 400
    right, wrong = (
        stats.chisquare(observed, 400 * np.array(of) / sum(of)).pvalue
        for of in zip(*law.values(), strict=True)
    )
    assert right > oracles.FALSE_ALARM > wrong


def test_many_exchanged_records_have_the_shares_of_the_fit() -> None:
    """Of a path of four variables: all three interactions at once, two of them strong."""
    model = path()
    rng = np.random.default_rng(5)
    interactions = {
        pair: rng.normal(0, 1.0, (model.levels[pair[0]], model.levels[pair[1]]))
        for pair in open_pairs(model)
    }
    factors = drawn_factors(draw(model, 50, rng), rng)
    size = 40_000
    tables = {}
    for clique in model.tree.cliques:
        p = probabilities(model, factors, clique)[0]
        tables[clique] = p
    levels = np.indices(model.levels).reshape(4, -1)
    change = sum(of[levels[a], levels[b]] for (a, b), of in interactions.items())
    codes = [np.ravel_multi_index(levels[list(c)], [model.levels[v] for v in c]) for c in tables]
    joint = fitted(
        np.exp(change)[:, None], codes, [p[:, None] for p in tables.values()], 500, 1e-12
    )[:, 0]
    counts = {}
    whole = rng.multinomial(size, probabilities(model, factors, (0, 1, 2, 3))[0])
    for clique in tables:
        counts[clique] = margin(whole[None], model.levels, clique)[0]
    records = matched_records(model, counts, rng)
    exchange(records, model, interactions, rng)
    for pair in interactions:
        shape = [model.levels[v] for v in pair]
        share = np.bincount(
            np.ravel_multi_index(records[:, pair].T, shape), minlength=np.prod(shape)
        )
        truth = margin(joint[None], model.levels, pair)[0]
        plain = margin(probabilities(model, factors, (0, 1, 2, 3))[:1], model.levels, pair)[0]
        far = abs(share / size - truth) / np.sqrt(truth / size)
        assert far.max() < 6
        assert abs(truth - plain).max() / np.sqrt(truth.max() / size) > 8


# The posterior.
@lru_cache
def survey(interactions: bool, size: int | None = 400) -> SurveyPosterior:
    model = path()
    noisy = NoisyTables(tuple("abcd"), tuple(tuple(range(k)) for k in model.levels),
                        tuple(model.looks), size)  # fmt: skip
    rng = np.random.default_rng(1)
    model = Model(model.levels, model.looks, size, None)
    return SurveyPosterior(noisy, draw(model, 100, rng), rng, interactions)


def test_copies_warn_of_open_pairs_alone() -> None:
    with pytest.warns(UserWarning, match="pairs that no table has"):
        survey(True).synthetic(1)
    rng = np.random.default_rng(0)
    looks = (look((0, 1), [30, 20, 10, 40]),)
    noisy = NoisyTables(("a", "b"), ((0, 1), (0, 1)), looks, 100)
    found = SurveyPosterior(noisy, draw(Model((2, 2), looks, 100, None), 50, rng), rng)
    assert found.unmeasured().height == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.synthetic(1)
    assert found._implied is None


def test_combinations_are_drawn_from_every_draw_of_the_probabilities_alike() -> None:
    """Each draw is certain of a level of its own, in both variables."""
    scopes = lambda levels, scope: levels[0] if scope else 0 * levels[0]  # noqa: E731
    model: Any = SimpleNamespace(levels=(3, 3), cells_of=scopes)
    certain = np.eye(3)
    factors = [
        probabilities_of_tables.Factor((), (0,), certain[:, None, :]),
        probabilities_of_tables.Factor((0,), (1,), np.tile(certain[:, None, :], (1, 3, 1))),
    ]
    first, second = probabilities_of_tables._drawn_levels(
        model, factors, 3000, np.random.default_rng(1)
    )
    assert (first == second).all()
    assert np.bincount(first, minlength=3) == pytest.approx([1000] * 3, abs=150)
