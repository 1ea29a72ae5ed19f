"""From Bounds to distances: every unit of a few rows, users' plans, and OpenDP's noise."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.queries.categorical_counts import cells_in_frame
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.kinds import kinds_of_frame
from opendp_bayes.trusted.opendp_internals import belongs_to, parts_of, plan_of
from opendp_bayes.trusted.spaces import CountsSpace
from tests.helpers.sweeps import slow

Bound, C = dp.polars.Bound, pl.col
DAYS = pl.Enum(["x", "y"])
#: Rows of a unit: two pages are listed, three are not, and one is null.
PAGES = ("a", "b", "r", "s", "t", None)
ROWS = tuple(product(PAGES, ("x", "y")))
FRAME = pl.LazyFrame(ROWS, schema={"page": pl.String, "day": DAYS}, orient="row")
DROPPED: dict[str, Any] = {"nulls": ob.DROP, "unknown": ob.DROP}
LISTED: dict[str, Any] = {"categories": ["a", "b"], **DROPPED}
OF_PAGES = {"categories": {"page": ["a", "b"]}, "nulls": ob.DROP, "unknown": {"page": ob.DROP}}
BY_PAGES = {"by": "page", "categories": {"page": ["a", "b"]}, "nulls": {"day": ob.DROP}}
QUESTIONS: dict[str, dict[str, Any]] = {
    "listed": {"column": "page", **LISTED},
    "nulls of their own": {"column": "page", **LISTED, "nulls": "r"},
    "nulls with a": {"column": "page", **LISTED, "nulls": "a"},
    "others together": {"column": "page", **LISTED, "unknown": "other"},
    "Enum": {"column": "day", "nulls": ob.DROP},
    "other days with x": {"column": "day", "categories": ["x"], "nulls": "none", "unknown": "x"},
    "joint": {"column": ["page", "day"], **OF_PAGES},
    "joint, nulls with a": {
        "column": ["page", "day"],
        **OF_PAGES,
        "nulls": {"page": "a", "day": ob.DROP},
    },
    "groups": {"column": "day", **BY_PAGES},
}
UNITS: dict[str, list[Any]] = {
    "one in each of two": [Bound(by=["page"], per_group=1, num_groups=2)],
    "two in each of two": [Bound(by=["page"], per_group=2, num_groups=2)],
    "one in each of three": [Bound(by=["page"], per_group=1, num_groups=3)],
    "said apart": [Bound(by=["page"], per_group=2), Bound(by=["page"], num_groups=2)],
    "of both columns": [Bound(by=["page", "day"], per_group=1, num_groups=3)],
    "number and page": [Bound(by=[], per_group=3), Bound(by=["page"], per_group=2)],
    "by day": [Bound(by=["day"], per_group=2, num_groups=2)],
    "of both, and each": [
        Bound(by=["page", "day"], per_group=1),
        Bound(by=["page"], num_groups=2),
        Bound(by=["day"], num_groups=2),
    ],
    "of both, and fewer by day": [
        Bound(by=["page", "day"], per_group=2),
        Bound(by=["day"], per_group=3, num_groups=2),
    ],
    "no key": [Bound(by=[], per_group=3)],
    "nothing of these columns": [Bound(by=["page"], num_groups=1), Bound(by=[], per_group=2)],
}


def satisfies(rows: Any, bounds: list[Any]) -> bool:
    """True if rows satisfy Bounds, by their definition alone."""
    for bound in bounds:
        at = [("page", "day").index(key) for key in bound.by]
        groups = Counter(tuple(row[one] for one in at) for row in rows)
        if bound.num_groups is not None and len(groups) > bound.num_groups:
            return False
        if bound.per_group is not None and max(groups.values(), default=0) > bound.per_group:
            return False
    return True


def units(bounds: list[Any], most: int = 6) -> Iterator[tuple[Any, ...]]:
    """Every set of rows that a unit may have, up to so many."""
    for number in range(most + 1):
        found = [of for of in combinations_with_replacement(ROWS, number) if satisfies(of, bounds)]
        if not found:
            return
        yield from found


@cache
def numbers_of(unit: str) -> Any:
    """How many of each row every such set has, shape `(sets, rows)`."""
    return np.array([[rows.count(row) for row in ROWS] for rows in units(UNITS[unit])])


def counted(arguments: dict[str, Any], size: int | None = None) -> tuple[Any, Any, Any]:
    """The cells of a question, the kinds of the columns, and the counts of each row alone."""
    domain, metric = dp.domain_of(FRAME, infer=True), dp.frame_distance(dp.symmetric_distance())
    if size is not None:
        domain = dp.with_margin(domain, dp.polars.Margin(by=[], invariant="lengths", max_length=99))
    cells = cells_in_frame(domain, metric, Question.of(**arguments, size=size))
    names = [of.column for of in cells.axes]

    def counted(row):
        schema = FRAME.collect_schema()
        frame = pl.DataFrame({"page": [row[0]], "day": [row[1]]}, schema=schema)
        return cells.counts(frame.select(*names).with_columns(number=1))

    each = {row: counted(row) for row in ROWS}
    return cells, kinds_of_frame(domain), each


def moves(rows: Any, each: Any, k: int) -> Any:
    return sum((each[row] for row in rows), np.zeros(k, dtype=np.int64))


@cache
def asked(question: str) -> tuple[Any, Any, Any]:
    return counted(QUESTIONS[question])


def largest(question: str, unit: str) -> tuple[int, int, int]:
    each = asked(question)[2]
    found = numbers_of(unit) @ np.array([each[row] for row in ROWS])
    return int(found.sum(axis=1).max()), int((found**2).sum(axis=1).max()), int(found.max())


def stated(question: str, unit: str, kept: tuple[str, ...]) -> Any:
    cells, kinds, _ = asked(question)
    return Bounds.of(UNITS[unit]).distance(cells, kinds, frozenset(kept))


def test_a_value_that_an_enum_lacks_is_counted_for_none_that_it_has():
    """Queries refuse it; cells that others make may list it."""
    kinds = kinds_of_frame(dp.domain_of(FRAME, infer=True))
    axis = Axis("day", "text", ("x", "z"), null=2, unknown=2)
    space = CountsSpace(("x", "z", "y or none"), None)
    cells = Cells((axis,), np.array([0, 1, 2]), space)
    bounds = Bounds.of([Bound(by=["day"], per_group=1), Bound(by=[], per_group=5)])
    assert bounds.distance(cells, kinds, frozenset(["day"])).largest == 2


#: By type in OpenDP, or an Enum, values of a column, as many as matter.
SOME: dict[str, list[Any]] = {
    "bool": [True, False],
    "str": ["x", "y", "z", "none", "other"],
    "Enum": ["x", "y"],
}
SOME |= {"u64": [1, 2, 2**64 - 1, 2**63], "i32": [1, -1, 2, 3]}


TYPES = {"bool": pl.Boolean, "str": pl.String, "u64": pl.UInt64, "i32": pl.Int32}
TYPES |= {"Enum": pl.Enum(SOME["Enum"])}


@pytest.mark.parametrize(
    ("kind", "nullable"), [("Enum", True), *product(sorted({*SOME} - {"Enum"}), [False, True])]
)
def test_all_values_that_share_a_cell_are_groups_of_a_bound(kind: str, nullable: bool) -> None:
    """One row of each of three values: one is listed, and others, and none, anywhere."""
    domain: Any = dp.domain_of(pl.LazyFrame(schema={"x": TYPES[kind]}), infer=True)
    if not nullable:
        domain = dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T=kind))])
    values = [*SOME[kind], *([None] if nullable else [])]
    listed = SOME[kind][:1]
    bounds = Bounds.of([Bound(by=["x"], per_group=1, num_groups=3)])
    places = [*listed, "none", "other", ob.DROP]
    for nulls, unknown in product(places if nullable else [None], places):
        if len({*map(repr, (*listed, nulls, unknown))} - {"None", repr(ob.DROP)}) < 2:
            continue
        question = Question.of("x", categories=listed, nulls=nulls, unknown=unknown)
        cells = cells_in_frame(domain, dp.frame_distance(dp.symmetric_distance()), question)
        distance = bounds.distance(cells, kinds_of_frame(domain), frozenset({"x"}))
        rows = [pl.Series("x", [value], TYPES[kind]).to_frame() for value in values]
        each = [cells.counts(row.with_columns(number=1)) for row in rows]
        moved = [sum(three) for three in combinations(each, min(3, len(each)))]
        each_moved = zip(*((of.sum(), of @ of, of.max()) for of in moved), strict=True)
        most = [max(map(int, numbers)) for numbers in each_moved]
        stated = [distance.records, distance.squared, distance.largest]
        assert most == stated, (nulls, unknown)


#: Where less than is stated can occur: there are but two listed pages, or but two days in a page.
NOT_TIGHT = {
    ("one in each of three", "joint"),
    ("one in each of three", "groups"),
    ("of both columns", "listed"),
    ("of both, and fewer by day", "joint"),
    ("of both, and fewer by day", "groups"),
}


#: Plans, and which columns are not those of the Bounds afterwards.
MERGED = pl.col("page").replace({"r": "a", "s": "a"})
FILLED = pl.col("day").cast(pl.String).fill_null("x").cast(DAYS)
PLANS: dict[str, tuple[Any, set[str]]] = {
    "nothing": (lambda of: of, set()),
    "neither": (
        lambda of: of.with_columns(other=MERGED).filter(pl.col("day") == "x").select("day", "page"),
        set(),
    ),
    "pages before others": (
        lambda of: of.with_columns(page=MERGED).filter(pl.col("page") == "a").select("page", "day"),
        {"page"},
    ),
    "days": (lambda of: of.select("page", day=FILLED), {"day"}),
    "pages, and then days": (
        lambda of: of.with_columns(page=pl.col("day").cast(pl.String)).with_columns(day=FILLED),
        {"page", "day"},
    ),
}


def rows_after(plan: Any) -> list[Any]:
    """What a plan makes of each row, a frame of one or none."""
    each = (pl.LazyFrame([row], schema=FRAME.collect_schema(), orient="row") for row in ROWS)
    return [plan(row).select("page", "day").collect() for row in each]


def distances(query: Any, plan: Any, of_survey: bool) -> dict[str, Any]:
    """What is stated of every question, and of values that nobody listed."""
    if of_survey:
        survey = ob.survey(plan(query), QUESTIONS)
        return {name: of.distance for name, of in survey.questions.items()}
    return {
        nulls: ob.discover(plan(query), "page", nulls=nulls or ob.DROP)._bound.distance
        for nulls in ("", "r")
    }


#: Of each person as many rows as a unit has, by limits.
PERSONS: dict[str, Any] = {
    "one in each of two": lambda of: of.truncate_per_group(1, by=["page"]).truncate_per_group(2),
    "of both columns": lambda of: of.truncate_per_group(3).truncate_per_group(
        1, by=["day", "page"]
    ),
    "number and page": lambda of: of.truncate_per_group(2, by=["page"]).truncate_per_group(3),
}


@pytest.mark.filterwarnings("ignore:questions")
@pytest.mark.parametrize(("persons", "unit"), [*product([0], UNITS), *product([1], PERSONS)])
def test_no_unit_moves_counts_further_than_is_stated_after_any_plan(
    unit: str, persons: int
) -> None:
    """A column that a plan computes is not that of the Bounds: of the same name it is refused, and
    of another it has what limits the number of rows.
    """
    of_unit = (
        {"contributions": 1, "identifier": "who"} if persons else {"contributions": UNITS[unit]}
    )
    numbers, kinds = numbers_of(unit), asked("listed")[1]
    bounds, privacy_unit = Bounds.of(UNITS[unit]), dp.unit_of(**of_unit)
    listed, unlisted = query_of(privacy_unit), query_of(privacy_unit, rho=1.0, delta=0.1)
    listed = PERSONS[unit](listed) if persons else listed
    at = list(UNITS).index(unit)
    for name in {"nothing", *(list(PLANS) * 2)[at % 5 : at % 5 + 3]}:
        plan, computed = PLANS[name]
        if computed & {str(key) for bound in UNITS[unit] for key in bound.by}:
            with pytest.raises(ValueError, match="is computed anew, and the Bounds"):
                distances(listed, plan, of_survey=True)
            continue
        after = rows_after(plan)
        for question, stated in distances(listed, plan, of_survey=True).items():
            cells = asked(question)[0]
            names = [of.column for of in cells.axes]
            counts = [cells.counts(of.select(*names).with_columns(number=1)) for of in after]
            moved = numbers @ np.array(counts)
            true = int(moved.sum(axis=1).max()), int((moved**2).sum(axis=1).max()), int(moved.max())
            claimed = stated.records, stated.squared, stated.largest
            assert all(map(int.__le__, true, claimed)), (name, question)
            least = bounds.distance(cells, kinds, frozenset({"page", "day"} - computed))
            assert claimed <= (least.records, least.squared, least.largest), (name, question)
            if name == "nothing" and (unit, question) not in NOT_TIGHT:
                assert true == claimed, question
        if persons:  # of whom each is counted once
            continue
        for nulls, stated in distances(unlisted, plan, of_survey=False).items():
            pages = [(of["page"].fill_null(nulls).to_list() or [""])[0] for of in after]
            moved = numbers @ np.array([[of == page for page in PAGES if page] for of in pages])
            most = bounds.per_group(frozenset({"page"} - computed)) * (2 if nulls else 1)
            assert moved.max() <= stated.largest == min(bounds.records, most), (name, nulls)
            assert moved.sum(axis=1).max() <= stated.records == bounds.records, (name, nulls)


#: Columns with unequal numbers of values, some of which are counted together.
SIZED = {"three": ["p", "q", "r"], "two": ["x", "y"], "four": [1, 2, 3, 4]}


@pytest.mark.parametrize("by", [by for n in (1, 2, 3) for by in combinations(SIZED, n)])
def test_the_order_of_three_columns_changes_no_distance(by: tuple[str, ...]) -> None:
    """Those that a Bound names may stand anywhere in a table, or make its groups."""
    types = {"three": pl.String, "two": pl.Enum(["x", "y", "z"]), "four": pl.Int64}
    domain, metric = dp.domain_of(pl.LazyFrame(schema=types), infer=True), dp.symmetric_distance()
    policies = {
        "nulls": {"three": "p", "two": "x", "four": 2},
        "unknown": {"three": ob.DROP, "two": "x", "four": 5},
    }
    bounds, found = Bounds.of([Bound(by=list(by), per_group=1, num_groups=60)]), set()
    for order in permutations(SIZED):
        for column, groups in ((list(order), None), (order[0], list(order[1:]))):
            question = Question.of(column, by=groups, categories=SIZED, **policies)
            cells = cells_in_frame(domain, metric, question)
            distance = bounds.distance(cells, kinds_of_frame(domain), frozenset(SIZED))
            found.add((distance.squared, distance.largest))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("question", "unit", "kept"),
    [
        ("others together", "one in each of three", ("page",)),
        ("nulls with a", "one in each of two", ("page",)),
        ("Enum", "one in each of three", ("page", "day")),
    ],
)
def test_what_the_listing_of_units_notices(question: str, unit: str, kept: tuple[str, ...]) -> None:
    """Negative control: too few where pages are merged or another column is counted."""
    (bound,) = UNITS[unit]
    naive = bound.per_group**2 * bound.num_groups
    assert largest(question, unit)[1] > naive
    assert stated(question, unit, kept).squared > naive


@pytest.mark.parametrize("question", ["others together", "nulls with a", "Enum"])
@pytest.mark.parametrize("unit", ["two in each of two", "of both columns", "no key"])
def test_counts_of_a_public_number_rise_and_fall_no_further(unit: str, question: str) -> None:
    """Each half of the rows that a unit adds and removes, up to four."""
    arguments = QUESTIONS[question] | {
        name: place
        for name, place in (("nulls", "a"), ("unknown", "other"))
        if QUESTIONS[question].get(name) is ob.DROP
    }
    if question == "Enum":
        arguments = {"column": "day", "nulls": "x"}
    cells, kinds, each = counted(arguments, size=99)
    distance = Bounds.of(UNITS[unit]).distance(cells, kinds, frozenset(("page", "day")))
    for rows in units(UNITS[unit], 4):
        if len(rows) % 2:
            continue
        for removed in combinations(range(len(rows)), len(rows) // 2):
            added = [row for at, row in enumerate(rows) if at not in removed]
            gone = [rows[at] for at in removed]
            k = cells.space.k
            move = moves(added, each, k) - moves(gone, each, k)
            for side in (np.maximum(move, 0), np.maximum(-move, 0)):
                assert side.sum() <= distance.records
                assert (side**2).sum() <= distance.squared
                assert side.max() <= distance.largest


# --- Plans and spellings
PAGE_OF_TEN = [Bound(by=["page"], per_group=1, num_groups=10)]
TWENTY = [chr(97 + at) for at in range(20)]
_COLUMNS = {"page": ["a", "b"] * 50, "day": ["x", "y", "x", "x"] * 25, "who": range(100)}
LOG = pl.LazyFrame(_COLUMNS, schema_overrides={"day": DAYS})
OF_TWENTY: dict[str, Any] = {"categories": TWENTY, **DROPPED}
APART = ob.Distance(10, 10, 1)


def query_of(unit: Any, **loss: Any) -> Any:
    of = {"privacy_loss": dp.loss_of(**(loss or {"rho": 0.015})), "split_evenly_over": 1}
    return dp.Context.compositor(LOG, privacy_unit=unit, **of).query()


def asked_of(query: Any, column: Any = "page", **arguments: Any) -> Any:
    return ob.posterior(query, column, **{**OF_TWENTY, **arguments})._bound


def by_identifier(query: Any, first: str = "rows") -> Any:
    if first == "rows":
        query = query.truncate_per_group(1, by=["page"])
    query = query.truncate_per_group(10)
    return query if first == "rows" else query.truncate_per_group(1, by=["page"])


def of_bounds(*bounds):
    return query_of(dp.unit_of(contributions=list(bounds)))


@pytest.mark.parametrize(
    "query",
    [
        lambda: of_bounds(*PAGE_OF_TEN),
        lambda: of_bounds(*PAGE_OF_TEN[::-1]),
        lambda: of_bounds(Bound(by=["page"], per_group=1), Bound(by=["page"], num_groups=10)),
        lambda: of_bounds(Bound(by=[], per_group=10), Bound(by=["page"], per_group=1)),
        lambda: of_bounds(Bound(by=[pl.col("page")], per_group=1, num_groups=10)),
        lambda: by_identifier(query_of(dp.unit_of(contributions=1, identifier="who"))),
        lambda: by_identifier(query_of(dp.unit_of(contributions=1, identifier="who")), "groups"),
        lambda: of_bounds(*PAGE_OF_TEN).filter(pl.col("day") == "x"),
        lambda: of_bounds(*PAGE_OF_TEN).select("page", "day"),
        lambda: of_bounds(*PAGE_OF_TEN).with_columns(day=pl.col("day").cast(pl.String)),
    ],
)
def test_every_spelling_of_a_unit_has_the_same_noise(query: Any) -> None:
    asked = asked_of(query())
    assert asked.distance == APART
    assert asked.settled(0.015).mechanism.scale == pytest.approx(math.sqrt(10 / 0.03), rel=1e-8)
    found = ob.posterior(query(), "page", **OF_TWENTY).release()
    assert found.d_in == found.guarantee.distance == APART
    assert ob.Release.from_json(found.to_json()) == found
    assert "at most 1 in one count" in " ".join(str(found).split())


def test_another_column_and_everything_else_have_all_records_in_one_count() -> None:
    query = query_of(dp.unit_of(contributions=PAGE_OF_TEN))
    assert asked_of(query, "day", categories=None, unknown=None).distance == ob.Distance.of(10)
    assert asked_of(query, unknown="other").distance == ob.Distance.of(10)
    # A text that reads like the label of the nulls is counted with them.
    assert asked_of(query, nulls="none").distance == ob.Distance(10, 12, 2)
    # Of which none may be in any of two pages: one record in each.
    assert asked_of(query, categories=["a", "b"]).distance == ob.Distance(2, 2, 1)


def test_groups_joint_tables_surveys_levels_and_discoveries_have_the_same_distance() -> None:
    unit = dp.unit_of(contributions=PAGE_OF_TEN)
    both = {"categories": {"page": TWENTY}, "nulls": ob.DROP, "unknown": {"page": ob.DROP}}
    assert asked_of(query_of(unit), ["page", "day"], **both).distance == APART
    groups = {"by": "page", "categories": {"page": TWENTY}, "nulls": {"day": ob.DROP}}
    assert asked_of(query_of(unit), "day", **groups, unknown=None).distance == APART
    questions = {"days": {"column": "day", "nulls": ob.DROP}}
    questions |= {"pages": {"column": "page", **OF_TWENTY}}
    survey = ob.survey(query_of(unit), questions | {"both": {"column": ["page", "day"], **both}})
    found = {name: of.distance for name, of in survey.questions.items()}
    days = ob.Distance(10, 100, 10)
    assert found == {"days": days, "pages": APART, "both": APART}
    measurement = survey.resolve()
    assert measurement.map(PAGE_OF_TEN) <= 0.015
    released = survey.release()
    assert [one.guarantee.distance for one in released.values()] == [days, APART, APART]
    discovered = ob.discover(query_of(unit, rho=0.015, delta=1e-6), "page", nulls=ob.DROP)
    assert discovered._bound.distance == APART
    assert discovered.resolve().map(PAGE_OF_TEN)[0] <= 0.015
    # Records without a page, and with that of this name, are in one count.
    with_nulls = ob.discover(query_of(unit, rho=0.015, delta=1e-6), "page", nulls="none")
    assert with_nulls._bound.distance == ob.Distance.limited(10, 2)
    people = query_of(dp.unit_of(contributions=1, identifier="who"), rho=0.015, delta=1e-6)
    of_people = people.truncate_per_group(10)
    of_people = ob.discover(of_people, "page", nulls=ob.DROP)
    assert of_people._bound.distance == APART


def test_a_chain_by_hand_takes_the_number_of_records() -> None:
    """It does not see the plan, after which OpenDP's Bounds may name another column."""
    domain = dp.domain_of(LOG, infer=True)
    counts = ob.t.make_categorical_counts(
        domain, dp.frame_distance(dp.symmetric_distance()), column="page", **OF_TWENTY
    )
    assert counts.map(PAGE_OF_TEN) == 10
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
    noisy = posterior >> ob.m.then_gaussian_parameters(dp.zero_concentrated_divergence(), 10.0)
    assert noisy.map(PAGE_OF_TEN) == 0.5
    of_posterior = ob.m.make_gaussian_parameters(
        *posterior.output_space, dp.zero_concentrated_divergence(), 10.0
    )
    assert of_posterior.map(APART) == 0.05


# --- OpenDP's own counts
KEYS = {"page": ["a", "b", "c"], "day": ["x", "y"]}
LOSSES: tuple[dict[str, float], ...] = (
    {"rho": 0.3},
    {"epsilon": 0.7},
    {"epsilon": 0.7, "delta": 1e-6},
)


def random_unit(rng: np.random.Generator) -> list[Any]:
    groupings = [[], ["page"], ["day"], ["page", "day"]]
    found = []
    for at in rng.choice(4, size=rng.integers(1, 4), replace=False):
        limits = {
            name: int(rng.integers(1, 9))
            for name in ("per_group", "num_groups")
            if rng.random() < 0.75 and (groupings[at] or name == "per_group")
        }
        if limits:
            found.append(Bound(by=groupings[at], **limits))
    return found if limits_all_records(found) else []


def limits_all_records(unit: list[Any]) -> bool:
    """True unless Bounds leave the number of records open, which is refused."""
    try:
        return bool(unit) and Bounds.of(unit).records > 0
    except ValueError:
        return False


def std_of_opendp(unit: list[Any], keys: list[str], loss: dict[str, float]) -> float | None:
    """The standard deviation of the noise of OpenDP's own counts; None where it refuses."""
    names = pl.LazyFrame(list(product(*(KEYS[key] for key in keys))), schema=keys, orient="row")
    names = names.cast({"day": DAYS} if "day" in keys else {})
    query = query_of(dp.unit_of(contributions=unit), **loss)
    plan = plan_of(query.group_by(keys).agg(dp.len(scale=1.0, signed=True)).with_keys(names))
    parts = parts_of(belongs_to(query))
    try:
        at_one = dp.m.make_private_lazyframe(*parts.chain, parts.output_measure, plan).map(unit)
    except OpenDPException:
        return None
    if "rho" in loss:  # which falls with the square of the scale
        return math.sqrt(at_one / loss["rho"])
    ratio = math.exp(-loss["epsilon"] / (at_one[0] if isinstance(at_one, tuple) else at_one))
    return math.sqrt(2 * ratio) / (1 - ratio)


def std_of_ours(unit: list[Any], keys: list[str], loss: dict[str, float]) -> float:
    listed = {"page": KEYS["page"]} if "page" in keys else None
    column, labels = (keys, listed) if len(keys) > 1 else (keys[0], listed and listed["page"])
    query = ob.posterior(
        query_of(dp.unit_of(contributions=unit), **loss),
        column=column,
        categories=labels,
        nulls=ob.DROP,
        unknown=ob.DROP if keys == ["page"] else {"page": ob.DROP} if listed else None,
        mechanism="gaussian_parameters" if "rho" in loss else "laplace_parameters",
    )
    noise: Any = query._bound.settled(query._d_out).law.noise
    if isinstance(noise, DiscreteGaussian):
        return noise.scale
    ratio = math.exp(-1 / noise.scale)
    return math.sqrt(2 * ratio) / (1 - ratio)


def compared(number: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    ratios: list[float] = []
    while len(ratios) < number:
        unit = random_unit(rng)
        keys = (["page"], ["day"], ["page", "day"])[rng.integers(3)]
        loss = LOSSES[rng.integers(3)]
        theirs = std_of_opendp(unit, keys, loss) if unit else None
        if theirs is not None:
            ratios.append(std_of_ours(unit, keys, loss) / theirs)
    return ratios


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("units", "seed"), [(8, 3), *slow([(200, 4)])])
def test_our_noise_is_at_most_that_of_opendp(units: int, seed: int) -> None:
    assert max(compared(units, seed)) <= 1 + 1e-8


@pytest.mark.parametrize(
    "key", [C("age") // 10, C("age") & C("sex"), C("sex").alias("age"), C("age").abs()]
)
def test_a_bound_by_an_expression_is_none_of_its_column(key: pl.Expr) -> None:
    """Ages in tens are other groups than ages, of the same name."""
    several, of_key = Bound(by=[], per_group=4), Bound(by=[key], per_group=1, num_groups=1)
    assert Bounds.of([several, of_key]).per_group(frozenset({"age"})) == 1
    assert Bounds.of([several, Bound(by=[key], per_group=1)]).per_group(frozenset({"age"})) == 4
    apart = Bound(by=[key], num_groups=1), Bound(by=["age"], per_group=1)
    assert Bounds.of([several, *apart]).records == 4
    with pytest.raises(ValueError, match=r"d_in=.*per_group"):
        Bounds.of([*apart])
