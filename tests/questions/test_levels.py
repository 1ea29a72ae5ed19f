"""Questions of a tree over ordered categories, in a survey, and shares of nested questions."""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.planning.best_levels import best_shares

AGES = [f"{age}-{age + 4}" for age in range(18, 98, 5)]


def context(labels: list[Any] = AGES, **loss: float) -> dp.Context:
    rng = np.random.default_rng(0)
    drawn = np.minimum(rng.poisson(len(labels) / 3, 400), len(labels) - 1)
    frame = {"age": [labels[at] for at in drawn], "vote": ["yes", "no"] * 200}
    return dp.Context.compositor(
        data=pl.LazyFrame(frame),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**(loss or {"rho": 0.5})),
        split_evenly_over=1,
    )


BUCKETS = {"nulls": AGES[0], "unknown": AGES[0]}
VOTE = {"column": "vote", "categories": ["yes", "no"], "nulls": "no", "unknown": "no"}


def test_names_groups_and_labels() -> None:
    questions = ob.levels("age", AGES, branching=3, budget="rho", **BUCKETS)
    assert list(questions) == ["age", "age by 3", "age by 9"]
    assert "merge" not in questions["age"]
    for question in questions.values():
        assert question["column"] == "age"
        assert question["categories"] == AGES
        assert question["nulls"] == AGES[0]
    merge = questions["age by 3"]["merge"]
    assert list(merge) == [
        "18-22 to 28-32",
        "33-37 to 43-47",
        "48-52 to 58-62",
        "63-67 to 73-77",
        "78-82 to 88-92",
        "93-97",  # alone
    ]
    assert merge["93-97"] == AGES[15:]
    assert [list(map(AGES.index, part)) for part in questions["age by 9"]["merge"].values()] == [
        list(range(9)),
        list(range(9, 16)),
    ]
    assert sum(question["share"] for question in questions.values()) == pytest.approx(1)


def test_a_new_label_is_a_category_of_every_level() -> None:
    one = ob.levels("age", list(range(9)), branching=3, budget="rho", nulls="none", unknown=8)
    assert one["age by 3"]["merge"] == {
        "0 to 2": [0, 1, 2],
        "3 to 5": [3, 4, 5],
        "6 to 8": [6, 7, 8],
        "none": ["none"],
    }
    left_out = ob.levels("age", list(range(9)), branching=3, budget="rho", nulls=ob.DROP, unknown=8)
    assert list(left_out["age by 3"]["merge"]) == ["0 to 2", "3 to 5", "6 to 8"]


@pytest.mark.parametrize("nulls", ["none", AGES[3]])
def test_a_survey_takes_them_with_other_questions(nulls: str) -> None:
    tree = ob.levels("age", AGES, budget="rho", nulls=nulls, unknown=nulls)
    assert len(tree) > 2
    query = ob.survey(context().query(), {**tree, "vote": {**VOTE, "share": 3}})
    assert query.share["vote"] == pytest.approx(0.75)
    for name, question in tree.items():
        assert query.share[name] == pytest.approx(question["share"] / 4)
    survey = query.release()
    names = list(tree)
    posterior: Any = ob.combine({name: survey[name] for name in names}, records="same")
    fine = posterior["age"].counts.mean()
    for name in names[1:]:
        width = int(name.removeprefix("age by "))
        sums = np.bincount(np.arange(16) // width, fine[:16])
        np.testing.assert_allclose(posterior[name].counts.mean()[: sums.size], sums, atol=1e-6)


def test_one_posterior_and_its_quantiles() -> None:
    tree = ob.levels("age", AGES, branching=4, budget="rho", **BUCKETS)
    posterior: Any = ob.survey(context(rho=50.0).query(), tree).release().posterior
    rng = np.random.default_rng(0)
    drawn = np.minimum(rng.poisson(len(AGES) / 3, 400), len(AGES) - 1)
    assert posterior["age"].quantile(0.5).category == AGES[int(np.median(drawn))]
    assert posterior["age by 4"].quantile(0.5).category == "38-42 to 53-57"


HALVES = {"young": AGES[:8], "old": AGES[8:]}
FOURS = {str(at): AGES[at : at + 4] for at in range(0, 16, 4)}
BANDS = {"first": AGES[:1], "second": AGES[1:6], "third": AGES[6:8], "rest": AGES[8:]}


@pytest.mark.parametrize("for_", ["quantiles", "ranges"])
def test_given_merges_have_the_shares_of_the_same_groups(for_: Any) -> None:
    """Whatever their order, and that of their labels."""
    fours = dict(reversed(FOURS.items()))
    given = ob.levels(
        "age", AGES, merges={"half": HALVES, "four": fours}, for_=for_, budget="rho", nulls="none"
    )
    assert given["four"]["merge"] == {**fours, "none": ["none"]}
    same, _ = best_shares({width: np.arange(16) // width for width in (1, 4, 8)}, for_, "rho")
    names = {1: "age", 4: "four", 8: "half"}  # of ranges, halves are worth less than 1 %
    assert list(given) == [names[width] for width in same]
    shares = [question["share"] for question in given.values()]
    assert shares == pytest.approx(list(same.values()), rel=1e-3)


def test_given_merges_have_no_better_shares_nearby() -> None:
    """Bands of unequal numbers, against least squares by matrices."""
    found = ob.levels("age", AGES, merges={"band": BANDS}, budget="rho")
    share = found["band"]["share"]
    parts = np.repeat(range(4), [1, 5, 2, 8])
    rows = np.vstack([np.eye(16), np.eye(4)[parts].T])

    def error(coarse: float) -> float:
        precision = np.repeat([1 - coarse, coarse], [16, 4])
        covariance = np.linalg.inv(rows.T @ (precision[:, None] * rows))
        total = covariance @ np.ones(16)
        covariance -= np.outer(total, total) / total.sum()  # given the number of records
        upto = np.tril(np.ones((16, 16)))
        return float(np.trace(upto @ covariance @ upto.T))

    grid = np.linspace(0.01, 0.99, 99)
    assert share == pytest.approx(grid[int(np.argmin([error(at) for at in grid]))], abs=0.011)


def test_given_merges_are_levels_of_a_survey() -> None:
    tree = ob.levels("age", AGES, merges={"band": BANDS, "half": HALVES}, budget="rho", **BUCKETS)
    posterior: Any = ob.survey(context(rho=50.0).query(), tree).release().posterior
    assert list(posterior) == ["age", "band", "half"]
    first, second, third, _ = posterior["band"].counts.mean()
    assert first + second + third == pytest.approx(posterior["half"].counts.mean()[0])


@pytest.mark.parametrize(
    ("merges", "error", "message"),
    [
        ({}, TypeError, r"merges={}: must be a mapping"),
        ({"age": HALVES}, TypeError, "of which none is 'age'"),
        ({"half": {"a": AGES}}, ValueError, r"merges\['half'\]: merge=.*at least 2 labels"),
        ({"half": {"a": AGES[:8]}}, ValueError, r"merges\['half'\]: merge=.*: leaves out '58-62'"),
        ({"half": {"a": AGES[::2], "b": AGES[1::2]}}, ValueError, "must merge neighbours"),
        ({"half": HALVES, "band": {"a": AGES[:9], "b": AGES[9:12], "c": AGES[12:]}},
         ValueError, "one must be finer"),
        ({"half": HALVES, "again": HALVES}, ValueError, "one must be finer"),
    ],
)  # fmt: skip
def test_merges_that_are_no_levels_are_refused(merges: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ob.levels("age", AGES, merges=merges)
    with pytest.raises(TypeError, match=r"branching=2: .*groups of neighbours"):
        ob.levels("age", AGES, merges={"half": HALVES}, branching=2)


def test_another_way_to_share_goes_before_the_questions_own() -> None:
    tree = ob.levels("age", AGES, branching=4, budget="rho", **BUCKETS)
    given = ob.survey(context().query(), tree, dict.fromkeys(tree, 1))
    assert set(given.share.values()) == {0.5}
    with pytest.raises(ValueError, match=r"questions\['age'\]: share=0: must be"):
        ob.survey(context().query(), {**tree, "age": {**tree["age"], "share": 0}})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"column": ["age"]}, TypeError, r"column=.*name of one column"),
        ({"categories": "abc"}, TypeError, "categories='abc': must be a list"),
        ({"categories": ["a"]}, ValueError, "at least 2 labels, and"),
        ({"categories": ["a", "a"]}, ValueError, "at least 2 labels, and"),
        ({"branching": 1}, ValueError, r"branching=1: .*whole number of"),
        ({"branching": 2.0}, ValueError, r"branching=2.0: .*whole number of"),
        ({"for_": "deciles"}, ValueError, "for_='deciles': must be one of 'quantiles'"),
        ({"budget": "delta"}, ValueError, r"budget='delta': .*'epsilon', 'rho'"),
        ({"merge": {}}, TypeError, "merge={}: belongs to one question"),
        ({"by": "vote"}, TypeError, "by='vote': belongs to one question"),
        (
            {"categories": ["1 to 2", "3", "1", "2 to 3"]},
            ValueError,
            "named '1 to 2 to 3'",
        ),
    ],
)
def test_refusals(arguments: Any, error: Any, message: str) -> None:
    good = {"column": "age", "categories": AGES, "branching": 2, "budget": "rho"}
    with pytest.raises(error, match=message):
        ob.levels(**{**good, **arguments})


def survey(share: Any, *, others: Any = None, **options: Any) -> Any:
    """Sixteen ages, in fours and in halves; or with others."""
    age = {"column": "age", "categories": AGES, **BUCKETS, "mechanism": "gaussian_parameters"}
    fours = {str(at): AGES[at : at + 4] for at in range(0, 16, 4)}
    halves = {"young": AGES[:8], "old": AGES[8:]}
    questions = {"half": {**age, "merge": halves}, "age": age, "four": {**age, "merge": fours}}
    return ob.survey(context().query(), {**questions, **(others or {})}, share, **options)


def test_summarize_says_what_levels_tell_each_other() -> None:
    rows = survey("equal", others={"vote": VOTE}).summarize()
    # Equal noise: a sum of n parts of variance v has n v beside its own draw of variance v.
    four = 1 / (1 + 1 / 4)
    half = 1 / (1 + 1 / (2 * four))
    # Given the total, both halves have half / 2; then each four within its half, and each age.
    halves = half / 2
    fours = four / 2 + halves / 4
    ages = 3 / 4 + fours / 16
    expected = [2 * halves / 1, 16 * ages / 15, 4 * fours / 3]
    assert rows["question"].to_list() == ["half", "age", "four", "vote"]
    found = rows["joint_error"].to_list()
    assert found == pytest.approx([*np.sqrt(expected), 1.0])
    without = rows["others_without"].to_list()
    assert min(without[:3]) > 1
    assert without[3] == pytest.approx(1)


@pytest.mark.usefixtures("coarse_errors")
def test_the_smallest_error_is_that_of_all_levels() -> None:
    """Not above that of shares moved by a fifth; sums get less than they would alone."""
    best = survey("smallest_error", guess_size=4000)
    alone = survey("smallest_error", guess_size=4000, error="hellinger")
    assert best.share["half"] < 0.8 * alone.share["half"]
    assert best.share["age"] > 1.1 * alone.share["age"]
    division, asked = best._division, best._settled[0]

    def mean(shares: Any) -> float:
        errors = [division._error(one, shares[name]) for name, one in asked.items()]
        ratios = survey(shares).summarize()["joint_error"].to_numpy()
        return float(np.mean(np.array(errors) * ratios))

    smallest = mean(best.share)
    assert smallest < mean(dict.fromkeys(asked, 1 / 3))
    for name, other in (("half", "age"), ("age", "half"), ("four", "age"), ("age", "four")):
        step = 0.2 * min(best.share[name], best.share[other])
        moved = {**best.share, name: best.share[name] + step, other: best.share[other] - step}
        assert smallest < 1.001 * mean(moved)


def test_a_coarser_column_is_a_level_where_cells_are_listed() -> None:
    frame = {"state": ["S", "T"], "county": ["a", "c"], "vote": ["yes", "no"]}
    data = dp.Context.compositor(
        data=pl.LazyFrame(frame),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
    )
    cells = [("S", "a"), ("S", "b"), ("T", "c"), ("T", "d")]
    places = {"state": ["S", "T"], "county": ["a", "b", "c", "d"]}
    first = {"state": "S", "county": "a"}
    county = {"column": ["state", "county"], "categories": places, "cells": cells}
    county |= {"nulls": first, "unknown": cells[0]}
    state = {"column": "state", "categories": ["S", "T"], "nulls": "S", "unknown": "S"}
    noise = {"mechanism": "gaussian_parameters"}
    questions = {"county": {**county, **noise}, "vote": {**VOTE, **noise}}
    both = ob.survey(data.query(), {**questions, "state": {**state, **noise}}).summarize()
    # As with the halves above: of two parts each, and given the total.
    halves = 1 / (1 + 1 / 2) / 2
    expected = [np.sqrt(4 * (1 / 2 + halves / 4) / 3), 1.0, np.sqrt(2 * halves)]
    assert both["joint_error"].to_list() == pytest.approx(expected)
    alone = ob.survey(data.query(), questions).summarize()
    assert alone["joint_error"].to_list() == pytest.approx([1.0, 1.0])


def test_rows_limited_for_each_identifier_are_estimated_together() -> None:
    data = dp.Context.compositor(
        data=pl.LazyFrame({"age": AGES, "who": range(16)}),
        privacy_unit=dp.unit_of(contributions=1, identifier="who"),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
    )
    tree = ob.levels("age", AGES, branching=4, budget="rho", **BUCKETS)
    limited = ob.survey(data.query().truncate_per_group(1), tree).summarize()
    together = ob.survey(context().query(), tree).summarize()
    assert limited["joint_error"].to_list() == together["joint_error"].to_list()
    assert max(together["joint_error"]) < 1


def people(**unit: Any) -> Any:
    """Forty people of ten rows each, over sixteen ages."""
    rows = {"who": np.repeat(range(40), 10), "age": [AGES[at % 16] for at in range(400)]}
    return dp.Context.compositor(
        data=pl.LazyFrame(rows),
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=dp.loss_of(rho=1e5),
        split_evenly_over=1,
    )


def test_levels_of_rows_limited_for_each_identifier_add_up() -> None:
    """Hardly any noise."""
    tree = ob.levels("age", AGES, branching=4, budget="rho", **BUCKETS)
    survey = ob.survey(
        people(contributions=1, identifier="who").query().truncate_per_group(2), tree
    )
    found: Any = survey.release()
    fine, fours = (np.array(found[name].drawn) for name in tree)
    assert fine.sum() == fours.sum() == 80
    assert np.array_equal(fine.reshape(4, 4).sum(axis=1), fours)
    assert found.posterior["age by 4"].counts.mean() == pytest.approx(fours, abs=0.1)


def test_people_of_several_rows_have_levels_where_the_unit_says_how_many() -> None:
    tree = ob.levels("age", AGES, branching=4, budget="rho", **BUCKETS)
    found: Any = ob.survey(people(contributions=10).query(), tree).release()
    assert found["age"].d_in == 10
    fours = found.posterior["age by 4"].counts.mean()
    assert fours == pytest.approx(np.full(4, 100), abs=1)


def test_a_public_number_of_records() -> None:
    data = dp.Context.compositor(
        data=pl.LazyFrame({"age": AGES * 25}),
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(rho=0.5),
        split_evenly_over=1,
    )
    given = {**BUCKETS, "size": 400, "mechanism": "gaussian_parameters"}
    tree = ob.levels("age", AGES, branching=4, budget="rho", **given)
    posterior: Any = ob.survey(data.query(), tree).release().posterior
    for name in tree:
        assert posterior[name].counts.mean().sum() == pytest.approx(400)
