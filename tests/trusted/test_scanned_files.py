"""Files of Parquet and Arrow, one or many: what is counted in them, and the memory that takes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import opendp.prelude as dp
import polars as pl
import pyarrow as pa
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.scanned_files import scan_files
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.grouped import with_groups
from tests.helpers.sources import ROOT

VOTES = {"categories": ["no", "yes"], "nulls": "none", "unknown": "other"}


def counted(frame, *conditions):
    whole = plain_context(frame, loss={"epsilon": 400.0})
    query = whole.query().filter(*conditions) if conditions else whole.query()
    return ob.posterior(query, "vote", **VOTES).release().noisy_counts


@pytest.fixture
def folder(tmp_path):
    """Hive partitions by region and year, two files each; a vote has its place's rows."""
    for region in ("north", "south", "é"):
        for year in (2020, 2021):
            votes = ["no", "yes", "yes", None, None, None, *["maybe"] * 4]
            if (region, year) == ("é", 2021):
                votes = ["no"] * 3
            for at, part in enumerate((votes[:4], votes[4:])):
                file = tmp_path / f"region={region}" / f"year={year}" / f"{at}.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                pl.DataFrame({"vote": part}, schema={"vote": pl.String}).write_parquet(file)
    return tmp_path


def test_partitions_are_columns_and_others_are_read_unless_the_path_leaves_them_out(folder):
    """A filter is applied after reading, so broken files of another partition are noticed."""
    frame = pl.scan_parquet(folder / "**/*.parquet", hive_partitioning=True)
    assert counted(frame) == (8, 10, 15, 20)
    assert counted(frame, pl.col("region") == "é") == (4, 2, 3, 4)
    assert counted(frame, (pl.col("region") == "é") & (pl.col("year") == 2021)) == (3, 0, 0, 0)
    for file in folder.glob("region=south/**/*.parquet"):
        file.write_bytes(b"no file of Parquet")
    whole = pl.scan_parquet(folder / "**/*.parquet", hive_partitioning=True)
    with pytest.raises(RuntimeError, match="The cause is withheld"):
        counted(whole, pl.col("region") == "north")
    north = pl.scan_parquet(folder / "region=north/**/*.parquet", hive_partitioning=True)
    assert counted(north) == (2, 4, 6, 8)


PEAK = """
import sys
import opendp.prelude as dp, opendp_bayes as ob, polars as pl
from tests.helpers.sources import ROOT
dp.enable_features("contrib", "honest-but-curious")
frame = getattr(pl, sys.argv[1])(sys.argv[2]).lazy()
domain, metric = dp.domain_of(frame, infer=True), dp.symmetric_distance()
policy = dict(categories=["a", "b"], nulls="none", unknown="other")
count = ob.t.make_categorical_counts(domain, metric, column="vote", **policy)
print(count(frame).sum(), open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_does_not_grow_with_the_number_of_files(tmp_path):
    """80 files of a million rows against 10: seventy million rows more, of which a text alone takes
    16 bytes in memory, 1100 MB. Each run is a process of its own, of two threads. A frame that was
    read into memory is the negative control.
    """
    rows = 1_000_000
    part = pl.DataFrame({"vote": ["a", "b", None, "a text that is longer"] * (rows // 4)})
    part.write_parquet(tmp_path / "00.parquet", row_group_size=100_000)
    for at in range(1, 80):
        os.link(tmp_path / "00.parquet", tmp_path / f"{at:02}.parquet")

    def peak(read, pattern):
        command = [sys.executable, "-c", PEAK, read, tmp_path / pattern]
        few = os.environ | {"POLARS_MAX_THREADS": "2"}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=few)
        number, kilobytes = map(int, done.stdout.split())
        return number, kilobytes / 1024

    few, many = peak("scan_parquet", "0*.parquet"), peak("scan_parquet", "*.parquet")
    assert (few[0], many[0]) == (10 * rows, 80 * rows)
    assert many[1] - few[1] < 150
    assert peak("read_parquet", "*.parquet")[1] - few[1] > 500


def test_the_page_on_limits_names_the_types_that_opendp_refuses():
    page = (ROOT / "docs" / "limits.md").read_text("utf-8")
    text = " ".join(page.split())
    (named,) = re.findall(
        r"no domain for some types of column: (.*?)\. With such a column it", text
    )
    names = (
        "Int8 Int16 Int32 Int64 Int128 UInt8 UInt16 UInt32 UInt64 UInt128 Float16 Float32 Float64"
        " Boolean String Binary Categorical Date Datetime Time Duration Decimal Null Object"
    )
    nested = pl.List(pl.Int64), pl.Array(pl.Int64, 2), pl.Struct({"a": pl.Int64}), pl.Enum(["a"])
    refused = set()
    for kind in (*(getattr(pl, name)() for name in names.split()), *nested):
        try:
            counted(pl.LazyFrame(schema={"x": kind, "vote": pl.String}))
        except (dp.OpenDPException, ValueError):
            refused.add(type(kind).__name__)
    assert refused == set(re.findall(r"`(\w+)`", named))


OLD, OF_HIV = pl.col("absent") > 1, {"absent": ["a"], "HIV": ["b"]}
ABSENT = {
    "a column": lambda query: ob.posterior(query, "absent", **VOTES),
    "of a table": lambda query: ob.posterior(
        query, ["absent", "HIV"], **{**VOTES, "categories": OF_HIV}
    ),
    "a group": lambda query: ob.posterior(
        query, "HIV", by="absent", **with_groups(VOTES, {"absent": ["a"]}, "HIV")
    ),
    "a question": lambda query: ob.survey(query, {"q": {"column": "absent", **VOTES}}),
    "a question by group": lambda query: ob.survey(
        query, {"q": with_groups({"column": "HIV", "by": "absent", **VOTES}, {"absent": ["a"]})}
    ),
    "a filter": lambda query: ob.posterior(query.filter(OLD), "HIV", **VOTES),
    "used": lambda query: ob.posterior(query.with_columns(x=pl.col("absent")), "HIV", **VOTES),
    "a grouped filter": lambda query: ob.posterior(
        query.filter(OLD), "1960", by="HIV", **with_groups(VOTES, {"HIV": ["a"]}, "1960")
    ),
}


@pytest.mark.parametrize("name", ABSENT)
def test_no_message_shows_the_names_of_columns_which_may_be_a_record(tmp_path, name):
    """They are the first line of a CSV file, with a header or without."""
    path = tmp_path / "bare.csv"
    path.write_text("Jane Doe,1960,HIV\nJohn,1970,none\n")
    whole = plain_context(pl.scan_csv(path, infer_schema=False))
    with pytest.raises(ValueError, match="absent") as caught:
        ABSENT[name](whole.query())
    assert "Jane" not in str(caught.value)
    assert "1960" not in str(caught.value)


AGE = pl.col("age")


@pytest.mark.parametrize(
    "condition", [AGE > 5, ~(AGE <= 5), AGE.is_nan(), ~AGE.is_finite(), AGE != 1]
)
@pytest.mark.parametrize("where", ["query", "frame", "on_disk"])
def test_one_record_does_not_bring_others_back(tmp_path, condition, where):
    """Polars drops parts by extremes, with every NaN, unless a record there is large."""
    pq = pytest.importorskip("pyarrow.parquet")

    def after(*records):
        frame = pl.DataFrame({"age": [*records, *[float("nan")] * 100, 1.0]})
        frame = frame.with_columns(vote=pl.lit("yes"))
        path = tmp_path / "frame.parquet"
        pq.write_table(frame.to_arrow(), path)
        scan = pl.scan_parquet(path)
        seen = scan.filter(condition).collect().height
        if where == "query":
            return counted(scan, condition), seen
        if where == "frame":
            return counted(scan.filter(condition)), seen
        with ob.on_disk(scan.filter(condition)) as file:
            return counted(file), seen

    found = [after(), after(1.0), after(100.0), after(float("nan"))]
    counts = [counts for counts, _ in found]
    assert all(sum(abs(a - b) for a, b in zip(counts[0], of, strict=True)) <= 1 for of in counts)
    assert counts[0][1] == 100
    seen = [height for _, height in found]  # by polars alone, the negative control
    assert seen[0] == 0
    assert max(seen) >= 100


def test_files_of_parquet_are_read_together_and_no_column_is_made_of_their_paths(folder):
    """Beside files of programs, and others."""
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").write_bytes(b"of a program")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.parquet").write_bytes(b"of a program")
    (folder / "notes.txt").touch()
    context = opened(folder)
    assert ob.posterior(context.query(), "vote", **VOTES).release().noisy_counts == (8, 10, 15, 20)
    with pytest.raises(ValueError, match="region"):
        ob.posterior(opened(folder).query(), "region", **VOTES)


def test_extensions_may_be_in_capitals_and_the_folder_below_one_of_a_program(tmp_path):
    """No record is left out, and none refused."""
    folder = tmp_path / ".cache" / "_votes"
    folder.mkdir(parents=True)
    for name, records in (("a.parquet", 1), ("B.PARQUET", 2)):
        pl.DataFrame({"vote": ["yes"] * records}).write_parquet(folder / name)
    assert scan_files(folder).collect().height == 3


def test_a_folder_that_is_called_like_a_file_is_read_once(tmp_path):
    """As Spark calls one, with a file for each of its parts."""
    folder = tmp_path / "votes.parquet"
    folder.mkdir()
    pl.DataFrame({"vote": ["yes"] * 3}).write_parquet(folder / "part-0.parquet")
    for path in (tmp_path, folder):
        assert scan_files(path).collect().height == 3


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_a_file_whose_name_is_a_pattern_is_read_and_no_other(tmp_path, kind):
    extension = "parquet" if kind == "parquet" else "arrow"
    for name in ("[ab]", "a", "b"):
        getattr(pl.DataFrame({"vote": [name]}), f"write_{kind}")(tmp_path / f"{name}.{extension}")
    assert scan_files(tmp_path / f"[ab].{extension}").collect()["vote"].to_list() == ["[ab]"]


def opened(path, **how):
    return checked_context(path, loss={"epsilon": 400.0}, **how)


def test_files_that_cannot_be_read_together_are_refused_before_a_record_is_read(tmp_path):
    def refused(path, **how):
        with pytest.raises(ValueError, match=r"^data=") as raised:
            opened(path, **how)
        return str(raised.value)

    assert "is a folder, and holds no file of Parquet" in refused(tmp_path)
    pl.DataFrame({"vote": ["yes"]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("vote\nyes\n")
    assert opened(tmp_path)
    pl.DataFrame({"vote": ["no"]}).write_parquet(tmp_path / "b.parquet")
    assert opened(tmp_path)
    same = {"vote": ["no"], "age": [9]}
    others = {"vote": ["no"]}, {**same, "x": [1]}, {"age": [9], "vote": ["no"]}
    others += ({**same, "age": ["9"]},)
    for number, other in enumerate(others):
        (tmp_path / str(number)).mkdir()
        for name, columns in (("a", same), ("b", other)):
            pl.DataFrame(columns).write_parquet(tmp_path / f"{number}/{name}.parquet")
        assert "not all its files have the same columns" in refused(tmp_path / str(number))


def test_of_other_files_it_says_what_reads_them(tmp_path):
    with pytest.raises(ValueError, match=r"votes\.csv.*office\.read.*pip install opendp-bayes-off"):
        opened(tmp_path / "votes.csv")


@pytest.mark.parametrize("where", ["a file", "a folder", "a scan"])
def test_a_wrong_footer_changes_no_count(tmp_path, where):
    """By its values polars would leave out parts."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    values = ["aaaa", "bbbb", "cccc"] * 10
    pq.write_table(pa.table({"vote": values}), path, use_dictionary=False, compression="none")
    content = path.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    wrong = content[begin:].replace(b"cccc", b"aaaa").replace(b"aaaa", b"zzzz")
    assert wrong != content[begin:]
    path.write_bytes(content[:begin] + wrong)
    keeps = pl.col("vote") != "bbbb"
    asked = {"categories": ["aaaa", "cccc"], "nulls": "none", "unknown": "other"}
    frame = {"a file": path, "a folder": tmp_path, "a scan": pl.scan_parquet(path)}[where]
    query = opened(frame).query().filter(pl.col("vote") < "bbbb")
    assert ob.posterior(query, "vote", **asked).release().noisy_counts == (10, 0, 0, 0)
    query = opened(frame).query().filter(keeps)
    assert ob.posterior(query, "vote", **asked).release().noisy_counts == (10, 10, 0, 0)
    # By polars alone, the negative control.
    assert pl.scan_parquet(path).filter(pl.col("vote") < "bbbb").collect().height == 0
