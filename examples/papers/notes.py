"""Checks of "Notes of DP - Bayesian Inference" (claims N1 to N41)."""

import math

import numpy as np
from common import (
    UNIFORM,
    Prior,
    beta_smooth,
    check,
    data_sets,
    distances,
    ehd,
    ehdl,
    exponential,
    hamming,
    hockey_stick,
    local,
    notes_beta,
    notes_mechanism,
    pure_loss,
)
from scipy.special import betaln

import opendp_bayes as ob

PRIORS: tuple[Prior, ...] = (UNIFORM, (0.1, 0.1), (0.01, 2.0), (3.0, 0.5), (20.0, 5.0))
#: The only kind of instance of the case that the notes' proof of non-privacy assumes.
CASE_PRIOR = (0.1, 3.0, 1.0)


@check("N1")
def exponential_mechanism() -> str:
    laws, worst = ehd(10), 0.0
    for x in range(11):
        _, log_p = ob.mechanisms.HellingerExponential(scale=2 * local(10).max()).log_pmf(
            [x, 10 - x], 1.0
        )
        worst = max(worst, float(np.abs(np.exp(log_p) - laws[x]).max()))
    return (
        f"n=10: {len(laws)} candidates, rows sum to {laws.sum() / 11:.6f};"
        f" equal to the package's EHD within 1e-12: {worst < 1e-12}"
    )


@check("N2")
def global_sensitivity() -> str:
    parts = []
    for n, prior in ((10, UNIFORM), (8, (1.0, 1.0, 1.0)), (6, (0.1, 2.0, 1.0))):
        change = largest_change(n, prior)
        parts.append(f"{change.max():.5f} = {ob.mechanisms.global_sensitivity(n, prior):.5f}")
    return "by definition and by closed form: " + ", ".join(parts)


def largest_change(n: int, prior: Prior) -> np.ndarray:
    """`max over r of |H(x, r) - H(x', r)|` of all pairs of neighbours; 0 for other pairs."""
    table = distances(n, prior)
    change = np.abs(table[:, None] - table[None]).max(axis=2)
    return np.where(hamming(n, len(prior)) == 1, change, 0.0)


@check("N3")
def ehd_is_private() -> str:
    settings = [(n, prior, e) for n in (1, 2, 5, 20) for prior in PRIORS for e in (0.1, 1.0, 5.0)]
    worst = max(pure_loss(ehd(n, prior, e), n) / e for n, prior, e in settings)
    return f"largest exact loss over epsilon in {len(settings)} settings: {worst:.4f}"


@check("N4")
def ehd_chain() -> str:
    n, prior = 10, UNIFORM
    scores = np.exp(-distances(n, prior) / (2 * local(n).max()))
    totals = scores.sum(axis=1)
    near = hamming(n) == 1
    first = max((scores[near.nonzero()[0]] / scores[near.nonzero()[1]]).max(), 0)
    second = (totals[None] / totals[:, None])[near].max()
    literal = (scores[5, 0] / totals[5]) / (scores[6, 0] / totals[6])
    true = (scores[5, 5] / totals[5]) / (scores[6, 5] / totals[6])
    return (
        f"factors {first:.4f} and {second:.4f} <= e^0.5 = {math.exp(0.5):.4f};"
        f" with r' = BI(0): {literal:.4f} for P_x(r)/P_y(r) = {true:.4f}"
    )


@check("N5")
def ehd_from_below() -> str:
    laws = ehd(20)
    first, second = np.nonzero(hamming(20) == 1)
    ratio = laws[first] / laws[second]
    return (
        f"n=20: ratios from {ratio.min():.4f} to {ratio.max():.4f}, product"
        f" {ratio.min() * ratio.max():.4f}"
    )


@check("N6")
def ehdl_definition() -> str:
    laws, worst = ehdl(10), 0.0
    for x in range(11):
        _, log_p = ob.mechanisms.HellingerExponential(2.0, sensitivity="local").log_pmf(
            [x, 10 - x], 1.0
        )
        worst = max(worst, float(np.abs(np.exp(log_p) - laws[x]).max()))
    return f"n=10: differs from the package's EHDL by less than 1e-12: {worst < 1e-12}"


def ehdl_terms(n: int, prior: Prior, x: int, y: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """`u(x, .)`, `u(y, .)`, `LS(x)`, `LS(y)`."""
    table, sensitivity = -distances(n, prior), local(n, prior)
    return table[x], table[y], float(sensitivity[x]), float(sensitivity[y])


def ehdl_ratio(n: int, prior: Prior, x: int, y: int, r: int) -> float:
    laws = ehdl(n, prior)
    return float(laws[x, r] / laws[y, r])


@check("N7")
def ratio_identity() -> str:
    ux, uy, dx, dy = ehdl_terms(4, UNIFORM, 4, 3)
    r = 4
    front = math.exp((ux[r] / dx - uy[r] / dy) / 2)
    first = front * np.exp(ux / (2 * dy)).sum() / np.exp((ux[r] / dx + uy / dy) / 2).sum()
    second = (
        np.exp((ux[r] / dx + uy / dy + ux / dx) / 2).sum()
        / np.exp((uy[r] / dy + ux / dx) / 2).sum()
    )
    true = ehdl_ratio(4, UNIFORM, 4, 3, r)
    return f"n=4, x=4, y=3: printed {first:.4f}, then {second:.4f}; the ratio is {true:.4f}"


@check("I3")
def corrected_identity() -> str:
    worst = 0.0
    for x in range(11):
        for y in (x - 1, x + 1):
            for r in range(11):
                if not 0 <= y <= 10:
                    continue
                ux, uy, dx, dy = ehdl_terms(10, UNIFORM, x, y)
                printed = (
                    np.exp((ux[r] / dx + uy / dy) / 2).sum()
                    / np.exp((uy[r] / dy + ux / dx) / 2).sum()
                )
                worst = max(worst, abs(printed / ehdl_ratio(10, UNIFORM, x, y, r) - 1))
    return f"n=10, all neighbours and candidates: relative difference below 1e-12: {worst < 1e-12}"


def instances(n: int, prior: Prior) -> tuple[int, int]:
    """Pairs (x, y) of neighbours, and those with `r = BI(x)` the farthest candidate from y,
    `LS(y) < LS(x)` and `LS(y) = H(x, y)`.
    """
    table, sensitivity, near = distances(n, prior), local(n, prior), hamming(n, len(prior)) == 1
    farthest = table >= table.max(axis=1, keepdims=True) - 1e-12
    smaller = sensitivity[None] < sensitivity[:, None] - 1e-12
    equal = np.abs(sensitivity[None] - table) < 1e-12
    return int(near.sum()), int((near & farthest.T & smaller & equal).sum())


@check("N8", "I4")
def assumed_case() -> str:
    two = [instances(n, prior) for n in range(1, 31) for prior in PRIORS]
    three = [
        instances(n, p) for n in range(2, 9) for p in ((1.0, 1.0, 1.0), CASE_PRIOR, (5.0, 0.01, 1))
    ]
    pairs, found = (sum(column) for column in zip(*two, strict=True))
    pairs3, found3 = (sum(column) for column in zip(*three, strict=True))
    single = instances(1, CASE_PRIOR)[1]
    return (
        f"k=2, n=1..30: {found} of {pairs} pairs; k=3, n=2..8: {found3} of {pairs3};"
        f" k=3, n=1, prior (0.1, 3, 1): {single}"
    )


def case_terms() -> tuple[np.ndarray, np.ndarray, float, float, int]:
    """The terms of an instance of the assumed case: one record of three categories."""
    sets = data_sets(1, 3)
    x, y = (int(np.nonzero(sets[:, i])[0][0]) for i in (0, 1))
    return *ehdl_terms(1, CASE_PRIOR, x, y), x


@check("N9")
def first_step() -> str:
    ux, uy, dx, dy, r = case_terms()
    left = np.exp((ux[r] / dx + uy / dy) / 2).sum() / np.exp((ux[r] / dy + ux / dx) / 2).sum()
    right = np.exp((ux[r] + uy) / dx / 2).sum() / np.exp((uy[r] + ux) / dy / 2).sum()
    return f"in the assumed case (n=1, k=3): left {left:.4f}, right {right:.4f}; not >"


@check("I5")
def first_step_corrected() -> str:
    ux, uy, dx, dy, r = case_terms()
    left = np.exp((ux[r] / dx + uy / dy) / 2).sum() / np.exp((uy[r] / dy + ux / dx) / 2).sum()
    right = np.exp((ux[r] + uy) / dx / 2).sum() / np.exp((uy[r] + ux) / dy / 2).sum()
    return f"in the assumed case (n=1, k=3): left {left:.4f}, right {right:.4f}; not >"


@check("N10")
def second_step() -> str:
    ux, uy, dx, dy, r = case_terms()
    left = np.exp((ux[r] + uy) / dx / 2).sum() / np.exp((uy[r] + ux) / dy / 2).sum()
    right = math.exp((ux[r] + uy[r]) / dx / 2) / math.exp((ux[r] + uy[r]) / dy / 2)
    return f"in the assumed case (n=1, k=3): {left:.4f} > {right:.4f}"


@check("N11")
def score_of_itself() -> str:
    ux, uy, _, dy, r = case_terms()
    return f"u(x, r) = {abs(ux[r]):.4f}, -u(y, r) = {-uy[r]:.4f}, LS(y) = {dy:.4f}"


@check("N12", "I6")
def more_than_two() -> str:
    ux, uy, dx, dy, r = case_terms()
    value = (ux[r] + uy[r]) / dx - (ux[r] + uy[r]) / dy
    return f"the left side is 1 - LS(y)/LS(x) = {value:.4f} (n=1, k=3), always below 1"


@check("N13", "I7")
def ratio_beyond() -> str:
    rng, worst = np.random.default_rng(0), 0.0
    found = 0
    for _ in range(300):
        prior = tuple(10 ** rng.uniform(-3, 1, 3))
        table, sensitivity = distances(1, prior), local(1, prior)
        laws = ehdl(1, prior)
        for x in range(3):
            for y in range(3):
                if x != y and sensitivity[y] < sensitivity[x] and table[y].argmax() == x:
                    found += 1
                    worst = max(worst, float(laws[x, x] / laws[y, x]))
    return f"largest ratio in {found} instances of the case: {worst:.4f} < e = {math.e:.4f}"


@check("N14", "I8")
def ehdl_loss() -> str:
    ones = [
        ob.exact_loss(
            ob.mechanisms.HellingerExponential(2.0, "local"), size=n, prior=[1.0, 1.0]
        ).epsilon
        for n in (10, 100, 1000)
    ]
    small = pure_loss(ehdl(500, (0.01, 0.01)), 500)
    return (
        "Beta(1,1), n=10, 100, 1000: "
        + ", ".join(f"{loss:.4f}" for loss in ones)
        + f"; Beta(.01,.01), n=500: {small:.4f}"
    )


def steps(n: int, prior: Prior = UNIFORM) -> np.ndarray:
    """`H(BI(x), BI(x + 1))` for x = 0..n - 1."""
    x = np.arange(n)
    return ob.mechanisms.hellinger_distance(
        np.stack([x + prior[0], n - x + prior[1]], axis=1),
        np.stack([x + 1 + prior[0], n - x - 1 + prior[1]], axis=1),
    )


@check("N17")
def neighbours_of_x() -> str:
    return "n=10, x0=5: Beta " + ", ".join(f"({x + 1}, {10 - x + 1})" for x in (4, 5, 6))


@check("N18", "I10")
def growing_steps() -> str:
    pairs = failures = 0
    for n in range(2, 201):
        step = steps(n)
        for x in range(n // 2, n - 1):  # of an odd n the smaller x0
            pairs += 1
            failures += not step[x] < step[x + 1]
    return f"n=2..200, x0 <= x <= n-2: {failures} failures in {pairs}"


@check("N19", "I11")
def shrinking_steps() -> str:
    step = steps(100)
    failing = [x for x in range(51) if not step[x] > step[x + 1] * (1 + 1e-12)]
    return f"n=100, x <= x0=50: fails at x = {failing}: H {step[50]:.6f} < {step[51]:.6f} at 50"


@check("N20", "I12")
def where_the_maximum_is() -> str:
    failures = 0
    for n in range(2, 101):
        step, sensitivity = steps(n), local(n)
        for x in range(1, n):
            failures += 2 * x >= n and not math.isclose(sensitivity[x], step[x])
            failures += 2 * x <= n and not math.isclose(sensitivity[x], step[x - 1])
    ends = f"LS({10})={local(10)[10]:.5f}=H(BI(10),BI(9)), BI(11)=Beta(12,0)"
    return f"n=2..100, 0<x<n: {failures} failures; at x=n=10: {ends}"


@check("N21", "N25", "I13")
def smallest_at_the_middle() -> str:
    failing = []
    for n in range(1, 101):
        sensitivity = local(n)
        middle = {n // 2, (n + 1) // 2}
        others = [x for x in range(n + 1) if x not in middle]
        if others and not min(sensitivity[others]) > sensitivity[n // 2] * (1 + 1e-12):
            failing.append(n)
    return f"n=1..100: fails at n={failing}; n=2: LS(0)=LS(1)=LS(2)={local(2)[0]:.4f}"


@check("N22", "I14")
def base_case() -> str:
    left = np.polymul(np.polymul([1, -1], [1, -1]), np.polymul([1, 2], [1, 4]))
    right = np.polymul(np.polymul([1, 3], [1, 3]), np.polymul([1, 0], [1, -2]))
    difference = np.trim_zeros(np.polysub(left, right), "f").astype(int).tolist()
    return f"left - right = {difference[0]} n + {difference[1]}"


@check("N23", "I15")
def induction_step() -> str:
    n, m = 20, 0

    def log_beta(a: float, b: float) -> float:
        return float(betaln(a, b))

    def ratio(a: float, b: float) -> float:
        """`B(a + 1/2, b - 1/2) / sqrt(B(a, b) B(a + 1, b - 1))`."""
        return math.exp(log_beta(a + 0.5, b - 0.5) - (log_beta(a, b) + log_beta(a + 1, b - 1)) / 2)

    half = n / 2
    root = (log_beta(half + 2 + m, half - m) + log_beta(half + 3 + m, half - m - 1)) / 2
    left = math.exp(log_beta((n + 2 * m + 5) / 2, (n - 2 * m - 1) / 2) - root)
    right = math.exp(log_beta((n + 2 * m + 7) / 2, (n - 2 * m - 3) / 2) - root)
    true_left = ratio(half + 2 + m, half - m)
    true_right = ratio(half + 3 + m, half - m - 1)
    return (
        f"n=20, m=0: printed {left:.4f} > {right:.4f} is false;"
        f" with its own denominator {true_left:.6f} > {true_right:.6f}"
    )


@check("N24")
def local_sensitivity() -> str:
    worst = 0.0
    for n, prior in ((12, UNIFORM), (9, (0.1, 3.0)), (5, (1.0, 1.0, 1.0)), (5, (0.1, 3.0, 1.0))):
        worst = max(worst, np.abs(largest_change(n, prior).max(axis=1) - local(n, prior)).max())
    return f"largest difference in four settings below 1e-12: {worst < 1e-12}"


def dilation_excess(epsilon: float, delta: float, sign: int) -> float:
    """`sup over S of P(S) - e^(ε/2) P(e^λ S)` for Lap(1) and λ = ± ε / (2 ln(2/δ))."""
    size = epsilon / (2 * math.log(2 / delta))
    if sign > 0:
        cut = (epsilon / 2 + size) / math.expm1(size)
        return math.exp(-cut) - math.exp(epsilon / 2 - math.exp(size) * cut)
    if size <= epsilon / 2:
        return 0.0
    cut = (size - epsilon / 2) / -math.expm1(-size)
    return -math.expm1(-cut) + math.exp(epsilon / 2) * math.expm1(-math.exp(-size) * cut)


@check("N26", "I18")
def laplace_dilation() -> str:
    worst = max(
        dilation_excess(e, d, s) / (d / 2)
        for e in np.linspace(0.01, 1, 100)
        for d in 10 ** np.linspace(-12, -0.01, 100)
        for s in (1, -1)
    )
    large = dilation_excess(10, 1e-6, 1)
    return (
        f"epsilon <= 1: excess at most {worst:.3f} of delta/2;"
        f" epsilon=10, delta=1e-6: excess {large:.2e} > {5e-7:.2e}"
    )


@check("N27")
def ratio_of_integrals() -> str:
    dilated = 1 - math.exp(-math.exp(0.1))
    ratio = dilated / (1 - math.exp(-1))
    at = [math.exp(0.1 - math.exp(0.1) * z + z) for z in (0, 1)]
    return (
        f"S=[0,1], lambda=0.1: {ratio:.4f}; the right side is {at[0]:.4f} at z=0,"
        f" {at[1]:.4f} at z=1"
    )


@check("N28", "I19")
def ratio_at_most_half() -> str:
    lemma, proof = (math.exp(1 / (2 * math.log(c / 1e-6))) for c in (2, 3))
    return (
        f"epsilon=1, delta=1e-6, S around 0: the ratio tends to {lemma:.4f} for lambda ="
        f" epsilon/(2 ln(2/delta)), {proof:.4f} with the proof's ln(3/delta); epsilon/2 = 0.5"
    )


@check("N29")
def exchanged_densities() -> str:
    return (
        f"z=0, lambda=-0.5: h = {0.5:.4f} > h' = {0.5 * math.exp(-0.5):.4f}, and"
        f" e^(|z||lambda|) = 1"
    )


@check("N30")
def laplace_tail() -> str:
    return f"delta=0.01: P(|z| > {math.log(200):.4f}) = {math.exp(-math.log(200)):.4f}"


def scores_of_two() -> tuple[float, float, float]:
    """n = 2, x = (1, 1): `P(u = 0)`, `P(u = -s)` and s at ε = 1; all local sensitivities agree."""
    law, table = ehdl(2)[1], distances(2)[1]
    return float(law[1]), float(law[0] + law[2]), float(table[0])


@check("N31")
def sliding() -> str:
    at_zero, _, _ = scores_of_two()
    return f"n=2, x=(1,1), s=0, Delta=-S/2: {at_zero:.4f} <= e^0.5 * 0 + delta/2"


@check("N32")
def mass_of_a_score() -> str:
    at_zero, away, _ = scores_of_two()
    return (
        f"n=2, x=(1,1): the formula gives {at_zero * math.exp(-0.5):.4f}, P(u = -0.4086)"
        f" = {away:.4f}"
    )


@check("N33")
def beta_smooth_sensitivity() -> str:
    values = beta_smooth(50, UNIFORM, 0.05)
    sensitivity = local(50)
    package = [ob.mechanisms.smooth_sensitivity([x, 50 - x], 1.0, beta=0.05) for x in range(51)]
    return (
        f"n=50, beta=0.05: S >= LS: {bool((values >= sensitivity).all())}, largest change of ln S"
        f" {np.abs(np.diff(np.log(values))).max():.4f}, the package's:"
        f" {np.allclose(values, package, rtol=1e-12)}"
    )


@check("N34")
def dilation() -> str:
    _, away, score = scores_of_two()
    return f"n=2, x=(1,1), z=-{score:.4f}, any lambda but 0: {away:.4f} <= e^0.5 * 0 + delta/2"


@check("N35")
def exponent_below_one() -> str:
    return f"lambda=-0.1: e^lambda = {math.exp(-0.1):.4f} < 1"


def tail(n: int, x: int, epsilon: float, delta: float) -> float:
    """P(u <= S / (1 - e^λ)) at the largest λ the notes allow."""
    beta = notes_beta(epsilon, delta, n)
    smooth = beta_smooth(n, UNIFORM, beta)
    law = exponential(n, UNIFORM, 2 * smooth / epsilon)[x]
    return float(law[-distances(n, UNIFORM)[x] <= smooth[x] / -math.expm1(beta)].sum())


@check("N36")
def mass_of_g() -> str:
    return (
        f"n=500, x=250, delta=0.1: epsilon=1: P(G) = {tail(500, 250, 1.0, 0.1):.2e},"
        f" epsilon=20: {tail(500, 250, 20.0, 0.1):.2e}, not 0.95"
    )


@check("N37")
def accuracy_property() -> str:
    worst = 0.0
    for n, x, epsilon in ((10, 3, 1.0), (100, 50, 1.0), (100, 0, 5.0)):
        width = 2 * beta_smooth(n, UNIFORM, 0.05)[x] / epsilon
        row = distances(n, UNIFORM)[x]
        law = np.exp(-row / width) / np.exp(-row / width).sum()
        for c in row:
            worst = max(worst, law[row >= c].sum() / ((n + 1) * math.exp(-c / width)))
    return f"largest P(u <= c) over the bound: {worst:.4f}"


@check("N38")
def number_of_candidates() -> str:
    numbers = [len(distances(n, UNIFORM)) for n in (1, 10, 100)]
    best = -distances(100, UNIFORM).min(axis=1).max()
    return f"k=2, n=1, 10, 100: {numbers} candidates; OPT = {abs(best):.4f} for every x"


@check("N39")
def tail_below() -> str:
    worst = 0.0
    for n in (1, 10, 1000):
        for epsilon in (0.1, 1.0, 10.0):
            for delta in (1e-8, 0.1):
                beta = notes_beta(epsilon, delta, n)
                bound = (n + 1) * math.exp(-epsilon / (2 * math.expm1(beta)))
                worst = max(worst, bound / (delta / 2))
    return (
        f"(n+1) exp(epsilon / (2 (1 - e^lambda))) over delta/2 at the largest lambda: {worst:.6f}"
    )


@check("N40")
def notes_are_private() -> str:
    rng, loss, excess = np.random.default_rng(1), 0.0, 0.0
    for _ in range(400):
        n = int(rng.integers(1, 40))
        prior = tuple(10 ** rng.uniform(-4, 2, 2))
        epsilon, delta = float(10 ** rng.uniform(-1, 1.5)), float(10 ** rng.uniform(-8, -0.1))
        laws = notes_mechanism(n, prior, epsilon, delta)
        loss = max(loss, pure_loss(laws, n) / epsilon)
        excess = max(excess, hockey_stick(laws, n, epsilon) / delta)
    # Found by a search for large losses.
    n, epsilon, delta = 77, 16.5, 0.043
    laws = notes_mechanism(n, (0.0294, 5e-5), epsilon, delta)
    worst, beyond = pure_loss(laws, n) / epsilon, hockey_stick(laws, n, epsilon) / delta
    return (
        f"k=2, 400 random settings: exact pure loss at most {loss:.4f} epsilon,"
        f" delta(epsilon)/delta at most {excess:.4f}; n=77, Beta(.0294, 5e-5), epsilon=16.5,"
        f" delta=.043: {worst:.4f} epsilon and {beyond:.1e}"
    )
