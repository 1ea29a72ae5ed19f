"""One posterior of overlapping tables: coverage of a regression on synthetic records, effective
draws a second, and errors beside those of each table alone.
"""

import itertools
import math
import sys
import warnings
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
from reporting import table
from scipy import stats

import opendp_bayes as ob

#: Releases of the regression, and records and copies of each.
RUNS, RECORDS, COPIES = 100, 2000, 20
TRUE = np.array([0.0, 1.0, 0.0])
#: Ten variables of a survey and ten tables of pairs, of up to 100 cells; every variable is in one.
LEVELS = (10, 8, 6, 5, 10, 4, 7, 3, 10, 9)
TREE = ((0, 1), (1, 2), (2, 3), (3, 4), (3, 5), (5, 6), (6, 7), (7, 8), (0, 9))
TABLES = (*TREE, (2,))


def released(levels: Sequence[int], data: Any, scope: Sequence[int], mechanism: Any) -> Any:
    """A release of a table of some columns of coded records, whose variables are named v0, v1 …"""
    shape = [levels[v] for v in scope]
    cells = np.ravel_multi_index(data[:, list(scope)].T, shape)
    counts = np.bincount(cells, minlength=math.prod(shape))
    drawn = mechanism.draw(counts, np.ones(counts.size), 1)[0]
    loss = ob.PrivacyLoss(math.inf, 1.0, math.inf)  # not read
    promise = ob.Promise(len(data), 1, loss, "ZeroConcentratedDivergence")
    labels: Any = list(itertools.product(*map(range, shape)))
    if len(scope) == 1:
        labels = [cell[0] for cell in labels]
    axes = tuple(f"v{v}" for v in scope) if len(scope) > 1 else ()
    ones = (1.0,) * counts.size
    return ob.Release(tuple(drawn.tolist()), tuple(labels), ones, mechanism, promise, axes)


def fitted(frame: Any) -> tuple[Any, Any]:
    """Coefficients of a logistic regression of v2 on v0 and v1, and their variances."""
    cells = frame["v0"] * 4 + frame["v1"] * 2 + frame["v2"]
    counts = np.bincount(cells.to_numpy(), minlength=8).reshape(4, 2) * 1.0
    design = np.array([[1.0, a, b] for a in (0, 1) for b in (0, 1)])
    beta, total = np.zeros(3), counts.sum(axis=1)
    for _ in range(30):
        p = 1 / (1 + np.exp(-design @ beta))
        weight = total * p * (1 - p)
        information = design.T @ (weight[:, None] * design) + 1e-9 * np.eye(3)
        beta = np.clip(beta + np.linalg.solve(information, design.T @ (counts[:, 1] - total * p)),
                       -15, 15)  # fmt: skip
    return beta, np.diag(np.linalg.inv(information))


def regression(epsilon: float, kind: Any) -> list[Any]:
    """Coverage of 95 % intervals of both coefficients, their width, and seconds a run."""
    rng = np.random.default_rng(1)
    covered, width, took = np.zeros(2), np.zeros(2), 0.0
    for run in range(RUNS):
        pair = rng.integers(2, size=(RECORDS, 2))
        p = 1 / (1 + np.exp(-(TRUE[0] + pair @ TRUE[1:])))
        data = np.column_stack([pair, rng.random(RECORDS) < p]).astype(int)
        release = released((2, 2, 2), data, (0, 1, 2), ob.LaplaceParameters(2 / epsilon))
        start = process_time()
        posterior = ob.survey_posterior({"all": release})
        frames = posterior.synthetic(COPIES, kind, seed=run)
        took += process_time() - start
        each, own = map(np.array, zip(*map(fitted, frames), strict=True))
        lower, upper = ob.combine_estimates(each, own, kind=kind).interval()
        covered += ((lower <= TRUE) & (upper >= TRUE))[1:]
        width += (upper - lower)[1:]
    return [epsilon, kind, *(f"{x:.3f}" for x in covered / RUNS), *(width / RUNS), took / RUNS]


def survey(size: int, rng: Any) -> Any:
    """Coded records whose pairs on `TREE` depend on each other, and others through them."""
    data = np.zeros((size, len(LEVELS)), dtype=int)
    data[:, 0] = rng.choice(LEVELS[0], size, p=rng.dirichlet(np.ones(LEVELS[0])))
    for parent, child in TREE:
        shares = rng.dirichlet(np.full(LEVELS[child], 1.0), LEVELS[parent])
        level = rng.random((size, 1)) > shares.cumsum(axis=1)[data[:, parent]]
        data[:, child] = np.minimum(level.sum(axis=1), LEVELS[child] - 1)
    return data


def ten_tables(size: int, mechanism: Any) -> list[Any]:
    """Effective draws, seconds, and errors of the joint posterior and of each table alone."""
    rng = np.random.default_rng(3)
    data = survey(size, rng)
    releases = {f"t{at}": released(LEVELS, data, scope, mechanism)
                for at, scope in enumerate(TABLES[:-1])}  # fmt: skip
    releases["v2"] = released(LEVELS, data, (2,), mechanism)
    start = process_time()
    with warnings.catch_warnings(record=True) as loose:
        warnings.simplefilter("always")
        posterior = ob.survey_posterior(releases)
    took = process_time() - start
    cells, margins, covered = [], [], []
    for scope in TABLES[:-1]:
        names = [f"v{v}" for v in scope]
        truth = np.histogramdd(data[:, list(scope)], [np.arange(LEVELS[v] + 1) for v in scope])[0]
        counts = posterior.marginal(*names).counts
        alone = np.maximum(np.array(releases[f"t{TABLES.index(scope)}"].drawn), 0)
        alone = (alone * size / alone.sum()).reshape(truth.shape)
        joint = counts.mean().reshape(truth.shape)
        cells.append([((one - truth) ** 2).mean() for one in (joint, alone)])
        for axis in (0, 1):
            margins.append([((one - truth).sum(axis=axis) ** 2).mean() for one in (joint, alone)])
        lower, upper = counts.interval()
        covered.append(((lower <= truth.ravel()) & (truth.ravel() <= upper)).mean())
    worst = min(posterior.effective_draws[f"v{v}",] for v in range(len(LEVELS)))
    of_cells = min(posterior.effective_draws.values())
    errors = [x for pair in (cells, margins) for x in np.sqrt(np.mean(pair, axis=0))]
    name = f"{mechanism.name} {mechanism.scale:g}"
    loose_of = len(loose)
    return [size, name, took, worst, worst / took, of_cells, *errors,
            f"{np.mean(covered):.3f}", loose_of]  # fmt: skip


def main() -> None:
    table(
        "Logistic regression on synthetic records",
        ["ε", "kind", "coverage of 1", "coverage of 0", "width of 1", "width of 0", "s a run"],
        [
            regression(epsilon, kind)
            for epsilon in (0.1, 0.5, 1.0)
            for kind in ("population", "predictive")
        ],
        f"Three binary columns, {RECORDS} records, one table of all; {RUNS} releases with Laplace"
        f" noise, {COPIES} copies each. Nominal 0.95, standard error"
        f" {math.sqrt(0.95 * 0.05 / RUNS):.3f}. Seconds of the processor, posterior and copies.",
    )
    sizes = (6000, 1_000_000) if "--quick" not in sys.argv else (6000,)
    table(
        "Ten tables of ten variables",
        [
            "records",
            "noise",
            "s",
            "draws, margins",
            "a second",
            "draws, cells",
            "error, cells",
            "alone",
            "error, margins",
            "alone ",
            "coverage",
            "warnings",
        ],
        [
            ten_tables(size, mechanism)
            for size in sizes
            for mechanism in (ob.GaussianParameters(20.0), ob.LaplaceParameters(20.0))
        ],
        "Effective draws of the worst cell of a margin and of a table. Errors are root mean"
        " squares of counts; alone: the table's noisy counts, those below 0 set to 0, scaled to"
        " the number of records.",
    )


if __name__ == "__main__":
    _ = stats  # loads slowly, so not while the clock runs
    main()
