"""The template of plugins, copied, renamed and installed: its tests and its page's commands."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "plugins" / "opendp-bayes-template"
#: What is named after the template, and what its copy calls it.
NAMES = {
    "opendp-bayes-template": "opendp-bayes-mine",
    "opendp_bayes_template": "opendp_bayes_mine",
    "hamming_exponential": "mine_exponential",
    "HammingExponential": "MineExponential",
}
#: All that a plugin may import of the package.
DOORS = {"opendp_bayes", "opendp_bayes.extend", "opendp_bayes_research"}


def renamed(text: str) -> str:
    for name, mine in NAMES.items():
        text = text.replace(name, mine)
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy under another name, on whose path it is as a wheel of it would be."""
    root = tmp_path_factory.mktemp("elsewhere") / "opendp-bayes-mine"
    for path in sorted(TEMPLATE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            target = root / renamed(str(path.relative_to(TEMPLATE)))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(path.read_text()))
    project = (root / "pyproject.toml").read_text()
    (entry,) = re.findall(r'^mine_exponential = "(.*)"$', project, re.M)
    info = root / "opendp_bayes_mine-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: opendp-bayes-mine\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        f"[opendp_bayes.mechanisms]\nmine_exponential = {entry}\n"
    )
    return root


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # its tests need none
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def test_its_tests_and_the_commands_of_its_page_work_anywhere(copy: Path) -> None:
    tests = sys.executable, "-m", "pytest", "tests", "-q", "-x", "-p", "no:cacheprovider"
    found = run(copy, *tests)
    assert found.returncode == 0, found.stdout
    # Negative control: a bound that is an eighth of what was proved.
    module = copy / "opendp_bayes_mine" / "__init__.py"
    right = module.read_text()
    assert "2 * d_in / Fraction" in right
    module.write_text(right.replace("2 * d_in / Fraction", "d_in / 4 / Fraction"))
    broken = run(copy, *tests, "-k", "exceeds")
    module.write_text(right)
    assert broken.returncode == 1
    page = (copy / "README.md").read_text()
    (block,) = re.findall(r"```console\n(.*?)```", page, re.S)
    commands = block.replace("\\\n", " ").splitlines()
    assert [one.split()[0] for one in commands] == ["pip", "python", "opendp-bayes"]
    (copy / "votes.csv").write_text("vote\n" + "yes\nno\n" * 50)
    found = run(copy, *commands[-1].split())
    assert found.returncode == 0, found.stderr
    assert "MineExponential(scale=2)" in found.stdout


@pytest.mark.parametrize("path", sorted(TEMPLATE.rglob("*.py")), ids=lambda path: path.name)
def test_it_goes_through_the_doors_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.split(".")[0] != "opendp_bayes" or name in DOORS


def test_its_project_needs_no_workspace() -> None:
    assert "workspace" not in (TEMPLATE / "pyproject.toml").read_text()
