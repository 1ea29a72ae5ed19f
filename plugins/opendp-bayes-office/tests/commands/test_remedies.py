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


#: A command without a list of categories, and its budget.
DISCOVERED = [
    f"release votes.csv --column vote {BUDGET}",
    "release votes.csv --column vote --rho 0.5",
]


@pytest.mark.parametrize("command", DISCOVERED)
def test_a_command_without_a_list_says_how_to_discover_one(command: str) -> None:
    code, _, said = ended(command)
    assert code == 2
    remedy = re.search(
        r"or (--discover \S+) in place of --column, with a (delta) such as (1e-8)", said
    )
    assert remedy, said
    asked = f"{command.replace('--column vote', remedy[1])} --{remedy[2]} {remedy[3]}"
    assert isinstance(released(asked), ob.DiscoveredRelease)


@pytest.mark.parametrize("options", ["", " --by town=discover", " --size 400 --nulls x"])
def test_a_list_of_the_word_alone_is_refused(options: str) -> None:
    command = f"release votes.csv --column vote --categories discover {BUDGET}{options}"
    code, _, said = ended(command)
    assert code == 2, "nothing was spent on a category named discover"
    assert "is one category of that name" in said


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
    remedy = re.search(
        r"discover them: (categories) = ('discover') in .* with a delta such as (1e-8)", said
    )
    assert remedy, said
    needed = delta or f"delta = {remedy[3]}"
    discovered = f"{remedy[1]} = {remedy[2]}"
    Path("s.toml").write_text(SPECIFICATION.format(delta=needed, categories=discovered))
    assert isinstance(released("run s.toml votes.csv"), ob.DiscoveredRelease)


def test_a_list_of_the_word_alone_is_refused_in_a_specification_too() -> None:
    Path("s.toml").write_text(
        SPECIFICATION.format(delta="", categories='categories = ["discover"]')
    )
    code, _, said = ended("run s.toml votes.csv")
    assert code == 2
    assert "is one category of that name" in said
