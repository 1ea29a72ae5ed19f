"""Checks of the figures and experiments of the tailoring paper (claims F1 to F8), by sums over all
releases at its settings: ε = 1 (Figure 4: 5), δ = 1e-8, balanced data, priors of ones.

Two mechanisms can be its "EHDS": Definition 4 (`ob.papers.ehds`, weight exp(-εH/4S) with the
1-smooth sensitivity), and the (ε, δ) mechanism of the notes (`ob.papers.beta`).
"""

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from common import (
    check,
    distances,
    ehds,
    hamming,
    laplace_law,
    local,
    notes_mechanism,
    pure_loss,
)

import opendp_bayes as ob

DELTA = 1e-8


def balanced(n: int, k: int = 2) -> list[int]:
    """33 / 33 / 34 % for three categories, as nearly equal otherwise."""
    return [n // k] * (k - 1) + [n - n // k * (k - 1)]


def mechanisms(n: int, k: int = 2, epsilon: float = 1.0) -> dict[str, ob.Mechanism]:
    return {
        "EHDS": ob.papers.ehds(epsilon),
        "(eps, delta)": ob.papers.beta(epsilon, DELTA, n),
        "lap": ob.papers.lap(epsilon, k),
        "ilap": ob.papers.ilap(epsilon, k),
    }


@lru_cache(maxsize=256)
def errors(n: int, k: int = 2, epsilon: float = 1.0, prior: float = 1.0) -> tuple[float, ...]:
    """Mean H of EHDS, the (ε, δ) mechanism, lap and ilap at balanced data."""
    counts = balanced(n, k)
    found = mechanisms(n, k, epsilon).values()
    return tuple(ob.error_law(m, counts, prior).mean() for m in found)


def shown(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def masses(n: int, k: int, epsilon: float, steps: float) -> tuple[float, ...]:
    """P(H <= that of `steps` records moved from the first to the second category)."""
    counts = balanced(n, k)
    moved = [counts[0] + steps, counts[1] - steps, *counts[2:]]
    t = float(ob.hellinger_distance(np.add(counts, 1.0), np.add(moved, 1.0))) * (1 + 1e-9)
    found = mechanisms(n, k, epsilon).values()
    return tuple(float(ob.error_law(m, counts, 1.0).cdf(t)) for m in found)


@check("F1")
def sensitivities() -> str:
    curves = ob.sensitivity_curves(100, [1.0, 1.0], gamma=1.0)
    return (
        f"n=100: GS {curves.largest:.4f}, LS {curves.local[50]:.4f} at x=50,"
        f" {curves.local[10]:.4f} at"
        f" 10, {curves.local[0]:.4f} at 0"
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


@check("F3a")
def near_candidates() -> str:
    first = [f"n={n}: {shown(masses(n, 2, 1.0, 0))}" for n in (6, 100, 1000)]
    within = shown(masses(1000, 2, 1.0, 2))
    return (
        "P(H = 0) of EHDS, the (eps, delta) mechanism, lap, ilap: "
        + "; ".join(first)
        + f"; within two records, n=1000: {within}"
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
    parts = [f"k=3, n={n}: {shown(masses(n, 3, 1.0, 0))}" for n in (30, 300, 900)]
    parts.append(f"k=4, n=100: {shown(masses(100, 4, 1.0, 0)[:2])}, {exact_hits(4)}")
    return "P(H = 0) of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(parts)


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
    sizes = (4, 10, 50, 100, 200, 210, 250, 290)
    at = {n: errors(n) for n in sizes}
    lap = [n for n in sizes if at[n][2] < at[n][1]]
    ilap = [n for n in sizes if at[n][3] < at[n][1]]
    own = [n for n in sizes if at[n][2] < at[n][0]]
    return (
        f"of n={list(sizes)}: lap beats the (eps, delta) mechanism at {lap}, ilap at"
        f" {ilap}, lap beats"
        f" EHDS at {own}; n=250: {shown(at[250])}"
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
    law = ob.error_law(mechanism, counts, 1.0)
    return math.sqrt(float(law.values**2 @ law.probabilities) - law.mean() ** 2)


@check("F5e")
def enough_runs() -> str:
    parts = []
    for n in (250, 300, 1000, 15_000):
        counts, both = balanced(n), mechanisms(n)
        pair = (both["(eps, delta)"], both["lap"])
        means = [ob.error_law(m, counts, 1.0).mean() for m in pair]
        error = math.sqrt(sum(deviation(m, counts) ** 2 for m in pair) / 1000)
        parts.append(f"n={n}: {(means[1] - means[0]) / error:.2f}")
    return "lap less the (eps, delta) mechanism in standard errors of 1000 runs: " + ", ".join(
        parts
    )


@check("F6a")
def three_categories() -> str:
    parts = [f"n={n}: {shown(errors(n, 3))}" for n in (30, 150, 300, 600, 900)]
    return "k=3, mean H of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(parts)


def lap_of_four(n: int) -> float:
    """Mean H of lap at balanced data: the first three counts are equal and so are their laws, so
    one of all orders of what is released for them stands for the others.
    """
    counts, law = balanced(n, 4), laplace_law(n, balanced(n, 4)[0], 4.0)
    first = np.array(list(combinations_with_replacement(range(n + 1), 3)))
    orders = np.array([1, 3, 6])[np.diff(first, axis=1).astype(bool).sum(axis=1)]
    last = np.clip(n - first.sum(axis=1), 0, n)
    released = np.column_stack([first, last])
    distance = ob.hellinger_distance(np.add(counts, 1.0), released + 1.0)
    return float((orders * law[first].prod(axis=1)) @ distance)


@check("F6b")
def four_categories() -> str:
    parts = []
    for n in (20, 60, 110):
        ours, notes, _, ilap = mechanisms(n, 4).values()
        means = [ob.error_law(m, balanced(n, 4), 1.0).mean() for m in (ours, notes, ilap)]
        parts.append(f"n={n}: {shown((*means[:2], lap_of_four(n), means[2]))}")
    return "k=4, mean H of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(parts)


@check("F6c", "F6d", "F6e")
def larger_priors() -> str:
    parts = [f"a={a:.0f}: {shown(errors(100, 2, 1.0, a))}" for a in (1.0, 40.0, 70.0, 300.0)]
    return "mean H of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(parts)


@check("F6f")
def quartiles() -> str:
    parts = []
    for name, mechanism in mechanisms(100).items():
        law = ob.error_law(mechanism, [50, 50], 1.0)
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
    crossing = {}
    sizes = range(150, 300, 5)
    for place, name in ((0, "EHDS"), (1, "the (eps, delta) mechanism")):
        better = [n for n in sizes if errors(n)[place] < errors(n)[2]]
        crossing[name] = f"from n={better[0]}" if better else "nowhere"
    large = errors(15_000)
    return (
        f"beats lap within n=150..295: EHDS {crossing['EHDS']}, the (eps, delta) mechanism"
        f" {crossing['the (eps, delta) mechanism']}; at n=15000 mean H over lap's:"
        f" {large[0] / large[2]:.3f},"
        f" {large[1] / large[2]:.3f}"
    )
