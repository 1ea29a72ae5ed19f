"""Synthetic records beside the posterior that they are of."""

import itertools
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.surveys import agreement_of_copies as module
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten

pytestmark = pytest.mark.usefixtures("computed_once")

LABELS: dict[str, tuple[Any, ...]] = {
    "vote": ("left", "", 'a "b"', "c\nd", "e,f", " g "),
    "age": (True, False),
    "region": (1, 2, "2"),
}
TABLES = (("vote", "age"), ("age", "region"))


@lru_cache
def posterior() -> SurveyPosterior:
    rng = np.random.default_rng(3)
    releases = {}
    for names in TABLES:
        cells = tuple(itertools.product(*(LABELS[name] for name in names)))
        drawn = rng.multinomial(3000, rng.dirichlet(np.ones(len(cells))))
        noise = ob.GaussianParameters(4.0)
        releases[str(names)] = ob.Release(
            tuple(map(int, drawn)), cells, (1.0,) * len(cells), noise, guarantee(3000), names
        )
    return ob.combine_tables(releases)


agreement: Any = ob.agreement_of_copies


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)


def by_table(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["table"]: row for row in frame.to_dicts()}


class Stub(SurveyPosterior):
    """A posterior with numbers of its own."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def test_the_numbers_of_a_small_case_are_those_of_pencil_and_paper() -> None:
    """Two copies of four records: x is a in 1/4 and 3/4 of them, y is 0 in 2/4 and 2/4."""
    means = {("x",): [0.4, 0.6], ("y",): [0.5, 0.5], ("x", "y"): [0.25, 0.25, 0.25, 0.25]}
    stds = {("x",): [0.1, 0.1], ("y",): [0.2, 0.2], ("x", "y"): [0.1, 0.2, 0.3, 0.4]}

    def marginal(*names: str) -> Any:
        mean, std = (lambda: np.array(means[names])), (lambda: np.array(stds[names]))
        return SimpleNamespace(axes=names, measured=len(names) == 1, mean=mean, std=std)

    labels = {"x": ("a", "b"), "y": (0, 1)}
    of = {"tables": (("x",), ("y",)), "marginal": marginal}
    stub = Stub(variables=("x", "y"), categories=labels, **of)
    copies = [
        pl.DataFrame({"x": ["a", "b", "b", "b"], "y": [0, 0, 1, 1]}),
        pl.DataFrame({"y": [0, 0, 1, 1], "x": ["a", "a", "a", "b"]}),
    ]
    found = by_table(agreement(stub, copies, kind="population"))
    assert list(found) == ["x", "y", "x × y"]
    x, y, both = found.values()
    assert [x[name] for name in ("measured", "cells", "copies")] == [True, 2, 2]
    assert both["measured"] is False
    # Shares 1/4 and 3/4, in the mean 1/2, of which the posterior says .4.
    assert x["difference"] == x["largest_difference"] == pytest.approx(0.1)
    assert x["difference_of_one"] == pytest.approx((0.15 + 0.35) / 2)
    assert x["largest_of_one"] == pytest.approx(0.35)
    assert x["std"] == x["std_of_largest"] == pytest.approx(0.1)
    # v = 3/16/4 and b = 1/8: T = 3/64 + 3/2 · 1/8.
    assert x["combined_std"] == pytest.approx((3 / 64 + 3 / 16) ** 0.5)
    assert [y[name] for name in ("difference", "difference_of_one", "largest_of_one")] == [0] * 3
    assert y["combined_std"] == pytest.approx((1 / 16) ** 0.5)
    # Cells a0, a1, b0, b1: 1/4, 0, 1/4, 2/4 and 2/4, 1/4, 0, 1/4.
    assert both["difference"] == pytest.approx((1 / 8 + 1 / 8 + 1 / 8 + 1 / 8) / 4)
    assert both["difference_of_one"] == pytest.approx((0 + 1 + 0 + 1 + 1 + 0 + 1 + 0) / 4 / 8)
    assert (both["std"], both["std_of_largest"]) == (pytest.approx(0.25), pytest.approx(0.1))
    one = agreement(stub, copies[:1], kind="population")
    assert one["combined_std"].to_list() == [None] * 3
    assert one.schema == agreement(stub, copies, kind="population").schema


def test_all_numbers_follow_from_the_posterior_and_the_frames() -> None:
    found, copies = posterior(), posterior().synthetic(5, random_state=1)
    rows = by_table(agreement(found, copies, kind="population"))
    pairs = {"vote × age": True, "age × region": True, "vote × region": False}
    assert {name: row["measured"] for name, row in rows.items()} == {
        **dict.fromkeys(LABELS, True),
        **pairs,
    }
    for name, row in rows.items():
        names = name.split(" × ")
        table = found.marginal(*names)
        texts = [
            {label: str(label) if label != "2" else "'2'" for label in LABELS[one]} for one in names
        ]
        cells = [cell if isinstance(cell, tuple) else (cell,) for cell in table.categories]
        shares = []
        for copy in copies:
            records = [tuple(map(str, of)) for of in copy.select(names).rows()]
            written = (
                tuple(of[one] for of, one in zip(texts, cell, strict=True)) for cell in cells
            )
            shares.append([records.count(cell) / len(records) for cell in written])
        off = abs(np.mean(shares, axis=0) - table.mean())
        assert row["difference"] == pytest.approx(off.mean())
        assert row["largest_difference"] == pytest.approx(off.max())
        assert row["largest_of_one"] == pytest.approx(abs(np.array(shares) - table.mean()).max())
        assert row["std"] == pytest.approx(table.std().mean())
        own = np.array(shares) * (1 - np.array(shares)) / 3000
        combined = ob.combine_estimates(shares, own, kind="population")
        assert row["combined_std"] == pytest.approx(combined.std.mean())


def test_copies_agree_where_pairs_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control shuffles a column: its margin stays, its pairs do not."""
    copies = posterior().synthetic(20, random_state=2)
    right = by_table(agreement(posterior(), copies, kind="population"))
    for name, row in right.items():
        assert row["difference"] < row["std"], name
        assert row["difference"] < row["difference_of_one"]
        assert row["combined_std"] == pytest.approx(row["std"], rel=0.5), name
    shuffled = [copy.with_columns(pl.col("age").shuffle(seed=1)) for copy in copies]
    wrong = by_table(agreement(posterior(), shuffled, kind="population"))
    assert wrong["age"] == right["age"]
    assert wrong["age × region"]["difference"] > 3 * right["age × region"]["std"]
    monkeypatch.setattr(module, "LARGEST_CLIQUE", 17)
    tables = agreement(posterior(), posterior().synthetic(1), kind="population")["table"]
    assert "vote × region" not in tables
    assert "vote × age" in tables


SECRET, NO_AGE = pl.lit("secret"), pl.lit(None, pl.Boolean)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda copies: [], r"copies: .*at least one frame"),
        (lambda copies: [copies[0], copies[1].drop("age")], r"copies\[1\]: has no column 'age'"),
        (
            lambda copies: [copies[0].with_columns(vote=SECRET)],
            r"copies\[0\]: has values of 'vote' .*`write_synthetic`",
        ),
        (lambda copies: [copies[0].with_columns(age=NO_AGE)], r"copies\[0\]: has values of 'age'"),
    ],
)
def test_what_is_no_copy_is_refused(change: Any, message: str) -> None:
    copies = posterior().synthetic(2, random_state=6)
    with pytest.raises(ValueError, match=message) as caught:
        agreement(posterior(), change(copies), kind="population")
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="kind='both': must be"):
        agreement(posterior(), copies, kind="both")


def test_another_posterior_is_refused() -> None:
    with pytest.raises(TypeError, match=r"posterior=.*: must be a SurveyPosterior"):
        agreement(ob.combine, [], kind="population")
