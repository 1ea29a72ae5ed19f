"""Measure how often credible intervals hold the truth where categories are rare or data sets are
many, and write that section of docs/research/coverage.md. This takes some minutes.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from reporting import section
from rich.progress import track
from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.calibration import LEVELS, RARE, Cell, coverage, plug_in, simulate  # noqa: E402

DRAWS = 300
TITLE = "## Rare categories and many data sets\n"
TEXT = f"""
As above, with {DRAWS} simulations of each row and probabilities drawn from the prior that is
stated: categories that are mostly empty, or too many data sets to list.
Written by `python benchmarks/coverage_of_rare.py`.

"""


def line(cell: Cell) -> str:
    """A row of the table."""
    prior = RARE[cell]
    ranks, by_plug_in = (
        simulate(cell, DRAWS, 2, prior),
        simulate(cell, DRAWS, 2, prior, cdf=plug_in),
    )
    shares = [
        f"{100 * coverage(values, level):.1f}" for values in (ranks, by_plug_in) for level in LEVELS
    ]
    uniform = min(stats.kstest(column, "uniform").pvalue for column in ranks.T)
    words = [f"{number:g} × {prior.count(number)}" for number in dict.fromkeys(prior)]
    columns = [cell.mechanism, cell.k, cell.size, f"{cell.epsilon:.3g}", ", ".join(words)]
    return " | ".join(["", *map(str, columns), *shares[:3], f"{uniform:.2g}", *shares[3:], ""])


def main() -> None:
    with ProcessPoolExecutor(2) as pool:
        rows = list(track(pool.map(line, RARE), "simulating", total=len(RARE)))
    aware, plug = ([f"{who}, {100 * p:g} %" for p in LEVELS] for who in ("noise-aware", "plug-in"))
    header = ["mechanism", "$k$", "$n$", "ε", "prior", *aware, "uniform", *plug]
    table = [f"| {' | '.join(header)} |", "|" + "---|" * len(header), *map(str.strip, rows)]
    section(ROOT / "docs" / "research" / "coverage.md", TITLE, TEXT + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
