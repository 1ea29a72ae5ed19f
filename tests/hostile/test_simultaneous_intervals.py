"""Simultaneous intervals have their level, at the cost of others, and answers stay the same."""

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes.inference.answers import posterior as posteriors, quantities
from opendp_bayes.inference.answers.comparison import DrawnDifferences
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.laws import beta_mixture
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, pointwise_level
from tests.helpers.by_chains import by_chains
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import slow, some_of

#: Counts with Laplace noise, its scale, and the prior, which where it is sparse rounds many draws
#: to 0 and to 1.
TABLES = {
    "three": ((60, 30, 10), 2.0, 1.0),
    "three, much noise": ((3, 9, 2), 5.0, 1.0),
    "three, sparse": ((48, 1, 1), 3.0, 0.02),
    "five": ((60, 30, 10, 0, 5), 2.0, 0.5),
    "ten": ((5, 60, 3, 30, 10, 0, 5, 9, 81, 2), 1.0, 1.0),
}
LEVELS = (0.3, 0.5, 0.8, 0.95, 0.99)


def private(counts: Any, scale: float, prior: float = 1.0, public: bool = False) -> ob.Release:
    """A release of counts whose number is private, or with K-norm noise of a public one."""
    mechanism = ob.LaplaceParameters(scale, total="private")
    labels = tuple("abcdefghij" if len(counts) <= 10 else range(len(counts)))[: len(counts)]
    size = sum(counts) if public else None
    drawn_by = ob.KNormParameters(scale / 2) if public else mechanism
    return ob.Release(tuple(counts), labels, (prior,) * len(counts), drawn_by, guarantee(size))


def depths(laws: BetaMixtures, draws: Any) -> Any:
    """Of every draw in every category: the level of the interval at whose end it is."""
    below, above = laws.cdf(np.nextafter(draws, 2)), laws.cdf(np.nextafter(draws, -1))
    return np.clip(np.maximum(1 - 2 * below, 2 * above - 1), 0.0, 1.0)


def by_depths(depth: Any, level: float, least: float) -> float:
    """The first level from `least` on that is not below what is wanted for the misses."""
    number, k = depth.shape
    beyond = np.sort(np.sort(depth, axis=1)[:, :-1].ravel())
    beyond = beyond[beyond > least]
    left = np.arange(beyond.size, -1, -1) / number
    ends, wanted = np.append(beyond, 1.0), 1 - (1 - level + left) / k
    return least if wanted[0] < least else float(wanted[np.argmax(wanted <= ends)])


def by_the_oracle(depth: Any, level: float) -> float:
    """Of the levels at which all together miss up to eight times as often, or of all."""
    near = max(1 - 8 * (1 - level) / depth.shape[1], level)
    found = by_depths(depth, level, near)
    return found if found > near else by_depths(depth, level, level)


#: Public and private totals take turns; the others are slow.
TURNS = [(name, at % 2 == 0) for at, name in enumerate(TABLES)]
OTHERS = [(name, not public) for name, public in TURNS]


@pytest.mark.parametrize(("name", "public"), [*TURNS, *slow(OTHERS)])
def test_the_level_is_that_of_all_depths_to_the_last_digit(name: str, public: bool) -> None:
    posterior = private(*TABLES[name], public=public).posterior
    laws, draws = posterior._marginals, posterior.sample(2000 if public else 200, random_state=0)
    depth = depths(laws, draws)
    for level in LEVELS:
        assert pointwise_level(laws, draws, level) == by_the_oracle(depth, level), level


def test_ranks_of_draws_are_not_its_depths() -> None:
    """Negative control: where draws stand for the laws, the level is another."""
    posterior = private(*TABLES["ten"]).posterior
    laws, draws = posterior._marginals, posterior.sample(500, random_state=0)
    ranks = (np.argsort(np.argsort(draws, axis=0), axis=0) + 0.5) / len(draws)
    depth = np.sort(np.abs(2 * ranks - 1).max(axis=1))
    assert abs(depth[int(0.95 * len(draws))] - pointwise_level(laws, draws, 0.95)) > 1e-4


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values of the Betas' distribution functions each call asks for."""
    found: list[int] = []
    betainc = special.betainc

    def spy(*arguments: Any) -> Any:
        result = betainc(*arguments)
        found.append(int(np.size(result)))
        return result

    monkeypatch.setattr(special, "betainc", spy)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many laws intervals are asked for each time."""
    found: list[int] = []
    interval = BetaMixtures.interval

    def spy(self: BetaMixtures, level: float) -> Any:
        found.append(self.m)
        return interval(self, level)

    monkeypatch.setattr(BetaMixtures, "interval", spy)
    return found


def taken(evaluated: list[int], answer: Callable[[], Any]) -> int:
    evaluated.clear()
    answer()
    return sum(evaluated)


@pytest.mark.parametrize("name", [pytest.param("three", marks=pytest.mark.slow), "ten"])
def test_it_takes_no_more_than_some_other_intervals(name: str, evaluated: list[int]) -> None:
    posterior = private(*TABLES[name]).posterior
    laws, draws = posterior._marginals, posterior.sample(20_000, random_state=0)
    one = taken(evaluated, lambda: laws.interval(0.99))
    for level, most in ((0.3, 60), (0.95, 15), (0.99, 12)):
        steps = taken(evaluated, lambda level=level: pointwise_level(laws, draws, level)) / one
        assert steps < most, level
        assert max(evaluated) <= 2 * laws.a.size  # memory: a value of each component for each end
    # Negative control: a hundredth of the draws, at all depths.
    assert taken(evaluated, lambda: depths(laws, draws[:200])) / one > 0.15


def test_of_many_categories_it_takes_hardly_more_than_one_other_interval(evaluated, asked):
    """Those that no draw misses beside another are left out."""
    counts = np.random.default_rng(0).integers(0, 60, 300).tolist()
    posterior = private(counts, 4.0, public=True).posterior
    laws, draws = posterior._marginals, posterior.sample(2000, random_state=0)
    one = taken(evaluated, lambda: laws.interval(0.9995))
    assert taken(evaluated, lambda: pointwise_level(laws, draws, 0.95)) < 3 * one
    asked.clear()
    pointwise_level(laws, draws, 0.95)
    assert len(asked) > 3  # negative control: all categories would be asked for so often
    assert asked[0] == 300 > 4 * asked[2]


def test_where_no_draw_misses_the_level_is_the_highest_that_may_be_needed() -> None:
    laws = BetaMixtures(np.ones(3), np.ones(3), np.ones(3), np.arange(4))
    assert pointwise_level(laws, np.full((9, 3), 0.5), 0.9) == 1 - (1 - 0.9) / 3
    # Where all miss together, that of each is that of all.
    assert pointwise_level(laws, np.full((9, 3), 1e-9), 0.9) == 0.9


@pytest.mark.parametrize("level", some_of([1e-6, 1e-3, 0.05, 0.3, 0.999, 1 - 1e-9], 3))
def test_no_level_takes_many_steps(level, asked, monkeypatch):
    posterior = private(TABLES["ten"][0], 2.0, public=True).posterior
    laws, draws = posterior._marginals, posterior.sample(4000, random_state=0)
    asked.clear()
    found = pointwise_level(laws, draws, level)
    assert level <= found < 1
    assert (steps := len(asked)) < 200
    if level == 0.05:  # negative control: without longer steps
        asked.clear()
        monkeypatch.setattr(beta_mixture, "_HARDLY", np.inf)
        assert pointwise_level(laws, draws, level) == found
        assert len(asked) > 1.5 * steps


def cells(*of: str) -> tuple[tuple[str, ...], ...]:
    return tuple((x, y) for x in of[0] for y in of[1])


@pytest.fixture(scope="module")
def every_class(short_chains: None) -> dict[str, NoiseAwarePosterior]:
    """A posterior of each class, by the class's name and what it is of."""
    drawn, mechanism = (9, 4, 7, 12, 1, 5), ob.LaplaceParameters(3.0, total="private")
    table = ob.Release(
        drawn, cells("ab", "uvw"), (1.0,) * 6, mechanism, guarantee(None), ("x", "y")
    )
    other = ob.Release(
        (11, 20, 4, 9, 3, 6), cells("uvw", "ps"), (1.0,) * 6, mechanism, guarantee(None), ("y", "z")
    )
    fine = private((9, 4, 7, 12), 3.0)
    of = {"mechanism": "laplace_parameters", "scale": 3.0}
    merge = {"ab": ["a", "b"], "c": ["c"], "d": ["d"]}
    coarse = ob.noisy_counts([15, 8, 14], ["a", "b", "c", "d"], merge=merge, **of)
    law = ob.KNormParameters(100.0)
    chained = ob.Release((600, 390, 10), ("a", "b", "c"), (1.0,) * 3, law, guarantee(1000))
    levels = ob.combine_tables({"fine": fine, "coarse": coarse})
    with pytest.warns(UserWarning, match="wide for the margins of x"):
        survey = ob.combine_tables({"first": table, "second": other})
    return {
        "NoiseAwarePosterior": fine.posterior,
        "NoiseAwarePosterior by chains": by_chains(chained),
        "NoiseAwarePosterior merged": table.posterior.marginal("y"),
        "NoiseAwarePosterior given": table.posterior.conditional("y", x="a"),
        "LearnedPosterior": ob.noise_aware_posterior(table, prior="learned"),
        "LevelPosterior": levels["fine"],
        "PooledPosterior": table.pooled("x", ess=20)["a"],
        "TablePosterior": survey.marginal("y"),
    }


def test_every_class_of_posteriors_is_asked(every_class: dict[str, NoiseAwarePosterior]) -> None:
    def below(one: type[Any]) -> Iterator[type[Any]]:
        yield one
        for each in one.__subclasses__():
            yield from below(each)

    assert {type(one) for one in every_class.values()} == set(below(NoiseAwarePosterior))
    for name, one in every_class.items():
        assert type(one).__name__ == name.split()[0]
        assert len(one.categories) > 2


#: Posteriors of the same class, of which one kind of interval is asked for every time.
ALIKE = tuple(f"NoiseAwarePosterior {of}" for of in ("by chains", "merged", "given"))


LEARNED = "LearnedPosterior", "LevelPosterior", "PooledPosterior", "TablePosterior"
ASKED = product(("NoiseAwarePosterior", *LEARNED), ("eti", "hdi", "simultaneous"))
ASKED = [*ASKED, *((name, "simultaneous") for name in ALIKE)]


@pytest.mark.parametrize(("name", "kind"), [*ASKED, *slow(product(ALIKE, ("eti", "hdi")))])
def test_intervals_are_found_once(name, kind, every_class, evaluated, monkeypatch):
    posterior, calls = every_class[name], []
    found = posteriors.pointwise_level
    monkeypatch.setattr(posteriors, "DRAWS", 500)  # how often they are drawn is what is asked

    def spy(*arguments: Any) -> float:
        calls.append(arguments)
        return found(*arguments)

    monkeypatch.setattr(posteriors, "pointwise_level", spy)
    assert taken(evaluated, lambda: posterior.interval(0.9, kind)) > 0
    assert len(calls) == (kind == "simultaneous")
    first = posterior.interval(0.9, kind)
    wanted = [end.copy() for end in first]
    for end in first:
        end[:] = -1.0  # what a caller does with an answer does not reach the next
    assert taken(evaluated, lambda: posterior.interval(0.9, kind)) == 0
    assert np.array_equal(posterior.interval(0.9, kind), wanted)
    assert taken(evaluated, lambda: posterior.interval(0.8, kind)) > 0  # negative control
    assert not np.array_equal(posterior.interval(0.8, kind), wanted)
    assert len(calls) == 2 * (kind == "simultaneous")


def test_sums_of_ordered_categories_are_found_once(evaluated: list[int]) -> None:
    posterior = private(*TABLES["five"]).posterior
    assert taken(evaluated, lambda: posterior.cumulative()["b"].interval()) > 0
    assert posterior.cumulative() is posterior.cumulative()


def test_the_deviation_of_a_difference_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = private(*TABLES["five"]).posterior
    difference, merged = posterior.difference("a", "b"), []
    engine = type(posterior._engine)
    before = engine.merged

    def spy(self: Any, groups: Any) -> Any:
        merged.append(groups)
        return before(self, groups)

    monkeypatch.setattr(engine, "merged", spy)
    assert len({difference.std() for _ in range(3)}) == 1
    difference.row()
    assert merged == [[[0, 1], [2, 3, 4]]]


def test_draws_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quantity = private(*TABLES["three"]).posterior.quantity(lambda p: p["a"] * p["b"])
    calls, sort = [], np.sort

    def spy(values: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(np.size(values))
        return sort(values, *arguments, **options)

    monkeypatch.setattr(quantities.np, "sort", spy)
    assert quantity.cdf(0.1) <= quantity.cdf(0.2)
    assert quantity.probability(0.15).value == 1 - quantity.cdf(0.15)
    assert len(calls) == 1


def test_probabilities_of_drawn_differences_hold_no_draws_for_every_value() -> None:
    rng = np.random.default_rng(0)
    drawn, values = rng.normal(size=(500, 20)), np.linspace(-2, 2, 300)[:, None]
    tracemalloc.start()
    try:
        found = DrawnDifferences(drawn).cdf(values)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 300 * 500 * 20 / 4  # a byte for each value and draw is the negative control
    assert np.array_equal(found, (drawn <= values[:, None]).mean(axis=1))
    assert DrawnDifferences(drawn).cdf(np.array([0.0])).shape == (20,)
    assert DrawnDifferences(drawn).cdf(np.empty((0, 20))).shape == (0, 20)
