"""Cells of workbooks: files that Excel and LibreOffice wrote, and what no sheet may do to the
process that reads it.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from opendp_bayes_office.files import workbooks
from opendp_bayes_office.files.csv_text import FileError
from tests.helpers.asked_of_files import records_of
from tests.helpers.sources import ROOT

OTHERS = zipfile.ZipFile(ROOT / "tests" / "helpers" / "files_of_others.zip")


@pytest.fixture
def of_others(tmp_path: Path) -> Callable[[str], Path]:
    def extracted(name: str) -> Path:
        return Path(OTHERS.extract(name, tmp_path))

    return extracted


#: What was written, and LibreOffice wrote anew.
CELLS: dict[str, str | None] = {
    "whole": "3",
    "decimal": "0.1",
    "date": "2026-05-01",
    "datetime": "2026-05-01 12:30:00",
    "text": "yes",
    "lines": "a\nb",
    "blanks": "  a   b ",
    "error": None,
    "error of a name": None,
    "na": None,
    "computed": "a\nb",
    "computed empty": None,
    "percent": "0.25",
    "written error": "#N/A of text",
    "umlaut": "ä😀",
    "last": "1",
}


@pytest.mark.parametrize("days", [1900, 1904])
@pytest.mark.parametrize("extension", ["xlsx", "ods"])
def test_a_cell_is_read_alike_from_every_format_that_libreoffice_wrote(of_others, extension, days):
    read = records_of(of_others(f"libreoffice_{days}.{extension}")).rows()
    assert {name: dict(read)[name] for name in CELLS} == CELLS
    assert read.count((None, None)) == 0  # an empty row, and one whose only cell is an error


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


_HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c></row>'

# --- What no sheet may do

_ONE = '<row r="2"><c r="A2"><v>1</v></c></row>'
HOSTILE: dict[str, Callable[[Path], Path]] = {
    "a far cell": lambda path: of_parts(
        path / "x.xlsx", f'{_HEAD}<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    ),
    "a cell beyond the sheet": lambda path: of_parts(
        path / "x.xlsx", f'{_HEAD}<row r="2"><c r="ZZZ2"><v>1</v></c></row>'
    ),
    "a name that never ends": lambda path: of_parts(
        path / "x.xlsx", f'{_HEAD}<row r="2"><c r="{"A" * 2_000_000}"/></row>'
    ),
    "deep elements": lambda path: of_parts(path / "x.xlsx", f"{_HEAD}{'<a>' * 300_000}"),
    "a long row": lambda path: of_parts(
        path / "x.xlsx",
        _HEAD + "<row>" + f'<c t="inlineStr"><is><t>{"a" * 9_000}</t></is></c>' * 4_000 + "</row>",
    ),
    "a text that never ends": lambda path: of_parts(
        path / "x.xlsx", f'{_HEAD}<row><c t="str"><v>{"a" * 40_000_000}</v></c></row>'
    ),
    "entities": lambda path: of_parts(
        path / "x.xlsx",
        _HEAD + _ONE,
        **{
            "xl/styles.xml": "<!DOCTYPE a ["
            + "".join(f'<!ENTITY x{n + 1} "{f"&x{n};" * 10}">' for n in range(12))
            + '<!ENTITY x0 "aaaaaaaaaa">]><styleSheet>&x12;</styleSheet>'
        },
    ),
    "texts of nothing": lambda path: of_parts(
        path / "x.xlsx", _HEAD + _ONE, **{"xl/styles.xml": "<a>" + "<a/>" * 10_000_000 + "</a>"}
    ),
    "rows without end": lambda path: ods(path / "x.ods", rows=2_000_000, columns=200),
    "columns without end": lambda path: ods(path / "x.ods", rows=20_000, columns=2_000_000),
    "blanks without end": lambda path: ods(path / "x.ods", blanks=2_000_000_000),
}


def ods(path: Path, rows: int = 1, columns: int = 1, blanks: int = 1) -> Path:
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    cell = "<table:table-cell office:value-type='string'{}><text:p>x{}</text:p></table:table-cell>"
    head = f"<table:table-row>{cell.format('', '')}</table:table-row>"
    many = cell.format(
        f" table:number-columns-repeated='{columns}'", f"<text:s text:c='{blanks}'/>x"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content{names}><office:body><office:spreadsheet><table:table"
            f" table:name='S'>{head}<table:table-row table:number-rows-repeated='{rows}'>{many}"
            "</table:table-row></table:table></office:spreadsheet></office:body>"
            "</office:document-content>",
        )
    return path


_READ = """
import sys
from pathlib import Path
from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.files import scannable, source
try:
    with scannable(source(Path(sys.argv[1]))) as found:
        found.complete()
        print(found.scan().collect().height)
except FileError as error:
    print(error)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_sheet_ends_the_process_or_asks_for_memory(tmp_path: Path, name: str) -> None:
    path = HOSTILE[name](tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _READ, path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"POLARS_MAX_THREADS": "1"},
    )
    answer, kilobytes = done.stdout.splitlines()
    assert answer.isdecimal() or "FILE x." in answer
    assert "FILE x." in answer or not name.startswith(("a far", "rows", "columns"))
    assert int(kilobytes) < 1_000_000
    assert done.stderr == ""


def test_what_is_larger_than_a_sheet_is_refused_in_words(tmp_path: Path, monkeypatch: Any) -> None:
    with xlsxwriter.Workbook(tmp_path / "y.xlsx") as book:
        book.add_worksheet().write_column(0, 0, ["vote", *["yes"] * 100])
    assert records_of(tmp_path / "y.xlsx").height == 100
    for name in ("_MOST_CELLS", "_SHEETS", "_OTHERS"):
        with monkeypatch.context() as patch:
            patch.setattr(workbooks, name, 100)
            with pytest.raises(FileError, match=r"y\.xlsx: .*larger than a sheet"):
                records_of(tmp_path / "y.xlsx")


@pytest.mark.parametrize("block", [7, 40, 1 << 20])
def test_the_farthest_cell_is_found_wherever_a_block_ends(tmp_path, monkeypatch, block):
    cell = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    path = of_parts(tmp_path / "x.xlsx", _HEAD + "<!---->" * 9 + cell)
    monkeypatch.setattr(workbooks, "_BLOCK", block)
    with pytest.raises(FileError, match="larger than a sheet"):
        records_of(path)
