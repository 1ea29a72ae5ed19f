"""Every small frame and every neighbour of it, counted by the chains of users: their maps."""

from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from numpy.typing import NDArray

import opendp_bayes as ob
from opendp_bayes.mechanisms.neighbours import Distance
from tests.helpers.sweeps import some_of

Bound = dp.polars.Bound
#: Of a row: a person, a page, of which r is not listed, and a day.
SCHEMA: dict[str, Any] = {"who": pl.Int64, "page": pl.String, "day": pl.Enum(["x", "y"])}
Rows = tuple[tuple[Any, ...], ...]
Norms = tuple[int, int, int]
BUDGET = (0.5, 1e-3)


def persons(first: int, second: int) -> list[Rows]:
    """Every list of pages of two persons, up to so many, the first or the second before."""

    def pages_of(who: int, most: int) -> list[Rows]:
        lists = (pages for n in range(most + 1) for pages in product("ab", repeat=n))
        return [tuple((who, page, "x") for page in pages) for pages in lists]

    pairs = list(product(pages_of(1, first), pages_of(2, second)))
    return list(dict.fromkeys([*(a + b for a, b in pairs), *(b + a for a, b in pairs)]))


KINDS = [(0, *row) for row in ("ax", "ay", "bx", "by", "rx")]
MULTISETS: list[list[Rows]] = [list(combinations_with_replacement(KINDS, n)) for n in range(4)]
#: Every multiset of at most three rows of no one; and lists of rows of two persons.
SETS: dict[str, list[Rows]] = {"rows": [rows for one in MULTISETS for rows in one]}
SETS |= {"three rows": MULTISETS[3], "one of many": persons(3, 1), "two": persons(2, 2)}
#: Of all pairs of data sets, which are neighbours.
Pairs = NDArray[np.bool_]


@cache
def moved_rows(sets: str) -> NDArray[Any]:
    """How many rows of each kind are added or removed between two data sets."""
    numbers = np.array([[rows.count(kind) for kind in KINDS] for rows in SETS[sets]])
    return np.abs(numbers[:, None] - numbers)


def within(sets: str, bounds: list[Any]) -> Pairs:
    """Neighbours by the definition of Bounds."""
    moved = moved_rows(sets)
    near = np.ones(moved.shape[:2], dtype=bool)
    for bound in bounds:
        keys = [tuple(kind[list(SCHEMA).index(key)] for key in bound.by) for kind in KINDS]
        groups = np.array([[key == one for one in sorted(set(keys))] for key in keys])
        sizes = moved @ groups
        if bound.per_group is not None:
            near &= sizes.max(axis=-1) <= bound.per_group
        if bound.num_groups is not None:
            near &= (sizes > 0).sum(axis=-1) <= bound.num_groups
    return near


def changed(sets: str, most: int) -> Pairs:
    return moved_rows(sets).sum(axis=-1) <= 2 * most


def people(sets: str, most: int, *, exchanged: bool = False) -> Pairs:
    """Neighbours of which persons come and go with all their rows, or are exchanged for as many."""
    of_each = [
        {tuple(row for row in rows if row[0] == who) for who, *_ in rows} for rows in SETS[sets]
    ]

    def is_near(one: set[Rows], other: set[Rows]) -> bool:
        gone, come = len(one - other), len(other - one)
        return gone == come <= most if exchanged else gone + come <= most

    return np.array([[is_near(one, other) for other in of_each] for one in of_each])


# --- What is asked
PAGES: dict[str, Any] = {"nulls": ob.DROP, "categories": ["a", "b"], "unknown": ob.DROP}
MERGED: dict[str, Any] = {"nulls": "a", "categories": ["a"], "unknown": "other"}
OF_PAGE: dict[str, Any] = {"categories": {"page": ["a", "b"]}, "nulls": ob.DROP}
GAUSSIAN = {"mechanism": "gaussian_parameters"}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "pages": lambda query: ob.posterior(query, "page", **PAGES, **GAUSSIAN),
    "merged": lambda query: ob.posterior(query, "page", **MERGED, **GAUSSIAN),
    "days": lambda query: ob.posterior(query, "day", nulls=ob.DROP, **GAUSSIAN),
    "joint": lambda query: ob.posterior(
        query, ["day", "page"], **OF_PAGE, unknown={"page": ob.DROP}, **GAUSSIAN
    ),
    "groups": lambda query: ob.posterior(
        query, "day", by="page", **OF_PAGE | {"nulls": {"day": ob.DROP}}, **GAUSSIAN
    ),
    "of three": lambda query: ob.posterior(query, "page", **MERGED, size=3, **GAUSSIAN),
    "discovered": lambda query: ob.discover(
        query, "page", nulls=ob.DROP, mechanism="gaussian_threshold"
    ),
}
PLANS: dict[str, Callable[[Any], Any]] = {
    "": lambda query: query,
    "first 2": lambda query: query.truncate_per_group(2, keep="first"),
    "last 1": lambda query: query.truncate_per_group(1, keep="last"),
    "pages": lambda query: query.truncate_per_group(1, by=["page"]).truncate_per_group(2),
}


def query_of(unit: Any, plan: str, question: str) -> Any:
    loss = dp.loss_of(rho=BUDGET[0], delta=BUDGET[1])
    of = {"privacy_unit": unit, "privacy_loss": loss, "split_evenly_over": 1}
    context = dp.Context.compositor(pl.LazyFrame(schema=SCHEMA), **of)
    return QUESTIONS[question](PLANS[plan](context.query()))


@cache
def counts(sets: str, plan: str, question: str) -> NDArray[Any]:
    """The counts of each data set, by the chain of a query, whose unit says nothing of them."""
    identifier = None if plan == "" else "who"
    unit = dp.unit_of(contributions=1, identifier=identifier)
    if question == "of three":
        unit = dp.unit_of(changes=1)
    asked = query_of(unit, plan, question)._bound
    frames = [pl.LazyFrame(list(rows), schema=SCHEMA, orient="row") for rows in SETS[sets]]
    if question != "discovered":
        return np.array([asked.counts(frame) for frame in frames])
    found = [
        {key: number for batch in asked.chain(frame).batches() for key, number in batch.rows()}
        for frame in frames
    ]
    return np.array([[one.get(page, 0) for page in "abr"] for one in found])


def moves(near: Pairs, sets: str, plan: str, question: str) -> NDArray[Any]:
    """How far the counts of neighbours are apart, `(pairs, k)`."""
    of = counts(sets, plan, question)
    one, other = np.nonzero(near)
    return of[one] - of[other]


def norms(moved: NDArray[Any], *, rising: bool = False) -> Norms:
    """The most in each norm, of the counts that rise alone where their number is public."""
    size = np.maximum(moved, 0) if rising else np.abs(moved)
    return int(size.sum(1).max()), int((size**2).sum(1).max()), int(size.max())


def below(claimed: Distance, true: Norms) -> list[str]:
    """The norms in which a distance is less than the true one."""
    names = ("records", "squared", "largest")
    return [name for name, one in zip(names, true, strict=True) if getattr(claimed, name) < one]


def bounded(*bounds: Any) -> tuple[Any, Any]:
    return dp.unit_of(contributions=list(bounds)), lambda sets: within(sets, list(bounds))


def of_people(kind: str, number: int) -> tuple[Any, Any]:
    unit: dict[str, Any] = {kind: number, "identifier": "who"}
    exchanged = kind == "changes"
    near = lambda sets: people(sets, number, exchanged=exchanged)  # noqa: E731
    return dp.unit_of(**unit), near


TWO_PAGES = bounded(Bound(by=["page"], per_group=1, num_groups=2))
THREE_PAGES = bounded(Bound(by=["page"], per_group=1, num_groups=3))
TWO_EACH = bounded(Bound(by=["page"], per_group=2), Bound(by=[], per_group=3))
OF_BOTH = bounded(Bound(by=["page", "day"], per_group=1, num_groups=3))
ONE_CHANGED = (dp.unit_of(changes=1), lambda sets: changed(sets, 1))
TWO_CHANGED = (dp.unit_of(changes=2), lambda sets: changed(sets, 2))
THREE = (dp.unit_of(contributions=3), lambda sets: within(sets, [Bound(by=[], per_group=3)]))
PERSON = of_people("contributions", 1)
PEOPLE = of_people("contributions", 2)
EXCHANGED = of_people("changes", 1)
#: A unit, the data sets, the plan, the question, and the true distance.
CASES: list[tuple[Any, str, str, str, Norms]] = [
    (THREE, "rows", "", "pages", (3, 9, 3)),
    (THREE, "rows", "", "discovered", (3, 9, 3)),
    (TWO_PAGES, "rows", "", "pages", (2, 2, 1)),
    (TWO_PAGES, "rows", "", "merged", (2, 4, 2)),
    (TWO_PAGES, "rows", "", "days", (2, 4, 2)),
    (TWO_PAGES, "rows", "", "joint", (2, 2, 1)),
    (TWO_PAGES, "rows", "", "groups", (2, 2, 1)),
    (TWO_PAGES, "rows", "", "discovered", (2, 2, 1)),
    (THREE_PAGES, "rows", "", "discovered", (3, 3, 1)),
    (TWO_EACH, "rows", "", "pages", (3, 5, 2)),
    (TWO_EACH, "rows", "", "joint", (3, 5, 2)),
    (TWO_EACH, "rows", "", "discovered", (3, 5, 2)),
    (OF_BOTH, "rows", "", "joint", (3, 3, 1)),
    (OF_BOTH, "rows", "", "days", (3, 9, 3)),
    (OF_BOTH, "rows", "", "groups", (3, 3, 1)),
    (ONE_CHANGED, "three rows", "", "of three", (1, 1, 1)),
    (TWO_CHANGED, "three rows", "", "of three", (2, 4, 2)),
    (PERSON, "one of many", "first 2", "pages", (2, 4, 2)),
    (PERSON, "one of many", "first 2", "discovered", (2, 2, 1)),
    (PERSON, "one of many", "pages", "pages", (2, 2, 1)),
    (PERSON, "one of many", "pages", "days", (2, 4, 2)),
    (PEOPLE, "two", "last 1", "pages", (2, 4, 2)),
    (PEOPLE, "two", "last 1", "discovered", (2, 4, 2)),
    (PEOPLE, "two", "pages", "pages", (4, 8, 2)),
    (PEOPLE, "two", "pages", "discovered", (4, 8, 2)),
    (EXCHANGED, "two", "last 1", "pages", (2, 2, 1)),
    (EXCHANGED, "two", "last 1", "discovered", (2, 2, 1)),
]


def is_tight(unit: Any, plan: str) -> bool:
    """False where OpenDP's own distance of rows is more than can be, of exchanges and groups."""
    return unit is not EXCHANGED


@pytest.mark.parametrize(("unit", "sets", "plan", "question", "true"), some_of(CASES, 20))
def test_maps_are_the_most_that_neighbours_differ(unit, sets, plan, question, true):
    """The distance of the counts, and the loss that is debited, at the worst neighbours of all."""
    given, near = unit
    moved = moves(near(sets), sets, plan, question)
    assert norms(moved, rising=question == "of three") == true
    query = query_of(given, plan, question)
    claimed = query._bound.distance
    assert below(claimed, true) == []
    rho, delta = query.resolve().map(given[1])
    law = query._bound.settled(BUDGET)
    scale = law.law.scale if question == "discovered" else law.mechanism.scale
    lost = norms(moved)[1] / (2 * scale**2)
    assert lost <= rho <= BUDGET[0]
    if is_tight(unit, plan):
        assert below(Distance(*true), (claimed.records, claimed.squared, claimed.largest)) == []
        assert rho == pytest.approx(lost, rel=1e-6)
    if question == "discovered":
        # That any value is shown which one of the data sets has not at all.
        shown = chance_of_news(law.law, near(sets), sets, plan)
        assert shown <= delta <= BUDGET[1]
        assert shown > delta / 10


def chance_of_news(law: Any, near: Pairs, sets: str, plan: str) -> float:
    of = counts(sets, plan, "discovered")
    one, other = np.nonzero(near)
    shown = np.where(of[other] == 0, law.shown(of[one]), 0.0)
    return float(np.max(-np.expm1(np.log1p(-shown).sum(axis=1))))


@pytest.mark.parametrize("norm", range(3))
def test_a_distance_that_is_too_small_in_one_norm_is_noticed(norm: int) -> None:
    """Negative control."""
    true = norms(moves(TWO_EACH[1]("rows"), "rows", "", "pages"))
    less = [one - (at == norm) for at, one in enumerate(true)]
    assert below(Distance(*true), true) == []
    assert below(Distance(*less), true)
