"""Independent constructions that the package is compared with: definitions, written out by
enumeration, with ball arithmetic for functions.

Nothing here uses a closed form or a search of the package. Real functions are evaluated with
python-flint's `arb` at 200 bits (60 digits), so that a difference of two log-gammas of 1e9 keeps 40
of them; every float argument is taken at its exact rational value.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray
from scipy import stats

ctx.prec = 200

#: The probability with which one statistical check rejects a correct sampler. The sampling tests
#: make about 200 such checks, so a run of a correct package fails with probability about 2e-4.
#: Samples are large enough that a scale wrong by 30 % is rejected practically always: every check
#: has a negative control that says so. Cells are pooled until each expects 20, where the chi-square
#: tail is accurate at this level.
FALSE_ALARM = 1e-6
_SMALLEST_CELL = 20.0

Floats = NDArray[np.float64]
Counts = tuple[int, ...]
Law = dict[Counts, float]


# Hellinger distance, by its definition as a ratio of multivariate beta functions.
@lru_cache(maxsize=200_000)
def log_gamma(value: Fraction) -> arb:
    return real(value).lgamma()


def real(value: Fraction | float | int) -> arb:
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def log_beta(concentration: Sequence[Fraction]) -> arb:
    return sum((log_gamma(a) for a in concentration), start=arb(0)) - log_gamma(
        sum(concentration, start=Fraction(0))
    )


def hellinger(a: Iterable[float | Fraction], b: Iterable[float | Fraction]) -> arb:
    """Distance between Dirichlet distributions, `sqrt(1 - B((a + b) / 2) / sqrt(B(a) B(b)))`."""
    first, second = [Fraction(v) for v in a], [Fraction(v) for v in b]
    if first == second:
        return arb(0)
    middle = [(v + w) / 2 for v, w in zip(first, second, strict=True)]
    return (-(log_beta(middle) - (log_beta(first) + log_beta(second)) / 2).expm1()).sqrt()


def gap(a: float | Fraction, b: float | Fraction) -> arb:
    """`(ln G(a) + ln G(b)) / 2 - ln G((a + b) / 2)`."""
    first, second = Fraction(a), Fraction(b)
    return (log_gamma(first) + log_gamma(second)) / 2 - log_gamma((first + second) / 2)


def relative_error(value: float, truth: arb) -> float:
    return float(abs(real(value) - truth) / truth) if truth != 0 else abs(float(value))


# Data sets, neighbours and sensitivities, by enumeration.
@lru_cache(maxsize=64)
def data_sets(size: int, k: int) -> tuple[Counts, ...]:
    """Every histogram of `size` records over `k` categories, of Python integers."""
    size, k = int(size), int(k)
    bars = combinations(range(size + k - 1), k - 1)
    ends = (zip((-1, *bar), (*bar, size + k - 1), strict=True) for bar in bars)
    return tuple(sorted(tuple(right - left - 1 for left, right in of) for of in ends))


def neighbours(counts: Counts) -> Iterator[Counts]:
    """Histograms of the data sets in which one record has changed its category."""
    for i, j in permutations(range(len(counts)), 2):
        if counts[i] > 0:
            yield tuple(count - (index == i) + (index == j) for index, count in enumerate(counts))


def posterior(counts: Iterable[int], prior: Iterable[float]) -> tuple[Fraction, ...]:
    return tuple(
        Fraction(float(alpha)) + int(count) for alpha, count in zip(prior, counts, strict=True)
    )


def local_sensitivity(counts: Counts, prior: Sequence[float]) -> arb:
    """The largest distance to the posterior of a neighbour."""
    own = posterior(counts, prior)
    near = (hellinger(own, posterior(other, prior)) for other in neighbours(counts))
    return max(near, key=float, default=arb(0))


@lru_cache(maxsize=256)
def local_sensitivities(size: int, prior: tuple[float, ...]) -> Floats:
    return np.array(
        [float(local_sensitivity(counts, prior)) for counts in data_sets(size, len(prior))]
    )


@lru_cache(maxsize=64)
def distances(size: int, k: int) -> NDArray[np.int64]:
    """Number of records changed, for every pair of data sets."""
    sets = np.array(data_sets(size, k))
    return np.abs(sets[:, None] - sets[None]).sum(axis=-1) // 2


def smooth_sensitivities(
    size: int,
    prior: tuple[float, ...],
    *,
    gamma: float | None = None,
    beta: float | None = None,
    of: Callable[[Floats], Floats] = np.asarray,
) -> Floats:
    """Both definitions, as an optimum over all data sets; `of` another distance's."""
    local, away = of(local_sensitivities(size, prior)), distances(size, len(prior))
    if gamma is not None:
        return 1 / np.min(1 / local + gamma * away, axis=1)
    assert beta is not None
    return np.max(local * np.exp(-beta * away), axis=1)


# The laws of the mechanisms, from the papers' algorithms.
def exponential_law(counts: Counts, prior: Sequence[float], width: float) -> Law:
    """`P(r) ∝ exp(-H(posterior(x), r) / width)` over every posterior of the same size."""
    centre = posterior(counts, prior)
    candidates = data_sets(sum(counts), len(counts))
    weights = [
        (-hellinger(centre, posterior(candidate, prior)) / real(width)).exp()
        for candidate in candidates
    ]
    total = sum(weights, start=arb(0))
    return {one: float(weight / total) for one, weight in zip(candidates, weights, strict=True)}


def permute_and_flip_law(counts: Counts, prior: Sequence[float], scale: float) -> Law:
    """The candidates in each order, and the first whose coin shows heads; for few of them."""
    centre = posterior(counts, prior)
    candidates = data_sets(sum(counts), len(counts))
    coins = [(-hellinger(centre, posterior(one, prior)) / real(scale)).exp() for one in candidates]
    chances = [arb(0)] * len(coins)
    for order in permutations(range(len(coins))):
        reached = arb(1)
        for index in order:
            chances[index] += reached * coins[index]
            reached *= 1 - coins[index]
    return {
        candidate: float(chance / math.factorial(len(coins)))
        for candidate, chance in zip(candidates, chances, strict=True)
    }


def width(
    kind: str,
    counts: Counts,
    prior: tuple[float, ...],
    *,
    gamma: float | None = None,
    beta: float | None = None,
) -> float:
    """What divides the score: `one`, `global`, `local`, or `smooth` with its parameter."""
    size = sum(counts)
    index = data_sets(size, len(counts)).index(counts)
    if kind == "one":
        return 1.0
    if kind == "smooth":
        return float(smooth_sensitivities(size, prior, gamma=gamma, beta=beta)[index])
    local = local_sensitivities(size, prior)
    return float(local.max() if kind == "global" else local[index])


def floored_laplace_cell(value: int, scale: float) -> float:
    """`P(floor(L) = value)`, from the tail `P(L > t) = exp(-t / scale) / 2`."""
    near = value if value >= 0 else -value - 1
    return math.exp(-near / scale) / 2 - math.exp(-(near + 1) / scale) / 2


def discrete_laplace_cell(value: int, scale: float) -> float:
    """`P(value) ∝ exp(-|value| / scale)`, normalised by summation."""
    return math.exp(-abs(value) / scale) / _discrete_laplace_total(scale)


@lru_cache(maxsize=64)
def _discrete_laplace_total(scale: float) -> float:
    reach = math.ceil(50 * scale) + 1
    return math.fsum(math.exp(-abs(t) / scale) for t in range(-reach, reach + 1))


#: Probabilities of Laplace noise, by the name of the noise.
CELLS = {"discrete": discrete_laplace_cell, "floored": floored_laplace_cell}


def noise_law(kind: str, scale: float) -> dict[int, float]:
    """Integer noise by its definition: `discrete` or `floored` Laplace, or `gaussian`."""
    reach = range(-math.ceil(45 * scale) - 2, math.ceil(45 * scale) + 3)
    if kind != "gaussian":
        return {z: CELLS[kind](z, scale) for z in reach}
    weights = {z: math.exp(-((z / scale) ** 2) / 2) for z in reach}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def laplace_law(counts: Counts, scale: float, noise: str, total: str) -> Law:
    """Noise, clamped and completed: the sum over every value on every noised count."""
    size = sum(counts)
    cell = CELLS[noise]
    noised = counts[:-1] if total in ("remainder", "truncated") else counts
    reach = size + math.ceil(50 * scale) + 2
    marginals = []
    for count in noised:
        terms: list[list[float]] = [[] for _ in range(size + 1)]
        for step in range(-reach, reach + 1):
            terms[min(max(count + step, 0), size)].append(cell(step, scale))
        marginals.append([math.fsum(term) for term in terms])
    law: Law = {}
    for values in product(range(size + 1), repeat=len(noised)):
        released = values
        if total == "truncated":
            released = tuple(min(of, max(size - sum(values[:i]), 0)) for i, of in enumerate(values))
        if total != "bounded":
            released = (*released, min(max(size - sum(released), 0), size))
        law[released] = law.get(released, 0.0) + math.prod(
            marginal[value] for marginal, value in zip(marginals, values, strict=True)
        )
    return law


def law_of(mechanism: object, counts: Counts, prior: Sequence[float]) -> Law:
    """What a mechanism says its law is, as a mapping."""
    candidates, log_p = mechanism.log_pmf(counts, prior)
    assert candidates.shape == (log_p.size, len(counts))
    law = {tuple(one): float(p) for one, p in zip(candidates.tolist(), np.exp(log_p), strict=True)}
    assert len(law) == log_p.size, "a candidate is listed twice"
    return law


def largest_relative_difference(
    law: Mapping[Hashable, float], other: Mapping[Hashable, float]
) -> float:
    return (
        max(abs(law.get(outcome, 0.0) / p - 1) for outcome, p in other.items())
        if law.keys() == other.keys()
        else math.inf
    )


# Statistical checks.
def rejects(
    observed: Iterable[Hashable] | Counter[Hashable], law: Mapping[Hashable, float]
) -> bool:
    """Whether a chi-square test at level `FALSE_ALARM` rejects that the observations are
    independent draws of `law`.

    What the law leaves to one is the probability of every outcome it does not list.
    """
    counts = observed if isinstance(observed, Counter) else Counter(observed)
    number = counts.total()
    rest = max(1 - math.fsum(law.values()), 0.0)
    cells = sorted(  # by what is expected alone: pooling must not depend on what was observed
        [(number * p, counts[outcome]) for outcome, p in law.items()]
        + [(number * rest, sum(counts[o] for o in counts.keys() - law.keys()))],
        key=lambda cell: cell[0],
    )
    pooled: list[tuple[float, int]] = []
    expected, seen = 0.0, 0
    for cell_expected, cell_seen in cells:
        expected, seen = expected + cell_expected, seen + cell_seen
        if expected >= _SMALLEST_CELL:
            pooled.append((expected, seen))
            expected, seen = 0.0, 0
    if pooled:
        pooled[-1] = (pooled[-1][0] + expected, pooled[-1][1] + seen)
    assert len(pooled) >= 2, "no two cells of the law are told apart by so few observations"
    if any(outcome not in law or law[outcome] == 0 for outcome in counts) and rest < 1e-12:
        return True
    statistic = sum((seen - expected) ** 2 / expected for expected, seen in pooled)
    return bool(stats.chi2.sf(statistic, len(pooled) - 1) < FALSE_ALARM)


def check_draws(
    drawn: NDArray[np.int64], law: Callable[[float], Mapping[Any, float]], *others: Mapping
) -> None:
    """Draws, shape `(number,)` or `(number, k)`, follow `law(1)`, and neither that of a scale off
    by 30 %, `law(0.7)` and `law(1.3)`, nor any of the others.
    """
    assert drawn.dtype == np.int64
    values = drawn.tolist()
    observed: Counter[Any] = Counter(values if drawn.ndim == 1 else map(tuple, values))
    assert not rejects(observed, law(1.0))
    for wrong in (law(0.7), law(1.3), *others):
        assert rejects(observed, wrong)


# Privacy losses, from the probabilities alone.
@lru_cache(maxsize=256)
def log_laws(
    mechanism: object, size: int, prior: tuple[float, ...]
) -> tuple[tuple[Counts, ...], Floats]:
    """Every data set and, a row for each, the log-probabilities of the (common) candidates."""
    sets = data_sets(size, len(prior))
    rows = [mechanism.log_pmf(counts, prior) for counts in sets]
    assert all(np.array_equal(candidates, rows[0][0]) for candidates, _ in rows)
    return sets, np.array([log_p for _, log_p in rows])


def over_pairs(
    log_p: Floats, away: NDArray[np.int64], d_in: int, loss: Callable[[Floats, Floats], Floats]
) -> float:
    """The largest `loss(P, Q)` over ordered pairs of data sets within `d_in` changes."""
    worst = 0.0
    for row, near in zip(log_p, (away > 0) & (away <= d_in), strict=True):
        worst = max(worst, float(np.max(loss(row, log_p[near]), initial=0.0)))
    return worst


def epsilon_between(p: Floats, q: Floats) -> Floats:
    return np.max(np.abs(p - q), axis=-1)


def range_between(p: Floats, q: Floats) -> Floats:
    return np.max(p - q, axis=-1) - np.min(p - q, axis=-1)


def exact_losses(
    mechanism: object, size: int, prior: tuple[float, ...], d_in: int = 1
) -> dict[str, float]:
    """ε, the range and ρ over all pairs of data sets within `d_in` changes."""
    _, log_p = log_laws(mechanism, size, prior)
    between = {"epsilon": epsilon_between, "range": range_between, "rho": rho_between}
    away = distances(size, len(prior))
    return {name: over_pairs(log_p, away, d_in, loss) for name, loss in between.items()}


def is_certified(loss: Any, bound: Fraction, within: Fraction) -> bool:
    """Whether a loss is at least that of an exponential mechanism, and hardly above it."""
    ends = (loss.epsilon, bound), (loss.range, bound), (loss.rho, bound**2 / 8)
    return all(least <= Fraction(value) <= least * (1 + within) for value, least in ends)


_ORDERS = np.concatenate([[1.01, 1.05, 1.1], np.geomspace(1.25, 200, 12)])


def rho_between(p: Floats, q: Floats) -> Floats:
    """The largest Renyi divergence divided by its order, over a grid of orders from 1.01 to 200."""
    orders = _ORDERS.reshape(-1, *(1,) * q.ndim)
    logs = orders * p - (orders - 1) * q
    highest = logs.max(axis=-1, keepdims=True)
    # On arrays as short as these scipy's logsumexp is busy with checks.
    with np.errstate(invalid="ignore"):
        sums = np.log(np.exp(logs - highest).sum(axis=-1, keepdims=True))
    divergence = np.where(np.isinf(highest), highest, highest + sums) / (orders - 1) / orders
    return divergence[..., 0].max(axis=0)


def hockey_stick(epsilon: float) -> Callable[[Floats, Floats], Floats]:
    return lambda p, q: np.maximum(np.exp(p) - math.exp(epsilon) * np.exp(q), 0.0).sum(axis=-1)


# Exact accounting: the laws in ball arithmetic, at the exact rational value of every parameter.
@dataclass(frozen=True)
class BallLaws:
    """Log-probabilities for every data set, as balls, with the pairs at each distance."""

    log_p: list[list[arb]]
    p: list[list[arb]]
    away: NDArray[np.int64]

    @classmethod
    def of(cls, log_p: list[list[arb]], size: int, k: int) -> "BallLaws":
        laws = cls(log_p, [[value.exp() for value in row] for row in log_p], distances(size, k))
        for row in laws.p:
            assert abs(sum(row, start=arb(0)) - 1) < 1e-30, "a law does not sum to one"
        return laws

    def pairs(self, d_in: int) -> Iterator[tuple[int, int]]:
        """Ordered pairs of data sets within `d_in` changes."""
        for i, j in zip(*np.nonzero((self.away > 0) & (self.away <= d_in)), strict=True):
            yield int(i), int(j)

    def ratio(self, i: int, j: int) -> list[arb]:
        return [a - b for a, b in zip(self.log_p[i], self.log_p[j], strict=True)]

    def losses(self, d_in: int = 1) -> tuple[arb, arb]:
        """ε and the range."""
        epsilon, spread = arb(0), arb(0)
        for i, j in self.pairs(d_in):
            if i < j:
                ratio = self.ratio(i, j)
                highest, lowest = max(ratio, key=float), min(ratio, key=float)
                epsilon = max(epsilon, highest, -lowest, key=float)
                spread = max(spread, highest - lowest, key=float)
        return epsilon, spread

    def delta(self, epsilon: float, d_in: int = 1) -> arb:
        """`max over ordered pairs of sum of (P - e^epsilon Q)+`."""
        return max(
            (self.delta_between(i, j, epsilon) for i, j in self.pairs(d_in)),
            key=float,
            default=arb(0),
        )

    def delta_between(self, i: int, j: int, epsilon: float) -> arb:
        factor = real(epsilon).exp()
        excess = (p - factor * q for p, q in zip(self.p[i], self.p[j], strict=True))
        return sum((value for value in excess if value > 0), start=arb(0))

    def rho(self, orders: Iterable[float], d_in: int = 1) -> arb:
        """The largest Renyi divergence over its order, for the orders given."""
        worst = arb(0)
        for i, j in self.pairs(d_in):
            ratio = self.ratio(i, j)
            for order in orders:
                pairs = zip(self.p[i], ratio, strict=True)
                terms = (p * (real(order - 1) * value).exp() for p, value in pairs)
                moment = sum(terms, start=arb(0))
                worst = max(worst, moment.log() / real(order - 1) / real(order), key=float)
        return worst


def ball_widths(
    kind: str,
    size: int,
    prior: tuple[float, ...],
    *,
    gamma: float | None = None,
    beta: float | None = None,
) -> list[arb]:
    """What divides the score, for every data set: `one`, `local`, or `smooth`."""
    sets = data_sets(size, len(prior))
    if kind == "one":
        return [arb(1)] * len(sets)
    local = _ball_local_sensitivities(size, prior)
    if kind == "local":
        return local
    away = distances(size, len(prior)).tolist()
    if gamma is not None:
        inverse = [1 / value for value in local]
        return [
            1 / min((v + real(gamma) * d for v, d in zip(inverse, row, strict=True)), key=float)
            for row in away
        ]
    assert beta is not None
    decay = [(-real(beta) * d).exp() for d in range(size + 1)]
    return [max((v * decay[d] for v, d in zip(local, row, strict=True)), key=float) for row in away]


@lru_cache(maxsize=8)
def _ball_local_sensitivities(size: int, prior: tuple[float, ...]) -> list[arb]:
    return [local_sensitivity(counts, prior) for counts in data_sets(size, len(prior))]


@lru_cache(maxsize=2)
def _ball_distances(size: int, prior: tuple[float, ...]) -> list[list[arb]]:
    posteriors = [posterior(counts, prior) for counts in data_sets(size, len(prior))]
    above = {
        (i, j): hellinger(posteriors[i], posteriors[j])
        for i in range(len(posteriors))
        for j in range(i + 1)
    }
    return [
        [above[max(i, j), min(i, j)] for j in range(len(posteriors))]
        for i in range(len(posteriors))
    ]


def ball_exponential_laws(
    size: int, prior: tuple[float, ...], scale: float, widths: Sequence[arb]
) -> BallLaws:
    """`P(r) ∝ exp(-H(posterior(x), r) / (scale width(x)))`."""
    rows = []
    for row, width in zip(_ball_distances(size, prior), widths, strict=True):
        exponents = [-value / (real(scale) * width) for value in row]
        log_total = sum((value.exp() for value in exponents), start=arb(0)).log()
        rows.append([value - log_total for value in exponents])
    return BallLaws.of(rows, size, len(prior))


def ball_laplace_laws(size: int, k: int, scale: float, noise: str, total: str) -> BallLaws:
    """Noise clamped to `0..size`; for `remainder` the last count is left out."""
    marginals = [_ball_clamped(count, size, scale, noise) for count in range(size + 1)]
    noised = [counts[:-1] if total == "remainder" else counts for counts in data_sets(size, k)]
    rows = [
        [sum(values, start=arb(0)) for values in product(*(marginals[count] for count in part))]
        for part in noised
    ]
    return BallLaws.of(rows, size, k)


def _ball_clamped(count: int, size: int, scale: float, noise: str) -> list[arb]:
    """`ln P(clamp(count + Z) = y)` for y = 0..size; their sum is checked where a law is made."""
    if size == 0:
        return [arb(0)]
    q = (-1 / real(scale)).exp()
    above = size - count
    # P(Z = z) = (1 - q) / (1 + q) q^|z|, and P(Z >= m) = P(Z <= -m) = q^m / (1 + q) for m >= 0.
    if noise == "discrete":
        cells = [q ** abs(y - count) * (1 - q) / (1 + q) for y in range(size + 1)]
        ends = q**count / (1 + q), q**above / (1 + q)
    else:  # P(floor(L) = z) from the tails P(L >= m) = P(L < -m) = q^m / 2
        cells = [
            (q ** (y - count) if y >= count else q ** (count - y - 1)) * (1 - q) / 2
            for y in range(size + 1)
        ]
        ends = q ** (count - 1) / 2 if count else 1 - q / 2, q**above / 2
    return [value.log() for value in (ends[0], *cells[1:-1], ends[1])]


def ball_knorm_pair(k: int, scale: float, norm: int, moved: int = 1) -> tuple[list[arb], list[arb]]:
    """Probabilities of noise `P(z) ∝ exp(-||z||_1 / (2 scale))` on the z of sum 0, and of the same
    noise with `moved` records changed.

    Outcomes are those whose noise has `||z||_1 / 2` at most `norm`, which the caller chooses so
    large that the rest does not matter.
    """
    q = (-1 / real(scale)).exp()
    step = (moved, -moved, *(0,) * (k - 2))
    outcomes = [(*z, -sum(z)) for z in product(range(-norm, norm + 1), repeat=k - 1)]
    outcomes = [z for z in outcomes if sum(map(abs, z)) <= 2 * norm]
    powers = [q**d for d in range(norm + moved + 1)]
    first = [sum(map(abs, z)) // 2 for z in outcomes]
    second = [sum(abs(v - s) for v, s in zip(z, step, strict=True)) // 2 for z in outcomes]
    total = sum((powers[d] for d in first), start=arb(0))
    return [powers[d] / total for d in first], [powers[d] / total for d in second]
