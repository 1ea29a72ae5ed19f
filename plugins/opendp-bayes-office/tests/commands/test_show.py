"""`opendp-bayes show`: saved releases as tables and pictures."""

import re
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes as ob
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


def test_a_table_of_another_kind_is_refused(saved, tmp_path):
    message = run("show", saved / "one.json", "-o", tmp_path / "t.ods", code=2)
    assert "t.ods: must end in .xlsx, or be - for JSON." in message
    message = run("show", saved / "one.json", "-o", tmp_path / "t.csv", code=2)
    assert "t.csv: must end in .xlsx, or be - for JSON." in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("absent.json", r"absent\.json: cannot be read \(No"),
        ("votes.csv", r"votes\.csv: text: is not a result in JSON"),
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
    named = ("--mechanism", "hamming_exponential", "--mechanism", "laplace_parameters")
    assert "HammingExponential" in run("show", path, *named)
    assert "1 result" in run("report", path, "-o", tmp_path / "page.html", *named)
    path.write_text(path.read_text().replace('"hamming_exponential"', '"of_another"'))
    message = run("show", path, code=2)
    assert "call load_mechanism('of_another') first" in message
    assert "--mechanism of_another" in message
    wanted = "of_another.*available: "
    assert re.search(wanted, run("report", path, "--mechanism", "of_another", code=2))
    message = run("report", path, "votes.csv", *named, code=2)
    assert "is for a page made again" in message
