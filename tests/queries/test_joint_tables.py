"""Joint tables: counts, neighbours of small frames, what has no cell, Contexts, refusals."""

from collections import Counter
from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import opendp_bayes as ob
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
CELLS = [("north", "yes"), ("north", "no"), ("south", "no"), ("nowhere", "no")]
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


def in_a_cell(cell):
    """The labels for unknown values, whose cell is that for combinations that have none."""
    return dict(zip(COLUMNS, cell, strict=True))


def cell_of(row, cells=None, unknown=None):
    """The definition, written out."""
    region, vote = row
    of_unknown = "other" if unknown is None else unknown[1]
    cell = (region or "nowhere", {None: "no", "??": of_unknown}.get(vote, vote))
    return cell if cells is None or cell in cells else unknown


# --- counts


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


def test_a_table_in_every_group_has_its_variables():
    rows = [(region, vote, sex) for region, vote in VALUES for sex in ("f", "m")]
    frame = frame_of(rows, {**SCHEMA, "sex": pl.String})
    for unit in ("contributions", "changes"):
        whole = plain_context(frame, unit={unit: 1}, loss={"epsilon": 800.0})
        labels, policy = {**VOTES, "sex": ["f", "m"]}, {**POLICY, "size": None}
        if unit == "changes":
            policy |= {"size": len(rows)}
        tables = ob.posterior(whole.query(), COLUMNS, by="sex", categories=labels, **policy)
        assert {table.axes for table in tables.release().values()} == {("region", "vote")}


# --- what is refused
ONE = {"column": "region", "categories": None, "nulls": "north", "unknown": None}


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"column": []}, ValueError, r"column=\[\], by=None: .*at least one"),
        ({"column": ["vote", "vote"]}, ValueError, "and no column twice"),
        ({"column": ["vote", 5]}, TypeError, r"column=\['vote', 5\]: .*list of names"),
        ({"column": ["region", "vote", "x"]}, ValueError, "column='x': is not a column"),
        ({"categories": ["yes"]}, TypeError, r"categories=\['yes'\]: of several columns"),
        ({"categories": {"x": ["yes"]}}, ValueError, "'x' is not among"),
        ({"nulls": {"votes": "no"}}, ValueError, r"nulls=\{'votes': 'no'\}: 'votes' is not among"),
        ({"nulls": {"vote": "no"}}, ValueError, "nulls=None: column 'region' may hold nulls"),
        ({"cells": CELLS}, ValueError, "cells: leaves out 5 of"),
        ({"unknown": ("a", "b")}, TypeError, r"unknown=\('a', 'b'\): must be a label"),
        (
            {"cells": CELLS, "unknown": {**in_a_cell("ab"), "vote": ob.DROP}},
            ValueError,
            "leaves out",
        ),
        ({"cells": [("north",)]}, TypeError, r"cells: \('north',\) .*tuple of 2"),
        ({"cells": [("north", "yes", "x")]}, TypeError, r"cells: \('north', .*tuple of 2"),
        ({"cells": ["no"]}, TypeError, r"cells: 'no' .*tuple of 2"),
        ({"cells": [("north", 0.5)]}, ValueError, r"\('north', 0.5\) .*not a label"),
        ({"cells": [("north", ["no"])]}, ValueError, r"\('north', \['no'\]\) .*not a label"),
        ({"cells": [("north", "x")]}, ValueError, r"\('north', 'x'\) .*not a label"),
        ({"cells": CELLS + CELLS[:1]}, ValueError, "is there twice"),
        (
            {"cells": CELLS[:1], "unknown": in_a_cell(CELLS[0])},
            ValueError,
            r"cells=\[.*\]: .*at least 2",
        ),
        ({**ONE, "cells": CELLS}, TypeError, "of a joint table"),
        ({**ONE, "unknown": ("a", "b")}, TypeError, r"unknown=\('a', 'b'\): must be a label"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        counting(**arguments)
