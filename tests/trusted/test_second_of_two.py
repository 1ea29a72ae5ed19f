"""The second of two: buckets, questions, columns, shares and calls that differ from the first."""

import warnings
from itertools import product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.planning import expected_error
from opendp_bayes.surveys.survey_query import frames_of_the_same_rows
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.contexts import check_identifier
from opendp_bayes.trusted.scanned_frames import scanned
from opendp_bayes.trusted.spaces import CountsSpace
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.grouped import with_groups

TOWNS, SEXES = ["york", "bath", "wells"], ["m", "f"]
_TOWNS = ["york"] * 7 + ["bath"] * 5 + ["wells"] * 4 + ["?"] * 2 + [None] * 9
FRAME = pl.DataFrame({"town": _TOWNS, "sex": ["m", "f", "f"] * 9, "year": [3, 1, 2] * 9})
TOWN: dict[str, Any] = {"column": "town", "categories": TOWNS, "nulls": "york", "unknown": "wells"}
SEX: dict[str, Any] = {"column": "sex", "categories": SEXES, "nulls": "f", "unknown": "f"}
BY_SEX = with_groups(TOWN, {"sex": SEXES})
YEAR: dict[str, Any] = {"column": "year", "categories": [1, 2, 3], "nulls": 1, "unknown": 2}


def query(frame: Any = None, loss: dict[str, float] | None = None, **unit: Any) -> Any:
    """With so little noise that a draw is the data, except with probability below e^-100."""
    return plain_context(
        FRAME.lazy() if frame is None else frame,
        unit or {"contributions": 1},
        loss or {"epsilon": 5000.0},
    ).query()


# --- buckets


@pytest.mark.parametrize("nullable", ["a", "b"])
def test_whether_a_column_may_hold_nulls_is_asked_of_each(nullable: str) -> None:
    atom = dp.atom_domain(T=bool)
    of = {name: dp.option_domain(atom) if name == nullable else atom for name in ("a", "b")}
    domain = dp.lazyframe_domain([dp.series_domain(name, kind) for name, kind in of.items()])
    with pytest.raises(ValueError, match=f"nulls=None: column '{nullable}' may hold nulls"):
        ob.t.make_categorical_counts(domain, dp.symmetric_distance(), column=["a", "b"])
    made = ob.t.make_categorical_counts(
        domain, dp.symmetric_distance(), column=["a", "b"], nulls={nullable: True}
    )
    assert made.output_domain.descriptor.k == 4


@pytest.mark.parametrize(
    ("invariant", "public"), [(None, False), ("keys", False), ("lengths", True)]
)
def test_the_number_of_records_is_public_where_the_lengths_are(invariant, public):
    """And not where a margin says no more than that there is one group of all records."""
    margin = dp.polars.Margin(by=[], max_length=50, invariant=invariant)
    domain = dp.with_margin(dp.domain_of(FRAME.lazy(), infer=True), margin)
    metric = dp.symmetric_distance()
    made = ob.t.make_categorical_counts(domain, metric, **TOWN, size=27 if public else None)
    assert made.output_domain.descriptor.size == (27 if public else None)
    with pytest.raises(ValueError, match="size="):
        ob.t.make_categorical_counts(domain, metric, **TOWN, size=None if public else 27)


# --- bounds and maps


def test_an_odd_number_of_records_moved_is_one_change_more_than_half() -> None:
    axis = Axis("x", "text", ("a", "b"), 0, 1)
    for size, wanted in ((None, [0, 1, 2, 3, 4, 5]), (9, [0, 1, 1, 2, 2, 3])):
        cells = Cells((axis,), np.arange(2), CountsSpace(("a", "b"), size))
        found = [Bounds.of(moved).distance(cells, {}, frozenset()) for moved in range(6)]
        assert found == list(map(Distance.of, wanted))


@pytest.mark.parametrize("metric", [dp.hamming_distance(), dp.change_one_distance()])
def test_elements_of_a_vector_that_change_are_as_many_records(metric: Any) -> None:
    domain = dp.vector_domain(dp.atom_domain(T=bool), size=9)
    made = ob.t.make_categorical_counts(domain, metric)
    assert [made.map(d_in) for d_in in range(5)] == [0, 1, 2, 3, 4]


# --- questions
def test_questions_of_as_many_categories_are_each_counted() -> None:
    """In one pass: two of three categories, in another order than their columns, and one of two."""
    survey = ob.survey(query(), {"year": YEAR, "sex": SEX, "town": TOWN}).release()
    assert {name: release.counts for name, release in survey.items()} == {
        "year": (9, 9, 9),
        "sex": (9, 18),
        "town": (16, 5, 6),
    }


TABLE = {"column": ["sex", "town"], "categories": {"sex": SEXES, "town": TOWNS}}
TABLE |= {"nulls": {"sex": "f", "town": "york"}, "unknown": {"sex": "f", "town": "wells"}}


@pytest.mark.parametrize("policy", ["nulls", "unknown"])
@pytest.mark.parametrize("place", ["bath", "elsewhere", ob.DROP])
def test_places_of_either_kind_that_differ_are_warned_of(policy: str, place: Any) -> None:
    """Of the second of two columns too, and where one of the two questions leaves them out."""
    other = {**TOWN, policy: place}
    for questions in ({"table": TABLE, "town": other}, {"town": other, "table": TABLE}):
        with pytest.warns(UserWarning, match=f"count {policy} of 'town' in different places"):
            ob.survey(query(), questions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ob.survey(query(), {"table": TABLE, "town": TOWN, "sex": SEX})


def test_questions_have_columns_and_shares_of_their_own() -> None:
    """Whichever comes first, and of three."""
    listed = {"year": [3, 1, 2], "sex": ["m", "f"]}
    by = {"by": ["year", "sex"], **with_groups(TOWN, listed)}
    rest = {"year": 3, "sex": "f"}
    table = {"column": ["year", "sex"], "categories": {"sex": SEXES, "year": [3, 1, 2]}}
    table |= {"nulls": rest, "unknown": rest}
    survey = ob.survey(query(), {"table": table, "town": {**TOWN, **by}}).release()
    assert [one.columns for one in survey.releases] == [("year", "sex"), ("town",)]
    assert survey["table"].axes == ("year", "sex")
    assert survey["table"].counts == (9, 0, 0, 9, 0, 9)
    groups: Any = survey["town"]
    assert groups.groups == tuple(product([3, 1, 2], ["m", "f"]))
    shares = {"year": {**YEAR, "share": 3}, "sex": SEX, "town": {**TOWN, "share": 4}}
    found = ob.survey(query(), shares).share
    assert found == {"year": 3 / 8, "sex": 1 / 8, "town": 4 / 8}
    weights = {"town": 4, "sex": 1, "year": 3}
    assert ob.survey(query(), {"year": YEAR, "sex": SEX, "town": TOWN}, weights).share == found
    plans = [query(), query().filter(pl.col("year") > 1)]
    one, other = (ob.posterior(plan, **TOWN)._bound for plan in plans)
    again = ob.posterior(plans[0], **SEX)._bound
    assert frames_of_the_same_rows([one, again]) == [one.frame, again.frame]
    for asked in ([one, other], [other, one], [one, again, other], [other, one, again]):
        assert frames_of_the_same_rows(asked) == []


def test_tables_and_margins_of_several_columns_and_no_such_identifier() -> None:
    summary = ob.survey(query(), {"table": TABLE, "sex": SEX, "year": YEAR}).summarize()
    assert summary["nulls"].to_list()[0] == "sex: 'f', town: 'york'"
    assert summary["unknown"].to_list()[0] == "sex: 'f', town: 'wells'"
    metric, _ = dp.unit_of(contributions=1, identifier=pl.col("a") + pl.col("b"))
    with pytest.raises(ValueError, match=r"must be one column by name.* compute others in the"):
        check_identifier(metric, ["b", "a", "c"])


def test_balanced_groups_leave_no_record_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[list[int]] = []
    monkeypatch.setattr(
        expected_error,
        "expected_width",
        lambda setting, of, part: counts.append(of.tolist()) or 0.1,
    )
    ob.posterior(query(), by="sex", **BY_SEX).summarize(602)
    ob.posterior(query(), by="sex", **with_groups(TOWN, {"sex": ["m"]})).summarize(602)
    ob.posterior(query(), **TOWN).summarize(602)
    assert counts == [[100, 100, 101, 100, 100, 101], [200, 201, 201], [200, 201, 201]]


def test_labels_integers_and_enums_are_kept_or_widened() -> None:
    """Beside merges that are not in the order of the alphabet, nor of the categories."""
    assert repr(ob.DROP) == "DROP"
    assert repr({"nulls": ob.DROP}) == "{'nulls': DROP}"
    made = ob.posterior(query(), by="sex", **BY_SEX, prior=[1.0, 2.0, 4.0])
    assert "prior='(1, 2, 4)'" in repr(made)
    (said,) = made.summarize()["prior"]
    assert said.index("1") < said.index("2") < said.index("4")
    labels = [f"{number}" for number in range(60, 0, -1)]
    parts = [labels[at : at + 20] for at in (0, 20, 40)]
    merges = {"thirds": dict(zip(["y", "z", "x"], [parts[2], parts[0], parts[1]], strict=True))}
    made = ob.levels("x", labels, merges=merges, nulls="none", unknown="other")
    assert made["thirds"]["merge"] == {**merges["thirds"], "none": ["none"], "other": ["other"]}
    made = ob.levels("x", labels, merges=merges, nulls="60", unknown="other")
    assert made["thirds"]["merge"] == {**merges["thirds"], "other": ["other"]}
    narrow = {"a": pl.Int8, "b": pl.Int16, "c": pl.UInt8, "d": pl.UInt16, "e": pl.Int32}
    frame = pl.DataFrame({name: [1, 2] for name in narrow}, schema=narrow)
    for given in (frame, frame.lazy()):
        wide, *_ = scanned(given)
        types = [pl.Int32, pl.Int32, pl.UInt32, pl.UInt32, pl.Int32]
        assert wide.collect_schema().dtypes() == types
    enum = pl.Enum(["b", "a"])
    frame = pl.DataFrame({"e": pl.Series(["a", "b", None], dtype=enum), "n": [1, None, 3]})
    for columns in (["e"], ["n"], ["e", "n"], ["n", "e"]):
        with ob.on_disk(frame.select(columns)) as scan:
            assert scan.collect().equals(frame.select(columns))


# --- frames and Contexts


def test_a_loss_of_nothing_is_given_and_no_loss_is_not() -> None:
    """OpenDP's queries for public facts take a loss of 0; one without a loss is another thing."""
    opened = checked_context(FRAME, parts=None)
    losses = [
        object.__getattribute__(opened.query(**given), "_query")._d_out
        for given in ({"epsilon": 0}, {"epsilon": 0.5, "delta": None})
    ]
    assert losses == [0.0, 0.5]
    with pytest.raises(ValueError, match="finite and greater than 0"):
        ob.posterior(opened.query(epsilon=0), **TOWN).resolve()
