"""A categorical column counted by polars against plain Python, for every type and policy."""

from collections import Counter
from enum import IntEnum

import numpy as np
import polars as pl
import pytest

from opendp_bayes.queries.columns import labelled_column
from opendp_bayes.trusted.cells import Cells, counted
from opendp_bayes.trusted.kinds import kind_of
from opendp_bayes.trusted.spaces import CountsSpace

ABC = pl.Enum(["a", "b", "c"])


def categorical_column(column, dtype, *, nullable, **policy):
    return labelled_column(column, kind_of(dtype, nullable=nullable), **policy)


def count(column, frame, dtype=None):
    cells = Cells((column.axis,), np.array(column.number), CountsSpace(column.labels, None))
    types = frame.collect_schema() if dtype is None else {"x": dtype}
    return counted([cells], frame, types, ())[0]


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
TEXTS = ["a", "b", "c", "d", ""]

# dtype, categories argument, the categories it means, the values a record may hold
COLUMNS = {
    "enum": (ABC, None, ["a", "b", "c"], ["a", "b", "c"]),
    "enum in another order": (ABC, ["c", "a", "b"], ["c", "a", "b"], ["a", "b", "c"]),
    "enum in part": (ABC, ["c", "a"], ["c", "a"], ["a", "b", "c"]),
    "string": (pl.String, ["b", "a"], ["b", "a"], TEXTS),
    "categorical": (pl.Categorical, ["b", "a"], ["b", "a"], TEXTS),
    "boolean": (pl.Boolean, [True, False], [True, False], [True, False]),
    "boolean in part": (pl.Boolean, [True], [True], [True, False]),
    **{str(dtype): (dtype, [3, 1, 2], [3, 1, 2], [0, 1, 2, 3, 99]) for dtype in INTEGERS},
    "below 0": (pl.Int64, [3, 1, 2], [3, 1, 2], [-(2**63), -1, 0, 1, 2, 3, 2**63 - 1]),
}


def counted_in_python(values, categories, nulls, unknown):
    labels = list(categories)
    labels += [
        label
        for i, label in enumerate((nulls, unknown))
        if label is not None and label not in labels and label not in (nulls, unknown)[:i]
    ]
    counts = Counter(
        nulls if value is None else value if value in (*categories, nulls) else unknown
        for value in values
    )
    return labels, [counts[label] for label in labels]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_that_read_like_the_label_of_nulls_are_counted_there(name):
    dtype, argument, categories, values = COLUMNS[name]
    rows = [None, *(value for at, value in enumerate(values) for _ in range(at + 2))]
    frame = pl.LazyFrame({"x": pl.Series(rows, dtype=dtype)})
    for nulls in values:
        policy = {"categories": argument, "nulls": nulls, "unknown": "other"}
        column = categorical_column("x", pl.Series([], dtype=dtype).dtype, nullable=True, **policy)
        labels, expected = counted_in_python(rows, categories, nulls, "other")
        assert (list(column.labels), count(column, frame).tolist()) == (labels, expected)


@pytest.mark.parametrize("dtype", [ABC, pl.String, pl.Categorical])
def test_many_rows_in_several_chunks(dtype):
    codes = np.random.default_rng(5).integers(0, 4, size=200_000)
    values = np.array(["a", "b", "c", None], dtype=object)[codes]
    chunks = [
        pl.DataFrame({"x": pl.Series(part.tolist(), dtype=dtype)})
        for part in np.array_split(values, 7)
    ]
    policy = {"categories": ["a", "b", "c"], **POLICY}
    column = categorical_column("x", chunks[0].schema["x"], nullable=True, **policy)
    found = count(column, pl.concat(chunks, rechunk=False).lazy()).tolist()
    assert found == [*np.bincount(codes).tolist(), 0]


@pytest.mark.parametrize("label", [np.str_("none"), np.int64(3), IntEnum("Code", ["NONE"]).NONE])
def test_labels_are_plain_or_refused(label):
    """A label is compared by its `repr` between spaces and written to JSON."""
    try:
        column = categorical_column(
            "x", ABC, nullable=True, categories=None, nulls=label, unknown=None
        )
    except TypeError as error:
        assert "must be a label" in str(error)  # noqa: PT017
        return
    assert {type(label) for label in column.labels} <= {str, int, bool}


@pytest.mark.parametrize("categories", [None, ["b", "c", "a"]])
def test_an_enum_with_another_encoding_is_counted_by_its_labels(categories):
    """The user declares the domain: counting codes would silently swap categories."""
    column = categorical_column(
        "x", ABC, nullable=True, categories=categories, nulls="none", unknown=None
    )
    frame = pl.LazyFrame({"x": pl.Series(["c", "c", "a", None], dtype=pl.Enum(["c", "b", "a"]))})
    found = dict(zip(column.labels, count(column, frame, ABC).tolist(), strict=True))
    assert found == {"a": 1, "b": 0, "c": 2, "none": 1}


@pytest.mark.parametrize(
    ("dtype", "nulls", "values", "counts"),
    [
        # A label of another type is a new one.
        (pl.Boolean(), 1, [True, None, None], {False: 0, True: 1, "1": 2}),
        # Failing would tell that values are there which the declared type excludes.
        (pl.Boolean(), None, [True, None, None], {False: 2, True: 1}),
        # OpenDP's domain still says Enum after `fill_null("a")`, where polars gives String.
        (ABC, None, ["a", "c", "a"], {"'a'": 2, "'b'": 0, "'c'": 1}),
    ],
)
def test_values_of_other_types_than_the_declared_one_are_counted(dtype, nulls, values, counts):
    policy = {"categories": None if dtype == ABC else [False, True], "unknown": None}
    column = categorical_column("x", dtype, nullable=nulls is not None, nulls=nulls, **policy)
    found = count(column, pl.LazyFrame({"x": values}), ABC if dtype == ABC else None).tolist()
    labels = [repr(label) for label in column.labels]
    assert dict(zip(labels, found, strict=True)) == {str(of): n for of, n in counts.items()}


POLICY = {"nulls": "none", "unknown": "other"}
A = {"categories": ["a"]}
VOTES = {"categories": ["Clinton", "Dole"], "nulls": "clinton"}
TWICE = {**A, "nulls": "missing", "unknown": "Missing"}
LIKE = "would be a new category beside"
BAD = [
    (pl.Float64(), {"categories": [1.0]}, TypeError, "column='x': has type Float64; must be Enum"),
    (pl.Date(), {"categories": ["a"]}, TypeError, "column='x': has type Date"),
    (pl.List(pl.Int64), {"categories": [1]}, TypeError, "column='x': has type List"),
    (pl.String(), {}, ValueError, "categories=None: .* String.*Pass categories="),
    (pl.Int64(), {}, ValueError, "categories=None: column 'x' of type Int64"),
    (pl.Categorical(), {}, ValueError, "categories=None: column 'x' of type Categorical"),
    (pl.String(), {"categories": []}, ValueError, r"categories=\[\]: must name at least one"),
    (pl.String(), {"categories": "abc"}, TypeError, "categories='abc': must be a sequence"),
    (pl.String(), {"categories": 3}, TypeError, "categories=3: must be a sequence of labels"),
    (pl.String(), {"categories": ["a", "b", "a"]}, ValueError, "'a'.*: must not repeat a label"),
    (pl.String(), {"categories": ["a", 1]}, TypeError, "1 does not fit .* String.*must be str"),
    (pl.Int64(), {"categories": ["1"]}, TypeError, "'1' does not fit .* Int64.*must be int"),
    (pl.Int64(), {"categories": [True]}, TypeError, "True does not fit .* Int64.*must be int"),
    (pl.Boolean(), {"categories": [0, 1]}, TypeError, "0 does not fit .* Boolean.*must be bool"),
    (pl.String(), {"categories": ["a", None]}, TypeError, "None does not fit .* type String"),
    (pl.UInt64(), {"categories": [2**63]}, ValueError, "is .*outside the range of 64-bit integers"),
    (pl.Int64(), {"categories": [-(2**63) - 1]}, ValueError, "is .*outside the range of 64-bit"),
    (ABC, {"categories": ["a", "d"]}, ValueError, "'d' is not in the Enum of column 'x'"),
    (ABC, {"nulls": None}, ValueError, "nulls=None: .* may hold nulls.*nulls='missing'"),
    (pl.String(), {"categories": ["a"], "unknown": None}, ValueError, "unknown=None.*='other'"),
    (ABC, {"categories": ["a"], "unknown": None}, ValueError, "unknown=None: .* of type Enum"),
    (pl.Boolean(), {"categories": [True], "unknown": None}, ValueError, "unknown=None: .* Boolean"),
    (ABC, {"nulls": 1.5}, TypeError, "nulls=1.5: must be a label"),
    (ABC, {"unknown": ["other"]}, TypeError, r"unknown=\['other'\]: must be a label"),
    (pl.String(), VOTES, ValueError, f"'clinton': {LIKE} 'Clinton', .* Write nulls='Clinton'"),
    (ABC, {"unknown": "c "}, ValueError, f"unknown='c ': {LIKE} 'c'"),
    (pl.Int64(), {"categories": [0, 1], "unknown": "0"}, ValueError, f"unknown='0': {LIKE} 0"),
    (pl.String(), TWICE, ValueError, f"unknown='Missing': {LIKE} 'missing'"),
    (pl.String(), dict.fromkeys(POLICY, "a") | A, ValueError, r"\['a'\]: needs at least two"),
]


@pytest.mark.parametrize(("dtype", "arguments", "error", "message"), BAD)
def test_bad_input_is_refused_at_construction(dtype, arguments, error, message):
    with pytest.raises(error, match=message):
        categorical_column("x", dtype, nullable=True, **{"categories": None, **POLICY, **arguments})
