"""What `make mutants` is told: every place exists, and no privacy code is left out."""

import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[1]
AREAS = tomllib.loads((PROJECT / "tests/mutants/targets.toml").read_text())["area"]
REASONS = tomllib.loads((PROJECT / "tests/mutants/equivalent.toml").read_text())
LISTED = {module for area in AREAS for module in area["modules"]}


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area["name"])
def test_modules_and_tests_are_there(area: dict[str, list[str]]) -> None:
    assert [
        place for place in area["modules"] + area["tests"] if not (PROJECT / place).exists()
    ] == []


@pytest.mark.parametrize("folder", ["accounting", "mechanisms", "samplers"])
def test_nothing_is_left_out(folder: str) -> None:
    found = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "opendp_bayes" / folder).glob("*.py")
        if path.name != "__init__.py"
    }
    assert found - LISTED == set()


def test_reasons_belong_to_modules_that_are_tried() -> None:
    entries = [entry for entries in REASONS.values() for entry in entries]
    assert {entry["module"] for entry in entries} <= LISTED
    assert all(len(entry["reason"]) > 10 for entry in entries)
