"""What groups gain by borrowing strength, and what it costs: the table of docs/pooling.md."""

import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from reporting import table

import opendp_bayes as ob

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from releases import promise  # noqa: E402

GROUPS, LABELS, KAPPA = 100, ("a", "b", "c", "d", "e"), 20.0
LEAST, MOST = 5, 50


def simulated(seed: int) -> tuple[Any, Any]:
    """Probabilities of every group, and counts."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(KAPPA * rng.dirichlet(np.full(len(LABELS), 5.0)), GROUPS)
    sizes = rng.integers(LEAST, MOST + 1, GROUPS)
    return theta, np.array([rng.multinomial(n, of) for n, of in zip(sizes, theta, strict=True)])


def of_groups(counts: Any, epsilon: float) -> tuple[Any, Any]:
    """A grouped release with a private number of records, and the means of each group alone."""
    prior, mechanism = (1.0,) * len(LABELS), ob.LaplaceParameters(1 / epsilon, total="private")
    drawn = mechanism.draw(counts.ravel(), 1.0).reshape(counts.shape)
    rows, groups = tuple(map(tuple, drawn.tolist())), tuple(range(GROUPS))
    release = ob.GroupedRelease(groups, rows, LABELS, prior, mechanism, promise(None))
    return release.pooled, [one.posterior.mean() for one in release.values()]


def of_table(counts: Any, epsilon: float) -> tuple[Any, Any]:
    """A joint table with a public number of records, and the means given each group alone."""
    mechanism, cells = (
        ob.KNormParameters(1 / epsilon),
        [(g, c) for g in range(GROUPS) for c in LABELS],
    )
    drawn = tuple(mechanism.draw(counts.ravel(), 1.0)[0].tolist())
    promised, prior = promise(int(counts.sum())), (1.0,) * len(cells)
    release = ob.Release(drawn, tuple(cells), prior, mechanism, promised, ("group", "answer"))
    given = [release.posterior.conditional("answer", group=group) for group in range(GROUPS)]
    return lambda: release.pooled(by="group"), [one.mean() for one in given]


def measured(kind: Any, epsilon: float, seed: int) -> list[Any]:
    theta, counts = simulated(seed)
    pool, alone = kind(counts, epsilon)
    start = process_time()
    pooled = pool()
    spent = process_time() - start
    means = np.array([one.mean() for one in pooled.values()])
    ends = np.array([one.interval() for one in pooled.values()])
    held = np.mean((ends[:, 0] <= theta) & (theta <= ends[:, 1]))
    errors = [float(np.mean((of - theta) ** 2)) for of in (means, np.array(alone))]
    found = pooled.diagnostics
    return [*(f"{error:.5f}" for error in errors), f"{100 * held:.0f} %", spent, *_of(found)]


def _of(found: Any) -> list[str]:
    return [f"{found.ess.min():.0f}", f"{found.r_hat.max():.3f}"]


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # the last columns say what the chains are worth
    rows = [
        [name, f"{epsilon:g}", *measured(kind, epsilon, seed=7)]
        for name, kind in (("groups, n private", of_groups), ("table, n public", of_table))
        for epsilon in (1.0, 0.5, 0.1)
    ]
    table(
        "Groups that borrow strength",
        ["release", "ε", "pooled", "alone", "held", "time, s", "draws", "R-hat"],
        rows,
        f"{GROUPS} groups of {LEAST} to {MOST} records, {len(LABELS)} categories, κ = {KAPPA:g}."
        " Mean squared error of the posterior means of the probabilities, pooled and of each group"
        " alone (prior 1), and how often pooled 95 % intervals hold them. Laplace noise for groups,"
        " K-norm noise for the table. Time on the processor (wanted: 30 s), the fewest effective"
        " draws of ln κ and the entries of m, and the largest R-hat.",
    )


if __name__ == "__main__":
    main()
