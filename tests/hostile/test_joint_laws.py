"""Draws at once are independent and of their law, at all doors; swapped axes would show."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.registry import BUILT_IN
from opendp_bayes.samplers.integers import (
    discrete_gaussians,
    discrete_laplaces,
    floored_laplaces,
    geometrics,
)
from opendp_bayes.samplers.uniform import random_words, uniform_below, weighted_places
from opendp_bayes.trusted import measurements
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)
from tests.helpers import joint_laws, oracles
from tests.helpers.contexts import checked_context
from tests.helpers.joint_laws import Drawn, faults, ranked
from tests.helpers.sweeps import slow, some_of

#: Labels of three columns of unequal numbers of values, and records of each of their cells.
X, Y, Z = ("p", "q"), ("k", "l", "m"), ("a", "b", "c", "d")
CELLS = {cell: 300 + 40 * ((7 * at) % 24) for at, cell in enumerate(product(X, Y, Z))}
ALL = ["".join(cell) for cell in CELLS]
PAIRS = [ALL[at : at + 2] for at in range(0, len(ALL), 2)]
COUNTED = {"x": X, "y": Y, "z": Z}
SCALE = 8.0
LAPLACE = ob.LaplaceParameters(SCALE, total="private")
FOUND = Discovery(LaplaceThreshold(SCALE, 120), DiscreteLaplace(SCALE))
#: By what is drawn for each part of an answer, the noise of its entries.
Noise = dict[str, Any]


@cache
def frame() -> pl.DataFrame:
    cells = list(CELLS)
    at = np.repeat(np.arange(len(cells)), list(CELLS.values()))
    columns = {
        name: pl.Series([cell[i] for cell in cells], dtype=pl.Enum(labels))
        for i, (name, labels) in enumerate(COUNTED.items())
    }
    every = pl.Series("all", ["".join(cell) for cell in cells], dtype=pl.Enum(ALL))
    return pl.DataFrame([every]).with_columns(**columns)[at]


def true_count(labels: Mapping[str, Any]) -> int:
    """Records that have these values in these columns, of `x`, `y`, `z` and `all`."""
    whole = [
        (dict(zip("xyz", cell, strict=True), all="".join(cell)), n) for cell, n in CELLS.items()
    ]
    return sum(n for of, n in whole if all(of[name] == value for name, value in labels.items()))


@cache
def query(**loss: float) -> Any:
    """Of a Context with more queries than are asked."""
    spent = {name: 400.0 * of for name, of in loss.items()}
    context = checked_context(frame().lazy(), loss=spent, parts=None)
    return lambda: context.query(**loss)


def noise_of(drawn: Any, columns: Any, categories: Any) -> list[int]:
    """What was drawn minus what is true, by the labels that an answer states."""
    names = [columns] if isinstance(columns, str) else columns
    labels = [label if isinstance(label, tuple) else (label,) for label in categories]
    true = [true_count(dict(zip(names, label, strict=True))) for label in labels]
    return [at - of for at, of in zip(drawn, true, strict=True)]


def asked(column: Any, mechanism: Any, **more: Any) -> Any:
    named = {"mechanism": mechanism, "nulls": ob.DROP, **more}
    return ob.posterior(query(epsilon=0.5)(), column, **named).release()


def of_one(mechanism: Any) -> Noise:
    release = asked("all", mechanism)
    return {"cells": noise_of(release.noisy_counts, "all", release.categories)}


def of_a_joint_table(mechanism: Any) -> Noise:
    release = asked(["y", "z", "x"], mechanism)
    noise = noise_of(release.noisy_counts, ["y", "z", "x"], release.categories)
    return {"cells": np.reshape(noise, (len(Y), len(Z), len(X)))}


def of_groups(mechanism: Any) -> Noise:
    noise = [
        noise_of(
            release.noisy_counts, ["z", "y", "x"], [(label, *group) for label in release.categories]
        )
        for group, release in asked("z", mechanism, by=["y", "x"]).items()
    ]
    return {"cells": np.reshape(noise, (len(Y), len(X), len(Z)))}


def of_a_survey(mechanism: Any) -> Noise:
    columns = {"yz": ["y", "z"], "zx": ["z", "x"], "y": ["y"]}
    how = {"mechanism": mechanism, "nulls": ob.DROP}
    questions = {name: {"column": of, **how} for name, of in columns.items()}
    survey = ob.survey(query(epsilon=2.0)(), questions).release()
    return {
        name: noise_of(release.noisy_counts, columns[name], release.categories)
        for name, release in survey.items()
    }


def of_levels(mechanism: Any) -> Noise:
    merges: Any = {"by 2": {"".join(pair): pair for pair in PAIRS}}
    questions = ob.levels("all", ALL, merges=merges, mechanism=mechanism, nulls=ob.DROP)
    survey = ob.survey(query(epsilon=2.0)(), questions).release()
    pairs = [[true_count({"all": one}) for one in pair] for pair in PAIRS]
    coarse = np.array(survey["by 2"].noisy_counts) - np.sum(pairs, axis=1)
    return {"all": noise_of(survey["all"].noisy_counts, "all", ALL), "by 2": coarse}


def of_discovery(_: Any) -> Noise:
    asked_for = query(epsilon=0.5, delta=1e-6)()
    shown = ob.discover(asked_for, "all", nulls=ob.DROP, mechanism=FOUND, always=ALL[5:9]).release()
    assert shown.k == len(ALL)
    noise = noise_of(shown.noisy_counts, "all", shown.categories)
    return {"cells": noise, "rest": [shown.noisy_rest]}


@cache
def chain(mechanism: Any) -> Any:
    domain = dp.domain_of(frame().lazy(), infer=True)
    counts = ob.t.make_categorical_counts(
        domain, dp.symmetric_distance(), column="all", nulls=ob.DROP
    )
    return (
        counts
        >> ob.t.then_dirichlet_multinomial(prior=1.0)
        >> ob.m.then_mechanism(dp.max_divergence(), mechanism)
    )


def of_a_chain(mechanism: Any) -> Noise:
    data = chain(mechanism)(frame().lazy())
    return {"cells": noise_of(data.noisy_counts, "all", data.categories)}


DOORS = {"one": of_one, "joint table": of_a_joint_table, "groups": of_groups}
DOORS |= {"survey": of_a_survey, "levels": of_levels, "discovery": of_discovery}
DOORS["chain"] = of_a_chain


def drawn_at(door: str, releases: int, mechanism: Any = LAPLACE) -> list[Drawn]:
    """What leaves by a door, so many times, beside the law that was asked for."""
    made = [DOORS[door](mechanism) for _ in range(releases)]
    law = oracles.noise_law(*OF_MECHANISM[mechanism])
    return [Drawn(np.array([noise[part] for noise in made]), law) for part in made[0]]


OF_MECHANISM = {
    LAPLACE: ("discrete", SCALE),
    ob.LaplaceParameters(SCALE, noise="floored", total="private"): ("floored", SCALE),
}


@pytest.mark.parametrize("door", DOORS)
def test_what_leaves_by_a_door_is_independent_noise_of_its_law(door: str) -> None:
    assert faults(drawn_at(door, 12)) == []


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", OF_MECHANISM, ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_many_releases_by_a_door_are_independent(door: str, mechanism: Any) -> None:
    if "discover" not in door or mechanism == LAPLACE:
        assert faults(drawn_at(door, 60, mechanism)) == []


# --- Mistakes, which have to be noticed
def half(noise: Any) -> Any:
    return noise // 2


def one_value(noise: Any) -> Any:
    return np.full_like(noise, noise[0])


def twice(noise: Any) -> Any:
    """The first part of a vector once more, as where two groups share theirs."""
    return np.resize(noise[: (len(noise) + 1) // 2], len(noise))


def turned(noise: Any) -> Any:
    """The second part is the first one with the other sign."""
    return np.concatenate([noise[: (len(noise) + 1) // 2], -noise[: len(noise) // 2]])


def plant(patch: pytest.MonkeyPatch, mistake: Callable[[Any], Any]) -> None:
    """Let all noise be drawn with a mistake."""

    def added(law: Any) -> Any:
        def draw(counts: Any, draws: int) -> Any:
            return counts + mistake(discrete_laplaces(Fraction(law.noise.scale), counts.size))[None]

        return draw

    def draws(self: Any, number: int) -> Any:
        return mistake(discrete_laplaces(Fraction(self.scale), number)) if number else np.array([])

    patch.setattr(measurements, "_added", added)
    patch.setattr(DiscreteLaplace, "draws", draws)
    chain.cache_clear()


@pytest.fixture
def _chains_anew() -> Iterator[None]:
    yield
    chain.cache_clear()


@pytest.mark.usefixtures("_chains_anew")
@pytest.mark.parametrize(
    ("door", "mistake"),
    [
        *(("groups", half), ("groups", turned), ("discovery", twice), ("chain", one_value)),
        *slow([("groups", one_value), ("groups", twice), ("discovery", one_value)]),
    ],
)
def test_notices_noise_that_is_not_independent(door, mistake, monkeypatch):
    plant(monkeypatch, mistake)
    assert faults(drawn_at(door, 20 if mistake is half else 10))


@pytest.mark.parametrize(
    ("door", "shape"),
    [("joint table", (3, 4, 2)), *slow([("groups", (3, 2, 4)), ("levels", (2, 12))])],
)
def test_notices_a_permuted_axis(door, shape, monkeypatch):
    added = measurements._added

    def permuted(law: Any) -> Any:
        draw = added(law)

        def of(counts: Any, draws: int) -> Any:
            if counts.size < 24:  # of a coarser level
                return draw(counts, draws)
            cells, rest = counts[:24].reshape(shape), counts[24:]
            return draw(np.concatenate([np.moveaxis(cells, 0, -1).ravel(), rest]), draws)

        return of

    monkeypatch.setattr(measurements, "_added", permuted)
    assert faults(drawn_at(door, 8))


def test_notices_two_tables_with_the_same_noise() -> None:
    """Negative control: also where their scales differ, as in a survey."""
    own = [discrete_laplaces(Fraction(8), 24) for _ in range(20)]
    laws = [oracles.noise_law("discrete", scale) for scale in (8.0, 24.0)]
    parts = [Drawn(np.array(own) * by, law) for by, law in zip((1, 3), laws, strict=True)]
    assert any("parts 0 and 1" in fault for fault in faults(parts))


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_notices_a_scale_that_is_off(factor: float) -> None:
    law = oracles.noise_law("discrete", SCALE)
    exact, off = (
        np.array([discrete_laplaces(Fraction(SCALE * by), 40) for _ in range(100)])
        for by in (1.0, factor)
    )
    assert faults([Drawn(exact, law)]) == []
    assert faults([Drawn(off, law)])


def test_a_false_alarm_is_as_rare_as_stated() -> None:
    """At a level of .05: at most 18 alarms in 100, but for a chance below 1e-6."""
    rng, law = np.random.default_rng(3), oracles.noise_law("discrete", 3.0)
    noise = DiscreteLaplace(3.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_laws, "FALSE_ALARM", 0.05)
        alarms = [
            bool(faults([Drawn(noise.simulate((12, 2, 7), rng), law)], seed)) for seed in range(100)
        ]
    assert sum(alarms) <= 18


# --- Mechanisms and samplers, several draws at a time
PRIOR = (1.0, 0.5, 2.0)
MECHANISMS: dict[str, Any] = {
    "gaussian_parameters": ob.GaussianParameters(1.5),
    "hellinger_exponential": ob.mechanisms.HellingerExponential(0.4),
    "knorm_parameters": ob.KNormParameters(1.2),
    "laplace_parameters": ob.LaplaceParameters(1.2),
    "permute_and_flip": ob.mechanisms.PermuteAndFlip(0.4),
    "smooth_hellinger_exponential": ob.mechanisms.SmoothHellingerExponential(0.4, gamma=1.0),
}


@pytest.mark.parametrize(
    ("kind", "measured"), some_of(product(BUILT_IN, [False, True]), len(BUILT_IN))
)
def test_draws_of_a_mechanism_at_once_are_independent(kind: Any, measured: bool) -> None:
    """What is released, by the probabilities of all candidates."""
    mechanism, counts = MECHANISMS[kind.name], np.array([4, 1, 2])
    sample = mechanism.sample
    if measured:
        sample = ob.m.measured_sampler(mechanism, size=7, prior=PRIOR)
    law = oracles.law_of(mechanism, tuple(counts.tolist()), PRIOR)
    rows = np.concatenate([sample(counts, PRIOR, 6) for _ in range(60)])
    places, of_places = ranked(map(tuple, rows.tolist()), law)
    assert faults([Drawn(places.reshape(60, 6), of_places)]) == []
    once = np.repeat(places[::6], 6).reshape(60, 6)
    assert faults([Drawn(once, of_places)])


NOISY = [
    (ob.GaussianParameters(5.0, total="private"), "gaussian"),
    (LAPLACE, "discrete"),
    (ob.LaplaceParameters(5.0, noise="floored", total="private"), "floored"),
]


@pytest.mark.parametrize(("mechanism", "kind"), NOISY, ids=str)
def test_noise_of_all_counts_and_draws_is_independent(mechanism: Any, kind: str) -> None:
    counts = np.array([500, 100, 900, 300])
    drawn = np.array([mechanism.draw(counts, np.ones(4), 6) for _ in range(20)]) - counts
    assert faults([Drawn(drawn, oracles.noise_law(kind, mechanism.scale))]) == []
    assert faults([Drawn(np.repeat(drawn[..., :1], 4, axis=-1), oracles.noise_law(kind, 5.0))])


def _geometric(rate: float) -> dict[int, float]:
    return {t: float(np.exp(-rate * t) * -np.expm1(-rate)) for t in range(int(40 / rate))}


OPTIMAL = OptimalThreshold(0.5, 1e-3)


def of_threshold(law: OptimalThreshold) -> dict[int, float]:
    """By its weights."""
    first, masses = law.masses
    return dict(enumerate(masses.tolist(), first))


_SIXTH = Fraction(1, 6)
OF_LAPLACE = oracles.noise_law("discrete", 6.0)
OF_GAUSSIAN = oracles.noise_law("gaussian", 6.0)
SIX = Fraction(6)
HUNDRED = dict.fromkeys(range(100), 0.01)
SAMPLERS: dict[str, tuple[Callable[[int], Any], Mapping[int, float]]] = {
    "geometrics": (lambda n: geometrics(_SIXTH, n), _geometric(1 / 6)),
    "discrete_laplaces": (lambda n: discrete_laplaces(SIX, n), OF_LAPLACE),
    "floored_laplaces": (lambda n: floored_laplaces(SIX, n), oracles.noise_law("floored", 6.0)),
    "discrete_gaussians": (lambda n: discrete_gaussians(SIX, n), OF_GAUSSIAN),
    "uniform_below": (lambda n: uniform_below(100, n), HUNDRED),
    "random_words": (
        lambda n: (random_words(n) >> np.uint64(56)).astype(np.int64),
        dict.fromkeys(range(256), 1 / 256),
    ),
    "weighted": (lambda n: weighted_places([1 << 62] * 4, 64, n), dict.fromkeys(range(4), 0.25)),
    "optimal_threshold": (OPTIMAL.draws, of_threshold(OPTIMAL)),
    "gaussian_threshold": (GaussianThreshold(6.0, 30).draws, OF_GAUSSIAN),
    "laplace_threshold": (LaplaceThreshold(6.0, 30).draws, OF_LAPLACE),
    "simulated": (
        lambda n: DiscreteLaplace(6.0).simulate((n,), np.random.default_rng()),
        OF_LAPLACE,
    ),
}


@pytest.mark.parametrize(("name", "size"), some_of(product(SAMPLERS, [8, 40]), len(SAMPLERS)))
def test_samples_at_once_are_independent(name: str, size: int) -> None:
    """Few and many samples, which are drawn in other ways."""
    sampler, law = SAMPLERS[name]
    drawn = np.array([sampler(size) for _ in range(1600 // size)]).astype(np.int64)
    assert faults([Drawn(drawn, law)]) == []
    assert faults([Drawn(np.sort(drawn, axis=1), law)])
    assert faults([Drawn(np.roll(np.repeat(drawn[:, ::2], 2, axis=1), 1, axis=1), law)])
