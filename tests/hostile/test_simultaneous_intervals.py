"""Simultaneous intervals have their level, and answers stay the same."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes.inference.answers import posterior as posteriors, quantities
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
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


#: Public and private totals take turns; the others are slow.
TURNS = [(name, at % 2 == 0) for at, name in enumerate(TABLES)]
OTHERS = [(name, not public) for name, public in TURNS]


@pytest.mark.parametrize(("name", "public"), [*TURNS, *slow(OTHERS)])
def test_the_level_is_that_of_all_depths(name: str, public: bool) -> None:
    """But for a bisection's last step, of which there are ten, and for steps of draws."""
    posterior = private(*TABLES[name], public=public).posterior
    laws, draws = posterior._basis.probabilities, posterior.sample(2000, random_state=0)
    depth = depths(laws, draws)
    for level in LEVELS:
        right = by_depths(depth, level, level)
        found = pointwise_level(laws, draws, level)
        assert (1 - found) / (1 - right) == pytest.approx(1, abs=0.02), level


def test_ranks_of_draws_are_not_its_depths() -> None:
    """Negative control: where draws stand for the laws, the level is another."""
    posterior = private(*TABLES["ten"]).posterior
    laws, draws = posterior._basis.probabilities, posterior.sample(500, random_state=0)
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


def taken(evaluated: list[int], answer: Callable[[], Any]) -> int:
    evaluated.clear()
    answer()
    return sum(evaluated)


def test_where_no_draw_misses_the_level_is_the_highest_that_may_be_needed() -> None:
    laws = BetaMixtures(np.ones(3), np.ones(3), np.ones(3), np.arange(4))
    assert pointwise_level(laws, np.full((9, 3), 0.5), 0.9) == 1 - (1 - 0.9) / 3
    # Where all miss together, that of each is that of all.
    assert pointwise_level(laws, np.full((9, 3), 1e-9), 0.9) == pytest.approx(0.9, abs=2e-4)


@pytest.mark.parametrize("level", some_of([1e-6, 1e-3, 0.05, 0.3, 0.999, 1 - 1e-9], 3))
def test_every_level_is_between_its_bounds(level):
    posterior = private(TABLES["ten"][0], 2.0, public=True).posterior
    found = pointwise_level(
        posterior._basis.probabilities, posterior.sample(4000, random_state=0), level
    )
    assert level <= found <= 1 - (1 - level) / 10 < 1


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
        "NoiseAwarePosterior learned": ob.noise_aware_posterior(table, prior="learned"),
        "LevelPosterior": levels["fine"],
        "NoiseAwarePosterior pooled": table.pooled("x", ess=20)["a"],
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


LEARNED = (
    "NoiseAwarePosterior learned",
    "LevelPosterior",
    "NoiseAwarePosterior pooled",
    "TablePosterior",
)
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
