"""Measure how often credible intervals hold the truth, noise-aware and plug-in, and write
docs/research/coverage.md. This takes about an hour on two cores. Arguments are names of mechanisms:
only their sections are made anew.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

from rich.progress import track
from scipy import stats

from opendp_bayes.inference.likelihood.of_counts import LARGEST_LIST
from opendp_bayes.mathematics.simplex import number_of_candidates

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.calibration import LEVELS, MECHANISMS, Cell, coverage, plug_in, simulate  # noqa: E402

CATEGORIES, SIZES, EPSILONS = (2, 3, 7), (50, 200, 2000), (0.1, 1.0)
CELLS = [Cell(*setting) for setting in product(MECHANISMS, CATEGORIES, SIZES, EPSILONS)]
#: Simulations of one cell, and where a posterior takes longer, for three and for seven categories.
DRAWS, FEW_DRAWS = 300, {3: 100, 7: 40}

PAGE = f"""# Coverage

Share of simulations in which the equal-tailed credible interval holds the true probability: of
`release.posterior`, and of `release.plug_in`, which takes the released counts for the data.
Written by `python benchmarks/coverage.py`.

The probabilities are drawn from the prior, uniform on the simplex, the data from the probabilities
and the release from the data. The scale of every mechanism is that of its proven ε, and of Gaussian
noise, which has none, that of $\\rho = \\varepsilon^2 / 2$. Where the number of records is private
it is $n$ in every simulation, and the posterior has the default prior on it, under which every
number is equally probable.

Shares are over all categories of at least {DRAWS} simulations, or {FEW_DRAWS[3]} ($k = 3$) and
{FEW_DRAWS[7]} ($k = 7$) where a posterior takes longer. It does where the number of records is
private, and for an exponential mechanism with too many data sets to list. With {DRAWS},
{FEW_DRAWS[3]} and {FEW_DRAWS[7]} simulations the standard error of a nominal 95 % is at most 1.3,
2.2 and 3.4 percent, and of a nominal 50 % at most 2.9, 5.0 and 7.9. The categories of one
simulation are not independent, but an average over them has a smaller error than one of them.

The posterior probability of lying below the truth is uniform if the posterior is right. "Uniform"
is the smallest p-value, over the categories, of Kolmogorov's test of that.

"""
REFUSED = """## Refused

These mechanisms refuse: nearly every release
[would ignore the data](mechanisms.md#many-candidates), or permute-and-flip would have to list more
than $10^6$ candidates.

| mechanism | $k$ | $n$ | ε |
|---|---|---|---|
"""


def draws(cell: Cell) -> int:
    listed = number_of_candidates(cell.size, cell.k) <= LARGEST_LIST
    slow = not cell.public or (cell.exponential and not listed)
    return FEW_DRAWS[cell.k] if cell.k > 2 and slow else DRAWS


def line(cell: Cell, seed: int) -> str | None:
    """A row of the table, or None where the mechanism refuses."""
    if not cell.runs():
        return None
    ranks, by_plug_in = (
        simulate(cell, draws(cell), seed),
        simulate(cell, draws(cell), seed, cdf=plug_in),
    )
    shares = [
        f"{100 * coverage(values, level):.1f}" for values in (ranks, by_plug_in) for level in LEVELS
    ]
    uniform = min(stats.kstest(column, "uniform").pvalue for column in ranks.T)
    return (
        f"| {cell.k} | {cell.size} | {cell.epsilon} | {' | '.join(shares[:3])} | {uniform:.2g} |"
        f" {' | '.join(shares[3:])} |"
    )


def main() -> None:
    names = sys.argv[1:] or MECHANISMS
    # A cell has its seed, whichever others are simulated.
    seeds = {cell: seed for seed, cell in enumerate(CELLS) if cell.mechanism in names}
    with ProcessPoolExecutor(2) as pool:
        rows = pool.map(line, seeds, seeds.values())
        lines = dict(zip(seeds, track(rows, "simulating", total=len(seeds)), strict=True))
    path = ROOT / "docs" / "research" / "coverage.md"
    # The section of rare categories has a benchmark of its own.
    old, title, rare = path.read_text(encoding="utf-8").partition("\n## Rare categories")
    before = old if sys.argv[1:] else ""
    path.write_text(page(lines, before) + title + rare, encoding="utf-8")


def page(lines: dict[Cell, str | None], before: str) -> str:
    """The page with the lines of some mechanisms, and the sections of the others as before."""
    old = {part.partition("\n")[0]: f"## {part}" for part in before.split("\n## ")[1:]}
    aware, plug_in = (
        [f"{who}, {100 * level:g} %" for level in LEVELS] for who in ("noise-aware", "plug-in")
    )
    header = ["$k$", "$n$", "ε", *aware, "uniform", *plug_in]
    text = PAGE
    for name in MECHANISMS:
        rows = [row for cell, row in lines.items() if cell.mechanism == name and row]
        if not rows:
            text += old.get(name, "").rstrip() + "\n\n"
            continue
        text += "\n".join(
            [
                f"## {name}",
                "",
                f"| {' | '.join(header)} |",
                "|" + "---|" * len(header),
                *rows,
                "",
                "",
            ]
        )
    refused = [
        f"| {cell.mechanism} | {cell.k} | {cell.size} | {cell.epsilon} |"
        for cell in CELLS
        if not cell.runs()
    ]
    return text + REFUSED + "\n".join(refused) + "\n"


if __name__ == "__main__":
    main()
