"""Every engine counts what Python counts, at the ends of every type, with one odd record more."""

import datetime
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from contexts import counts, made, values
from hypothesis import HealthCheck, given, settings, strategies as st
from tables import ENGINES, TEXTS, columns_of, conditions, holds, rows

import opendp_bayes as ob
from opendp_bayes_engines import columns
from opendp_bayes_engines.opening import table_of
from tests.helpers.contexts import checked_context

#: Labels that differ in blanks or the form of Unicode alone are counted apart.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* differ in nothing but blanks:UserWarning"),
    # Of Dask, which the door of the core silences, and these tests go around.
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]

SIZE = 60
ROWS = rows(seed=3, size=SIZE)
#: Categories of each kind, some of them values.
CATEGORIES: dict[Any, list[Any]] = {
    pl.String: [*TEXTS[:6], TEXTS[-1], "nobody"],
    pl.Boolean: [False, True],
    pl.Int64: [0, -(2**63), 2**63 - 1, -128, 127, 2**32 - 1, 5],
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def in_engine(engine, frame_in, tmp_path_factory):
    """The rows as a table of the engine."""
    folder = tmp_path_factory.mktemp("rows")

    def make(frame: pl.DataFrame) -> Any:
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        known = [*columns_of(engine), "real", "single"]
        known += [] if engine.startswith("spark") else ["wide"]
        frame.select(known).write_parquet(path)
        return frame_in(engine, path)

    return make


@pytest.fixture(scope="module")
def table(in_engine: Callable[[pl.DataFrame], Any]) -> Any:
    return in_engine(ROWS)


def plain(value: Any) -> Any:
    """A value as a discovery shows it."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def kind(engine: str, name: str) -> Any:
    dtype = columns_of(engine)[name][0]
    return dtype if dtype in (pl.String, pl.Boolean, pl.Date) else pl.Int64


@pytest.mark.parametrize("often", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_engines_count_what_python_counts(engine: str, table: Any, often: int) -> None:
    known = columns_of(engine)
    asked = [name for name in known if kind(engine, name) in CATEGORIES]

    @settings(max_examples=often, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        where=st.lists(conditions(known), max_size=3),
        names=st.lists(st.sampled_from(asked), min_size=1, max_size=2, unique=True),
    )
    def count(where: list[Any], names: list[str]) -> None:
        labels = {name: CATEGORIES[kind(engine, name)] for name in names}
        query = made(table).query().filter(*where)
        numbers = counts(query, table, *((n, labels[n], labels[n][0], labels[n][1]) for n in names))
        kept = [row for row in ROWS.to_dicts() if all(holds(each, row) for each in where)]

        def place(name: str, value: Any) -> int:
            of = labels[name]
            return 0 if value is None else of.index(value) if value in of else 1

        expected: Counter[int] = Counter()
        for row in kept:
            at = 0
            for name in names:
                at = at * len(labels[name]) + place(name, row[name])
            expected[at] += 1
        assert numbers == [expected[at] for at in range(len(numbers))]

    count()


@pytest.mark.parametrize("size", [SIZE, 1, 0])
def test_written_columns_are_the_table(in_engine: Callable[[pl.DataFrame], Any], size: int) -> None:
    rows = ROWS.head(size)
    made = in_engine(rows)
    names = list(table_of(made).schema)
    frame = columns(made, names[::-1]).collect()
    assert frame.columns == names[::-1]
    wanted = rows.select(names[::-1]).cast(dict(frame.schema))
    assert frame.sort(pl.all()).equals(wanted.sort(pl.all()))


def test_the_core_counts_alike_what_was_written(table: Any) -> None:
    condition = ("number", ">=", 0)
    query = made(table).query().filter(condition)
    within = counts(query, table, ("text", TEXTS[:6], TEXTS[0], TEXTS[1]))
    context = checked_context(columns(table, ["text", "number"]), loss={"epsilon": 1e3})
    core = ob.posterior(
        context.query().filter(pl.col("number") >= 0),
        "text", categories=TEXTS[:6], nulls=TEXTS[0], unknown=TEXTS[1],
    ).release()  # fmt: skip
    assert list(core.noisy_counts) == within


#: Columns that are discovered, and the label of their nulls: a new one, or a value that occurs.
DISCOVERED = [
    *(("text", "nobody"), ("text", "yes"), ("text", ob.DROP), ("number", -(2**63)), ("number", 7)),
    *(("small", 300), ("flag", False), ("day", "none"), ("day", "2000-02-29"), ("day", "20000229")),
    ("day", ob.DROP),
]


@pytest.mark.parametrize(("name", "nulls"), DISCOVERED)
def test_every_value_is_counted_once(table: Any, name: str, nulls: Any) -> None:
    found = [None if value is None else plain(value) for value in ROWS[name]]
    expected = Counter(nulls if value is None else value for value in found)
    del expected[ob.DROP]
    assert values(made(table).query(), table, name, nulls) == expected


def test_one_odd_record_moves_one_count(engine, in_engine, table):
    """A record of the ends of all types, and of nothing, moves every question by one."""
    known = columns_of(engine)
    odd = {name: ends[at] for name, (_, ends) in known.items() for at in (-1,)}
    for record in (odd, dict.fromkeys(ROWS.columns)):
        more = in_engine(pl.concat([ROWS, pl.DataFrame([record], schema=ROWS.schema)]))
        for name in known:
            if (of := kind(engine, name)) in CATEGORIES:
                labels = CATEGORIES[of]
                asked = (name, labels, labels[0], labels[1])
                one, other = (counts(made(t).query(), t, asked) for t in (table, more))
                assert sum(map(abs, (x - y for x, y in zip(one, other, strict=True)))) == 1
            nulls = "n" if of in (pl.String, pl.Date) else False if of == pl.Boolean else 1
            here, there = (values(made(t).query(), t, name, nulls) for t in (table, more))
            assert sum((Counter(there) - Counter(here)).values()) == 1


def test_a_count_of_wrong_bytes_is_noticed(table, monkeypatch, engine):
    """Negative control: labels compared without their last character."""
    if engine not in ("duckdb", "polars"):
        pytest.skip("one control for each way of reading")
    from opendp_bayes_engines import tables

    monkeypatch.setattr(tables, "as_carried", lambda value, column: value.encode()[:-1])
    with pytest.raises(AssertionError):
        test_every_value_is_counted_once(table, "text", "yes")
