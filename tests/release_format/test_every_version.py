"""What each version wrote (`python -m tests.helpers.documents`, once) is read and says the same."""

import ast
import copy
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, reduce
from importlib import import_module
from operator import getitem
from pathlib import Path
from typing import Any

import msgspec
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.registry import BUILT_IN
from opendp_bayes.unlisted.thresholds import LAWS
from opendp_bayes_office.report.report_document import Report
from tests.helpers import documents
from tests.helpers.documents import FOLDER, SAID, as_json, read, says
from tests.helpers.sources import ROOT, SOURCES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERSIONS = sorted(path.name for path in FOLDER.iterdir() if re.match(r"\d", path.name))
FILES = [
    pytest.param(path, id=f"{version}/{path.name}")
    for version in VERSIONS
    for path in sorted((FOLDER / version).iterdir())
    if path.name != SAID
]
NEWEST = FOLDER / ob.__version__
#: What follows from a document may be computed better by a later version.
WITHIN = 0.02


def agree(now: Any, then: Any, *, estimated: bool = False) -> bool:
    """Whether it is what was said then, estimates `WITHIN`; what is new is no difference."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(
            name in now and agree(now[name], one, estimated=estimated or name == "estimates")
            for name, one in then.items()
        )
    if isinstance(then, list):
        same = isinstance(now, list) and len(now) == len(then)
        return same and all(
            agree(*pair, estimated=estimated) for pair in zip(now, then, strict=False)
        )
    if isinstance(then, float):
        return now == pytest.approx(then, abs=WITHIN if estimated else 0, rel=1e-12)
    return type(now) is type(then) and now == then


def test_every_released_version_has_a_folder() -> None:
    headings = re.findall(r"^## (\d[\w.]*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0] == ob.__version__
    assert sorted(headings) == VERSIONS, "run python -m tests.helpers.documents"


@cache
def written_now() -> dict[str, Any]:
    """Of each kind, what this version writes."""
    return documents.objects()


@pytest.mark.parametrize("path", FILES)
def test_a_document_says_what_it_said(path: Path) -> None:
    then = json.loads((path.parent / SAID).read_text("utf-8"))[path.name]
    assert agree(as_json(says(read(path))), then)


@pytest.mark.parametrize("path", [one for one in FILES if one.values[0].suffix == ".json"])
def test_a_document_is_written_as_it_was(path: Path) -> None:
    """A later version may add fields, also to an older document."""
    found, text = read(path), path.read_text("utf-8")
    if hasattr(found, "to_json"):
        assert agree(json.loads(found.to_json()), json.loads(text))


# --- Every kind has a file
def classes_with(method: str) -> set[str]:
    """Names of our classes that define a method, and are no protocols of others."""
    texts = (path.read_text("utf-8") for path in SOURCES)
    return {
        node.name
        for text in texts
        if f"def {method}(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and "Protocol" not in map(ast.unparse, node.bases)
        and any(isinstance(of, ast.FunctionDef) and of.name == method for of in node.body)
    }


def loaded(path: Path) -> Any:
    """A file of the corpus as plain values."""
    text = path.read_text("utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def tables(value: Any) -> Iterator[dict[str, Any]]:
    """All tables in a document."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from tables(one)


WRITTEN = [
    table for path in NEWEST.iterdir() if path.name != SAID for table in tables(loaded(path))
]


#: Packages whose documents are kept.
OURS = {"opendp_bayes", "opendp_bayes_office"}


def structs() -> Iterator[type[msgspec.Struct]]:
    """The tables of documents, each of which refuses fields that it does not know."""
    for path in SOURCES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = parts[2:] if parts[0] == "plugins" else parts
        if module[0] in OURS and "msgspec.Struct" in path.read_text("utf-8"):
            import_module(".".join(module))
    waiting = list(msgspec.Struct.__subclasses__())
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        ours = one.__module__.partition(".")[0] in OURS and not one.__subclasses__()
        if ours and one.__struct_config__.forbid_unknown_fields:
            yield one


def not_written(fields: tuple[str, ...], written: list[dict[str, Any]]) -> set[str]:
    """Fields that no table with these fields alone has."""
    known = set(fields)
    return known - {name for one in written if set(one) <= known for name in one}


def test_every_kind_field_mechanism_and_law_has_a_file() -> None:
    kinds = classes_with("to_json")
    assert {"Release", "Survey"} <= kinds
    assert classes_with("from_json") <= kinds
    made = {type(one).__name__: name for name, one in written_now().items()}
    assert set(made) == kinds, "add the kind to objects() in tests/helpers/documents.py"
    assert [name for name in written_now() if not (NEWEST / f"{name}.json").is_file()] == []
    names = {one["name"] for one in WRITTEN if "name" in one}
    assert {kind.name for kind in BUILT_IN} <= names
    assert set(LAWS) <= names
    # A catalogue of sentences goes with the pages of one version.
    found = [one for one in structs() if one.__name__ != "Language"]
    assert {"ReleaseDocument", "Specification", "OwnerFile"} <= {one.__name__ for one in found}
    missing = {
        one.__name__: names
        for one in found
        if (names := not_written(one.__struct_fields__, WRITTEN))
    }
    assert missing == {}


# --- Negative controls
def test_what_is_said_otherwise_and_what_is_not_read_is_noticed() -> None:
    """Negative control."""
    then = {"noisy_counts": [1, 2], "estimates": [[0.25, 0.75]], "delta": 1e-7, "kept": None}
    assert agree({**then, "estimates": [[0.26, 0.74]], "new": 1}, then)
    changes = (
        {"noisy_counts": [1, 3]},
        {"noisy_counts": [1]},
        {"noisy_counts": [True, 2]},
        {"kept": ""},
    )
    for change in (*changes, {"estimates": [[0.28, 0.72]]}, {"delta": 1.1e-7}):
        assert not agree({**then, **change}, then), change
    assert not agree({}, then)
    assert not_written(("epsilon", "rho"), [{"epsilon": 1.0}]) == {"rho"}
    assert not_written(("epsilon", "rho"), [{"epsilon": 1.0, "rho": 1.0, "size": 3}]) == {
        "epsilon",
        "rho",
    }
    assert classes_with("to_json_of_no_class") == set()
    text = written_now()["one_column"].to_json()

    def forgetful(given: str) -> Any:
        return ob.Release.from_json(json.dumps({**json.loads(given), "unknown": [True]}))

    assert list(unread(text, forgetful)) == [("unknown", 0)]


# --- Every field is read, and written as it was read
READERS = {
    "opendp-bayes release": ob.Release.from_json,
    "opendp-bayes discovery": ob.DiscoveredRelease.from_json,
    "opendp-bayes survey": ob.Survey.from_json,
    "opendp-bayes report": Report.from_json,
}
#: The parts of a distance, of which each is lowered to what the others imply.
OF_A_DISTANCE = {"d_in", "squared", "largest"}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The steps to every value of a document that is no table and no list."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for step, one in inner:
        if isinstance(one, dict | list):
            yield from leaves(one, (*path, step))
        else:
            yield (*path, step), one


def others(value: Any) -> list[Any]:
    """Values of the same kind that are not this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value * 1.25 or 0.25, value / 2 or 0.5]
    return [f"{value}x"] if isinstance(value, str) else [0.5, "x", 3]


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at the end of these steps."""
    found = copy.deepcopy(document)
    reduce(getitem, path[:-1], found)[path[-1]] = value
    return found


def accepted(reader: Callable[[str], Any], document: Any) -> Any:
    """What a document says; None where it is refused."""
    try:
        return reader(json.dumps(document))
    except ValueError:
        return None


def unread(text: str, reader: Callable[[str], Any]) -> Iterator[tuple[Any, ...]]:
    """The fields that may be changed without another document being read, or written again."""
    document, original = json.loads(text), reader(text)
    for path, value in leaves(document):
        for other in others(value):
            again = accepted(reader, changed(document, path, other))
            if again is None or OF_A_DISTANCE & set(path):
                continue
            if again == original or reader(again.to_json()) != again:
                yield path


@pytest.mark.parametrize("name", sorted(of.stem for of in NEWEST.glob("*.json")))
def test_every_field_of_a_document_is_read_and_written(name: str) -> None:
    text = written_now()[name].to_json() if name in written_now() else "{}"
    reader = READERS.get(json.loads(text).get("format", ""))
    if reader is not None:
        assert list(unread(text, reader)) == []
