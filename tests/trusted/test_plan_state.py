"""The gate from step to step knows what earlier steps said of every column and operand."""

from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.leaking_plans import CUT, C, kept_by
from tests.helpers.plan_queries import OF_I, Bound, of_persons, query

NUMBERED = pl.int_range(pl.len()).over("p")
#: Every comparison of three rows of each person, and of all rows but those; one is that of OpenDP.
COMPARED = [
    *(NUMBERED < 3, NUMBERED <= 2, pl.lit(3) > NUMBERED, pl.lit(2) >= NUMBERED),
    *(pl.lit(3) < NUMBERED, pl.lit(2) <= NUMBERED, NUMBERED > 3, NUMBERED >= 2),
]


@pytest.mark.parametrize("at", range(len(COMPARED)))
def test_a_limit_is_written_as_opendp_writes_it(at: int) -> None:
    limited = query(of_persons()).filter(COMPARED[at])
    if at == 0:
        assert ob.posterior(limited, **OF_I).release().d_in == 3
        assert kept_by(limited) == "the first 3 rows of each p"
        return
    with pytest.raises(ValueError, match="filter: over looks at other"):
        ob.posterior(limited, **OF_I)


#: A person has one row in each group of `s`, and is in one.
ONE_GROUP = of_persons(Bound(by=[], per_group=1), Bound(by=["s"], per_group=1, num_groups=1))
STALE = "'s' is computed anew, and the Bounds of the privacy unit or of an earlier step"


@pytest.mark.parametrize(
    "plan",
    [
        lambda q: q.with_columns(s=C("i")),
        lambda q: q.with_columns(i=C("i") * 2, s=C("i")),
        lambda q: q.select("p", "i", s="x"),
        lambda q: q.with_columns(C("s").fill_null("a")),
        lambda q: q.select("p", "i").with_columns(s=C("i")),
        lambda q: q.truncate_per_group(1, by=["i"]).with_columns(s=C("i")),
    ],
)
def test_a_column_of_bounds_is_not_computed_anew(plan: Any) -> None:
    """Neither those of the privacy unit, nor those of a limit, with other limits before or after
    it.
    """
    of_limit = query(of_persons()).truncate_per_group(1, by=["s"])
    for made in (query(ONE_GROUP), of_limit, of_limit.truncate_per_group(1, by=["x"])):
        with pytest.raises(ValueError, match=f"query: (with_columns|select): {STALE}"):
            ob.posterior(plan(made), **OF_I)
        same = made.truncate_per_group(1).with_columns("s", t=C("s"))
        ob.posterior(same, **OF_I)


def test_bounds_and_coded_names_are_followed_and_windows_are_no_limits() -> None:
    """The second one too, and columns that are expressions. What `select` leaves out is not
    coded any more, nor what `with_columns` replaces.
    """
    for by in (["s"], [C("s")], ["i", "s"], [C("x"), C("s")]):
        bounds = [Bound(by=["x"], per_group=2, num_groups=1), Bound(by=by, per_group=1)]
        unit = dp.unit_of(contributions=bounds)
        with pytest.raises(ValueError, match=f"with_columns: {STALE}"):
            ob.posterior(query(unit).with_columns(s=C("i")), **OF_I)
    for strategy in ("join", "explode"):
        numbers: Any = pl.int_range(pl.len())
        predicate = numbers.over("p", mapping_strategy=strategy) < 2
        with pytest.raises(ValueError, match=r"over looks at other|cannot be carried"):
            ob.posterior(query(of_persons()).filter(predicate), **OF_I)
    for plan in (
        lambda q: q.select("i", bin=C("i") + 1).filter(C("bin") > 0),
        lambda q: q.with_columns(bin=C("i") + 1).filter(C("bin") > 0),
    ):
        assert ob.posterior(plan(query().with_columns(bin=CUT)), **OF_I).release().d_in == 1
    coded = query().with_columns(bin=CUT).select("i", "bin")
    with pytest.raises(ValueError, match="filter: 'bin' is a Categorical"):
        ob.posterior(coded.filter(C("bin") == "a"), **OF_I)
    for exprs in (("i", pl.lit(1).alias("one")), (pl.lit(1).alias("one"), "i")):
        assert ob.posterior(query().select(*exprs), **OF_I).release().d_in == 1
    for mixed in (C("i") + pl.lit(1), pl.lit(1) + C("i")):
        assert ob.posterior(query().select(i=mixed), **OF_I).release().d_in == 1


def test_parts_of_expressions_and_mappings() -> None:
    """Of a condition, both values and the predicate; of a division, either side."""
    for value in (
        (C("i") + C("i").sum()) == 1,
        (C("i").sum() + C("i")) == 1,
        ~(C("i") == C("i").sum()),
        (C("i") == 1) & (C("i").sum() == 1),
        C("i").sum().cast(pl.String).fill_null("a"),
        C("i").sum().replace({1: 2}),
    ):
        with pytest.raises(ValueError, match="with_columns: sum or dot is"):
            ob.posterior(query().with_columns(i=value), **OF_I)
    coded = query().with_columns(bin=CUT)
    with pytest.raises(ValueError, match=r"with_columns: pl\.when or fill_nan is"):
        ob.posterior(coded.with_columns(i=pl.when(C("bin") == "a").then(1).otherwise(0)), **OF_I)
    mapped = C("s").replace_strict({"a": "b"}, default="c", return_dtype=pl.Categorical)
    with pytest.raises(ValueError, match="replace_strict to Categorical makes a Categorical"):
        ob.posterior(query().with_columns(b=mapped), **OF_I)


@pytest.mark.parametrize("unit", [{"contributions": 1}, {"changes": 1}])
def test_rows_in_any_number_of_groups_are_refused_before_data_are_read(unit: Any) -> None:
    """One row in each group of `s`, and in as many of them as there are."""
    by_person = dp.unit_of(**unit, identifier="p")
    limited = query(by_person).truncate_per_group(1, by=["s"])
    for made in (limited, query(dp.unit_of(contributions=[Bound(by=["s"], per_group=1)]))):
        with pytest.raises(ValueError, match=r"^d_in=.*no Bound limits"):
            ob.posterior(made, **OF_I)
