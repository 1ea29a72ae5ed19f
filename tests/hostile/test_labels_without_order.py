"""Ordered answers leave out labels of nulls and unknown values, in every kind of result."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.learned.noised_table import margins_of, table_of
from opendp_bayes.inference.pooling.pooled_groups import groups_of_table
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes.surveys.survey_tables.noisy_tables import NoisyTables
from tests.helpers.contexts import checked_context
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten

AGES = ["18-29", "30-44", "45-64", "65+"]
_AGES = ["18-29"] * 100 + ["30-44"] * 100 + ["45-64"] * 200 + [None] * 300 + ["?"] * 50
PEOPLE = pl.LazyFrame({"age": _AGES, "sex": ["m", "f", "f"] * 250})
LEFT_OUT = ("missing", "other")
LABELS: dict[str, Any] = {"categories": AGES, "nulls": "missing", "unknown": "other"}
OF_TABLE: dict[str, Any] = {
    "categories": {"age": AGES, "sex": ["m", "f"]},
    "nulls": {"age": "missing", "sex": "m"},
    "unknown": {"age": "other", "sex": "m"},
}


def context() -> Any:
    return checked_context(PEOPLE, loss={"epsilon": 50.0}, parts=None)


def asked(column: Any, **given: Any) -> Any:
    return ob.posterior(context().query(epsilon=50.0), column, prior=1.0, **given).release()


def survey(**questions: Any) -> ob.Survey:
    return ob.survey(context().query(epsilon=50.0), questions).release()


@pytest.fixture(scope="module")
def release() -> Any:
    return asked("age", **LABELS)


def read_again(result: Any) -> Any:
    kind = ob.Survey if isinstance(result, ob.Survey) else ob.Release
    again = kind.from_json(result.to_json())
    assert again == result
    return again


def by_hand() -> Any:
    ages = dp.series_domain("age", dp.option_domain(dp.atom_domain(T=str)))
    space = dp.lazyframe_domain([ages]), dp.symmetric_distance()
    counts = ob.t.make_categorical_counts(*space, column="age", **LABELS)
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
    make = posterior >> ob.m.then_laplace_parameters(
        dp.max_divergence(), scale=0.1, total="private"
    )
    return make(PEOPLE.select("age"))


def levels() -> ob.Survey:
    half = {"young": AGES[:2], "old": AGES[2:], "missing": ["missing"], "other": ["other"]}
    of_ages = {"column": "age", **LABELS}
    return survey(age=of_ages, half={**of_ages, "merge": half})


@cache
def of_survey() -> Any:
    sex = {"column": "sex", "categories": ["m", "f"], "nulls": "m", "unknown": "m"}
    return read_again(survey(table={"column": ["sex", "age"], **OF_TABLE}, sex=sex)).posterior


#: Where one column of ages is asked for, each way to its posterior.
OF_ONE = {"categories": {"age": AGES}, "nulls": "missing", "unknown": "other"}


def in_a_table(*columns: str) -> Any:
    return asked([*columns], **OF_TABLE)


WAYS: dict[str, Callable[[], Any]] = {
    "one column": lambda: read_again(asked("age", **LABELS)).posterior,
    "a list of one": lambda: read_again(asked(["age"], **OF_ONE)).posterior,
    "by hand": lambda: read_again(by_hand()).posterior,
    "joint": lambda: read_again(in_a_table("sex", "age")).posterior.marginal("age"),
    "given": lambda: in_a_table("age", "sex").posterior.conditional("age", sex="f"),
    "twice": lambda: in_a_table("age", "sex").posterior.marginal("sex", "age").marginal("age"),
    "group": lambda: read_again(asked("age", by="sex", **OF_TABLE))["f"].posterior,
    "group of a table": lambda: in_a_table("sex", "age").by("sex")["f"].posterior,
    "pooled": lambda: asked("age", by="sex", **OF_TABLE).pooled(ess=20)["f"],
    "combined": lambda: ob.combine([asked("age", **LABELS) for _ in "ab"], draws_may_agree=True),
    "survey": lambda: of_survey().marginal("age"),
    "given of a survey": lambda: of_survey().conditional("age", sex="m"),
    "of a table of a survey": lambda: (
        of_survey().marginal("age", "sex").conditional("age", sex="f")
    ),
    "level": lambda: read_again(levels()).posterior["age"],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_leaves_them_out(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    posterior = WAYS[way]()
    ages = [(age,) for age in AGES] if way == "a list of one" else AGES
    left = [(label,) for label in LEFT_OUT] if way == "a list of one" else list(LEFT_OUT)
    assert list(posterior.unordered) == left
    found = posterior.quantile(0.6)
    assert list(found.categories) == ages
    assert (found.category, list(found.left_out)) == (ages[2], left)
    assert list(posterior.cumulative()) == ages[:-1]
    assert posterior.cumulative()[ages[1]].mean() == pytest.approx(0.5, abs=0.03)
    for shown in (found, posterior.quantiles([0.2, 0.5]), posterior.cumulative()):
        assert "Without the records of missing and other, in no order." in str(shown)
    median = posterior.quantile(0.5, edges=[18, 30, 45, 65, 90])
    assert median.value.mean() == pytest.approx(45, 0.1)
    with pytest.raises(ValueError, match=r"edges=.*must be 5 finite numbers"):
        posterior.quantile(0.5, edges=range(7))


def test_levels_merge_them_and_other_posteriors_and_json_keep_them(release: Any) -> None:
    half = levels().posterior["half"]
    assert half.unordered == LEFT_OUT
    assert half.quantile(0.4).categories == ("young", "old")
    parts = {"young": AGES[:2], "old": [*AGES[2:], *LEFT_OUT]}
    mixed: Any = survey(half={"column": "age", "merge": parts, **LABELS})["half"]
    assert mixed.unordered == ()  # part of it is in order
    assert mixed.posterior.quantile(0.5).category == "old"
    groups = asked("age", by="sex", **OF_TABLE)
    assert isinstance(groups, GroupedRelease)
    assert (groups.nulls, groups.unknown) == (("missing",), ("other",))
    assert read_again(groups)["m"].unordered == LEFT_OUT
    for name in ("nulls", "unknown"):
        text = groups.to_json().replace(f'"{name}":["', f'"{name}":["x","')
        with pytest.raises(ValueError, match=f"{name}=.*must be left out, or have a label"):
            ob.Release.from_json(text)
    posterior = release.posterior
    assert posterior.given(["65+", "missing", "18-29"]).unordered == ("missing",)
    merged = posterior.merged({"none": ["missing", "other"], "old": ["45-64", "65+"]})
    assert merged.unordered == ("none",)
    assert posterior.merged({"rest": ["65+", "other"]}).unordered == ("missing",)
    assert list(posterior.given(["18-29", "missing"]).categories) == ["18-29", "missing"]
    with pytest.raises(ValueError, match=r"categories=\['18-29'\]: .* at least 2"):
        posterior.given(["18-29", "missing"]).quantile(0.5)


def test_labels_that_are_listed_are_in_the_order_as_the_median_is() -> None:
    """What a user lists in the order is in it: nulls may stand for the least or the largest.
    Against the same draws without these labels, from which private counts hardly differ.
    """
    listed = asked("age", categories=[*AGES, "missing"], nulls="missing", unknown="65+")
    assert listed.unordered == () == listed.posterior.quantile(0.5).left_out
    assert listed.posterior.quantile(0.5).category == "45-64"
    assert listed.posterior.quantile(0.9).category == "missing"
    of_type = PEOPLE.select(pl.col("age").cast(pl.Enum([*AGES, "?", "missing"])))
    enum = checked_context(of_type, loss={"epsilon": 9.0}, parts=None)
    for label, unordered in (("missing", ()), ("none", ("none",))):
        query = ob.posterior(enum.query(epsilon=1.0), "age", nulls=label, prior=1.0)
        assert query.release().unordered == unordered
    both = asked("age", categories=AGES, nulls="none", unknown="none")
    assert (both.nulls, both.unknown, both.unordered) == (("none",), ("none",), ("none",))
    mechanism = ob.LaplaceParameters(3.0, total="private")
    drawn, prior = (31, 25, 30, 12, 90), (1.0, 2.0, 0.5, 1.5, 1.0)
    labels = ("a", "b", "c", "d", "missing")
    with_nulls = ob.Release(drawn, labels, prior, mechanism, guarantee(None), nulls=("missing",))
    alone = ob.Release(drawn[:4], labels[:4], prior[:4], mechanism, guarantee(None))
    expected = alone.posterior.quantile(0.5).probabilities
    assert with_nulls.posterior.quantile(0.5).probabilities == pytest.approx(expected, abs=2e-3)
    # Negative control: they matter where nobody says that they stand for no value.
    unsaid = ob.Release(drawn, labels, prior, mechanism, guarantee(None)).posterior.quantile(0.5)
    assert np.abs(unsaid.probabilities[:4] - expected).max() > 0.1


@pytest.mark.parametrize("axes", list(permutations("xyz")))
def test_each_axis_has_its_own_by_every_door_to_it(axes: tuple[str, ...]) -> None:
    labels = {"x": "a", "y": "ab", "z": "abc"}
    cells = tuple(product(*([*labels[axis], f"no {axis}"] for axis in axes)))
    nulls = tuple(f"no {axis}" for axis in axes)
    noise, prior = ob.LaplaceParameters(1.0, total="private"), (1.0,) * 24
    table = ob.Release((2,) * 24, cells, prior, noise, guarantee(None), axes, nulls=nulls)
    for axis in axes:
        others = [other for other in axes if other != axis]
        doors: list[Any] = [
            groups_of_table(table, others),
            table.by(*others)["a", "a"],
            table.posterior.marginal(axis),
            table.posterior.conditional(axis, **dict.fromkeys(others, "a")),
        ]
        assert [door.unordered for door in doors] == [(f"no {axis}",)] * 4


@pytest.mark.parametrize("order", [1, -1])
def test_walks_and_combined_releases_end_before_them(order: int) -> None:
    """Of several releases, before what any of them leaves out."""
    mechanism = ob.LaplaceParameters(1.0, total="private")
    cells = tuple(product(["missing", "a", "b", "c"], ["x", "y"]))
    axes, nulls = ("v", "w"), ("missing", None)
    table = ob.Release((1,) * 8, cells, (1.0,) * 8, mechanism, guarantee(None), axes, nulls=nulls)
    made = table_of([table, replace(table, nulls=())][::order], None)
    assert made.variables["v"].tolist() == [3, 3, 0, 0, 1, 1, 2, 2]
    assert (made.apart["v"], made.apart["w"]) == (1, 0)
    margins = {of.variables: of for of in margins_of(made.variables, ["v"], made.apart)}
    walk, apart = margins["v",].waves[1][:, :-1], margins["v",].waves[1][:, -1]
    assert np.ptp(walk[:3], axis=0).min() > 0.5
    assert np.abs(walk[3]).max() < 1e-12
    assert apart.tolist() == [-0.25, -0.25, -0.25, 0.75]
    assert margins["v",].reach[-1] == margins["v",].reach.max()
    assert np.ptp(margins["w",].reach) == 0.0
    noise = ob.LaplaceParameters(1.0, total="private")
    listed = ob.Release((3, 2, 4), ("a", "b", "none"), (1.0,) * 3, noise, guarantee(None))
    own = replace(listed, noisy_counts=(2, 4, 3), nulls=("none",))
    assert ob.combine([listed, own][::order]).unordered == ("none",)
    cells = tuple(product(["p", "q"], ["a", "b", "none"]))
    joint = ob.Release((1,) * 6, cells, (1.0,) * 6, noise, guarantee(None), axes=("w", "v"))
    both = [joint, replace(joint, noisy_counts=(2,) * 6, nulls=(None, "none"))][::order]
    combined = ob.combine(both)
    for posterior in (combined.marginal("v"), combined.conditional("v", w="p")):
        assert posterior.unordered == posterior.quantile(0.5).left_out == ("none",)
    assert combined.marginal("w").unordered == ()
    tables = {name: replace(one, columns=("v",)) for name, one in {"x": listed, "y": own}.items()}
    assert NoisyTables.of([*tables.items()][::order]).unordered == {"v": ("none",)}
