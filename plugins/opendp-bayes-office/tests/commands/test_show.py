"""`opendp-bayes show`: saved releases as tables and pictures."""

import json
import re
import zipfile
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from tests.helpers.command_line import run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a release, and one of groups."""
    directory = tmp_path_factory.mktemp("saved")
    frame = pl.DataFrame({"vote": ["a", "b", "c"] * 40, "town": ["x", "y"] * 60})
    frame.write_csv(directory / "votes.csv")
    common = ("--column", "vote", "--categories", "a,b,c", "--epsilon", 1)
    run("release", directory / "votes.csv", *common, "--output", directory / "one.json")
    groups = ("--by", "town=x,y")
    run("release", directory / "votes.csv", *common, *groups, "-o", directory / "groups.json")
    return directory


def test_a_saved_release_is_shown_as_it_was_when_it_was_made(saved: Path) -> None:
    release = ob.Release.from_json((saved / "one.json").read_bytes())
    shown = run("show", saved / "one.json")
    for label, count, mean in zip(
        release.categories, release.counts, release.posterior.mean(), strict=True
    ):
        assert re.search(rf"^ *{label} +{count} +{100 * mean:.1f} % ", shown, re.MULTILINE), shown
    assert "ε = 1 for data sets that differ by 1 record added or removed" in shown
    assert "50 %" in run("show", saved / "one.json", "--level", 0.5)
    in_numbers = run("show", saved / "one.json", "--no-percent")
    assert f" {release.posterior.mean()[0]:.3f} " in in_numbers
    assert re.search(r"\d\.\d+ %", in_numbers) is None


def test_groups_are_shown_too(saved: Path) -> None:
    released = ob.Release.from_json((saved / "groups.json").read_bytes())
    shown = run("show", saved / "groups.json")
    assert "All groups together: ε = 1" in shown
    for group in "xy":
        assert re.search(rf"^ *{group} +a +{released[group].counts[0]} ", shown, re.MULTILINE)


@pytest.fixture
def survey(saved: Path, tmp_path: Path) -> Path:
    """A file of a survey, whose questions are named as spreadsheets name formulas."""
    one = ob.Release.from_json((saved / "one.json").read_bytes())
    groups = ob.Release.from_json((saved / "groups.json").read_bytes())
    file = tmp_path / "survey.json"
    file.write_text(ob.Survey(("=1+1", "by town"), (one, groups)).to_json())
    return file


@pytest.mark.parametrize(
    ("name", "kind"), [("one", ob.Release), ("groups", ob.Release), (None, ob.Survey)]
)
def test_tables_hold_the_numbers_in_full(saved, survey, tmp_path, name, kind):
    file = survey if name is None else saved / f"{name}.json"
    wanted = kind.from_json(file.read_bytes()).to_frame(0.5)
    table = tmp_path / "table.csv"
    run("show", file, "--level", 0.5, "-o", table)
    shown = run("show", file, "--level", 0.5, "-o", "-")
    # But for a label that is a formula, which has an apostrophe there (`tests/hostile`).
    texts = pl.read_csv(table, schema=wanted.schema)
    texts = texts.with_columns(pl.col(pl.String).str.strip_prefix("'"))
    assert texts.equals(wanted)
    assert json.loads(shown) == wanted.to_dicts()


def test_the_table_of_a_report_is_that_of_all_its_results(saved, tmp_path):
    specification = tmp_path / "s.toml"
    specification.write_text(
        'title = "t"\n[privacy]\nepsilon = 2.0\n[columns.vote]\ncategories = ["a", "b", "c"]\n'
        '[columns.town]\ncategories = ["x", "y"]\n[[results]]\ncolumn = "vote"\n'
        '[[results]]\ncolumn = "town"\n'
    )
    run("report", specification, saved / "votes.csv", "-o", tmp_path / "p.html")
    rows = json.loads(run("show", tmp_path / "p.json", "-o", "-"))
    named = dict.fromkeys((row["question"], row["category"][:1]) for row in rows)
    assert list(named) == [*(("vote", c) for c in "abco"), *(("town", c) for c in "xyo")]


def test_a_table_replaces_no_file(saved, tmp_path):
    table = tmp_path / "table.xlsx"
    table.write_text("mine")
    assert f"--output {table}: exists already" in run(
        "show", saved / "one.json", "-o", table, code=2
    )
    assert table.read_text() == "mine"
    message = run("show", saved / "one.json", "-o", tmp_path / "no" / "t.xlsx", code=2)
    assert "t.xlsx: cannot be written (No such file or directory); name another file." in message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["table.xlsx"]


def test_a_workbook_holds_the_numbers_in_full(survey, tmp_path):
    table = tmp_path / "table.xlsx"
    run("show", survey, "-o", table)
    with zipfile.ZipFile(table) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    wanted = ob.Survey.from_json(survey.read_bytes()).to_frame()
    numbers = [float(number) for number in re.findall(r'<c r="D\d+"[^>]*><v>([^<]+)</v>', sheet)]
    # The first is the number of a text, the heading; 16 digits are written.
    assert numbers[1:] == pytest.approx(wanted["mean"].to_list(), rel=1e-15, abs=0)


def test_a_table_of_another_kind_is_refused(saved, tmp_path):
    message = run("show", saved / "one.json", "-o", tmp_path / "t.ods", code=2)
    assert "t.ods: must end in .csv or .xlsx, or be - for JSON." in message
    message = run("show", saved / "one.json", "-o", tmp_path / "t", code=2)
    assert "t: must end in .csv or .xlsx, or be - for JSON." in message


def test_json_of_a_table_draws_the_picture_too(saved, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "p.png"
    json.loads(run("show", saved / "one.json", "-o", "-", "--plot", picture))
    assert picture.exists()


def test_a_survey_is_shown_with_its_total(saved: Path, tmp_path: Path) -> None:
    one = ob.Release.from_json((saved / "one.json").read_bytes())
    groups = ob.Release.from_json((saved / "groups.json").read_bytes())
    file = tmp_path / "survey.json"
    file.write_text(ob.Survey(("vote", "by town"), (one, groups)).to_json())
    shown = run("show", file)
    assert "All together: ε = 2 for one privacy unit" in shown
    assert re.search(rf"^ *vote +a +{one.counts[0]} ", shown, re.MULTILINE)
    assert re.search(rf"^ *by town +x +a +{groups['x'].counts[0]} ", shown, re.MULTILINE)
    pytest.importorskip("matplotlib")
    run("show", file, "--plot", tmp_path / "p.png", "--level", 0.5)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_release_is_read_from_standard_input(saved: Path) -> None:
    document = (saved / "one.json").read_bytes()
    result = CliRunner().invoke(app, ["show", "-"], input=document)
    assert result.exit_code == 0
    assert result.stdout == run("show", saved / "one.json")


@pytest.mark.parametrize("name", ["one", "groups"])
@pytest.mark.parametrize(("extension", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn(saved, tmp_path, name, extension, magic):
    picture = tmp_path / f"picture.{extension}"
    run("show", saved / f"{name}.json", "--plot", picture)
    assert picture.read_bytes().startswith(magic)
    nowhere = run("show", saved / f"{name}.json", "--plot", tmp_path / "absent/p.png", code=3)
    assert "cannot be written (No such file" in nowhere


@pytest.mark.parametrize("name", ["one", "groups", "table"])
def test_a_picture_has_shares_in_per_cent(saved: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    if name == "table":
        of = {"mechanism": "laplace_parameters", "scale": 2.0}
        table = ob.noisy_counts([[30, 20], [40, 10]], {"v": ["a", "b"], "w": ["x", "y"]}, **of)
        (saved / "table.json").write_text(table.to_json())
    picture = tmp_path / f"{name}.svg"
    run("show", saved / f"{name}.json", "--plot", picture)
    comments = re.findall("<!-- (.*?) -->", picture.read_text())
    texts = [text for text in comments if re.fullmatch(r"[\d.]+( %)?", text)]
    assert all(text.endswith(" %") for text in texts)
    assert len(texts) > 2


def test_a_picture_has_its_level(saved: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for number, level in enumerate((0.5, 0.95, 0.5)):
        picture = tmp_path / f"{number}.png"
        run("show", saved / "one.json", "--plot", picture, "--level", level)
        drawn.append(picture.read_bytes())
    assert drawn[0] == drawn[2] != drawn[1]


def test_json_with_a_byte_order_mark_is_read(saved: Path, tmp_path: Path) -> None:
    """As Notepad and PowerShell write it."""
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + (saved / "one.json").read_bytes())
    assert run("show", marked) == run("show", saved / "one.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("absent.json", r"absent\.json: cannot be read \(No"),
        ("votes.csv", r"votes\.csv: text: is not a release in JSON"),
        ("one.json --level 1", r"level=1\.0: .*between 0 and 1"),
        ("one.json --plot picture.xyz", r"Format 'xyz'"),
        ("one.json --mechanism nope", r"mechanism='nope': .*not an installed"),
    ],
)
def test_wrong_options_end_in_one_line_and_exit_code_2(saved, options, message, monkeypatch):
    monkeypatch.chdir(saved)
    shown = run("show", *options.split(), code=2)
    assert len(shown.splitlines()) == 1
    assert re.search(message, shown), shown


def test_a_release_by_a_mechanism_of_another_package_needs_its_name(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    (tmp_path / "votes.csv").write_text("vote\n" + "a\nb\n" * 10)
    run(
        *("release", tmp_path / "votes.csv", "--column", "vote", "--categories", "a,b"),
        *("--size", 20, "--nulls", "a", "--unknown", "a", "--mechanism", "hamming_exponential"),
        *("--epsilon", 1, "--output", path),
    )
    assert ob.Release.from_json(path.read_bytes()).mechanism.name == "hamming_exponential"
    assert "HammingExponential" in run("show", path, "--mechanism", "hamming_exponential")
    path.write_text(path.read_text().replace('"hamming_exponential"', '"of_another"'))
    message = run("show", path, code=2)
    assert "call load_mechanism('of_another') first" in message
