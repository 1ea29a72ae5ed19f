"""Checks of the figures and experiments of the tailoring paper (claims F1 to F8), by sums over all
releases at its settings: ε = 1 (Figure 4: 5), δ = 1e-8, balanced data, priors of ones.

Two mechanisms can be its "EHDS": Definition 4 (`research.papers.ehds`, weight exp(-εH/4S) with
the 1-smooth sensitivity), and the (ε, δ) mechanism of the notes (`research.papers.beta`).
"""

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from common import (
    check,
    distances,
    ehds,
    floored_laplace,
    hamming,
    laplace_law,
    local,
    notes_mechanism,
    pure_loss,
)

import opendp_bayes as ob
import opendp_bayes_research as research

DELTA = 1e-8


def balanced(n: int, k: int = 2) -> list[int]:
    """33 / 33 / 34 % for three categories, as nearly equal otherwise."""
    return [n // k] * (k - 1) + [n - n // k * (k - 1)]


def mechanisms(n: int, k: int = 2, epsilon: float = 1.0) -> dict[str, ob.Mechanism]:
    return {
        "EHDS": research.papers.ehds(epsilon),
        "(eps, delta)": research.papers.beta(epsilon, DELTA, n),
        "lap": research.papers.lap(epsilon, k),
        "ilap": research.papers.ilap(epsilon, k),
    }


@lru_cache(maxsize=256)
def errors(n: int, k: int = 2, epsilon: float = 1.0, prior: float = 1.0) -> tuple[float, ...]:
    """Mean H of EHDS, the (ε, δ) mechanism, lap and ilap at balanced data."""
    counts = balanced(n, k)
    found = mechanisms(n, k, epsilon).values()
    return tuple(research.error_law(m, counts, prior).mean() for m in found)


def shown(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def masses(n: int, k: int, epsilon: float, steps: float) -> tuple[float, ...]:
    """P(H <= that of `steps` records moved from the first to the second category)."""
    counts = balanced(n, k)
    moved = [counts[0] + steps, counts[1] - steps, *counts[2:]]
    t = float(ob.mechanisms.hellinger_distance(np.add(counts, 1.0), np.add(moved, 1.0))) * (
        1 + 1e-9
    )
    found = mechanisms(n, k, epsilon).values()
    return tuple(float(research.error_law(m, counts, 1.0).cdf(t)) for m in found)


@check("F1")
def sensitivities() -> str:
    prior = [1.0, 1.0]
    largest = ob.mechanisms.global_sensitivity(100, prior)
    local = [ob.mechanisms.local_sensitivity([x, 100 - x], prior) for x in (50, 10, 0)]
    return (
        f"n=100: GS {largest:.4f}, LS {local[0]:.4f} at x=50, {local[1]:.4f} at 10,"
        f" {local[2]:.4f} at 0"
    )


@check("F2")
def where_it_is_largest() -> str:
    n, x = 50, 20
    table = distances(n)
    near = np.nonzero(hamming(n)[x] == 1)[0]
    change = np.abs(table[near] - table[x]).max(axis=0)
    best = np.nonzero(change > change.max() * (1 - 1e-9))[0].tolist()
    return (
        f"n=50, x=20: largest {change.max():.5f} = LS {local(n)[x]:.5f}, at r = BI(y)"
        f" for y in {best}"
    )


def shown_sizes(sizes: list[int]) -> str:
    """Runs of sizes by their ends."""
    runs: list[list[int]] = []
    for n in sizes:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]}..{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


@check("F3a")
def near_candidates() -> str:
    at = {n: masses(n, 2, 1.0, 0) for n in range(2, 301)}
    ahead = [n for n, mass in at.items() if mass[0] > mass[2]]
    first = [f"n={n}: {shown(masses(n, 2, 1.0, 0))}" for n in (6, 100, 1000)]
    within = shown(masses(1000, 2, 1.0, 2))
    return (
        f"P(H = 0) of EHDS above that of lap for n = {shown_sizes(ahead)} of 2..300; of EHDS, the"
        f" (eps, delta) mechanism, lap, ilap: {'; '.join(first)}; within two records, n=1000:"
        f" {within}"
    )


@check("F3b")
def improved_is_better() -> str:
    small = shown(masses(2, 2, 1.0, 0))
    return (
        f"P(H = 0) of EHDS, the (eps, delta) mechanism, lap, ilap: n=2: {small};"
        f" n=20: {shown(masses(20, 2, 1.0, 0))}; n=15000: {shown(masses(15_000, 2, 1.0, 0))}"
    )


@check("F3c")
def three_and_four() -> str:
    ahead = []
    for k, largest in ((3, 40), (4, 40)):
        at = {n: masses(n, k, 1.0, 0) for n in range(2, largest + 1)}
        better = shown_sizes([n for n, mass in at.items() if mass[0] > mass[2]])
        ahead.append(f"k={k}, n = {better} of 2..{largest}")
    parts = [f"k=3, n={n}: {shown(masses(n, 3, 1.0, 0))}" for n in (30, 300, 900)]
    parts.append(f"k=4, n=100: {shown(masses(100, 4, 1.0, 0)[:2])}, {exact_hits(4)}")
    return (
        f"P(H = 0) of EHDS above that of lap for {', '.join(ahead)}; of EHDS, the (eps, delta)"
        f" mechanism, lap, ilap: {'; '.join(parts)}"
    )


def exact_hits(k: int) -> str:
    """P(released = true) of lap and ilap: no noise on k - 1 counts."""
    return ", ".join(f"{((1 - math.exp(-1 / b)) / 2) ** (k - 1):.4f}" for b in (k, 2.0))


@check("F4")
def larger_epsilon() -> str:
    means = [f"n={n}: {shown(errors(n, 2, 5.0))}" for n in (4, 100, 1000)]
    first = shown(masses(100, 2, 5.0, 0))
    return (
        "epsilon=5, mean H of EHDS, the (eps, delta) mechanism, lap, ilap: "
        + "; ".join(means)
        + f"; P(H = 0), n=100: {first}"
    )


@check("F5a")
def errors_fall() -> str:
    sizes = (50, 100, 200, 300, 500, 1000, 2000, 5000, 15_000)
    table = np.array([errors(n) for n in sizes])
    falling = (np.diff(table, axis=0) < 0).all(axis=0)
    names = [name for name, each in zip(mechanisms(2), falling, strict=True) if each]
    small = [round(errors(n)[0], 4) for n in (2, 10, 20, 50)]
    return f"n=50..15000: falling for {', '.join(names)}; EHDS at n=2, 10, 20, 50: {small}"


@check("F5b")
def below_three_hundred() -> str:
    at = {n: errors(n) for n in range(2, 300)}

    def beaten(own: int, by: int) -> str:
        return shown_sizes([n for n, each in at.items() if each[by] < each[own]])

    return (
        f"of n = 2..299 EHDS is beaten by lap at {beaten(0, 2)}, by ilap at {beaten(0, 3)}; the"
        f" (eps, delta) mechanism by lap at {beaten(1, 2)}, by ilap at {beaten(1, 3)}; n=250:"
        f" {shown(at[250])}"
    )


@check("F5c")
def above_three_hundred() -> str:
    at = [f"n={n}: {shown(errors(n)[:3])}" for n in (300, 1000, 15_000)]
    return "mean H of EHDS, the (eps, delta) mechanism, lap: " + "; ".join(at)


@check("F5d")
def asymptotically() -> str:
    at = {n: errors(n) for n in (300, 1000, 15_000)}
    own, notes = (
        ", ".join(f"{values[i] / values[3]:.3f}" for values in at.values()) for i in (0, 1)
    )
    return (
        f"n=300, 1000, 15000: mean H over that of ilap: EHDS {own}, the (eps, delta)"
        f" mechanism {notes};"
        f" difference at 15000: {at[15_000][1] - at[15_000][3]:.4f}"
    )


def deviation(mechanism: ob.Mechanism, counts: list[int]) -> float:
    law = research.error_law(mechanism, counts, 1.0)
    return math.sqrt(float(law.values**2 @ law.probabilities) - law.mean() ** 2)


@check("F5e")
def enough_runs() -> str:
    parts = []
    for n in (250, 300, 1000, 15_000):
        counts, both = balanced(n), mechanisms(n)
        pair = (both["(eps, delta)"], both["lap"])
        means = [research.error_law(m, counts, 1.0).mean() for m in pair]
        error = math.sqrt(sum(deviation(m, counts) ** 2 for m in pair) / 1000)
        parts.append(f"n={n}: {(means[1] - means[0]) / error:.2f}")
    return "lap less the (eps, delta) mechanism in standard errors of 1000 runs: " + ", ".join(
        parts
    )


def limits(k: int) -> tuple[float, float]:
    """Limits of the mean H of EHDS and of lap over the local sensitivity, as n grows: sums over
    the records z that the first k - 1 categories are off, where H is in proportion to a norm.
    """
    z = np.arange(-40 * k, 40 * k + 1)
    squared = np.zeros((1,) * (k - 1))
    total = np.zeros((1,) * (k - 1))
    mass = np.ones((1,) * (k - 1))
    for axis in range(k - 1):
        along = np.expand_dims(z, [i for i in range(k - 1) if i != axis])
        squared, total = squared + along**2, total + along
        mass = mass * floored_laplace(along, k)
    norm = np.sqrt((squared + total**2) / 2)
    weights = np.exp(-norm / 4)
    return float((weights * norm).sum() / weights.sum()), float((mass * norm).sum())


def limit_over_lap(k: int) -> str:
    ours, lap = limits(k)
    return f"EHDS over lap tends to {ours / lap:.3f}"


@check("F6a")
def three_categories() -> str:
    parts = [f"n={n}: {shown(errors(n, 3))}" for n in (10, 30, 150, 300, 600, 900)]
    return (
        f"k=3, mean H of EHDS, the (eps, delta) mechanism, lap, ilap: {'; '.join(parts)};"
        f" {limit_over_lap(3)}"
    )


def lap_of_four(n: int) -> float:
    """Mean H of lap at balanced data: the first three counts are equal and so are their laws, so
    one of all orders of what is released for them stands for the others. Beyond 100 records the
    noise has a probability of 1e-11.
    """
    counts, law = balanced(n, 4), laplace_law(n, balanced(n, 4)[0], 4.0)
    near = range(max(0, counts[0] - 100), min(n, counts[0] + 100) + 1)
    first = np.array(list(combinations_with_replacement(near, 3)))
    orders = np.array([1, 3, 6])[np.diff(first, axis=1).astype(bool).sum(axis=1)]
    last = np.clip(n - first.sum(axis=1), 0, n)
    released = np.column_stack([first, last])
    distance = ob.mechanisms.hellinger_distance(np.add(counts, 1.0), released + 1.0)
    return float((orders * law[first].prod(axis=1)) @ distance)


def exponential_of_four(n: int, widths: list[float]) -> list[float]:
    """Mean H of exponential mechanisms at balanced data of n, a multiple of 4, for their widths:
    one candidate of all orders stands for the others.
    """
    sums = np.zeros((len(widths), 2))
    for first in range(n // 4 + 1):
        pairs = [(b, np.arange(b, (n - first - b) // 2 + 1)) for b in range(first, n // 3 + 1)]
        second = np.concatenate([np.full(c.size, b) for b, c in pairs])
        third = np.concatenate([c for _, c in pairs])
        rows = np.column_stack(
            [np.full(second.size, first), second, third, n - first - second - third]
        )
        equal = np.diff(rows, axis=1) == 0
        orders = np.array([24, 12, 12, 4, 12, 6, 4, 1])[equal @ [1, 2, 4]]
        distance = ob.mechanisms.hellinger_distance(np.full(4, n / 4 + 1), rows + 1.0)
        for place, width in enumerate(widths):
            weights = orders * np.exp(-distance / width)
            sums[place] += weights @ distance, weights.sum()
    return (sums[:, 0] / sums[:, 1]).tolist()


@check("F6b")
def four_categories() -> str:
    parts = []
    for n in (12, 20, 60, 300, 600):
        ours, notes, _, ilap = mechanisms(n, 4).values()
        widths = [m.width(np.array(balanced(n, 4)), np.ones(4)) for m in (ours, notes)]
        means = exponential_of_four(n, widths)
        law = research.error_law(ilap, balanced(n, 4), 1.0)
        parts.append(f"n={n}: {shown((*means, lap_of_four(n), law.mean()))}")
    return (
        f"k=4, mean H of EHDS, the (eps, delta) mechanism, lap, ilap: {'; '.join(parts)};"
        f" {limit_over_lap(4)}"
    )


@check("F6c", "F6d", "F6e")
def larger_priors() -> str:
    parts = [f"a={a:.0f}: {shown(errors(100, 2, 1.0, a))}" for a in (1.0, 40.0, 70.0, 1000.0, 1e5)]
    return "mean H of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(parts)


@check("F6f")
def quartiles() -> str:
    parts = []
    for name, mechanism in mechanisms(100).items():
        law = research.error_law(mechanism, [50, 50], 1.0)
        values = [law.quantile(level) for level in (0.25, 0.5, 0.75)]
        parts.append(f"{name} {', '.join(f'{value:.3f}' for value in values)}")
    return "exact quartiles at Beta(1,1): " + "; ".join(parts)


@check("F7")
def concrete_loss() -> str:
    sizes = (2, 10, 100, 300)
    own = ", ".join(f"{pure_loss(ehds(n), n):.4f}" for n in sizes)
    notes = ", ".join(f"{pure_loss(notes_mechanism(n), n):.4f}" for n in sizes)
    return f"n=2, 10, 100, 300, all data: EHDS {own}; the (eps, delta) mechanism {notes}"


@check("F8")
def which_is_plotted() -> str:
    at = {n: errors(n) for n in range(2, 301)}
    ahead = [shown_sizes([n for n, each in at.items() if each[i] < each[2]]) for i in (0, 1)]
    large = errors(15_000)
    return (
        f"exact loss of EHDS at epsilon=1, n=100: {pure_loss(ehds(100), 100):.4f}; of n = 2..300"
        f" it beats lap at {ahead[0]}, the (eps, delta) mechanism of the notes at {ahead[1]}; at"
        f" n=15000 mean H over lap's: {large[0] / large[2]:.3f}, {large[1] / large[2]:.3f}"
    )
