"""Limits on the rows of an identifier: which steps may look at several rows, and which not."""

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import stable_plans as query_plan
from tests.helpers.contexts import plain_context
from tests.helpers.leaking_plans import SCHEMA, C, counted, unchecked
from tests.helpers.plan_queries import FRAME, OF_I, Bound, of_persons, query


@pytest.mark.parametrize(
    "plan",
    [
        lambda q: q.truncate_per_group(2),
        lambda q: q.truncate_per_group(2, keep="first"),
        lambda q: q.truncate_per_group(2, keep="last"),
        lambda q: q.truncate_per_group(2, by=["s"]).truncate_per_group(2, keep="last"),
        lambda q: q.truncate_per_group(3).truncate_per_group(1, by=["s", "i"]),
        lambda q: q.with_columns(s=C("s").cast(pl.Enum(["a"]))).truncate_per_group(2),
        lambda q: q.filter(C("x").is_finite()).truncate_per_group(2),
        lambda q: q.filter(pl.int_range(pl.len()).over("p") < 2),
    ],
)
def test_limits_on_the_rows_of_an_identifier_are_accepted(plan):
    assert ob.posterior(plan(query(of_persons())), **OF_I).release().d_in > 0


@pytest.mark.parametrize(
    "predicate",
    [
        pl.int_range(pl.len()).over("p", order_by="i") < 1,
        C("i").over("p") < 1,
        C("i").sum().over("p") < 1,
        C("i").rank("ordinal").over("p") < 1,
        pl.int_range(pl.len()).sort_by(C("i").max().over("x")).over("p") < 1,
        (pl.int_range(pl.len()).over("p") < 1) & (C("i") > 0),
        pl.int_range(pl.len()).over("p") != 1,
        pl.int_range(pl.len()).over("p") <= 1,
        pl.lit(2) > pl.int_range(pl.len()).over("p"),
        (pl.int_range(pl.len()).over("p") < 2) & (pl.int_range(pl.len()).over("p") < 3),
        pl.int_range(pl.len()).sample(3).over("p") < 1,
        pl.int_range(pl.len()).sort_by("i").over("p") < 1,
        pl.struct("s").rank("dense").over("p") < 3,
        C("s").rank("dense", descending=True).over("p") < 3,
        pl.struct("s").rank("min").over("p") < 1,
        pl.max_horizontal("i", "x").over("p") < 1,
        pl.int_range(pl.len()).reverse().sort_by("i").over("p") < 1,
        pl.int_range(pl.len()).sort_by("i").shuffle().over("p") < 1,
        # Also by the seed 0, which Python takes for nothing.
        *(pl.int_range(pl.len()).shuffle(seed=seed).over("p") < 1 for seed in (0, 5)),
    ],
)
def test_other_windows_are_refused(predicate):
    with pytest.raises(ValueError, match=r"filter: over looks .*Only `truncate"):
        ob.posterior(query(of_persons()).filter(predicate), **OF_I)


#: Of 1.5 OpenDP 0.16 counts one row, and polars keeps two, numbered 0 and 1.
BROKEN = [(1.5, "1.5"), (np.float32(1.5), "1.5"), (True, "True"), ("9", "'9'")]
BROKEN += [(pl.lit(1) + pl.lit(1), "BinaryExpr"), (C("i"), "Column"), ([1, 2], "1, 2")]


@pytest.mark.parametrize(("limit", "shown"), BROKEN)
def test_limits_that_are_not_one_whole_number_are_refused(limit, shown):
    message = rf"filter: a limit of {shown} is not one whole number, .* Pass one, as in `truncate"
    with pytest.raises(ValueError, match=message):
        ob.posterior(query(of_persons()).truncate_per_group(limit), **OF_I)


def test_infinite_limits_and_those_without_the_identifier_are_refused():
    """By OpenDP, whose Bounds are about identifiers."""
    with pytest.raises(ValueError, match="filter: an infinite or undefined number"):
        ob.posterior(query(of_persons()).truncate_per_group(float("inf")), **OF_I)
    made = query(of_persons()).filter(pl.int_range(pl.len()).over("s") < 2)
    with pytest.raises(ValueError, match="failed to find identifier column"):
        ob.posterior(made, **OF_I)


@pytest.mark.parametrize("limit", [2, np.int64(2), np.uint8(2), pl.lit(2, pl.Int128)])
def test_whole_numbers_of_any_type_are_limits(limit):
    released = ob.posterior(query(of_persons()).truncate_per_group(limit), **OF_I).release()
    assert released.d_in == 2


def test_without_the_gate_a_limit_of_one_and_a_half_keeps_two_rows(monkeypatch):
    """The negative control: OpenDP would state a distance of 1."""
    monkeypatch.setattr(query_plan, "check_plan", unchecked)
    of_one = {name: values * 2 for name, values in {"p": [1], "x": [0.5], "s": ["a"]}.items()}
    made = query(of_persons()).truncate_per_group(1.5, keep="first")
    assert ob.posterior(made, **OF_I).release().d_in == 1
    plan = lambda q: q.truncate_per_group(1.5, keep="first")  # noqa: E731
    assert counted({**of_one, "i": [0, 1]}, plan, OF_I, of_persons()) == [1, 1]


#: One person of one row moved 13 of 41 rows by the second, and up to six of a person were kept.
SORTED = [dp.polars.SortBy(["i"]), dp.polars.SortBy(["i", "s"])]


@pytest.mark.parametrize("order", SORTED)
def test_limits_in_the_order_of_columns_or_of_groups_are_refused_with_another(order):
    message = "filter: over looks at other rows.* sort the frame before the Context, and instead of"
    for made in (
        query(of_persons()).truncate_per_group(1, keep=order),
        query(of_persons()).truncate_per_group(1, by=["s"]).truncate_num_groups(3, ["s"], "first"),
    ):
        with pytest.raises(ValueError, match=message):
            ob.posterior(made, **OF_I)
    limited = query(of_persons()).truncate_per_group(1, by=["s"]).truncate_per_group(3)
    assert ob.posterior(limited, **OF_I | {"column": "s", "categories": ["a", "b"]}).release().d_in


def test_limits_by_computed_columns_are_refused_until_they_have_a_name():
    made, half = query(of_persons()), C("i") // 2
    for by in (["s", half], [half, "s"]):
        with pytest.raises(ValueError, match=r"filter: truncation .*computed column"):
            ob.posterior(made.truncate_per_group(1, by=by), **OF_I)
    limited = made.with_columns(half=half).truncate_per_group(1, by=["half"]).truncate_per_group(2)
    asked = {"categories": [0, 1], "nulls": 0, "unknown": 0}
    assert ob.posterior(limited, "half", **asked).release().d_in == 2


def test_columns_that_an_earlier_step_computed_are_not_forgotten():
    """Bounds by them limit the number of rows alone, whatever is computed after them."""
    frame, high = pl.LazyFrame(FRAME, schema=SCHEMA), C("i") > 1
    of = plain_context(frame, {"contributions": 1, "identifier": "p"}, {"rho": 0.5}, 2)
    asked = {"nulls": "missing", "mechanism": "gaussian_parameters"}
    scales = set()
    for plan in (
        lambda q: q.with_columns(high=high),
        lambda q: q.with_columns(high=high).with_columns(t=C("i")),
    ):
        limited = plan(of.query()).truncate_per_group(1, by=["high"]).truncate_per_group(2)
        scales.add(ob.posterior(limited, "high", **asked).release().mechanism.scale)
    assert len(scales) == 1


SEEDED = pl.int_range(pl.len()).shuffle(seed=5).over("p") < 1


def test_without_the_gate_a_seed_lets_one_person_more_move_others(monkeypatch):
    """Negative control: a frame without a fixed order, whose sort by two columns leaves ties."""
    monkeypatch.setattr(query_plan, "check_plan", unchecked)
    rng = np.random.default_rng(1)
    persons, values = rng.permutation(np.repeat(np.arange(4000), 5)), rng.integers(0, 16, 20_000)
    columns = {"p": persons, "x": values % 3 * 1.0, "s": values.astype(str), "i": values}
    frame = pl.DataFrame(columns, schema=SCHEMA)
    one_more = pl.concat([frame.head(1).with_columns(p=pl.lit(-1, pl.Int64)), frame])
    every_value = OF_I | {"categories": list(range(16))}
    order = "x", C("i") // 8
    here, there = (
        counted(of.lazy().sort(*order), lambda q: q.filter(SEEDED), every_value, of_persons())
        for of in (frame, one_more)
    )
    assert sum(there) - sum(here) == 1
    assert np.abs(np.subtract(here, there)).sum() > 1


def test_bounds_on_computed_groups_and_seeds_of_the_session():
    """OpenDP 0.16 keeps the Bound when another column takes its name: a distance of 1.
    Otherwise one person more in front moves the rows of the others, and the distance says 1.
    That two draws of one of 4 rows for each of 60 persons agree has a chance of 4 ** -60.
    """
    one_group = of_persons(Bound(by=[], per_group=1), Bound(by=["s"], per_group=1, num_groups=1))
    message = "'s' is computed anew, and the Bounds of the privacy unit or of an earlier step"
    message += ".* Give the new column another name"
    with pytest.raises(ValueError, match=f"with_columns: {message}"):
        ob.posterior(query(one_group).with_columns(s=C("i")), **OF_I)
    with pytest.raises(ValueError, match=f"select: {message}"):
        ob.posterior(query(one_group).select("p", "i", s=C("i")), **OF_I)
    named = query(one_group).with_columns(t=C("i")).truncate_per_group(1, by=["s"])
    assert ob.posterior(named, **OF_I).release().d_in == 1
    rows = [(p, 0.5, "a", 100 * p + i) for p in range(60) for i in range(4)]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    every_row = OF_I | {"categories": [row[3] for row in rows]}
    kept = []
    for _ in range(2):
        pl.set_random_seed(7)
        kept.append(counted(frame, lambda q: q.truncate_per_group(1), every_row, of_persons()))
    assert kept[0] != kept[1]
    assert sum(kept[0]) == sum(kept[1]) == 60
