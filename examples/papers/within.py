"""Checks of Theorem 4.5 of "Private mechanisms" and of its corollaries (claims P27 to P38): how
often a mechanism stays within a distance t of the true posterior, which k records reach at most.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from accuracy import LOSSES, below, row, sensitivity_at
from common import PAPERS_GS, Array, check, laplace_law

import opendp_bayes as ob

_TIE = 1e-9  # relative
#: Widths of EHD at ε = 1: with the constant of the papers, or with the true global sensitivity.
WIDTHS: dict[str, Callable[[int], float]] = {
    "the papers' constant": lambda n: 2 * PAPERS_GS,
    "the true GS": lambda n: 2 * ob.mechanisms.global_sensitivity(n, [1.0, 1.0]),
}


def reached(distance: Array, x: int, k: int) -> list[float]:
    """Distances of the k-th records to the left and right of x, those that exist."""
    return [float(distance[y]) for y in (x - k, x + k) if 0 <= y < len(distance)]


def reaches(distance: Array, x: int, k: int) -> tuple[float, float]:
    """The smallest and the largest distance for which k is the most records within it."""
    beyond = min(reached(distance, x, k + 1), default=2.0) * (1 - _TIE)
    return min(reached(distance, x, k)), float(distance[distance < beyond].max())


def zhang(n: int, x: int, epsilon: float) -> tuple[Array, Array]:
    """Probabilities and distances of what LSZhang releases: both counts noised at scale 2/ε,
    floored and clamped.
    """
    counts = np.arange(n + 1)
    grid = np.stack(np.meshgrid(counts + 1.0, counts + 1.0, indexing="ij"), axis=-1)
    distance = ob.mechanisms.hellinger_distance(grid, [x + 1.0, n - x + 1.0])
    law = np.outer(laplace_law(n, x, 2 / epsilon), laplace_law(n, n - x, 2 / epsilon))
    return law.ravel(), distance.ravel()


def zhang_bound(k: int, epsilon: float) -> float:
    """`(1 - exp(-kε/2))^2`."""
    return math.expm1(-k * epsilon / 2) ** 2


@check("P27")
def lszhang_exact() -> str:
    shown = []
    for k in (1, 3):
        exact = below(*zhang(100, 50, 1.0), row(100, 50)[50 + k])
        printed = (1 - (math.exp(-k / 2) + math.exp(-(k + 1) / 2)) / 2) ** 2
        shown.append(f"k={k}: exact {exact:.4f}, printed {printed:.4f}")
    return "n=100, x=50: " + "; ".join(shown)


@check("P28")
def lszhang_bound() -> str:
    """Compare the bound with the true probability at the smallest t of each k, the hardest one."""
    failing = number = 0
    for n in (1, 2, 3, 4, 5, 8, 13, 20, 31, 60):
        for epsilon in (0.1, 1.0, 3.0, 8.0):
            law, distance = zhang(n, n // 2, epsilon)
            for k in range(n - n // 2 + 1):
                t, _ = reaches(row(n, n // 2), n // 2, k)
                number += 1
                failing += below(law, distance, t) < zhang_bound(k, epsilon) * (1 - _TIE)
    skewed = below(*zhang(100, 2, 3.0), reaches(row(100, 2), 2, 1)[0])
    return (
        f"balanced, n = 1..60, all k: fails in {failing} of {number} settings; n=100, x=2, k=1,"
        f" epsilon=3: {skewed:.4f} < {zhang_bound(1, 3.0):.4f}"
    )


@check("P29")
def lshist_exact() -> str:
    shown = []
    for x in (50, 20):
        distance, law = row(100, x), laplace_law(100, x, 1.0)
        shown.append(f"x={x}: {below(law, distance, distance[x + 3]):.4f}")
    return (
        f"n=100, k=3: {', '.join(shown)}; printed {1 - (math.exp(-3) + math.exp(-4)) / 2:.4f}"
        f" >= {1 - math.exp(-3):.4f}"
    )


def ehd_below(n: int, x: int, epsilon: float, k: int, width: float) -> float:
    """`P(H <= H(x, x + k))` of an exponential mechanism, one data set at a time."""
    distance = row(n, x)
    weights = np.exp(-epsilon * distance / width)
    return below(weights / weights.sum(), distance, distance[x + k])


@check("P30")
def ehd_upper() -> str:
    shown = []
    for n in (1000, 100_000):
        mass = ehd_below(n, n // 2, 1.0, 1, 2 * PAPERS_GS)
        shown.append(f"n={n}: P = {mass:.4e}, bound {3 / (n * math.exp(-1)):.4e}")
    return f"k=1, {'; '.join(shown)}; 2 GS = {2 * PAPERS_GS:.4f} < 1"


def failing_sizes(
    epsilon: float,
    sizes: range,
    width_of: Callable[[int], float],
    factor_of: Callable[[float, float], float],
) -> list[int]:
    """Sizes at which, for balanced data and some k, P(H <= H(x, x + k)) of the exponential
    mechanism is at most `(2 k factor + 1) / n`.
    """
    failing = []
    for n in sizes:
        width = width_of(n)
        factor = factor_of(epsilon, width)
        ks = range(n - n // 2 + 1)
        if any(ehd_below(n, n // 2, epsilon, k, width) <= (2 * k * factor + 1) / n for k in ks):
            failing.append(n)
    return failing


def shown_sizes(found: dict[float, list[int]]) -> str:
    """Failing sizes by ε."""
    return "; ".join(
        f"epsilon={epsilon:g}: {', '.join(map(str, sizes))}" for epsilon, sizes in found.items()
    )


@check("P31")
def ehd_lower() -> str:
    found = {
        epsilon: failing_sizes(
            epsilon, range(1, 40), WIDTHS["the papers' constant"], lambda e, _: math.exp(-e)
        )
        for epsilon in (5.0, 1.0, 0.5, 0.1)
    }
    edge = ehd_below(100, 0, 0.1, 20, 2 * PAPERS_GS)
    return (
        f"balanced, n < 40, all k, fails at {shown_sizes(found)}; n=100, x=0, k=20, epsilon=0.1:"
        f" {edge:.4f} < {(40 * math.exp(-0.1) + 1) / 100:.4f}"
    )


@check("P32")
def ehdl_upper() -> str:
    worst = 0.0
    for n in (1, 2, 10, 100):
        for x in {0, n // 4, n // 2}:
            width = 2 * sensitivity_at(row(n, x), x)
            for epsilon in LOSSES:
                for k in range(n - x + 1):
                    mass = ehd_below(n, x, epsilon, k, width)
                    worst = max(worst, mass * n * math.exp(-epsilon / width) / (2 * k + 1))
    return f"n=1..100, three data sets each, all k: P over the bound at most {worst:.4f}"


@check("P33")
def ehdl_lower() -> str:
    def width(n: int) -> float:
        return 2 * sensitivity_at(row(n, n // 2), n // 2)

    found = {
        epsilon: failing_sizes(epsilon, range(1, 100), width, lambda e, w: math.exp(-e / w))
        for epsilon in (5.0, 1.0, 0.5, 0.1)
    }
    return f"balanced, n < 100, all k, fails at {shown_sizes(found)}"


@check("P34")
def vanishing_sensitivity() -> str:
    middle = [ob.mechanisms.local_sensitivity([n // 2, n // 2], 1.0) for n in (100, 10**4, 10**6)]
    edge = [ob.mechanisms.local_sensitivity([0, n], 1.0) for n in (100, 10**4, 10**6)]
    return (
        "n=1e2, 1e4, 1e6: x=n/2: "
        + ", ".join(f"{value:.5f}" for value in middle)
        + "; x=0: "
        + ", ".join(f"{value:.5f}" for value in edge)
    )


def gain(distance: Array, x: int, epsilon: float, t: float, width: float) -> float:
    """`P(H <= t)` of LSHist less that of EHD of this width at ε = 1."""
    weights = np.exp(-epsilon * distance / width)
    lshist = laplace_law(len(distance) - 1, x, 1 / epsilon)
    return below(lshist, distance, t) - below(weights / weights.sum(), distance, t)


def above_the_bound() -> Iterator[tuple[float, int, int, int]]:
    """`(ε, k, n, x)` with n above the bound of Corollary 4.5.1, all over the data sets."""
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0):
        for k in (1, 2, 3, 5):
            bound = (2 * k + 1) / (math.exp(-epsilon) * -math.expm1(-k * epsilon))
            for n in (math.floor(bound) + 1, math.ceil(2 * bound)):
                step = max(1, n // 40)
                for x in {0, 1, 2, 3, 4, n // 2, *range(0, n // 2, step)}:
                    yield epsilon, k, n, x


@check("P35")
def laplace_beats_ehd() -> str:
    number, least, failing = 0, math.inf, []
    for epsilon, k, n, x in above_the_bound():
        distance = row(n, x)
        constant, true = (width(n) for width in WIDTHS.values())
        number += 1
        for t in reaches(distance, x, k):
            least = min(least, gain(distance, x, epsilon, t, constant))
            if gain(distance, x, epsilon, t, true) <= 0:
                failing.append((x, k, epsilon))
    distance = row(64, 1)
    t, _ = reaches(distance, 1, 1)
    lshist = below(laplace_law(64, 1, 1 / 3), distance, t)
    ehd = lshist - gain(distance, 1, 3.0, t, WIDTHS["the true GS"](64))
    return (
        f"{number} settings above the bound: with GS = .46325 LSHist - EHD at least {least:.4f};"
        f" with the true GS fails in {len(failing)}, x <= {max(x for x, _, _ in failing)},"
        f" k <= {max(k for _, k, _ in failing)}, epsilon >= {min(e for _, _, e in failing):g};"
        f" n=64, x=1, k=1, epsilon=3: {lshist:.4f} < {ehd:.4f}"
    )


@check("P36")
def ehd_beats_laplace() -> str:
    """At every n below the bound and every k, where t leaves out some data set."""
    failing: dict[str, list[int]] = {"balanced": [], "x=0": []}
    number = dict.fromkeys(failing, 0)
    for epsilon in (0.05, 0.1, 0.5, 1.0, 2.0, 3.0):
        for k in (0, 1, 2, 3, 5):
            mass = 1 - (math.exp(-k * epsilon) + math.exp(-(k + 1) * epsilon)) / 2
            bound = (2 * k * math.exp(-epsilon) + 1) / mass
            for n in range(max(1, k), math.ceil(bound)):
                for name, x in (("balanced", n // 2), ("x=0", 0)):
                    distance = row(n, x)
                    for t in reaches(distance, x, k) if k <= n - x else ():
                        if t < distance.max() * (1 - _TIE):
                            number[name] += 1
                            if gain(distance, x, epsilon, t, 2 * PAPERS_GS) >= 0:
                                failing[name].append(n)
    return "below the bound, " + "; ".join(
        f"{name}: fails in {len(sizes)} of {number[name]} settings"
        + (f", n = {', '.join(map(str, sorted(set(sizes))))}" if name == "balanced" else "")
        for name, sizes in failing.items()
    )


@check("P37")
def within_local() -> str:
    number, least = 0, dict.fromkeys(WIDTHS, math.inf)
    for epsilon in (*LOSSES, 3.0):
        bound = 3 / (math.exp(-epsilon / (2 * PAPERS_GS)) * -math.expm1(-epsilon))
        for n in (math.floor(bound) + 1, math.ceil(2 * bound), math.ceil(10 * bound)):
            for x in range(0, n + 1, max(1, n // 50)):
                distance = row(n, x)
                t = sensitivity_at(distance, x)
                number += 1
                for name, width in WIDTHS.items():
                    least[name] = min(least[name], gain(distance, x, epsilon, t, width(n)))
    return f"{number} settings above the bound: LSHist - EHD at least " + ", ".join(
        f"{value:.4f} with {name}" for name, value in least.items()
    )


@check("P38")
def exponent_of_c() -> str:
    c = 2 * PAPERS_GS
    return (
        f"epsilon=1, n=100: {3 / (100 * math.exp(-1 / c)):.5f} >"
        f" {3 / (100 * math.exp(-1)):.5f}; c = {c:.4f}"
    )
