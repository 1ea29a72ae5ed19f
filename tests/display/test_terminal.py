"""Releases as tables and sentences, as wide as a terminal."""

from dataclasses import replace

import pytest
from scipy import stats

from opendp_bayes import LaplaceParameters, PrivacyLoss, Release
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.mechanisms import HellingerExponential
from tests.helpers.releases import changed, guarantee

LOSS = PrivacyLoss(epsilon=1.0, rho=0.25, range=2.0)
OF_THREE = ("[red]yes", "no", 3), (1.0, 0.5, 1.0), LaplaceParameters(scale=2.0)
RELEASE = Release((7, 0, 3), *OF_THREE, guarantee(10, LOSS))


def rendered(sheet: Sheet, width: int = 80) -> str:
    return sheet.text(width)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_row_has_count_mean_and_both_intervals() -> None:
    lines = rendered(RELEASE.sheet()).splitlines()
    row = next(line for line in lines if "yes" in line)
    lower, upper = RELEASE.posterior.interval(0.95)
    low, high = stats.beta(8, 4.5).interval(0.95)
    mean = RELEASE.posterior.mean()[0]
    intervals = [f"{a:.3f} to {b:.3f}" for a, b in ((lower[0], upper[0]), (low, high))]
    assert cells(row) == ["[red]yes", "7", f"{mean:.3f}", *intervals]
    assert upper[0] - lower[0] > high - low
    assert any("(ignores noise)" in line for line in lines)


def test_the_level_is_in_the_headings_and_in_the_intervals() -> None:
    shown = rendered(RELEASE.sheet(level=0.5))
    low, high = stats.beta(8, 4.5).interval(0.5)
    lower, upper = RELEASE.posterior.interval(0.5)
    assert "50 % interval" in shown
    assert "Plug-in 50 %" in shown
    assert f"{low:.3f} to {high:.3f}" in shown
    assert f"{lower[0]:.3f} to {upper[0]:.3f}" in shown
    with pytest.raises(ValueError, match=r"level=2: .*between 0 and 1"):
        RELEASE.sheet(level=2)


def test_without_a_noise_aware_posterior_a_report_says_why() -> None:
    shown = rendered(changed(RELEASE, mechanism=HellingerExponential(0.5), size=None).sheet(), 200)
    low, high = stats.beta(8, 4.5).interval(0.95)
    assert "There is no noise-aware posterior of this release: noisy_counts=" in shown
    assert cells(next(line for line in shown.splitlines() if "yes" in line)) == [
        "[red]yes",
        "7",
        f"{low:.3f} to {high:.3f}",
    ]


def test_labels_of_others_cannot_write_to_the_terminal() -> None:
    release = replace(RELEASE, categories=("\x1b[2Jyes", "no\u202e", 3))
    shown = rendered(replace(release.sheet(), title="a\x1b[31mb"))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for text in ("a\ufffd[31mb", r"'\x1b[2Jyes'", r"'no\u202e'"):
        assert text in shown
