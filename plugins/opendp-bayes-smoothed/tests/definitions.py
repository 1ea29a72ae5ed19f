"""The paper's definitions by enumeration with fractions; `e^ε` is the exact value of a float."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod

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
            ways = prod(comb(x, y) for x, y in zip(counts, h, strict=True))
            law[h] = Fraction(ways, comb(size, samples))
        else:
            ways = factorial(samples) // prod(factorial(y) for y in h)
            law[h] = ways * prod(
                (Fraction(x, size) ** y for x, y in zip(counts, h, strict=True)), start=Fraction(1)
            )
    return law


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
        p = prod((row[x] for row, x in zip(rows, database, strict=True)), start=Fraction(1))
        if p:
            total += p * value(tuple(database.count(i) for i in range(k)))
    return total


def smoothed(value, distributions, size):
    """Definition 3: the largest expectation over every choice of distributions, up to order."""
    k = len(distributions[0])
    choices = combinations_with_replacement(distributions, size)
    return max(expectation(value, choice, k) for choice in choices)


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
