"""The figures of the papers: each script draws its own, and its numbers are those that are kept."""

import csv
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from by_path import loaded

import opendp_bayes as ob

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    path
    for kind in ("figure", "table", "theorem")
    for path in (ROOT / "examples" / "papers").glob(f"{kind}_*.py")
)
IMAGES = ROOT / "docs" / "images" / "papers"
QUICK = {"figure_1", "table_2"}
#: Of numbers with six digits: another machine's last digits, and where a search for a scale stops.
RELATIVE, ABSOLUTE = 1e-3, 1e-6


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def differences(one: list[list[str]], other: list[list[str]]) -> list[tuple[str, str]]:
    assert [len(row) for row in one] == [len(row) for row in other]
    pairs = [pair for rows in zip(one, other, strict=True) for pair in zip(*rows, strict=True)]
    return [pair for pair in pairs if pair[0] != pair[1] and not close(*pair)]


def close(one: str, other: str) -> bool:
    try:
        return float(one) == pytest.approx(float(other), rel=RELATIVE, abs=ABSOLUTE)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem)
        for path in SCRIPTS
    ],
)
def test_a_script_draws_what_is_kept(script: Path, tmp_path: Path) -> None:
    arguments = [sys.executable, "-X", "utf8", str(script), str(tmp_path)]
    subprocess.run(arguments, check=True, timeout=600)
    found, kept = cells(tmp_path / f"{script.stem}.csv"), cells(IMAGES / f"{script.stem}.csv")
    assert differences(found, kept) == []
    # The negative control: one number that differs by a hundredth is seen.
    place = next(i for i, value in enumerate(found[-1]) if close(value, value) and float(value))
    found[-1][place] = str(float(found[-1][place]) * 1.01)
    assert len(differences(found, kept)) == 1
    if not script.stem.startswith("table"):
        assert (tmp_path / f"{script.stem}.png").stat().st_size > 10_000


@pytest.fixture(scope="module")
def settings() -> ModuleType:
    return loaded(ROOT / "examples" / "papers" / "settings.py")


def kept(figure: str, panel: str, at: str) -> dict[str, str]:
    """The numbers of a panel at one place, by curve."""
    rows = cells(IMAGES / f"{figure}.csv")
    return {curve: y for shown, curve, x, y in rows if (shown, x) == (panel, at)}


PAPERS, EXACT = "(a) the papers' scales", "(b) exact scales"


@pytest.mark.parametrize(
    ("figure", "panel", "part", "at", "counts", "prior"),
    [
        ("figure_5", "", PAPERS, "50", [25, 25], 1.0),
        ("figure_5", "", EXACT, "50", [25, 25], 1.0),
        ("figure_6", "k = 3, ", PAPERS, "10", [3, 3, 4], 1.0),
        ("figure_6", "k = 3, ", EXACT, "10", [3, 3, 4], 1.0),
        ("figure_6", "k = 4, ", PAPERS, "10", [2, 2, 2, 4], 1.0),
        ("figure_6", "data (50, 50), prior Beta(a, a), ", PAPERS, "40", [50, 50], 40.0),
        ("figure_6", "data (50, 50), prior Beta(a, a), ", EXACT, "40", [50, 50], 40.0),
    ],
)
def test_some_errors_of_the_slow_figures(
    settings: ModuleType,
    figure: str,
    panel: str,
    at: str,
    counts: list[int],
    prior: float,
    part: str,
) -> None:
    numbers = kept(figure, panel + part, at)
    mechanisms: dict[str, Any] = settings.SETTINGS[part](sum(counts), len(counts), 1.0, prior)
    assert set(numbers) == set(mechanisms)
    for label, mechanism in mechanisms.items():
        law = ob.error_law(mechanism, counts, prior)
        assert not law.simulated
        assert close(numbers[label], str(law.mean())), label
        assert not close(numbers[label], str(law.mean() * 1.01))


@pytest.mark.parametrize(("figure", "epsilon"), [("figure_3", 1.0), ("figure_4", 5.0)])
def test_some_probabilities_of_the_slow_figures(
    settings: ModuleType, figure: str, epsilon: float
) -> None:
    panel = f"k = 2, n = 300, ε = {epsilon:g}, {PAPERS}"
    numbers = kept(figure, panel, "0")
    mechanisms = settings.at_papers_scales(300, 2, epsilon)
    assert set(numbers) == set(mechanisms)
    for label, mechanism in mechanisms.items():
        hit = float(ob.error_law(mechanism, [150, 150], 1.0).cdf(0.0))
        assert close(numbers[label], str(hit)), label


def test_every_figure_is_on_the_page() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) == 14
    for script in SCRIPTS:
        kind = "png" if not script.stem.startswith("table") else None
        assert f"images/papers/{script.stem}.{kind}" in page if kind else script.stem in page
