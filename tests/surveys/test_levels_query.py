"""Questions of a tree over ordered categories, and in a survey."""

import random
from itertools import chain, pairwise
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.contexts import plain_context

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

AGES = [f"{age}-{age + 4}" for age in range(18, 98, 5)]


def context(labels: list[Any] = AGES, **loss: float) -> dp.Context:
    rng = np.random.default_rng(0)
    drawn = np.minimum(rng.poisson(len(labels) / 3, 400), len(labels) - 1)
    frame = {"age": [labels[at] for at in drawn], "vote": ["yes", "no"] * 200}
    return plain_context(pl.LazyFrame(frame), loss=loss or {"rho": 0.5})


BUCKETS = {"nulls": AGES[0], "unknown": AGES[0]}
VOTE = {"column": "vote", "categories": ["yes", "no"], "nulls": "no", "unknown": "no"}


def test_names_groups_and_labels() -> None:
    questions = ob.levels("age", AGES, branching=3, **BUCKETS)
    assert list(questions) == ["age", "age by 3", "age by 9"]
    assert "merge" not in questions["age"]
    for question in questions.values():
        assert question["column"] == "age"
        assert question["categories"] == AGES
        assert question["nulls"] == AGES[0]
    merge = questions["age by 3"]["merge"]
    of_three = ["18-22 to 28-32", "33-37 to 43-47", "48-52 to 58-62", "63-67 to 73-77"]
    assert list(merge) == [*of_three, "78-82 to 88-92", "93-97"], "the last is alone"
    assert merge["93-97"] == AGES[15:]
    assert [list(map(AGES.index, part)) for part in questions["age by 9"]["merge"].values()] == [
        list(range(9)),
        list(range(9, 16)),
    ]
    assert sum(question["share"] for question in questions.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "labels", [AGES[:13], list(range(11)), list(range(3, -5, -1)), ["b", "c", "a"]]
)
def test_levels_of_any_options_are_sums_of_the_finest_one(labels: list[Any]) -> None:
    """Every record is counted on each level with its label, new labels alone; of any two levels
    one is finer, and has the share of the next coarser one and a fifth.
    """
    draws = random.Random(str(labels))
    new = ["none", "other"] if isinstance(labels[0], str) else [-9, 99]
    for _ in range(12):
        place, k = draws.choice(["branching", "merges", "budget"]), len(labels)
        groups = [labels]
        while len(groups) < k // 2 and draws.random() < 0.7:  # each cut once more, in any order
            whole = max(groups, key=len)
            groups = [*(of for of in groups if of is not whole), whole[::2], whole[1::2]]
        nested = {
            "finer": dict(enumerate(groups)),
            "coarser": {"l": groups[0], "r": [*chain(*groups[1:])]},
        }
        nested = nested if 2 < len(groups) < k else {"coarser": {"l": labels[:1], "r": labels[1:]}}
        options: dict[str, Any] = {"branching": {"branching": draws.choice([2, 3, 4])}}
        options["merges"] = {"merges": dict(draws.sample([*nested.items()], len(nested)))}
        options["budget"] = {"budget": draws.choice(["rho", "epsilon"])}
        nulls, unknown = (draws.choice([labels[0], labels[-1], *new, ob.DROP]) for _ in range(2))
        tree = ob.levels("x", labels, **options[place], nulls=nulls, unknown=unknown)

        values = [*labels, None, "?" if isinstance(labels[0], str) else 1000]
        rows = draws.choices(values, k=60)
        query = plain_context(pl.LazyFrame({"x": rows})).query()
        bound = ob.survey(query, tree).questions
        counts = {
            name: dict(zip(of.space.labels, of.counts(pl.LazyFrame({"x": rows})), strict=True))
            for name, of in bound.items()
        }
        fine = [
            *labels,
            *(of for of in dict.fromkeys((nulls, unknown)) if of not in [*labels, ob.DROP]),
        ]
        where = [nulls if of is None else of if of in labels else unknown for of in rows]
        assert counts["x"] == {label: where.count(label) for label in fine}
        assert next(iter(tree)) == "x"
        for name in [*tree][1:]:
            merge = tree[name]["merge"]
            assert sorted(map(repr, chain(*merge.values()))) == sorted(map(repr, fine)), name
            assert counts[name] == {to: sum(map(where.count, of)) for to, of in merge.items()}
            assert [*merge][len(merge) - len(fine) + k :] == fine[k:]
            assert all(merge[of] == [of] for of in fine[k:])
        numbers = [len(of.get("merge", fine)) for of in tree.values()]
        assert numbers == sorted(numbers, reverse=True)
        shares = [of["share"] for of in tree.values()]
        assert sum(shares) == pytest.approx(1)
        assert all(one == pytest.approx(1.2 * other) for one, other in pairwise(shares))
        if place == "branching":
            b = options[place][place]
            widths = [b**at for at in range(1, 9) if -(-k // b ** (at - 1)) > b]
            assert [*tree] == ["x", *(f"x by {width}" for width in widths)]
            assert [len(of["merge"]) for of in [*tree.values()][1:]] == [
                -(-k // width) + len(fine) - k for width in widths
            ]


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
    posterior: Any = ob.combine_tables({name: survey[name] for name in names})
    fine = posterior["age"].counts.mean()
    for name in names[1:]:
        width = int(name.removeprefix("age by "))
        sums = np.bincount(np.arange(16) // width, fine[:16])
        np.testing.assert_allclose(posterior[name].counts.mean()[: sums.size], sums, atol=1e-6)


HALVES = {"young": AGES[:8], "old": AGES[8:]}
THIRDS = {"a": AGES[:9], "b": AGES[9:12], "c": AGES[12:]}
FOURS = {str(at): AGES[at : at + 4] for at in range(0, 16, 4)}


@pytest.mark.parametrize(
    ("k", "budget", "widths"),
    [
        *((49, "epsilon", []), (50, "epsilon", [8]), (100, "epsilon", [10])),
        *((1024, "epsilon", [32]), (1025, "epsilon", [11, 121])),
        *((10, "rho", []), (11, "rho", [2, 4, 8])),
        *((16, "rho", [2, 4, 8]), (17, "rho", [2, 4, 8, 16])),
    ],
)
def test_levels_follow_the_number_of_categories(k: int, budget: Any, widths: list[int]) -> None:
    names = ["age", *(f"age by {width}" for width in widths)]
    assert list(ob.levels("age", list(range(k)), budget=budget)) == names


def mean_variance(shares: list[float], parts: list[Any], power: float) -> float:
    """Of the estimated numbers of records up to each category, given that of all, by matrices."""
    rows = np.vstack([np.eye(int(part.max()) + 1)[part].T for part in parts])
    precision = np.repeat(np.array(shares) ** power, [int(part.max()) + 1 for part in parts])
    covariance = np.linalg.inv(rows.T @ (precision[:, None] * rows))
    total = covariance.sum(axis=1)
    covariance -= np.outer(total, total) / total.sum()
    return float(np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1)).mean())


@pytest.mark.parametrize(
    ("k", "budget", "power", "gain"),
    [
        *((60, "epsilon", 2, 1.05), (100, "epsilon", 2, 1.35)),
        *((11, "rho", 1, 1.0), (100, "rho", 1, 3.3)),
    ],
)
def test_levels_are_worth_their_budget(k: int, budget: Any, power: float, gain: float) -> None:
    """Variances of least squares, against those of one table alone; equal shares are worse."""
    questions = ob.levels("age", list(range(k)), budget=budget)
    places = [of.get("merge", {at: [at] for at in range(k)}) for of in questions.values()]
    parts = [np.repeat(range(len(one)), list(map(len, one.values()))) for one in places]
    shares = [of["share"] for of in questions.values()]
    alone = mean_variance([1.0], parts[:1], power)
    found = mean_variance(shares, parts, power)
    assert gain * found <= alone
    equal = mean_variance([1 / len(parts)] * len(parts), parts, power)
    backwards = mean_variance(shares[::-1], parts, power)
    assert found < equal < backwards


def test_given_merges_and_ways_to_share() -> None:
    """And need not merge neighbours."""
    fours = dict(reversed(FOURS.items()))
    given = ob.levels("age", AGES, merges={"half": HALVES, "four": fours}, nulls="none")
    assert list(given) == ["age", "four", "half"]
    assert given["four"]["merge"] == {**fours, "none": ["none"]}
    assert list(given["four"]["merge"]) == [*fours, "none"]
    merges = {"turn": {"even": AGES[::2], "odd": AGES[1::2]}}
    tree = ob.levels("age", AGES, merges=merges, **BUCKETS)
    posterior: Any = ob.survey(context(rho=50.0).query(), tree).release().posterior
    fine = posterior["age"].counts.mean()
    assert posterior["turn"].counts.mean() == pytest.approx([fine[::2].sum(), fine[1::2].sum()])
    tree = ob.levels("age", AGES, branching=4, **BUCKETS)
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
        ({"budget": "delta"}, ValueError, r"budget='delta': .*'epsilon', 'rho'"),
        ({"merge": {}}, TypeError, "merge={}: belongs to one question"),
        ({"by": "vote"}, TypeError, "by='vote': belongs to one question"),
        ({"categories": ["1 to 2", "3", "1", "2 to 3"]}, ValueError, r"one name, among .*'1 to 2"),
        # --- merges that are no levels
        ({"merges": {"half": HALVES}, "branching": 2}, TypeError, r"=2: .*groups of neighbours"),
        *(
            ({"merges": merges, "branching": None}, error, message)
            for merges, error, message in (
                ({}, TypeError, r"merges={}: must be a mapping"),
                ({"age": HALVES}, TypeError, "of which none is 'age'"),
                ({"half": {"a": AGES}}, ValueError, r"merges\['half'\]: merge=.*at least 2 labels"),
                ({"half": {"a": AGES[:8]}}, ValueError, r"\['half'\]: .*: leaves out '58-62'"),
                ({"half": HALVES, "band": THIRDS}, ValueError, "one must be finer"),
                ({"half": HALVES, "again": HALVES}, ValueError, "one must be finer"),
            )
        ),
    ],
)
def test_refusals(arguments: Any, error: Any, message: str) -> None:
    good = {"column": "age", "categories": AGES, "branching": 2, "budget": "rho"}
    with pytest.raises(error, match=message):
        ob.levels(**{**good, **arguments})


def people(**unit: Any) -> Any:
    """Forty people of ten rows each, over sixteen ages."""
    rows = {"who": np.repeat(range(40), 10), "age": [AGES[at % 16] for at in range(400)]}
    return plain_context(pl.LazyFrame(rows), unit, {"rho": 1e5})


def test_units_of_several_rows_and_public_numbers_have_levels() -> None:
    tree = ob.levels("age", AGES, branching=4, **BUCKETS)
    found: Any = ob.survey(people(contributions=10).query(), tree).release()
    assert found["age"].d_in == 10
    fours = found.posterior["age by 4"].counts.mean()
    assert fours == pytest.approx(np.full(4, 100), abs=1)
    data = plain_context(pl.LazyFrame({"age": AGES * 25}), {"changes": 1}, {"rho": 0.5})
    given = {**BUCKETS, "size": 400, "mechanism": "gaussian_parameters"}
    tree = ob.levels("age", AGES, branching=4, **given)
    posterior: Any = ob.survey(data.query(), tree).release().posterior
    for name in tree:
        assert posterior[name].counts.mean().sum() == pytest.approx(400)
