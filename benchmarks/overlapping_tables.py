"""One posterior of overlapping tables: coverage of a regression on synthetic records; and of ten
tables of a real survey effective draws, coverage, and errors beside those of each table alone and
of mbi (`pip install mbi`), an estimate without intervals from the same noisy tables.
"""

import itertools
import math
import tempfile
import warnings
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
from reporting import table
from scipy import stats
from statsmodels.datasets import anes96

import opendp_bayes as ob
from opendp_bayes.surveys.joint_posterior import survey_posterior

#: Releases of the regression, and records and copies of each.
RUNS, RECORDS, COPIES = 250, 2000, 20
TRUE = np.array([0.0, 1.0, 0.0])
#: Ten variables of the American National Election Study of 1996, in up to 12 classes.
CLASSES = {"popul": (0, 1, 10, 50, 200, 1000), "income": range(1, 25, 2), "age": range(18, 90, 9)}
NAMES = ("vote", "PID", "selfLR", "ClinLR", "DoleLR", "educ", "income", "age", "TVnews", "popul")
TREE = ((0, 1), (1, 2), (2, 3), (2, 4), (1, 5), (5, 6), (6, 7), (7, 8), (6, 9))
TABLES = (*TREE, (0,))


def released(levels: Sequence[int], data: Any, scope: Sequence[int], mechanism: Any) -> Any:
    """A release of a table of some columns of coded records, whose variables are named v0, v1 …"""
    shape = [levels[v] for v in scope]
    cells = np.ravel_multi_index(data[:, list(scope)].T, shape)
    counts = np.bincount(cells, minlength=math.prod(shape))
    drawn = mechanism.draw(counts, np.ones(counts.size), 1)[0]
    loss = ob.PrivacyLoss(math.inf, 1.0, math.inf)  # not read
    private = getattr(mechanism, "total", None) == "private"
    guarantee = ob.PrivacyGuarantee(
        None if private else len(data), 1, loss, "ZeroConcentratedDivergence"
    )
    labels: Any = list(itertools.product(*map(range, shape)))
    if len(scope) == 1:
        labels = [cell[0] for cell in labels]
    axes = tuple(f"v{v}" for v in scope) if len(scope) > 1 else ()
    ones = (1.0,) * counts.size
    return ob.Release(tuple(drawn.tolist()), tuple(labels), ones, mechanism, guarantee, axes)


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


def regression(epsilon: float) -> list[list[Any]]:
    """Coverage of 95 % intervals of both coefficients, their width, and seconds a run, by both
    kinds of copies.
    """
    rng = np.random.default_rng(1)
    kinds: tuple[Any, ...] = ("population", "predictive")
    covered, width, took = np.zeros((2, 2)), np.zeros((2, 2)), 0.0
    for run in range(RUNS):
        pair = rng.integers(2, size=(RECORDS, 2))
        p = 1 / (1 + np.exp(-(TRUE[0] + pair @ TRUE[1:])))
        data = np.column_stack([pair, rng.random(RECORDS) < p]).astype(int)
        release = released((2, 2, 2), data, (0, 1, 2), ob.LaplaceParameters(2 / epsilon))
        start = process_time()
        posterior = survey_posterior({"all": release})
        took += process_time() - start
        for at, kind in enumerate(kinds):
            frames = posterior.synthetic(COPIES, kind, random_state=run)
            each, own = map(np.array, zip(*map(fitted, frames), strict=True))
            lower, upper = ob.combine_estimates(each, own, kind=kind).interval()
            covered[at] += ((lower <= TRUE) & (upper >= TRUE))[1:]
            width[at] += (upper - lower)[1:]
    return [
        [epsilon, kind, *(f"{x:.3f}" for x in covered[at] / RUNS), *(width[at] / RUNS), took / RUNS]
        for at, kind in enumerate(kinds)
    ]


def answers() -> tuple[Any, tuple[int, ...]]:
    """The survey's records, coded, and the number of levels of each variable."""
    frame = anes96.load_pandas().data
    columns = [np.digitize(frame[name], [*CLASSES[name]][1:]) if name in CLASSES
               else frame[name].astype(int) for name in NAMES]  # fmt: skip
    data = np.column_stack([column - column.min() for column in columns])
    return data, tuple((data.max(axis=0) + 1).tolist())


def population(data: Any, size: int, rng: Any) -> Any:
    """Records whose pairs on `TREE` are those of `data`, and independent given what is between."""
    found = data[rng.integers(len(data), size=size)]
    for parent, child in TREE:
        for level in np.unique(found[:, parent]):
            of, at = data[data[:, parent] == level, child], found[:, parent] == level
            found[at, child] = of[rng.integers(of.size, size=at.sum())]
    return found


def counted(data: Any, levels: Any, scope: Any) -> Any:
    """The table of some columns."""
    bins = [np.arange(levels[v] + 1) for v in scope]
    return np.histogramdd(data[:, list(scope)], bins)[0].reshape(-1)


def by_mbi(releases: Any, levels: Any, size: int) -> tuple[Any, float]:
    """Estimate the counts of any table by mbi's mirror descent: a function, None without mbi, and
    seconds.
    """
    try:
        import jax
    except ImportError:
        return None, math.nan
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    start = process_time()
    domain = mbi.Domain([f"v{v}" for v in range(len(levels))], levels)
    measured = [
        mbi.LinearMeasurement(
            np.array(release.noisy_counts, float),
            tuple(release.axes) or (name,),
            release.mechanism.scale,
        )
        for name, release in releases.items()
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=size, iters=2000)

    def counts(scope: Any) -> Any:
        return np.asarray(model.project(tuple(f"v{v}" for v in scope)).datavector())

    counts(TREE[0])
    return counts, process_time() - start


def ten_tables(size: int, holds: bool) -> tuple[list[Any], list[Any]]:
    """Effective draws, seconds and coverage, and root mean square errors of counts of cells, of
    margins and of pairs that were not measured, of the posterior, of tables alone and of mbi.

    With `holds` the records have the independences that the model assumes.
    """
    rng = np.random.default_rng(3)
    whole, levels = answers()
    if holds:
        whole = population(whole, 1_000_000, rng)
    data = whole[rng.integers(len(whole), size=size)]
    noise = ob.GaussianParameters(20.0)
    releases = {f"t{at}": released(levels, data, scope, noise) for at, scope in enumerate(TREE)}
    releases["v0"] = released(levels, data, (0,), noise)
    start = process_time()
    with warnings.catch_warnings(record=True) as loose:
        warnings.simplefilter("always")
        posterior = survey_posterior(releases)
    took = process_time() - start
    other, others_took = by_mbi(releases, levels, size)
    errors, covered = {}, {"cells": [], "margins": [], "pairs": []}
    pairs = list(itertools.combinations(range(len(levels)), 2))
    for scope in (*TREE, *((v,) for v in range(len(levels))), *(set(pairs) - set(TREE))):
        kind = "margins" if len(scope) == 1 else "cells" if scope in TREE else "pairs"
        table_of, truth = (
            posterior.marginal(*(f"v{v}" for v in scope)),
            counted(data, levels, scope),
        )
        means = [table_of.mean() * size if kind == "pairs" else table_of.counts.mean()]
        if kind == "cells":
            alone = np.maximum(np.array(releases[f"t{TREE.index(scope)}"].noisy_counts), 0)
            means.append(alone * size / alone.sum())
        elif kind == "margins":
            means.append(alone_margin(releases, levels, scope[0], size))
        else:
            means.append(np.full(truth.size, math.nan))
        means.append(other(scope) if other else np.full(truth.size, math.nan))
        errors.setdefault(kind, []).append([((mean - truth) ** 2).mean() for mean in means])
        interval = table_of.interval() if kind == "pairs" else table_of.counts.interval()
        value = counted(whole, levels, scope) / len(whole) if kind == "pairs" else truth
        covered[kind].append(((interval[0] <= value) & (value <= interval[1])).mean())
    worst = min(posterior.ess[f"v{v}",] for v in range(len(levels)))
    name = [size, "yes" if holds else "no"]
    speed = [took, worst, max(posterior.r_hat.values()), len(loose),
             *(f"{np.mean(covered[kind]):.3f}" for kind in covered)]  # fmt: skip
    means_of = {kind: np.sqrt(np.mean(of, axis=0)) for kind, of in errors.items()}
    table_of_errors = [*means_of["cells"], *means_of["margins"], *means_of["pairs"][[0, 2]]]
    return [*name, *speed], [*name, *table_of_errors, others_took]


def alone_margin(releases: Any, levels: Any, v: int, size: int) -> Any:
    """The margin of a variable from the first table that has it, made positive and scaled."""
    at, scope = next((at, scope) for at, scope in enumerate(TREE) if v in scope)
    drawn = np.array(releases[f"t{at}"].noisy_counts).reshape([levels[u] for u in scope])
    drawn = np.maximum(drawn, 0).sum(axis=1 - scope.index(v))
    return drawn * size / drawn.sum()


def six_tables(size: int, total: str) -> list[Any]:
    """Processor seconds, fewest effective draws of a margin and of a cell, and the largest R-hat,
    of six tables of 8 by 8 cells, each of which shares a variable with the next.
    """
    rng, levels = np.random.default_rng(0), (8,) * 7
    data = rng.choice(8, (size, 7), p=rng.dirichlet(np.ones(8)))
    for v in range(6):
        reached = rng.dirichlet(np.ones(8), 8).cumsum(axis=1)[data[:, v], :-1]
        data[:, v + 1] = (reached < rng.random((size, 1))).sum(axis=1)
    noise = ob.LaplaceParameters(12.0, total=total)
    scopes = [(v, v + 1) for v in range(6)]
    releases = {f"t{at}": released(levels, data, scope, noise) for at, scope in enumerate(scopes)}
    start = process_time()
    posterior = survey_posterior(releases)
    took = process_time() - start
    ess = posterior.ess
    margins, cells = ([n for of, n in ess.items() if (len(of) < 2) == one] for one in (True, False))
    return [size, total, took, min(margins), min(cells), max(posterior.r_hat.values())]


def many_records(size: int, copies: int) -> list[Any]:
    """Processor seconds and megabytes of files of new records of the ten variables."""
    data, levels = answers()
    noise = ob.GaussianParameters(20.0)
    releases = {f"t{at}": released(levels, data, scope, noise) for at, scope in enumerate(TREE)}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # of few draws, which are quick to make
        posterior = survey_posterior(releases, ess=20)
        start = process_time()
        paths = posterior.write_synthetic(folder, copies, "predictive", records=size)
        took = process_time() - start
        return [size, copies, took, sum(path.stat().st_size for path in paths) / 1e6]


def main() -> None:
    table(
        "Logistic regression on synthetic records",
        ["ε", "kind", "coverage of 1", "coverage of 0", "width of 1", "width of 0", "s a run"],
        [row for epsilon in (0.1, 0.5, 1.0) for row in regression(epsilon)],
        f"Three binary columns, {RECORDS} records, one table of all; {RUNS} releases with Laplace"
        f" noise, {COPIES} copies each. Nominal 0.95, standard error"
        f" {math.sqrt(0.95 * 0.05 / RUNS):.3f}. Seconds of the processor for the posterior.",
    )
    both = [ten_tables(size, holds) for holds in (True, False) for size in (6000, 1_000_000)]
    table(
        "Ten tables of ten variables of a real survey",
        ["records", "model holds", "s", "draws", "R-hat", "warnings", "cells", "margins", "pairs"],
        [row for row, _ in both],
        "The American National Election Study of 1996, sampled with replacement: nine tables of"
        " pairs with up to 96 cells and one of one variable, each with Gaussian noise of scale 20."
        " Where the model holds, records were made with the pairs of the survey and the"
        " independences that the model assumes. Effective draws of the worst margin, the largest"
        " R-hat of a cell, and how often 95 % intervals held the counts of cells and of margins,"
        " and the population's shares of the 36 pairs that were not measured. The population is a"
        " million records, whose independences hold up to chance, which is as much as the"
        " intervals of a million records are wide.",
    )
    table(
        "Errors of ten tables beside mbi's",
        ["records", "model holds", "cells", "alone", "mbi", "margins", "alone ", "mbi ", "pairs",
         "mbi  ", "mbi, s"],
        [row for _, row in both],
        "Root mean square errors of counts in the records: of measured pairs, margins, and pairs"
        " that were not measured. Alone: the noisy table, those below 0 set to 0, scaled to the"
        " number of records. mbi 2.0: mirror descent, 2000 steps, from the same tables, its"
        " compilation included; at a million records these had not"
        " converged.",
    )  # fmt: skip
    table(
        "Six tables of 8 by 8 cells in a row",
        ["records", "total", "s", "draws of a margin", "draws of a cell", "R-hat"],
        [six_tables(size, total) for total in ("bounded", "private") for size in (2000, 5000)],
        "Seven variables of 8 labels, each of which depends on the one before; tables of neighbours"
        " with Laplace noise of scale 12. Seconds of the processor, fewest effective draws of a"
        " margin of one variable and of a measured cell, and the largest R-hat of any count.",
    )
    table(
        "Synthetic records in Parquet",
        ["records", "copies", "s", "MB"],
        [many_records(10**6, 10), many_records(10**7, 1)],
        "New records of the ten variables. Wanted: 10 million in a minute.",
    )


if __name__ == "__main__":
    _ = stats  # loads slowly, so not while the clock runs
    main()
