"""Releases as tables and sentences."""

import io
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from scipy import stats

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release, SmoothHellingerExponential
from opendp_bayes.report import guarantee, release_report, release_table

RELEASE = Release(
    counts=(7, 0, 3),
    categories=("[red]yes", "no", 3),
    prior=(1.0, 0.5, 1.0),
    mechanism=LaplaceParameters(scale=2.0),
    size=10,
    d_in=1,
    loss=PrivacyLoss(epsilon=1.0, rho=0.25, range=2.0),
    measure="MaxDivergence",
)


def rendered(renderable: object, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=False).print(renderable)
    return file.getvalue()


def test_a_row_has_count_mean_and_the_interval_of_its_marginal() -> None:
    lines = rendered(release_table(RELEASE)).splitlines()
    row = next(line for line in lines if "yes" in line)
    low, high = stats.beta(8, 4.5).interval(0.95)
    assert row.split("│")[1:-1] == [" [red]yes ", "        7 ", f"     {8 / 12.5:.3f} ", f"        {low:.3f} to {high:.3f} "]
    assert any("ignores the noise" in line for line in lines)


def test_the_level_is_in_the_heading_and_in_the_interval() -> None:
    shown = rendered(release_table(RELEASE, level=0.5))
    low, high = stats.beta(8, 4.5).interval(0.5)
    assert "Plug-in 50 % interval" in shown
    assert f"{low:.3f} to {high:.3f}" in shown


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_an_impossible_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"level=.*: must be between 0 and 1"):
        release_table(RELEASE, level=level)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_report_fits_and_its_title_is_not_markup(width: int) -> None:
    shown = rendered(release_report(RELEASE, title="[bold]vote"), width)
    assert shown.startswith("[bold]vote")
    assert max(map(len, shown.splitlines())) <= width
    assert "LaplaceParameters(scale=2, noise='discrete'" in shown.replace("\n", " ")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "ε = 1 for data sets that differ by 1 record changed. The number of records, 10, is public."),
        ({"size": None}, "ε = 1 for data sets that differ by 1 record added or removed. The number of records is private."),
        ({"d_in": 3}, "ε = 1 for data sets that differ by 3 records changed."),
        ({"measure": "ZeroConcentratedDivergence"}, "ρ = 0.25 (zero-concentrated) for"),
        ({"measure": "Approximate(ZeroConcentratedDivergence)"}, "ρ = 0.25 (zero-concentrated) for"),
        ({"loss": PrivacyLoss(1.0, 0.25, 2.0, delta=1e-7), "measure": "Approximate(MaxDivergence)"}, "ε = 1, δ = 1e-07 for"),
        ({"loss": PrivacyLoss(math.inf, math.inf, math.inf)}, "ε = ∞ for"),
        ({"loss": PrivacyLoss(1.0000000001, 1.0, 2.0)}, "ε = 1.001 for"),
        ({"loss": PrivacyLoss(0.9999999999, 1.0, 2.0)}, "ε = 1 for"),
        ({"mechanism": SmoothHellingerExponential(scale=4.00000000002)}, "Mechanism: SmoothHellingerExponential(scale=4, gamma=1)."),
    ],
)
def test_guarantee(changes: dict[str, object], expected: str) -> None:
    assert expected in guarantee(replace(RELEASE, **changes))  # type: ignore[arg-type]


def test_reports_need_neither_opendp_nor_polars() -> None:
    check = "import sys, opendp_bayes.report; print(sorted({'opendp', 'polars'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == "[]"
