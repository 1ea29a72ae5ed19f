"""What `docs/guarantee.md` says of faults of OpenDP, and how this package behaves there."""

from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.queries.categorical_counts import counts_of_frame
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted import plan_allowlist, stable_plans
from tests.helpers.contexts import plain_context
from tests.helpers.leaking_plans import unchecked

C = pl.col
DOCS = Path(__file__).parents[2] / "docs"


def context(frame: pl.LazyFrame, unit: Any = None) -> dp.Context:
    of = {"privacy_loss": dp.loss_of(epsilon=1.0), "split_evenly_over": 1}
    return dp.Context.compositor(frame, privacy_unit=unit or dp.unit_of(contributions=1), **of)


EXPRESSIONS = (*plan_allowlist.EXPRESSIONS.values(),)
EXPRESSIONS += (*dict.fromkeys(plan_allowlist.OPERATORS.values()),)
EXPRESSIONS += *plan_allowlist.CASTS.values(), *plan_allowlist.FUNCTIONS.values()
LISTED = {"steps": plan_allowlist.STEPS.values(), "expressions": EXPRESSIONS}


@pytest.mark.parametrize("kinds", LISTED)
def test_the_guarantee_lists_what_is_accepted(kinds):
    rows = "\n".join(f"| {kind.written} | {kind.reason} |" for kind in LISTED[kinds])
    page = (DOCS / "guarantee.md").read_text(encoding="utf-8")
    assert f"\n| accepted | why |\n|---|---|\n{rows}\n\n" in page


def test_every_fault_is_listed():
    page = (DOCS / "guarantee.md").read_text(encoding="utf-8")
    for number in (2922, 2938, 2939, 2942, 2944, 2949):
        assert f"[{number}](https://github.com/opendp/opendp/issues/{number})" in page
    assert "unit_of(contributions=0)" in page


CUT = C("x").fill_null(0.0).cut([1.5], labels=["l", "h"])


@pytest.mark.parametrize(
    ("expr", "asked", "expected"),
    [
        (C("x").fill_null(0.0).cast(pl.Int64), {"categories": [0, 1], "unknown": 1}, [2, 3]),
        (CUT, {"categories": ["l", "h"], "unknown": "l"}, [4, 1]),
        (C("s").fill_null("a").cast(pl.Enum(["a", "b"])), {}, [4, 1]),
    ],
)
def test_nulls_that_opendp_does_not_see_are_counted(expr, asked, expected):
    """2938 and 2939: its domain says that there are none, so no place for them is asked for."""
    nan = float("nan")
    frame = pl.LazyFrame({"x": [nan, 1.0, 1.0, 2.0, None], "s": ["a", "b", "zz", None, "yy"]})
    made = context(frame).query().with_columns(z=expr)
    stable = stable_plans.stable_plan_of(made).stable
    assert not stable.output_domain.get_series_domain("z").nullable
    counts = counts_of_frame(made, Question.of("z", **asked)).transformation
    assert counts(frame).tolist() == expected


@pytest.mark.parametrize("part", ["year", "month", "week", "quarter"])
def test_parts_of_dates_are_refused_whether_or_not_one_is_outside_of_the_calendar(part):
    """2942: polars panics."""
    for days in (0, 2**31 - 1):
        frame = pl.LazyFrame({"t": pl.Series([days], dtype=pl.Int32).cast(pl.Date)})
        asked = context(frame)
        query = asked.query().with_columns(z=getattr(C("t").dt, part)().cast(pl.Int64))
        with pytest.raises(
            ValueError, match=rf"dt\.{part} is not among .* Compute it in the frame"
        ):
            ob.posterior(query, "z", categories=[1, 2], nulls=1, unknown=1)


def test_a_bound_on_a_column_that_was_computed_anew(monkeypatch):
    """2949: OpenDP's own map says 1 where a person has five rows; the gate refuses the plan."""
    rows = pl.LazyFrame(
        {"p": [1] * 5 + [2], "g": [0] * 6, "h": [0, 1, 2, 3, 4, 0], "v": [True] * 6}
    )
    bounds = [dp.polars.Bound([], 1), dp.polars.Bound(by=["g"], per_group=1, num_groups=1)]
    unit = dp.unit_of(contributions=bounds, identifier="p")
    made = context(rows, unit).query().with_columns(g=C("h")).truncate_per_group(1, by=["g"])
    with pytest.raises(ValueError, match="'g' is computed anew"):
        ob.posterior(made, "v", nulls=False)
    monkeypatch.setattr(stable_plans, "check_plan", unchecked)
    found = counts_of_frame(made, Question.of("v", nulls=False))
    counts, base = found.transformation, found.gate.base
    assert counts.map(base._d_in) == 1
    one, both = counts(rows.filter(C("p") == 2)).sum(), counts(rows).sum()
    assert both - one == 5


def test_a_threshold_of_opendp_releases_more_keys_than_its_delta():
    """2922: at scale 1 and threshold 5 each key of one record is there with chance .01359. Of
    100 000, fewer than twice the stated 493 has a chance below 1e-20.
    """
    keys = [str(number) for number in range(100_000)]
    counted = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
    released = counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
    stated = released.map(1)[1]
    assert 0.0049 < stated < 0.005
    assert len(released(keys)) > 2 * stated * len(keys)


@pytest.mark.parametrize(
    "unit", [{"contributions": 0}, {"contributions": 0, "identifier": "x"}, {"changes": 0}], ids=str
)
def test_a_unit_of_nothing_is_refused(unit):
    """OpenDP finds a scale for its own query by which it counts exactly, at a loss of 0."""
    frame = pl.LazyFrame({"x": [True] * 6})
    made = plain_context(frame, unit)
    query = made.query()
    limited = query.truncate_per_group(1) if "identifier" in unit else query
    if unit == {"contributions": 0}:
        exact = query.select(dp.len(signed=True))
        assert exact.summarize()["scale"].max() < 1e-6
        assert exact.resolve().map(0) == 0
        assert exact.release().collect().item() == 6
    with pytest.raises(ValueError, match=r"no records \(d_in=0\)"):
        ob.posterior(limited, "x", nulls=False, size=6 if "changes" in unit else None)
    with pytest.raises(ValueError, match=r"=0: .*between 1 and"):
        ob.context(frame, privacy_unit=dp.unit_of(**unit), privacy_loss=dp.loss_of(epsilon=1.0))
