"""A specification from a code book: the codes are categories, and their labels are on the page."""

from pathlib import Path

import pytest

from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run

BOOK = """column,code,label
vote,1,yes
vote,2,no
vote,9,"no answer, or none"
town,a,Aford
town,b,Bury
town,,nobody
"""
DATA = "id,town,vote,age\n" + "1,a,1,30\n2,b,2,40\n3,a,9,50\n" * 200


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.csv").write_text(DATA)
    Path("book.csv").write_text(BOOK)


def test_a_code_book_gives_categories_and_labels_in_its_order() -> None:
    run("init", "v.csv", "--codebook", "book.csv", "-o", "w.toml")
    columns = read_specification(Path("w.toml").read_text()).columns
    assert {name: (column.categories, column.labels) for name, column in columns.items()} == {
        "town": (["a", "b"], ["Aford", "Bury"]),
        "vote": (["1", "2", "9"], ["yes", "no", "no answer, or none"]),
    }
    run("report", "w.toml", "v.csv", "-o", "w.html")
    page = Path("w.html").read_text()
    assert all(f"<bdi>{label}</bdi>" in page for label in ("yes", "no", "Aford", "Bury"))


@pytest.mark.parametrize(
    ("book", "message"),
    [
        ("vote,1,yes\n", "in UTF-8 and with commas, whose first line names"),
        ("column,code\nvote,1\n", "in UTF-8 and with commas, whose first line names"),
        (None, "in UTF-8 and with commas, whose first line names"),
        (BOOK + "vote,1,maybe\n", "code '1' of column 'vote' has two labels"),
    ],
)
def test_what_is_no_code_book_is_refused(book: str | None, message: str) -> None:
    Path("other.csv").unlink(missing_ok=True)
    if book is not None:
        Path("other.csv").write_text(book)
    said = run("init", "v.csv", "--codebook", "other.csv", code=2)
    assert said.startswith("opendp-bayes: --codebook other.csv: ")
    assert message in " ".join(said.split())
