"""Mechanisms by name: built in, and of packages whose code runs only once it is named."""

import dataclasses
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, ClassVar

import pytest

from opendp_bayes import LaplaceParameters, available_mechanisms, load_mechanism
from opendp_bayes.mechanisms import registry


@dataclasses.dataclass(frozen=True)
class Uniform:
    """What a plugin provides; its law does not matter here."""

    scale: float
    name: ClassVar[str] = "uniform"

    def check(self, *, size: int | None, prior: Any) -> None: ...

    def log_pmf(self, counts: Any, prior: Any) -> Any: ...

    def sample(self, counts: Any, prior: Any, size: int = 1) -> Any: ...

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Any, delta: float = 0.0
    ) -> Any: ...


class NotADataclass:
    name: ClassVar[str] = "not_a_dataclass"

    check = Uniform.check
    log_pmf = Uniform.log_pmf
    sample = Uniform.sample
    proven_loss = Uniform.proven_loss


@dataclasses.dataclass(frozen=True)
class NoLaw:
    scale: float
    name: ClassVar[str] = "no_law"
    log_pmf: ClassVar[None] = None

    check = Uniform.check
    sample = Uniform.sample
    proven_loss = Uniform.proven_loss


class Recorded(EntryPoint):
    """An entry point that gives what it is told to and remembers that it was asked."""

    loaded: ClassVar[list[str]] = []
    gives: ClassVar[dict[str, Any]] = {}

    def load(self) -> Any:
        self.loaded.append(self.name)
        return self.gives[self.value]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have loaded is not known, and what a test loads is forgotten after it."""
    built_in = {
        name: kind
        for name, kind in registry._classes.items()
        if kind.__module__.startswith("opendp_bayes.mechanisms")
    }
    monkeypatch.setattr(registry, "_classes", built_in)
    Recorded.loaded.clear()
    Recorded.gives.clear()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`install(name=value)` makes packages appear to register entry points."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(
        registry, "entry_points", lambda **selection: EntryPoints(points).select(**selection)
    )

    def add(name: str, value: Any, group: str = registry.GROUP) -> None:
        key = f"package_{len(points)}:{name}"
        Recorded.gives[key] = value
        points.append(Recorded(name=name, value=key, group=group))

    return add


def test_a_plugin_is_listed_without_being_loaded(install: Any) -> None:
    install("uniform", Uniform)
    assert "uniform" in available_mechanisms()
    load_mechanism("laplace_parameters")
    with pytest.raises(
        ValueError, match=r"mechanism='uniform': is not built in; .* load_mechanism\('uniform'\)"
    ):
        registry.known_mechanism("uniform")
    assert Recorded.loaded == []


def test_names_of_others_and_of_two_packages_are_no_mechanisms(install: Any) -> None:
    install("uniform", Uniform, group="opendp_bayes.something_else")
    assert "uniform" not in available_mechanisms()
    with pytest.raises(ValueError, match=r"mechanism='uniform': .*not an installed"):
        load_mechanism("uniform")
    install("laplace_parameters", Uniform)
    assert load_mechanism("laplace_parameters") is LaplaceParameters
    assert Recorded.loaded == []
    install("uniform", Uniform)
    install("uniform", Uniform)
    with pytest.raises(ValueError, match=r"mechanism='uniform': .*by 2 packages; .*uniform"):
        load_mechanism("uniform")
    assert Recorded.loaded == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("not_a_dataclass", NotADataclass), ("another_name", Uniform), ("no_law", NoLaw)),
        *(("function", len), ("module", dataclasses), ("uniform", Uniform(1.0))),
    ],
)
def test_refuses_what_is_not_a_mechanism(install: Any, name: str, value: Any) -> None:
    install(name, value)
    said = rf"mechanism='{name}': package_0:{name} must be a dataclass with name = '{name}' and"
    with pytest.raises(TypeError, match=said + " the methods check, log_pmf, "):
        load_mechanism(name)
    with pytest.raises(ValueError, match="is not built in"):
        registry.known_mechanism(name)


def test_an_entry_point_of_an_installed_package_is_not_imported_by_listing(tmp_path: Any) -> None:
    """Of a package whose code fails: importing, listing and built-in names leave it alone."""
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\nbroken = broken_plugin:Broken\n", encoding="utf-8"
    )
    (tmp_path / "broken_plugin.py").write_text(
        "raise RuntimeError('was imported')\n", encoding="utf-8"
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import opendp_bayes.mechanisms, opendp_bayes.results.release
from opendp_bayes import load_mechanism
from opendp_bayes import available_mechanisms
assert "broken" in available_mechanisms()
load_mechanism("laplace_parameters")
assert "broken_plugin" not in sys.modules
try:
    load_mechanism("broken")
except RuntimeError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    assert result.stdout.strip() == "was imported"


@pytest.mark.parametrize(
    ("name", "available"),
    [
        ("laplace", "available: gaussian_parameters, .* 'laplace_parameters'"),
        ("laplce_parameters", "not an installed .* 'laplace_parameters'"),
    ],
)
def test_refuses_an_unknown_name_with_a_suggestion(install: Any, name: str, available: str) -> None:
    with pytest.raises(ValueError, match=rf"mechanism='{name}': .*{available}"):
        load_mechanism(name)
