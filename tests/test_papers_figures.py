"""The figures of the papers: each script draws its own, and its numbers are those that are kept."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    path
    for kind in ("figure", "table", "theorem")
    for path in (ROOT / "examples" / "papers").glob(f"{kind}_*.py")
)
IMAGES = ROOT / "docs" / "images" / "papers"
QUICK = {"figure_1", "table_1", "table_2", "theorem_4_2"}
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


def test_every_figure_is_on_the_page() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) == 14
    for script in SCRIPTS:
        kind = "png" if not script.stem.startswith("table") else None
        assert f"images/papers/{script.stem}.{kind}" in page if kind else script.stem in page
