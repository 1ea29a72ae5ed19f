"""Every example runs: in its fast mode, and those of docstrings."""

import csv
import doctest
import runpy
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import matplotlib.pyplot as plt
import pytest

import opendp_bayes_smoothed

EXAMPLES = Path(__file__).parent.parent / "examples"
PRINTED = {
    "elections.py": (
        "1920  n =  25,283,754  delta = 1e-7.79",
        "2020  n = 155,507,476  delta = 1e-31.92",
    ),
    "districts.py": (
        "9 distributions, vertices [[0.2286, 0.7714], [0.9447, 0.0553]]",
        "slope -4.94",
    ),
    "notions.py": (
        "smoothed: delta = 0.01166 at epsilon = 0.5",
        "differential: delta = 0.2 at epsilon = 0.5",
        "Bayesian: delta = 0.2579 at",
        "random: delta = 0.5 at",
        "distributional: delta = 0 at",
        "Rényi, order 2: inf",
    ),
    "gradients.py": (
        "epsilon = 1.0: n = [4, 9], delta = [0.5, 0.3",
        "2 bits, exactly: N(0, 0.12²), N(0.2, 0.12²), epsilon = 2.0: n = [4, 9]",
    ),
}


def test_there_are_examples_and_every_one_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} - {"paper.py"} == set(PRINTED)
    finder = doctest.DocTestFinder()
    modules = (import_module(f"opendp_bayes_smoothed.{name}") for name in MODULES)
    assert sum(bool(test.examples) for module in modules for test in finder.find(module)) >= 4


@pytest.mark.parametrize("name", PRINTED)
def test_example(name, tmp_path, monkeypatch, capsys):
    """As the main program."""
    figure = tmp_path / "figure.png"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--fast", "--output", str(figure)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    plt.close("all")
    printed = capsys.readouterr().out
    for part in PRINTED[name]:
        assert part in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size > 10_000
    with figure.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert any("delta" in name for name in head)
    assert len(rows) >= 3
    assert all(len(row) == len(head) for row in rows)


MODULES = [module.name for module in iter_modules(opendp_bayes_smoothed.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    module = import_module(f"opendp_bayes_smoothed.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0
