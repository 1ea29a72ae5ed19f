"""Measure how often intervals of the true counts of joint tables hold them, beside the probability
that the posterior gives them, and write that section of docs/research/coverage.md. It takes about a
minute.
"""

import sys
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reporting import section
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mathematics.validation import Integers

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.releases import guarantee  # noqa: E402

DRAWS, LEVELS = 150, (0.5, 0.95)
TITLE = "## True counts\n"
TEXT = f"""
Intervals of `release.posterior.counts`, the finite population, in joint tables: of the cells, of
the values of the first variable, and of the number of records where it is private. {DRAWS}
simulations of each row, with probabilities drawn from the prior, 0.5 in every cell; a private
number of records is drawn from the Poisson distribution with mean $n$, which the posterior has as
`records_prior`.
Counts are whole numbers, so an interval holds more than its level: beside the share of intervals
that hold the true count stands the mean probability that the posterior gives them, in percent. The
cells of a table are not independent; the standard error of a share is at most 4.1 for 50 %, 1.8 for
95 %. Written by `python benchmarks/coverage_of_counts.py`.

"""


class Setting(NamedTuple):
    """A table, its number of records, and a mechanism of which the second is the name."""

    shape: tuple[int, int]
    size: int
    name: str
    mechanism: ob.Mechanism
    private: bool = False


SETTINGS = (
    Setting((2, 2), 500, "K-norm, scale 1", ob.KNormParameters(1.0)),
    Setting((3, 7), 900, "K-norm, scale 5", ob.KNormParameters(5.0)),
    Setting((3, 7), 900, "Gaussian, scale 10", ob.GaussianParameters(10.0)),
    Setting((3, 7), 900, "Laplace, scale 5", ob.LaplaceParameters(5.0, total="private"), True),
    Setting((3, 7), 900, "Gaussian, scale 10", ob.GaussianParameters(10.0, total="private"), True),
)


def simulated(made: Setting, rng: np.random.Generator) -> list[tuple[Any, Integers]]:
    """Posteriors of the counts of the cells, of the values of the first variable and of all, where
    that is private; and the true counts.
    """
    rows, columns = made.shape
    k = rows * columns
    size = int(rng.poisson(made.size)) if made.private else made.size
    counts = rng.multinomial(size, rng.dirichlet(np.full(k, 0.5)))
    prior = (0.5,) * k
    drawn = made.mechanism.sample(counts, prior)[0]
    labels = tuple(product(range(rows), range(columns)))
    release = ob.Release(
        tuple(drawn.tolist()), labels, prior, made.mechanism,
        guarantee(None if made.private else size), ("row", "column"),
    )  # fmt: skip
    known = stats.poisson(made.size) if made.private else None
    posterior = ob.noise_aware_posterior(release, records_prior=known)
    asked: list[tuple[Any, Integers]] = [(posterior.counts, counts)]
    asked.append((posterior.marginal("row").counts, counts.reshape(made.shape).sum(axis=1)))
    if made.private:
        asked.append((posterior.records, np.array([size])))
    return asked


def held(law: Any, truth: Integers, level: float) -> tuple[float, float]:
    """The share of true counts in the intervals, and the mean probability of these."""
    lower, upper = (np.atleast_1d(end) for end in law.interval(level))
    inside = (lower <= truth) & (truth <= upper)
    said = law.cdf(upper) - law.cdf(lower - 1)
    return float(inside.mean()), float(np.mean(np.diag(np.atleast_2d(said))))


def line(made: Setting) -> str:
    """A row of the table."""
    rng = np.random.default_rng(3)
    shares = np.mean(
        [
            [held(law, truth, level) for law, truth in simulated(made, rng) for level in LEVELS]
            for _ in range(DRAWS)
        ],
        axis=0,
    )
    words = [f"{100 * share:.1f}, {100 * said:.1f}" for share, said in shares]
    words += ["public"] * (6 - len(words))
    table = f"{made.shape[0]} × {made.shape[1]}"
    return f"| {' | '.join([made.name, table, str(made.size), *words])} |"


def main() -> None:
    header = ["mechanism", "cells", "$n$"]
    header += [f"{of}, {100 * p:g} %" for of in ("cells", "rows", "all") for p in LEVELS]
    table = [f"| {' | '.join(header)} |", "|" + "---|" * len(header), *map(line, SETTINGS)]
    section(ROOT / "docs" / "research" / "coverage.md", TITLE, TEXT + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
