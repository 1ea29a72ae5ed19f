"""Noisy counts that other programs drew: their laws, what a release of them says, refusals."""

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.contexts import plain_context
from tests.helpers.sweeps import some_of

dp.enable_features("contrib", "honest-but-curious")

LABELS = ("low", "middle", "high")
AGES = ["18-29", "30-44", "45-64", "65 or more"]
ZEROS = 5000
#: How the noise that OpenDP draws is named.
NOISES: dict[str, Any] = {
    "discrete_laplace": {"mechanism": "laplace_parameters"},
    "discrete_gaussian": {"mechanism": "gaussian_parameters"},
    "laplace": {"mechanism": "laplace_parameters", "noise": "floored"},
    "gaussian": {"mechanism": "gaussian_parameters", "noise": "rounded"},
}


def drawn_by_opendp(noise: str, scale: float, number: int = ZEROS) -> Any:
    """OpenDP's own noise on counts of 0."""
    whole = noise.startswith("discrete")
    metric = (dp.l1_distance if "laplace" in noise else dp.l2_distance)(
        T=dp.i32 if whole else dp.f64
    )
    atoms = dp.atom_domain(T=dp.i32) if whole else dp.atom_domain(T=dp.f64, nan=False)
    then = dp.m.then_laplace if "laplace" in noise else dp.m.then_gaussian
    return ((dp.vector_domain(atoms), metric) >> then(scale))([0 if whole else 0.0] * number)


@pytest.mark.parametrize(("noise", "scale"), some_of(itertools.product(NOISES, [1.0, 3.5]), 3))
def test_the_law_is_that_of_what_opendp_draws(noise: str, scale: float) -> None:
    """A chi-squared test, false alarms with 1e-6; also that the scale has OpenDP's unit."""
    drawn = drawn_by_opendp(noise, scale)
    release = ob.noisy_counts(drawn, range(ZEROS), **NOISES[noise], scale=scale)
    law = release.mechanism.law(None, np.ones(2)).noise
    kind = {"discrete_laplace": DiscreteLaplace, "laplace": FlooredLaplace}
    assert type(law) is kind.get(noise, DiscreteGaussian)
    for factor, fits in ((1.0, True), (math.sqrt(2), False)):
        law = type(law)(law.scale * factor)
        values = np.arange(-40, 41)
        expected = ZEROS * np.exp(law.log_mass(values))
        seen = expected > 20
        found = np.bincount(np.clip(np.array(release.noisy_counts) + 40, 0, 80), minlength=81)
        observed = np.append(found[seen], ZEROS - found[seen].sum())
        wanted = np.append(expected[seen], ZEROS - expected[seen].sum())
        p = stats.chisquare(observed, wanted * ZEROS / wanted.sum()).pvalue
        assert (p > 1e-6) == fits


def test_noise_on_floats_of_every_count() -> None:
    """The floor of the count and the noise: over all data sets, of Laplace functions."""
    drawn = np.array([3.7, -0.2, 2.4])
    sets = np.array([row for row in itertools.product(range(9), repeat=3) if sum(row) == 8])
    low = np.floor(drawn) - sets
    law = stats.laplace(scale=1.5)
    weights = np.prod(law.cdf(low + 1) - law.cdf(low), axis=1)
    weights *= stats.dirichlet_multinomial.pmf(sets, np.ones(3), 8)
    expected = weights @ (sets + 1) / weights.sum() / 11
    release = ob.noisy_counts(drawn, LABELS, **NOISES["laplace"], scale=1.5, size=8)
    assert release.posterior.mean() == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_intervals_of_counts_hold_what_was_counted() -> None:
    """Of 400 releases of four counts; fewer than 92 % with probability below 1e-6."""
    rng, inside = np.random.default_rng(5), []
    for _ in range(400):
        true = rng.multinomial(300, rng.dirichlet(np.ones(4)))
        drawn = true + np.array(drawn_by_opendp("laplace", 2.0, 4))
        release = ob.noisy_counts(drawn, AGES, **NOISES["laplace"], scale=2.0, size=300)
        lower, upper = release.posterior.counts.interval(0.95)
        inside.append((lower <= true) & (true <= upper))
    assert np.mean(inside) > 0.92


# -- marginals of mbi ---------------------------------------------------------------------------
def datavector() -> None:
    """Stand in for mbi's query of all cells, by its name."""


@dataclass
class Measurement:
    """A `LinearMeasurement` of mbi, without mbi."""

    noisy_measurement: Any
    clique: tuple[str, ...]
    stddev: float
    query: Any = datavector


KEYS = {"a": ["x", "y"], "b": ["p", "q", None], "c": [1, 2]}
PAIR = Measurement(np.arange(6) - 1, ("a", "b"), 3.0)


@pytest.mark.parametrize("clique", [c for n in (1, 2, 3) for c in itertools.permutations(KEYS, n)])
def test_cells_of_a_marginal_are_in_the_order_of_its_columns(clique: tuple[str, ...]) -> None:
    """Whatever the order of the keys and of the alphabet is."""
    columns = {name: ["(null)" if x is None else x for x in KEYS[name]] for name in clique}
    cells = list(itertools.product(*columns.values()))
    drawn = np.arange(len(cells)) - 1
    (found,) = ob.noisy_tables(
        [Measurement(drawn, clique, 3.0)], keys=KEYS, mechanism="gaussian_parameters"
    ).values()
    assert found.noisy_counts == tuple(drawn.tolist())
    wanted = cells if len(clique) > 1 else [cell for (cell,) in cells]
    assert found.categories == tuple(wanted)
    assert found.axes == (clique if len(clique) > 1 else ())


def test_a_real_contingency_table() -> None:
    pytest.importorskip("mbi")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1500)
    b = (a + rng.integers(0, 2, 1500)) % 3
    frame = pl.LazyFrame({"a": ["xy"[i] for i in a], "b": ["pqr"[i] for i in b]})
    for loss, mechanism in (
        ({"rho": 0.05}, "gaussian_parameters"),
        ({"epsilon": 1.0}, "laplace_parameters"),
    ):
        context = plain_context(frame, loss=loss)
        fixed = dp.mbi.Fixed(queries=[dp.mbi.Count(("a", "b")), dp.mbi.Count(("b",))])
        query = context.query().contingency_table(
            keys={"a": ["x", "y"], "b": ["p", "q", "r"]}, algorithm=fixed
        )
        found = ob.noisy_tables(query.release(), mechanism=mechanism)
        assert list(found) == ["a × b", "b"]
        counts = ob.combine_tables(found).marginal("a", "b").counts
        expected = {
            ("x", "p"): ((a == 0) & (b == 0)).sum(),
            ("y", "p"): ((a == 1) & (b == 0)).sum(),
        }
        for cell, number in expected.items():
            lower, upper = counts[cell].interval(1 - 1e-5)
            assert lower - 5 <= number <= upper + 5


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"measured": []}, ValueError, "holds no marginal of a column"),
        ({"measured": [Measurement([1.0], (), 1.0)]}, ValueError, "holds no marginal of a column"),
        ({"keys": None}, TypeError, "keys=None: must be a mapping"),
        ({"keys": {"a": ["x", "y"]}}, ValueError, "keys: have no labels of 'b'"),
        ({"mechanism": "uniform"}, ValueError, "mechanism='uniform'"),
        ({"noise": "uniform"}, ValueError, r"noise='uniform': .*'discrete', 'rounded'"),
        ({"keys": {**KEYS, "b": ["p", "q"]}}, ValueError, r"has 6\s+numbers .* all 4 cells"),
        (
            {"measured": [Measurement(np.arange(6), ("a", "b"), 1.0, lambda factor: factor)]},
            ValueError,
            r"measured\[0\]: .*6 numbers",
        ),
    ],
)
def test_measurements_that_are_refused(change: Any, error: Any, message: str) -> None:
    given = {"measured": [PAIR], "keys": KEYS, "mechanism": "gaussian_parameters", **change}
    with pytest.raises(error, match=message):
        ob.noisy_tables(given.pop("measured"), **given)


GIVEN = {"counts": [4, -1, 6], "categories": LABELS, "scale": 2.0}
GIVEN["mechanism"] = "laplace_parameters"


LABELLED = dict.fromkeys((*LABELS, "other"), 1)
FRACTIONS = {"counts": [1.5, 2.0, 3.0], "mechanism": "gaussian_parameters"}
NARROW = {**NOISES["gaussian"], "counts": [1.5, 2.1, 3.0], "scale": 0.9}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"counts": [1, 2]}, ValueError, r"counts: has shape \(2,\); .*\(3,\)"),
        ({"counts": [1, 2, 3, 4]}, ValueError, "null_category=False"),
        ({"counts": [1, 2, np.nan]}, ValueError, r"be finite, .*at most 2\^53"),
        ({"counts": [1, 2, 1e300]}, ValueError, r"be finite, .*at most 2\^53"),
        ({"counts": ["a", "b", "c"]}, TypeError, "counts"),
        ({"counts": {"low": 1, "high": 2}}, ValueError, "is absent was left out"),
        ({"counts": LABELLED}, ValueError, "of the 3 categories and"),
        ({"counts": [1.5, 2.0, 3.0]}, ValueError, "have fractions, .* noise='floored' on floats"),
        (FRACTIONS, ValueError, r"have fractions, .*'discrete' .*noise='rounded'"),
        ({"mechanism": "knorm_parameters"}, ValueError, r"='knorm_parameters': .*'gaussian_param"),
        (NOISES["laplace"], ValueError, "are all whole, .* be whole of noise='discrete'"),
        (NOISES["gaussian"], ValueError, "are all whole, .* be whole of noise='discrete'"),
        ({"noise": "rounded"}, ValueError, r"noise='rounded': .*'discrete', 'floored'"),
        (NARROW, ValueError, r"scale=0.9: .*at least 1 for noise='rounded'"),
        ({"noise": "geometric"}, ValueError, "noise='geometric'"),
        ({"scale": 0.0}, ValueError, "scale=0.0"),
        ({"size": 0}, ValueError, "size=0"),
        ({"prior": "auto"}, ValueError, "prior='auto'"),
        ({"prior": [1.0, 1.0]}, ValueError, "prior"),
        ({"categories": "abc"}, TypeError, "categories='abc': must be a list"),
        ({"categories": 3}, TypeError, "categories=3: must be a list"),
        ({"categories": ["a", "a", "b"]}, ValueError, "at least 2 different labels"),
        ({"categories": [0.5, "a", "b"]}, ValueError, "different labels, each a str"),
        ({"categories": {"x": ["a"]}}, ValueError, r"x=\['a'\]: must be at least 2"),
    ],
)
def test_counts_that_are_refused(change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ob.noisy_counts(**{**GIVEN, **change})


def test_labels_of_numpy_are_plain() -> None:
    made = ob.noisy_counts(**{**GIVEN, "categories": np.array([3, 1, 2])})
    assert [type(label) for label in made.categories] == [int, int, int]


def test_labels_of_pandas_go_before_the_order() -> None:
    """A Series goes by its index, a stacked frame by both; twice the same label is refused."""
    series = pd.Series([4, -1, 6], index=["high", "low", "middle"])
    assert ob.noisy_counts(**{**GIVEN, "counts": series}).noisy_counts == (-1, 6, 4)
    table = pd.DataFrame([[1, 2], [3, 4]], index=["b", "a"], columns=["y", "x"])
    cells = {"categories": {"r": ["a", "b"], "c": ["x", "y"]}}
    made = ob.noisy_counts(**{**GIVEN, **cells, "counts": table.stack()})
    assert made.noisy_counts == (4, 3, 2, 1)
    for counts in (table, pd.Series([1, 2, 3, 4], index=[*"aabb"])):
        with pytest.raises(ValueError, match=r"for nothing else. .*give counts.stack\(\)"):
            ob.noisy_counts(**{**GIVEN, **cells, "counts": counts})


# --- The noisy total as a level
def listed(drawn: Any, scale: float, total: int, scale_of_total: float, a: float) -> Any:
    """Means of two counts and their sum, from a list of all below 60."""
    counts, gamma = np.array(list(itertools.product(range(60), repeat=2))), special.gammaln
    n = counts.sum(axis=1)
    log_p = -np.abs(counts - drawn).sum(axis=1) / scale - np.abs(total - n) / scale_of_total
    log_p += (gamma(a + counts) - gamma(counts + 1)).sum(axis=1)
    log_p += gamma(n + 1) - gamma(2 * a + n)
    p = special.softmax(log_p)
    return [*(p @ counts), p @ n]


@pytest.mark.parametrize(("drawn", "total"), [((3, -1), 9), ((5, 1), 2), ((0, 7), 12)])
def test_a_noisy_total_is_a_level(drawn: tuple[int, ...], total: int) -> None:
    """Against a list of all counts; negative control: a total of another number."""
    of: Any = {"categories": LABELS[:2], "mechanism": "laplace_parameters"}
    fine = ob.noisy_counts(list(drawn), scale=1.5, **of)
    whole = ob.noisy_counts([total], scale=0.7, merge={"all": LABELS[:2]}, **of)
    assert ob.Release.from_json(whole.to_json()) == whole
    posterior = ob.combine_tables({"fine": fine, "total": whole})
    means = [*posterior["fine"].counts.mean(), *posterior["total"].counts.mean()]
    a = posterior.concentrations["fine"]
    assert means == pytest.approx(listed(np.array(drawn), 1.5, total, 0.7, a), abs=1e-4)
    assert means != pytest.approx(listed(np.array(drawn), 1.5, total + 1, 0.7, a), abs=0.05)


def test_totals_alone_and_clamped_counts_are_noticed() -> None:
    """It prints, and says what it is good for."""
    of: Any = {"mechanism": "laplace_parameters", "scale": 0.7}
    whole = ob.noisy_counts([9], LABELS, merge={"all": LABELS}, **of)
    with pytest.raises(ValueError, match=r"combine_tables\(\{...\}\)"):
        _ = whole.posterior
    assert "combine it with the counts of its parts" in " ".join(str(whole).split())
    assert "Plug-in" not in str(whole)
    with pytest.raises(ValueError, match="at least 2 different labels"):
        ob.noisy_counts([9], ["all"], **of)
    labels, noise = tuple(range(40)), {"mechanism": "laplace_parameters", "scale": 5.0}
    drawn = np.array(drawn_by_opendp("discrete_laplace", 5.0, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ob.noisy_counts(drawn, labels, **noise)
        ob.noisy_counts(np.maximum(drawn, 0) + 9, labels, **noise)
    with pytest.warns(UserWarning, match=r"are 0 and none .*scale 5"):
        ob.noisy_counts(np.maximum(drawn, 0), labels, **noise)
