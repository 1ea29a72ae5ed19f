"""The paper's definitions by enumeration with fractions; `e^ε` is the exact value of a float."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product

import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob
from tests.helpers import oracles

Law = Mapping[Hashable, Fraction]
Counts = tuple[int, ...]


@lru_cache(maxsize=100_000)
def sampled(counts: Counts, samples: int, replacement: str) -> Law:
    """The law of the histogram of so many records drawn from a database with these counts."""
    size = sum(counts)
    law = {}
    for h in oracles.data_sets(samples, len(counts)):
        if replacement == "without":
            ways = math.prod(math.comb(x, y) for x, y in zip(counts, h, strict=True))
            law[h] = Fraction(ways, math.comb(size, samples))
        else:
            ways = math.factorial(samples) // math.prod(math.factorial(y) for y in h)
            law[h] = ways * math.prod(
                (Fraction(x, size) ** y for x, y in zip(counts, h, strict=True)), start=Fraction(1)
            )
    return law


def drawn(samples: int, replacement: str = "without") -> Callable[[Counts], Law]:
    """The mechanism that publishes the histogram of so many records."""
    return lambda counts: sampled(counts, samples, replacement)


def noised(samples: int, q: Fraction, largest: int) -> Callable[[Counts], Law]:
    """The noised histogram (Algorithm 4) to a largest count: `P(y | h) ∝ q^|y - h|` on y >= 0."""

    @cache  # data sets have the same samples
    def of_sample(h: Counts) -> Law:
        each = [
            [q ** abs(y - x) * (1 - q) / (1 + q - q ** (x + 1)) for y in range(largest + 1)]
            for x in h
        ]
        outcomes = product(range(largest + 1), repeat=len(h))
        return {y: math.prod(row[at] for row, at in zip(each, y, strict=True)) for y in outcomes}

    @cache
    def law(counts: Counts) -> Law:
        result: dict[Hashable, Fraction] = defaultdict(Fraction)
        for h, p in sampled(counts, samples, "without").items():
            for y, weight in of_sample(h).items() if p else ():
                result[y] += p * weight
        return result

    return law


def log_comb(n: int, k: int) -> oracles.arb:
    """The logarithm of a binomial coefficient, in ball arithmetic."""
    of_n, of_k, of_rest = (oracles.log_gamma(Fraction(m + 1)) for m in (n, k, n - k))
    return of_n - of_k - of_rest


def ratio(k: int, a: int, b: int, s: int) -> Fraction:
    """`P(k | a - 1, b + 1) / P(k | a, b)` of s records that are drawn without replacement."""
    return Fraction(a - k, a) * Fraction(b + 1, b + 1 - s + k)


def hockey_stick(p: Law, q: Law, factor: Fraction) -> Fraction:
    """`max_S P(S) - factor Q(S)`."""
    terms = (max(p[of] - factor * q.get(of, Fraction(0)), Fraction(0)) for of in p)
    return sum(terms, Fraction(0))


def profile(law: Callable[[Counts], Law], counts: Counts, epsilon: float) -> Fraction:
    """Definition 2: the larger direction, over all neighbours."""
    factor, here = Fraction(math.exp(epsilon)), law(counts)
    there = [law(other) for other in oracles.neighbours(counts)]
    return max(
        (hockey_stick(*pair, factor) for other in there for pair in ((here, other), (other, here))),
        default=Fraction(0),
    )


def expectation(value, distributions, k):
    """`E[value(histogram)]`, one record from each of the distributions: over every database."""
    total = Fraction(0)
    rows = list(distributions)
    for database in product(range(k), repeat=len(rows)):
        p = math.prod((row[x] for row, x in zip(rows, database, strict=True)), start=Fraction(1))
        if p:
            total += p * value(tuple(database.count(i) for i in range(k)))
    return total


def smoothed(value, distributions, size):
    """Definition 3: the largest expectation over every choice of distributions, up to order."""
    k = len(distributions[0])
    choices = combinations_with_replacement(distributions, size)
    return max(expectation(value, choice, k) for choice in choices)


def smoothed_delta(law, distributions, size, epsilon):
    """Definition 3 of the profiles of a mechanism."""
    sets = oracles.data_sets(size, len(distributions[0]))
    return smoothed({x: profile(law, x, epsilon) for x in sets}.__getitem__, distributions, size)


def pushed(law: Law, function: Callable[[Hashable], Mapping[Hashable, Fraction]]) -> Law:
    """The law after a randomised function."""
    result: dict[Hashable, Fraction] = defaultdict(Fraction)
    for outcome, p in law.items():
        for image, q in function(outcome).items():
            result[image] += p * q
    return result


def both(p: Law, q: Law) -> Law:
    """The law of two independent outcomes."""
    return {(a, b): x * y for (a, x), (b, y) in product(p.items(), q.items())}


def posterior_of(size: int) -> dp.Transformation:
    """The posterior of a frame with a column of two categories and a public number of records."""
    domain = dp.lazyframe_domain([dp.series_domain("vote", dp.enum_domain(pl.Series(["a", "b"])))])
    counts = ob.t.make_categorical_counts(
        domain, dp.change_one_distance(), column="vote", size=size, nulls="a"
    )
    return counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
