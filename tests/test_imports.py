"""The mathematics needs neither OpenDP nor polars, and what needs them holds no mathematics: read
from the source, and seen in an interpreter.
"""

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import opendp_bayes

PACKAGE = Path(opendp_bayes.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
GLUE = ("framework", "commands", "cli")  # the parts that may import OpenDP and polars
FRAMES = {"opendp", "polars"}
EXCEPTIONS = {"release": {"polars"}}  # to_frame makes a polars frame, when it is called
MATHEMATICS = {
    f"opendp_bayes.{name}" for name in ("hellinger", "sensitivity", "sampling", "simplex")
} | {"scipy"}

ABOVE = [
    "auditing",
    "conjugate",
    "estimates",
    "expected_error",
    "extend",
    "hellinger",
    "inference",
    "mechanisms",
    "mechanisms.registry",
    "notebook",
    "plotting",
    "planning",
    "privacy_loss",
    "release",
    "report",
    "sampling",
    "sensitivity",
    "simplex",
]
IMPORTABLE = [name for name in ABOVE if find_spec(f"opendp_bayes.{name}")]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_glue(path: Path) -> bool:
    return module_name(path).split(".")[0] in GLUE


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of every import, wherever in the file it stands, except under `if
    TYPE_CHECKING:`.
    """
    names: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        pending.extend(ast.iter_child_nodes(node))
    return names


def imports_of(path: Path) -> set[str]:
    return imported(ast.parse(path.read_text(encoding="utf-8")))


def within(names: set[str], packages: set[str]) -> set[str]:
    return {
        name
        for name in names
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    }


def loaded_by(code: str) -> set[str]:
    """Names of the modules in a new interpreter after it ran `code`."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.parametrize("path", [path for path in FILES if not is_glue(path)], ids=module_name)
def test_outside_the_glue_nothing_imports_opendp_or_polars(path: Path) -> None:
    names = imports_of(path)
    assert not within(names, FRAMES - EXCEPTIONS.get(module_name(path), set()))
    assert not within(names, {f"opendp_bayes.{part}" for part in GLUE}), (
        "what the glue uses must not use the glue"
    )


@pytest.mark.parametrize("path", [path for path in FILES if is_glue(path)], ids=module_name)
def test_the_glue_imports_no_mathematics(path: Path) -> None:
    assert not within(imports_of(path), MATHEMATICS)


def test_the_rule_sees_the_files() -> None:
    """The rules above hold for files that exist, and some of the glue does import both."""
    assert {"hellinger", "sensitivity", "mechanisms.exponential", "release"} <= {
        module_name(path) for path in FILES if not is_glue(path)
    }
    both = set().union(*(within(imports_of(path), FRAMES) for path in FILES if is_glue(path)))
    assert {name.split(".")[0] for name in both} == FRAMES


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import polars as pl", {"polars"}),
        ("from opendp.mod import Domain", {"opendp.mod", "opendp.mod.Domain"}),
        ("def f():\n    import opendp.prelude", {"opendp.prelude"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import polars", set()),
        ("from opendp_bayes import framework", {"opendp_bayes.framework"}),
    ],
)
def test_the_rule_sees_an_import(source: str, names: set[str]) -> None:
    found = imported(ast.parse(source)) - {"typing", "typing.TYPE_CHECKING", "opendp_bayes"}
    assert found == names


def test_importing_the_mathematics_loads_neither_opendp_nor_polars() -> None:
    loaded = loaded_by("\n".join(f"import opendp_bayes.{name}" for name in IMPORTABLE))
    assert {f"opendp_bayes.{name}" for name in IMPORTABLE} <= loaded
    assert not {name.split(".")[0] for name in loaded} & FRAMES


def test_using_the_mathematics_by_its_short_names_loads_neither() -> None:
    code = (
        "from opendp_bayes import HellingerExponential, LaplaceParameters, Release,"
        " available_mechanisms, hellinger_distance, load_mechanism\navailable_mechanisms();"
        " load_mechanism('laplace_parameters')(1.0).sample([1, 2],"
        " 1.0)\nHellingerExponential(0.1).sample([5, 5], 1.0); hellinger_distance([1, 2], [2, 1])"
    )
    assert not {name.split(".")[0] for name in loaded_by(code)} & FRAMES


def test_importing_the_package_loads_none_of_its_parts() -> None:
    assert {
        name for name in loaded_by("import opendp_bayes") if name.startswith("opendp_bayes.")
    } == set()


def test_every_public_name_is_there() -> None:
    assert set(opendp_bayes.__all__) <= set(dir(opendp_bayes))
    for name in opendp_bayes.__all__:
        assert getattr(opendp_bayes, name) is not None
    with pytest.raises(
        AttributeError, match=r"module 'opendp_bayes' has no attribute 'posteriour'"
    ):
        opendp_bayes.posteriour  # noqa: B018


def test_type_checkers_see_the_names_that_are_loaded_when_used() -> None:
    """The block under `if TYPE_CHECKING:` and the table of homes are one list written twice."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in ast.walk(tree) if isinstance(node, ast.If))
    declared = {
        (alias.asname, statement.module)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert declared == {
        (name, f"opendp_bayes.{module}")
        for module, names in opendp_bayes._HOME.items()
        for name in names
    }
