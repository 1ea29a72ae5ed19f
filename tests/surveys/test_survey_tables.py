"""Chains on consistent tables against a list of every data set."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.sampling.markov_chain import r_hat_and_ess
from opendp_bayes.mechanisms.integer_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FlooredLaplace,
    IntegerNoise,
)
from opendp_bayes.surveys.survey_tables.consistent_draws import draw, starting_tables
from opendp_bayes.surveys.survey_tables.junction_tree import junction_tree
from opendp_bayes.surveys.survey_tables.line_moves import MovedSet, all_moves
from opendp_bayes.surveys.survey_tables.probabilities_of_tables import Factor
from opendp_bayes.surveys.survey_tables.records import matched_records, new_tables
from opendp_bayes.surveys.survey_tables.tables import CellPrior, Model, NoisyTable, State
from tests.helpers.every_survey import SmallSurvey, margin, posterior, weighed
from tests.helpers.random_surveys import model_of, of_counts
from tests.helpers.sweeps import slow, some_of

#: Standard errors by which a mean over the chains may differ from the exact one. A normal variable
#: is farther away with probability 5e-7; effective draws that are overstated by a fifth make it
#: 5e-6 each, and some 5e-4 for all of this file.
FARTHEST = 5.0
NOISES: tuple[IntegerNoise, ...] = (
    DiscreteGaussian(1.0),
    DiscreteLaplace(0.7),
    FlooredLaplace(0.6),
)
#: Cliques, separators and measured tables, with their levels.
MODELS: dict[str, tuple[Any, ...]] = {
    "path": ((2, 2, 2), ((0, 1), (1, 2)), ((1,),), ((0, 1), (1, 2))),
    "path and its ends": ((2, 2, 2), ((0, 1), (1, 2)), ((1,),), ((0, 1), (1, 2), (2,))),
    "star": ((3, 2, 2), ((0, 1), (0, 2)), ((0,),), ((0, 1), (0, 2))),
    "cycle": ((2, 2, 2), ((0, 1, 2),), (), ((0, 1), (1, 2), (0, 2))),
    "hierarchy": ((2, 2, 2), ((0, 1, 2),), (), ((0,), (0, 1), (0, 1, 2))),
    "apart": ((2, 2, 2), ((0, 1), (2,)), ((),), ((0, 1), (2,))),
    "twice": ((2, 3), ((0, 1),), (), ((0, 1), (0, 1))),
}
#: Those with moves in tables of different shapes, and in several tables each, that are made in one
#: call: of two pairs, and of the second and the fourth variable.
PATH = ((0, 1), (1, 2), (2, 3), (3, 4))
TOGETHER: dict[str, tuple[Any, ...]] = {
    "three unequal tables": ((3, 2, 2), ((0, 1), (1, 2)), ((1,),), ((0, 1), (1, 2), (2,))),
    "four tables in a row": ((2,) * 5, PATH, ((1,), (2,), (3,)), PATH),
}
#: One of each shape, with public and private numbers of records.
QUICK = [("path", 6), ("path", None), ("cycle", None), ("apart", 6)]
CONCENTRATION = 2.5
#: Where the number of records is private, data sets have at most this many, by the records that
#: were counted: the probability of more is below 1e-6.
LARGEST = {5: 13, 2: 8}


def case(name: str, size: int | None, seed: int, counted: int = 5) -> tuple[SmallSurvey, list[Any]]:
    """A survey of some records at random, and what was drawn of it."""
    rng = np.random.default_rng(seed)
    levels, cliques, separators, scopes = (MODELS | TOGETHER)[name]
    noises = (2 * NOISES)[: len(scopes)]
    survey = SmallSurvey(levels, cliques, separators, scopes, noises, size, CONCENTRATION)
    number = counted if size is None else size
    truth = rng.multinomial(number, rng.dirichlet(np.ones(np.prod(levels))))
    tables = [margin(truth[None], levels, scope)[0] for scope in scopes]
    drawn = [
        table + noise.simulate(table.shape, rng)
        for table, noise in zip(tables, survey.noise, strict=True)
    ]
    return survey, drawn


def worst(survey: SmallSurvey, drawn: list[Any], counted: int = 5) -> float:
    """The largest deviation of chains for a survey from the list for it, in standard errors."""
    rows, p = posterior(survey, drawn, LARGEST[counted])
    draws = draw(model_of(survey, drawn, CONCENTRATION), 400, np.random.default_rng(7))
    off = (
        abs(far)
        for scope in (*survey.cliques, ())
        for _, far in of_counts(scope, margin(rows, survey.levels, scope), p, draws.counts(scope))
    )
    return max(off)


@pytest.mark.parametrize(
    ("name", "size", "seed"),
    [*((*of, 1) for of in QUICK), *slow(itertools.product(MODELS, [3, 7, None], range(2, 12)))],
)
def test_chains_meet_every_data_set(name: str, size: int | None, seed: int) -> None:
    assert worst(*case(name, size, seed)) < FARTHEST


CASES = [("three unequal tables", 4), ("three unequal tables", None), ("four tables in a row", 3)]


@pytest.mark.parametrize(("name", "size"), some_of(CASES, 2))
def test_moves_made_in_one_call_meet_every_data_set(name: str, size: int | None) -> None:
    assert worst(*case(name, size, 1, counted=2), counted=2) < FARTHEST


def row_of_tables(size: int | None) -> Model:
    """Six tables of 8 by 8 cells, each of which shares a variable with the next."""
    looks = [NoisyTable((v, v + 1), DrawnCounts.of(np.full(64, 9), NOISES[0])) for v in range(6)]
    return Model((8,) * 7, looks, size, None)


@pytest.mark.parametrize(("size", "calls"), [(600, 18), (None, 26)])
def test_moves_on_tables_apart_are_made_in_one_call(size: int | None, calls: int) -> None:
    """One by one they are 48, and 56 where those of the number of records come to them."""
    moves = all_moves(row_of_tables(size))
    assert sum(move.calls for move in moves[:-1]) == calls


@pytest.mark.parametrize("apart", [True, False])
def test_moves_on_one_table_in_one_call_are_noticed(apart, monkeypatch):
    if not apart:
        monkeypatch.setattr(MovedSet, "meets", lambda *_: False)
    model, rng = row_of_tables(600), np.random.default_rng(2)
    state = State(model.all_tables(starting_tables(model, 4, rng)), np.full(4, 5))
    for move in all_moves(model):
        move(state, rng)
    made = model.all_tables({clique: state.counts[clique] for clique in model.tree.cliques})
    agree = all(np.array_equal(counts, made[scope]) for scope, counts in state.counts.items())
    assert agree is apart


def test_a_learned_concentration_is_the_mixture_over_its_grid() -> None:
    survey, drawn = case("path", 6, seed=3)
    learning = model_of(survey, drawn, None)
    draws = draw(learning, 400, np.random.default_rng(5))
    log_evidence, means = [], []
    for concentration in learning.concentrations:
        one = replace(survey, concentration=float(concentration))
        rows, p = posterior(one, drawn, LARGEST[5])
        means.append(p @ margin(rows, survey.levels, (0, 1)))
        log_evidence.append(logsumexp(weighed(one, drawn, LARGEST[5])[1]))
    weights = np.exp(np.array(log_evidence) + learning.log_prior_of_concentrations)
    weights /= weights.sum()
    found = np.log(draws.concentration)
    effective = r_hat_and_ess(found[..., None])[1][0]
    grid = np.log(learning.concentrations)
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    assert abs(found.mean() - mean) / std * np.sqrt(effective) < FARTHEST
    counts = draws.counts((0, 1))
    assert counts is not None
    error = counts.reshape(-1, 4).std(axis=0) / np.sqrt(draws.settled((0, 1))[1])
    assert np.all(np.abs(counts.mean(axis=(0, 1)) - weights @ np.array(means)) < FARTHEST * error)


def test_priors_of_concentrations_and_of_counts() -> None:
    survey, drawn = case("path", 6, seed=3)
    model = model_of(survey, drawn, None)
    of = model.concentrations
    expected = stats.fisk(1.0, scale=0.5 * 4).logpdf(of) + np.log(of)  # of its logarithm
    np.testing.assert_allclose(np.diff(model.log_prior_of_concentrations), np.diff(expected))
    prior, chosen = CellPrior(np.array([0.25, 1.5])), np.array([[1], [0], [1]])
    counts = np.array([[0, 7, 4095], [4096, 1, 4000], [4094, 10**6, 4097]])
    alphas = np.array([1.5, 0.25, 1.5])[:, None]
    expected = gammaln(counts + alphas) - gammaln(counts + 1)
    for rows in (slice(3), slice(1), slice(1, 2)):
        found = prior.log_weight(counts[rows], chosen[rows])
        np.testing.assert_allclose(found, expected[rows], rtol=1e-9, atol=1e-9)
    assert prior.log_weight(counts[:, :0], chosen).shape == (3, 0)


@pytest.mark.parametrize("size", [40, None])
def test_every_draw_agrees_with_itself_and_with_its_records(size: int | None) -> None:
    rng = np.random.default_rng(4)
    levels, scopes = (3, 4, 2, 5), [(0, 1), (1, 2), (2, 3), (0, 3), (1,)]
    looks = [
        NoisyTable(scope, DrawnCounts.of(rng.normal(6, 3, number).round(), noise))
        for scope, noise in zip(scopes, 2 * NOISES, strict=False)
        for number in [int(np.prod([levels[v] for v in scope]))]
    ]
    model = Model(levels, looks, size, None)
    cliques = starting_tables(model, 8, rng)
    state = State(model.all_tables(cliques), np.full(8, 5))
    first = {scope: counts.copy() for scope, counts in state.counts.items()}
    for move in all_moves(model):
        for _ in range(20):
            move(state, rng)
    made = model.all_tables({clique: state.counts[clique] for clique in cliques})
    for scope, counts in state.counts.items():
        assert counts.min() >= 0
        np.testing.assert_array_equal(counts, made[scope])
        for clique in model.tree.cliques:
            if set(scope) <= set(clique):
                summed = model.margin(state.counts[clique], clique, scope)
                np.testing.assert_array_equal(counts, summed)
        if scope:
            assert np.any(counts != first[scope], axis=1).all()
    for chain in range(8):
        tables = {clique: state.counts[clique][chain] for clique in cliques}
        records = matched_records(model, tables, rng)
        for clique, table in tables.items():
            shape = [levels[v] for v in clique]
            cells = np.ravel_multi_index([records[:, v] for v in clique], shape)
            np.testing.assert_array_equal(np.bincount(cells, minlength=table.size), table)


@pytest.mark.parametrize("levels", [(2, 15, 17, 3), (2, 16, 16, 3), (2, 130, 2, 3)])
def test_records_have_their_tables_where_these_share_hundreds_of_cells(levels: Any) -> None:
    rng = np.random.default_rng(1)
    drawn = DrawnCounts.of(np.zeros(2), NOISES[0])
    model = Model(levels, [NoisyTable(scope, drawn) for scope in ((0, 1, 2), (1, 2, 3))], 3000, 1.0)
    whole = np.stack([rng.integers(0, number, 3000) for number in levels], axis=1)

    def tables(records: Any) -> dict[Any, Any]:
        return {
            clique: np.bincount(
                np.ravel_multi_index(records[:, clique].T, [levels[v] for v in clique]),
                minlength=int(np.prod([levels[v] for v in clique])),
            )
            for clique in model.tree.cliques
        }

    found = tables(matched_records(model, tables(whole), rng))
    for clique, counts in tables(whole).items():
        np.testing.assert_array_equal(found[clique], counts)


@pytest.mark.parametrize(
    ("scopes", "cliques", "shared"),
    [
        ([(0, 1), (1, 2), (2, 3)], {(0, 1), (1, 2), (2, 3)}, [(1,), (2,)]),
        ([(0, 1), (1, 2), (2, 3), (0, 3)], {(0, 1, 3), (1, 2, 3)}, [(1, 3)]),
        ([(0, 1), (0, 2), (0, 3)], {(0, 1), (0, 2), (0, 3)}, [(0,), (0,)]),
        ([(0,), (1, 2), (3,)], {(0,), (1, 2), (3,)}, [(), ()]),
        ([(0, 1, 2, 3), (1, 2)], {(0, 1, 2, 3)}, []),
    ],
)
def test_junction_trees(scopes: Any, cliques: set[Any], shared: list[Any]) -> None:
    tree = junction_tree([3, 2, 4, 2], scopes)
    if len(cliques) == 2 and len(scopes) == 4:  # either diagonal closes the cycle
        assert all(len(clique) == 3 for clique in tree.cliques)
        assert [len(edge.separator) for edge in tree.edges] == [2]
        return
    assert set(tree.cliques) == cliques
    assert sorted(edge.separator for edge in tree.edges) == shared


def test_junction_trees_run_through_what_is_not_independent() -> None:
    """In any tree the cliques that hold a variable hang together."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        number = int(rng.integers(3, 9))
        pairs = [(a, b) for a in range(number) for b in range(a)]
        picked = rng.choice(len(pairs), int(rng.integers(2, len(pairs))), replace=False)
        scopes = [tuple(sorted(pairs[at])) for at in picked] + [(v,) for v in range(number)]
        tree = junction_tree(rng.integers(2, 5, number).tolist(), scopes)
        assert all(tree.holding(scope) is not None for scope in scopes)
        for v in range(number):
            holding = sum(v in clique for clique in tree.cliques)
            assert sum(v in edge.separator for edge in tree.edges) == holding - 1
    tree = junction_tree([2, 2, 2, 2, 2], [(0, 1), (1, 2), (1, 3), (4,)])
    assert ((4,), (0, 1, 2, 3), ()) in tree.separations()
    for one, other, given in tree.separations():
        assert set(one) | set(other) | set(given) == set(range(5))
        for clique in tree.cliques:  # no clique joins what is said to be apart
            assert not (set(clique) & set(one) and set(clique) & set(other))
    assert len(tree.separations()) == len(tree.cliques) - 1


@pytest.mark.parametrize("scope", list(itertools.permutations(range(3))))
def test_tables_of_new_records_have_their_axes_in_order(scope: tuple[int, ...]) -> None:
    """All records are in one cell, of axes of three lengths, in whichever order they are drawn."""
    levels, cell = (2, 3, 4), (1, 0, 2)
    values = np.zeros([levels[v] for v in scope])
    values[tuple(cell[v] for v in scope)] = 1
    factor = Factor((), scope, values.reshape(1, 1, -1))
    model: Any = SimpleNamespace(levels=levels)
    ((names, table),) = new_tables(model, [factor], 0, 7, np.random.default_rng(0)).items()
    assert names == (0, 1, 2)
    assert table.reshape(levels)[cell] == table.sum() == 7


@pytest.mark.parametrize(
    "scope", [some for number in (1, 2, 3) for some in itertools.permutations(range(3), number)]
)
def test_margins_have_their_axes_in_the_order_asked(scope: tuple[int, ...]) -> None:
    model: Any = SimpleNamespace(levels=(2, 3, 4))
    table = np.arange(48).reshape(2, 2, 3, 4)
    of_scope = Model.margin(model, table.reshape(2, -1), (0, 1, 2), scope)
    assert np.array_equal(of_scope, np.einsum(table, [3, 0, 1, 2], [3, *scope]).reshape(2, -1))
