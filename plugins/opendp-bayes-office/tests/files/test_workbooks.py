"""Cells of workbooks of Excel and LibreOffice, and what no sheet may do to its reader."""

import datetime
import io
import os
import random
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
import xlsxwriter
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from opendp_bayes_office.files import tables, workbooks
from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.reading import Reading
from opendp_bayes_office.files.workbooks import moment, number, opened_workbook, rows_of
from tests.helpers.asked_of_files import records_of
from tests.helpers.sources import ROOT

OTHERS = zipfile.ZipFile(ROOT / "tests" / "helpers" / "files_of_others.zip")


@pytest.fixture
def of_others(tmp_path: Path) -> Callable[[str], Path]:
    def extracted(name: str) -> Path:
        return Path(OTHERS.extract(name, tmp_path))

    return extracted


def texts(path: Path, sheet: str | None = None) -> list[tuple[str | None, ...]]:
    """The records as they are read."""
    return records_of(path, sheet=sheet).rows()


# --- Files that Excel and LibreOffice wrote

#: What openpyxl was told to write, and LibreOffice wrote anew.
CELLS: dict[str, str | None] = {"whole": "3", "decimal": "0.1", "small": "1.25e-7"}
CELLS |= {"large": "1.5e22", "date": "2026-05-01", "datetime": "2026-05-01 12:30:00"}
CELLS |= {"time": "12:30:00", "duration": "30:00:00", "short duration": "01:30:05", "text": "yes"}
CELLS |= {"tab": "a\tb", "lines": "a\nb", "blanks": "  a   b ", "computed": "a\nb"}
CELLS |= dict.fromkeys(("error", "error of a name", "na", "computed empty"))
CELLS |= {"carriage": "a\rb", "percent": "0.25", "written error": "#N/A of text"}
CELLS |= {"umlaut": "ä😀", "last": "1"}


@pytest.mark.parametrize("days", [1900, 1904])
def test_a_cell_is_read_as_libreoffice_wrote_it(of_others, days):
    read = texts(of_others(f"libreoffice_{days}.xlsx"))
    assert {name: dict(read)[name] for name in CELLS} == CELLS
    assert read.count((None, None)) == 1  # a record whose only cell is an error, and no empty row


def test_what_excel_and_libreoffice_wrote_otherwise(of_others):
    with closing(opened_workbook(of_others("date_1904.xlsx"))) as book:
        read = [row[0] for row in rows_of(book["Sheet1"])]
    assert read == ["2021-01-01", "2021-01-02", "255:10:10"]

    def first(name: str) -> list[str | None]:
        with closing(opened_workbook(of_others(name))) as book:
            return [row[0] for row in rows_of(book.worksheets[0])]

    assert first("errors.xlsx") == [None] * 7
    assert first("has_x000D_.xlsx") == ["ABC\r\nDEF"]
    assert first("rph.xlsx") == ["課きく\u3000毛こ"]  # without how it is spoken
    with pytest.raises(FileError, match="cannot be read as a"):  # Strict Open XML
        texts(of_others("strict_iso_paths.xlsx"))


# --- XML as Excel writes it
PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default'
        ' Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName='
        '"/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'spreadsheetml.sheet.main+xml"/></Types>'
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r='
        '"http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        '<workbookPr date1904="1" defaultThemeVersion="166925"/>'
        '<sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets><extLst>'
        '<ext uri="{140A7094-0E35-4892-8432-C4D2E57EDEB5}" xmlns:x15='
        '"http://schemas.microsoft.com/office/spreadsheetml/2010/11/main">'
        '<x15:workbookPr chartTrackingRefBase="1"/></ext></extLst></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/worksheet" Target="worksheets/sheet1.xml"/>'
        '<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/styles" Target="styles.xml"/></Relationships>'
    ),
    "xl/styles.xml": (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts>'
        '<numFmt numFmtId="164" formatCode="[h]:mm:ss;@"/></numFmts><cellStyleXfs>'
        '<xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="164"/></cellXfs></styleSheet>'
    ),
}
_SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    "{}</sheetData></worksheet>"
)


def of_parts(path: Path, rows: str, **parts: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            PARTS | parts | {"xl/worksheets/sheet1.xml": _SHEET.format(rows)}
        ).items():
            archive.writestr(name, text)
    return path


CELLS_OF_XML: dict[str, str | None] = {
    '<c r="A2" s="1"><v>44682</v></c>': "2026-05-02",  # of an extension is the second workbookPr
    '<c r="A2" s="2"><v>1.25</v></c>': "30:00:00",
    '<c r="A2" s="2"><v>-0.5</v></c>': "-12:00:00",
    '<c r="A2"><v>0.30000000000000004</v></c>': "0.30000000000000004",
    '<c r="A2"><v>1E-3</v></c>': "0.001",
    '<c r="A2"><v>1.0000000000000001E-5</v></c>': "0.00001",
    '<c r="A2"><v>9.9999999999999995E-7</v></c>': "1e-6",
    '<c r="A2"><v>7.0</v></c>': "7",
    '<c r="A2"><v>9007199254740993</v></c>': "9007199254740993",  # and not that of a float
    '<c r="A2" t="str"><f>A1</f><v>a_x000D_\nb_x005F_x000D_</v></c>': "a\r\nb_x000D_",
    '<c r="A2" t="e"><f>1/0</f><v>#DIV/0!</v></c>': None,
    '<c r="A2" t="inlineStr"><is><t>#N/A</t></is></c>': "#N/A",  # which somebody wrote
    '<c r="A2" t="inlineStr"><is><r><t>ye</t></r><r><t>s</t></r></is><v>0</v></c>': "yes",
    '<c r="A2" t="inlineStr"><is><t xml:space="preserve"> a </t></is></c>': " a ",
    '<c r="A2" t="d"><v>2026-05-01T12:30:00Z</v></c>': "2026-05-01 12:30:00",
    '<c r="A2" t="b"><v>1</v></c>': "true",
    '<c t="inlineStr"><is><t>without a place</t></is></c>': "without a place",
}
_HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c></row>'


@pytest.mark.parametrize("cell", CELLS_OF_XML)
def test_a_cell_as_excel_writes_it(tmp_path: Path, cell: str) -> None:
    path = of_parts(tmp_path / "x.xlsx", f'{_HEAD}<row r="2">{cell}</row>')
    assert texts(path) == [(CELLS_OF_XML[cell],)]


#: Cells as programs write them, by the method of xlsxwriter and a format, and as they are read.
_NOON = datetime.datetime(2026, 5, 1, 12)
SHEET_CELLS: list[tuple[str, Any, str | int | None, str | None]] = [
    *(("string", text, None, text) for text in ("a", " a ", "NA", " ", "-1", "=1", "#N/A", "\n")),
    *(("number", n, None, text) for n, text in ((0, "0"), (-1, "-1"), (1.5, "1.5"), (1e17, None))),
    ("number", 1, 57, "1904-01-02"),
    ("number", 1.25, "[h]:mm", "30:00:00"),
    ("boolean", True, None, "true"),
    ("boolean", False, None, "false"),
    ("formula", "#DIV/0!", None, None),
    ("formula", "NA", None, "NA"),
    ("datetime", datetime.date(2026, 5, 1), "yyyy-mm-dd", "2026-05-01"),
    ("datetime", _NOON, "dd.mm.yy hh:mm", "2026-05-01 12:00:00"),
    ("datetime", datetime.time(23, 59), "hh:mm", "23:59:00"),
    ("blank", None, None, ""),
]
#: How a sheet is written, and how it is read: any of these together.
SHEETS: dict[str, list[Any]] = {
    "date_1904": [False, True],
    "constant_memory": [False, True],  # texts in their cells, or in a table
    "sheet": [None, "first", "second"],
    "rows_above": [0, 1, 2],
    "skip_rows": [0, 1, 2],
    "end": [0, 1, 3],
    "trim": [False, True],
    "null_values": [[], ["NA", -1], ["true", "2026-05-01", "1.5"]],
}


@pytest.mark.parametrize("seed", range(4))
def test_any_ways_to_write_and_read_a_sheet_go_together(tmp_path: Path, seed: int) -> None:
    """Among them rows of nothing, of errors alone, and those that are longer than the names."""
    draws = random.Random(seed)
    for case in range(25):
        way = {name: draws.choice(levels) for name, levels in SHEETS.items()}
        path, options = tmp_path / f"{case}.xlsx", ("date_1904", "constant_memory")
        nothing, error = SHEET_CELLS[-1], SHEET_CELLS[-6]
        names = [SHEET_CELLS[at] for at in draws.sample([1, 8, 10, 14, 17, 18], 3)]
        names[1:1] = draws.sample([nothing, error, SHEET_CELLS[3]], draws.choice([0, 2]))
        others = [("string", "votes", None, "votes")] * draws.choice([1, 6])
        records = []
        for _ in range(draws.randint(0, 7)):
            kinds = [draws.choices(SHEET_CELLS, k=draws.randint(1, 7)), [nothing] * 3, [error]]
            records.append(draws.choices(kinds, [8, 1, 1])[0])
        end = [draws.choice([nothing, error])] * way["end"]
        rows = [*[others] * way["rows_above"], [nothing], names + end, *[others] * way["skip_rows"]]
        with xlsxwriter.Workbook(path, {name: way[name] for name in options}) as book:
            for name in ("first", "second")[: 1 + (way["sheet"] is not None)]:
                sheet = book.add_worksheet(name)
                for at, row in enumerate(
                    [*rows, *records] if name == (way["sheet"] or name) else []
                ):
                    for column, (kind, value, form, _) in enumerate(row):
                        style = book.add_format({} if form is None else {"num_format": form})
                        if kind == "formula":
                            sheet.write_formula(at, column, "=A1", None, value)
                        else:
                            getattr(sheet, f"write_{kind}")(
                                at, column, *([] if kind == "blank" else [value]), style
                            )

        def texts_of(row: list[Any], way: dict[str, Any] = way) -> list[str | None]:
            texts = [
                str(int(value)) if value == 1e17
                else {False: "1900-01-01", True: text}[way["date_1904"]] if form == 57
                else text
                for _, value, form, text in row
            ]  # fmt: skip
            return [text.strip() if way["trim"] and text else text for text in texts]

        codes = {"", *map(str, way["null_values"])}
        width = len(names)
        wanted = [
            tuple(None if text in codes else text for text in [*texts_of(row), *[None] * width])[
                :width
            ]
            for row in records
            if any(text != "" for *_, text in row)
        ]
        how = {name: way[name] for name in way if name not in (*options, "end")}
        found = records_of(path, **how)
        columns = texts_of(names)
        shown = [at for at, name in enumerate(columns) if name]
        assert found.columns == [columns[at] for at in shown], way
        assert found.rows() == [tuple(row[at] for at in shown) for row in wanted], way


#: By the code of a format what 1.25 is there, and by its number where no file states the code.
_NUMBER, _DAY, _CLOCK = "1.25", "1904-01-02 06:00:00", "30:00:00"
FORMS: dict[str | int, str] = {
    **dict.fromkeys(("General", "0.00E+00", "#,##0.00\\ [$€-407]", "0 &quot;days&quot;"), _NUMBER),
    **dict.fromkeys(("_-* #,##0.00\\ _k_r_-", "[&gt;0]0;[h]", 10), _NUMBER),
    **dict.fromkeys(("yyyy\\-mm\\-dd", "[$-409]d\\-mmm\\-yy;@", "mmm"), _DAY),
    "[$-411]ggge&quot;年&quot;m&quot;月&quot;d&quot;日&quot;": _DAY,
    **dict.fromkeys(("yyyy-mm-dd hh:mm:ss.000", "h:mm AM/PM", "mm:ss.0"), _DAY),
    **dict.fromkeys((14, 22, 57, 58, 31), _DAY),  # 31 is of Chinese, Japanese and Korean
    **dict.fromkeys(("[h]:mm", "[Red][mm]:ss", 46), _CLOCK),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_format_says_what_its_numbers_are(tmp_path: Path, form: str | int) -> None:
    styles = (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts>'
        f'<numFmt numFmtId="164" formatCode="{form}"/></numFmts><cellXfs><xf numFmtId="0"/>'
        f'<xf numFmtId="{164 if isinstance(form, str) else form}"/></cellXfs></styleSheet>'
    )
    row = '<row r="2"><c r="A2" s="1"><v>1.25</v></c></row>'
    path = of_parts(tmp_path / "x.xlsx", _HEAD + row, **{"xl/styles.xml": styles})
    assert texts(path) == [(FORMS[form],)]


def test_numbers_keep_all_their_digits_and_read_alike_in_every_format() -> None:
    """Beside the texts that polars writes, which files of SPSS, Stata and SAS have."""
    rng = random.Random(1)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-30, 30) for _ in range(5000)]
    values += [0.1, 0.1 + 0.2, 1 / 3, -0.0, 1e22, 2.0**63, 2.0**53 + 2, 123456789.123456789, 1e-7]
    column = tables._Column("x", "SAS", pl.Float64(), 64, {})
    assert column.text(values).to_list() == list(map(number, values))
    assert [float(number(value)) for value in values] == values


def test_every_second_of_a_day_and_every_day_is_read_as_openpyxl_wrote_it(tmp_path: Path) -> None:
    rng, path = random.Random(2), tmp_path / "x.xlsx"
    first = datetime.datetime(1904, 1, 2)
    wanted = [first + datetime.timedelta(seconds=rng.randrange(6 * 10**9)) for _ in range(2000)]
    for epoch in (None, CALENDAR_MAC_1904):
        book = openpyxl.Workbook()
        if epoch is not None:
            book.epoch = epoch
        for value in ("on", *wanted):
            book.active.append([value])
        book.save(path)
        assert [row[0] for row in texts(path)] == list(map(str, wanted))


@pytest.mark.parametrize("value", ["2957004", "1E300", "-1E300"])
@pytest.mark.parametrize("style", [1, 2])
def test_a_number_of_no_day_is_null_and_nothing_is_said_of_it(tmp_path, capfd, value, style):
    """openpyxl warns of it, with the value."""
    value = value if style == 1 else value.replace("2957004", "1E10")
    row = f'<row r="2"><c r="A2" s="{style}"><v>{value}</v></c></row>'
    path = of_parts(tmp_path / "x.xlsx", _HEAD + row)
    assert texts(path) == [(None,)]
    assert capfd.readouterr() == ("", "")
    with warnings.catch_warnings(record=True) as said:  # control
        warnings.simplefilter("always")
        with closing(opened_workbook(path)) as book:
            list(rows_of(book["S"]))
    assert any("is marked as a date but the serial value" in str(one.message) for one in said)


# --- What no sheet may do
_ONE = '<row r="2"><c r="A2"><v>1</v></c></row>'
_CELL = f'<c t="inlineStr"><is><t>{"a" * 9_000}</t></is></c>'
_ENTITIES = "".join(f'<!ENTITY x{n + 1} "{f"&x{n};" * 10}">' for n in range(12))
_STYLES = f'<!DOCTYPE a [{_ENTITIES}<!ENTITY x0 "aaaaaaaaaa">]><styleSheet>&x12;</styleSheet>'


def of_rows(rows: str, **parts: str) -> Callable[[Path], Path]:
    return lambda path: of_parts(path / "x.xlsx", _HEAD + rows, **parts)


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "a far cell": of_rows('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "a cell beyond the sheet": of_rows('<row r="2"><c r="ZZZ2"><v>1</v></c></row>'),
    "a name that never ends": of_rows(f'<row r="2"><c r="{"A" * 2_000_000}"/></row>'),
    "deep elements": of_rows("<a>" * 300_000),
    "a long row": lambda path: of_rows(f"<row>{_CELL * 4_000}</row>")(path),
    "a text that never ends": lambda path: of_rows(
        f'<row><c t="str"><v>{"a" * 40_000_000}</v></c></row>'
    )(path),
    "entities": of_rows(_ONE, **{"xl/styles.xml": _STYLES}),
    "texts of nothing": lambda path: of_rows(
        _ONE, **{"xl/styles.xml": "<a>" + "<a/>" * 10_000_000 + "</a>"}
    )(path),
    "rows without end": of_rows('<row r="2000000000"><c r="A2000000000"><v>1</v></c></row>'),
}


_READ = """
import sys
from pathlib import Path
from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.files import scannable, source
for path in sys.argv[1:]:
    try:
        with scannable(source(Path(path))) as found:
            found.complete()
            print(found.scan().collect().height)
    except FileError as error:
        print(error)
    print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_no_sheet_ends_the_process_or_asks_for_memory(tmp_path: Path) -> None:
    """One after the other in one process, whose largest memory never falls."""
    paths = []
    for name, make in HOSTILE.items():
        folder = tmp_path / name
        folder.mkdir()
        paths.append(make(folder))
    environment = os.environ | {"POLARS_MAX_THREADS": "1"}
    output: Any = {"capture_output": True, "text": True, "check": True}
    done = subprocess.run([sys.executable, "-c", _READ, *paths], env=environment, **output)
    lines = iter(done.stdout.splitlines())
    for name, answer, kilobytes in zip(HOSTILE, lines, lines, strict=True):
        assert answer == "1" if name == "a far cell" else "data=x." in answer, name
        assert int(kilobytes) < 600_000, name
    assert done.stderr == ""


def test_what_is_larger_than_a_sheet_is_refused_in_words(tmp_path: Path, monkeypatch: Any) -> None:
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        book.add_worksheet().write_column(0, 0, ["vote", *["yes"] * 10])
    monkeypatch.setattr(workbooks, "MOST_ROWS", 10)
    with pytest.raises(FileError, match=r"x\.xlsx: .*larger than a sheet"):
        texts(tmp_path / "x.xlsx")
    with xlsxwriter.Workbook(tmp_path / "y.xlsx") as book:
        book.add_worksheet().write_column(0, 0, ["vote", *["yes"] * 100])
    monkeypatch.setattr(workbooks, "MOST_ROWS", 101)
    assert len(texts(tmp_path / "y.xlsx")) == 100
    monkeypatch.setattr(workbooks, "_MOST_TEXT", 100)
    for batch in (workbooks._BATCH_OF_TEXT, 20):  # all together, and in parts
        monkeypatch.setattr(workbooks, "_BATCH_OF_TEXT", batch)
        with pytest.raises(FileError, match="is larger than a sheet"):
            texts(tmp_path / "y.xlsx")
    monkeypatch.setattr(workbooks, "_OTHERS", 10)
    with pytest.raises(tables.TooLargeError):
        opened_workbook(tmp_path / "y.xlsx")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's list of open files")
def test_a_refused_workbook_is_closed(tmp_path: Path, monkeypatch: Any) -> None:
    def opened() -> list[str]:
        links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
        return [name for link in links if (name := os.readlink(link)).startswith(str(tmp_path))]

    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        book.add_worksheet("empty")
        book.add_worksheet("full").write_column(0, 0, ["vote", *["yes"] * 100])
    refused = []
    for sheet in (None, "none", "empty"):
        with pytest.raises(FileError) as error:
            workbooks.workbook_table(tmp_path / "x.xlsx", "x", Reading(sheet=sheet))
        refused.append((error, opened()))
    table = workbooks.workbook_table(tmp_path / "x.xlsx", "x", Reading(sheet="full"))
    assert len(opened()) == 1  # control
    monkeypatch.setattr(workbooks, "_MOST_TEXT", 100)
    with pytest.raises(FileError) as error:
        table.copy(io.BytesIO())
    refused.append((error, opened()))
    assert [files for _, files in refused] == [[]] * 4


def test_few_records_are_in_memory_at_a_time(tmp_path: Path, monkeypatch: Any) -> None:
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        book.add_worksheet().write_column(0, 0, ["n", *map(str, range(1000))])
    monkeypatch.setattr(workbooks, "_BATCH_OF_TEXT", 100)
    heights: list[int] = []
    write = pl.DataFrame.write_csv

    def noted(frame: pl.DataFrame, *arguments: Any, **options: Any) -> Any:
        heights.append(frame.height)
        return write(frame, *arguments, **options)

    with monkeypatch.context() as changed:
        changed.setattr(pl.DataFrame, "write_csv", noted)
        workbooks.workbook_table(tmp_path / "x.xlsx", "x", Reading()).copy(io.BytesIO())
    assert sum(heights) == 1000
    assert max(heights) < 60
    assert [row[0] for row in texts(tmp_path / "x.xlsx")] == list(map(str, range(1000)))


TIMES = ["00:00:00", "00:00:00.500", "00:00:01", "00:01:00", "10:00:00", "12:30:00.250"]


@pytest.mark.parametrize("time", TIMES)
def test_a_time_has_its_milliseconds_with_a_day_and_without(time: str) -> None:
    assert moment(datetime.time.fromisoformat(time)) == time
    of_day = datetime.datetime.fromisoformat(f"2026-05-01 {time}")
    assert moment(of_day) == ("2026-05-01" if time == TIMES[0] else f"2026-05-01 {time}")


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    ("hours", "milliseconds", "text"),
    [(30, 0, "30:00:00"), (30, 250, "30:00:00.250"), (0, 1, "00:00:00.001"), (100, 999, None)],
)
def test_durations_of_either_sign_have_their_parts(sign, hours, milliseconds, text):
    duration = datetime.timedelta(hours=hours, milliseconds=milliseconds)
    wanted = f"{sign}{text or '100:00:00.999'}"
    assert moment(-duration if sign else duration) == wanted
