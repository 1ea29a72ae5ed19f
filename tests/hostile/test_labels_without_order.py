"""Ordered answers leave out labels of nulls and unknown values, in every kind of result."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
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
    "combined": lambda: ob.combine(
        [asked("age", **LABELS) for _ in "ab"], records="same", draws_may_agree=True
    ),
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


def test_other_posteriors_keep_what_has_no_order(release: Any) -> None:
    posterior = release.posterior
    assert posterior.given(["65+", "missing", "18-29"]).unordered == ("missing",)
    merged = posterior.merged({"none": ["missing", "other"], "old": ["45-64", "65+"]})
    assert merged.unordered == ("none",)
    assert posterior.merged({"rest": ["65+", "other"]}).unordered == ("missing",)
    assert list(posterior.given(["18-29", "missing"]).categories) == ["18-29", "missing"]
    with pytest.raises(ValueError, match=r"unordered=.*leave 1 categories in order"):
        posterior.given(["18-29", "missing"]).quantile(0.5)


def test_the_median_is_that_of_the_records_in_order() -> None:
    """Against the same draws without these labels, from which private counts hardly differ."""
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
