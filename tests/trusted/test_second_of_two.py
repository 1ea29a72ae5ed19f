"""The second of two: buckets, questions, columns, shares and calls that differ from the first."""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.planning import expected_error
from opendp_bayes.queries import cells_of as cells_module
from opendp_bayes.queries.cells_of import cells_of
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.contexts import check_identifier
from opendp_bayes.trusted.spaces import CountsSpace, groups_and_labels
from tests.helpers.contexts import plain_context
from tests.helpers.grouped import with_groups
from tests.helpers.kinds import kinds_in

Bound = dp.polars.Bound
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


TABLE = {"column": ["sex", "town"], "categories": {"sex": SEXES, "town": TOWNS}}
TABLE |= {"nulls": {"sex": "f", "town": "york"}, "unknown": {"sex": "f", "town": "wells"}}


def test_a_table_and_its_margin_say_where_values_are_counted() -> None:
    summary = ob.survey(query(), {"table": TABLE, "sex": SEX, "year": YEAR}).summarize()
    assert summary["nulls"].to_list()[0] == "sex: 'f', town: 'york'"
    assert summary["unknown"].to_list()[0] == "sex: 'f', town: 'wells'"


def test_balanced_groups_leave_no_record_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[list[int]] = []
    monkeypatch.setattr(
        expected_error,
        "expected_width",
        lambda setting, of, part: counts.append(of.tolist()) or 0.1,
    )
    ob.posterior(query().group_by("sex"), **BY_SEX).summarize(602)
    ob.posterior(query().group_by("sex"), **with_groups(TOWN, {"sex": ["m"]})).summarize(602)
    ob.posterior(query(), **TOWN).summarize(602)
    assert counts == [[100, 100, 101, 100, 100, 101], [200, 201, 201], [200, 201, 201]]


def test_what_is_left_out_is_shown_by_the_name_that_users_write() -> None:
    assert repr(ob.DROP) == "DROP"
    assert repr({"nulls": ob.DROP}) == "{'nulls': DROP}"


def test_the_prior_of_a_group_is_shown_in_the_order_of_the_labels() -> None:
    made = ob.posterior(query().group_by("sex"), **BY_SEX, prior=[1.0, 2.0, 4.0])
    assert "prior='(1, 2, 4)'" in repr(made)
    (said,) = made.summarize()["prior"]
    assert said.index("1") < said.index("2") < said.index("4")


# --- frames and Contexts
def test_an_identifier_of_several_columns_needs_all_of_them() -> None:
    metric, _ = dp.unit_of(contributions=1, identifier=pl.col("a") + pl.col("b"))
    check_identifier(metric, ["b", "a", "c"])
    for columns in (["a", "c"], ["b", "c"]):
        with pytest.raises(ValueError, match=r"column of the frame, .*2"):
            check_identifier(metric, columns)


def test_a_frame_with_some_columns_of_an_enum_is_read_as_it_was() -> None:
    enum = pl.Enum(["b", "a"])
    frame = pl.DataFrame({"e": pl.Series(["a", "b", None], dtype=enum), "n": [1, None, 3]})
    for columns in (["e"], ["n"], ["e", "n"], ["n", "e"]):
        with ob.on_disk(frame.select(columns)) as scan:
            assert scan.collect().equals(frame.select(columns))


# --- columns with unequal numbers of labels
SIZES = ["small", "large", "huge"]


@pytest.mark.parametrize("by", [("home", "size"), ("size", "home"), ("home", "age", "size")])
def test_no_column_of_the_groups_is_asked_for(by: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"by='size': .*column that is asked"):
        Question.of("size", categories={"size": SIZES}, nulls="huge", unknown="huge", by=by)


def test_columns_of_groups_and_labels_that_are_too_many_together_are_refused(monkeypatch):
    """Of 3, 4 and 3 places, the groups' other rows included, whichever comes first."""
    schema = {
        "a": pl.Enum(["x", "y"]),
        "b": pl.Enum(["0", "1", "2"]),
        "c": pl.Enum(["0", "1", "2"]),
    }
    for by in (("a", "b"), ("b", "a")):
        question = Question.of("c", nulls="0", by=by)
        monkeypatch.setattr(cells_module, "_BYTES", cells_module.MOST_BYTES // 35)
        with pytest.raises(ValueError, match="would be 36 categories or cells"):
            cells_of(question, kinds_in(pl.LazyFrame(schema=schema)), None)
        monkeypatch.setattr(cells_module, "_BYTES", cells_module.MOST_BYTES // 36)
        assert cells_of(question, kinds_in(pl.LazyFrame(schema=schema)), None).space.k == 3 * 6


def test_groups_that_python_takes_for_equal_have_labels_of_their_own() -> None:
    space = CountsSpace.of_groups((1, True), ("x", "y"), None)
    assert groups_and_labels(space.categories) == ((1, True), ("x", "y"))
