"""Sessions of DuckDB in which a plan would mean something else: refused where it counts, by the
settings alone; and those in which it means the same.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pytest
from contexts import made, two_shares
from duckdb_settings import APART, IRRELEVANT
from random_plans import LABELS, rows
from sessions import ON_DUCKDB, OPEN, TABLE, fill, make_hostile, new, usual

import opendp_bayes as ob
from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines import on_duckdb
from opendp_bayes_engines.engines import held

ROWS = rows(seed=2, size=60)
ASKED = Question((Variable("label", ["no", "NO"], "none", "other"),))
PLUS = 'CREATE MACRO "+"(x, y) AS x'
#: What is said to a session, and what it is said to be refused for.
REFUSED = {
    "SET default_collation = 'nocase'": "setting default_collation is 'nocase'",
    "SET default_collation = 'noaccent.nocase'": "setting default_collation is 'noaccent.nocase'",
    "SET default_collation = 'de'": "setting default_collation is 'de'",
    "SET GLOBAL default_collation = 'nfc'": "setting default_collation is 'nfc'",
    "SET allow_parser_override_extension = 'STRICT'": "setting allow_parser_override_extension",
    "SET dialect_compatibility_mode = 'spark'": "setting dialect_compatibility_mode",
    PLUS: r"the macro '\+'",
    "CREATE TEMP MACRO Sum(x) AS count(x)": "the macro 'sum'",
    "CREATE MACRO concat_ws(s, x, y) AS x": "the macro 'concat_ws'",
    "CREATE MACRO unnest(x) AS 'no'": "the macro 'unnest'",
    "CREATE MACRO current_setting(x) AS ''": "the macro 'current_setting'",
    "CREATE MACRO duckdb_settings() AS TABLE SELECT 'a' AS name, '' AS value": "'duckdb_settings'",
    "CREATE MACRO duckdb_functions() AS TABLE SELECT 'a' AS function_name, true AS internal": (
        "'duckdb_functions'"
    ),
}


@pytest.fixture(autouse=True)
def sessions_end() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().stop()


def say(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    try:
        connection.execute(statement)
    except (duckdb.CatalogException, duckdb.NotImplementedException):
        pytest.skip("this DuckDB has no such setting")


@pytest.mark.parametrize("statement", REFUSED)
def test_a_session_is_refused_for_a_context(statement: str) -> None:
    connection, frame = new("duckdb")
    fill(connection, ROWS)
    say(connection, statement)
    with pytest.raises(ValueError, match=REFUSED[statement]):
        made(frame())


UNDONE = {
    "SET default_collation = 'nocase'": "RESET default_collation",
    PLUS: 'DROP MACRO "+"',
}
#: Every engine once and every statement; the others take as long again.
WHERE_IT_COUNTS = [
    pytest.param(engine, statement, marks=() if (at + turn) % 2 == 0 else pytest.mark.slow)
    for at, engine in enumerate(ON_DUCKDB)
    for turn, statement in enumerate(UNDONE)
]


@pytest.mark.parametrize(("engine", "statement"), WHERE_IT_COUNTS)
def test_a_session_is_refused_where_it_counts(engine: str, statement: str) -> None:
    """Whatever is in the frame. Nothing is debited, and the release is there when it is mended."""
    said = set()
    for given in (ROWS, ROWS.head(0), ROWS.head(1)):
        connection, frame = new(engine)
        fill(connection, given)
        of = two_shares(frame())
        asked = ob.posterior(of.query(), "label", categories=["no"], nulls="none", unknown="other")
        say(connection, statement)
        with pytest.raises(RuntimeError, match=REFUSED[statement]) as caught:
            asked.release()
        said.add(str(caught.value))
        assert len(of.d_mids) == 2
        connection.execute(UNDONE[statement])
        assert asked.release().d_in == 1
    assert len(said) == 1


def test_another_cursor_changes_the_session_too() -> None:
    connection, frame = new("duckdb")
    fill(connection, ROWS)
    data = held(frame())[0]
    query = made(frame()).query()
    connection.cursor().execute("SET GLOBAL default_collation = 'nocase'")
    with pytest.raises(Exception, match="setting default_collation is 'nocase'"):
        query.counts_of(ASKED)[0](data)


@pytest.mark.parametrize("name", ["", "binary", "C", "POSIX"])
def test_collations_that_compare_bytes_are_accepted(name: str) -> None:
    connection, frame = new("duckdb")
    fill(connection, ROWS)
    connection.execute(f"SET default_collation = '{name}'")
    assert made(frame())


def test_every_setting_is_known() -> None:
    """A new DuckDB has to be looked at: a setting that is in no list fails here."""
    lists = [set(on_duckdb._SETTINGS), set(IRRELEVANT), *(set(of.split()) for of in APART.values())]
    known = set[str]().union(*lists)
    assert len(known) == sum(map(len, lists))  # each in one
    found = set(usual(duckdb.connect()))
    assert found - known == set()
    # All but some forty, which other versions have.
    assert len(known & found) > 150


@pytest.fixture(scope="module")
def usual_and_hostile() -> tuple[dict[str, str], dict[str, str]]:
    connection, _ = new("duckdb")
    before = usual(connection)
    make_hostile(connection)
    return before, usual(connection)


@pytest.mark.parametrize("name", IRRELEVANT)
def test_a_setting_that_tests_change_is_changed(
    name: str, usual_and_hostile: tuple[dict[str, str], dict[str, str]]
) -> None:
    """Or it would be as usual in sessions that are called hostile."""
    before, after = usual_and_hostile
    if name not in before:
        pytest.skip("this DuckDB has no such setting")
    assert after[name] != before[name]


@pytest.mark.parametrize("optimized", ["true", "false"])
def test_the_optimizer_does_not_concern_what_is_counted(optimized: str) -> None:
    connection, frame = new("duckdb")
    if "enable_optimizer" not in usual(connection):
        pytest.skip("this DuckDB has no such setting")
    fill(connection, ROWS)
    connection.execute(f"SET enable_optimizer = {optimized}")
    query = made(frame()).query().filter(nw.col("number") > 0)
    known = ROWS.filter(pl.col("number") > 0)["label"].cast(pl.String).to_list()
    counts = query.counts_of(ASKED)[0](held(frame())[0])
    no, capital = known.count("no"), known.count("NO")
    none = known.count(None)
    assert list(counts) == [no, capital, none, len(known) - no - capital - none]


def test_macros_and_functions_of_other_names_are_accepted() -> None:
    connection, frame = new("duckdb")
    fill(connection, ROWS)
    connection.execute("CREATE MACRO plainly(x) AS trim(x)")
    connection.create_function("loudly", str.upper, ["VARCHAR"], "VARCHAR")  # type: ignore[list-item]
    assert made(frame())


@pytest.mark.parametrize(
    "columns", ["person, text, 'no' AS label", "person, label, text AS number, number AS text"]
)
def test_a_relation_of_other_columns_than_before_is_refused(columns: str) -> None:
    connection = duckdb.connect()
    fill(connection, ROWS.select("person", "text", "number", "label"))
    of = two_shares(connection.table(TABLE))
    asked = ob.posterior(of.query(), "label", categories=["no"], nulls="none", unknown="other")
    connection.execute(f"CREATE OR REPLACE TABLE {TABLE} AS SELECT {columns} FROM {TABLE}")
    with pytest.raises(RuntimeError, match=r"relation are not those|counting"):
        asked.release()
    assert len(of.d_mids) == 2


def moved(given: pl.DataFrame, plan: Any) -> int:
    """How far a plan's counts move when the first row of a frame of DuckDB goes."""
    counts = []
    for at in (0, 1):
        connection, frame = new("duckdb")
        fill(connection, given[at:])
        data = held(frame())[0]
        unit = {"identifier": "person"} if "truncate" in plan.__name__ else {}
        query = plan(made(frame(), contributions=1, **unit).query())
        connection.execute("SET default_collation = 'nocase'")
        counts.append(query.counts_of(ASKED)[0](data))
    return int(abs(counts[0] - counts[1]).sum())


def as_it_is(query: Any) -> Any:
    return query


def computed(query: Any) -> Any:
    text = nw.concat_str(nw.col("text"), nw.lit("o"))
    return query.with_columns(label=nw.when(text == "no").then(text).otherwise(nw.col("label")))


def truncated(query: Any) -> Any:
    """Rows that differ would tie, and which of them is kept depend on the order of all."""
    return query.truncate_per_group(1)


def mixed(size: int) -> pl.DataFrame:
    """One row, and others whose label differs from its in case."""
    labels = ["no"] + ["NO"] * size
    return pl.DataFrame(
        {"person": [0] + [1] * size, "text": ["n"] * len(labels), "label": labels}
    ).with_columns(pl.col("label").cast(pl.Enum(LABELS)))


def test_what_a_collation_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is needed: without it one record moves thousands of counts."""
    monkeypatch.setattr(on_duckdb, "_SETTINGS", {})
    assert moved(mixed(1000), as_it_is) == 2001


@pytest.mark.parametrize("plan", [as_it_is, computed, truncated])
def test_no_plan_counts_by_a_collation(plan: Any) -> None:
    with pytest.raises(Exception, match="setting default_collation is 'nocase'"):
        moved(mixed(10), plan)


def test_what_a_macro_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the operators are functions that a macro can stand for."""
    monkeypatch.setattr(on_duckdb, "_check", lambda *of: None)
    connection, frame = new("duckdb")
    fill(connection, ROWS)
    connection.execute(PLUS)
    query = made(frame()).query().with_columns(asked=nw.col("small").clip(0, 9) + 1)
    question = Question((Variable("asked", [1, 10], -1, -2),))
    known = Counter(min(max(n, 0), 9) + 1 for n in ROWS["small"] if n is not None)
    counts = query.counts_of(question)[0](held(frame())[0])
    assert counts[:2].tolist() != [known[1], known[10]]
