"""Slices and plugins use the core's private names by their `door.txt`; public ones need none."""

import ast
from collections.abc import Iterator

import pytest

import opendp_bayes as ob
from opendp_bayes.extend import framework
from tests.helpers.doors import PUBLIC, names_of
from tests.helpers.sources import ROOT

#: The folders of slices, and of plugins that have a door, and how many names it has.
DOORS = {"opendp_bayes/surveys": 57, "opendp_bayes/unlisted": 34}
DOORS |= {"opendp_bayes/unlisted/trusted": 14}
DOORS |= {"plugins/opendp-bayes-office": 17, "plugins/opendp-bayes-research": 18}
#: Checks, messages, rounding, labels and types.
SHARED = {f"opendp_bayes.mathematics.{of}" for of in ("rounding", "telling", "validation")}
SHARED |= {"opendp_bayes.release_format.data", "opendp_bayes.release_format.labels"}
#: What the reference has an entry of.
REFERENCE = (ROOT / "docs" / "api.md").read_text("utf-8").splitlines()
DOCUMENTED = {line.rpartition(".")[2] for line in REFERENCE if line.startswith("::: ")}
OPEN = {*PUBLIC, *ob._MODULES, *names_of(ob.extend), *names_of(framework), *DOCUMENTED}


def names(text: str) -> Iterator[str]:
    """The private names of the core that a module imports, by their modules."""
    for node in ast.walk(ast.parse(text)):
        module = str(node.module) if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, ast.ImportFrom) and module.partition(".")[0] == "opendp_bayes":
            private = [name.name for name in node.names if name.name not in OPEN]
            yield from (f"{module} {name}" for name in private if module not in SHARED)


def used(folder: str) -> list[str]:
    """Names that a slice's or a plugin's modules use of others, but for trusted modules."""
    modules = [
        path
        for path in (ROOT / folder).rglob("*.py")
        if not {"tests", "trusted"} & set(path.relative_to(ROOT / folder).parts)
    ]
    own = folder.replace("/", ".").removesuffix(".trusted")
    found = {name for path in modules for name in names(path.read_text("utf-8"))}
    return sorted(name for name in found if not name.startswith((f"{own}.", f"{own} ")))


@pytest.mark.parametrize("folder", DOORS)
def test_doors_have_the_names_that_are_used_and_become_no_wider(folder: str) -> None:
    assert used(folder) == (ROOT / folder / "door.txt").read_text("utf-8").splitlines()
    assert len(used(folder)) == DOORS[folder], "set the number to what it is now, if that is less"


def test_slices_use_the_trusted_room_alone_and_no_other_slice() -> None:
    """Negative control."""
    assert {name.split(".")[1] for name in used("opendp_bayes/unlisted/trusted")} == {"trusted"}
    for one, other in (("surveys", "unlisted"), ("unlisted", "surveys")):
        assert not [name for name in used(f"opendp_bayes/{one}") if f"bayes.{other}" in name]
    line = "from opendp_bayes.trusted.ledger import Ledger, read_accounts"
    assert list(names(line)) == ["opendp_bayes.trusted.ledger read_accounts"]
    assert list(names("from opendp_bayes.mathematics.telling import told")) == []
    assert list(names("def f():\n    from opendp_bayes.display import terminal")) == [
        "opendp_bayes.display terminal"
    ]
