"""The first record of a file is read as every other, empty, marked or like compressed bytes; and a
time is of the day that it is in, up to its last instant, in every statistical file.
"""

import random
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter

from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.files import read, scannable, source
from opendp_bayes_office.files.reading import Reading
from tests.helpers.sweeps import slow, some_of

LINES = [*("yes,1", "", "\ufeffyes,1", "x^2,1", "x\x01,1", "x\xda,1", '"",', '"a\nb",2'), "BZh9"]
PIECES = ["a", "yes", "", *" \t\x00\x85\u2028\ufeff#", "x^", *"é1-;"]
QUOTED = ['"a"', '""', '"a""b"', '"a,b"', '"a\nb"', '"a\r\nb"', '"\n"', '""""']
EVERY = [Reading(), Reading(trim=True)]


def records(path: Path, cleaning: Reading = EVERY[0]) -> Counter[tuple[str | None, ...]]:
    with scannable(source(path, cleaning)) as found:
        found.complete()
        every = pl.all().str.strip_chars().replace("", None) if cleaning.trim else pl.all()
        return Counter(found.scan().select(every).collect().rows())


def written(path: Path, lines: list[str], *, header: str = "v,w", end: str = "\n") -> Path:
    path.write_bytes(end.join([header, *lines, ""]).encode())
    return path


def distance(first: Counter, second: Counter) -> int:
    return sum(((first - second) + (second - first)).values())


@pytest.mark.parametrize(("line", "cleaning"), some_of(product(LINES, EVERY), 15))
def test_a_record_is_read_alike_wherever_it_stands(tmp_path, line, cleaning):
    path, others = tmp_path / "votes.csv", ["no,2", "a,3"]
    last = records(written(path, [*others, line]), cleaning)
    for at in (0, 1):
        assert records(written(path, [*others[:at], line, *others[at:]]), cleaning) == last
    alone = records(written(path, [line]), cleaning)
    assert alone == last - records(written(path, others), cleaning)


def test_a_record_before_empty_lines_moves_no_other(tmp_path: Path) -> None:
    path, empty = tmp_path / "votes.csv", [""] * 900
    fewer = records(written(path, [*empty, "yes,1"]))
    assert fewer == {("yes", "1"): 1}
    assert records(written(path, ["no,2", *empty, "yes,1"])) - fewer == {("no", "2"): 1}


@pytest.mark.parametrize("value", ["\ufeffyes", "x^2", "x\x01"])
def test_the_first_value_of_a_workbook_is_read_too(tmp_path: Path, value: str) -> None:
    for rows in ([value, "no"], ["no", value]):
        with xlsxwriter.Workbook(tmp_path / "votes.xlsx") as book:
            book.add_worksheet().write_column(0, 0, ["vote", *rows])
        read = records(tmp_path / "votes.xlsx")
        assert len(read) == 2
        assert ("no",) in read
    assert (value.replace("\x01", "_x0001_"),) in read or (value,) in read


def moved_by_one_record(tmp_path: Path, seed: int, cleaning: Reading) -> int:
    """The largest distance of two random files, of which one has a record more."""
    rng, largest = random.Random(seed), 0
    for _ in range(60):
        columns, quotes = rng.choice([1, 1, 2, 3]), rng.choice([0.0, 0.1, 0.5])

        def value(quotes: float = quotes) -> str:
            if rng.random() < quotes:
                return rng.choice(QUOTED)
            return "".join(rng.choice(PIECES) for _ in range(rng.randrange(3)))

        def line(columns: int = columns) -> str:
            fields = rng.choice([columns, columns, max(1, columns - 1), columns + 1])
            return ",".join(value() for _ in range(fields))

        lines = [line() for _ in range(rng.randrange(6))]
        at, how = rng.randrange(len(lines) + 1), {"end": rng.choice(["\n", "\r\n", "\r"])}
        how["header"] = ",".join("vwx"[:columns])
        both = lines, [*lines[:at], line(), *lines[at:]]
        try:
            first, second = (
                records(written(tmp_path / "f.csv", each, **how), cleaning) for each in both
            )
        except FileError:  # quotes that join records, for which the file is refused
            continue
        largest = max(largest, distance(first, second))
    return largest


@pytest.mark.parametrize("cleaning", EVERY)
@pytest.mark.parametrize("seed", slow(range(4), but=(0,)))
def test_one_record_more_is_one_record_more(tmp_path: Path, seed: int, cleaning: Reading) -> None:
    assert moved_by_one_record(tmp_path, seed, cleaning) == 1


def test_polars_reads_the_beginning_of_a_text_otherwise(tmp_path: Path) -> None:
    """Negative control: without a first line of ours, empty lines and a byte order mark go."""
    schema = {"v": pl.String(), "w": pl.String()}
    for text in (b"\n\nyes,1\n", b"\xef\xbb\xbfyes,1\n"):
        (tmp_path / "f.csv").write_bytes(text)
        found = pl.read_csv(tmp_path / "f.csv", has_header=False, schema=schema)
        assert found.rows() == [("yes", "1")]


def test_a_stray_quote_moves_no_other_record_where_blanks_separate(tmp_path: Path) -> None:
    """It has its block written anew, in which two blanks are an empty value as before."""
    path, cleaning, found = tmp_path / "votes.csv", Reading(trim=True, separator=" "), []
    for lines in (["x  yes"] * 50, ["x  yes"] * 50 + ['x "yes"x']):
        path.write_text("\n".join(["a b", *lines, ""]))
        with scannable(source(path, cleaning)) as read:
            read.complete()
            found.append(Counter(read.scan().collect().rows()))
    assert distance(*found) == 1


#: Of each file: its ending, the format of a time, the first day from which it counts, and in which
#: part of a second.
FILES = {
    "SPSS": (".sav", "DATETIME20", datetime(1582, 10, 14), 1),
    "Stata": (".dta", "%tc", datetime(1960, 1, 1), 1000),
    "SAS": (".xpt", "DATETIME20.", datetime(1960, 1, 1), 1),
}
DAYS = (datetime(1959, 12, 31), datetime(1969, 12, 31), datetime(1970, 1, 1), datetime(2024, 2, 29))
#: Thousandths of a second from the beginning of the day, or of the next.
INSTANTS = (0, 0.4, 0.6, 999.7, 86_399_000, 86_399_999.4, 86_399_999.5, 86_399_999.6, 86_399_999.9)


@pytest.mark.parametrize("kind", FILES)
def test_the_last_half_millisecond_of_a_day_is_of_that_day(kind: str, tmp_path: Path) -> None:
    pandas, pyreadstat = map(pytest.importorskip, ("pandas", "pyreadstat"))
    ending, form, start, unit = FILES[kind]
    values, wanted = [], []
    for day in DAYS:
        for instant in INSTANTS:
            whole = (day - start) // timedelta(milliseconds=1)
            value = float((whole + Fraction(instant)) / 1000 * unit)
            values.append(value)
            passed = Fraction(value) * 1000 // unit
            wanted.append((start + timedelta(milliseconds=int(passed))).replace(microsecond=0))
    path = tmp_path / f"t{ending}"
    write = {".sav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}[ending]
    frame = pandas.DataFrame({"t": values})
    getattr(pyreadstat, write)(frame, str(path), variable_format={"t": form})
    times = read(path)["t"]
    assert times.dtype == pl.Datetime("ms")
    assert times.to_list() == wanted
