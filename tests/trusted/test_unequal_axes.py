"""Tables of columns with unequal numbers of labels: records are in the cells of their values."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.queries import cells_of as cells_module
from opendp_bayes.queries.cells_of import cells_of
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.cells import counted
from opendp_bayes.trusted.spaces import CountsOfSeveral, CountsSpace, groups_and_labels
from tests.helpers.kinds import kinds_in

SCHEMA = {"size": pl.String, "age": pl.Int64, "in_town": pl.Boolean, "home": pl.String}
SIZES, AGES, HOMES = ["small", "large", "huge"], [30, 20, 10, 40], ["z", "a"]
LABELS: dict[str, list[Any]] = {"size": SIZES, "age": AGES, "in_town": [True, False], "home": HOMES}
#: Every row once, and some often, so that no two cells have as many.
ROWS = [
    row
    for at, row in enumerate(
        product([*SIZES, "??", None], [*AGES, 99, None], [True, False, None], [*HOMES, None])
    )
    for _ in range(at % 7 + at % 11)
]


def counts(question: Question) -> dict[Any, int]:
    frame = pl.DataFrame(ROWS, schema=SCHEMA, orient="row").lazy()
    cells = cells_of(question, kinds_in(pl.LazyFrame(schema=SCHEMA)), None)
    (found,) = counted([cells], frame, frame.collect_schema(), ())
    return dict(zip(cells.space.labels, found.tolist(), strict=True))


def value(row: Any, column: str) -> Any:
    return row[list(SCHEMA).index(column)]


@pytest.mark.parametrize(
    "columns", [("size", "age", "in_town"), ("age", "in_town", "size"), ("in_town", "home", "age")]
)
@pytest.mark.parametrize("left_out", [(), (0,), (1,), (2,), (0, 2)])
def test_records_left_out_by_any_of_the_columns(columns, left_out):
    """The others count nulls and unknown values with their second category."""
    second = {name: LABELS[name][1] for name in columns}
    policy = {name: ob.DROP if at in left_out else second[name] for at, name in enumerate(columns)}
    labels = {name: LABELS[name] for name in columns}
    found = counts(Question.of(columns, categories=labels, nulls=policy, unknown=policy))
    expected: Counter[Any] = Counter()
    for row in ROWS:
        cell = []
        for at, name in enumerate(columns):
            known = value(row, name) in LABELS[name]
            if not known and at in left_out:
                break
            cell.append(value(row, name) if known else second[name])
        else:
            expected[tuple(cell)] += 1
    assert list(found) == list(product(*(LABELS[name] for name in columns)))
    assert found == dict(expected)


@pytest.mark.parametrize("by", [("size", "age", "home"), ("home", "size"), ("age", "home", "size")])
def test_groups_of_several_columns_of_different_lengths(by: tuple[str, ...]) -> None:
    """Some values alone, the last first, and the nulls; all others are in no group."""
    listed = {name: [*reversed(LABELS[name][1:])] for name in by}
    missing = {"size": "?", "age": -1, "home": "?"}
    labels = [[*listed[name], missing[name]] for name in by]
    nulls = {name: missing[name] for name in by} | {"in_town": ob.DROP}
    question = Question.of("in_town", nulls=nulls, by=by, categories=listed)
    cells = cells_of(question, kinds_in(pl.LazyFrame(schema=SCHEMA)), None)
    keys = list(product(*labels))
    assert groups_and_labels(cells.space.categories) == (tuple(keys), (True, False))
    rows = pl.DataFrame(ROWS, schema=SCHEMA, orient="row").lazy()
    (found,) = counted([cells], rows, rows.collect_schema(), ())
    expected: Counter[Any] = Counter()
    for row in ROWS:
        key = tuple(missing[name] if value(row, name) is None else value(row, name) for name in by)
        expected[key, row[2]] += row[2] is not None
    assert found.tolist() == [expected[key, label] for key in keys for label in (True, False)]
    assert len(set(found.tolist())) > 6


@pytest.mark.parametrize("policy", ["nulls", "unknown"])
@pytest.mark.parametrize("column", ["size", "age"])
def test_a_public_number_of_records_lets_no_column_leave_any_out(policy: str, column: str) -> None:
    """The first or the second, while the other counts all of its own."""
    counted_under = {"nulls": {"size": "huge", "age": 10}, "unknown": {"size": "huge", "age": 10}}
    counted_under[policy][column] = ob.DROP
    categories = {"size": SIZES, "age": AGES}
    question = Question.of(["size", "age"], categories=categories, **counted_under)
    with pytest.raises(ValueError, match=r"leaves records out, .*number"):
        cells_of(question, kinds_in(pl.LazyFrame(schema=SCHEMA)), len(ROWS))


@pytest.mark.parametrize("by", [("home", "size"), ("size", "home"), ("home", "age", "size")])
def test_no_column_of_the_groups_is_asked_for(by: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"by=.*'size'.*no column twice"):
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


def test_merged_cells_are_in_the_order_in_which_they_were_given() -> None:
    """And hold the cells of one table, each of three columns."""
    cells = list(product(SIZES, AGES, HOMES))
    merge = {"to the right": cells[14:], "first": cells[5:14]}
    merge |= {"a few": [*cells[3:5], cells[0]], "between": cells[1:3]}
    columns = ["size", "age", "home"]
    policy = {"size": "small", "age": 20, "home": "a"}
    labels = {name: LABELS[name] for name in columns}
    rest = {"nulls": policy, "unknown": policy}
    found = counts(Question.of(columns, categories=labels, merge=merge, **rest))
    label_of = {cell: label for label, part in merge.items() for cell in part}

    def label(row, name):
        return value(row, name) if value(row, name) in LABELS[name] else policy[name]

    expected = Counter(label_of[tuple(label(row, name) for name in columns)] for row in ROWS)
    assert list(found) == list(merge)
    assert found == dict(expected)
    assert len(set(found.values())) == len(merge)


# --- spaces
def test_tables_priors_groups_and_counts_keep_the_order_of_their_columns() -> None:
    """Both columns have the same two labels, so that nothing else differs. Of two spaces, the
    one with three categories being the second.
    """
    cells = tuple(product(["yes", "no"], repeat=2))
    one, other = (CountsSpace(cells, 5, axes=axes) for axes in (("b", "a"), ("a", "b")))
    assert one.identifier != other.identifier
    posterior = one.domain, one.metric
    named = ob.t.make_dirichlet_multinomial(*posterior, prior=[1.0, 2.0, 3.0, 4.0])
    assert named.output_domain.descriptor.axes == ("b", "a")
    space = CountsSpace.of_groups(("n", "s"), ("x", "y", "z"), None)
    wanted = (1.0, 2.0, 3.0, 1.0, 2.0, 3.0)
    assert space.as_prior([1.0, 2.0, 3.0]) == wanted
    assert space.as_prior({"z": 3.0, "x": 1.0, "y": 2.0}) == wanted, "by label, not by order"
    alone = CountsSpace(("x", "y", "z"), None)
    assert alone.as_prior({"z": 3.0, "x": 1.0, "y": 2.0}) == (1.0, 2.0, 3.0)
    space = CountsSpace.of_groups((1, True), ("x", "y"), None)
    assert groups_and_labels(space.categories) == ((1, True), ("x", "y"))
    several = CountsOfSeveral((CountsSpace(("a", "b"), 3), CountsSpace(("x", "y", "z"), 3)))
    good, other = np.array([1, 2]), np.array([1, 1, 1])
    assert several.is_member((good, other))
    for wrong in ((good, good), (other, other), (good,), (good, other, good), [good, other]):
        assert not several.is_member(wrong)
