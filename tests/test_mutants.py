"""What `make mutants` is told: every place exists, and no privacy code is left out."""

import re
import sys
from pathlib import Path

import pytest

from tests.mutants.still_there import is_still_there

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


#: Folders of which every module is named.
ROOMS = ["accounting", "mechanisms", "queries", "release_format", "samplers", "trusted"]
FILES = "plugins/opendp-bayes-office/opendp_bayes_office/files"
WHOLE = [*(f"opendp_bayes/{room}" for room in ROOMS), FILES]


@pytest.mark.parametrize("folder", WHOLE)
def test_nothing_is_left_out(folder: str) -> None:
    found = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert found - LISTED == set()


def test_tests_and_reasons_are_of_modules_and_lines_that_are_there() -> None:
    """Those in the file that is named after it, wherever it is listed. A reason outlives its
    line unseen, and would then excuse another mistake. Negative control; one mistake makes of a
    line another one.
    """
    run: dict[str, set[str]] = {}
    for area in AREAS:
        for module in area["modules"]:
            run.setdefault(module, set()).update(area["tests"])
    for module, tests in run.items():
        plugin, _, inside = re.sub(r"opendp_bayes_\w+/", "\0", module).rpartition("\0")
        folder, _, name = inside.removeprefix("opendp_bayes/").rpartition("/")
        own = "/".join(part for part in (f"{plugin}tests", folder, f"test_{name}") if part)
        assert own in tests or not (PROJECT / own).exists(), module
    entries = [entry for entries in REASONS.values() for entry in entries]
    assert {entry["module"] for entry in entries} <= LISTED
    assert all(len(entry["reason"]) > 10 for entry in entries)
    entries = [entry for entries in REASONS.values() for entry in entries]
    gone = [entry for entry in entries if not is_still_there(entry["module"], entry["line"])]
    assert gone == []
    for line, there in (("LARGEST_WORK = 9999999999", True), ("LARGEST_TOIL = 9999999999", False)):
        assert is_still_there("opendp_bayes/accounting/losses.py", line) == there
    assert not is_still_there("opendp_bayes/accounting/gone.py", "LARGEST_WORK = 9999999999")
