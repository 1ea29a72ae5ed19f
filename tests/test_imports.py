"""What an import loads, seen in a new interpreter; which way imports may go, `make lint` checks."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import opendp_bayes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(opendp_bayes.__file__).parent
#: The rooms and files that load OpenDP and polars, and the door of `extend` to them.
GLUE = {
    *("commands", "extend.framework", "measurements", "queries", "surveys.levels_query"),
    *("surveys.survey_query", "transformations", "trusted", "unlisted.discovered_counts"),
    *("unlisted.discovery_query", "unlisted.trusted"),
}
#: Files that hold names alone, or ask what does the work.
DOORS = {"__main__", "extend", "measurements", "surveys", "transformations", "unlisted"}
FRAMES = {"opendp", "polars"}


def is_in(module: str, places: Iterable[str]) -> bool:
    """True if a module is one of these rooms and files, or lies in one."""
    return any(f"{module}.".startswith(f"opendp_bayes.{place}.") for place in places)


MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
ABOVE = [name for name in MODULES if not is_in(name, GLUE)]


def loaded_by(*steps: str) -> list[set[str]]:
    """Names of the modules in a new interpreter after each of these steps."""
    shown = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))\n"
    program = "".join(step + shown for step in steps)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    return [set(json.loads(line)) for line in result.stdout.splitlines() if line[:2] == '["']


#: Mathematics by its short names.
_MATHEMATICS = """
from opendp_bayes import LaplaceParameters, Release, available_mechanisms, load_mechanism
from opendp_bayes.mechanisms import HellingerExponential, hellinger_distance
available_mechanisms()
load_mechanism("laplace_parameters")(1.0).sample([1, 2], 1.0)
HellingerExponential(0.1).sample([5, 5], 1.0)
hellinger_distance([1, 2], [2, 1])
"""


def test_what_is_outside_the_glue_loads_neither_opendp_nor_polars_and_the_glue_both() -> None:
    """By the short names, and by every module; the glue is the negative control."""
    modules = "\n".join(f"import {name}" for name in ABOVE)
    glue = "import opendp_bayes.queries.posterior_query"
    short, every, both = loaded_by(_MATHEMATICS, modules, glue)
    assert {
        "opendp_bayes.mathematics.exponential.hellinger",
        "opendp_bayes.results.release",
    } <= set(ABOVE)
    assert "opendp_bayes.mechanisms.laplace_parameters" in short
    assert set(ABOVE) <= every
    assert not {name.split(".")[0] for name in short | every} & FRAMES
    assert {name.split(".")[0] for name in both} >= FRAMES


def contracts() -> dict[str, set[str]]:
    """The rooms and files that each contract holds, by the first words of its name."""
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return {
        one["name"].split(" know")[0].split(" does")[0]: {
            source.removeprefix("opendp_bayes.") for source in one.get("source_modules", ())
        }
        for one in listed
    }


def test_no_file_is_outside_of_the_contracts_on_what_it_may_know() -> None:
    """A file of a slice is named, and of a room its folder, or the contract would be void there."""
    held = contracts()
    left = {name for name in ABOVE if not is_in(name, held["Only the glue"])} - {"opendp_bayes"}
    assert {name.split(".")[1] for name in left} <= DOORS
    assert {name for name in left if is_in(name, ("surveys", "unlisted"))} == {
        f"opendp_bayes.{of}" for of in ("surveys", "unlisted")
    }
    glue = {name for name in MODULES if is_in(name, held["The glue"])}
    assert glue == {name for name in MODULES if is_in(name, GLUE - DOORS - {"extend.framework"})}


#: A question to a Context, by the modules of this package that it may load at most.
_QUESTION = """
import opendp.prelude as dp
import polars as pl
dp.enable_features("contrib", "honest-but-curious")
context = ob.context(pl.DataFrame({"vote": ["yes", "no"] * 50}), split_evenly_over=1,
    privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0))
of = dict(categories=["yes", "no"], nulls="no", unknown="no")
release = ob.posterior(context.query(), "vote", **of).release()
"""


def test_a_measurement_and_a_release_load_no_engine() -> None:
    """A posterior is computed when asked for; importing the package loads no part of it."""
    steps = "import opendp_bayes as ob", "ob.m.make_laplace_parameters", _QUESTION
    package, measurement, release, posterior = (
        {name for name in loaded if name.startswith("opendp_bayes.")}
        for loaded in loaded_by(*steps, "release.posterior.mean()")
    )
    assert package == set()
    assert 10 <= len(measurement) <= 100
    assert not {name for name in measurement if is_in(name, {"inference"})}
    assert len(release) <= 120
    engines = {"inference.engines", "inference.answers", "inference.sampling"}
    assert not {name for name in release if is_in(name, engines)}
    assert {name for name in posterior if is_in(name, engines)}  # a negative control


#: What an analyst does with documents, in an interpreter that has no OpenDP at all.
ANALYSIS = """
import sys
sys.modules["opendp"] = None
from pathlib import Path
import opendp_bayes as ob
from opendp_bayes_office.report.report_document import Report

def read(name, by):
    return by.from_json((Path(FOLDER) / f"{name}.json").read_bytes())

one, groups = read("one_column", ob.Release), read("groups", ob.Release)
survey, levels = read("survey", ob.Survey), read("levels", ob.Survey)
shown, report = read("discovery", ob.DiscoveredRelease), read("report", Report)
frames = [of.to_frame() for of in (one, groups, groups.pooled(), survey, levels, shown)]
frames += [ob.plan(size=9, prior=[1, 1], epsilon=1.0, mechanisms=[
    ob.KNormParameters(1.0)]).to_frame()]
of_axes = {name: ob.noisy_counts([9, n, 2, 5], ["a", "b", "c", "d"], scale=1.0, mechanism=
    "laplace_parameters") for n, name in enumerate(("x", "y"))}
joint = ob.combine_tables(of_axes)
copies = joint.synthetic(2)
frames += copies
assert all(frame.height > 0 for frame in frames), frames
assert one.posterior.mean().sum() and len(report.survey) == 3 and str(levels.posterior)
assert "polars" in sys.modules
"""
#: The negative control: with OpenDP shut out, the glue cannot be loaded.
SHUT_OUT = """
try:
    ob.t
except ImportError:
    pass
else:
    raise AssertionError("what touches data needs OpenDP")
"""


def test_what_is_released_is_analysed_without_what_loads_slowly() -> None:
    """So it can be where another version of polars is; the frames it makes load polars alone.
    They take as long as all else; `scipy.stats.beta` loads its part where it is used.
    """
    folder = Path(__file__).parent / "release_format/written_before/1.0.0"
    [loaded] = loaded_by(ANALYSIS.replace("FOLDER", repr(str(folder))) + SHUT_OUT)
    assert not [name for name in loaded if name.startswith("opendp.")]
    [loaded] = loaded_by(
        "import opendp_bayes_office.commands.answers, opendp_bayes.surveys.survey_query\n"
        "from opendp_bayes import noisy_counts\n"
        "noisy_counts([9, 4], ['a', 'b'], mechanism='laplace_parameters', scale=1.0)"
        ".posterior.interval()"
    )
    assert "scipy.special" in loaded
    assert not loaded & {f"scipy.{part}" for part in ("stats", "optimize", "interpolate", "signal")}


def test_an_older_python_is_told_that_it_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(opendp_bayes.__file__).read_text("utf-8")
    ast.parse(source, feature_version=(3, 7))  # or it would fail by its syntax first
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    monkeypatch.setattr(sys, "version", "3.9.18 (main)")
    with pytest.raises(ImportError, match=r"Python 3\.10 .* this is 3\.9\.18"):
        exec(compile(source, "package", "exec"), {"__name__": "opendp_bayes"})  # noqa: S102


def test_every_public_name_is_there_for_type_checkers_too() -> None:
    """The block under `if TYPE_CHECKING:` and the table of homes are one list written twice."""
    assert set(opendp_bayes.__all__) <= set(dir(opendp_bayes))
    for name in opendp_bayes.__all__:
        assert getattr(opendp_bayes, name) is not None
    with pytest.raises(AttributeError, match="opendp_bayes' has no attribute 'posteriour'"):
        opendp_bayes.posteriour  # noqa: B018
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    declared = {
        (alias.asname, statement.module)
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert declared == {
        (name, f"opendp_bayes.{module}") for name, module in opendp_bayes._HOME.items()
    } | {(name, "opendp_bayes") for name in opendp_bayes._MODULES}
