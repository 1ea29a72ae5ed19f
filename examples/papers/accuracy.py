"""Checks of "Differentially Private Bayesian Inference" (private mechanisms and their accuracy,
claims P1 to P26 and P39 to P43); those of Theorem 4.5 and its corollaries are in `within.py`.
"""

import math

import numpy as np
from common import (
    PAPERS_GS,
    UNIFORM,
    Array,
    Prior,
    check,
    distances,
    ehd,
    ehdl,
    ehds,
    floored_laplace,
    gamma_smooth,
    laplace_law,
    local,
    pure_loss,
)
from scipy.special import betaln, digamma
from scipy.stats import laplace

import opendp_bayes as ob

_TIE = 1e-9  # relative; distances to the left and right of balanced data are equal
LOSSES = (0.1, 0.5, 1.0, 2.0, 5.0)


def row(n: int, x: int, prior: Prior = UNIFORM) -> Array:
    """`H(BI(x), BI(y))` for y = 0..n, for sizes whose whole table would be too large."""
    y = np.arange(n + 1)
    others = np.stack([y + prior[0], n - y + prior[1]], axis=1)
    return ob.mechanisms.hellinger_distance(others, [x + prior[0], n - x + prior[1]])


def below(law: Array, distance: Array, t: float) -> float:
    """`P(H <= t)`, with ties."""
    return float(law[distance <= t * (1 + _TIE)].sum())


def quantile(law: Array, distance: Array, level: float) -> float:
    """`inf {t: P(H < t) >= level}`."""
    order = np.argsort(distance)
    reached = np.cumsum(law[order]) >= level * (1 - _TIE)
    return float(distance[order][reached.argmax()])


def sensitivity_at(distance: Array, x: int) -> float:
    near = [distance[y] for y in (x - 1, x + 1) if 0 <= y < len(distance)]
    return float(max(near))


@check("P1")
def definitions() -> str:
    first = gamma_smooth(60, UNIFORM, 0.5)
    package = [ob.mechanisms.smooth_sensitivity([x, 60 - x], 1.0, gamma=0.5) for x in range(61)]
    return (
        f"n=60, gamma=0.5: S >= LS: {bool((first >= local(60) * (1 - _TIE)).all())};"
        f" equal to the package's: {np.allclose(first, package, rtol=1e-12)}"
    )


@check("P2")
def constant() -> str:
    true = [local(100).max(), local(1).max(), local(10, (0.01, 0.01)).max()]
    three = local(6, (1.0, 1.0, 1.0)).max()
    return (
        f"sqrt(1 - pi/4) = {PAPERS_GS:.5f}; Beta(1,1), n=100: {true[0]:.5f}, n=1: {true[1]:.5f};"
        f" three ones: {three:.5f}; Beta(.01,.01), n=10: {true[2]:.5f}"
    )


@check("P3")
def last_parameter() -> str:
    posterior = np.array([3.0, 0.0])
    try:
        ob.mechanisms.hellinger_distance(posterior, [3.0, 2.0])
    except ValueError as error:
        return f"parameters (3, 0): {error}"
    return "accepted"


@check("P4", "P9")
def lsdim() -> str:
    losses = []
    for k in (2, 3, 4):
        mechanism = ob.LaplaceParameters(scale=float(k), noise="floored")
        losses.append(ob.exact_loss(mechanism, size=20, prior=[1.0] * k).epsilon)
    return "k=2, 3, 4: exact loss " + ", ".join(f"{loss:.4f}" for loss in losses)


@check("P5", "P10")
def lshist() -> str:
    losses = []
    for k, scale in ((2, 1.0), (3, 2.0), (4, 2.0)):
        mechanism = ob.LaplaceParameters(scale=scale, noise="floored")
        losses.append(ob.exact_loss(mechanism, size=20, prior=[1.0] * k).epsilon)
    return "k=2, 3, 4: exact loss " + ", ".join(f"{loss:.4f}" for loss in losses)


@check("P6")
def numerator() -> str:
    weights = np.exp(-distances(10)[5] / (2 * PAPERS_GS))
    fixed = (weights[0] / weights.sum()) * len(weights)
    return f"n=10, x=5: with r' = BI(0) for every r the probabilities sum to {fixed:.4f}"


@check("P7")
def ehdl_definition() -> str:
    laws = ehdl(10)
    return f"n=10, x=5: P(r = BI(x)) = {laws[5, 5]:.4f}; rows sum to {laws.sum() / 11:.4f}"


@check("P8", "P12")
def ehds_is_private() -> str:
    worst = 0.0
    for n in (1, 5, 30, 100):
        for prior in (UNIFORM, (0.01, 0.01), (0.1, 5.0)):
            for gamma in (0.01, 0.1, 1.0, 4.0):
                worst = max(worst, pure_loss(ehds(n, prior, 1.0, gamma), n))
    return f"exact loss at epsilon=1 in 48 settings: at most {worst:.4f}"


@check("P11")
def ehd_with_the_constant() -> str:
    uniform = max(pure_loss(ehd(n, UNIFORM, 1.0, PAPERS_GS), n) for n in (1, 10, 100))
    small = pure_loss(ehd(10, (0.01, 0.01), 1.0, PAPERS_GS), 10)
    return f"Beta(1,1): at most {uniform:.4f}; Beta(.01,.01), n=10: {small:.4f} > 1"


@check("P14")
def optimality() -> str:
    shown = []
    for n in (2, 10, 100, 1000, 10_000):
        worst = 0.0
        for x in {0, 1, 2, 3, 5, 8, n // 10, n // 4, n // 2} & set(range(n + 1)):
            distance = row(n, x)
            error = quantile(laplace_law(n, x, 1.0), distance, 0.95)
            worst = max(worst, error / sensitivity_at(distance, x))
        shown.append(f"{worst:.3f}")
    return f"1 - gamma = 0.95, n=2, 10, .., 10000: at most {', '.join(shown)}"


@check("P15")
def order_of_epsilon() -> str:
    shown = []
    for epsilon in (0.1, 0.01):
        distance = row(4000, 2000)
        error = quantile(laplace_law(4000, 2000, 1 / epsilon), distance, 1 - math.exp(-epsilon))
        shown.append(f"{error / (epsilon * sensitivity_at(distance, 2000)):.1f}")
    return f"n=4000, x=2000, gamma=e^-epsilon, epsilon=0.1, 0.01: {', '.join(shown)}"


@check("P16")
def strictly_below() -> str:
    distance, law = row(100, 50), laplace_law(100, 50, 1.0)
    sensitivity = sensitivity_at(distance, 50)
    strict = law[distance < sensitivity * (1 - _TIE)].sum()
    return (
        f"n=100, x=50: P(H < LS) = {strict:.4f}, P(H <= LS) ="
        f" {below(law, distance, sensitivity):.4f},"
        f" bound {1 - (math.exp(-1) + math.exp(-2)) / 2:.4f}"
    )


@check("P17")
def bound_of_the_bound() -> str:
    e = np.linspace(0.01, 20, 500)
    gap = (1 - (np.exp(-e) + np.exp(-2 * e)) / 2) - (1 - np.exp(-e))
    return (
        f"epsilon=0.01..20: the difference, e^-epsilon (1 - e^-epsilon)/2, is positive:"
        f" {bool((gap > 0).all())}"
    )


@check("P18")
def one_over_epsilon() -> str:
    shown = []
    for x in (50, 60, 40):
        distance = row(100, x)
        error = quantile(laplace_law(100, x, 1.0), distance, 1 - math.exp(-1))
        shown.append(f"{error / sensitivity_at(distance, x):.4f}")
    return f"epsilon=1, n=100, x=50, 60, 40: {', '.join(shown)}"


@check("P19")
def second_parameter() -> str:
    distance = float(ob.mechanisms.hellinger_distance([6, 6], [6, 4]))
    return f"Beta(1,1), n=10, x=5, k=0: Beta(6,6) against Beta(6,4): H = {distance:.4f}, not 0"


@check("P20")
def reach_of_laplace() -> str:
    natural, ten = (1 - math.exp(-value) for value in (math.log(20), math.log10(20)))
    return f"gamma=0.05: {natural:.4f} with the natural logarithm, {ten:.4f} with that to base 10"


@check("P21")
def largest_over_k() -> str:
    shown = []
    for n in (10, 100, 1000):
        worst = 0.0
        for x in {*range(min(n, 60) + 1), n // 4, n // 2}:
            distance = row(n, x)
            reached = max(distance[np.clip(x + k, 0, n)] for k in (-3, -2, -1, 1, 2, 3))
            worst = max(worst, reached / sensitivity_at(distance, x))
        shown.append(f"{worst:.3f}")
    return (
        f"|k| <= 3, n=10, 100, 1000: at most {', '.join(shown)} with Beta(a+k, b-k);"
        " as printed x=n=10 is Beta(11, -1)"
    )


@check("P22")
def order_of_k() -> str:
    return (
        f"k=2, epsilon=1: gamma = e^2 = {math.exp(2):.4f} is no probability;"
        f" gamma = e^-2 gives ln(1/gamma)/epsilon = {-math.log(math.exp(-2)):.4f}"
    )


@check("P23")
def central_mass() -> str:
    mass = laplace.cdf(3) - laplace.cdf(-3)
    return f"epsilon=1, k=3: P(|Lap| < 3) = {mass:.4f} = 1 - e^-3 = {1 - math.exp(-3):.4f}"


@check("P24")
def within_the_sensitivity() -> str:
    printed = [
        float(ob.mechanisms.hellinger_distance([51, 51], [51 + k, 100 - 51 - k]))
        for k in (-1, 0, 1)
    ]
    distance = row(100, 50)
    right = [float(distance[50 + k]) for k in (-1, 0, 1)]
    return (
        f"n=100, x=50, k=-1, 0, 1: printed {printed[0]:.4f}, {printed[1]:.4f}, {printed[2]:.4f};"
        f" with Beta(a+k, b-k) {right[0]:.4f}, {right[1]:.4f}, {right[2]:.4f}; LS = {right[2]:.4f}"
    )


@check("P25")
def three_values() -> str:
    mass = floored_laplace(np.array([-1, 0, 1]), 1.0).sum()
    return f"epsilon=1: {mass:.6f} = {1 - (math.exp(-1) + math.exp(-2)) / 2:.6f}"


@check("P26")
def equals_two() -> str:
    first = math.log(2 / (math.exp(-1) + math.exp(-2)))
    second = math.log(2 / math.exp(-2))
    return f"epsilon=1: {first:.4f} < {second:.4f}, which is 2 + ln 2, not 2"


def radicand(n: int, reach: float, exponent: float, constant: float = 1.0) -> float:
    """Return what the table takes the square root of, with this constant in the O."""
    return 1 - (constant * (n + reach) / (n - reach)) ** exponent


@check("P39")
def table_lshist() -> str:
    reach, shown = math.log(20), []
    for n in (20, 100, 1000):
        exact = max(quantile(laplace_law(n, x, 1.0), row(n, x), 0.95) for x in (n // 2, 0))
        shown.append(f"{exact:.4f} <= {math.sqrt(radicand(n, reach, reach / 2, 0.5)):.4f}")
    return (
        f"n=100, delta=0.05: with the constant 1 sqrt({radicand(100, reach, reach / 2):.4f}); with"
        f" 1/2, n=20, 100, 1000, the larger 95 % quantile of x=n/2 and x=0: {', '.join(shown)}"
    )


@check("P40")
def table_lszhang() -> str:
    reach, shown = math.log(1 / (2 - 0.05 - 2 * math.sqrt(0.95))), []
    for n in (20, 100, 300):
        both = np.stack(np.meshgrid(*[np.arange(n + 1.0)] * 2, indexing="ij"), axis=-1)
        quantiles = []
        for x in (n // 2, 0):
            distance = ob.mechanisms.hellinger_distance(
                both.reshape(-1, 2) + 1, [x + 1.0, n - x + 1.0]
            )
            law = np.outer(laplace_law(n, x, 2.0), laplace_law(n, n - x, 2.0)).ravel()
            quantiles.append(quantile(law, distance, 0.95))
        bound = math.sqrt(radicand(n, reach, reach / 2, 0.25))
        shown.append(f"{max(quantiles):.4f} <= {bound:.4f}")
    return (
        f"n=100, delta=0.05: K = {reach:.4f}, with the constant 1 sqrt("
        f"{radicand(100, reach, reach / 2):.4f}); with 1/4, n=20, 100, 300, the larger 95 %"
        f" quantile of x=n/2 and x=0: {', '.join(shown)}"
    )


@check("P41")
def table_ehd() -> str:
    """In `ln(1 - H^2)`, where the quantile is to be above."""
    reach, shown = (100 - 5 - 1) / 2 * math.exp(-1), []
    for n in (30, 100, 1000):
        worst = 0.0
        for x in (n // 2, n // 5, 0):
            distance = row(n, x)
            weights = np.exp(-distance / (2 * PAPERS_GS))
            y = np.arange(n + 1)
            middle, own = (x + y) / 2 + 1, betaln(x + 1, n - x + 1)
            gap = (own + betaln(y + 1, n - y + 1)) / 2 - betaln(middle, n + 2 - middle)
            worst = max(worst, quantile(weights / weights.sum(), gap, 0.95))
        k = (n - 0.05 * n - 1) / 2 * math.exp(-1)
        shown.append(f"{-worst:.1f} >= {k * math.log((n + k) / (n - k) / 50):.1f}")
    return (
        f"n=100, delta=0.05: k = {reach:.4f}, with the constant 1 sqrt("
        f"{radicand(100, reach, reach):.4f}); with 1/50, n=30, 100, 1000, ln(1 - H^2) at the 95 %"
        f" quantile, the smallest of x=n/2, n/5, 0: {', '.join(shown)}"
    )


def kl(a: Array, b: Array) -> Array:
    """KL divergence of Beta(a) from Beta(b), shapes `(..., 2)`."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    change = a - b
    total = a.sum(axis=-1)
    return (
        betaln(b[..., 0], b[..., 1])
        - betaln(a[..., 0], a[..., 1])
        + (change * digamma(a)).sum(axis=-1)
        - change.sum(axis=-1) * digamma(total)
    )


def kl_and_bound(n: int, x: int, epsilon: float, factor: int) -> tuple[float, float]:
    """The 95 % quantile of KL of LSHist (factor 4) or LSZhang (8), and what the table bounds it by
    with the constants of the O taken as 1.
    """
    counts = np.arange(n + 1)
    if factor == 4:
        law = laplace_law(n, x, 1 / epsilon)
        others = np.stack([counts + 1, n - counts + 1], axis=1)
    else:
        scale = 2 / epsilon
        law = np.outer(laplace_law(n, x, scale), laplace_law(n, n - x, scale)).ravel()
        others = np.stack(np.meshgrid(counts + 1, counts + 1, indexing="ij"), axis=-1)
    exact = quantile(law, kl([x + 1, n - x + 1], others.reshape(-1, 2)), 0.95)
    size = factor * n * math.log(n)
    rest = -math.expm1(-n * epsilon * 4 / factor)
    return exact, size * rest + math.sqrt(size * -math.log(0.05))


def table_of_kl(factor: int) -> str:
    shown = []
    for n in (1, 2, 10, 100):
        exact, bound = kl_and_bound(n, n // 2, 1.0, factor)
        shown.append(f"n={n}: {exact:.4f} against {bound:.4g}")
    exact, bound = kl_and_bound(100, 0, 1e-4, factor)
    shown.append(f"n=100, x=0, epsilon=1e-4: {exact:.1f} against {bound:.1f}")
    return "95 % quantile of KL, " + "; ".join(shown)


@check("P42")
def kl_of_lshist() -> str:
    return table_of_kl(4)


@check("P43")
def kl_of_lszhang() -> str:
    return table_of_kl(8)
