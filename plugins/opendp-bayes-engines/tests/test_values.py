"""Values that nobody listed: engines count what Python counts, and hand over nothing twice."""

import datetime
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from random_plans import ENGINES, rows
from sessions import ON_DUCKDB, OPEN, fill, make_hostile, new

import opendp_bayes as ob
from opendp_bayes.trusted import keys as core
from opendp_bayes_engines import context, on_duckdb, on_spark
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.kinds import Kind
from opendp_bayes_engines.query import EngineQuery

#: Of Dask, which the door of the core silences, and these tests go around.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

ROWS = rows(seed=3, size=300)
UNIT = {"contributions": 1, "identifier": "person"}
#: Columns, and the label of their nulls: new ones, values that occur, and values of another width.
ASKED = [
    ("text", "null"),
    ("text", "a'b"),
    ("text", "no such \"label'\\"),
    ("text", ob.DROP),
    ("number", -7),
    ("number", ob.DROP),
    ("small", 300),
    ("small", 0),
    ("wide", -1),
    ("wide", 2**63 - 1),
    ("wide", ob.DROP),
    ("flag", False),
    ("flag", ob.DROP),
    ("label", "none"),
    ("day", "none"),
    ("day", "2000-02-29"),
    ("day", "20000229"),
    ("day", ob.DROP),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    ROWS.write_parquet(path)
    return path


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def frame(engine: str, frame_in: Callable[[str, Path], Any], path: Path) -> Any:
    return frame_in(engine, path)


def query_of(frame: Any, **unit: Any) -> EngineQuery:
    return context(
        frame,
        privacy_unit=dp.unit_of(**(unit or {"contributions": 1})),
        privacy_loss=dp.loss_of(epsilon=60.0, delta=1e-6),
        split_evenly_over=1,
    ).query()


def counted(query: EngineQuery, data: Any, column: str, nulls: Any) -> dict[Any, int]:
    """The numbers before any noise, of which each value must have one alone."""
    counts, _ = query.counts_of_values(column, always=[], nulls=nulls)
    found: dict[Any, int] = {}
    for batch in counts(data).batches():
        for key, number in batch.rows():
            assert key not in found or key == nulls
            found[key] = found.get(key, 0) + number
    return found


def told(value: Any, nulls: Any) -> Any:
    """A value as it is shown; None where it is left out."""
    if value is None:
        return None if nulls is ob.DROP else nulls
    return value.isoformat() if isinstance(value, datetime.date) else value


def truncated(given: list[dict[str, Any]], names: set[str], m: int) -> list[dict[str, Any]]:
    """The first rows of each person by all other columns."""
    given = sorted(given, key=lambda row: [_key(row[name]) for name in sorted(names - {"person"})])
    seen: Counter[Any] = Counter()
    kept = []
    for row in given:
        seen[row["person"]] += 1
        if seen[row["person"]] <= m:
            kept.append(row)
    return kept


def _key(value: Any) -> Any:
    if value is None:
        return (0, 0)
    return (1, value.encode() if isinstance(value, str) else value)


def skip_unknown(query: EngineQuery, column: str) -> None:
    if query.schema[column].kind is Kind.OTHER:
        pytest.skip(f"this engine has no type like that of {column!r}")


@pytest.mark.parametrize(("column", "nulls"), ASKED)
def test_every_value_is_counted_once(frame: Any, column: str, nulls: Any) -> None:
    query = query_of(frame)
    skip_unknown(query, column)
    expected = Counter(told(value, nulls) for value in ROWS[column])
    del expected[None]
    assert counted(query, held(frame)[0], column, nulls) == expected


@pytest.mark.parametrize(("column", "nulls"), [*ASKED[:2], ASKED[3], ASKED[6], *ASKED[8:12]])
def test_people_are_counted_after_their_rows_are_limited(
    frame: Any, column: str, nulls: Any
) -> None:
    query = query_of(frame, **UNIT)
    skip_unknown(query, column)
    names = {"person", column, "number"}
    query = query.select(*names).truncate_per_group(9).filter(nw.col("number") <= 3)
    rows = [
        row
        for row in truncated(ROWS.to_dicts(), names, 9)
        if row["number"] is not None and row["number"] <= 3
    ]
    assert None in {row["person"] for row in rows}  # a person as any other
    pairs = {(told(row[column], nulls), row["person"]) for row in rows}
    expected = Counter(key for key, _ in pairs)
    del expected[None]
    assert sum(expected.values()) < len(rows)
    assert counted(query, held(frame)[0], column, nulls) == expected


@pytest.mark.parametrize("column", ["text", "number", "day"])
def test_many_values_are_counted_in_parts(
    frame: Any, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = query_of(frame)
    whole = counted(query, held(frame)[0], column, ob.DROP)
    monkeypatch.setattr(core, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(core, "_PARTS", 5)
    for of in (on_duckdb, on_spark):
        monkeypatch.setattr(of, "_AT_A_TIME", 2)
    assert counted(query, held(frame)[0], column, ob.DROP) == whole
    query = query_of(frame, **UNIT).truncate_per_group(4)
    parts = counted(query, held(frame)[0], column, ob.DROP)
    monkeypatch.undo()
    assert parts == counted(query, held(frame)[0], column, ob.DROP)


def test_a_release_shows_values_by_their_code_points(frame: Any) -> None:
    query = query_of(frame, **UNIT).truncate_per_group(1)
    release = ob.posterior(
        query, "flag", categories="discover", always=[False], nulls=False, rest=0.2
    ).release()
    assert (release.people, release.categories[0]) == (True, False)
    release = ob.posterior(query_of(frame), "text", categories="discover", nulls="none").release()
    known = Counter(told(value, "none") for value in ROWS["text"])
    assert release.categories == ("none", *sorted(known.keys() - {"none"}))
    assert release.drawn == tuple(known[text] for text in release.categories)


def test_people_are_counted_only_by_an_identifier_that_is_left_as_it_is() -> None:
    frame = ROWS.lazy()

    def asked(query: EngineQuery) -> tuple[str, int]:
        counts, base = query.counts_of_values("text", always=[], nulls="none")
        return counts.output_domain.descriptor.moved, counts.map(base._d_in)

    query = query_of(frame, **UNIT).truncate_per_group(3)
    assert asked(query) == ("people", 3)
    others = query.with_columns(text=nw.col("other")).filter(nw.col("number") > 0)
    assert asked(others) == ("people", 3)
    assert asked(query.select("text", "person")) == ("people", 3)
    dropped = query.select("text", "number")
    made = [
        query.with_columns(person=nw.col("number")),
        query.with_columns(person=nw.col("person").clip(0, 5)),
        query.select("text", nw.col("number").alias("person")),
        dropped,
        dropped.with_columns(person=nw.col("number")),
        query.with_columns(person=nw.col("number")).with_columns(text=nw.col("other")),
    ]
    assert [asked(each) for each in made] == [("records", 3)] * len(made)
    two = query_of(frame, contributions=2, identifier="person").truncate_per_group(3)
    assert asked(two) == ("records", 6)
    changes = query_of(frame, changes=1, identifier="person").truncate_per_group(3)
    assert asked(changes) == ("records", 6)
    assert asked(query_of(frame, contributions=4)) == ("records", 4)
    assert asked(query_of(frame, changes=2)) == ("records", 4)
    assert asked(query_of(frame, changes=2).filter(nw.col("number") > 0)) == ("records", 4)


def test_neighbours_of_one_person_move_as_many_values_as_are_kept() -> None:
    """By one each, all up or all down."""
    for person in (0, 5, None):
        here, there = (
            counted(
                query_of(one.lazy(), **UNIT).truncate_per_group(4),
                held(one.lazy())[0],
                "text",
                "null",
            )
            for one in (ROWS, ROWS.filter(~pl.col("person").eq_missing(person)))
        )
        moved = {here.get(key, 0) - there.get(key, 0) for key in here | there} - {0}
        assert moved == {1}
        assert sum(here.values()) - sum(there.values()) <= 4


@pytest.mark.parametrize(
    ("change", "column", "nulls", "match"),
    [
        (lambda q: q, "real", "none", "has type Float64; must be String"),
        (lambda q: q, "when", "none", "has type Datetime; must be String"),
        (lambda q: q, "nothing", "none", "is not a column of the frame"),
        (lambda q: q, ["text", "other"], "none", "must be the name of one column"),
        (lambda q: q, "text", None, "may hold nulls"),
        (lambda q: q, "number", "none", "must be"),
        (lambda q: q, "day", "-4 days", "reads like a date outside the years 1 to 9999"),
        (lambda q: q.group_by("flag"), "text", "none", "group_by must be the last step"),
    ],
)
def test_what_does_not_fit_is_refused(change: Any, column: Any, nulls: Any, match: str) -> None:
    frame = ROWS.lazy().with_columns(when=pl.col("day").cast(pl.Datetime))
    with pytest.raises((TypeError, ValueError), match=match):
        change(query_of(frame)).counts_of_values(column, always=[], nulls=nulls)
    with pytest.raises(ValueError, match="limit them first"):
        query_of(frame, **UNIT).counts_of_values("text", always=[], nulls="none")


@pytest.mark.parametrize("engine", ON_DUCKDB)
def test_sessions_of_duckdb_do_not_matter(engine: str) -> None:
    connection, frame = new(engine)
    fill(connection, ROWS)
    make_hostile(connection)
    try:
        for column, nulls in ASKED:
            query = query_of(frame())
            expected = Counter(told(value, nulls) for value in ROWS[column])
            del expected[None]
            assert counted(query, held(frame())[0], column, nulls) == expected, column
    finally:
        while OPEN:
            OPEN.pop().stop()


def test_values_that_duckdb_alone_has() -> None:
    """Collations of columns, dates of any year, and integers of 128 bits."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('a', date 'infinity', 1), ('A', date '-infinity',"
        " 2), ('a ', date '0044-03-15 (BC)', 3), ('A', date '10000-01-01', 4), ('a', date"
        " 'infinity', 170141183460469231731687303715884105727), ('b', '9999-12-31',"
        " -170141183460469231731687303715884105728)) t(text, day, number)"
    )
    connection.execute("ALTER TABLE t ALTER text TYPE VARCHAR COLLATE nocase")
    frame = connection.table("t")
    query, data = query_of(frame), held(frame)[0]
    for nulls in (ob.DROP, "b"):
        assert counted(query, data, "text", nulls) == {"a": 2, "A": 2, "a ": 1, "b": 1}
    assert counted(query, data, "day", ob.DROP) == {
        f"{2**31 - 1} days": 2,
        f"{-(2**31) + 1} days": 1,
        "-735160 days": 1,
        "2932897 days": 1,
        "9999-12-31": 1,
    }
    numbers = dict.fromkeys([1, 2, 3, 4, 2**127 - 1, -(2**127)], 1)
    assert counted(query, data, "number", ob.DROP) == numbers
    before = connection.sql("SELECT value FROM duckdb_settings() WHERE name LIKE 'disabled_o%'")
    assert before.fetchall() == [("",)]
    left = connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    left += connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()
    assert left == [("t",)]


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_bytes_that_are_no_text_are_no_data(
    engine: str, tmp_path: Path, frame_in: Callable[[str, Path], Any]
) -> None:
    """Whether or not they would be shown, and nothing is debited."""
    path = tmp_path / "bytes.parquet"
    values = pa.array([b"good", b"\xff"], pa.binary())
    pq.write_table(pa.table({"text": values.view(pa.string())}), path)
    query = query_of(frame_in(engine, path))
    asked = ob.posterior(query, "text", categories="discover", nulls="none")
    for _ in range(2):  # nothing is debited, so the second is the same
        with pytest.raises(ob.ReleaseError, match="The cause is withheld") as caught:
            asked.release()
        shown: BaseException | None = caught.value
        while shown is not None:
            assert "good" not in str(shown)
            shown = shown.__cause__ or shown.__context__


@pytest.mark.slow
def test_bytes_that_are_no_text_are_marked_by_spark(spark: Any) -> None:
    frame = spark.sql(
        "SELECT CAST(CASE WHEN id < 2 THEN x'ff' WHEN id = 2 THEN x'fe' ELSE x'61' END AS STRING)"
        " AS text FROM range(4)"
    )
    found = counted(query_of(frame), held(frame)[0], "text", ob.DROP)
    assert found == {"\ufffd": 3, "a": 1}


@pytest.mark.slow
def test_spark_counts_values_once_and_keeps_nothing(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that draws its values would be another in every reading."""
    monkeypatch.setattr(on_spark, "_AT_A_TIME", 5)
    frame = spark.sql("SELECT CAST(rand() * 50 AS INT) AS number FROM range(200)")
    for _ in range(3):
        assert sum(counted(query_of(frame), held(frame)[0], "number", ob.DROP).values()) == 200
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
