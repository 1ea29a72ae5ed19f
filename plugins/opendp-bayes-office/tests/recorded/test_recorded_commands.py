"""What commands print and write is what was recorded, for files and options of which every two meet
that may.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from opendp_bayes_office.commands.app import app
from opendp_bayes_office.report.specification import Column, Privacy, Result, Specification
from tests.helpers.computed_once import compute_once
from tests.helpers.covering_array import pairs_of
from tests.helpers.recorded import differences, seed_noise
from tests.recorded.command_factors import FACTORS, LEVELS
from tests.recorded.commands import FOLDER, asked, cases, make_quick

CASES = [(room, n) for room in ("commands", "refusals") for n, _ in enumerate(cases(room))]


@pytest.fixture(autouse=True)
def _seeded(
    chains_anew: None, coarse_errors: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    compute_once(monkeypatch, {})
    seed_noise(monkeypatch)
    make_quick(monkeypatch)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("room", "number"), CASES)
def test_what_commands_say_is_what_was_recorded(
    room: str, number: int, pytestconfig: pytest.Config
) -> None:
    case = cases(room)[number]
    assert not differences(FOLDER / f"{room}.json", str(number), asked(case), pytestconfig)


def test_every_two_features_that_may_meet_are_asked_together() -> None:
    covered = {pair for case in cases("commands") for pair in pairs_of(case)}
    missing = [pair for pair in FACTORS.pairs() if pair not in covered]
    assert not [pair for pair in missing if FACTORS.completed(dict(pair), lambda *_: 0)]
    assert len(covered) > 9800


#: Options and fields by the factor that has them, where it has another name.
_ELSEWHERE = {
    "asked": "column discover by merge pooled joint columns results",
    "written": "data specification question",
    "budget": "epsilon rho delta privacy",
    "unit": "size contributions identifier rows_per_identifier unit",
    "guess": "guess_size",
    "output": "output synthetic copies",
    "foreseen": "dry_run",
    "ledger": "dataset",
    "texts": "title text",
}
#: What no case has.
_NOT_ASKED = {"schema", "plot"}


def test_every_option_and_every_field_is_a_factor() -> None:
    commands: Any = get_command(app)
    names = {of.name for name, command in commands.commands.items() for of in command.params}
    for part in (Specification, Privacy, Column, Result):
        names |= set(part.__struct_fields__)
    names -= {name for of in _ELSEWHERE.values() for name in of.split()}
    assert names - LEVELS.keys() == _NOT_ASKED
