"""Pinned versions are for every Python that is promised, and the lowest are those stated."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.helpers.sweeps import slow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECTS = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
CORE = tomllib.loads(PROJECTS[0].read_text("utf-8"))
#: The first and some further release of each; 3.11.2 is that of Debian 12.
PYTHONS = [
    *("3.10.0", "3.11.0", "3.11.2", "3.11.9", "3.12.0", "3.12.9", "3.13.0", "3.13.9", "3.14.0"),
    "3.14.10",
]
FILES = ["constraints.txt", "constraints-lowest.txt"]


def pins(text: str) -> list[Requirement]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [Requirement(line) for line in lines]


def version_of(pin: Requirement) -> Version:
    [one] = pin.specifier
    assert one.operator == "==", pin
    return Version(one.version)


def on(python: str) -> dict[str, str]:
    version = {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    machine = {"sys_platform": "linux", "platform_machine": "x86_64"}
    return version | machine | {"platform_python_implementation": "CPython"}


def pinned(text: str, python: str) -> dict[str, Version]:
    """The versions for a Python, one of each package."""
    chosen = [pin for pin in pins(text) if pin.marker is None or pin.marker.evaluate(on(python))]
    found = {canonicalize_name(pin.name): version_of(pin) for pin in chosen}
    assert len(found) == len(chosen), "two versions of a package"
    return found


def stated(*groups: str) -> list[Requirement]:
    """What packages and their extras require of others, and the groups of the repository."""
    found: list[str] = [one for group in groups for one in CORE["dependency-groups"][group]]
    for path in PROJECTS:
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        found += project["dependencies"]
        found += [one for of in project.get("optional-dependencies", {}).values() for one in of]
    made = map(Requirement, found)
    return [one for one in made if not one.name.startswith("opendp-bayes")]


def refused(text: str, python: str) -> list[str]:
    """Pins for a Python whose packages say that they are not for it, of those installed here."""
    found = []
    for name, version in pinned(text, python).items():
        try:
            installed = metadata(name)
        except PackageNotFoundError:
            continue
        needs = SpecifierSet(installed.get("Requires-Python", ""))
        if Version(installed["Version"]) == version and not needs.contains(python):
            found.append(f"{name}=={version} needs {needs}")
    return found


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_one_version(file: str, python: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    found = pinned(text, python)
    groups = ["test"] if "lowest" in file else ["test", "spark", "lint", "docs", "mutants", "lock"]
    for one in stated(*groups):
        if one.marker is None or one.marker.evaluate(on(python)):
            assert one.specifier.contains(found[canonicalize_name(one.name)]), (one, python)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("python", [PYTHONS[0], PYTHONS[-1], *slow(PYTHONS[1:-1])])
def test_versions_are_for_every_python(file: str, python: str) -> None:
    assert refused((ROOT / file).read_text("utf-8"), python) == []


@pytest.mark.parametrize("file", FILES)
def test_places_are_not_named(file: str) -> None:
    """Neither a folder of this machine nor the index that packages came from."""
    assert not re.search(r"//|^-|@", (ROOT / file).read_text("utf-8"), re.M)


def test_the_lowest_versions_are_those_stated() -> None:
    """So a bound that nothing can be installed with, or that was raised alone, is noticed."""
    found = pinned((ROOT / "constraints-lowest.txt").read_text("utf-8"), "3.11.7")
    for one in stated("test"):
        if one.marker is None or one.marker.evaluate(on("3.11.7")):
            lowest = [Version(bound.version) for bound in one.specifier if bound.operator == ">="]
            version = found[canonicalize_name(one.name)]
            assert [(bound.major, bound.minor) for bound in lowest] == [
                (version.major, version.minor)
            ], one


def imported(body: list[ast.stmt]) -> Iterator[str]:
    """Packages that a module loads when it is imported itself, whichever Python that is."""
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from (name.name.split(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.split(".")[0]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.If(body=then, orelse=otherwise):
                yield from imported(then)
                yield from imported(otherwise)


def not_required(package: Path, requirements: list[str], python: str) -> set[str]:
    """Packages that the modules of a package load at once, and that it does not require."""
    stated = map(Requirement, requirements)
    required = {
        one.name.replace("-", "_")
        for one in stated
        if one.marker is None or one.marker.evaluate(on(python))
    }
    own = {package.name, "polars", "tomllib"}  # opendp[polars] brings the second
    return loaded_at_once(package) - required - own - sys.stdlib_module_names


@cache
def loaded_at_once(package: Path) -> set[str]:
    """Packages that the modules of a package load at once."""
    trees = [ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")]
    return {name for tree in trees for name in imported(tree.body)}


def test_each_package_installs_what_its_modules_load() -> None:
    """Also with Python 3.10, whose standard library has less. Negative control: whatever Python
    this is, one that only later ones may have.
    """
    needs: list[str] = CORE["project"]["dependencies"]
    package = ROOT / "opendp_bayes"
    for python in ("3.10.0", "3.14.0"):
        assert not_required(package, needs, python) == set()
    assert "numpy" in not_required(package, needs[:1], "3.14.0")  # the negative control
    for plugin, by_others in (("office", {"tomli"}), ("research", set())):  # tomli is for 3.10
        folder = ROOT / "plugins" / f"opendp-bayes-{plugin}"
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        required: list[str] = [*needs, *project["dependencies"]]
        assert not_required(folder / f"opendp_bayes_{plugin}", required, "3.10.0") == set()
        assert not_required(folder / f"opendp_bayes_{plugin}", required, "3.14.0") == by_others
    version = distribution("numpy").version
    assert refused(f"numpy=={version}\n", "3.8.0")
    assert not refused(f"numpy=={version} ; python_full_version >= '3.10'\n", "3.8.0")
    with pytest.raises(AssertionError, match="two versions"):
        pinned("numpy==2.0\nnumpy==2.1\n", "3.11.0")
