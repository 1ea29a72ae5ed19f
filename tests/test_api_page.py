"""The reference names what can be imported, and all of it."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes import extend
from opendp_bayes.extend import framework

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
#: From the place of each entry to the members that the page shows.
ENTRIES = {
    path: members.split(", ") if members else []
    for path, members in re.findall(
        r"^::: (\S+)\n(?:    options:\n(?:      inherited_members: true\n)?"
        r"      members: \[([^\]]*)\]\n)?",
        PAGE,
        re.MULTILINE,
    )
}
DOORS = (ob, extend, framework)


def found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def missing(names: set[str], page: str) -> set[str]:
    """Public names that the page neither has as an entry nor mentions; of `make_x`, whose entry
    says so, `then_x` need not be.
    """
    shown = {path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    shown |= set(re.findall(r"`(\w+)`", page))
    shown |= {name.replace("make_", "then_", 1) for name in shown}
    return names - shown


def test_every_entry_can_be_imported_and_has_its_members() -> None:
    assert len(ENTRIES) == PAGE.count("\n::: ")
    for path, members in ENTRIES.items():
        entry = found(path)
        fields = getattr(entry, "__dataclass_fields__", {})
        for member in members:
            assert hasattr(entry, member) or member in fields, f"{path}.{member}"


def test_what_users_import_is_on_the_page() -> None:
    assert not missing(set(ob.__all__) - {"papers"}, PAGE)


@pytest.mark.parametrize("door", [extend, framework])
def test_the_page_of_plugins_names_what_they_import(door: Any) -> None:
    pages = PAGE + (Path(__file__).parent.parent / "docs" / "plugins.md").read_text("utf-8")
    assert not {name for name in door.__all__ if not re.search(rf"\b{name}\b", pages)}


def test_notices_what_is_missing() -> None:
    """Negative control, of each way."""
    assert missing(set(ob.__all__), PAGE.replace("combine.combine", "combine.other")) >= {"combine"}
    with pytest.raises(AttributeError):
        found("opendp_bayes.inference.combine.no_such_name")
