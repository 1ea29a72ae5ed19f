"""Public functions describe each of their arguments, in lists that hold together on the page."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tests.helpers.sources import PACKAGES, SOURCES

_ENTRY = re.compile(r"^(\S.*?) : ", re.MULTILINE)
#: Names whose type is not known.
_NAMES = re.compile(r"[\w, ]+")
_ELSEWHERE = re.compile(r"\b(?:as in|as for|those of|see) `[\w.]+`")
#: Files that hand names on.
DOORS = ["__init__.py", "measurements.py", "transformations.py"]
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def public_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that the doors of a package import, by themselves or with a module."""
    for package, place in product(PACKAGES, DOORS):
        if not (package / place).exists():
            continue
        doors = ast.parse((package / place).read_text(encoding="utf-8"))
        for door in ast.walk(doors):
            if not isinstance(door, ast.ImportFrom):
                continue
            place = package.parent.joinpath(*str(door.module).split("."))
            for name in [alias.name for alias in door.names]:
                if (place / f"{name}.py").exists():  # a module, with all of its functions
                    found = functions(place / f"{name}.py")
                    yield from ((f"{name}.{one}", found[one]) for one in found if one[0] != "_")
                elif name in (found := functions(place.with_suffix(".py"))):
                    yield f"{door.module}.{name}", found[name]


PUBLIC = dict(public_functions())


def section(docstring: str) -> str:
    """The list of the parameters; empty without."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def undescribed(function: ast.FunctionDef) -> set[str]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    listed = " ".join(_ENTRY.findall(section(ast.get_docstring(function) or "")))
    return {name.arg for name in named if name} - set(re.findall(r"\w+", listed))


def sent_away(docstring: str) -> list[str]:
    """References to another function in place of a description."""
    return _ELSEWHERE.findall(" ".join(section(docstring).split()))


def broken(docstring: str) -> list[str]:
    """Lines that fall out of a list: they are neither an entry nor indented below one."""
    lists = [part for part in docstring.split("\n\n") if not part.startswith(">>>")]
    lists = [re.sub(r"^(Parameters|Attributes)\n-+\n", "", part) for part in lists]
    return [
        line
        for part in lists
        if _ENTRY.match(part)
        for line in part.split("\n")
        if not _ENTRY.match(line) and not line.startswith("    ") and not _NAMES.fullmatch(line)
    ]


def without_text(docstring: str) -> list[str]:
    """Entries whose description does not stand below their type, as numpydoc has it."""
    lines = section(docstring).split("\n")
    return [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if _ENTRY.match(line) and not below.startswith("    ")
    ]


def test_every_public_function_describes_each_argument_and_lists_hold_together() -> None:
    """Negative control."""
    packages = {f"opendp_bayes{of}" for of in ("", "_engines", "_research", "_smoothed")}
    assert {name.split(".")[0] for name in PUBLIC} >= packages
    assert len(PUBLIC) > 50
    for name, function in PUBLIC.items():
        assert not undescribed(function), name
        assert not sent_away(ast.get_docstring(function) or ""), name
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, _DOCUMENTED):
                assert broken(ast.get_docstring(node) or "") == [], path
    function = ast.parse(BAD).body[0]
    assert isinstance(function, ast.FunctionDef)
    docstring = ast.get_docstring(function) or ""
    assert undescribed(function) == {"options"}
    assert sent_away(docstring) == ["as in `g`"]
    assert broken(docstring) == ["of records."]
    assert without_text(docstring) == ["a, c : as in `g`.", "b : a number"]


BAD = '''
def f(a, b, *, c, **options):
    """Do.

    Parameters
    ----------
    a, c : as in `g`.
    b : a number
    of records.
    """
'''
