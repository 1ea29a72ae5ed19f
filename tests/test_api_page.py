"""The reference names what can be imported, and all of it."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes_research
from opendp_bayes import extend
from opendp_bayes.extend import framework
from tests.helpers.doors import PUBLIC

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
#: From the place of each entry to the members that the page shows.
ENTRIES = {
    path: re.findall(r"\w+", members)
    for path, members in re.findall(
        r"^::: (\S+)\n(?:    options:\n|      (?!members)\S.*\n)*(?:      members: \[([^]]*)\]\n)?",
        PAGE,
        re.MULTILINE,
    )
}
#: From where the names in some sections are imported, those of all others from the package or one
#: of its doors.
DOORS = {
    "Research": opendp_bayes_research,
    "Tools for mechanisms": extend,
    "Tools for measurements": framework,
}
#: Parts of the package whose values are what users hold.
HELD = (
    *("results", "release_format", "inference", "accounting", "planning"),
    *("surveys.levels", "surveys.survey", "surveys.survey_tables"),
    "unlisted.discovered",
)
#: Members that are public for other modules only.
BETWEEN_MODULES = {"source", "has_posterior", "row", "of", "overview", "unordered_values"}


def found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def missing(names: set[str], page: str) -> set[str]:
    """Names without entry or mention on the page; of `make_x`, `then_x` need none."""
    shown = {path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    shown |= set(re.findall(r"`(\w+)`", page))
    shown |= {name.replace("make_", "then_", 1) for name in shown}
    return names - shown


def misplaced(page: str) -> set[str]:
    """Entries that are not imported from where the page says."""
    wrong = set()
    for section in page.split("\n## "):
        door = DOORS.get(section.partition("\n")[0])
        public = set(PUBLIC if door is None else door.__all__)
        for path, options in re.findall(r"^::: (\S+)\n((?:    .*\n)*)", section, re.MULTILINE):
            in_full = "show_root_full_path: true" in options
            if in_full == (path.rpartition(".")[2] in public):
                wrong.add(path)
    return wrong


def unsaid(path: str, members: list[str]) -> set[str]:
    """Public members of a class that its entry neither lists nor has in its docstring."""
    kind = found(path)
    own = [base for base in kind.__mro__ if base.__module__.startswith("opendp_bayes")]
    public = {name for base in own for name in (*vars(base), *inspect.get_annotations(base))}
    listed = {*(members or vars(kind)), *BETWEEN_MODULES}
    entries = re.findall(r"^( *)(\w[\w, ]*?)(?: : .*)?\n\1    \S", kind.__doc__, re.MULTILINE)
    said = set(re.findall(r"\w+", " ".join(names for _, names in entries)))
    return {name for name in public if not name.startswith("_")} - listed - said


def test_entries_and_imports_are_on_the_page_with_all_members() -> None:
    assert len(ENTRIES) == PAGE.count("\n::: ")
    for path, members in ENTRIES.items():
        entry = found(path)
        fields = getattr(entry, "__dataclass_fields__", {})
        for member in members:
            assert hasattr(entry, member) or member in fields, f"{path}.{member}"
    assert not missing(set(PUBLIC), PAGE)
    assert not misplaced(PAGE)
    rooms = ("opendp_bayes_research.", *(f"opendp_bayes.{place}." for place in HELD))
    held = [path for path in ENTRIES if path.startswith(rooms) and inspect.isclass(found(path))]
    assert len(held) > 20
    assert not {path: lacking for path in held if (lacking := unsaid(path, ENTRIES[path]))}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_what_plugins_import_is_on_the_page(door: Any) -> None:
    assert not missing(set(door.__all__), PAGE)


def test_notices_what_is_missing() -> None:
    """Negative control, of each way."""
    assert missing(set(PUBLIC), PAGE.replace("combine.combine", "combine.other")) >= {"combine"}
    pooled = "opendp_bayes.results.pooled_release.Pooled"
    assert misplaced(PAGE.replace(f"::: {pooled}\n", f"::: {pooled}\n\n")) == {pooled}
    in_full = "::: opendp_bayes.planning.plan.plan\n    options:\n      show_root_full_path: true\n"
    assert misplaced(in_full) == {"opendp_bayes.planning.plan.plan"}
    assert "interval" in unsaid(
        "opendp_bayes.inference.answers.posterior.NoiseAwarePosterior", ["mean"]
    )
    with pytest.raises(AttributeError):
        found("opendp_bayes.inference.combine.no_such_name")
