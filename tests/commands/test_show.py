"""`opendp-bayes show`: saved releases as tables and pictures."""

import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.commands.app import app
from tests.helpers.command_line import run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a release, and one of groups."""
    directory = tmp_path_factory.mktemp("saved")
    frame = pl.DataFrame({"vote": ["a", "b", "c"] * 40, "town": ["x", "y"] * 60})
    frame.write_csv(directory / "votes.csv")
    common = ("--column", "vote", "--categories", "a,b,c", "--epsilon", 1)
    run("release", directory / "votes.csv", *common, "--output", directory / "one.json")
    groups = ("--group-by", "town", "--groups", "x,y")
    run("release", directory / "votes.csv", *common, *groups, "-o", directory / "groups.json")
    return directory


def test_a_saved_release_is_shown_as_it_was_when_it_was_made(saved: Path) -> None:
    release = ob.Release.from_json((saved / "one.json").read_bytes())
    shown = run("show", saved / "one.json")
    for label, count, mean in zip(
        release.categories, release.counts, release.posterior.mean(), strict=True
    ):
        assert re.search(rf"^ *{label} +{count} +{mean:.3f} ", shown, re.MULTILINE), shown
    assert "ε = 1 for data sets that differ by 1 record added or removed" in shown
    assert "50 %" in run("show", saved / "one.json", "--level", 0.5)


def test_groups_are_shown_too(saved: Path) -> None:
    released = ob.GroupedRelease.from_json((saved / "groups.json").read_bytes())
    shown = run("show", saved / "groups.json")
    assert "All groups together: ε = 1" in shown
    for group in "xy":
        assert re.search(rf"^ *{group} +a +{released[group].counts[0]} ", shown, re.MULTILINE)


def test_a_survey_is_shown_with_its_total(saved: Path, tmp_path: Path) -> None:
    one = ob.Release.from_json((saved / "one.json").read_bytes())
    groups = ob.GroupedRelease.from_json((saved / "groups.json").read_bytes())
    file = tmp_path / "survey.json"
    file.write_text(ob.Survey(("vote", "by town"), (one, groups)).to_json())
    shown = run("show", file)
    assert "All together: ε = 2 for one privacy unit" in shown
    assert re.search(rf"^ *vote +a +{one.counts[0]} ", shown, re.MULTILINE)
    assert re.search(rf"^ *by town, x +a +{groups['x'].counts[0]} ", shown, re.MULTILINE)
    result = CliRunner().invoke(app, ["show", str(file), "--plot", str(tmp_path / "p.png")])
    assert result.exit_code == 2
    assert "survey of 2 releases; it draws one" in " ".join(result.output.split())


def test_a_release_is_read_from_standard_input(saved: Path) -> None:
    document = (saved / "one.json").read_bytes()
    result = CliRunner().invoke(app, ["show", "-"], input=document)
    assert result.exit_code == 0
    assert result.stdout == run("show", saved / "one.json")


@pytest.mark.parametrize("name", ["one", "groups"])
@pytest.mark.parametrize(("extension", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn(
    saved: Path, tmp_path: Path, name: str, extension: str, magic: bytes
) -> None:
    picture = tmp_path / f"picture.{extension}"
    run("show", saved / f"{name}.json", "--plot", picture)
    assert picture.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("absent.json", r"FILE absent\.json: cannot be read \(No such file"),
        ("votes.csv", r"FILE votes\.csv: text: is not a release in JSON"),
        ("one.json --level 1", r"--level 1\.0: must be"),
        ("one.json --plot picture.xyz", r"--plot picture\.xyz: cannot be written \(Format 'xyz'"),
        ("one.json --plot absent/picture.png", r"--plot .*: cannot be written \(.*No such file"),
        ("groups.json --level 0.5 --plot p.png", r"--level 0\.5: the picture of groups has"),
        ("one.json --mechanism nope", r"--mechanism 'nope': is not an installed mechanism"),
    ],
)
def test_wrong_options_end_in_one_line_and_exit_code_2(
    saved: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)
    shown = run("show", *options.split(), code=2)
    assert len(shown.splitlines()) == 1
    assert re.search(message, shown), shown


def test_a_release_by_a_mechanism_of_another_package_needs_its_name(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    (tmp_path / "votes.csv").write_text("vote\n" + "a\nb\n" * 10)
    run(
        "release",
        tmp_path / "votes.csv",
        *(
            "--column",
            "vote",
            "--categories",
            "a,b",
            "--size",
            20,
            "--nulls",
            "a",
            "--unknown",
            "a",
        ),
        *("--mechanism", "hamming_exponential", "--epsilon", 1, "--output", path),
    )
    assert ob.Release.from_json(path.read_bytes()).mechanism.name == "hamming_exponential"
    assert "HammingExponential" in run("show", path, "--mechanism", "hamming_exponential")
