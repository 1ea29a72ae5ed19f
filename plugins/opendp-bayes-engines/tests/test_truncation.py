"""At most m rows of each identifier, at random, whatever others have or a session has set."""

from typing import Any

import duckdb
import polars as pl
import pytest
from contexts import counts, made
from hypothesis import HealthCheck, given, settings, strategies as st
from tables import ENGINES

import opendp_bayes as ob
from opendp_bayes.queries.question import Question, Variable
from opendp_bayes_engines import EngineQuery, steps

#: Of Dask, which the door of the core silences, and these tests go around.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

#: Rows of every person: none to six, and of nobody.
SIZES = {**{person: person % 7 for person in range(30)}, None: 5}
FRAME = pl.DataFrame(
    [(person, at, f"of {person}") for person, many in SIZES.items() for at in range(many)],
    schema={"person": pl.Int64, "at": pl.Int32, "name": pl.String},
    orient="row",
)


@pytest.fixture(scope="module", params=ENGINES)
def table(request, frame_in, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    FRAME.sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    return frame_in(request.param, path)


def people(table: Any) -> EngineQuery:
    return made(table, contributions=1, identifier="person").query()


@pytest.mark.parametrize("limit", [1, 3, 9])
def test_every_person_keeps_so_many_rows(table: Any, limit: int) -> None:
    """And none less, with conditions before and after."""
    chain, _ = (
        people(table).truncate_per_group(limit).counts_of_values("name", always=[], nulls="n")
    )
    assert chain.map(1) == ob.Distance(limit, squared=limit, largest=1).stated
    labels = [f"of {person}" for person in SIZES]
    numbers = counts(people(table).truncate_per_group(limit), table, ("name", labels, "n", "o"))
    assert numbers == [*(min(limit, many) for many in SIZES.values()), 0, 0]
    before = people(table).filter(("at", ">=", 2)).truncate_per_group(limit)
    numbers = counts(before, table, ("name", labels, "n", "o"))
    assert numbers == [*(min(limit, max(many - 2, 0)) for many in SIZES.values()), 0, 0]
    after = people(table).truncate_per_group(limit).filter(("at", "<", 6))
    numbers = counts(after, table, ("name", labels, "n", "o"))
    assert numbers == [*(min(limit, many) for many in SIZES.values()), 0, 0]
    if limit == 1:  # of which the first is one of many, where no condition goes before the limit
        first = people(table).truncate_per_group(1).filter(("at", "==", 0))
        kept = counts(first, table, ("name", labels, "n", "o"))
        assert sum(kept) < sum(map(bool, SIZES.values()))


def test_a_limit_of_all_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: rows of all are numbered together."""
    monkeypatch.setattr(steps.Limit, "apply", lambda self, frame, names: frame.head(self.rows))
    with pytest.raises(AssertionError):
        test_every_person_keeps_so_many_rows(FRAME.lazy(), 3)


def kept_of_one(table: Any, draws: int) -> list[int]:
    """How often each of the six rows of a person is the one that is kept."""
    numbers = [0] * 6
    for _ in range(draws):
        query = people(table).filter(("person", "==", 6)).truncate_per_group(1)
        for at, number in enumerate(counts(query, table, ("at", list(range(6)), 7, 7))[:6]):
            numbers[at] += number
    return numbers


def test_rows_kept_at_random_are_not_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the chi-squared statistic of five degrees: above 35 once in 600 000 times. Negative
    control: the column itself orders the rows.
    """
    for table in (FRAME.lazy(), duckdb.connect().from_arrow(FRAME.to_arrow())):
        numbers = kept_of_one(table, 120)
        assert sum(numbers) == 120
        assert sum((number - 20) ** 2 / 20 for number in numbers) < 35
    monkeypatch.setattr(steps, "ORDER", "c0")
    numbers = kept_of_one(FRAME.lazy(), 120)
    assert sum((number - 20) ** 2 / 20 for number in numbers) > 35


def test_seeds_of_sessions_do_not_matter() -> None:
    """By the same numbers, a row more would change which rows of others are kept."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    table = connection.from_arrow(FRAME.to_arrow())
    drawn, by_polars = set(), set()
    for _ in range(6):
        connection.execute("SELECT setseed(0.5)").fetchall()
        numbers = counts(people(table).truncate_per_group(1), table, ("at", list(range(6)), 7, 7))
        drawn.add(tuple(numbers))
        pl.set_random_seed(3)
        frame = FRAME.lazy()
        numbers = counts(people(frame).truncate_per_group(1), frame, ("at", list(range(6)), 7, 7))
        by_polars.add(tuple(numbers))
    assert len(drawn) > 1
    assert len(by_polars) > 1


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_who_comes_or_goes_moves_at_most_m(engine: str) -> None:
    """Of two people whose rows are all alike, so that it does not matter which are kept."""

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(value=st.sampled_from(["a", "b", None]), many=st.integers(0, 5), limit=st.integers(1, 3))
    def moves(value: str | None, many: int, limit: int) -> None:
        others = [(None, "b")] * 3
        both = pl.DataFrame(
            [*others, *[(1, value)] * many],
            schema={"person": pl.Int64, "v": pl.String},
            orient="row",
        )
        alone = both.filter(pl.col("person").is_null())
        found = []
        for frame in (both, alone):
            table = frame.lazy() if engine == "polars" else duckdb.from_arrow(frame.to_arrow())
            query = people(table).truncate_per_group(limit)
            found.append(counts(query, table, ("v", ["a", "b"], "n", "o")))
        assert sum(abs(x - y) for x, y in zip(*found, strict=True)) == min(many, limit)

    moves()


def test_distances_are_those_of_the_unit() -> None:
    """In rows that a unit moves by its steps."""
    table = FRAME.lazy()

    def moved(query: EngineQuery, units: int = 1) -> Any:
        size = None if query.steps or "changes" not in repr(query.metric).lower() else len(FRAME)
        question = Question((Variable("name", ["of 1"], "n", "o"),), size=size)
        return query.counts_of(question)[0].map(units)

    where = ("at", ">", 1)
    rows = made(table, contributions=3).query()
    assert [moved(rows), moved(rows, 3), moved(rows.filter(where), 3)] == [1, 3, 3]
    person = made(table, contributions=1, identifier="person").query()
    assert moved(person.filter(where).truncate_per_group(4).filter(where)) == 4
    assert moved(person.truncate_per_group(4), 2) == 8
    changed = made(table, changes=1, identifier="person").query()
    assert moved(changed.truncate_per_group(4)) == 8
    assert moved(made(table, changes=1).query().filter(where)) == 2
