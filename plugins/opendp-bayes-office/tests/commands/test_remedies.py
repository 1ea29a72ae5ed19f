"""What a message tells to write is written, and answers."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.results.reader import result_from_json
from opendp_bayes_office.commands.app import app

DATA = "vote,town\n" + "yes,a\nno,b\n" * 200
BUDGET = "--epsilon 1"


@pytest.fixture(autouse=True)
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(DATA)


def ended(command: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, shlex.split(command))
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def released(command: str) -> object:
    code, shown, said = ended(f"{command} -o -")
    assert code == 0, said
    return result_from_json(shown)


#: A command, what its message says to leave out, and what to write instead.
DISCOVERED = [
    (f"release votes.csv --column vote {BUDGET}", "--column vote"),
    (f"release votes.csv --column vote {BUDGET} --categories discover", "--column vote"),
    ("release votes.csv --column vote --rho 0.5", "--column vote"),
]


@pytest.mark.parametrize(("command", "instead_of"), DISCOVERED)
def test_a_command_without_a_list_says_how_to_discover_one(command: str, instead_of: str) -> None:
    code, _, said = ended(command)
    assert code == 2
    remedy = re.search(r"write (--discover .*?) in place of", said)
    assert remedy, said
    asked = command.replace(instead_of, remedy[1]).replace("--categories discover", "")
    assert isinstance(released(asked), ob.DiscoveredRelease)


def test_where_a_delta_is_there_none_is_asked_for() -> None:
    _, _, said = ended(f"release votes.csv --column vote {BUDGET} --delta 1e-6")
    assert "write --discover vote in place of --column vote." in said
    asked = f"release votes.csv --discover vote {BUDGET} --delta 1e-6"
    assert isinstance(released(asked), ob.DiscoveredRelease)


NOT_DISCOVERED = [
    "--column vote --categories yes,no --by town",
    "--column vote --categories yes,no --by town=discover",
    "--column vote --column town --categories vote=yes,no",
    "--column vote --column town --categories vote=yes,no --categories town=discover",
    "--column vote --size 400 --nulls x",
    "--column vote --size 400 --nulls x --categories discover",
]


@pytest.mark.parametrize("options", NOT_DISCOVERED)
def test_where_nothing_can_be_discovered_nobody_says_so(options: str) -> None:
    code, _, said = ended(f"release votes.csv {options} {BUDGET}")
    assert code == 2, "nothing was spent on a category or group named discover"
    assert "ist" in said, "a list is asked for"
    assert "--discover" not in said


SPECIFICATION = """\
title = "t"
[privacy]
epsilon = 1.0
{delta}
[columns.vote]
{categories}
[[results]]
column = "vote"
"""


@pytest.mark.parametrize("delta", ["", "delta = 1e-6"])
def test_a_specification_without_a_list_says_how_to_discover_one(delta: str) -> None:
    text = SPECIFICATION.format(delta=delta, categories="")
    Path("s.toml").write_text(text)
    _, _, said = ended("run s.toml votes.csv")
    remedy = re.search(r"write (categories = 'discover')(?:; that needs delta .*? (1e-8))?", said)
    assert remedy, said
    assert (remedy[2] is None) == bool(delta)
    needed = delta or f"delta = {remedy[2]}"
    Path("s.toml").write_text(SPECIFICATION.format(delta=needed, categories=remedy[1]))
    assert isinstance(released("run s.toml votes.csv"), ob.DiscoveredRelease)


def test_a_list_of_the_word_alone_is_refused_in_a_specification_too() -> None:
    Path("s.toml").write_text(
        SPECIFICATION.format(delta="", categories='categories = ["discover"]')
    )
    code, _, said = ended("run s.toml votes.csv")
    assert code == 2
    assert "is one category of that name" in said
