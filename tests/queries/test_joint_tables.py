"""Joint tables: counts, neighbours of small frames, what has no cell, Contexts, refusals."""

import math
from collections import Counter
from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import opendp_bayes as ob
from opendp_bayes.queries.cells_of import LARGEST_TABLE, check_combinations
from tests.helpers.contexts import plain_context
from tests.helpers.neighbours import every_frame, neighbours
from tests.helpers.sweeps import slow, some_of

SYMMETRIC, CHANGE_ONE = dp.symmetric_distance(), dp.change_one_distance()
REGION = pl.Enum(["north", "south"])
SCHEMA = {"region": REGION, "vote": pl.String}
COLUMNS = ["region", "vote"]
VOTES = {"vote": ["yes", "no"]}
#: The nulls of one column are a category of their own, those of the other one of the categories.
POLICY = {"nulls": {"region": "nowhere", "vote": "no"}, "unknown": {"vote": "other"}}
CELLS = [("north", "yes"), ("north", "no"), ("south", "no"), ("nowhere", "other")]
UNKNOWN = {"a cell": ("south", "no"), "a new cell": ("none", "none")}
VALUES = list(product(["north", "south", None], ["yes", "no", "??", None]))


def frame_of(rows, schema=SCHEMA):
    return pl.LazyFrame(list(rows), schema=schema, orient="row")


def counting(metric=SYMMETRIC, schema=SCHEMA, **arguments):
    asked = {"column": COLUMNS, "categories": VOTES, **POLICY, **arguments}
    domain = dp.domain_of(frame_of([], schema), infer=True)
    return ob.t.make_categorical_counts(domain, metric, **asked)


@pytest.mark.parametrize("d_in", [1, 2, 3])
@pytest.mark.parametrize("metric", [SYMMETRIC, CHANGE_ONE], ids=["add/remove", "change-one"])
def test_the_count_vector_of_a_table_moves_by_what_its_map_says(metric, d_in):
    """And by no less for some rows: a record changed leaves one cell and enters another."""
    changed = metric == CHANGE_ONE
    rows = [("north", "yes")] * 4
    moved = [("south", "no")] * d_in + rows[d_in:] if changed else rows + rows[:1] * d_in
    vector = counting(metric, size=4 if changed else None) >> ob.t.then_count_vector()
    before, after = (np.array(vector(frame_of(one))) for one in (rows, moved))
    assert np.abs(after - before).sum() == vector.map(d_in) == (2 if changed else 1) * d_in


def in_a_cell(cell, label="other"):
    """The policy for unknown votes, and the cell for combinations that have none."""
    return {"vote": label, ("region", "vote"): cell}


def cell_of(row, cells=None, unknown=None):
    """The definition, written out."""
    region, vote = row
    cell = (region or "nowhere", {None: "no", "??": "other"}.get(vote, vote))
    return cell if cells is None or cell in cells else unknown


# --- counts
def test_cells_are_every_combination_of_labels_in_the_order_of_the_columns():
    space = counting().output_domain.descriptor
    assert space.axes == ("region", "vote")
    assert space.labels == tuple(product(["north", "south", "nowhere"], ["yes", "no", "other"]))


@pytest.mark.parametrize("unknown", [None, *UNKNOWN.values()])
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.sampled_from(VALUES), max_size=15))
def test_counts_of_random_frames_equal_a_count_in_python(unknown, rows):
    chosen = {} if unknown is None else {"cells": CELLS, "unknown": in_a_cell(unknown)}
    count = counting(**chosen)
    labels = count.output_domain.descriptor.labels
    expected = Counter(cell_of(row, chosen.get("cells"), unknown) for row in rows)
    assert dict(zip(labels, count(frame_of(rows)).tolist(), strict=True)) == {
        label: expected[label] for label in labels
    }
    if unknown is not None:
        assert labels == tuple(CELLS) if unknown in CELLS else (*CELLS, unknown)


def test_one_label_is_for_every_column_and_a_list_of_one_column_is_a_table():
    schema = {"region": pl.String, "vote": pl.String}
    categories = {"region": ["n"], "vote": ["y"]}
    count = counting(schema=schema, categories=categories, nulls="?", unknown="?")
    assert count.output_domain.descriptor.labels == tuple(product(["n", "?"], ["y", "?"]))
    one = counting(column=["region"], categories=None, nulls={"region": "north"}, unknown=None)
    assert one.output_domain.descriptor.labels == (("north",), ("south",))


def test_the_space_is_told_from_others_by_its_columns_and_cells():
    area = {"schema": {"area": REGION, "vote": pl.String}, "column": ["area", "vote"]}
    every = (
        counting(),
        counting(cells=CELLS, unknown=in_a_cell(CELLS[0])),
        counting(cells=CELLS[::-1], unknown=in_a_cell(CELLS[0])),
        counting(schema={"vote": pl.String, "region": REGION}, column=["vote", "region"]),
        counting(**area, nulls={"area": "nowhere", "vote": "no"}),
    )
    assert len({repr(count.output_domain) for count in every}) == 5


# --- stability and privacy against every neighbour of small frames
SMALL = every_frame(VALUES, 2)
SCALE = 1.5
TABLES = {
    "all cells": {},
    "some cells": {"cells": CELLS, "unknown": in_a_cell(UNKNOWN["a cell"])},
    "some cells and a new one": {"cells": CELLS, "unknown": in_a_cell(UNKNOWN["a new cell"])},
}


RELATIONS = {"add/remove": (SYMMETRIC, None), "change-one": (CHANGE_ONE, 2)}


def largest_distance(count, relation, d_in):
    """The largest distance of the counts of neighbours: records moved, or added and removed."""
    counts = {rows: np.array(count(rows)) for rows in SMALL}
    pairs = neighbours(VALUES, 2, relation, d_in)
    moved = [np.abs(counts[a] - counts[b]).sum() for a, b in pairs]
    return max(moved) / (2 if relation == "change-one" else 1)


@pytest.mark.parametrize(
    ("table", "relation", "d_in"), some_of(product(TABLES, RELATIONS, [1, 2]), 5)
)
def test_the_map_holds_for_all_neighbours_and_is_tight(table, relation, d_in):
    metric, size = RELATIONS[relation]
    count = counting(metric, size=size, **TABLES[table])
    cells = {row: int(np.argmax(counting(**TABLES[table])(frame_of([row])))) for row in VALUES}
    for rows in list(product(VALUES, repeat=2))[::7]:  # a record's cell does not depend on others
        expected = np.bincount([cells[row] for row in rows], minlength=max(cells.values()) + 1)
        found = count(frame_of(rows))
        assert found[: expected.size].tolist() == expected.tolist()
        assert found.sum() == 2
    k = count.output_domain.descriptor.k

    def quick(rows):
        return np.bincount([cells[row] for row in rows], minlength=k)

    assert largest_distance(quick, relation, d_in) == count.map(d_in) == d_in

    # Negative control: a record with a null counted in two cells.
    def twice(rows):
        return quick(rows) + quick([row for row in rows if None in row])

    assert largest_distance(twice, relation, d_in) > count.map(d_in)


#: One with each distance; the others are slow.
LARGE = [("some cells", 2), ("some cells and a new one", 1)]
LARGE += slow([("some cells", 1), ("some cells and a new one", 2)])


def knorm_losses(first, second, scale, reach=4):
    """The log-ratios of the probabilities of every draw up to a distance, for K-norm noise."""
    k = len(first)
    steps = np.array([z for z in product(range(-reach, reach + 1), repeat=k) if sum(z) == 0])
    norms = [np.abs(steps + first - counts).sum(axis=1) / 2 for counts in (first, second)]
    return (norms[1] - norms[0]) / scale


@pytest.mark.parametrize(("table", "d_in"), LARGE)
def test_the_loss_of_a_table_holds_for_all_neighbours_and_is_tight(table, d_in):
    count = counting(CHANGE_ONE, size=2, **TABLES[table])
    posterior = count >> ob.t.then_dirichlet_multinomial(prior=1.0)
    measurement = posterior >> ob.m.then_knorm_parameters(dp.max_divergence(), SCALE)
    cells = {row: tuple(counting(**TABLES[table])(frame_of([row])).tolist()) for row in VALUES}
    pairs = {
        tuple(tuple(np.sum([cells[row] for row in rows], axis=0).tolist()) for rows in pair)
        for pair in neighbours(VALUES, 2, "change-one", d_in)
    }

    def worst_at(scale):
        return max(knorm_losses(np.array(a), np.array(b), scale, 3).max() for a, b in pairs)

    claimed = measurement.map(d_in)
    assert worst_at(SCALE) == pytest.approx(claimed, rel=1e-9) == d_in / SCALE
    assert worst_at(0.9 * SCALE) > claimed * 1.1, "too little noise is noticed"


# --- Contexts
def context(rows, unit, loss=400.0, parts=1):
    return plain_context(frame_of(rows), unit, {"epsilon": loss}, parts)


ROWS = VALUES * 3


@pytest.mark.parametrize("unit", [{"contributions": 1}, {"changes": 1}])
def test_a_table_in_a_context(unit):
    """With so little noise that the draw is the data, except with probability below 1e-9."""
    size = len(ROWS) if "changes" in unit else None
    whole = context(ROWS, unit, parts=2)
    query = ob.posterior(whole.query(), COLUMNS, categories=VOTES, size=size, **POLICY)
    released = query.release()
    expected = Counter(map(cell_of, ROWS))
    assert released.axes == ("region", "vote")
    assert dict(zip(released.categories, released.counts, strict=True)) == dict(expected)
    assert len(whole.current_privacy_loss()) == 1
    asked = {"categories": VOTES, **POLICY, "unknown": in_a_cell(("-", "-")), "cells": CELLS}
    some = ob.posterior(whole.query(), COLUMNS, size=size, **asked).release()
    expected = Counter(cell_of(row, CELLS, ("-", "-")) for row in ROWS)
    assert dict(zip(some.categories, some.counts, strict=True)) == dict(expected)
    assert some.guarantee.relation == ("add/remove" if size is None else "change-one")


def test_a_table_in_every_group_and_groups_of_several_columns():
    schema = {**SCHEMA, "sex": pl.String}
    rows = [(region, vote, sex) for region, vote in VALUES for sex in ("f", "m", None)]
    whole = plain_context(frame_of(rows, schema), loss={"epsilon": 800.0}, parts=2)
    labels = {**VOTES, "sex": ["m"]}
    nulls = {**POLICY, "nulls": {"region": "nowhere", "vote": "no", "sex": "none"}}
    tables = ob.posterior(whole.query(), COLUMNS, by="sex", categories=labels, **nulls).release()
    expected = Counter(map(cell_of, VALUES))
    for group in ("m", "none"):
        assert tables[group].axes == ("region", "vote")
        found = dict(zip(tables[group].categories, tables[group].counts, strict=True))
        assert found == dict(expected)
    labels = {"vote": ["yes", "no"], "region": ["north"], "sex": ["f"]}
    nulls = {"vote": "no", "region": "?", "sex": "?"}
    query = whole.query().group_by("region", "sex")
    groups = ob.posterior(query, "vote", categories=labels, unknown="no", nulls=nulls).release()
    assert groups.groups == tuple(product(["north", "?"], ["f", "?"]))
    assert groups.counts == ((1, 3),) * 4


# --- what is refused
ONE = {"column": "region", "categories": None, "nulls": "north", "unknown": None}


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"column": []}, ValueError, r"column=\[\]: .*at least one"),
        ({"column": ["vote", "vote"]}, ValueError, "and each once"),
        ({"column": ["vote", 5]}, TypeError, r"column=\['vote', 5\]: .*name of a"),
        ({"column": ["region", "vote", "x"]}, ValueError, "column='x': is not a column"),
        ({"categories": ["yes"]}, TypeError, r"categories=\['yes'\]: of several columns"),
        ({"categories": {"x": ["yes"]}}, ValueError, "'x' is not among"),
        ({"nulls": {"votes": "no"}}, ValueError, r"nulls=\{'votes': 'no'\}: 'votes' is not among"),
        ({"nulls": {"vote": "no"}}, ValueError, "nulls=None: column 'region' may hold nulls"),
        ({"cells": CELLS}, ValueError, "cells: leaves out 5 of"),
        ({"unknown": ("a", "b")}, ValueError, r"unknown=\('a', 'b'\): every combination"),
        ({"cells": [("north",)]}, TypeError, r"cells: \('north',\) .*tuple of 2"),
        ({"cells": [("north", "yes", "x")]}, TypeError, r"cells: \('north', .*tuple of 2"),
        ({"cells": ["no"]}, TypeError, r"cells: 'no' .*tuple of 2"),
        ({"cells": [("north", 0.5)]}, TypeError, "must hold labels"),
        ({"cells": [("north", "x")]}, ValueError, r"\('north', 'x'\) .*not a label"),
        ({"cells": CELLS + CELLS[:1]}, ValueError, "is there twice"),
        ({"cells": CELLS[:1], "unknown": CELLS[0]}, ValueError, r"cells=\[.*\]: .*at least 2"),
        ({**ONE, "cells": CELLS}, ValueError, "belongs to a joint table"),
        ({**ONE, "unknown": ("a", "b")}, TypeError, r"unknown=\('a', 'b'\): must be a label"),
        ({"cells": CELLS, "unknown": ("a",)}, TypeError, r"unknown: \('a',\) .*tuple of 2"),
        ({"cells": CELLS, "unknown": ("a", 0.5)}, TypeError, "must hold labels"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        counting(**arguments)


def test_one_cell_and_another_for_all_else_suffice():
    space = counting(cells=CELLS[:1], unknown=("a", "b")).output_domain.descriptor
    assert space.categories == (CELLS[0], ("a", "b"))


def test_a_cell_for_all_others_that_reads_like_another_is_refused():
    with pytest.raises(ValueError, match=r"unknown=\(.North., .yes.\): .*be a new"):
        counting(cells=CELLS, unknown=in_a_cell(("North", "yes")))
    with pytest.raises(ValueError, match=r"unknown='North': .*new category beside 'north'"):
        counting(cells=CELLS, unknown=("North", "yes"))


LABELS = {"region": ["north", "south"], "vote": ["yes", "no"]}


def counted_cells(rows, **arguments):
    schema = {"region": pl.String, "vote": pl.String}
    arguments = {"schema": schema, "categories": LABELS, "cells": CELLS[:3], **arguments}
    made = counting(**{"nulls": {"region": "south", "vote": "no"}, **arguments})
    counts = made(frame_of(rows, schema)).tolist()
    return dict(zip(made.output_domain.descriptor.labels, counts, strict=True))


def test_one_cell_for_everything_else_has_unknown_values_and_combinations_without_a_cell():
    rows = [*product(["north", "south", "??"], ["yes", "no", "??"]), (None, None)]
    found = counted_cells(rows, unknown=("?", "?"))
    assert found == dict.fromkeys(CELLS[:2], 1) | {CELLS[2]: 2, ("?", "?"): 6}
    # One of the cells gives its labels to unknown values.
    found = counted_cells(rows, unknown=("south", "no"))
    assert found == {("north", "yes"): 1, ("north", "no"): 2, ("south", "no"): 7}


def test_everything_else_is_left_out_where_the_number_of_records_is_private():
    rows = [*product(["north", "south", "??"], ["yes", "no", "??"]), (None, None)]
    assert counted_cells(rows, unknown=ob.DROP) == dict.fromkeys(CELLS[:2], 1) | {CELLS[2]: 2}
    only = {"region": "south", "vote": "no", ("region", "vote"): ob.DROP}
    found = counted_cells(rows, unknown=only)
    assert found == {("north", "yes"): 1, ("north", "no"): 2, ("south", "no"): 5}
    for unknown in (ob.DROP, only):
        with pytest.raises(ValueError, match=r"DROP leaves records out, .*number"):
            counted_cells(rows, unknown=unknown, metric=CHANGE_ONE, size=10)


def test_a_cell_of_a_label_that_python_takes_for_equal_is_refused():
    of = {"categories": {"vote": [1, 2]}, "nulls": {"region": "north", "vote": 2}}
    unknown = {"vote": 2, ("region", "vote"): ("north", 1)}
    with pytest.raises(ValueError, match="not a label of its"):
        counting(schema=SCHEMA | {"vote": pl.Int64}, **of, unknown=unknown, cells=[("north", True)])


def test_a_table_that_is_too_large_is_refused():
    schema = {name: pl.Enum([str(i) for i in range(1 << 12)]) for name in ("a", "b")}
    assert math.prod([1 << 12] * 2) > LARGEST_TABLE
    of = {"schema": schema, "column": ["a", "b"], "categories": None, "nulls": "0"}
    with pytest.raises(ValueError, match=r"would be 16777216 categories or cells, .*at most"):
        counting(**of, unknown=("0", "1"), cells=[("0", "0")])
    with pytest.raises(ValueError, match="cells: would be 16777216"):
        counting(**of, unknown=None)
    with pytest.raises(ValueError, match="must be at most 5000000"):  # as docs/groups.md says
        check_combinations("column", ["a", "b"], [1 << 12, 1 << 11])
    check_combinations("column", ["a"], [LARGEST_TABLE])
    with pytest.raises(ValueError, match=f"would be {LARGEST_TABLE + 1} categories"):
        check_combinations("column", ["a"], [LARGEST_TABLE + 1])


def test_groups_of_a_table_that_are_too_many_are_refused():
    sizes = {"a": 1 << 12, "b": 1 << 11, "c": 2}
    schema = {name: pl.Enum([str(i) for i in range(k)]) for name, k in sizes.items()}
    domain = dp.domain_of(frame_of([], schema), infer=True)
    few = r"by=\['a', 'b'\]: would be \d+ categories or cells, .* at most 5000000, .* Merge"
    many = "by: would be 8388608 categories"
    for by, column, message in ((["a", "b"], "c", few), ("a", ["b"], many)):
        with pytest.raises(ValueError, match=message):
            ob.t.make_categorical_counts(domain, SYMMETRIC, by=by, column=column, nulls="0")
