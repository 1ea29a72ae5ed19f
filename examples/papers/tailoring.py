"""Checks of "Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions": its text, theorems, formulas and tables (claims T1 to T61).
"""

import math
from itertools import product

import numpy as np
from accuracy import ehds_is_private
from common import (
    UNIFORM,
    Prior,
    check,
    data_sets,
    distances,
    ehd,
    ehds,
    exponential,
    floored_laplace,
    gamma_smooth,
    hamming,
    hockey_stick,
    laplace_law,
    local,
    pure_loss,
)
from experiments import errors, shown, shown_sizes
from notes import ehdl_loss, local_sensitivity
from scipy.integrate import dblquad, quad
from scipy.special import betaln, gammaln
from scipy.stats import beta

import opendp_bayes as ob
import opendp_bayes_research as research

THREE: Prior = (1.0, 1.0, 1.0)

check("T28")(ehdl_loss)
check("T34")(ehds_is_private)
check("T54")(local_sensitivity)


def error(mechanism: ob.Mechanism, counts: list[int], prior: float = 1.0) -> float:
    """The expected Hellinger error."""
    return research.error_law(mechanism, counts, prior).mean()


@check("T2")
def scaled_by_smooth_sensitivity() -> str:
    laws, worst = ehds(30), 0.0
    for x in range(31):
        _, log_p = research.papers.ehds(1.0).log_pmf([x, 30 - x], 1.0)
        worst = max(worst, float(np.abs(np.exp(log_p) - laws[x]).max()))
    return f"n=30: equal to the package's EHDS within 1e-12: {worst < 1e-12}"


@check("T3")
def what_is_proved() -> str:
    loss = pure_loss(ehds(100), 100)
    return f"EHDS at epsilon=1, n=100: exact loss {loss:.4f} with delta = 0"


@check("T55")
def what_smoothness_proves() -> str:
    small = exponential(20, UNIFORM, 4 * 0.01)  # S = 0.01 everywhere changes by 0 <= gamma
    return (
        "S = 0.01 everywhere satisfies Theorem 4.1; epsilon=1, n=20: its exact loss"
        f" {pure_loss(small, 20):.4f}, delta(1) = {hockey_stick(small, 20, 1.0):.4f}"
    )


@check("T4")
def some_cases() -> str:
    shown = []
    for n in (4, 1000):
        counts = [n // 2, n // 2]
        values = [
            error(research.papers.ehds(1.0), counts),
            error(research.papers.beta(1.0, 1e-8, n), counts),
        ]
        values += [
            error(make(1.0, 2), counts) for make in (research.papers.lap, research.papers.ilap)
        ]
        shown.append(f"n={n}: " + ", ".join(f"{value:.4f}" for value in values))
    return "mean H of EHDS, the (eps, delta) mechanism, lap, ilap: " + "; ".join(shown)


@check("T5", "T18")
def local_instead_of_global() -> str:
    shown = []
    for n, x in ((10, 5), (100, 50), (1000, 500), (1000, 0)):
        counts = [x, n - x]
        values = (
            error(research.papers.ehd(1.0, n, [1.0, 1.0]), counts),
            error(research.papers.ehds(1.0), counts),
        )
        shown.append(f"n={n}, x={x}: {values[0]:.4f}, {values[1]:.4f}")
    return "mean H of EHD, EHDS: " + "; ".join(shown)


@check("T6")
def beta_density() -> str:
    integral = quad(lambda t: t**2 * (1 - t) ** 2, 0, 1)[0] / math.exp(betaln(2, 2))
    return f"alpha=beta=2: the printed density integrates to {integral:.4f}"


@check("T7")
def beta_binomial() -> str:
    def weight(t: float) -> float:
        return beta.pdf(t, 2, 3) * t**7 * (1 - t) ** 4

    total = quad(weight, 0, 1)[0]
    worst = max(abs(weight(t) / total - beta.pdf(t, 9, 7)) for t in (0.1, 0.4, 0.6, 0.9))
    return (
        f"prior Beta(2,3), 7 of 11: prior times likelihood is Beta(9,7) within 1e-9: {worst < 1e-9}"
    )


@check("T8")
def dirichlet_density() -> str:
    a = np.array([2.0, 3.0, 1.5])
    constant = math.exp(gammaln(a.sum()) - gammaln(a).sum())
    integral = dblquad(
        lambda y, x: constant * x * y**2 * (1 - x - y) ** 0.5, 0, 1, 0, lambda x: 1 - x
    )[0]
    return f"alpha=(2, 3, 1.5): the density integrates to {integral:.5f}"


@check("T9")
def equality_in_the_definition() -> str:
    return f"epsilon=1, B all of the range: {1.0:.4f} = {math.e:.4f}"


@check("T10")
def equality_with_delta() -> str:
    return (
        f"epsilon=1, delta=0.1, B empty: {0.0:.4f} = {0.1:.4f}; B all: {1.0:.4f} ="
        f" {math.e + 0.1:.4f}"
    )


@check("T11")
def adjacency() -> str:
    pairs = (((0, 0, 0), (0, 0, 1)), ((0, 0, 0), (1, 1, 1)))
    equal = [sum(a == b for a, b in zip(*pair, strict=True)) for pair in pairs]
    return (
        f"(0,0,0) and (0,0,1) agree in {equal[0]} > 1 records, (0,0,0) and (1,1,1) in"
        f" {equal[1]} <= 1"
    )


@check("T12")
def parameters_determine() -> str:
    table = distances(10)
    apart = table[~np.eye(len(table), dtype=bool)].min()
    return (
        f"n=10: H = {np.abs(np.diag(table)).max():.4f} for equal parameters, at least"
        f" {apart:.4f} else"
    )


@check("T13")
def laplace_on_every_parameter() -> str:
    losses = []
    for k in (2, 3, 4):
        mechanism = ob.LaplaceParameters(scale=2.0, noise="floored", total="bounded")
        losses.append(ob.exact_loss(mechanism, size=20, prior=[1.0] * k).epsilon)
    return "k=2, 3, 4: exact loss " + ", ".join(f"{loss:.4f}" for loss in losses)


def largest_movement(n: int, k: int) -> tuple[int, int]:
    """The largest L1 distance and number of parameters that differ, over neighbours."""
    sets = data_sets(n, k)
    moved = sets[:, None] - sets[None]
    near = hamming(n, k) == 1
    return int(np.abs(moved).sum(axis=2)[near].max()), int((moved != 0).sum(axis=2)[near].max())


@check("T14", "T20", "T22")
def movement() -> str:
    found = [largest_movement(5, k) for k in (2, 3, 4, 5)]
    return (
        f"n=5, k=2..5: L1 sensitivity {[each[0] for each in found]},"
        f" parameters that differ {[each[1] for each in found]}"
    )


@check("T16")
def hellinger_of_betas() -> str:
    worst = 0.0
    for a, b in (((2, 3), (4, 1.5)), ((6, 6), (7, 5)), ((0.5, 2), (3, 3))):
        overlap = quad(lambda t, a=a, b=b: math.sqrt(beta.pdf(t, *a) * beta.pdf(t, *b)), 0, 1)[0]
        log_bc = betaln((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) - (betaln(*a) + betaln(*b)) / 2
        printed = math.sqrt(-math.expm1(log_bc))
        package = float(ob.mechanisms.hellinger_distance(a, b))
        worst = max(worst, abs(printed - math.sqrt(1 - overlap)), abs(printed - package))
    return (
        f"three pairs, against the integral and the package: differences below 1e-7: {worst < 1e-7}"
    )


@check("T17")
def total_variation() -> str:
    low, high = math.inf, 0.0
    for n, x, y in ((10, 5, 6), (10, 0, 1), (100, 50, 60), (100, 0, 50)):
        h = distances(n)[x, y]
        law = [np.array([z + 1.0, n - z + 1.0]) for z in (x, y)]
        grid = (np.arange(100_000) + 0.5) / 100_000
        tv = np.abs(beta.pdf(grid, *law[0]) - beta.pdf(grid, *law[1])).mean() / 2
        low, high = min(low, tv / h**2), max(high, tv / (h * math.sqrt(2 - h**2)))
    return f"four pairs: TV / H^2 at least {low:.4f}, TV / (H sqrt(2 - H^2)) at most {high:.4f}"


@check("T19")
def truncated_law() -> str:
    law = laplace_law(10, 3, 2.0)
    return (
        f"n=10, x=3, scale 2: {len(law)} counts from 0 to n, probabilities sum to {law.sum():.6f}"
    )


@check("T21")
def valid_but_not_of_n() -> str:
    law = laplace_law(100, 50, 3.0)
    beyond = sum(law[i] * law[101 - i :].sum() for i in range(1, 101))
    single = [laplace_law(10, x, 2.0).sum() for x in (0, 5, 10)]
    return (
        f"k=3, counts (50, 50, 0): P(released counts sum to more than n) = {beyond:.4f};"
        f" k=2: they sum to n, all {len(single)} laws on 0..n"
    )


@check("T23", "T24")
def laplace_losses() -> str:
    shown = []
    for make in (research.papers.lap, research.papers.ilap):
        losses = [ob.exact_loss(make(1.0, k), size=20, prior=[1.0] * k).epsilon for k in (2, 3, 4)]
        shown.append(", ".join(f"{loss:.4f}" for loss in losses))
    return f"k=2, 3, 4: exact loss of lap {shown[0]}; of ilap {shown[1]}"


@check("T25")
def candidates() -> str:
    found = {sum(x) for x in product((0, 1), repeat=8)}
    return f"n=8: {2**8} data sets give {len(found)} posteriors"


@check("T26")
def ehd_private() -> str:
    worst = max(
        pure_loss(ehd(n, prior), n)
        for n in (1, 3, 10, 50)
        for prior in (UNIFORM, (0.1, 0.1), (0.01, 3.0))
    )
    three = pure_loss(ehd(6, THREE), 6, 3)
    return (
        f"epsilon=1: exact loss at most {worst:.4f} for k=2 (12 settings), {three:.4f} for k=3, n=6"
    )


@check("T27")
def printed_local_sensitivity() -> str:
    return f"n=10, x=5: printed {0.0:.4f}, with x in one of the two places {local(10)[5]:.4f}"


@check("T29")
def smooth_definition() -> str:
    smooth, sensitivity = gamma_smooth(60), local(60)
    above = bool((smooth >= sensitivity * (1 - 1e-12)).all())
    return (
        f"n=60, gamma=1: S >= LS: {above}; S(30) = {smooth[30]:.5f}, LS(30) = {sensitivity[30]:.5f}"
    )


@check("T30")
def change_of_the_inverse() -> str:
    worst = 0.0
    for gamma in (0.01, 0.1, 1.0):
        for n, prior in ((60, UNIFORM), (60, (0.01, 3.0)), (8, THREE)):
            inverse = 1 / gamma_smooth(n, prior, gamma)
            change = np.abs(inverse[:, None] - inverse)[hamming(n, len(prior)) == 1].max()
            worst = max(worst, change / gamma)
    return f"nine settings: |1/S(x) - 1/S(x')| / gamma at most {worst:.6f}"


@check("T31")
def ehds_at_scale_four() -> str:
    law = ehds(20)[10]
    _, log_p = ob.mechanisms.SmoothHellingerExponential(scale=4.0).log_pmf([10, 10], 1.0)
    return (
        f"n=20, x=10: P(r = BI(x)) = {law[10]:.4f}, the package's at scale 4"
        f" {math.exp(log_p[10]):.4f}"
    )


def adjacent_only_at(prior: Prior) -> tuple[float, float]:
    """For n = 30, γ = 1: the largest ratio of S to what adjacent data sets give, and by how much
    1/S of the latter changes between neighbours.
    """
    sensitivity, apart = local(30, prior), hamming(30, len(prior))
    near = np.where(apart <= 1, 1 / sensitivity[None] + apart, np.inf).min(axis=1)
    change = np.abs(near[:, None] - near)[apart == 1].max()
    return float((gamma_smooth(30, prior) * near).max()), float(change)


@check("T32")
def adjacent_only() -> str:
    ones, tenth = adjacent_only_at(THREE), adjacent_only_at((0.1, 0.1, 0.1))
    return (
        f"k=3, n=30, S over adjacent, change of 1/S: prior 1: {ones[0]:.4f}, {ones[1]:.4f};"
        f" prior 0.1: {tenth[0]:.4f}, {tenth[1]:.4f} > 1"
    )


@check("T33")
def number_of_candidates() -> str:
    return (
        f"n=10, m=3: {len(data_sets(10, 3))} posteriors, C(n+m-1, m-1) = {math.comb(12, 2)},"
        f" printed C(n+1, m-1) = {math.comb(11, 2)}"
    )


@check("T35")
def chain_of_sensitivities() -> str:
    table, smooth, sensitivity = distances(20), gamma_smooth(20), local(20)
    change = np.abs(table[:, None] - table[None]).max(axis=2)[hamming(20) == 1]
    worst = max(
        np.abs(table[x] - table[y]).max() / sensitivity[x]
        for x, y in zip(*np.nonzero(hamming(20) == 1), strict=True)
    )
    return (
        f"n=20: LS/S at most {(sensitivity / smooth).max():.4f}, |u(x',r) - u(x,r)|/LS(x) at most"
        f" {worst:.4f}; {change.size} pairs"
    )


@check("T36")
def bounded_score() -> str:
    smooth = gamma_smooth(20)
    x, y = 5, 4  # S is larger at y
    change = 1 / smooth[y] - 1 / smooth[x]
    u = distances(20)[y, 8]
    return (
        f"n=20, x=5, x'=4, r=BI(8): exp(u c/4) = {math.exp(u * change / 4):.4f} <= exp(c/4) ="
        f" {math.exp(change / 4):.4f} is false (c = {change:.4f}); both are <= e^(1/4) ="
        f" {math.exp(0.25):.4f}"
    )


@check("T37")
def denominators() -> str:
    table, smooth = distances(4), gamma_smooth(4)
    x, y, r = 2, 1, 3
    true = math.exp(-table[y, r] / (4 * smooth[y])) / np.exp(-table[x] / (4 * smooth[x])).sum()
    printed = math.exp(-(table[x, r] + table[y, r]) / (4 * smooth[y])) / (
        math.exp(-table[y, r] / (4 * smooth[x]))
        * np.exp(-(table[x] - table[y]) / (4 * smooth[x])).sum()
    )
    change = -np.abs(table[x] - table[y]).max() / (4 * smooth[x])
    return (
        f"n=4, x=2, x'=1, r=BI(3): {true:.4f} = {printed:.4f}; the exponent is at least"
        f" {change:.4f},"
        " and -1/4, not -1/2, is used"
    )


@check("T38")
def any_gamma() -> str:
    worst = []
    for gamma in (0.01, 0.1, 0.5, 1.0, 3.0):
        # At weight exp(-εH/4S) with ε = 1 the claim is (1 + γ) / 2.
        losses = [
            pure_loss(ehds(n, prior, (1 + gamma) / 2, gamma), n)
            for n in (2, 10, 60)
            for prior in (UNIFORM, (0.01, 0.01))
        ]
        worst.append(max(losses) / ((1 + gamma) / 2))
    return "gamma=0.01, 0.1, 0.5, 1, 3: exact loss over the bound at most " + ", ".join(
        f"{value:.4f}" for value in worst
    )


@check("T39")
def floor_law() -> str:
    t = np.arange(4)
    printed = (np.exp(-t / 2) - np.exp(-(t + 1) / 2)) / 2
    return (
        f"scale 2: P(|Y| >= 4) = {math.exp(-2):.4f}; t=0..3:"
        f" {', '.join(f'{p:.5f}' for p in printed)}"
    )


@check("T40")
def floor_law_below() -> str:
    printed = (math.exp(-1 / 2) - 1) / 2
    return (
        f"scale 2, t=-1: printed {printed:.5f}, the probability is"
        f" {float(floored_laplace(-1, 2.0)):.5f}"
    )


def printed_even(a: float, b: float, t: int) -> float:
    half = t // 2
    first = math.prod(math.sqrt(1 - half / (a + k + half)) for k in range(half))
    return 1 - first * math.prod(math.sqrt(1 - half / (b - k)) for k in range(1, half + 1))


def printed_odd(a: float, b: float, t: int) -> float:
    m = (t - 1) // 2
    front = math.exp(gammaln(a + 0.5) - gammaln(a) + gammaln(b - 0.5) - gammaln(b))
    first = math.prod(
        math.sqrt((1 + 1 / (2 * (a + k))) * (1 + (0.5 - m) / (a + m + k))) for k in range(m)
    )
    second = math.prod(
        math.sqrt((1 + 1 / (2 * (b - 0.5 - k))) * (1 + (0.5 - m) / (b - 0.5 - k)))
        for k in range(1, m + 1)
    )
    return 1 - front * first * second


def squared(a: float, b: float, t: int) -> float:
    return float(ob.mechanisms.hellinger_distance([a, b], [a + t, b - t])) ** 2


@check("T41")
def even_product() -> str:
    cases = [(a, b, t) for a, b in ((51, 51), (21, 81), (3.5, 20)) for t in (2, 4, 8)]
    worst = max(abs(printed_even(*case) - squared(*case)) for case in cases)
    return f"nine cases: differences below 1e-12: {worst < 1e-12}"


@check("T42")
def odd_product() -> str:
    return "alpha=beta=51, t=1, 3, 5: " + ", ".join(
        f"printed {printed_odd(51, 51, t):.6f} for H^2 = {squared(51, 51, t):.6f}"
        for t in (1, 3, 5)
    )


@check("T43")
def one_step() -> str:
    return "t=1: " + ", ".join(
        f"alpha={a}, beta={b}: printed {printed_odd(a, b, 1):.6f} for H^2 = {squared(a, b, 1):.6f}"
        for a, b in ((51, 51), (21, 81))
    )


@check("T44")
def two_steps() -> str:
    shown = []
    for a, b in ((51, 51), (21, 81), (6, 6)):
        printed = 1 - math.sqrt(1 - 1 / (a + 1)) * math.sqrt(1 - 1 / b)
        shown.append(f"alpha={a}, beta={b}: printed {printed:.6f} for H^2 = {squared(a, b, 2):.6f}")
    return "t=2: " + ", ".join(shown)


def three_masses(scale: float) -> str:
    return ", ".join(f"{float(floored_laplace(t, scale)):.11f}" for t in (0, 1, 2))


@check("T45")
def masses_of_lap() -> str:
    return f"t=0, 1, 2: {three_masses(2.0)}"


@check("T46")
def masses_and_data() -> str:
    shown = [laplace_law(100, x, 2.0)[x] for x in (50, 5, 1, 0)]
    return "lap, n=100, x=50, 5, 1, 0: P(H = 0) = " + ", ".join(f"{mass:.5f}" for mass in shown)


@check("T47")
def distances_fall() -> str:
    shown = []
    for n in (10, 100, 1000, 10_000):
        half = n / 2 + 1
        shown.append(f"{math.sqrt(squared(half, half, 1)):.5f}")
    return f"x=n/2, t=1, n=10, 100, 1000, 10000: H = {', '.join(shown)}"


@check("T48")
def masses_of_ilap() -> str:
    return f"t=0, 1, 2: {three_masses(1.0)}"


@check("T49")
def formula_of_ehds() -> str:
    shown = []
    for x in (50, 40):
        table, law = distances(100)[x], ehds(100)[x]
        c = table[x + 1]
        exact = law[np.abs(table - c) < 1e-9].sum()
        shown.append(f"x={x}: formula {law[x + 1]:.5f}, P(H = c) = {exact:.5f}")
    return "n=100, t=1: " + "; ".join(shown)


@check("T50")
def first_table() -> str:
    shown = [f"lap {three_masses(2.0)}", f"ilap {three_masses(1.0)}"]
    x, n = 30, 100
    smooth, law = gamma_smooth(n)[x], ehds(n)[x]
    printed = law[x] * math.exp(-math.sqrt(printed_odd(x + 1, n - x + 1, 1)) / (4 * smooth))
    return (
        f"{'; '.join(shown)}; EHDS at n=100, x=30, t=1: printed {printed:.5f}, exact"
        f" {law[x + 1]:.5f}"
    )


@check("T51")
def second_table() -> str:
    parts = []
    for scale in (2.0, 1.0):
        parts += [float(floored_laplace(np.array([-t, t]), scale).sum()) for t in (1, 2)]
    return ", ".join(f"{part:.11f}" for part in parts)


@check("T52")
def where_ehds_is_better() -> str:
    at = {n: ehds(n)[n // 2, n // 2] for n in range(2, 201)}
    lap = [n for n, mass in at.items() if mass > floored_laplace(0, 2.0)]
    ilap = [n for n, mass in at.items() if mass > floored_laplace(0, 1.0)]
    large = research.error_law(research.papers.ehds(1.0), [7500, 7500], 1.0).cdf(0.0)
    return (
        f"balanced, n=2..200: above lap for n in {lap}, above ilap for n in {ilap};"
        f" n=15000: {float(large):.4f}"
    )


@check("T53")
def second_and_third_bullet() -> str:
    n, x = 100, 50
    smooth, law = gamma_smooth(n)[x], ehds(n)[x]
    wrong = printed_odd(51, 51, 1)
    both = 2 * law[x + 2]
    sides = float(floored_laplace(np.array([-2, 2]), 2.0).sum())
    return (
        f"n=100, x=50: step 1 with H^2 = {wrong:.6f} where it is {distances(n)[x, x + 1] ** 2:.6f};"
        f" step 2 sets both sides ({both:.5f}) equal to one side of lap"
        f" ({float(floored_laplace(2, 2.0)):.5f},"
        f" both are {sides:.5f}); S = {smooth:.5f}"
    )


@check("T56")
def small_priors() -> str:
    sizes = (*range(2, 301), 1000, 15_000)
    at = {n: errors(n) for n in sizes}
    ahead = [shown_sizes([n for n in sizes if at[n][0] < at[n][by]]) for by in (2, 3)]
    parts = [f"n={n}: {shown(at[n])}" for n in (100, 300, 1000, 15_000)]
    return (
        f"of n = 2..300, 1000, 15000 EHDS beats lap at {ahead[0]}, ilap at {ahead[1]}; mean H of"
        f" EHDS, the (eps, delta) mechanism, lap, ilap: {'; '.join(parts)}"
    )


@check("T57")
def large_priors() -> str:
    parts = []
    for a in (100.0, 1000.0, 1e5):
        ours, notes, _, ilap = errors(100, 2, 1.0, a)
        parts.append(
            f"Beta({a:.0f},{a:.0f}): {shown((ours, notes, ilap))}, EHDS {ours / ilap:.2f} times"
            " ilap"
        )
    return f"data (50, 50), mean H of EHDS, the (eps, delta) mechanism, ilap: {'; '.join(parts)}"


@check("T58")
def accuracy_is_a_sum() -> str:
    law, table = ehds(100)[50], distances(100)[50]
    return f"n=100, x=50: the sum of c P(H = c) over the {len(law)} candidates is {law @ table:.4f}"


@check("T59")
def less_noise() -> str:
    exact = ob.calibrate(
        research.papers.ehds(1.0), size=1000, prior=[1.0, 1.0], epsilon=1.0, tune=False
    )
    nominal = research.papers.ehds(1.0)
    loss = ob.exact_loss(nominal, size=1000, prior=[1.0, 1.0]).epsilon
    return (
        f"n=1000, gamma=1: exact loss {loss:.4f} at scale 4; at the scale of exact loss 1,"
        f" {exact.scale:.3f}, mean H falls from {error(nominal, [500, 500]):.4f} to"
        f" {error(exact, [500, 500]):.4f}"
    )


@check("T61")
def data_variance() -> str:
    shown = []
    for x in (500, 200, 50):
        counts = [x, 1000 - x]
        values = (
            error(research.papers.ehds(1.0), counts),
            error(research.papers.lap(1.0, 2), counts),
        )
        shown.append(f"{x}/{1000 - x}: {values[0]:.4f}, {values[1]:.4f}")
    return "no figure varies it; mean H of EHDS, lap, n=1000: " + "; ".join(shown)
