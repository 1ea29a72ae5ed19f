"""Where results go, and that a release that was made is not lost."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.results.release import Release
from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes.trusted import cells
from opendp_bayes_office.commands import output
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.files import files
from tests.helpers.command_line import run

RELEASE = ("--column", "vote", "--categories", "a,b", "--epsilon", "1", "--unknown", "DROP")


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, in a working directory of its own."""
    path = tmp_path / "votes.csv"
    path.write_text("vote\n" + "a\nb\n" * 10)
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with every release that is made."""
    made: list[None] = []
    release = SurveyQuery.release

    def watched(self: SurveyQuery) -> Any:
        made.append(None)
        return release(self)

    monkeypatch.setattr(SurveyQuery, "release", watched)
    return made


def rescued(message: str) -> Release:
    """The release in the file that the message names, or in the message."""
    name = re.search(r"it is in (\S+), and `opendp-bayes show` prints it\.", message)
    text = re.search(r"it could not be written, so it is here: (\{.*\})", message)
    assert name or text, message
    return Release.from_json(Path(name[1]).read_bytes() if name else text[1])


def process(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "opendp_bayes_office", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=600, **options)


def test_a_release_is_written_to_a_file_that_is_there_whole_and_printed(votes: Path) -> None:
    shown = run("release", votes, *RELEASE, "--output", "vote.json")
    release = Release.from_json(Path("vote.json").read_bytes())
    assert release.categories == ("a", "b")
    assert "Category" in shown
    assert sorted(os.listdir()) == ["vote.json", "votes.csv"], "nothing else is left"
    mask = os.umask(0)
    os.umask(mask)
    assert Path("vote.json").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("json", [pytest.param((), marks=pytest.mark.slow), ("-o", "-")])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_full_disk_gives_a_message_and_an_exit_code_and_the_release_is_kept(votes, json):
    with open("/dev/full", "w") as full:
        ended = process("release", str(votes), *RELEASE, *json, stdout=full)
    assert ended.returncode == output.NOT_WRITTEN == 3
    _, first, second = ended.stderr.splitlines()
    assert first == "opendp-bayes: standard output: cannot be written (No space left on device)."
    assert second.startswith("opendp-bayes: the release was made and has used its budget")
    assert rescued(second).categories == ("a", "b")


def into_a_closed_pipe(*asked: str) -> Any:
    reader, writer = os.pipe()
    os.close(reader)
    ended = process(*asked, stdout=writer)
    os.close(writer)
    return ended


def test_a_closed_pipe_too(votes: Path) -> None:
    ended = into_a_closed_pipe("release", str(votes), *RELEASE)
    assert ended.returncode == 3
    assert "standard output: cannot be written (Broken pipe)" in ended.stderr
    assert rescued(ended.stderr).categories == ("a", "b")


def test_with_output_the_release_is_in_that_file(votes: Path) -> None:
    ended = into_a_closed_pipe("release", str(votes), *RELEASE, "-o", "vote.json")
    assert ended.returncode == 3
    assert len(ended.stderr.splitlines()) == 3, "also of rows of no category, and where it is"
    assert Release.from_json(Path("vote.json").read_bytes()).categories == ("a", "b")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX closes file descriptors so")
def test_a_closed_standard_output_is_refused_before_data_are_read(votes: Path) -> None:
    ended = process("release", str(votes), *RELEASE, preexec_fn=lambda: os.close(1))
    assert ended.returncode == 1
    assert "standard output is closed; open it" in ended.stderr


def test_a_file_that_exists_is_not_replaced(votes: Path, counted: list[None]) -> None:
    Path("vote.json").write_text("paid for")
    message = run("release", votes, *RELEASE, "-o", "vote.json", code=2)
    assert "--output vote.json: exists already" in message
    assert Path("vote.json").read_text() == "paid for"
    assert not counted


def test_no_name_is_left_by_a_process_that_is_killed_and_a_file_made_meanwhile_stays(
    votes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = SurveyQuery.release

    def slow(self: SurveyQuery) -> Any:
        Path("vote.json").touch(exist_ok=False)
        return release(self)

    monkeypatch.setattr(SurveyQuery, "release", slow)
    message = run("release", votes, *RELEASE, "-o", "vote.json", code=3)
    assert "vote.json: cannot be written (File exists)" in message
    assert rescued(message).categories == ("a", "b")
    assert Path("vote.json").read_bytes() == b""


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("absent/vote.json", "cannot be written (No such file or directory); name another file."),
        ("votes.csv/vote.json", "cannot be written (Not a directory); name another file."),
        (".", "exists already"),
        (f"{'x' * 300}.json", "cannot be written (File name too long); name another file."),
    ],
)
def test_a_place_that_cannot_be_written_to_is_found_before_data_are_read(
    votes: Path, counted: list[None], place: str, problem: str
) -> None:
    message = run("release", votes, *RELEASE, "-o", place, code=2)
    assert f"--output {place}: {problem}" in message
    assert not counted


def test_the_file_is_no_more_than_a_name_until_it_is_whole(votes, monkeypatch):
    """A disk that is full in the middle of the file leaves none, and the release is shown."""

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output.os, "fsync", full)
    message = run("release", votes, *RELEASE, "-o", "vote.json", code=3)
    assert "vote.json: cannot be written (No space left on device)" in message
    assert rescued(message).categories == ("a", "b")
    assert os.listdir() == ["votes.csv"]


def test_a_failed_release_leaves_no_file(votes: Path) -> None:
    wrong = ("--size", 7, "--nulls", "a", "--unknown", "a")
    run("release", votes, *RELEASE[:-2], *wrong, "-o", "vote.json", code=1)
    assert os.listdir() == ["votes.csv"]


def interrupt(*_: object, **__: object) -> None:
    signal.raise_signal(signal.SIGINT)


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("a mistake of ours")


def test_ctrl_c_while_the_posterior_is_computed_keeps_the_release(votes, monkeypatch):
    monkeypatch.setattr(Release, "sheet", interrupt)
    assert rescued(run("release", votes, *RELEASE, code=130)).categories == ("a", "b")


@pytest.mark.parametrize("place", [(files.Source, "complete"), (cells, "collected")])
@pytest.mark.parametrize("command", ["release", "report"])
def test_ctrl_c_while_data_are_read_says_what_was_spent(votes, monkeypatch, place, command):
    asked: tuple[object, ...] = (*RELEASE, "--ledger", "b")
    if command == "report":
        Path("s.toml").write_text(
            'title = "t"\n[privacy]\nepsilon = 1.0\n[columns.vote]\ncategories = ["a", "b"]\n'
            '[[results]]\ncolumn = "vote"\n'
        )
    run("ledger", "b", "--epsilon", 3)
    monkeypatch.setattr(*place, interrupt)
    if command == "report":
        message = run("report", "s.toml", votes, "--ledger", "b", code=130)
    else:
        message = run("release", votes, *asked, code=130)
    assert "opendp-bayes: data may have been read, so this counts as spent: ε = 1." in message
    assert "opendp-bayes: stopped; nothing was released." in message
    assert not list(Path.cwd().glob("*.json"))
    assert "ε = 2 is left" in run("ledger", "b")


def test_ctrl_c_right_after_the_release_keeps_it(votes, monkeypatch):
    to_json = Release.to_json

    def interrupted(self: Release) -> str:
        signal.raise_signal(signal.SIGINT)
        return to_json(self)

    monkeypatch.setattr(Release, "to_json", interrupted)
    message = run("release", votes, *RELEASE, code=130)
    assert rescued(message).categories == ("a", "b")


def test_a_mistake_of_ours_keeps_the_release(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Release, "sheet", fail)
    with pytest.raises(AssertionError):  # `run` wants no exception but an exit
        run("release", votes, *RELEASE, code=1)
    (kept,) = Path.cwd().glob("*.json")
    assert Release.from_json(kept.read_bytes()).categories == ("a", "b")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_version_that_cannot_be_printed_ends_with_a_message() -> None:
    with open("/dev/full", "w") as full:
        ended = process("--version", stdout=full)
    message = "opendp-bayes: standard output: cannot be written (No space left on device).\n"
    assert (ended.returncode, ended.stderr) == (3, message)
    reader, writer = os.pipe()
    os.close(reader)
    ended = process("--version", stdout=writer)
    os.close(writer)
    message = "opendp-bayes: standard output: cannot be written (Broken pipe).\n"
    assert (ended.returncode, ended.stderr) == (3, message)


@pytest.mark.parametrize("asked", [["--help"], ["plan", "--help"], []])
def test_help_at_a_closed_pipe_ends_without_a_word(asked: list[str]) -> None:
    ended = into_a_closed_pipe(*asked)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_help_that_cannot_be_printed_ends_with_a_message() -> None:
    with open("/dev/full", "w") as full:
        ended = process("plan", "--help", stdout=full)
    assert ended.returncode == 3
    assert "No space left on device" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("plan --prior 1,1 --epsilon abc", "--epsilon abc: Input should be a valid number"),
        ("plan --prior 1,1 --size 1.5", "--size 1.5: Input should be a valid integer"),
        ("plan --prior 1,1 --contributions 0", "--contributions 0: Input should be greater than"),
        ("report", "SPEC.toml: is missing"),
        ("plan", "--prior: is missing"),
        ("plan --prior", "Option '--prior' requires an argument"),
        ("plan --pior 1,1", "No such option: --pior ("),
        ("polls", "No such command 'polls'"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_refused_in_a_line(asked: str, problem: str) -> None:
    message = run(*asked.split(), code=2)
    assert message.startswith(f"opendp-bayes: {problem}")
    assert len(message.splitlines()) == 1
    assert "; see `opendp-bayes" in message


COMMANDS = ("init", "release", "run", "report", "show", "plan", "ledger", "demo")
LARGE = ("numpy", "scipy", "polars", "opendp", "pandas", "sklearn")


def loaded_by(*asked: str) -> "dict[str, list[str]]":
    """The large packages that are loaded once a new process has answered each of `asked`."""
    code = (
        "import json, sys; from opendp_bayes_office.commands.main import main\n"
        "loaded = {}\n"
        f"for asked in {asked!r}:\n"
        "    sys.argv = ['opendp-bayes', *asked.split()]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert not ended.code, asked\n"
        f"    loaded[asked] = [name for name in {LARGE!r} if name in sys.modules]\n"
        "print(json.dumps(loaded))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    return json.loads(ended.stdout.splitlines()[-1])


def test_help_and_releases_wait_for_no_package_that_they_do_not_need(votes: Path) -> None:
    """OpenDP's own prelude would load pandas and scikit-learn."""
    asked = ["--version", "--help", *map("{} --help".format, COMMANDS)]
    assert loaded_by(*asked) == {arguments: [] for arguments in asked}
    asked = " ".join(["release", str(votes), *RELEASE])
    assert loaded_by(asked) == {asked: ["numpy", "scipy", "polars", "opendp"]}
    ended = process("--version", stdout=subprocess.PIPE)
    assert ended.stdout == f"opendp-bayes {ob.__version__}\n"
    assert ended.stderr == ""


def test_without_output_a_release_is_kept_beside_the_data_and_its_name_is_printed(
    votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for name in ("votes-vote.json", "votes-vote-2.json", "votes-vote-3.json"):
        shown = run("release", votes, *RELEASE)
        kept = votes.with_name(name)
        assert f"{kept} keeps the release" in "".join(shown.split("\n"))
        assert Release.from_json(kept.read_bytes()).categories == ("a", "b")
        assert run("show", kept).rstrip() in shown
    assert not list(elsewhere.iterdir())


def test_without_output_a_release_of_standard_input_is_kept_in_the_working_directory(votes):
    asked = ["release", "-", *map(str, RELEASE)]
    result = CliRunner().invoke(app, asked, input=votes.read_bytes())
    assert result.exit_code == 0, result.output
    assert Release.from_json(Path("vote.json").read_bytes()).categories == ("a", "b")


def test_names_of_kept_releases_and_printed_ones_are_kept_nowhere(votes: Path) -> None:
    names = {"../a/b": "votes-a-b.json", "a × b": "votes-a-b.json", "***": "votes-release.json"}
    for name, expected in (names | {"x" * 300: f"votes-{'x' * 60}.json"}).items():
        assert output.beside(votes, name) == votes.with_name(expected)
    run("release", votes, *RELEASE, "-o", "-")
    assert os.listdir() == ["votes.csv"]
