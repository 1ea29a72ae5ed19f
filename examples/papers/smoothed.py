"""Checks of "Smoothed Differential Privacy" (arXiv:2107.01559v4, claims S1 to S30)."""

import math
import sys
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
from common import check

import opendp_bayes_smoothed as obs

sys.path.append(str(Path(__file__).parents[2] / "plugins" / "opendp-bayes-smoothed" / "examples"))
import paper

EPSILON_51 = math.log(0.51 / 0.49)
SHARES = {name: a / (a + b) for name, (a, b) in paper.districts().items()}
VOTES = [(int(year), counts) for year, counts in paper.elections().items()]
HISTOGRAM = paper.of_a_sample(lambda h: h, 2, 3)


def logs_of_elections(lost: float, t: float) -> tuple[np.ndarray, np.ndarray]:
    """log10 of δ(x) n of every election, and of δ(x)."""
    epsilon = math.log(t / (1 - t))
    logs = [obs.database_profile(v, 1 - lost, epsilon, log=True) / math.log(10) for _, v in VOTES]
    sizes = [math.log10(sum(votes)) for _, votes in VOTES]
    return np.array(logs) + np.array(sizes), np.array(logs)


def slope(corners: list[list[float]], lost: float, epsilon: float) -> tuple[float, float]:
    """Fit a line to log10 of the smoothed δ: slope per 1000 records, and largest residual."""
    sizes = np.array([500, 1000, 1500])
    logs = [obs.smoothed_delta(corners, int(n), 1 - lost, epsilon, log=True) for n in sizes]
    line = np.polyfit(sizes, np.array(logs) / math.log(10), 1)
    residual = np.abs(np.polyval(line, sizes) - np.array(logs) / math.log(10)).max()
    return float(1000 * line[0]), float(residual)


@check("S1")
def figure_1() -> str:
    relative, logs = logs_of_elections(0.002, 0.51)
    trend = np.corrcoef([year for year, _ in VOTES], logs)[0, 1]
    return (
        f"26 elections: log10 delta(x) from {logs.max():.1f} to {logs.min():.1f}; times n at most"
        f" 1e{relative.max():.1f}; correlation with the year {trend:.2f}"
    )


def exact_loss(size: int, samples: int, scale: float) -> float:
    """A ratio that the noised histogram of a sample attains: of (T, 0), the same of all records
    but one, and of all records; the loss is at least its logarithm.
    """
    q = math.exp(-1 / scale)

    def noise(y: int, h: int) -> float:
        return q ** abs(y - h) * (1 - q) / (1 + q - q ** (h + 1))

    def law(other: int) -> float:
        shares = {0: 1 - other * samples / size, 1: other * samples / size}
        return sum(
            share * noise(0, samples - h) * noise(samples, h)
            for h, share in shares.items()
            if share
        )

    return abs(math.log(law(1) / law(0)))


@check("S2")
def table_1() -> str:
    context = [
        obs.NoisySamplingHistogram(4 / e, 0.998).proven_loss(1, size=1000, prior=None).epsilon
        <= 0.998 * e
        for e in (0.01, 0.1, 1.0, 5.0, 20.0, 100.0)
    ]
    return (
        f"eta=0.998: proven loss within eta epsilon at 6 epsilons: {all(context)}; eta=0.1,"
        f" epsilon=20, n=10: loss at least {exact_loss(10, 1, 0.2):.2f} > 2"
    )


@check("S3")
def threat_models() -> str:
    corners = [[0.5, 0.5], [0.9, 0.1]]
    worst = max(paper.profile(HISTOGRAM, (x, 5 - x), 0.5) for x in range(6))
    return (
        f"n=5, T=3, epsilon=0.5: differential {worst:.4f}, smoothed"
        f" {paper.smoothed(HISTOGRAM, corners, 5, 0.5):.4f}, distributional"
        f" {paper.distributional(HISTOGRAM, corners, 5, 0.5):.4f}"
    )


@check("S4")
def membership() -> str:
    rng, least = np.random.default_rng(0), math.inf
    for p, q in zip(rng.dirichlet(np.ones(4), 200), rng.dirichlet(np.ones(4), 200), strict=True):
        delta = max(paper.divergence(p, q, 0.4), paper.divergence(q, p, 0.4))
        for events in range(16):
            inside = np.array([events >> a & 1 for a in range(4)], dtype=bool)
            first, second = p[inside].sum(), q[~inside].sum()
            for one, other in ((first, second), (second, first)):
                least = min(least, math.exp(0.4) * one + other - (1 - delta))
    return f"3200 tests of 200 pairs of laws: smallest slack {abs(least):.4f} >= 0: {least > -1e-9}"


@check("S5")
def insensitivity() -> str:
    p, q = [0.3, 0.1, 0.6], [0.1, 0.3, 0.6]
    shown = []
    for epsilon in (0.01, 0.1):
        delta = max(paper.divergence(p, q, epsilon), paper.divergence(q, p, epsilon))
        factor, repaired = 2 * math.exp(epsilon), 1 - (2 + math.exp(-epsilon)) * delta
        kept = sum(a for a, b in zip(p, q, strict=True) if a <= factor * b and b <= factor * a)
        shown.append(f"{kept:.4f}, 1 - 2 delta = {1 - 2 * delta:.4f}, repaired {repaired:.4f}")
    return f"laws (.3, .1, .6), (.1, .3, .6), epsilon=.01, .1: {'; '.join(shown)}"


@check("S6")
def coin() -> str:
    sure = [paper.utility([[1, 0], [0, 1]], t) for t in (0.1, 0.5, 0.9)]
    fair = [paper.utility([[0.5, 0.5]] * 2, t) for t in (0.5, 0.6, 0.9)]
    return f"p=1, t=.1, .5, .9: {sure}; p=.5, t=.5, .6, .9: {fair}"


def utilities(m: int, trials: int) -> float:
    """The largest `u / δ` of random laws, sparse ones among them."""
    rng, worst = np.random.default_rng(m), 0.0
    for _ in range(trials):
        laws = rng.dirichlet(np.full(m + 2, 10 ** rng.uniform(-1.5, 0)), m)
        epsilon = rng.choice([0.0, 0.1, 0.5])
        t = paper.threshold(float(epsilon))
        divergences = [
            [paper.divergence(p, q, float(epsilon)) if p is not q else 0.0 for q in laws]
            for p in laws
        ]
        table = np.array(divergences)
        delta = np.minimum.reduce([max(table[x].max(), table[:, x].max()) for x in range(m)])
        if delta > 1e-6:
            worst = max(worst, paper.utility(laws, t) / float(delta))
    return worst


@check("S7")
def twice_delta() -> str:
    found = ", ".join(f"{utilities(m, 150):.2f}" for m in (2, 3, 5))
    return (
        f"largest u/delta(x) of random laws of 2, 3, 5 values: {found} <= 2; fair coin: u ="
        f" {paper.utility([[0.5, 0.5]] * 2, 0.5):g}, delta ="
        f" {paper.divergence([0.5, 0.5], [0.5, 0.5], 0.1):g}"
    )


@check("S8")
def lemma_2() -> str:
    rng, largest = np.random.default_rng(4), 0.0
    for p, q in zip(rng.dirichlet(np.ones(3), 300), rng.dirichlet(np.ones(3), 300), strict=True):
        both = paper.divergence(p, q, 0.5) + paper.divergence(q, p, 0.5)
        if both > 1e-6:
            own = paper.utility([p, q], paper.threshold(0.5))
            largest = max(largest, own / both)
    laws = [[1, 0], [1, 0], [0, 1]]
    d = paper.divergence(laws[0], laws[1], 0.5) + paper.divergence(laws[1], laws[0], 0.5)
    u = paper.utility(laws, paper.threshold(0.5))
    return (
        f"two values, 300 pairs of laws: u at most {largest:.2f} (d + d'); three values, laws"
        f" (1,0), (1,0), (0,1): d + d' = {d:g}, u = {u:g}"
    )


@check("S9", "S17")
def worst_database() -> str:
    worst = [
        max(obs.database_profile([x, 50 - x], 0.8, e) for x in range(51)) for e in (0.1, 1.0, 30.0)
    ]
    return f"n=50, T=40: max delta(x) at epsilon=.1, 1, 30: {', '.join(f'{w:.6f}' for w in worst)}"


@check("S10")
def post_processing() -> str:
    rng, before = np.random.default_rng(1), HISTOGRAM
    larger = 0
    for _ in range(20):
        kernel = rng.dirichlet(np.ones(3), 4)

        def after(x: tuple[int, ...], kernel: np.ndarray = kernel) -> np.ndarray:
            return np.asarray(before(x)) @ kernel

        for x in range(6):
            own = paper.profile(before, (x, 5 - x), 0.3)
            larger += paper.profile(after, (x, 5 - x), 0.3) > own * (1 + 1e-9)
    return f"20 random functions of a sample, 6 databases: larger in {larger} of 120"


@check("S11")
def composition() -> str:
    other = paper.of_a_sample(lambda h: h, 2, 2)

    def both(x: tuple[int, ...]) -> np.ndarray:
        return np.outer(HISTOGRAM(x), other(x)).ravel()

    larger = smaller = 0
    for x in range(6):
        apart = sum(paper.profile(law, (x, 5 - x), 0.3) for law in (HISTOGRAM, other))
        together = paper.profile(both, (x, 5 - x), 0.6)
        larger += together > apart * (1 + 1e-9)
        smaller += together < apart * (1 - 1e-9)
    return f"two samples, 6 databases: above the sum in {larger}, below it in {smaller}"


@check("S12")
def pre_processing() -> str:
    here, there = (HISTOGRAM(x) for x in ((5, 0), (0, 5)))
    d = paper.divergence(here, there, 1.0)
    own = paper.smoothed(HISTOGRAM, [[0.5, 0.5]], 5, 1.0)
    return f"n=5, T=3, every record becomes the first: delta = {d:g}; under f(Pi): {own:.4f} <= 0.6"


@check("S13")
def hull() -> str:
    corners = [[0.2, 0.8], [0.8, 0.2]]
    inner = [[p, 1 - p] for p in (0.3, 0.5, 0.7)]
    return (
        f"n=30, T=15, epsilon=1: {obs.smoothed_delta(corners, 30, 0.5, 1.0):.6f} with and"
        f" {obs.smoothed_delta([*corners, *inner], 30, 0.5, 1.0):.6f} without inner points"
    )


@check("S14")
def runtime() -> str:
    """Steps of Algorithm 1 with one operator a record: a histogram of what is left for every
    choice of records from the first vertices, `m + 1` operations each; growth as n doubles.
    """
    shown = []
    for m, v in ((2, 2), (3, 2), (3, 3), (4, 3)):
        steps = [(m + 1) * math.comb(n + m + v - 2, n) for n in (10**4, 2 * 10**4)]
        shown.append(
            f"{m}, {v}, {math.log2(steps[1] / steps[0]):.3f}, {m + v - 1}, {2 * m + v - 3}"
        )
    return f"m, l, exponent of our steps, appendix, text: {'; '.join(shown)}"


@check("S15")
def theorem_3_i() -> str:
    certain = obs.smoothed_delta([[1.0, 0.0]], 1000, 0.8, 5.0)
    last = [
        obs.smoothed_delta([[0.5, 0.5]], n, Fraction(n - 1, n), math.log(n) + 1)
        for n in (10, 100, 400)
    ]
    falls = [obs.smoothed_delta([[0.3, 0.7]], n, 0.8, 3.0, log=True) for n in (200, 400, 800)]
    return (
        f"Pi = (1, 0), n=1000, eta=.8: {certain:.4f}; T = n - 1, n=10, 100, 400:"
        f" {', '.join(f'{d:.3f}' for d in last)}; Pi = (.3, .7), eta=.8, n=200, 400, 800: ln delta"
        f" = {', '.join(f'{d:.1f}' for d in falls)}"
    )


@check("S16")
def theorem_3_ii() -> str:
    above = all(
        obs.smoothed_delta([[f, 1 - f]], n, 0.8, e) >= 0.8 * f**n
        for f in (0.1, 0.5)
        for n in (5, 20)
        for e in (0.5, 5.0)
    )
    return f"delta >= (T/n) f^n in 8 settings: {above}"


@check("S18")
def ninety_five() -> str:
    logs = [obs.smoothed_delta([[0.5, 0.5]], n, 0.95, 3.0, log=True) for n in (250, 500, 1000)]
    return (
        f"Pi = (.5, .5), n=250, 500, 1000: ln delta = {', '.join(f'{v:.1f}' for v in logs)};"
        f" Pi = (1, 0): delta = {obs.smoothed_delta([[1.0, 0.0]], 1000, 0.95, 3.0):.4f}"
    )


def printed_bound(size: int, eta: float, f: float, epsilon: float) -> float:
    """Compute the bound that Remark 8 prints for two categories."""
    g = (-math.expm1(-epsilon) / eta - 1) ** 2
    return math.exp(-g * f * size / 6) + 2 * math.exp(-f * size / 8)


@check("S19")
def remark_8() -> str:
    ratios = []
    for eta in (0.55, 0.6, 0.8, 0.95):
        for size, f, beyond in product((50, 200, 800), (0.05, 0.3, 0.5), (0.01, 0.1, 1.0, 3.0)):
            epsilon = beyond - math.log1p(-eta)
            bound = printed_bound(size, eta, f, epsilon)
            if bound < 1:
                delta = obs.smoothed_delta([[f, 1 - f], [1 - f, f]], size, eta, epsilon)
                ratios.append(delta / bound)
    small = obs.smoothed_delta([[0.1, 0.9]], 2000, 0.02, 0.0377)
    certain = obs.smoothed_delta([[1.0, 0.0]], 2000, 0.8, 3.0)
    return (
        f"every category >= f, eta=.55, .6, .8, .95, {len(ratios)} settings: delta over the bound"
        f" at most {max(ratios):.3f}; Pi = (.1, .9), n=2000, eta=.02, epsilon=.0377: delta ="
        f" {small:.2e}, printed bound {printed_bound(2000, 0.02, 0.1, 0.0377):.2e}; Pi = (1, 0),"
        f" eta=.8, epsilon=3: {certain:.2f}, {printed_bound(2000, 0.8, 1.0, 3.0):.1e}"
    )


@check("S20")
def continuous() -> str:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 10**9, 6).tolist()
    moved = [*x[:-1], int(rng.integers(0, 10**9))]
    sums = [{sum(c) for c in combinations(values, 3)} for values in (x, moved)]
    return f"n=6, T=3: sums only of one database: {len(sums[0] - sums[1])} of 20; T/n = 0.5"


@check("S21")
def with_replacement() -> str:
    true = [1 - (1 - Fraction(1, 10)) ** samples for samples in (1, 2, 5)]
    worst = max(obs.database_profile([x, 10 - x], 0.5, 5.0, replacement="with") for x in range(11))
    return (
        f"n=10, T=5: largest delta(x) = {worst:.4f} < T/(n+1) = {5 / 11:.4f}; T=1, 2:"
        f" {float(true[0]):.4f} > {1 / 11:.4f}, {float(true[1]):.4f} > {2 / 11:.4f}"
    )


@check("S22")
def theorem_5() -> str:
    falls, certain = [], []
    for n in (100, 225, 400):
        samples = math.isqrt(n)
        arguments = (n, Fraction(samples, n), 1 + 2 * samples / n)
        falls.append(obs.smoothed_delta([[0.3, 0.7]], *arguments, replacement="with", log=True))
        certain.append(obs.smoothed_delta([[1.0, 0.0]], *arguments, replacement="with"))
    return (
        f"T = sqrt(n), n=100, 225, 400: Pi = (.3, .7): ln delta ="
        f" {', '.join(f'{v:.1f}' for v in falls)}; Pi = (1, 0): delta ="
        f" {', '.join(f'{v:.4f}' for v in certain)}"
    )


@check("S23")
def proposition_9() -> str:
    corners, larger = [[0.5, 0.5], [0.9, 0.1]], 0
    for epsilon in (0.0, 0.5, 1.0):
        weak = paper.distributional(HISTOGRAM, corners, 5, epsilon)
        larger += weak > paper.smoothed(HISTOGRAM, corners, 5, epsilon)
    return f"n=5, T=3, epsilon=0, .5, 1: distributional above smoothed in {larger} of 3"


@check("S24")
def lemma_10() -> str:
    rng, ratios = np.random.default_rng(3), []
    for p, q in zip(rng.dirichlet(np.ones(3), 300), rng.dirichlet(np.ones(3), 300), strict=True):
        d = paper.divergence(p, q, 0.2) + paper.divergence(q, p, 0.2)
        if d > 1e-6:
            ratios.append(d / paper.utility([p, q], paper.threshold(0.2)))
    p, q = [0.3, 0.7], [0.0, 1.0]
    d = paper.divergence(p, q, 0.5) + paper.divergence(q, p, 0.5)
    u = paper.utility([p, q], paper.threshold(0.5))
    return (
        f"(d + d')/u from {min(ratios):.2f} to {max(ratios):.2f} <= 2; laws (.3, .7), (0, 1):"
        f" u = {u:.4f}, d + d' = {d:.4f}"
    )


def two_ends(shares: list[float]) -> list[list[float]]:
    return [[share, 1 - share] for share in (min(shares), max(shares))]


@check("S25")
def figure_2_left() -> str:
    corners = two_ends(list(SHARES.values()))
    found = [slope(corners, 0.002, e) for e in (0.5, 1.0, 2.0, 7.0)]
    return (
        "epsilon=.5, 1, 2, 7: log10 delta falls by"
        f" {', '.join(f'{-s:.3f}' for s, _ in found)} per 1000 votes"
    )


@check("S26")
def vertices() -> str:
    shares = {name: round(share, 3) for name, share in SHARES.items()}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return (
        f"{low} {shares[low]:.3f}, Nebraska 2 {shares['Nebraska 2']:.3f}, {high} {shares[high]:.3f}"
    )


@check("S27")
def gradients() -> str:
    cells = np.linspace(-0.5, 0.5, 5)
    rows = []
    for mean in (0.0, 0.2):
        cdf = np.array([math.erf((c - mean) / 0.12 / math.sqrt(2)) for c in cells])
        rows.append((np.diff(cdf) / np.diff(cdf).sum()).tolist())
    found = []
    for samples in (2, 3, 4):
        average = paper.of_a_sample(lambda h: h[1] + 2 * h[2] + 3 * h[3], 4, samples)
        found.append(paper.smoothed(average, rows, samples**2, 2.0))
    return f"2 bits, epsilon=2, n=4, 9, 16: {', '.join(f'{d:.4f}' for d in found)}"


@check("S28")
def figure_3() -> str:
    largest = []
    for lost, t in product((0.002, 0.0001), (0.5, 0.51, 0.6)):
        relative, logs = logs_of_elections(lost, t)
        largest.append(f"{logs.max():.1f}")
    return (
        f"largest log10 of delta(x), .2 % lost, t=.5, .51, .6, then .01 %: {', '.join(largest)},"
        f" by differential privacy {math.log10(0.998):.4f} and {math.log10(0.9999):.5f}; .01 %"
        f" lost, t=.6, that is epsilon = {math.log(0.6 / 0.4):.2f}: n delta(x) at most"
        f" 1e{relative.max():.1f}"
    )


@check("S29")
def figure_4() -> str:
    past = [votes[0] / sum(votes) for _, votes in VOTES]
    found = [
        slope(two_ends(list(shares)), lost, 7.0)
        for shares in (SHARES.values(), past)
        for lost in (0.002, 0.05)
    ]
    return (
        "districts, then history, .2 % and 5 % lost: log10 delta falls by"
        f" {', '.join(f'{-s:.2f}' for s, _ in found)} per 1000 votes"
    )


@check("S30")
def definitions() -> str:
    size = sum(VOTES[-1][1])
    samples = obs.SamplingHistogram(rate=0.998).samples(size)
    noise = obs.NoisySamplingHistogram(4.0).proven_loss(1, size=10, prior=None).epsilon
    return (
        f"300000 of {size} votes: {300000 / size:.2%}; T = {samples}; loss of the noise at"
        f" epsilon=1: {noise:.3f}"
    )
