"""Files of CSV as programs of offices write them, against Python's `csv`."""

import csv
import gzip
import io
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from opendp_bayes_office.files import csv_text, files
from opendp_bayes_office.files.csv_text import FileError, copy_records, header_of
from tests.helpers.asked_of_files import records_of


def read(path: Path, content: str | bytes, *columns: str, **how: Any) -> list[tuple[Any, ...]]:
    """The records of a file, of some columns or of all."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return records_of(path, columns, **how).rows()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "votes.csv"


def by_csv(content: str, **how: Any) -> Iterator[tuple[str | None, ...]]:
    """The oracle: records of `csv`, all as long as the header, empty values as nulls."""
    header, *records = (row for row in csv.reader(io.StringIO(content, newline=""), **how) if row)
    for row in records:
        padded = [*row, *[""] * len(header)][: len(header)]
        yield tuple(value or None for value in padded)


FILES = {
    "quotes without a value": ('v,w\n"",1\n,2\na,3\n', [(None, "1"), (None, "2"), ("a", "3")]),
    "one column of blank lines": ('v\n""\n\na\n\n', [(None,), ("a",)]),
    "blank lines": ("v,w\n\na,1\n\n\nb,2\n\n", [("a", "1"), ("b", "2")]),
    "records without values": ("v,w\n,\n\n,\n", [(None, None), (None, None)]),
    "a blank line within quotes": ('v,w\n"a\n\nb",1\n\n', [("a\n\nb", "1")]),
    "a line of blanks": ("v,w\n  \na,1\n", [("a", "1")]),
    "CRLF": ('v,w\r\n\r\na,1\r\n"",2\r\n\r\n', [("a", "1"), (None, "2")]),
    "CR": ("v,w\ra,1\r\rb,2\r", [("a", "1"), ("b", "2")]),
    "CR after a header of LF": ("v,w\na,1\rb,2\nc,3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
    "CR CR LF": ("v,w\r\r\na,1\r\r\n", [("a", "1")]),
    "no end of the last line": ('v,w\na,1\n"",', [("a", "1"), (None, None)]),
    "lines that are too short or too long": ("v,w\na\nb,2,3\n", [("a", None), ("b", "2")]),
    "a value after its quotes": ('v,w\n"a"x,1\n"b" ,2\n', [("ax", "1"), ("b ", "2")]),
    "quotes within a value": ('v,w\n5" x 6",1\na"b"c,2\n', [('5" x 6"', "1"), ('a"b"c', "2")]),
    "quotes after a blank": ('v,w\na, "x"\n', [("a", ' "x"')]),
    "doubled quotes": ('v,w\n"a ""b""",1\n"""",2\n', [('a "b"', "1"), ('"', "2")]),
    "other blanks and ends": (
        "v,w\na\x0b\x0c\x1c\u2028\x85b,1\n",
        [("a\x0b\x0c\x1c\u2028\x85b", "1")],
    ),
    "a null character": ("v,w\na\0b,1\n", [("a\0b", "1")]),
    "no records": ("v,w\n", []),
    "no records and no end": ("v,w", []),
    "blank lines before the header": ("\n\r\n  \nv,w\na,1\n", [("a", "1")]),
    "a mark of UTF-8": ('\ufeff"v",w\na,1\n', [("a", "1")]),
}


def trimmed(records: Iterable[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    return [tuple(value and (value.strip() or None) for value in record) for record in records]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_it_is_written(path: Path, name: str) -> None:
    content, records = FILES[name]
    assert read(path, content) == records
    quoted = {"quotes after a blank": [("a", "x")]}  # which a blank before would not be
    assert read(path, content, trim=True) == quoted.get(name, trimmed(records))
    if name not in ("a line of blanks", "blank lines before the header", "a mark of UTF-8"):
        plain = content if '"a\n\nb"' in content else content.replace("\r\n", "\n")
        assert list(by_csv(plain)) == records


@pytest.mark.parametrize("separator", [",", " "])
@pytest.mark.parametrize("trim", [False, True])
def test_every_small_text_is_read_record_by_record_as_by_csv_or_refused(path, trim, separator):
    """Records that a separator, quotes, blanks and ends of lines make, five in a file. One is a
    line, or lines whose quotes are even together: `csv` reads on after `a",b,"`, which would make
    one record of several. A file is refused only if a record has several lines and such quotes. A
    blank that separates is none around a value.
    """
    header, is_skipped = f"v{separator}w", trim and separator != " "
    draws, refused = random.Random(1), 0
    for _ in range(150):
        lines = ["".join(draws.choices('ab,"" \n', k=draws.randint(0, 9))) for _ in range(5)]
        records, record = [], ""
        for line in "\n".join(lines).split("\n"):
            record += f"{line}\n"
            if record.count('"') % 2 == 0:
                records.append(record)
                record = ""
        try:
            text = "\n".join([header, *lines, ""])
            found = read(path, text, trim=trim, separator=separator)
        except FileError:
            refused += 1
            assert record or any(each.count("\n") > 1 for each in records)
            continue
        assert not record
        blanks = "\n" if separator == " " else None
        filled = [each.removesuffix("\n") for each in records if each.strip(blanks)]
        each_by_csv = (
            by_csv(f"{header}\n{each}", delimiter=separator, skipinitialspace=is_skipped)
            for each in filled
        )
        oracle = [values for of in each_by_csv if (values := next(of, None)) is not None]
        assert found == (trimmed(oracle) if trim else oracle)
    assert 20 < refused < 180


#: How an office writes a table of text, and how its owner has it read: any of these together.
WAYS: dict[str, list[Any]] = {
    "ending": [".csv", ".tsv", ".CSV", ".csv.gz", ".tsv.gz"],
    "encoding": ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "shift-jis", "latin-1"],
    "line": ["\n", "\r\n", "\r"],
    "quotes": ["where they must", "everywhere"],
    "ends": [True, False],
    "separator": [None, ",", ";", "tab"],
    "rows_above": [0, 1, 2],
    "skip_rows": [0, 1, 2],
    "nameless": [0, 1, 2],
    "trim": [True, False],
    "null_values": [[], ["NA", -1], ["b\n\nb", "é"]],
}
#: A value as it is written between separators, and what it is.
ODD = {f" {value} ": f" {value} " for value in ("a", "NA", "-1", "01", "\t", "a\xa0")}
ODD |= {value: value for value in ("NA", "na", "-1", "a b", "", "'a'", "\ufeffa", "a")}
ODD |= {'5"6"': '5"6"', '""': "", '"a""b"': 'a"b', '"b\n\nb"': "b\n\nb"}
ODD |= {f'"{value}"': value for value in (" NA", "a,b", "a;b", "a|b", "a\tb", "\n", " \n\t")}


def line_of(cells: list[tuple[str, str]], separator: str, quotes: str) -> str:
    if quotes == "everywhere":
        return separator.join(f'"{value.replace(chr(34), 2 * chr(34))}"' for _, value in cells)
    return separator.join(raw for raw, _ in cells)


def cleaned(value: str, way: dict[str, Any]) -> str | None:
    value = value.strip() if way["trim"] else value
    return None if value in ("", *map(str, way["null_values"])) else value


@pytest.mark.parametrize("seed", range(8))
def test_any_ways_to_write_and_read_a_table_go_together(tmp_path: Path, seed: int) -> None:
    """What is written is known, so that nothing but this says what has to be read."""
    draws = random.Random(seed)
    for number in range(40):
        way = {name: draws.choice(levels) for name, levels in WAYS.items()}
        usual = "\t" if "tsv" in way["ending"] else ","
        separator = {None: usual, "tab": "\t"}.get(way["separator"], way["separator"])
        letter = {"shift-jis": "表", "latin-1": "é"}.get(way["encoding"], "\ufeffé表\u2028")
        line = partial(line_of, separator=separator, quotes=way["quotes"])
        kept = [raw for raw in ODD if raw[:1] == '"' or separator not in raw]
        kept = [raw for raw in kept if raw.isascii() or way["encoding"].startswith("utf")]

        names = [("v", "v"), (" w ", " w "), (f'"\n{letter}"', f"\n{letter}")]
        names += [('"x\n\n \t\n"', "x\n\n \t\n")]
        names[1] = (' "w,\n"', "w,\n") if way["trim"] else names[1]  # quotes after a blank
        names += [("", "")] * way["nameless"]
        others = [("Votes", "Votes"), ('"of\n2026"', "of\n2026")]
        records: list[list[tuple[str, str]] | None] = []
        for _ in range(draws.randint(0, 8)):
            cells = [(raw, ODD[raw]) for raw in draws.choices(kept, k=len(names) - 1)]
            records.append([*cells[:2], (letter, letter), *cells[2:]])
            records += [None] * draws.choice([0, 0, 1, 2])
        lines = [""] * draws.choice([0, 2])
        lines += [
            *[line(others)] * way["rows_above"],
            line(names),
            *[line(others)] * way["skip_rows"],
        ]
        lines += [draws.choice(["", " "]) if of is None else line(of) for of in records]
        text = "\n".join([*lines, *[""] * (way["ends"] or not lines[-1])]).replace(
            "\n", way["line"]
        )
        raw = text.encode(way["encoding"])
        path = tmp_path / f"{number}{way['ending']}"
        path.write_bytes(gzip.compress(raw) if ".gz" in way["ending"] else raw)

        options = "separator", "rows_above", "skip_rows", "trim", "null_values"
        how = {name: way[name] for name in options}
        encoding = {"utf-8-sig": None}.get(way["encoding"], way["encoding"])
        found = records_of(path, encoding=encoding, **how)
        wanted = [[cleaned(value, way) for _, value in of] for of in records if of is not None]
        columns = [name.strip() if way["trim"] else name for _, name in names]
        shown = columns if way["nameless"] < 2 else columns[:-2]
        assert found.columns == shown, way
        assert found.rows() == [tuple(of[: len(shown)]) for of in wanted], way


@pytest.fixture(params=[1, 2, 3, 7, 50])
def tiny(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets records be copied in blocks of so few characters; a header has a block as before."""

    def copied(*given: Any, **how: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(csv_text, "_BLOCK", request.param)
            copy_records(*given, **how)

    return lambda: monkeypatch.setattr(files, "copy_records", copied)


def test_blocks_end_where_no_quote_is_open(path: Path, tiny: Callable[[], None]) -> None:
    content = 'v,w\n"a\n\n""b",1\n\n"c"d,2\n"",3\n' * 20
    tiny()
    assert read(path, content) == list(by_csv(content))
    for content, records in FILES.values():
        assert read(path, content) == records
    for encoding, end in itertools.product(
        ["utf-16", "latin-1", "shift-jis"], ["\n", "\r\n", "\r"]
    ):
        content = 'v,w\n"a",1\n\n"\n",2\n  \n""""'.replace("\n", end)
        records = [("a", "1"), ("\n", "2"), ('"', None)]
        assert read(path, content.encode(encoding), encoding=encoding) == records


def test_tiny_blocks_make_no_other_records_and_no_other_refusal(path, tiny):
    draws = random.Random(1)
    texts = [
        "v,w\n" + "".join(draws.choices('ab,"" \n\r', k=draws.randint(0, 40))) for _ in range(30)
    ]

    def outcome(content: str) -> Any:
        try:
            return read(path, content)
        except FileError as error:
            return str(error)

    usual = [outcome(text) for text in texts]
    assert 2 < sum(isinstance(each, str) for each in usual) < 28
    tiny()
    assert [outcome(text) for text in texts] == usual


def test_what_quotes_hold_together_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opendp_bayes_office.files.csv_text._BLOCK", 10)
    monkeypatch.setattr("opendp_bayes_office.files.csv_text._LONGEST", 100)
    with pytest.raises(FileError, match="quotation mark that opens"):
        read(path, 'v\n"' + "a\n" * 1000 + '"\n')


def test_what_csv_text_cannot_be_is_refused(path: Path) -> None:
    with pytest.raises(FileError, match="quotation mark that opens"):
        read(path, f'v\n"a"{"b" * 200_000}\n')
    with pytest.raises(ValueError, match=r"separator='é': .*one ASCII"):
        read(path, "véw\n", separator="é")
    assert read(path, "v,w,v_duplicated_0\na,b,c\n", "w", "v_duplicated_0") == [("b", "c")]
    with pytest.raises(FileError, match=r"votes\.csv: two .*have one name"):
        read(path, "v,v,w\na,b,c\n", "w")


@pytest.mark.parametrize("names", ["v,v", "v, v", "v ,v", "v,v\t", '" v","v "'])
def test_names_that_differ_in_blanks_alone_are_one_name_where_these_are_left_out(path, names):
    with pytest.raises(FileError, match=r"votes\.csv: two .*have one name"):
        read(path, f"{names},w\na,b,c\n", "w", trim=True)
    if names != "v,v":
        assert read(path, f"{names},w\na,b,c\n", "w") == [("c",)]


@pytest.mark.parametrize("content", ['size in "\nv\n', "\n\n", ""])
def test_a_header_that_is_none_is_refused(path: Path, content: str) -> None:
    with pytest.raises(FileError, match=r"votes.csv: .*as CSV; its first line"):
        read(path, content)


def test_a_quote_that_nothing_ends_is_not_read_to_the_end_of_the_file() -> None:
    text = io.StringIO('size in "\n' + "1,2,3\n" * (4 * 10**5))
    assert len(header_of(text)) < 2**20 + 10
    assert header_of(io.StringIO('\ufeff\n"a\nb",c\n1,2\n')) == '"a\nb",c'
    assert header_of(io.StringIO("")) == ""


LINES_OF_BLANKS = {
    "blanks": (",", "v,w\n  \n \t \n\u00a0\na,1\n", [("a", "1")]),
    "in quotes": (",", 'v,w\n"  ",1\n"x\n  \ny",2\n  \n', [("  ", "1"), ("x\n  \ny", "2")]),
    "of tabs that separate": ("\t", "v\tw\n\t\n  \na\t1\n", [(None, None), ("a", "1")]),
    "of blanks that separate": (" ", "v w\n \n\t\na 1\n", [(None, None), ("a", "1")]),
    "ends of Windows": (",", "v,w\r\n  \r\na,1\r\n", [("a", "1")]),
    "the last one": (",", "v\na\n   ", [("a",)]),
}


@pytest.mark.parametrize("name", LINES_OF_BLANKS)
def test_a_line_of_blanks_alone_is_a_blank_line(path: Path, name: str) -> None:
    separator, content, wanted = LINES_OF_BLANKS[name]
    assert read(path, content, separator=separator) == wanted


_WHOLE = gzip.compress(b"vote,town\n" + b"".join(b"yes,%d\n" % n for n in range(999)), mtime=0)
BROKEN = {
    "cut off": _WHOLE[: len(_WHOLE) // 2],
    "another block": _WHOLE[:10] + b"\xff" + _WHOLE[11:],
    "another sum": _WHOLE[:-8] + b"\x00" * 4 + _WHOLE[-4:],
    "more behind": _WHOLE + b"more",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_compressed_file_that_is_broken_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / "votes.csv.gz"
    file.write_bytes(BROKEN[name])
    with pytest.raises(FileError, match=r"data=.*votes\.csv\.gz: cannot be read as CSV"):
        records_of(file, ["vote"])
