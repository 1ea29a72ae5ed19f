"""Values counted under another label, against counts of data in which they were replaced."""

from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import opendp_bayes as ob
from tests.helpers.contexts import checked_context

FRAME = pl.DataFrame(
    {
        "region": ["north", "Nord", "NORTH", "south", None, "nil", "west", "Nord"],
        "code": [1, 2, -9, 3, None, -9, 1, 8],
        "on": [True, False, None, True, False, None, True, True],
    }
)
REGION = {"Nord": "north", "NORTH": "north", "nil": "none"}
REST = {"nulls": "none", "unknown": "other"}


def query(frame: pl.DataFrame, *, size: int | None = None, contributions: int = 1) -> Any:
    unit = {"contributions" if size is None else "changes": contributions}
    return checked_context(frame, unit, {"epsilon": 1e6}).query()


def counts(release: Any) -> dict[Any, int]:
    return dict(zip(release.categories, release.counts, strict=True))


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("region", [pl.String, pl.Categorical])
def test_values_are_counted_under_another_label(size, contributions, region) -> None:
    frame = FRAME.with_columns(pl.col("region").cast(region))
    asked = query(frame, size=size, contributions=contributions)
    labels = {"categories": ["south", "north"], "recode": REGION, **REST}
    made = ob.posterior(asked, "region", size=size, **labels).release()
    assert counts(made) == {"south": 1, "north": 4, "none": 2, "other": 1}


def test_whole_numbers_and_booleans_are_counted_under_another_label() -> None:
    made = ob.posterior(query(FRAME), "code", categories=[1, 3], recode={2: 1, -9: "none"}, **REST)
    assert counts(made.release()) == {1: 3, 3: 1, "none": 3, "other": 1}
    made = ob.posterior(query(FRAME), "on", categories=[True], recode={False: "none"}, nulls="none")
    assert counts(made.release()) == {True: 4, "none": 4}


def test_values_of_an_enum_are_covered_by_labels_and_recoded_ones() -> None:
    declared = pl.Enum(["north", "Nord", "NORTH", "south", "nil", "west"])
    frame = FRAME.with_columns(pl.col("region").cast(declared))
    policy = {"categories": ["north", "south"], "nulls": "none"}
    made = ob.posterior(query(frame), "region", recode=REGION | {"west": "south"}, **policy)
    assert counts(made.release()) == {"north": 4, "south": 2, "none": 2}
    with pytest.raises(ValueError, match="unknown=None"):
        ob.posterior(query(frame), "region", recode=REGION, **policy)


@pytest.mark.parametrize("joint", [False, True])
def test_columns_of_tables_and_groups_are_recoded_by_name(joint) -> None:
    asked = {
        "categories": {"code": [1, 3], "region": ["north", "south"], "on": [True, False]},
        "recode": {"region": {"Nord": "north", "NORTH": "south"}, "code": {2: 1, 8: 3}},
        "nulls": {"code": "none", "on": False},
        "unknown": {"code": 3, "region": "elsewhere"},
    }
    table = FRAME.with_columns(
        pl.col("region")
        .replace({"Nord": "north", "NORTH": "south", "west": "elsewhere", "nil": "elsewhere"})
        .alias("group"),
        pl.col("code").replace_strict({1: "1", 2: "1", 3: "3", 8: "3", -9: "3"}).fill_null("none"),
        pl.col("on").fill_null(value=False),
    )
    column: Any = ["on", "code"] if joint else "code"
    if not joint:
        asked = {
            name: {of: x for of, x in given.items() if of != "on"} for name, given in asked.items()
        }
    made = ob.posterior(query(FRAME), column, by="region", **asked).release()
    assert made.groups == ("north", "south", "elsewhere")
    for group in made.groups:
        rows = table.filter(pl.col("group") == group)
        for label, number in counts(made[group]).items():
            on, code = label if joint else (None, label)
            found = rows.filter(pl.col("code") == str(code))
            assert number == len(found if on is None else found.filter(pl.col("on") == on)), label


VALUES = ["a", "b", "A", "B", "x", None]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_recoding_equals_replacing(data) -> None:
    """With labels in any order, recoded to a category, to that of nulls or of other values."""
    rows = data.draw(st.lists(st.sampled_from(VALUES), max_size=10))
    categories = data.draw(st.permutations(["a", "b"]))
    rest = data.draw(st.sampled_from([REST, {"nulls": "a", "unknown": "b"}]))
    labels = list(dict.fromkeys([*categories, *rest.values()]))
    recode = data.draw(
        st.dictionaries(st.sampled_from(["A", "B", "x", "never"]), st.sampled_from(labels))
    )
    of = {True: 0}
    for row in rows:
        new = recode.get(row, row)
        label = rest["nulls"] if new is None else new if new in labels else rest["unknown"]
        of[label] = of.get(label, 0) + 1
    frame = pl.DataFrame({"x": rows}, schema={"x": pl.String})
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.domain_of(frame.lazy(), infer=True), dp.symmetric_distance()
    made = ob.t.make_categorical_counts(
        *space, column="x", categories=categories, recode=recode, **rest
    )
    assert made(frame.lazy()).tolist() == [of.get(label, 0) for label in labels]


@pytest.mark.parametrize(
    ("recode", "message"),
    [
        ("Nord", "recode='Nord': must be a mapping"),
        ({"Nord": "east"}, r"recode=\{'Nord': 'east'\}: 'east' .*labels"),
        ({"north": "south"}, "'north' is a label"),
        ({"other": "south"}, "'other' is a label"),
        ({1: "south"}, r"recode=\{1: 'south'\}: 1 .*String"),
        ({"Nord": None}, r"None .*one of the labels"),
        ({"town": {"Nord": "north"}}, r"recode=.*: 'town' is not among"),
    ],
)
def test_what_cannot_be_recoded_is_refused(recode, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ob.posterior(query(FRAME), "region", categories=["north", "south"], recode=recode, **REST)


def test_values_that_an_enum_has_not_are_refused() -> None:
    frame = FRAME.with_columns(
        pl.col("region").cast(pl.Enum(FRAME["region"].unique().drop_nulls()))
    )
    with pytest.raises(ValueError, match="'nrth' is not in the Enum"):
        ob.posterior(query(frame), "region", categories=["north"], recode={"nrth": "north"}, **REST)


def test_columns_of_listed_groups_have_no_values_to_recode() -> None:
    by = ["region", "code"]
    labels = {"categories": {tuple(by): [("north", 1)]}, "recode": {"region": {"Nord": "north"}}}
    with pytest.raises(ValueError, match=r"recode\['region'\]="):
        ob.posterior(query(FRAME), "on", by=by, nulls=False, **labels)
