"""Keys that nobody listed, by their definition: every outcome of a few keys is listed, with its
probability before and after one person's records move.

Nothing here is the package's but the laws that `both` is asked for: the others are recursions and
sums, in floating point, and products are taken outcome by outcome.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.unlisted.thresholds import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)

Floats = NDArray[np.float64]
#: The count of one key before and after.
Move = tuple[int, int]


@dataclass(frozen=True)
class Noise:
    """`P(Z = first + i) = p[i]`, and the least noisy count that is shown."""

    first: int
    p: tuple[float, ...]
    threshold: int
    #: Beyond this count a threshold hides nothing, or hardly anything.
    far: int

    def mass(self, value: int) -> float:
        place = value - self.first
        return self.p[place] if 0 <= place < len(self.p) else 0.0

    def at_least(self, value: int) -> float:
        return math.fsum(self.p[max(0, value - self.first) :])

    def shown(self, count: int) -> float:
        return self.at_least(self.threshold - count) if count else 0.0


def chances(growth: float, delta: float, decay: float) -> list[float]:
    """π(0), π(1), ... up to the first that is 1."""
    found = [0.0]
    while found[-1] < 1:
        last = found[-1]
        found.append(
            min(math.exp(growth) * last + delta, 1 - math.exp(-decay) * (1 - last - delta), 1.0)
        )
    return found


def optimal(growth: float, delta: float, decay: float, threshold: int) -> Noise:
    steps = np.diff(chances(growth, delta, decay))
    return Noise(threshold - steps.size, tuple(steps[::-1].tolist()), threshold, steps.size + 1)


def symmetric(weight: Any, reach: int, threshold: int) -> Noise:
    """Noise with probabilities in proportion to `weight(|z|)`."""
    weights = [weight(abs(z)) for z in range(-reach, reach + 1)]
    total = math.fsum(weights)
    return Noise(-reach, tuple(w / total for w in weights), threshold, threshold + reach)


def laplace(scale: float, threshold: int) -> Noise:
    return symmetric(lambda z: math.exp(-z / scale), math.ceil(34 * scale), threshold)


def gaussian(scale: float, threshold: int) -> Noise:
    reach = math.ceil(8.5 * scale) + 1
    return symmetric(lambda z: math.exp(-(z**2) / 2 / scale**2), reach, threshold)


def both(law: tuple[Any, ...]) -> tuple[Threshold, Noise]:
    """A law of the package, by its name and parameters, and the same by its definition."""
    name, *parameters = law
    if name == "optimal":
        made = OptimalThreshold(*parameters)
        return made, optimal(*parameters, made.threshold)
    if name == "laplace":
        return LaplaceThreshold(*parameters), laplace(*parameters)
    return GaussianThreshold(*parameters), gaussian(*parameters)


def of_one_key(noise: Noise, count: int, top: int, shows_all_at: int | None = None) -> Floats:
    """Probabilities of "not shown", of each noisy count up to `top`, and of those above."""
    if count == 0:
        return np.array([1.0, *[0.0] * (top - noise.threshold + 2)])
    threshold = noise.threshold if shows_all_at is None else shows_all_at
    counts = range(noise.threshold, top + 1)
    shown = [noise.mass(y - count) if y >= threshold else 0.0 for y in counts]
    above = noise.at_least(top + 1 - count)
    # What is not shown, from its own end: a difference from 1 would lose its digits.
    hidden = math.fsum(noise.p[: max(0, threshold - count - noise.first)])
    return np.array([hidden, *shown, above])


def of_keys(noise: Noise, counts: Iterable[int], top: int) -> Floats:
    """Probabilities of all outcomes of independent keys."""
    return reduce(
        lambda p, one: np.multiply.outer(p, one).ravel(),
        (of_one_key(noise, count, top) for count in counts),
        np.ones(1),
    )


def with_rest(noise: Noise, counts: Sequence[int], scale: float, most: int, top: int) -> Floats:
    """Probabilities of all outcomes of keys and of the noisy number of records that the keys that
    are not shown hold, with discrete Laplace noise: at most 0, each up to `most`, and above.
    """
    found = []
    r = math.exp(-1 / scale)
    laws = [of_one_key(noise, count, top) for count in counts]
    for outcome in product(*(range(law.size) for law in laws)):
        p = math.prod(law[i] for law, i in zip(laws, outcome, strict=True))
        held = sum(count for count, i in zip(counts, outcome, strict=True) if i == 0)
        masses = [r ** abs(v - held) * (1 - r) / (1 + r) for v in range(1, most + 1)]
        ends = r**held / (1 + r), r ** (most + 1 - held) / (1 + r)
        found.append([p * ends[0], *(p * mass for mass in masses), p * ends[1]])
    return np.array(found).ravel()


def divergences(p: Floats, q: Floats, epsilons: Sequence[float]) -> Floats:
    """The larger of both orders of `Σ (P - e^ε P')+`, at every ε."""
    powers = [math.exp(epsilon) for epsilon in epsilons]
    both = ((p - a * q, q - a * p) for a in powers)
    return np.array([max(float(np.maximum(x, 0).sum()) for x in pair) for pair in both])


def largest(noise: Noise, pairs: Iterable[Sequence[Move]], epsilons: Sequence[float]) -> Floats:
    """The largest divergence of all these neighbours, at every ε."""
    worst = np.zeros(len(epsilons))
    for moves in pairs:
        top = max(max(move) for move in moves) + noise.first + len(noise.p)
        before, after = (of_keys(noise, counts, top) for counts in zip(*moves, strict=True))
        worst = np.maximum(worst, divergences(before, after, epsilons))
    return worst


def of_a_person(counts: Sequence[int], keys: int, records: int) -> Iterator[Sequence[Move]]:
    """A person comes with up to `records` in each of up to `keys` keys with other `counts`."""
    one = [(n, n + moved) for n in counts for moved in range(records + 1)]
    return combinations_with_replacement(one, keys)


def of_a_change(counts: Sequence[int], keys: int, records: int) -> Iterator[Sequence[Move]]:
    """A person's records are replaced, in up to `keys` keys before and as many after."""
    appears = [(n, n + moved) for n in counts for moved in range(records + 1)]
    disappears = [(after, before) for before, after in appears]
    both = [
        (n + before, n + after)
        for n in counts
        for before, after in product(range(1, records + 1), repeat=2)
    ]
    for shared in range(keys + 1):
        for moves in product(
            combinations_with_replacement(both, shared),
            combinations_with_replacement(appears, keys - shared),
            combinations_with_replacement(disappears, keys - shared),
        ):
            yield tuple(chain(*moves))


def of_records(counts: Sequence[int], keys: int, records: int) -> Iterator[Sequence[Move]]:
    """Counts of up to `keys` keys move by up to `records` in all, in any directions."""
    moves = range(-records, records + 1)
    one = [(n, n + moved) for n in counts for moved in moves if n + moved >= 0]
    for pair in combinations_with_replacement(one, keys):
        if sum(abs(after - before) for before, after in pair) <= records:
            yield pair


def of_single_records(counts: Sequence[int], keys: int) -> Iterator[Sequence[Move]]:
    """Counts of `keys` keys move by at most one record each, in any directions."""
    one = [(n, n + moved) for n in counts for moved in (-1, 0, 1) if n + moved >= 0]
    return combinations_with_replacement(one, keys)


def partitions(number: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """All ways to divide so many records over new keys, each with at most so many."""
    if not number:
        yield ()
    for first in range(min(number, number if most is None else most), 0, -1):
        for others in partitions(number - first, first):
            yield (first, *others)
