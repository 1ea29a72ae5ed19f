"""The command line, in process through typer's runner and once as the installed script."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes_office.commands import main as cli
from opendp_bayes_office.commands.app import app
from tests.helpers.command_line import run

VOTES = ["a"] * 30 + ["b"] * 20 + ["c"] * 10 + [None] * 4 + ["zz"] * 6
# Noise of scale 2e-4 at most differs from 0 with probability below e^-4999.
EXACT = ("--epsilon", "10000")
COLUMN = ("--column", "vote", "--categories", "a,b,c")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the same 70 rows in every format."""
    directory = tmp_path_factory.mktemp("files")
    codes = {"a": 1, "b": 2, "c": 3, None: None, "zz": 9}
    columns = {"vote": VOTES, "code": [codes[vote] for vote in VOTES], "weight": [0.5] * len(VOTES)}
    won = [None if vote is None else vote == "a" for vote in VOTES]
    frame = pl.DataFrame(columns | {"won": won}, schema_overrides={"code": pl.UInt8})
    frame.write_csv(directory / "votes.csv")
    typed = frame.with_columns(
        pl.col("vote").cast(pl.Enum(["a", "b", "c", "zz"])).alias("enum"),
        pl.col("vote").cast(pl.Categorical).alias("categorical"),
    )
    typed.write_parquet(directory / "votes.parquet")
    for extension in ("ipc", "arrow", "feather"):
        typed.write_ipc(directory / f"votes.{extension}")
    return directory


ONE_OF_TWO = "privacy: must have epsilon or rho"
PERSONS = r"'code' is the identifier; count another"
ABSENT = "column 'absent' is not in votes.parquet"
AB = "vote --categories a,b --epsilon 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("vote --categories a,b", ONE_OF_TWO),
        (f"{AB} --rho 1", ONE_OF_TWO),
        ("vote --categories a, b --epsilon 1", "^opendp-bayes: b: .*put quotes around"),
        ("vote --categories a,b --epsilon -1", r"epsilon=-1\.0: must be a number > 0"),
        ("vote --categories a,b --rho inf", "rho=inf: must be finite"),
        (f"{AB} --delta 1", r"delta=1\.0: must be a number < 1"),
        ("vote --categories a,b --epsilon 1e-30", "asked for at every scale"),
        (f"{AB} --contributions 0", r"contributions=0: .*>= 1"),
        (f"{AB} --prior x", r"--prior x: .*separated by commas"),
        (f"{AB} --prior 0", r"prior=0.0: .*greater than 0"),
        (f"{AB} --prior 1,2", r"prior=\[1.0, 2.0\]: .*must have 3"),
        (f"{AB} --mechanism nope", r"mechanism='nope': .*available: .*laplace_parameters"),
        (f"{AB} --mechanism hellinger_exponential", r"its candidates .*must be public"),
        ("vote --epsilon 1", r"columns.vote.categories: is missing; list all of them"),
        ("vote --categories a --epsilon 1 --unknown DROP", r"categories=\['a'\]: .*at least two"),
        ("vote --categories a,a --epsilon 1", r"must not repeat a label"),
        ("vote --categories a,,b --epsilon 1", r"--categories 'a,,b': .*none of them empty"),
        ("vote --categories a;b --epsilon 1", r"--categories 'a;b': .*separated by commas"),
        (f"{AB} --contributions 5000000000", r"contributions=5000000000: .*<= 2147483647"),
        ("won --categories yes,no --epsilon 1", r"'yes' is not in the Enum"),
        ("weight --categories a,b --epsilon 1", "column 'weight' .* has type Float64"),
        ("ballot --categories a,b --epsilon 1", r"column 'ballot' is not in .*'vote', 'code'"),
        ("enum --size 70 --epsilon 1", r"nulls=None: .*Pass nulls="),
        (f"{AB} --size 70 --nulls n --unknown DROP", "unknown"),
        ("vote --categories A,B --nulls a --epsilon 1", "nulls='a': .*beside 'A', .*Write nulls"),
        (f"{AB} --unknown B", r"unknown='B': .*category beside 'b'"),
        (f"{AB} --nulls drop", r"nulls='drop': .*of that name"),
        ("enum --size 0 --nulls n --epsilon 1", r"size=0: must be .*>= 1"),
        ("enum --epsilon 1 --epsilon 2", r"--epsilon: .*more than once"),
        (f"{AB} --categories b,c", r"--categories: is given more than once"),
        (f"{AB} --column won", r"--column: is given more than once"),
        ("enum --by vote --epsilon 1", r"columns.vote.categories: is missing"),
        ("enum --by vote= --epsilon 1", r"--by vote='': .*separated by commas"),
        ("enum --by enum --epsilon 1", r"by='enum': must name .* no column twice"),
        ("enum --by absent --epsilon 1", ABSENT),
        ("enum --identifier absent --rows-per-identifier 1 --epsilon 1", ABSENT),
        ("enum --identifier weight --rows-per-identifier 1 --epsilon 1", "has type Float64"),
        ("enum --identifier code --epsilon 1", r"rows_per_identifier go together"),
        ("enum --identifier code --rows-per-identifier 0 --epsilon 1", r"identifier=0: .*>= 1"),
        ("code --categories 1 --identifier code --rows-per-identifier 1 --rho 1", PERSONS),
        ("enum --by code=1 --identifier code --rows-per-identifier 1 --rho 1", PERSONS),
        (
            "enum --identifier code --rows-per-identifier 1 --size 70 --epsilon 1",
            r"size: .*with an identifier: .* out",
        ),
        ("enum --separator ; --epsilon 1", r"separator=';': .*CSV, and votes.parquet"),
        ("enum --encoding ascii --epsilon 1", r"encoding='ascii': .*SAS, and votes.par"),
    ],
)
def test_wrong_options_end_in_one_line_and_exit_code_2(files, options, message):
    shown = run("release", files / "votes.parquet", "--column", *options.split(), code=2)
    assert len(shown.splitlines()) == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(shown)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("votes.pdf", "", r"extension '\.pdf'; .*\.csv, .* \.arrow, \.feather, \.ipc"),
        ("votes", "", "has extension ''; must be"),
        ("votes.ods", "", r"has extension '\.ods'; .*Convert the file, a workbook to \.xlsx"),
        ("absent.csv", None, r"absent\.csv: is not a file"),
        ("empty.csv", "", r"cannot be read as CSV"),
        ("semicolons.csv", "vote;town\na;x\n", r"and --separator, which is ','\. "),
        ("spelled.csv", "colour,town\na,x\n", r"which is ','\. .*: --rows-above 1\.$"),
        ("text.parquet", "not one", r"cannot be read as Parquet"),
        ("text.arrow", "not one", r"cannot be read as Arrow"),
    ],
)
def test_wrong_files_end_in_one_line_and_exit_code_2(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    shown = run("release", tmp_path / name, "--column", *AB.split(), code=2)
    assert len(shown.splitlines()) == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(shown)


def test_a_failure_while_reading_does_not_show_its_cause(tmp_path: Path) -> None:
    file = tmp_path / "damaged.parquet"
    pl.DataFrame({"vote": ["a", "b"] * 5000}).write_parquet(file, compression="uncompressed")
    content = bytearray(file.read_bytes())
    content[4:64] = bytes([255]) * 60  # the first page; the footer with the schema stays
    file.write_bytes(content)
    shown = run("release", file, "--column", *AB.split(), code=1)
    assert "the cause is withheld" in shown.lower()
    assert len(shown.splitlines()) == 2, "with that on the rows of no category"


def test_an_unforeseen_failure_does_not_show_its_message(files, monkeypatch):
    def fail(self: SurveyQuery) -> None:
        raise RuntimeError("30 votes for a")

    monkeypatch.setattr(SurveyQuery, "release", fail)
    shown = run("release", files / "votes.csv", "--column", *AB.split(), code=1)
    assert "the release failed; the cause is withheld" in shown
    assert "30" not in shown


def test_options_that_opendp_refuses_are_reported(files, monkeypatch):
    from opendp.mod import OpenDPException

    def refuse(self: SurveyQuery) -> None:
        raise OpenDPException("FailedMap", "budget is\ntoo small")

    monkeypatch.setattr(SurveyQuery, "resolve", refuse)
    shown = run("release", files / "votes.csv", "--column", *AB.split(), code=2)
    assert shown == "opendp-bayes: OpenDP refuses it: budget is too small\n"


def test_demo_shows_where_intervals_know_the_noise_and_ends_with_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("demo")
    for part in ("Clinton", "Strong Democrat", "944", "True counts are never shown"):
        assert part in shown
    assert shown.count("ε = 0.1 for") == 2
    ends = [
        list(map(float, re.findall(r"\d+\.\d+", line)[1:]))
        for line in shown.splitlines()
        if line.count(" to ") == 2
    ]
    ratios = [(upper - lower) / (last - first) for lower, upper, first, last in ends]
    assert len(ratios) == 9
    assert sum(ratio > 1.2 for ratio in ratios) > 6
    assert shown.endswith("opendp-bayes-demo.html: the page of the survey; open it in a browser.\n")
    page = tmp_path / "opendp-bayes-demo.html"
    assert "at most <strong>ε = 0.2</strong>" in page.read_text("utf-8")
    assert run("demo", "--epsilon", 2, "-o", page).count("ε = 2 for") == 2
    assert "at most <strong>ε = 4</strong>" in page.read_text("utf-8")
    run("demo", "--epsilon", 0, code=2)


def test_demo_without_its_data_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    shown = run("demo", code=1)
    assert "needs statsmodels" in shown
    assert "pip install statsmodels" in shown


def test_version_help_and_completion() -> None:
    assert run("--version") == f"opendp-bayes {ob.__version__}\n"
    assert "demo" in run("--help")
    assert "Exit code: 0 " in run("--help")
    words = {"COMP_WORDS": "opendp-bayes rep", "COMP_CWORD": "1"}
    asked = {"_OPENDP_BAYES_COMPLETE": "complete_bash", **words}
    result = CliRunner().invoke(app, [], prog_name="opendp-bayes", env=asked)
    assert result.stdout.split() == ["report"]
    assert "--install-completion" in run("--help")


@pytest.mark.parametrize("command", ["", "init", "release", "report", "show", "plan", "ledger"])
def test_help_names_values_by_words_of_readers(command: str) -> None:
    shown = run(*filter(None, [command]), "--help")
    assert "--help" in shown
    assert re.findall(r"--(\S+) .*<(?!bool)\w+", shown) == []  # which flags have, as typer has it
    if command == "release":
        for name, word in (("epsilon", "NUMBER"), ("nulls", "LABEL"), ("column", "COLUMN")):
            assert re.search(rf"--{name} +{word} ", shown)


@pytest.mark.parametrize(
    "command", ["release", "show", "plan", "init", "report", "run", "ledger", "demo"]
)
def test_the_examples_of_every_command_work_when_pasted(command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    help_text = run(command, "--help")
    assert "Exit code: 0 " in help_text
    block = help_text.split("\n Example")[1].split("╭")[0]
    examples = [line.strip() for line in block.splitlines()[1:] if line.strip()]
    assert examples
    for example in examples:
        if example.startswith("printf"):
            subprocess.run(["sh", "-c", example], check=True)  # noqa: S607
        else:
            program, *arguments = shlex.split(example)
            assert program == "opendp-bayes"
            run(*arguments)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("release votes.csv --column vote --categories a,b --epsilon 0 -o -", 2),
        ("release votes.csv --column vote --categories a,b --epsilon x -o -", 2),
        (f"release absent.csv --column {AB} -o -", 2),
        (f"release votes.csv --column {AB} --size 5 --nulls a --unknown a -o -", 1),
        ("plan --size 9 --prior 1,1 --epsilon 0", 2),
    ],
)
def test_an_error_leaves_standard_output_empty(files, options, code, monkeypatch):
    monkeypatch.chdir(files)
    result = CliRunner().invoke(app, options.split())
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr


@pytest.mark.parametrize("place", ["collect", "serialize"])
def test_ctrl_c_while_opendp_runs_ends_the_command(place, files, monkeypatch):
    """In the callback that counts, and between OpenDP and its callbacks, where it must wait."""
    method = getattr(pl.LazyFrame, place)

    def interrupted(*args: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return method(*args, **options)

    monkeypatch.setattr(pl.LazyFrame, place, interrupted)
    options = ("--column", "vote", "--categories", "a,b,c", "--epsilon", "1")
    said = run("release", files / "votes.csv", *options, code=130)
    assert "Traceback" not in said
    assert "zz" not in said


def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback(monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["opendp_bayes_office.commands.app"], "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


def test_the_installed_script(files: Path) -> None:
    script = shutil.which("opendp-bayes", path=str(Path(sys.executable).parent))
    assert script is not None
    command = [script, "release", "votes.csv", *COLUMN, *EXACT, "-o", "-"]
    result = subprocess.run(
        command, cwd=files, capture_output=True, text=True, timeout=600, check=True
    )
    assert ob.Release.from_json(result.stdout).counts == (30, 20, 10, 6)


def test_a_learned_prior_may_be_smooth(files: Path, tmp_path: Path) -> None:
    kept = tmp_path / "release.json"
    options = ("--column", "vote", "--categories", "a,b,c", "--epsilon", "1", "--ordered")
    shown = run("release", files / "votes.csv", *options, "--output", kept)
    assert "smooth along vote" in shown
    assert "effects of the order" in " ".join(shown.split())
    assert ob.Release.from_json(kept.read_text()).ordered == ("vote",)
    again = run("release", files / "votes.csv", *options, "--prior", "1", code=2)
    assert "ordered=['vote']: goes with a learned prior; leave out prior=1.0" in again


def test_a_single_column_may_be_named_where_its_labels_are_listed(files: Path) -> None:
    """As in the options of `init`, which begin with the column."""
    named = ("--categories", "vote=a,b", "--nulls", "vote=none", "--unknown", "b")
    path = files / "votes.parquet"
    document = run("release", path, "--column", "vote", *named, "--epsilon", 1, "-o", "-")
    assert ob.Release.from_json(document).categories == ("a", "b", "none")
