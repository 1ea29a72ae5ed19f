"""From a specification to its releases: what is counted where, and what does not fit the data."""

from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from opendp_bayes.surveys.survey import Survey
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.asked_of_files import survey_of
from tests.helpers.sweeps import pairs_of

TEXT = """\
title = "Groups"
[privacy]
epsilon = 20000.0
[columns.g]
categories = ["a", "b"]
[columns.v]
categories = ["x", "y"]
[[results]]
column = "v"
by = "g"
[[results]]
column = "g"
"""
#: 1 record of a, 2 of b, 3 without a value and 5 of another.
GROUPS = ["a", *2 * ["b"], *3 * [None], *5 * ["c"]]


def released(text: str, frame: pl.DataFrame, directory: Path) -> Survey:
    frame.write_parquet(directory / "data.parquet")
    survey = survey_of(directory / "data.parquet", read_specification(text))
    return survey.release()


def frame_of(groups: list[Any], dtype: Any) -> pl.DataFrame:
    kind = pl.Enum(["x", "y"])
    return pl.DataFrame(
        {"g": pl.Series(groups, dtype=dtype), "v": pl.Series(["x"] * len(groups), dtype=kind)}
    )


#: What is said of nulls and unknown values, and the records of the groups.
POLICIES = {
    'nulls = "a"\nunknown = "b"': {"a": 4, "b": 7},
    'nulls = "none"\nunknown = "a"': {"a": 6, "b": 2, "none": 3},
    'nulls = "b"': {"a": 1, "b": 5},
    'unknown = "b"': {"a": 1, "b": 7},
    "": {"a": 1, "b": 2},
}


@pytest.mark.parametrize(
    ("dtype", "size", "policies"),
    pairs_of(product([pl.String, pl.Enum(["a", "b", "c"])], ["", "size = 11"], POLICIES)),
)
def test_the_groups_have_the_records_that_their_column_has(tmp_path, dtype, size, policies):
    """Noise of scale 1e-4 at most differs from 0 with probability below e^-9999."""
    expected = POLICIES[policies]
    text = TEXT.replace("[columns.v]", f"{policies}\n[columns.v]")
    text = text.replace("[columns.v]", '[columns.v]\nnulls = "y"')
    text = text.replace("20000.0", f"20000.0\n{size}")
    if size and len(policies.splitlines()) < 2:  # then all records of a result are counted
        text = text[: text.rindex("[[results]]")]
    survey = released(text, frame_of(GROUPS, dtype), tmp_path)
    by_group = survey["v by g"]
    assert {group: sum(part.counts) for group, part in by_group.items()} == expected
    assert by_group.d_in == 1
    if "g" in survey:  # which counts those of no group, too
        other = {} if "unknown" in policies else {"other": 5}
        counts = dict(zip(survey["g"].categories, survey["g"].counts, strict=True))
        assert counts == {**expected, **other}


FLAGS = [True, None, False], pl.Boolean, "[true, false]", "nulls = false"
NUMBERS = [1, 2, None, 7], pl.Int64, "[1, 2]", "nulls = 2\nunknown = 3"


@pytest.mark.parametrize(
    ("groups", "dtype", "categories", "policies", "expected"),
    [(*NUMBERS, {"1": 1, "2": 2, "3": 1}), (*FLAGS, {"true": 1, "false": 2})],
)
def test_groups_of_other_types(tmp_path, groups, dtype, categories, policies, expected):
    text = TEXT.replace('["a", "b"]', f"{categories}\n{policies}")
    survey = released(text, frame_of(groups, dtype), tmp_path)
    assert {group: sum(part.counts) for group, part in survey["v by g"].items()} == expected


NOT = 'recode = { false = "true" }\nnulls = "no"\nunknown = "no"'
OF_TWO = pl.Int64, '["1", "2"]'


@pytest.mark.parametrize(
    ("dtype", "written", "policies", "expected"),
    [
        (*OF_TWO, 'nulls = "2"\nunknown = "rest"', {"1": 1, "2": 2, "rest": 1}),
        (*OF_TWO, 'nulls = "1"\nunknown = "2"', {"1": 2, "2": 2}),
        (*OF_TWO, 'recode = { 7 = "1" }\nunknown = "DROP"', {"1": 2, "2": 1}),
        (*OF_TWO, "recode = { 7 = 2 }\nnulls = 1\nunknown = 2", {"1": 2, "2": 2}),
        (pl.Boolean, '["true", "false"]', 'nulls = "false"', {"true": 1, "false": 2}),
        (pl.Boolean, '["true"]', NOT, {"true": 2, "no": 1}),
    ],
)
def test_labels_may_be_written_as_text(tmp_path, dtype, written, policies, expected):
    groups = [1, 2, None, 7] if dtype == pl.Int64 else [True, None, False]
    text = TEXT.replace('["a", "b"]', f"{written}\n{policies}").replace('by = "g"\n', "")
    counted = released(text, frame_of(groups, dtype), tmp_path)["g"]
    assert dict(zip(counted.categories, counted.counts, strict=True)) == expected


def test_a_label_for_other_values_is_a_category_also_where_there_are_none(tmp_path: Path) -> None:
    text = TEXT.replace("[columns.v]", '[columns.v]\nunknown = "other"')
    survey = released(text, frame_of(GROUPS, pl.String), tmp_path)
    assert survey["v by g"].categories == ("x", "y", "other")


def test_groups_of_limited_identifiers(tmp_path: Path) -> None:
    limited = '20000.0\nidentifier = "person"\nrows_per_identifier = 2'
    text = TEXT.replace("20000.0", limited).replace("[columns.v]", 'nulls = "a"\n[columns.v]')
    rows = frame_of(["a", None, None, "b", None], pl.String)
    survey = released(text, rows.with_columns(person=pl.Series([1, 1, 1, 2, 2])), tmp_path)
    counts = {group: sum(part.counts) for group, part in survey["v by g"].items()}
    assert (counts, survey["v by g"].d_in) == ({"a": 3, "b": 1}, 2)


SIZE = "epsilon = 20000.0\nsize = 11"


def test_a_public_size_counts_other_values_too(tmp_path: Path) -> None:
    text = TEXT.replace("epsilon = 20000.0", SIZE).replace(
        "[columns.v]", 'nulls = "a"\n[columns.v]'
    )
    text = text.replace("[columns.v]", '[columns.v]\nnulls = "y"')
    survey = released(text, frame_of(GROUPS, pl.String), tmp_path)
    counts = dict(zip(survey["g"].categories, survey["g"].counts, strict=True))
    assert counts == {"a": 4, "b": 2, "other": 5}
    dropped = text.replace('nulls = "a"', 'nulls = "a"\nunknown = "DROP"')
    with pytest.raises(ValueError, match=r"DROP leaves records out"):
        released(dropped, frame_of(GROUPS, pl.String), tmp_path)
