"""Measure what groups gain by borrowing strength, and its cost: the table of docs/groups.md."""

import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from reporting import table
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.helpers.releases import guarantee  # noqa: E402

GROUPS, LABELS, KAPPA = 100, ("a", "b", "c", "d", "e"), 20.0
LEAST, MOST = 5, 50
RELEASES = 5
#: Groups, categories and releases where the model itself makes the data.
OWN_GROUPS, OWN_LABELS, OWN_RELEASES = 40, ("a", "b", "c", "d"), 20
#: Few groups of few categories: how many, and the size of all but one, where one has `LEAST`.
FEW_GROUPS, FEW_LABELS, LARGE = 20, ("a", "b", "c"), 100


def simulated(rng: Any) -> tuple[Any, Any]:
    """Probabilities of every group, and counts."""
    theta = rng.dirichlet(KAPPA * rng.dirichlet(np.full(len(LABELS), 5.0)), GROUPS)
    sizes = rng.integers(LEAST, MOST + 1, GROUPS)
    return theta, counted(sizes, theta, rng)


def few(rng: Any) -> tuple[Any, Any]:
    """Simulate few groups of few categories, as large as in `simulated`."""
    return of_sizes(rng.integers(LEAST, MOST + 1, FEW_GROUPS), rng)


def one_small(rng: Any) -> tuple[Any, Any]:
    """Simulate few groups, the last of which is far smaller than the others."""
    return of_sizes(np.append(np.full(FEW_GROUPS - 1, LARGE), LEAST), rng)


def of_sizes(sizes: Any, rng: Any) -> tuple[Any, Any]:
    theta = rng.dirichlet(KAPPA * rng.dirichlet(np.full(len(FEW_LABELS), 5.0)), sizes.size)
    return theta, counted(sizes, theta, rng)


def of_the_model(rng: Any) -> tuple[Any, Any]:
    """Simulate data with κ, m and the sizes of the groups drawn from the default priors."""
    kappa = stats.fisk(1.0, scale=10.0).rvs(random_state=rng)
    m = rng.dirichlet(np.ones(len(OWN_LABELS)))
    theta = rng.dirichlet(np.maximum(kappa * m, 1e-3), OWN_GROUPS)
    records = OWN_GROUPS * (LEAST + MOST) // 2
    bars = np.sort(rng.choice(records + OWN_GROUPS - 1, OWN_GROUPS - 1, replace=False))
    sizes = np.diff(bars, prepend=-1, append=records + OWN_GROUPS - 1) - 1
    return theta, counted(sizes, theta, rng)


def counted(sizes: Any, theta: Any, rng: Any) -> Any:
    return np.array([rng.multinomial(n, of) for n, of in zip(sizes, theta, strict=True)])


def of_groups(counts: Any, labels: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """A grouped release with a private number of records, the means of each group alone, and the
    joint table of the same draw.
    """
    prior, mechanism = (1.0,) * len(labels), ob.LaplaceParameters(1 / epsilon, total="private")
    drawn = mechanism.draw(counts.ravel(), 1.0).reshape(counts.shape)
    rows, groups = tuple(map(tuple, drawn.tolist())), tuple(range(len(counts)))
    release = GroupedRelease(groups, rows, labels, prior, mechanism, guarantee(None))
    joint = joint_table(drawn, labels, mechanism, guarantee(None))
    return release.pooled, [one.posterior.mean() for one in release.values()], joint


def of_table(counts: Any, labels: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """A joint table with a public number of records, the means given each group alone, and the
    table.
    """
    mechanism, groups = ob.KNormParameters(1 / epsilon), range(len(counts))
    drawn = mechanism.draw(counts.ravel(), 1.0)[0].reshape(counts.shape)
    release = joint_table(drawn, labels, mechanism, guarantee(int(counts.sum())))
    given = [release.posterior.conditional("answer", group=group) for group in groups]
    return lambda: release.pooled(by="group"), [one.mean() for one in given], release


def joint_table(drawn: Any, labels: Any, mechanism: Any, promised: Any) -> Any:
    """The release of the table whose rows are groups, with a prior of 1 for each cell."""
    cells = tuple((group, label) for group in range(len(drawn)) for label in labels)
    prior = (1.0,) * len(cells)
    return ob.Release(
        tuple(drawn.ravel().tolist()), cells, prior, mechanism, promised, ("group", "answer")
    )


def measured(kind: Any, labels: Any, epsilon: float, data: Any) -> list[float]:
    """Errors alone, and pooled and learned errors, how often intervals hold and times; effective
    draws of the pooled ones.
    """
    theta, counts = data
    pool, alone, joint = kind(counts, labels, epsilon)
    found = [float(np.mean((np.array(alone) - theta) ** 2))]
    start = process_time()
    pooled = pool()
    found += [*worth_of(list(pooled.values()), theta), process_time() - start]
    start = process_time()
    table = ob.noise_aware_posterior(joint, prior="learned")
    given = [table.conditional("answer", group=group) for group in range(len(counts))]
    found += [*worth_of(given, theta), process_time() - start]
    return [*found, float(pooled.diagnostics.ess.min())]


def worth_of(posteriors: list[Any], theta: Any) -> tuple[float, float]:
    """Squared error of the means, and how often intervals hold, in per cent."""
    means = np.array([one.mean() for one in posteriors])
    ends = np.array([one.interval() for one in posteriors])
    held = 100 * np.mean((ends[:, 0] <= theta) & (theta <= ends[:, 1]))
    return float(np.mean((means - theta) ** 2)), float(held)


def worth(kind: Any, labels: Any, epsilon: float, make: Any, releases: int) -> list[str]:
    """The row of several releases, each of other data."""
    generators = map(np.random.default_rng, range(releases))
    of_each = np.array([measured(kind, labels, epsilon, make(rng)) for rng in generators]).T
    alone, pooled, held, spent, learned, learned_held, learned_spent, draws = of_each
    return [
        f"{pooled.mean():.4f}",
        f"{alone.mean():.4f}",
        f"{np.sum(pooled < alone)} of {releases}",
        f"{np.sum(pooled < learned)} of {releases}",
        f"{held.mean():.0f} %, {held.min():.0f} to {held.max():.0f}",
        f"{spent.min():.0f} to {spent.max():.0f}",
        f"{learned.mean():.4f}",
        f"{learned_held.mean():.0f} %, {learned_held.min():.0f} to {learned_held.max():.0f}",
        f"{learned_spent.min():.0f} to {learned_spent.max():.0f}",
        f"{draws.min():.0f}",
    ]


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # the last columns say what the draws are worth
    rows = [
        [name, f"{epsilon:g}", *worth(kind, LABELS, epsilon, simulated, RELEASES)]
        for name, kind in (("groups, n private", of_groups), ("table, n public", of_table))
        for epsilon in (1.0, 0.5, 0.1)
    ]
    for name, epsilon, make in (
        (f"{FEW_GROUPS} groups", 1.0, few),
        (f"{FEW_GROUPS} groups", 0.1, few),
        (f"{FEW_GROUPS - 1} of {LARGE}, one of {LEAST}", 1.0, one_small),
    ):
        row = worth(of_groups, FEW_LABELS, epsilon, make, OWN_RELEASES)
        rows.append([name, f"{epsilon:g}", *row])
    own = worth(of_table, OWN_LABELS, 0.1, of_the_model, OWN_RELEASES)
    table(
        "Groups that borrow strength",
        [
            "release",
            "ε",
            "pooled",
            "alone",
            "better in",
            "than learned in",
            "held",
            "time, s",
            "learned",
            "learned held",
            "learned s",
            "draws",
        ],
        [*rows, ["table of the model itself", "0.1", *own]],
        f"{GROUPS} groups of {LEAST} to {MOST} records, {len(LABELS)} categories, κ = {KAPPA:g}, in"
        f" {RELEASES} releases of different data. Mean squared error of the posterior means of the"
        " probabilities, pooled and of each group alone (prior 1), and how often pooled 95 %"
        " intervals hold them; learned are the conditional probabilities of the joint table under a"
        " learned prior. Laplace noise for groups, K-norm noise for the table. Time on the"
        " processor (wanted: 30 s), and the fewest effective draws of κ and m."
        f" Three rows are of {FEW_GROUPS} groups of {len(FEW_LABELS)} categories"
        f" in {OWN_RELEASES} releases. In the last row κ, m and the sizes of {OWN_GROUPS} groups"
        f" are drawn from the default priors, anew for each of {OWN_RELEASES} releases of"
        f" {len(OWN_LABELS)} categories.",
    )


if __name__ == "__main__":
    main()
