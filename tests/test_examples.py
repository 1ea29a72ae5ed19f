"""Every example runs as a script and prints what it is about."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.usefixtures("short_chains")
PRINTED = {
    "penguins.py": (
        "Adelie ",
        "The number of records is private.",
        "Penguins with flippers longer than 200 mm: ",
    ),
    "framework.py": ("epsilon: 0.5 + 0.25 = 0.75", "OpenDP's noisy counts", "are equal: False"),
    "groups.py": (
        "One entry in the budget: [1.0]",
        "Torgersen",
        "P(Adelie is more frequent on Dream than on Biscoe) = ",
    ),
    "tables.py": (
        "Posterior of 6 cells ┆ KNormParameters ┆ 2.0   ┆ 0.5 (MaxDivergence)",
        "│ Republican  ┆ Dole ",
        "P(Dole | Independent) = ",
    ),
    "sampler.py": ("opendp-bayes                  0.437 ± 0.094", "emcee, in order"),
    "mechanisms.py": (
        "Laplace, discrete                       2      0.0943",
        "Hellinger, smooth (EHDS), γ = 1",
    ),
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_example(name, tmp_path, monkeypatch, capsys):
    """As the main program, and with no other module beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    if name == "sampler.py":
        shorten_chains(monkeypatch)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for part in PRINTED[name]:
        assert part in printed


def shorten_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a quarter of the steps: what is printed of chains is not compared."""
    from emcee import EnsembleSampler

    run = EnsembleSampler.run_mcmc
    monkeypatch.setattr(
        EnsembleSampler, "run_mcmc", lambda self, start, steps: run(self, start, steps // 4)
    )
