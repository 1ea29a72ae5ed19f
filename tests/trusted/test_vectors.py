"""Counts in OpenDP's own spaces: distances against every neighbour, and chains."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.mathematics.rounding import sqrt_up

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
MO = ("L1Distance<i64>", "L2Distance<f64>", "LInfDistance<i64>")
NORMS = dict(zip(MO, (1, 2, math.inf), strict=True))
AB = pl.Enum(["a", "b"])
SCHEMA = {"x": AB, "y": pl.Boolean, "g": pl.Enum(["p", "q"])}
DOMAIN = dp.domain_of(pl.LazyFrame(schema=SCHEMA), infer=True)
#: What is counted, by add/remove; with a public size nulls need a category.
SOME = {"cells": [("a", True), ("b", False)], "unknown": {"x": "a", "y": True}}
COUNTED: dict[str, Any] = {
    "one column": {"column": "x"},
    "a joint table": {"column": ["x", "y"]},
    "some cells": {"column": ["x", "y"], **SOME},
    "groups": {"by": "g", "categories": {"g": ["p"]}, "column": "x"},
}
NULLS = {"x": "a", "y": True}
RECORDS = list(product(["a", "b"], [True, False], ["p", "q"]))


def counts_of(name, size):
    arguments = COUNTED[name]
    columns = arguments["column"]
    asked = [columns] if isinstance(columns, str) else columns
    nulls = ob.DROP if size is None else {column: NULLS[column] for column in asked}
    metric = dp.symmetric_distance() if size is None else dp.change_one_distance()
    return ob.t.make_categorical_counts(DOMAIN, metric, nulls=nulls, size=size, **arguments)


def frame(rows):
    return pl.LazyFrame(rows, schema=SCHEMA, orient="row")


def neighbours(size, d_in):
    """All pairs of data sets at a distance of at most `d_in`, without what they have in common;
    for a public size both have as many records, and no more differ than there are.
    """
    every = [rows for n in range(d_in + 1) for rows in product(RECORDS, repeat=n)]
    for one, other in product(every, repeat=2):
        if size is None and len(one) + len(other) <= d_in:
            yield one, other
        if size is not None and len(one) == len(other) <= size:
            yield one, other


def moved(counts, size, d_in):
    """By how much the counts of each pair of neighbours differ."""

    def count(rows):
        common = [RECORDS[0]] * (0 if size is None else size - len(rows))
        return np.array(counts(frame([*rows, *common])))

    pairs = list(neighbours(size, d_in))
    known = {rows: count(rows) for rows in {rows for pair in pairs for rows in pair}}
    return [known[one] - known[other] for one, other in pairs]


DISTANCES = [(None, 1), (None, 2), (3, 1), (3, 2), (1, 2)]


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize(("size", "d_in"), DISTANCES)
def test_a_map_is_the_largest_distance_of_all_neighbours(name, size, d_in):
    counts = counts_of(name, size)
    differences = moved(counts, size, d_in)
    for metric, order in NORMS.items():
        claimed = (counts >> ob.t.then_count_vector(MO=metric)).map(d_in)
        largest = max(float(np.linalg.norm(difference, order)) for difference in differences)
        assert claimed == pytest.approx(largest, rel=1e-12), metric
    squared = max(int(difference @ difference) for difference in differences)
    assert (
        Fraction((counts >> ob.t.then_count_vector(MO="L2Distance<f64>")).map(d_in)) ** 2 >= squared
    )


def test_roots_and_distances_are_rounded_up():
    for value in [*range(2000), 2 * 3**40, 2 * (2**62) ** 2, 2**53 + 1, 10**30 + 1]:
        root = sqrt_up(value)
        assert Fraction(root) ** 2 >= value
        if value:
            assert Fraction(math.nextafter(math.nextafter(root, 0.0), 0.0)) ** 2 < value
    assert any(Fraction(math.sqrt(value)) ** 2 < value for value in range(2000)), "to nearest"
    counts = counts_of("one column", 2000)
    vectors = counts >> ob.t.then_count_vector(MO="L2Distance<f64>")
    assert all(Fraction(vectors.map(d_in)) ** 2 >= 2 * d_in**2 for d_in in range(2000))
    assert any(Fraction(math.sqrt(2 * d_in**2)) ** 2 < 2 * d_in**2 for d_in in range(2000))


#: Of OpenDP's measurements of scale 2, the metric, and the loss at distance `d` by its own formula,
#: where one record adds or changes so much in L1, L2 and the largest count.
CHAINS = {
    "Laplace": (MO[0], dp.m.then_laplace(2.0), lambda l1, l2, largest: l1 / 2),
    "Gaussian": (MO[1], dp.m.then_gaussian(2.0), lambda l1, l2, largest: l2**2 / 8),
    "noisy max": (MO[2], dp.m.then_noisy_max(PURE, 2.0), lambda l1, l2, largest: largest),
    "exponential": (MO[2], dp.m.then_noisy_max(ZCDP, 2.0), lambda l1, l2, largest: largest**2 / 8),
    "top 2": (MO[2], dp.m.then_noisy_top_k(PURE, 2, 2.0), lambda l1, l2, largest: 2 * largest),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("counted", COUNTED)
def test_chains_to_opendp_s_measurements_have_the_right_loss(name, counted):
    metric, then, loss = CHAINS[name]
    for size in (None, 9):
        chain = counts_of(counted, size) >> ob.t.then_count_vector(MO=metric) >> then
        for d_in in (0, 1, 2, 5):
            by_hand = (d_in, d_in, d_in) if size is None else (2 * d_in, 2**0.5 * d_in, d_in)
            assert chain.map(d_in) == pytest.approx(loss(*by_hand), rel=1e-12)
        rows = [RECORDS[at % len(RECORDS)] for at in range(9)]
        assert chain(frame(rows)) is not None


def test_bounds_and_identifiers_reach_metrics_spelled_as_opendp_does():
    bounded = ob.t.make_categorical_counts(
        DOMAIN, dp.frame_distance(dp.symmetric_distance()), column="x", nulls="a"
    )
    bounds = [dp.polars.Bound(by=["g"], per_group=2, num_groups=3), dp.polars.Bound(per_group=7)]
    for metric in MO:
        assert (bounded >> ob.t.then_count_vector(MO=metric)).map(bounds) == 6
    counts = counts_of("one column", 9)
    for spelled in (dp.L2Distance[float], "L2Distance<float>", "L2Distance<f64>"):
        assert (counts >> ob.t.then_count_vector(MO=spelled)).map(1) >= 2**0.5
    with pytest.raises(OpenDPException, match=r"L2Distance|L1Distance"):
        counts >> ob.t.then_count_vector() >> dp.m.then_gaussian(1.0)


@pytest.mark.parametrize(("size", "largest"), list(product([None, 9], [1, 2, 3, 4, 7])))
def test_records_that_are_spread_over_counts_reach_every_metric(size, largest):
    distance = ob.Distance.limited(7, largest)
    space = counts_of("one column", size).output_space
    l1, l2, most = (ob.t.make_count_vector(*space, MO=metric).map(distance) for metric in MO)
    pieces = [largest] * (7 // largest) + [7 % largest]
    sides = 1 if size is None else 2
    assert (l1, most) == (sides * 7, largest)
    assert l2 == pytest.approx(math.sqrt(sides * sum(piece**2 for piece in pieces)))


@pytest.mark.parametrize("metric", ["L1Distance<f64>", "L2Distance<i64>", "nonsense", 3, None])
def test_other_metrics_are_refused(metric):
    with pytest.raises(
        ValueError, match=r"MO=.*: .*L1Distance<i64>, L2Distance<f64>, LInfDistance<i64>"
    ):
        counts_of("one column", None) >> ob.t.then_count_vector(MO=metric)
