"""Rows kept by a fixed rule: what is said, the same for every question, frames with an order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.display.wording import in_words
from opendp_bayes.surveys.joint_posterior import survey_posterior
from opendp_bayes.trusted import cells as joint_cells
from opendp_bayes.trusted.boundary import ReleaseError
from opendp_bayes.trusted.truncation import RowLimit, require_order
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.leaking_plans import kept_by
from tests.helpers.sweeps import slow

C = pl.col
AGES = list(range(16))
FOURS = {str(at): AGES[at : at + 4] for at in range(0, 16, 4)}
GROUPS = ["a", "b", "c"]
RNG = np.random.default_rng(1)
#: Five rows of each person, shuffled.
FRAME = pl.DataFrame(
    {
        "who": RNG.permutation(np.repeat(np.arange(4000), 5)),
        "age": RNG.integers(0, 16, 20_000),
        "group": RNG.choice(GROUPS, 20_000),
    }
)
#: Where it is asked whether there is an order, and not what it decides.
FEW = FRAME.head(200)
#: Where the posterior is what is asked for.
SOME = FRAME.filter(C("who") < 400)
AGE: dict[str, Any] = {"column": "age", "categories": AGES, "nulls": 0, "unknown": 0}
TABLE = {"column": ["age", "group"], "categories": {"age": AGES, "group": GROUPS}}
TABLE |= {"nulls": {"age": 0, "group": "a"}, "unknown": {"age": 0, "group": "a"}}
LEVELS = {"four": {**AGE, "merge": FOURS}, "age": AGE, "table": TABLE}


def opened(data: pl.LazyFrame, queries: int = 1, **loss: float) -> Any:
    return plain_context(
        data, {"contributions": 1, "identifier": "who"}, loss or {"epsilon": 1e5 * queries}, queries
    )


def kept(plan: Callable[[Any], Any]) -> str:
    return kept_by(plan(opened(FRAME.lazy()).query()))


NUMBERED = pl.int_range(pl.len()).over("who")
FIXED = [
    (lambda q: q.truncate_per_group(2, keep="first"), "the first 2 rows of each who"),
    (lambda q: q.truncate_per_group(1, keep="last"), "the last row of each who"),
    (
        lambda q: q.filter(C("age") > 3).truncate_per_group(2, keep="first").filter(C("age") < 9),
        "the first 2 rows of each who",
    ),
    (
        lambda q: (
            q.truncate_per_group(2, by=["group"], keep="first")
            .with_columns(old=C("age") > 9)
            .truncate_per_group(3, keep="last")
        ),
        "the first 2 rows of each who, group; of these the last 3 rows of each who",
    ),
    (lambda q: q.filter(NUMBERED < 3), "the first 3 rows of each who"),
]
NOT_FIXED = [
    lambda q: q,
    lambda q: q.filter(C("age") > 3),
    lambda q: q.truncate_per_group(2),
    lambda q: q.truncate_per_group(3, keep="first").truncate_per_group(2),
    lambda q: q.truncate_per_group(2).truncate_per_group(1, keep="first"),
]


@pytest.mark.parametrize(("plan", "rule"), FIXED)
def test_a_fixed_rule_in_words(plan: Any, rule: str) -> None:
    assert kept(plan) == rule


@pytest.mark.parametrize("plan", NOT_FIXED)
def test_no_rule_where_rows_are_drawn_or_it_is_not_known(plan: Any) -> None:
    assert kept(plan) == ""


def in_memory(_: Path) -> pl.LazyFrame:
    return FRAME.lazy()


def in_chunks(_: Path) -> pl.LazyFrame:
    return pl.concat(FRAME.iter_slices(1111), rechunk=False).lazy()


def in_csv(folder: Path) -> pl.LazyFrame:
    FRAME.write_csv(folder / "frame.csv")
    return pl.scan_csv(folder / "frame.csv")


def in_parquet(folder: Path) -> pl.LazyFrame:
    FRAME.write_parquet(folder / "frame.parquet", row_group_size=1000)
    return pl.scan_parquet(folder / "frame.parquet")


def in_files(folder: Path) -> pl.LazyFrame:
    for number, part in enumerate(FRAME.iter_slices(3000)):
        part.write_parquet(folder / f"{number}.parquet", row_group_size=500)
    return pl.scan_parquet(folder / "*.parquet")


def in_arrow(folder: Path) -> pl.LazyFrame:
    pl.concat(FRAME.iter_slices(700), rechunk=False).write_ipc(folder / "frame.arrow")
    return pl.scan_ipc(folder / "frame.arrow")


def sorted_first(folder: Path) -> pl.LazyFrame:
    sorted_rows = in_parquet(folder).sort("group", maintain_order=True).filter(C("age") > -1)
    sorted_rows.sink_parquet(folder / "sorted.parquet")
    return pl.scan_parquet(folder / "sorted.parquet")


def stacked(folder: Path) -> pl.LazyFrame:
    half = in_parquet(folder).with_columns(half=C("age") > 7)
    return pl.concat([half.filter(C("half")), half.filter(~C("half"))])


SOURCES = [in_memory, in_chunks, in_csv, in_parquet, in_files, in_arrow, sorted_first, stacked]


def apart(survey: Any) -> int:
    """The records by which the three questions do not add up, but for noise far below one."""
    four, age, table = (np.array(survey[name].noisy_counts) for name in LEVELS)
    assert four.sum() == age.sum() == table.sum() == 8000
    differences = age.reshape(4, 4).sum(axis=1) - four, table.reshape(16, 3).sum(axis=1) - age
    return sum(int(np.abs(each).sum()) for each in differences)


#: Every source, with either end in turn; the others take as long again.
KEPT = [
    pytest.param(source, keep, marks=() if (at % 2 == 0) == (keep == "first") else pytest.mark.slow)
    for at, source in enumerate(SOURCES)
    for keep in ("first", "last")
]


@pytest.mark.parametrize(("source", "keep"), KEPT)
def test_every_question_and_release_counts_the_same_rows(source, keep, tmp_path):
    data = source(tmp_path)
    of = opened(data, 3)
    surveys = [
        ob.survey(of.query().truncate_per_group(2, keep=keep), LEVELS).release() for _ in range(2)
    ]
    assert [apart(survey) for survey in surveys] == [0, 0]
    assert len({survey["table"].noisy_counts for survey in surveys}) == 1
    rows = data.collect().group_by("who", maintain_order=True)
    exact = (rows.head(2) if keep == "first" else rows.tail(2))["age"].value_counts()
    assert dict(exact.iter_rows()) == dict(enumerate(surveys[0]["age"].noisy_counts))
    rules = {survey[name].guarantee.kept for survey in surveys for name in LEVELS}
    assert rules == {f"the {keep} 2 rows of each who"}, "by which they may be combined"


@pytest.mark.parametrize("keep", ["first", pytest.param("last", marks=pytest.mark.slow)])
def test_releases_of_the_same_rows_have_one_posterior(keep: Any) -> None:
    query = opened(SOME.lazy(), 3).query
    age, four, again = (
        ob.survey(query().truncate_per_group(2, keep=keep), LEVELS).release() for _ in range(3)
    )
    together: Any = ob.combine_tables({"age": age["age"], "four": four["four"]})
    assert together["age"].counts.mean() == pytest.approx(again["age"].noisy_counts, abs=0.01)


#: One of a frame, of a file, of several, and of a plan.
DRAWN = {in_memory, in_parquet, in_files, stacked}


@pytest.mark.parametrize("source", slow(SOURCES, but=DRAWN))
def test_rows_that_are_drawn_are_the_same_in_one_survey_and_no_other(source, tmp_path):
    """Of 8000 rows drawn twice some are others, surely."""
    of = opened(source(tmp_path), 3)
    surveys = [ob.survey(of.query().truncate_per_group(2), LEVELS).release() for _ in range(2)]
    assert [apart(survey) for survey in surveys] == [0, 0]
    assert surveys[0]["table"].noisy_counts != surveys[1]["table"].noisy_counts
    rules = [{survey[name].guarantee.kept for name in LEVELS} for survey in surveys]
    assert [len(each) for each in rules] == [1, 1] != len(set.union(*rules))
    assert all(of.startswith("rows drawn at random, once for survey ") for of in set.union(*rules))
    together = {"age": surveys[0]["age"], "four": surveys[1]["four"]}
    with pytest.raises(ValueError, match="true counts differ; release all"):
        ob.combine_tables(together)
    alone = ob.posterior(of.query().truncate_per_group(2), **AGE).release()
    assert alone.guarantee.kept == ""
    with pytest.raises(ValueError, match="first of each, with `query"):
        ob.combine_tables({"age": surveys[0]["age"], "alone": alone})


def test_rows_are_drawn_once_for_two_questions() -> None:
    two = {name: LEVELS[name] for name in ("four", "age")}
    survey = ob.survey(opened(FRAME.lazy()).query().truncate_per_group(2), two).release()
    ages = np.array(survey["age"].noisy_counts).reshape(4, 4)
    assert ages.sum(axis=1).tolist() == list(survey["four"].noisy_counts)


def test_surveys_and_contexts_in_memory_have_one_posterior() -> None:
    survey = ob.survey(opened(SOME.lazy()).query().truncate_per_group(2), LEVELS).release()
    posterior: Any = ob.Survey.from_json(survey.to_json()).posterior
    assert posterior["age"].counts.mean() == pytest.approx(survey["age"].noisy_counts, abs=0.01)
    said = in_words(survey["age"].guarantee)
    assert "limited to rows drawn at random, once for survey" in said
    with_text = FRAME.with_columns(C("group").cast(pl.Enum(GROUPS)))
    of = checked_context(with_text, {"contributions": 1, "identifier": "who"}, {"rho": 50.0})
    tree = ob.levels("age", AGES, branching=4, nulls=0, unknown=0)
    query = ob.survey(of.query().truncate_per_group(2, keep="first"), tree)
    posterior: Any = query.release().posterior
    exact = FRAME.group_by("who", maintain_order=True).head(2)["age"].to_numpy()
    assert posterior["age by 4"].counts.mean() == pytest.approx(np.bincount(exact // 4), abs=10)


UNORDERED = [
    lambda data: data.sort("group"),
    lambda data: data.unique(),
    lambda data: data.group_by("who", "age").agg(C("group").first()),
    lambda data: data.join(data.select("group").unique(), on="group"),
    lambda data: data.join(
        pl.LazyFrame({"group": GROUPS, "name": GROUPS}), on="group", maintain_order="left"
    ),
    lambda data: data.map_batches(lambda frame: frame),
    lambda data: data.select(pl.all().sort_by("group")),
    lambda data: data.select(pl.all().shuffle(seed=1)),
    lambda data: data.select(pl.all().sample(fraction=1.0, shuffle=True, seed=1)),
    lambda data: data.select(each=pl.struct(pl.all()).unique()).unnest("each"),
    lambda data: data.sort("group").filter(C("age") > -1),
    lambda data: data.sort("group", maintain_order=True),
    lambda data: data.select(pl.all().sort_by("group", maintain_order=True)),
    lambda data: data.select(pl.all().shuffle(seed=1)).filter(C("age") > -1),
    lambda data: data.with_columns(C("age").sort_by("group") + 0),
    lambda data: data.with_columns(age=0 + C("age").sort_by("group")),
    lambda data: data.with_columns(C("age").fill_null(C("age").sort_by("group"))),
    lambda data: data.with_columns(pl.when(C("age") > 9).then(0).otherwise(C("age").shuffle())),
    lambda data: data.with_columns(pl.when(C("age").shuffle() > 9).then(0).otherwise("age")),
    lambda data: data.select(pl.all().gather(pl.int_range(pl.len()).shuffle(seed=1))),
    lambda data: data.select(pl.all().gather(C("group").arg_sort())),
    lambda data: data.select(pl.all().top_k_by("group", 10)),
    lambda data: data.select(
        pl.all().implode().list.sample(fraction=1.0, shuffle=True, seed=1)
    ).explode(pl.all()),
    lambda data: data.select(
        each=pl.when(C("age") > -1).then(pl.struct(pl.all()).sort_by("group"))
    ).unnest("each"),
    lambda data: data.select(pl.all().sort()),
    lambda data: data.with_columns(C("age").map_batches(lambda ages: ages, pl.Int64)),
    lambda data: data.select(pl.all().shuffle(seed=1).over("group")),
]


@pytest.mark.parametrize("make", UNORDERED)
def test_frames_without_a_fixed_order_are_refused_and_paid_for(make: Any) -> None:
    of = opened(make(FEW.lazy()), 2, epsilon=2.0)
    with pytest.raises(ReleaseError, match="no fixed order: it joins"):
        ob.survey(of.query().truncate_per_group(2, keep="first"), LEVELS).release()
    drawn = ob.survey(of.query().truncate_per_group(2), LEVELS).release()
    assert drawn["age"].guarantee.truncated


#: Limits that go by the order of rows, of which no rule is said.
BY_ORDER = [
    lambda q: q.truncate_per_group(3, keep="first").truncate_per_group(2),
    lambda q: q.truncate_per_group(2).truncate_per_group(1, keep="last"),
]


@pytest.mark.parametrize("plan", BY_ORDER)
def test_limits_by_order_need_one_whether_or_not_a_rule_is_said(plan: Any) -> None:
    def released(data: pl.LazyFrame) -> Any:
        return ob.posterior(plan(opened(data, epsilon=1.0).query()), **AGE).release()

    assert released(FEW.lazy()).guarantee.kept == ""
    assert released(FEW.sort("group", maintain_order=True).lazy()).guarantee.truncated
    with pytest.raises(ReleaseError, match="no fixed order"):
        released(FEW.lazy().sort("group"))


def test_limits_at_random_need_no_order_and_steps_keep_it() -> None:
    data = FEW.lazy().sort("group")
    drawn = opened(data, epsilon=1.0).query().truncate_per_group(2)
    assert ob.posterior(drawn, **AGE).release().guarantee.truncated
    frame = FRAME.lazy().with_row_index().head(5).rename({"age": "years"}).cast({"who": pl.String})
    of_each_row = FRAME.lazy().with_columns(
        years=pl.when(C("age") > 9).then(-C("age")).otherwise(C("age").clip(0, 5).fill_null(1)),
        text=C("group").cast(pl.String).str.to_uppercase().replace({"A": "B"}),
    )
    for plan in (frame, of_each_row, FRAME.lazy().select(pl.all().reverse())):
        require_order(plan.filter(NUMBERED < 2), [RowLimit(2, "first", ("who",))])


def test_one_record_more_moves_rows_of_others_where_order_is_not_asked_for(monkeypatch):
    """The negative control: without the check the promise of one record was false."""
    monkeypatch.setattr(joint_cells, "require_order", lambda frame, limits: None)
    frame = FRAME.with_columns(third=C("age") % 3, half=C("age") // 8)
    one_more = pl.concat([frame.head(1).with_columns(who=pl.lit(-1, pl.Int64)), frame])

    def drawn(data: pl.DataFrame) -> Any:
        query = opened(data.lazy().sort("third", "half"), epsilon=1e6).query()
        limited = query.filter(NUMBERED < 1)
        return ob.posterior(limited, **AGE).release()

    one, other = drawn(frame), drawn(one_more)
    assert one.guarantee.d_in == 1
    assert np.abs(np.subtract(one.noisy_counts, other.noisy_counts)).sum() > 1


def test_a_sort_lets_one_record_more_change_rows_of_others():
    """Why it is refused."""
    numbered = FRAME.with_columns(
        row=pl.int_range(pl.len()), third=C("age") % 3, half=C("age") // 8
    )
    one_more = numbered.head(1).with_columns(who=pl.lit(-1, pl.Int64))

    def first(frame: pl.DataFrame) -> dict[int, int]:
        rows = frame.lazy().sort("third", "half").filter(NUMBERED < 1).collect(engine="streaming")
        return dict(rows.filter(C("who") >= 0).select("who", "row").iter_rows())

    assert first(numbered) != first(pl.concat([one_more, numbered]))


@pytest.mark.parametrize("keep", ["first", "sample"])
def test_overlapping_tables_have_one_posterior(keep: Any) -> None:
    sexes = FRAME.with_columns(sex=C("who") % 2 == 0).lazy()
    of_both = {"categories": {"group": GROUPS, "sex": [True, False]}}
    rest = {"nulls": {"group": "a", "sex": True}, "unknown": {"group": "a"}}
    asked = {"table": TABLE, "sexes": {"column": ["group", "sex"], **of_both, **rest}}
    asked = {name: {**of, "mechanism": "laplace_parameters"} for name, of in asked.items()}
    of = opened(sexes, 2, epsilon=20.0)
    query = ob.survey(of.query().truncate_per_group(2, keep=keep), asked, share="equal")
    survey = query.release()
    posterior = survey_posterior(dict(survey.items()), ess=20)
    assert posterior.records.mean() == pytest.approx(8000, abs=60)
