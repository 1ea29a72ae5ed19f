"""Vectors of categories to counts, without a frame."""

import math
from collections import Counter
from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from opendp.mod import OpenDPException

import opendp_bayes as ob

PURE = dp.max_divergence()
SYMMETRIC, CHANGE_ONE = dp.symmetric_distance(), dp.change_one_distance()
INSERT_DELETE, HAMMING = dp.insert_delete_distance(), dp.hamming_distance()
TEXT = {"categories": ["a", "b"], "unknown": "other"}
ATOMS = {
    "String": (["b", "a"], ["a", "b", "", "ä", "zz"]),
    "bool": (None, [True, False]),
    "i32": ([7, -1], [-1, 7, 0, 2**31 - 1]),
    "i64": ([2**62, -1], [-1, 2**62, 0]),
    "u32": ([7, 1], [1, 7, 2**32 - 1]),
    "u64": ([7, 1], [1, 7, 2**64 - 1]),
}


def vectors(atom="String", size=None):
    return dp.vector_domain(dp.atom_domain(T=atom), size=size)


def counting(metric, size=None, **arguments):
    return ob.t.make_categorical_counts(vectors(size=size), metric, **{**TEXT, **arguments})


@pytest.mark.parametrize("atom", ATOMS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_counts_equal_a_count_in_python(atom, data):
    categories, values = ATOMS[atom]
    own = categories or values
    unknown = data.draw(st.sampled_from([own[0], "other" if atom == "String" else 99, ob.DROP]))
    policy = {} if categories is None else {"unknown": unknown}
    rows = data.draw(st.lists(st.sampled_from(values), max_size=12))
    counts = (vectors(atom), SYMMETRIC) >> ob.t.then_categorical_counts(
        categories=categories, **policy
    )
    counted = Counter(row if row in own else unknown for row in rows)
    labels = [*own, *([unknown] if policy and unknown not in (*own, ob.DROP) else [])]
    assert counts(rows).tolist() == [counted[label] for label in labels]


def test_they_equal_opendp_s_own_whose_chains_may_come_before():
    rows = ["a", "zz", "b", "a", ""]
    own = dp.t.make_count_by_categories(
        vectors(), SYMMETRIC, categories=["a", "b"], TOA="i64", MO="L1Distance<i64>"
    )
    ours = counting(SYMMETRIC) >> ob.t.then_count_vector()
    assert list(ours(rows)) == list(own(rows)) == [2, 1, 2]
    assert [ours.map(d) for d in range(5)] == [own.map(d) for d in range(5)]
    counts = (
        (vectors(), SYMMETRIC)
        >> dp.t.then_cast_default(TOA="i32")
        >> ob.t.then_categorical_counts(categories=[1, 2], unknown=0)
    )
    assert counts(["1", "x", "2", "1"]).tolist() == [2, 1, 1]
    domain = dp.domain_of(pl.LazyFrame({"x": [True]}), infer=True)
    with pytest.raises(TypeError, match=r"column=None: .*name of a column"):
        ob.t.make_categorical_counts(domain, SYMMETRIC, **TEXT)


@pytest.mark.parametrize(
    ("metric", "size", "per_record", "at"),
    [
        (SYMMETRIC, None, {0: 0, 1: 1, 2: 2, 7: 7}, None),
        (INSERT_DELETE, None, {0: 0, 1: 1, 2: 2, 7: 7}, None),
        (SYMMETRIC, 9, {0: 0, 1: 1, 2: 1, 7: 4}, 9),
        (INSERT_DELETE, 9, {0: 0, 1: 1, 2: 1, 7: 4}, 9),
        (CHANGE_ONE, 9, {0: 0, 1: 1, 2: 2, 7: 7}, 9),
        (HAMMING, 9, {0: 0, 1: 1, 2: 2, 7: 7}, 9),
    ],
)
def test_distances_and_sizes(metric, size, per_record, at):
    counts = counting(metric, size)
    assert {d_in: counts.map(d_in) for d_in in per_record} == per_record
    assert counts.output_domain == counting(CHANGE_ONE if at else SYMMETRIC, at).output_domain
    relation = "change-one" if at else "add/remove"
    assert repr(counts.output_metric) == f"CountsDistance({relation})"


ROWS = [rows for n in range(4) for rows in product(["a", "b", "zz"], repeat=n)]


def edits(one, other):
    """The smallest number of insertions and deletions from one vector to the other."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return edits(one[1:], other[1:])
    return 1 + min(edits(one[1:], other), edits(one, other[1:]))


def more(one, other):
    """The number of records of one vector that the other lacks, in whatever order."""
    return sum((Counter(one) - Counter(other)).values())


DISTANCES = {
    "symmetric": (SYMMETRIC, lambda a, b: more(a, b) + more(b, a)),
    "insert-delete": (INSERT_DELETE, edits),
    "Hamming": (HAMMING, lambda a, b: sum(x != y for x, y in zip(a, b, strict=True))),
    "change-one": (CHANGE_ONE, more),
}


#: Changes are between vectors of one size.
SIZES = [*product(DISTANCES, [3]), ("symmetric", None), ("insert-delete", None)]


@pytest.mark.parametrize(("name", "size"), SIZES)
@pytest.mark.parametrize("d_in", [1, 2, 3])
def test_the_map_holds_for_all_vectors_and_is_tight(name, size, d_in):
    metric, distance = DISTANCES[name]
    vector = counting(metric, size) >> ob.t.then_count_vector()
    rows = [row for row in ROWS if size in (None, len(row))]
    counts = {row: np.array(vector(list(row))) for row in rows}
    moved = [
        int(np.abs(counts[one] - counts[other]).sum())
        for one, other in product(rows, repeat=2)
        if distance(one, other) <= d_in
    ]
    assert max(moved) <= vector.map(d_in)
    # Of one size, an odd number of records added and removed is no more than the even one below.
    if not (size and metric in (SYMMETRIC, INSERT_DELETE) and d_in % 2):
        assert max(moved) == vector.map(d_in)


@pytest.mark.parametrize("atom", ["i32", "i64", "u32", "u64"])
@pytest.mark.parametrize("metric", [SYMMETRIC, INSERT_DELETE, CHANGE_ONE, HAMMING], ids=repr)
def test_amplification_by_a_sample_of_a_population(atom, metric):
    size, population = 40, 1000
    posterior = (
        (vectors(atom, size), metric)
        >> ob.t.then_categorical_counts(categories=[0, 1], unknown=0)
        >> ob.t.then_dirichlet_multinomial(prior=1.0)
    )
    for made in (
        posterior >> ob.m.then_knorm_parameters(PURE, 2.0),
        posterior >> ob.m.then_laplace_parameters(PURE, 0.7),
    ):
        amplified = dp.c.make_population_amplification(made, population)
        for d_in in (1, 2, 3):
            expected = math.log1p(size / population * math.expm1(made.map(d_in)))
            assert amplified.map(d_in) == pytest.approx(expected, rel=1e-12)
            assert amplified.map(d_in) < made.map(d_in)
        assert amplified([0, 1] * 20).categories == (0, 1)


def test_amplification_needs_the_size_and_a_wrong_one_fails():
    made = (
        (vectors("i32"), SYMMETRIC)
        >> ob.t.then_categorical_counts(categories=[0, 1], unknown=0)
        >> ob.t.then_dirichlet_multinomial(prior=1.0)
        >> ob.m.then_laplace_parameters(PURE, 1.0)
    )
    with pytest.raises(OpenDPException, match=r"(?i)size"):
        dp.c.make_population_amplification(made, 1000)
    with pytest.raises(OpenDPException, match="records is not size=3"):
        counting(CHANGE_ONE, 3)(["a"])


DROPPED = {"unknown": ob.DROP}
DISCRETE = {"metric": dp.discrete_distance()}
REFUSED = {
    "a column": (
        {"column": "x"},
        {},
        TypeError,
        "column='x', by=None: must be left out, because a vector",
    ),
    "no size": ({"metric": HAMMING}, {}, ValueError, "size=None: under change-one neighbours"),
    "a private size": ({}, {"size": 3}, ValueError, "size=3: the number of records is private"),
    "another size": ({"size": 4}, {"size": 3}, ValueError, "size=3: must be 4, that of the input"),
    "no policy": ({}, {"unknown": None}, ValueError, "unknown=None: column 'values' of type"),
    "no categories": ({}, {"categories": None}, ValueError, "categories=None: column 'values'"),
    "of a public number": ({"size": 4}, DROPPED, ValueError, r"ob\.DROP leaves .* is public"),
    "cells": ({}, {"cells": [("a",)]}, TypeError, "cells=.*: must be .* of a joint table"),
    "floats": ({"atom": "f64"}, {}, TypeError, "must be a vector of text, integers or booleans"),
    "another metric": (DISCRETE, {}, ValueError, r"DiscreteDistance\(\): must be symmetric_dist"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    space, arguments, kind, message = REFUSED[name]
    domain = vectors(space.get("atom", "String"), space.get("size"))
    named = {"column": space["column"]} if "column" in space else {}
    with pytest.raises(kind, match=message):
        ob.t.make_categorical_counts(
            domain, space.get("metric", SYMMETRIC), **named, **{**TEXT, **arguments}
        )
