"""Measure how often credible intervals hold the truth, noise-aware and plug-in, and write
docs/research/coverage.csv, and from it the beginning of docs/research/coverage.md. This takes about
an hour on two cores. Arguments are names of mechanisms: only their rows are made anew.
"""

import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

from reporting import markdown
from rich.progress import track
from scipy import stats

from opendp_bayes.inference.likelihood.of_counts import LARGEST_COMPARED
from opendp_bayes.mathematics.simplex import number_of_candidates

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.calibration import LEVELS, MECHANISMS, Cell, coverage, plug_in, simulate  # noqa: E402

CATEGORIES, SIZES, EPSILONS = (2, 3, 7), (50, 200, 2000), (0.1, 1.0)
CELLS = [Cell(*setting) for setting in product(MECHANISMS, CATEGORIES, SIZES, EPSILONS)]
#: Simulations of one cell, and where a posterior takes longer, for three and for seven categories.
DRAWS, FEW_DRAWS = 300, {3: 100, 7: 40}

PAGE = ROOT / "docs" / "research" / "coverage.md"
TABLE = PAGE.with_suffix(".csv")
COLUMNS = (
    *("mechanism", "k", "n", "epsilon", "aware 50", "aware 90", "aware 95", "uniform"),
    *("plug-in 50", "plug-in 90", "plug-in 95"),
)
TEXT = f"""# Coverage

How often, in percent of simulations, an equal-tailed credible interval of `release.posterior` holds
the true probability. The probabilities are drawn from the prior, uniform on the simplex, the data
from the probabilities and the release from the data. The scale of a mechanism is that of its proven
ε, and of Gaussian noise that of $\\rho = \\varepsilon^2 / 2$. Where the number of records is
private it is $n$ in every simulation, and every number is equally probable under the prior.
Written by `python benchmarks/coverage.py`; [coverage.csv](coverage.csv) has
every setting.

There are at least {DRAWS} simulations of a setting, or {FEW_DRAWS[3]} ($k = 3$) and {FEW_DRAWS[7]}
($k = 7$) where a posterior takes longer: a private $n$, or an exponential mechanism with too many
data sets to list. The standard error of 95 % is then at most 1.3, 2.2 and 3.4, and of 50 % 2.9, 5.0
and 7.9. Means over all settings; "uniform" is the smallest p-value of Kolmogorov's test that the
posterior probability of lying below the truth is uniform:

"""


def draws(cell: Cell) -> int:
    listed = number_of_candidates(cell.size, cell.k) <= LARGEST_COMPARED
    slow = not cell.public or (cell.exponential and not listed)
    return FEW_DRAWS[cell.k] if cell.k > 2 and slow else DRAWS


def line(cell: Cell, seed: int) -> list[str] | None:
    """A row of the file, or None where the mechanism refuses."""
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
    setting = [cell.mechanism, str(cell.k), str(cell.size), str(cell.epsilon)]
    return [*setting, *shares[:3], f"{uniform:.2g}", *shares[3:]]


def main() -> None:
    names = sys.argv[1:] or MECHANISMS
    # A cell has its seed, whichever others are simulated.
    seeds = {cell: seed for seed, cell in enumerate(CELLS) if cell.mechanism in names}
    with ProcessPoolExecutor(2) as pool:
        found = list(track(pool.map(line, seeds, seeds.values()), "simulating", total=len(seeds)))
    rows = {name: [row for row in read() if row[0] == name] for name in MECHANISMS}
    rows |= {name: [row for row in found if row and row[0] == name] for name in names}
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [COLUMNS, *(r for of in rows.values() for r in of)]
        )
    # The section of rare categories has a benchmark of its own.
    _, title, rare = PAGE.read_text(encoding="utf-8").partition("\n## Rare categories")
    PAGE.write_text(page(read()) + title + rare, encoding="utf-8")


def read() -> list[list[str]]:
    """The rows of the file."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def page(rows: list[list[str]]) -> str:
    """The beginning of the page."""
    means = []
    for name in MECHANISMS:
        own = [[float(number) for number in row[4:]] for row in rows if row[0] == name]
        mean = [f"{sum(column) / len(own):.1f}" for column in zip(*own, strict=True)]
        means.append([name, len(own), *mean[:3], f"{min(of[3] for of in own):.2g}", mean[-1]])
    head = ["", "settings", "50 %", "90 %", "95 %", "uniform", "plug-in 95 %"]
    return f"{TEXT}{markdown(head, means)}"


if __name__ == "__main__":
    main()
