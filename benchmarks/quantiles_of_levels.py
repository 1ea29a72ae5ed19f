"""Measure how often 95 % intervals of quantiles from `ob.levels` hold the truth, and how far their
medians are from it, by ε and the number of records; `--releases 100` are made of each setting.

Arguments are names of shapes; by default all are measured, which takes about an hour.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from reporting import table
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace

BINS, LEVELS = 60, (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
#: Laws of a value between 0 and 1.
SHAPES: dict[str, Any] = {
    "lognormal": stats.lognorm(0.5, scale=0.33),
    "exponential": stats.expon(scale=1 / 6),
    "normal": stats.norm(0.5, 0.15),
    "uniform": stats.uniform(),
}
SETTINGS = ((500, 0.8), (2000, 0.1), (500, 3.2), (500, 0.2))
QUESTIONS = ob.levels("x", list(range(BINS)))


def shares_of(shape: str) -> Floats:
    """Probabilities of the bins."""
    shares = np.diff(SHAPES[shape].cdf(np.linspace(0, 1, BINS + 1)))
    return np.asarray(shares / shares.sum())


def released(true: Integers, epsilon: float, rng: np.random.Generator) -> Any:
    """The posterior of the bins from noisy counts of all levels."""
    releases = {}
    for name, question in QUESTIONS.items():
        scale, merge = 1 / (epsilon * question["share"]), question.get("merge")
        counts = true if merge is None else np.array([true[part].sum() for part in merge.values()])
        drawn = counts + DiscreteLaplace(scale).simulate(counts.shape, rng)
        releases[name] = ob.noisy_counts(
            drawn.tolist(), range(BINS), mechanism="laplace_parameters", scale=scale, merge=merge
        )
    return ob.combine_tables(releases)["x"]


def rows(shapes: list[str], releases: int) -> Iterator[tuple[Any, ...]]:
    edges = np.arange(BINS + 1.0)
    for (records, epsilon), shape in product(SETTINGS, shapes):
        rng = np.random.default_rng([records, round(1000 * epsilon)])
        shares = shares_of(shape)
        truth = np.interp(LEVELS, np.append(0, np.cumsum(shares)), edges)
        held, errors, warned = [], [], 0
        start = time.process_time()
        for _ in range(releases):
            posterior = released(rng.multinomial(records, shares), epsilon, rng)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = posterior.quantiles(LEVELS, edges=edges).values()
            warned += any("quantiles" in str(one.message) for one in said)
            lower, upper = np.array([one.value.interval(0.95) for one in found]).T
            held.append((lower <= truth) & (truth <= upper))
            errors.append(np.array([one.value.median() for one in found]) - truth)
        covered = np.mean(held, axis=0)
        error = float(np.sqrt(np.mean(np.square(errors))))
        each = " / ".join(f"{share:.2f}" for share in covered)
        row = (
            shape, str(records), str(epsilon), f"{covered.mean():.3f}", each, f"{error:.2f}",
            f"{warned / releases:.2f}",
        )  # fmt: skip
        print(*row, f"{(time.process_time() - start) / releases:.1f} s", flush=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", choices=[[], *SHAPES], help="names of shapes")
    parser.add_argument("--releases", type=int, default=100, help="of each setting")
    given = parser.parse_args()
    table(
        "Quantiles of levels",
        ("shape", "records", "ε", "coverage", "by quantile", "error", "warned"),
        list(rows(given.shapes or list(SHAPES), given.releases)),
        f"{BINS} bins, levels of single bins and of groups of ten, add/remove neighbours. Coverage"
        f" is that of 95 % intervals of the quantiles {', '.join(map(str, LEVELS))}, error the"
        " root mean square of their medians in bins; warned is the share of releases with a"
        " warning.",
    )


if __name__ == "__main__":
    main()
