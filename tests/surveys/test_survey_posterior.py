"""The posterior of a survey as its users see it."""

import itertools
import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.joint_posterior import survey_posterior
from opendp_bayes.surveys.survey_tables import (
    consistent_draws,
    survey_posterior as posterior_of_survey,
)
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten

LABELS: dict[str, tuple[Any, ...]] = {
    "vote": ("left", "right", "none"),
    "age": (True, False),
    "region": (1, 2, 3),
}
SIZE = 300
NOISE, OPEN = ob.GaussianParameters(4.0), ob.LaplaceParameters(3.0, total="private")


@lru_cache
def records() -> pl.DataFrame:
    rng = np.random.default_rng(2)
    age = rng.random(SIZE) < 0.4
    vote = (age + rng.integers(2, size=SIZE)) % 3
    region = 1 + (age + (rng.random(SIZE) < 0.3)) % 3
    return pl.DataFrame({"vote": np.array(LABELS["vote"])[vote], "age": age, "region": region})


def release(*variables: str, size: int | None = SIZE, **labels: Any) -> Any:
    """A release of a table, with other labels of some variables."""
    own = [(LABELS | labels)[v] for v in variables]
    rows = records().select(variables).rows()
    cells = list(itertools.product(*own))
    noise = NOISE.scale if size else OPEN.scale
    rng = np.random.default_rng(len(cells))
    drawn = [rows.count(cell) + round(noise * rng.normal()) for cell in cells]
    mechanism = NOISE if size else OPEN
    if len(variables) == 1:
        cells = [cell[0] for cell in cells]
    axes = variables if len(variables) > 1 else ()
    ones = (1.0,) * len(cells)
    return ob.Release(tuple(drawn), tuple(cells), ones, mechanism, guarantee(size), axes)


def tables(size: int | None = SIZE) -> dict[str, Any]:
    return {
        "a": release("age", "vote", size=size),
        "b": release("region", "age", size=size, age=(False, True)),
        "vote": release("vote", size=size),
    }


def combined(estimates: Any, variances: Any, kind: Any = "predictive") -> Any:
    return ob.combine_estimates(estimates, variances, kind=kind)


@lru_cache
def posterior(size: int | None = SIZE) -> posterior_of_survey.SurveyPosterior:
    return ob.combine_tables(tables(size))


def test_says_what_it_is_of() -> None:
    found = posterior()
    assert found.variables == ("age", "vote", "region")
    assert found.categories == {name: LABELS[name] for name in found.variables}
    assert found.tables == (("age", "vote"), ("age", "region"), ("vote",))
    assert set(found.cliques) == {("age", "vote"), ("age", "region")}
    assert found.unsettled == ()
    assert min(found.ess.values()) > 300
    assert max(found.r_hat.values()) < 1.1
    assert found.r_hat.keys() == {("region",), ("age",), *found.tables}
    assert posterior(None).r_hat.keys() - found.r_hat.keys() == {()}
    assert repr(found).startswith("SurveyPosterior(age × vote, age × region; by Markov chains,")


@pytest.mark.parametrize("size", [SIZE, None])
def test_answers_agree_and_find_the_truth(size: int | None) -> None:
    found = posterior(size)
    whole = found.marginal("vote", "age", "region")
    assert not whole.measured
    assert whole.axes == ("vote", "age", "region")
    assert whole.categories[:3] == (("left", True, 1), ("left", True, 2), ("left", True, 3))
    cube = whole.mean().reshape(3, 2, 3)
    for names, sums in (
        (("age",), cube.sum(axis=(0, 2))),
        (("region",), cube.sum(axis=(0, 1))),
        (("vote", "age"), cube.sum(axis=2)),
        (("age", "region"), cube.sum(axis=0)),
    ):
        mean = found.marginal(*names).mean().reshape(sums.shape)
        np.testing.assert_allclose(mean, sums, atol=1e-8)
    # An interaction that was fitted to one draw changes those beside it by the same ratio.
    pair = found.marginal("region", "vote")
    far = abs(pair.mean().reshape(3, 3) - cube.sum(axis=1).T)
    assert np.all(far < 0.05 * pair.std().reshape(3, 3))
    assert found.marginal("age", "vote").measured
    for names in (("vote",), ("age",), ("region",), ("age", "vote")):
        rows = records().select(names).rows()
        truth = [rows.count(x) for x in itertools.product(*(LABELS[name] for name in names))]
        counts = found.marginal(*names).counts
        # Five standard deviations and one record: of ten cells, less than 1e-5 are beyond.
        assert np.all(np.abs(counts.mean() - truth) < 5 * counts.std() + 1)
        assert (
            counts.sample(9, random_state=1).sum(axis=1).tolist()
            == found.records.sample(9, 1).tolist()
        )
    assert (found.records.std() == 0) == (size is not None)
    assert abs(found.records.mean() - SIZE) < 5 * found.records.std() + 1e-9


def test_surveys_are_independent_and_conditionals_are_ratios() -> None:
    (assumed,) = posterior().independences
    assert ({*assumed[:2]}, assumed[2]) == ({("vote",), ("region",)}, ("age",))
    table, other = posterior().marginal("vote"), posterior(None).marginal("vote")
    compared = table.compare(other)
    means, stds = ([getattr(one, of)() for one in compared.values()] for of in ("mean", "std"))
    np.testing.assert_allclose(means, table.mean() - other.mean(), atol=2e-3)
    np.testing.assert_allclose(stds, np.hypot(table.std(), other.std()), rtol=0.1)
    same = table.compare(table.merged({}))  # drawn together, so that nothing differs
    assert max(one.std() for one in same.values()) < 1e-12
    with pytest.raises(ValueError, match=r"other: has .* \(True, False\), not"):
        table.compare(posterior().marginal("age"))
    found = posterior()
    pair = found.marginal("age", "vote").sample(50, random_state=3)[:, :3]
    given = found.conditional("vote", age=True)
    np.testing.assert_allclose(
        given.sample(50, random_state=3), pair / pair.sum(axis=1, keepdims=True)
    )
    assert (given.categories, given.measured) == (LABELS["vote"], True)
    assert not found.conditional("vote", age=True, region=2).measured
    assert found.conditional("vote", "region", age=False).mean().sum() == pytest.approx(1)
    # Of several that are given, in either order, each has its own value.
    cube = found.marginal("age", "region", "vote").sample(50, random_state=3).reshape(50, 2, 3, 3)
    among = cube[:, 1, 0] / cube[:, 1, 0].sum(axis=1, keepdims=True)
    last, first = LABELS["age"][1], LABELS["region"][0]
    for order in ({"age": last, "region": first}, {"region": first, "age": last}):
        drawn = found.conditional("vote", **order).sample(50, random_state=3)
        np.testing.assert_allclose(drawn, among)


def test_numbers_of_draws_and_a_concentration_that_was_given() -> None:
    table = posterior().marginal("vote")
    rows, effective = len(table._engine.rows), table.diagnostics.ess.min()
    all_of_them, some = (table.quantity(lambda q: q["left"], draws=draws) for draws in (rows, 100))
    assert all_of_them.draws == pytest.approx(min(effective, rows))
    assert 98 < some.draws <= 100
    assert table.quantity(lambda q: q["left"]).draws == all_of_them.draws
    assert table.quantity(lambda q: q["left"], draws=3 * rows).draws == all_of_them.draws
    found = survey_posterior({"vote": release("vote")}, concentration=2, ess=20)
    concentration = found.marginal("vote").learned["concentration"]
    assert (concentration.mean(), concentration.std()) == (2, 0)


def test_populations_and_new_records_are_those_of_a_draw() -> None:
    found = posterior(None)
    scopes = zip(found.cliques, found._model.tree.cliques, strict=True)
    cliques = {names: found._draws.rows(clique) for names, clique in scopes}
    for frame in found.synthetic(3, random_state=5):
        vote = pl.Enum(LABELS["vote"])
        assert dict(frame.schema) == {"age": pl.Boolean, "vote": vote, "region": pl.Int64}
        agrees = np.ones(found._draws.size.size, dtype=bool)
        for names, drawn in cliques.items():
            rows = frame.select(names).rows()
            cells = itertools.product(*(LABELS[name] for name in names))
            agrees &= np.all(drawn == [rows.count(cell) for cell in cells], axis=1)
        assert agrees.any()
    assert found.synthetic(1, random_state=4)[0].equals(found.synthetic(1, random_state=4)[0])
    found, number = posterior(), 200_000
    frame = found.synthetic(1, "predictive", records=number, random_state=1)[0]
    row = found._copies(1, "predictive", number, 1)[0][0]
    theta = found.marginal("vote", "region", "age")._engine.rows[row]
    rows = frame.group_by("vote", "region", "age").len()
    counts = {row[:3]: row[3] for row in rows.rows()}
    cells = itertools.product(*(LABELS[name] for name in ("vote", "region", "age")))
    seen = np.array([counts.get(cell, 0) for cell in cells])
    # Six standard deviations of a binomial, 18 cells: 4e-8.
    assert np.all(np.abs(seen - number * theta) < 6 * np.sqrt(number * theta) + 3)
    assert len(found.synthetic(1, "predictive", random_state=1)[0]) == SIZE


@pytest.mark.parametrize("kind", get_args(posterior_of_survey.Kind))
def test_no_two_copies_are_of_one_draw(kind: Any) -> None:
    """Of new records there are as many as in that draw where their number is private."""
    found = posterior(None)
    every = found._draws.size.reshape(-1)
    rows, numbers, _ = zip(*found._copies(every.size, kind, None, 1), strict=True)
    assert sorted(rows) == list(range(every.size)) != list(rows)
    assert np.ptp(every) > 0
    assert list(numbers) == [int(every[row]) if kind == "predictive" else None for row in rows]


def test_writes_parquet_and_csv_and_replaces_nothing(tmp_path: Path) -> None:
    paths = posterior().write_synthetic(tmp_path / "new", 2, random_state=9)
    assert [path.name for path in paths] == ["population-1.parquet", "population-2.parquet"]
    for path, frame in zip(paths, posterior().synthetic(2, random_state=9), strict=True):
        assert pl.read_parquet(path).equals(frame)
    of: Any = {"kind": "predictive", "format": "csv"}
    (path,) = posterior().write_synthetic(tmp_path, 1, records=7, random_state=9, **of)
    assert path.name == "predictive-1.csv"
    assert pl.read_csv(path).columns == ["age", "vote", "region"]
    with pytest.raises(FileExistsError, match=r"folder=.*: has predictive-1\.csv already; empty"):
        posterior().write_synthetic(tmp_path, 1, **of)


def test_a_survey_has_one_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    found = ob.Survey(tuple(tables()), tuple(tables().values())).posterior
    right: posterior_of_survey.SurveyPosterior = ob.combine_tables(tables())
    assert found.cliques == right.cliques
    np.testing.assert_array_equal(found.marginal("vote").mean(), right.marginal("vote").mean())
    grouped = GroupedRelease(
        ("n", None), ((30, 20), (30, 20)), ("yes", "no"), (1.0, 1.0), OPEN, guarantee(None)
    )
    with pytest.raises(ValueError, match=r"releases\['g'\]: is of groups"):
        _ = ob.Survey(("g",), (grouped,)).posterior


def test_warns_where_chains_have_not_met(monkeypatch: Any) -> None:
    monkeypatch.setattr(consistent_draws, "_FIRST_RUN", 8)
    monkeypatch.setattr(consistent_draws, "_DOUBLINGS", 0)
    with pytest.warns(UserWarning, match=r"not settled for .*age × vote"):
        survey_posterior({"a": release("age", "vote")})


def test_chains_go_on_until_measured_tables_have_settled(monkeypatch: Any) -> None:
    def sweeps() -> int:
        return survey_posterior({"a": release("age", "vote")}, ess=2)._draws.sweeps

    monkeypatch.setattr(consistent_draws, "_FIRST_RUN", 32)
    enough = sweeps()
    monkeypatch.setattr(consistent_draws, "SETTLED_EFFECTIVE", 1e9)
    monkeypatch.setattr(consistent_draws, "_DOUBLINGS", 3)
    assert sweeps() == 256 > enough


WIDE: Any = {f"w{at}": tuple(range(50)) for at in range(3)}


def wide(*variables: str) -> Any:
    cells = tuple(itertools.product(*(WIDE[v] for v in variables)))
    drawn = tuple(range(len(cells)))
    return ob.Release(drawn, cells, (1.0,) * len(cells), OPEN, guarantee(None), variables)


GROUP = GroupedRelease(("n",), ((3, 2),), ("yes", "no"), (1.0, 1.0), NOISE, guarantee(9), rest=4)[
    "n"
]
EXPONENTIAL = ob.Release(
    (3, 5), ("x", "y"), (1.0, 1.0), ob.mechanisms.HellingerExponential(0.5), guarantee(8)
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": wide("w0", "w1"), "b": wide("w1", "w2")}, "a table of 2500 cells"),
        ({"x": release("vote"), "y": release("age", size=None)}, None),
        ({"x": release("vote"), "y": replace(release("age"), guarantee=guarantee(7))}, "300, .* 7"),
        ({"vote": release("vote"), "a": release("age", "vote", vote=("left", "right"))},
         r"tables\['a'\]: .*'right'\] of 'vote', another"),
        ({"vote": release("vote"), "again": release("vote")}, "is the same release as tables"),
        (
            {"x": replace(release("vote"), guarantee=guarantee(SIZE, truncated=True))},
            "rows that were",
        ),
        ({"x": GROUP}, r"tables\['x'\]: is one group"),
        ({"x": EXPONENTIAL}, "'hellinger_exponential'; needs noise on the counts"),
        ({"x": ob.Release((3, 4, 5), (("a", 1), ("a", 2), ("b", 1)), (1.0,) * 3, OPEN,
                          guarantee(None), ("u", "v"))}, "3 cells of 4 combinations"),
    ],
)  # fmt: skip
def test_refuses_what_does_not_fit(given: Any, message: str | None) -> None:
    if message is None:  # the public number holds for all
        assert survey_posterior(given, ess=20).records.std() == 0
        return
    with pytest.raises(ValueError, match=message):
        survey_posterior(given)


def test_tables_to_leave_out_are_named_and_draws_that_agree_are_looks() -> None:
    labels: Any = {f"w{at}": tuple(range(12)) for at in range(4)}
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]

    def table(one: int, other: int) -> Any:
        axes = (f"w{one}", f"w{other}")
        cells = tuple(itertools.product(*(labels[v] for v in axes)))
        drawn = tuple(range(one, one + len(cells)))
        return ob.Release(drawn, cells, (1.0,) * 144, OPEN, guarantee(None), axes)

    with pytest.raises(ValueError, match=r"20736 cells.*leave out 'w01'"):
        survey_posterior({f"w{a}{b}": table(a, b) for a, b in pairs})
    both = {"vote": release("vote"), "again": release("vote")}
    renamed = {"vote": both["vote"], "table": release("age", "vote")}
    with pytest.raises(ValueError, match="draws_may_agree=True"):
        ob.combine_tables(renamed | {"copy": renamed["table"]})
    found = ob.combine_tables(renamed | {"copy": renamed["table"]}, draws_may_agree=True)
    alone = ob.combine_tables(renamed)
    ratio = found.marginal("age", "vote").counts.std() / alone.marginal("age", "vote").counts.std()
    assert np.all(ratio < 0.95)  # about 0.71, with 5 % of Monte Carlo error


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: p.marginal(), ValueError, r"variables=\[\]: .*some of the"),
        (lambda p: p.marginal("vote", "vote"), ValueError, "each once: 'age', 'vote', 'region'"),
        (lambda p: p.marginal("income"), ValueError, r"variables=\['income'\]: must be some"),
        (lambda p: p.conditional("vote"), ValueError, r"given={}: .*values of other"),
        (lambda p: p.conditional("vote", vote="left"), ValueError, "of other variables than"),
        (lambda p: p.conditional("vote", age=1), ValueError, "age=1: is not a value"),
        (lambda p: p.marginal("vote").interval(1.5), ValueError, "level=1.5: must be between"),
        (lambda p: p.marginal("vote").difference("left", "up"), ValueError, "'up': is not a c"),
        (lambda p: p.marginal("vote").quantity(lambda q: 1.0), ValueError, "function: returned"),
        (lambda p: p.marginal("vote").quantity(lambda q: 1.0, of="x"), ValueError, "of='x'"),
        (lambda p: p.synthetic(0), ValueError, "copies=0: must be"),
        (lambda p: p.synthetic(10**7), ValueError, "copies=10000000: must be at most"),
        (lambda p: p.synthetic(kind="sample"), ValueError, "kind='sample': must be"),
        (lambda p: p.write_synthetic("x", format="sav"), ValueError, "format='sav': must be"),
        (lambda p: p.synthetic(records=5), ValueError, "records=5: must be None"),
        (lambda p: survey_posterior({}), TypeError, r"mapping from names .*at least"),
        (lambda p: survey_posterior({"x": 3}), TypeError, r"tables\['x'\]: must be a Release"),
        (lambda p: survey_posterior(tables(), concentration=0), ValueError, "concentration=0"),
        (lambda p: survey_posterior(tables(), ess=0), ValueError, "ess=0"),
        (lambda p: ob.combine_tables(tables(), draws_may_agree=3), TypeError, "draws_m"),
        (lambda p: combined([1.0], [1.0]), ValueError, r"estimates, .* have the shapes \(1,\)"),
        (lambda p: combined([1.0, 2.0], [1.0]), ValueError, r"and \(1,\); must be the same"),
        (lambda p: combined([1.0, 2.0], [1.0, -1.0]), ValueError, "variances: must be at least 0"),
        (lambda p: combined([1.0, np.nan], [1.0, 1.0]), ValueError, "and the estimates finite"),
        (lambda p: combined([1.0, 2.0], [1.0, 1.0], "both"), ValueError, "kind='both': must be"),
        (lambda p: p.marginal("age", "vote").marginal("region"), ValueError, "must be some of"),
        (lambda p: p.marginal("age", "vote").conditional("vote", region=2), ValueError, "be some"),
        (lambda p: p.marginal("age", "vote").conditional(age=3), ValueError, "age=3: is not a"),
        (lambda p: p.marginal("age", "vote").merged({"x": ((True, "left"), (True, "right"))})
         .marginal("age"), ValueError, "needs the post"),
        (lambda p: p.marginal("vote", "region").records, ValueError, "no clique of the"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(posterior())


def with_noise(scale: float, **tables: tuple[Any, ...]) -> Any:
    """A posterior of tables of 300 records, each with its own axes, with Gaussian noise."""
    releases = {}
    for name, axes in tables.items():
        one = release(*axes)
        releases[name] = replace(one, mechanism=ob.GaussianParameters(scale))
    return releases


def test_margins_under_wide_noise_are_named() -> None:
    """A margin of three levels has the noise of two cells each, 300 records and so 100 a level:
    the limit of 20 is passed between scales of 14 and 15. That of two levels, of three cells each,
    has 150 a level, and passes it between 17 and 18. A table more tells of both.
    """
    pair: Any = ("age", "vote")
    widths = (14.0, ()), (15.0, ("vote",)), (17.0, ("vote",)), (18.0, ("age", "vote"))
    for scale, narrow in widths:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = survey_posterior(with_noise(scale, pair=pair), ess=20)
        assert found.undercovered == narrow
        said = [str(one.message) for one in caught if "noise is wide" in str(one.message)]
        assert len(said) == bool(narrow)
        if narrow:
            assert f"margins of {' and '.join(narrow)}. In real surveys, only 87 %" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = survey_posterior(with_noise(18.0, pair=pair, vote=("vote",)), ess=20)
        both = with_noise(18.0, pair=pair, again=pair)
        twice = survey_posterior(both, ess=20, draws_may_agree=True)
    assert more.undercovered == ("age",)
    assert twice.undercovered == ()


@pytest.mark.parametrize("name", ["SETTLED_R_HAT", "SETTLED_EFFECTIVE"])
def test_either_measure_says_that_chains_have_not_settled(name: str, monkeypatch: Any) -> None:
    posterior = survey_posterior({"a": release("age", "vote")}, ess=20)
    monkeypatch.setattr(posterior_of_survey, "SETTLED_R_HAT", 1e9)
    monkeypatch.setattr(posterior_of_survey, "SETTLED_EFFECTIVE", 0)
    assert posterior.unsettled == ()
    monkeypatch.setattr(posterior_of_survey, name, {"R_HAT": 0.5}.get(name[8:], 1e9))
    assert posterior.unsettled
