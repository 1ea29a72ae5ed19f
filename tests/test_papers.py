"""The verdicts on the papers' claims: complete, and their commands print what they say.

`docs/research/papers.csv` has a row for each claim. A command `python SCRIPT ID` prints one line,
which the row's note contains; with several ids a script prints a line for each, in the order given.
"""

import csv
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.by_path import loaded
from tests.helpers.sweeps import slow

ROOT = Path(__file__).parent.parent
with (ROOT / "docs" / "research" / "papers.csv").open(newline="", encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
#: How many claims a document makes, by the letter of their ids; some figures have parts.
NUMBERED = {"N": 41, "I": 23, "T": 61, "P": 43, "S": 30}
FIGURES = {
    *("F1", "F2", "F3a", "F3b", "F3c", "F4", "F5a", "F5b", "F5c", "F5d", "F5e"),
    *("F6a", "F6b", "F6c", "F6d", "F6e", "F6f", "F7", "F8"),
}
#: Claims whose checks take more than a quarter of a second of processor time.
SLOW = {
    *("F3a", "F3c", "F5b", "F6a", "F6b", "F8", "N40", "P28", "P31", "P32", "P33", "P35", "P36"),
    *("P37", "S19", "S25", "S27", "S28", "S29", "T32", "T52", "T56"),
    *("I4", "I12", "I13", "N13", "N14", "N20", "N25", "P40", "S7", "S9", "S10"),
}
CLAIMS = {f"{letter}{i}" for letter, last in NUMBERED.items() for i in range(1, last + 1)} | FIGURES


def test_a_row_for_each_claim_with_a_verdict_and_a_command() -> None:
    found = [row["id"] for row in ROWS]
    assert len(CLAIMS) == 217
    assert len(found) == len(set(found))
    assert set(found) == CLAIMS
    for row in ROWS:
        assert row["verdict"] in {"T", "C", "F", "N"}, row
        assert len(row["note"]) > 20, row
        # Only what cannot be checked has no check.
        assert row["command"] or row["verdict"] == "N", row
        assert re.fullmatch(rf"(python \S+\.py {row['id']})?", row["command"]), row


def commands(slow: bool) -> dict[str, list[str]]:
    """The claims that each script shows."""
    claims = defaultdict(list)
    for row in ROWS:
        if row["command"] and (row["id"] in SLOW) == slow:
            claims[row["command"].split()[1]].append(row["id"])
    return claims


def test_every_command_is_run() -> None:
    run = [
        claim for slow in (False, True) for claims in commands(slow).values() for claim in claims
    ]
    assert sorted(run) == sorted(row["id"] for row in ROWS if row["command"])
    # Nobody is accused without a command.
    assert {row["id"] for row in ROWS if row["verdict"] in {"F", "C"}} <= set(run)
    assert set(run) >= SLOW


QUICK, LONG = commands(slow=False), commands(slow=True)


@pytest.mark.parametrize(("script", "claims"), [*QUICK.items(), *slow(LONG.items())])
def test_commands_print_what_the_notes_say(script: str, claims: list[str]) -> None:
    compare(script, claims)


def compare(script: str, claims: list[str]) -> None:
    lines = printed(script, claims)
    assert len(lines) == len(claims)
    notes = {row["id"]: row["note"] for row in ROWS}
    different = [
        (claim, line) for claim, line in zip(claims, lines, strict=True) if line not in notes[claim]
    ]
    assert not different
    # The negative control: with any other digits a line would not be in its note.
    for claim, line in zip(claims, lines, strict=True):
        other = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), line)
        assert other != line, f"{claim} prints no number"
        assert other not in notes[claim]


def test_help_lists_the_claims_in_order_and_an_unknown_one_is_refused(monkeypatch, capsys):
    script = ROOT / "examples" / "papers" / "checks.py"
    monkeypatch.syspath_prepend(str(script.parent))
    for arguments, code in ((["--help"], 0), (["N1", "N999"], 2)):
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        assert ended.value.code == code
    said = capsys.readouterr()
    assert "no check of N999; there are " in said.err
    listed = re.findall(r"\b[A-Z]\d+[a-f]?\b", said.out.partition("Claims:")[2])
    assert sorted(listed) == sorted(row["id"] for row in ROWS if row["command"])
    places = [
        listed.index(claim) for claim in ("F3a", "F3b", "F8", "I2", "I10", "N9", "N10", "P43")
    ]
    assert places == sorted(places)


def printed(script: str, claims: list[str]) -> list[str]:
    command = [sys.executable, "-X", "utf8", script, *claims]
    output: Any = {"capture_output": True, "encoding": "utf-8", "timeout": 600, "check": False}
    result = subprocess.run(command, cwd=ROOT, **output)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_the_pages_show_these_verdicts() -> None:
    page = loaded(ROOT / "examples" / "papers" / "page.py")
    texts = [path.read_text(encoding="utf-8") for path in page.PAGES]
    assert [page.filled(text) for text in texts] == texts, "run python examples/papers/page.py"
    shown = re.findall(r"^\| ([NITFPS]\d+[a-f]?) \| ([CFN]) \|", "\n".join(texts), re.MULTILINE)
    named = re.findall(r"^True as stated: ([^.]+)\.", "\n".join(texts), re.MULTILINE)
    true = [(claim, "T") for line in named for claim in line.replace("\n", " ").split(", ")]
    assert sorted(shown + true) == sorted((row["id"], row["verdict"]) for row in ROWS)
