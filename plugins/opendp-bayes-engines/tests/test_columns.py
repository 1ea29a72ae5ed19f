"""What `columns` writes: the columns that are named and no other, in a private file that goes."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contexts import counts, made, values

import opendp_bayes as ob
from opendp_bayes_engines import columns, context

BYTES = pa.array([b"good", b"\xff", None, b"\xc3\xa9", b"\xfe"]).view(pa.string())
TEXTS = ["good", None, None, "é", None]


def of_pandas(*values: Any, dtype: Any) -> Any:
    frame = pd.DataFrame(
        {"odd": pd.Series(values, dtype=dtype), "vote": pd.Series(["a"] * len(values))}
    )
    frame["vote"] = frame["vote"].astype("string[pyarrow]")
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=1)


def of_polars(dtype: Any) -> pl.LazyFrame:
    return pl.LazyFrame({"odd": [None], "vote": ["a"]}, schema={"odd": dtype, "vote": pl.String})


#: Types of each engine that polars does not share, and the names that messages give them.
_PLAIN = "HUGEINT UHUGEINT JSON UUID INTERVAL TIMESTAMP TIMESTAMP_S TIME BLOB BIT"
DUCKDB = {name: name for name in _PLAIN.split()}
DUCKDB |= {"DECIMAL(18, 3)": "DECIMAL", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}
DUCKDB |= {"INTEGER[]": r"INTEGER\[\]", "STRUCT(secret INTEGER)": "STRUCT"}
DUCKDB |= {"MAP(VARCHAR, INTEGER)": "MAP", "ENUM('secret', 'b')[]": "ENUM"}
DECIMALS = pd.ArrowDtype(pa.decimal128(9, 2))
IN_ZONES = pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo"))
OTHERS: dict[str, tuple[Any, str]] = {
    "dask int64": (lambda: of_pandas(1, dtype="int64"), "int64 of numpy"),
    "dask bool": (lambda: of_pandas(True, dtype="bool"), "bool of numpy"),
    "dask strings": (lambda: of_pandas("a", dtype="string[python]"), "string"),
    "dask category": (lambda: of_pandas("secret", dtype="category"), "category"),
    "dask timestamps": (lambda: of_pandas(0, dtype="datetime64[ns]"), "datetime64"),
    "dask decimals": (lambda: of_pandas(None, dtype=DECIMALS), "decimal128"),
    "dask bool8": (lambda: of_pandas(None, dtype=pd.ArrowDtype(pa.bool8())), "bool8"),
    "dask zones": (lambda: of_pandas(None, dtype=IN_ZONES), "timestamp"),
    "polars Int128": (lambda: of_polars(pl.Int128), "Int128"),
    "polars Decimal": (lambda: of_polars(pl.Decimal(9, 2)), "Decimal"),
    "polars Datetime": (lambda: of_polars(pl.Datetime), "Datetime"),
    "polars Struct": (lambda: of_polars(pl.Struct({"secret": pl.Int8})), "Struct"),
    "polars List": (lambda: of_polars(pl.List(pl.Int8)), "List"),
    "polars Binary": (lambda: of_polars(pl.Binary), "Binary"),
}


def refused(table: Any, name: str) -> None:
    """By the name of the type and nothing that it holds, and only where the column is named."""
    for ask in (
        lambda: columns(table, ["vote", "odd"]),
        lambda: made(table).query().filter(("odd", "==", 1)),
        lambda: ob.posterior(made(table).query(), "odd", categories=["a"], nulls="n", unknown="o"),
        lambda: ob.discover(made(table).query(), "odd", nulls="n"),
        lambda: made(table, contributions=1, identifier="odd"),
    ):
        with pytest.raises(
            TypeError, match=f"column='odd': has type [^,]*{name}.*, whose"
        ) as caught:
            ask()
        assert "secret" not in str(caught.value)
    assert columns(table, ["vote"]).collect().columns == ["vote"]


@pytest.mark.parametrize("kind", DUCKDB)
def test_types_of_duckdb_that_polars_does_not_share_are_refused(kind: str) -> None:
    """Before anything is read: reading the column would fail."""
    odd = f"CAST(CASE WHEN range < 0 THEN NULL ELSE error('read') END AS {kind})"
    refused(duckdb.connect().sql(f"SELECT {odd} AS odd, 'a' AS vote FROM range(2)"), DUCKDB[kind])


@pytest.mark.parametrize("name", OTHERS)
def test_types_that_polars_does_not_share_are_refused(name: str) -> None:
    make, kind = OTHERS[name]
    try:
        table = make()
    except (TypeError, ValueError, NotImplementedError) as error:
        pytest.skip(f"Dask itself does not make it: {error}")
    refused(table, kind)


def test_names_that_differ_in_case_are_refused() -> None:
    table = pl.LazyFrame({"Vote": ["a"], "vote": ["b"], "other": ["c"]})
    for name in ("Vote", "vote", "nobody", 3):
        with pytest.raises(ValueError, match="same name but for case"):
            columns(table, [name])
    for names in ("other", [], ["other", "other"]):
        with pytest.raises(TypeError, match="list of different names"):
            columns(table, names)
    assert columns(table, ["other"]).collect().height == 1


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_bytes_that_are_not_text_are_null(engine: str, tmp_path: Path) -> None:
    """In what is written, listed, discovered and filtered, and as identifiers, too."""
    numbers = pa.array([0, 1, 2, 3, 4])
    if engine == "duckdb":
        table: Any = duckdb.connect().from_arrow(pa.table({"text": BYTES, "row": numbers}))
    else:
        frame = pa.table({"text": BYTES, "row": numbers}).to_pandas(types_mapper=pd.ArrowDtype)
        table = dd.from_pandas(frame, npartitions=2)
    written = columns(table, ["row", "text"]).sort("row").collect()
    assert written["text"].to_list() == TEXTS
    query = made(table).query()
    asked = ("text", ["good", "é"], "none", "other")
    assert counts(query, table, asked) == [1, 1, 3, 0]
    assert counts(query.filter(("text", "is_null", True)), table, asked) == [0, 0, 3, 0]
    assert counts(query.filter(("text", "!=", "a")), table, asked) == [1, 1, 0, 0]
    assert values(query, table, "text", "none") == {"good": 1, "é": 1, "none": 3}
    people = made(table, contributions=1, identifier="text").query().truncate_per_group(1)
    assert sum(counts(people, table, asked)) == 3


def test_enums_are_text_whose_labels_nobody_hands_out() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TYPE vote AS ENUM ('no', 'secret')")
    table = connection.sql("SELECT CAST('no' AS vote) AS vote FROM range(4)")
    context = made(table)
    assert (
        "secret" not in f"{context.schema!r} {context.accountant.input_domain} {context.query()!r}"
    )
    with pytest.raises(ValueError, match="does not declare its"):
        ob.posterior(context.query(), "vote", nulls="none", unknown="other")
    assert columns(table, ["vote"]).collect_schema() == {"vote": pl.String}


def test_a_collation_does_not_matter() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT unnest(['a', 'A', 'ä', 'A ']) AS text")
    connection.execute("ALTER TABLE t ALTER text TYPE VARCHAR COLLATE nocase")
    for setting in ("", "nocase", "noaccent.nocase", "nfc"):
        connection.execute(f"SET default_collation = '{setting}'")
        table = connection.table("t")
        query = made(table).query()
        assert counts(query, table, ("text", ["a", "A"], "n", "o")) == [1, 1, 0, 2]
        assert len(values(query, table, "text", "n")) == 4
        kept = query.filter(("text", "is_in", ["A", "Ä"]))
        assert counts(kept, table, ("text", ["a", "A"], "n", "o")) == [0, 1, 0, 0]


def path_of(scan: pl.LazyFrame) -> Path:
    """The file that a frame scans."""
    return Path(scan.explain().split("Parquet SCAN [")[1].split("]")[0])


def test_the_file_is_private_and_holds_the_named_columns_alone() -> None:
    table = duckdb.connect().sql("SELECT 'a' AS vote, 'secret' AS name FROM range(3)")
    path = path_of(columns(table, ["vote"]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert b"secret" not in path.read_bytes()
    parts = pq.ParquetFile(path).metadata
    assert parts.num_columns == 1
    assert parts.row_group(0).column(0).statistics is None


def test_the_file_goes_with_the_process(tmp_path: Path) -> None:
    program = (
        "import duckdb, os; from opendp_bayes_engines import columns\n"
        "for _ in range(3): columns(duckdb.sql('SELECT 1 AS a'), ['a'])\n"
        "print(sum(len(files) for *_, files in os.walk(os.environ['TMPDIR'])))"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    output: Any = {"stdout": subprocess.PIPE, "text": True, "check": True}
    done = subprocess.run([sys.executable, "-c", program], env=environment, **output)
    assert done.stdout.splitlines()[-1].strip() == "3"  # DuckDB draws a bar where it takes long
    assert list(tmp_path.iterdir()) == []


def test_many_batches_are_one_file() -> None:
    table = duckdb.connect().sql("SELECT range AS n, (range % 7)::VARCHAR AS t FROM range(2500000)")
    scan = columns(table, ["t", "n"])
    assert scan.select(pl.col("n").n_unique()).collect().item() == 2_500_000
    assert pq.ParquetFile(path_of(scan)).metadata.num_row_groups == 3


def test_a_failure_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    table = duckdb.connect().sql(
        "SELECT CAST('avalueofarow' AS INTEGER) + range AS a FROM range(3)"
    )
    with pytest.raises(RuntimeError, match=r"engines\.columns: writing failed") as caught:
        columns(table, ["a"])
    shown: BaseException | None = caught.value
    while shown is not None:
        assert "avalueofarow" not in str(shown)
        shown = shown.__cause__ or shown.__context__
    assert "avalueofarow" not in "".join(capfd.readouterr())


def test_frames_in_memory_and_of_others_are_refused() -> None:
    for data in (pl.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), object(), [1]):
        with pytest.raises(TypeError, match="be a relation of DuckDB"):
            columns(data, ["a"])
        with pytest.raises(TypeError, match="be a relation of DuckDB"):
            context(
                data, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
            )


def test_other_engines_are_refused_and_narwhals_are_those_beneath() -> None:
    import ibis

    other = ibis.sqlite.connect()
    try:
        with pytest.raises(TypeError, match="Ibis on sqlite is not"):
            columns(other.create_table("t", schema={"a": "int64"}), ["a"])
    finally:
        other.disconnect()
    nw = pytest.importorskip("narwhals")
    table = nw.from_native(duckdb.connect().sql("SELECT 1 AS a"))
    assert columns(table, ["a"]).collect().item() == 1
