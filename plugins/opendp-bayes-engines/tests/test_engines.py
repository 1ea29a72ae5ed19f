"""What each engine needs before it counts alike, and the frames that are refused."""

import importlib
import logging
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from contexts import MESSAGE, two_shares

import opendp_bayes as ob
from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines import context, on_duckdb
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.frames import silent

#: Labels that differ in blanks or the form of Unicode alone are counted apart.
pytestmark = pytest.mark.filterwarnings("ignore:.* differ in nothing but blanks:UserWarning")


def counts(frame: Any, name: str, labels: list[Any] | None, **buckets: Any) -> list[int]:
    made = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    chain, _ = made.query().counts_of(Question((Variable(name, labels, **buckets),)))
    counted: list[int] = chain(held(frame)[0]).tolist()
    return counted


BUCKETS = {"nulls": "null", "unknown": "other"}
#: Texts in pandas, which before version 3 holds them as objects unless it is told.
TEXT = "string[pyarrow]"


@pytest.fixture(params=["constants", "a table"])
def categories_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How DuckDB is told the categories: few, or many."""
    if request.param != "constants":
        monkeypatch.setattr(on_duckdb, "_FEW", 0)
    return str(request.param)


def test_duckdb_compares_byte_by_byte(categories_by: str) -> None:
    """Whatever the collation of a column, which its type does not show."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a VARCHAR COLLATE NOCASE, b VARCHAR COLLATE NOACCENT)")
    connection.execute("INSERT INTO t VALUES ('x', 'é'), ('X', 'e'), ('x ', 'e\u0301'), ('X', 'E')")
    frame = connection.table("t")
    assert counts(frame, "a", ["x", "X"], **BUCKETS) == [1, 2, 0, 1]
    assert counts(frame, "b", ["é", "e", "e\u0301"], **BUCKETS) == [1, 1, 1, 0, 1]
    assert counts(frame, "b", ["E"], **BUCKETS) == [1, 0, 3]
    made = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    query = made.query().filter(nw.col("a").is_in(["x"]) | (nw.col("b") == "E"))
    chain, _ = query.counts_of(Question((Variable("a", ["x", "X"], **BUCKETS),)))
    assert chain(held(frame)[0]).tolist() == [1, 1, 0, 0]


def test_duckdb_takes_no_table_of_the_user_for_the_categories() -> None:
    """Nor a variable of Python's: there is no name that it looks up."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE opendp_bayes_categories AS SELECT 'none' AS category")
    connection.execute(
        "CREATE TEMP TABLE opendp_bayes_groups AS SELECT 'none' AS value_0, 5 AS number"
    )
    labels = [f"it's {n}" for n in range(150)]
    frame = connection.sql("SELECT 'it''s ' || range % 200 AS a FROM range(400)")
    assert counts(frame, "a", labels, **BUCKETS) == [2] * 150 + [0, 100]
    assert connection.table("opendp_bayes_groups").fetchall() == [("none", 5)]


def test_duckdb_identifiers_that_differ_in_case_are_two() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who VARCHAR COLLATE NOCASE, b VARCHAR)")
    connection.execute("INSERT INTO t VALUES ('x', 'a'), ('X', 'a'), ('X', 'a')")
    frame = connection.table("t")
    made = context(
        frame,
        privacy_unit=dp.unit_of(contributions=1, identifier="who"),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    chain, _ = (
        made.query().truncate_per_group(1).counts_of(Question((Variable("b", ["a"], **BUCKETS),)))
    )
    assert chain(held(frame)[0]).tolist() == [2, 0, 0]


def test_duckdb_enums_are_text(categories_by: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TYPE vote AS ENUM ('no', 'yes', 'never')")
    connection.execute("CREATE TABLE t (vote vote)")
    connection.execute("INSERT INTO t VALUES ('yes'), ('yes'), ('no'), (NULL)")
    frame = connection.table("t")
    assert counts(frame, "vote", ["yes", "no", "none"], **BUCKETS) == [2, 1, 0, 1, 0]
    assert counts(frame, "vote", ["yes"], **BUCKETS) == [2, 1, 1]


def test_duckdb_integers_of_any_width(categories_by: str) -> None:
    frame = duckdb.connect().sql(
        "SELECT unnest([170141183460469231731687303715884105727::HUGEINT, -1, 3, NULL]) AS n"
    )
    assert counts(frame, "n", [3, -1], nulls=-5, unknown=-6) == [1, 1, 1, 1]


def test_duckdb_is_given_a_table_of_many_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns of 500 numbers each, of which 150 are categories. Nothing stays behind in the
    connection, and constants are not used.
    """
    connection = duckdb.connect()
    frame = connection.sql("SELECT range % 500 AS a, range % 300 AS b FROM range(3000)")
    labels = list(range(150))
    made = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    variables = tuple(Variable(name, labels, nulls=-2, unknown=-1) for name in ("a", "b"))
    chain, _ = made.query().counts_of(Question(variables, joint=True))
    monkeypatch.setattr(on_duckdb, "is_in", None)
    found = chain(held(frame)[0]).reshape(152, 152)
    expected = np.zeros((152, 152), dtype=int)
    for n in range(3000):
        a, b = n % 500, n % 300
        expected[a if a < 150 else 151, b if b < 150 else 151] += 1
    assert np.array_equal(found, expected)
    assert connection.sql("SHOW ALL TABLES").fetchall() == []


def test_duckdb_integers_that_fail_beyond_64_bits_are_refused() -> None:
    """Compared with a category, one of them would end the query: whether a record is there."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 9223372036854775808::UHUGEINT AS x")
    with pytest.raises(duckdb.ConversionException):
        connection.sql("SELECT contains([0, 1], x) FROM t").fetchall()
    with pytest.raises(TypeError, match="column='x': has type UInt128; must be"):
        counts(connection.table("t"), "x", [0, 1], nulls=2, unknown=3)


def test_polars_types() -> None:
    frame = pl.DataFrame(
        {
            "wide": pl.Series([2**100, -1, None, 3], dtype=pl.Int128),
            "enum": pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["a", "b", "c"])),
            "categorical": pl.Series(["b", "a", None, "z"], dtype=pl.Categorical),
            "small": pl.Series([1, 2, None, 2], dtype=pl.UInt8),
        }
    ).lazy()
    assert counts(frame, "wide", [3, -1], nulls=-5, unknown=-6) == [1, 1, 1, 1]
    assert counts(frame, "enum", None, nulls="null") == [1, 2, 0, 1]
    assert counts(frame, "categorical", ["a", "b"], **BUCKETS) == [1, 1, 1, 1]
    assert counts(frame, "small", [2, 1], nulls=-5, unknown=-6) == [2, 1, 1, 0]


@pytest.mark.parametrize("dtype", [pl.Decimal(10, 2), pl.Date, pl.Datetime, pl.Float64, pl.Binary])
def test_types_that_are_no_categories_are_refused(dtype: Any) -> None:
    frame = pl.LazyFrame({"value": []}, schema={"value": dtype})
    with pytest.raises(TypeError, match="must be Enum, String, Categorical, integer or Boolean"):
        counts(frame, "value", ["a"], **BUCKETS)


def test_dask_categories_are_not_taken_from_the_data() -> None:
    kind = pd.CategoricalDtype(pd.Index(["a", "b"], dtype=TEXT), ordered=True)
    frame = pd.DataFrame({"vote": pd.Categorical(["b", "a", None], dtype=kind)})
    given = dd.from_pandas(frame, npartitions=2)
    assert held(given)[1]["vote"].categories is None
    assert counts(given, "vote", ["a", "z"], **BUCKETS) == [1, 0, 1, 1]


def test_dask_does_not_look_into_the_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """For frames of its own, one by one, for each partition."""
    delayed = importlib.import_module("dask.delayed")
    look, looked = delayed.unpack_collections, []

    def unpack(*of: Any, **options: Any) -> Any:
        looked.append(of)
        return look(*of, **options)

    monkeypatch.setattr(delayed, "unpack_collections", unpack)
    given = dd.from_pandas(pd.DataFrame({"n": ["7", "8", None, "x"]}, dtype=TEXT), npartitions=2)
    assert counts(given, "n", [str(n) for n in range(500)], **BUCKETS)[500:] == [1, 1]
    assert looked
    assert len(looked) < 50


@pytest.mark.parametrize("values", [[1, 2], [True, False]])
def test_dask_numbers_that_hold_no_nulls_are_refused(values: list[Any]) -> None:
    frame = dd.from_pandas(pd.DataFrame({"a": values}), npartitions=1)
    with pytest.raises(ValueError, match=r"column 'a' has the numpy type .*pyarrow"):
        held(frame)


#: Of which one record, beside others of the type that they seem to have, would make a count fail.
ANY_TYPE = {
    "objects": pd.Series(["x", "y", None], dtype=object),
    "objects of several types": pd.Series(["x", 1, None], dtype=object),
    "categories of any type": pd.Series(pd.Categorical(["x", 1, None])),
    "texts that need not be Unicode": pd.Series(["x", "\ud800", None], dtype="string[python]"),
}


@pytest.mark.parametrize("convert", [True, False])
@pytest.mark.parametrize("of", ANY_TYPE)
def test_dask_columns_of_any_type_are_refused(of: str, convert: bool) -> None:
    """By name, before any row is read, whatever the records are, and whether or not Dask is told to
    make text of objects.
    """
    with dask.config.set({"dataframe.convert-string": convert}):
        frame = pd.DataFrame({"a": ANY_TYPE[of], "b": pd.Series(["x", "y", None], dtype=TEXT)})
        given = dd.from_pandas(frame, npartitions=2)
        with pytest.raises(ValueError, match=r"column 'a' is, or .* values of any type.*astype"):
            held(given)
        with pytest.raises(ValueError, match="column 'a' is, or"):
            held(dd.from_pandas(frame["a"].to_frame(), npartitions=1))
        given = dd.from_pandas(frame.drop(columns="a"), npartitions=2)
        assert counts(given, "b", ["x"], **BUCKETS) == [1, 1, 1]


def test_dask_counts_a_column_of_constants() -> None:
    """Which reads no other column: there are as many rows as ever."""
    at = pd.Series([pd.Timedelta(1)] * 5, dtype="duration[ns][pyarrow]")
    b = pd.Series(["x", "y", None, "z", "z"], dtype=TEXT)
    given = dd.from_pandas(pd.DataFrame({"at": at, "b": b}), npartitions=2)
    data, _ = held(given)
    query = two_shares(given).query().with_columns(one=nw.lit("yes"))
    chain, _ = query.counts_of(Question((Variable("one", ["yes", "no"], unknown="other"),)))
    assert chain(data).tolist() == [5, 0, 0]


def test_dask_columns_computed_from_any_type_are_refused() -> None:
    frame = dd.from_pandas(pd.DataFrame({"b": ["x", "y", None]}, dtype=TEXT), npartitions=2)
    between = frame.assign(c=frame["b"].astype(object))
    with pytest.raises(ValueError, match="column 'c' is, or"):
        held(between.assign(c=between["c"].astype("string[pyarrow]")))
    with pytest.raises(ValueError, match="column 'b' is, or"):
        held(frame.assign(c=frame["b"].astype(object).isna().astype("boolean")))


def _as_objects(part: pd.DataFrame) -> pd.DataFrame:
    return part.astype({"b": object})


@pytest.mark.parametrize("last", ["z", 1])
def test_dask_partitions_of_any_type_fail_whatever_they_hold(last: Any) -> None:
    """Where a function of the user's makes objects, and says that it does not."""
    rows = pd.DataFrame({"b": ["x", "y", None]}, dtype=TEXT)
    frame = dd.from_pandas(rows, npartitions=1)
    given = frame.map_partitions(
        lambda part: _as_objects(part).fillna({"b": last}), meta=frame._meta
    )
    of = two_shares(given)
    query = ob.posterior(of.query(), "b", categories=["x"], **BUCKETS)
    with pytest.raises(RuntimeError, match=MESSAGE):
        query.release()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"a": [1]}), "is in memory; make it lazy"),
        (pd.DataFrame({"a": [1]}), "is in memory; make it lazy"),
        ({"a": [1]}, "must be a frame of PySpark, DuckDB, Dask, Ibis or"),
        (None, "must be a frame of PySpark, DuckDB, Dask, Ibis or"),
    ],
)
def test_what_is_no_lazy_frame_is_refused(frame: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        held(frame)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "A"], "the names of columns 1 and 2 differ in nothing but case"),
        (["a.b"], "the name of column 1 must be printable and without any of"),
        (["*"], "must be printable and without any of"),
        (["^v$"], "must be printable and without any of"),
        ([""], "must be printable and without any of"),
        (["opendp_bayes_one"], "which is reserved"),
    ],
)
def test_names_that_engines_understand_differently_are_refused(
    names: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        held(pl.LazyFrame({name: [1] for name in names}))
    assert "a.b" not in str(caught.value), "of a file without a header, a value"


def test_a_narwhals_frame_is_a_frame_too(tmp_path: Path) -> None:
    frame = nw.from_native(pl.LazyFrame({"a": ["x", None]}))
    assert counts(frame, "a", ["x"], **BUCKETS) == [1, 1, 0]


def test_loggers_are_silent_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("an engine")

    def fail() -> None:
        with silent(logger):
            logger.critical("a value")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    logger.critical("nothing")
    assert caplog.messages == ["nothing"]
