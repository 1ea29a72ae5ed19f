"""Measure how close the mechanisms come to the least error that ε allows: the numbers of
docs/research/optimality.md. This takes some minutes.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mathematics.zero_sum import noise_vectors
from opendp_bayes_research.linear_program import Program

#: Of the noise that is listed, the part of its weight that is left out.
_NEGLIGIBLE = 1e-9


def two_categories() -> Iterator[str]:
    for size, epsilon in product((5, 20, 60), (0.05, 0.2, 0.5, 1.0)):
        least = research.least_error(size, [1.0, 1.0], epsilon)
        found = least.standing(ob.LaplaceParameters(1 / epsilon))
        yield (
            f"| {size} | {epsilon} | {least.value:.5f} | {found.ratio:.4f} |"
            f" {abs(found.remapped_ratio - 1):.0e} | {found.worst_case / least.worst_case:.3f} |"
        )


def calibrated(size: int, k: int, epsilon: float) -> Iterator[Any]:
    templates = [
        ob.KNormParameters(1.0),
        ob.LaplaceParameters(1.0),
        ob.LaplaceParameters(1.0, total="bounded"),
        ob.mechanisms.HellingerExponential(1.0),
        ob.mechanisms.PermuteAndFlip(1.0),
    ]
    for template in templates:
        yield ob.calibrate(template, size=size, prior=[1.0] * k, epsilon=epsilon)


def from_the_draw(size: int, k: int, scale: float, average: Floats) -> float:
    """The average error of K-norm noise after the best remapping of what is drawn."""
    norm = math.ceil(scale * -math.log(_NEGLIGIBLE)) + size
    sets = candidates(size, k)
    drawn = sets[0] + noise_vectors(norm + size, k)
    weights = np.exp(-np.abs(drawn[:, None] - sets).sum(axis=2) / (2 * scale)).T
    law = weights / weights.sum(axis=1, keepdims=True)
    distance = ob.mechanisms.hellinger_distance(sets[:, None] + 1.0, sets[None] + 1.0)
    return float(((average[:, None] * law).T @ distance).min(axis=1).sum())


def several_categories() -> Iterator[str]:
    for size, k, epsilon in ((8, 3, 0.3), (8, 3, 1.0), (8, 3, 3.0), (4, 4, 1.0)):
        least = research.least_error(size, [1.0] * k, epsilon)
        cells = []
        for mechanism in calibrated(size, k, epsilon):
            found = least.standing(mechanism)
            cells.append(f"{found.ratio:.3f}, {found.remapped_ratio:.3f}")
        number = len(candidates(size, k))
        drawn = from_the_draw(size, k, 1 / epsilon, np.full(number, 1 / number)) / least.value
        yield (
            f"| {k} | {size} | {epsilon} | {least.value:.4f} | {' | '.join(cells)} | {drawn:.3f} |"
        )


def averages() -> Iterator[str]:
    """Remapped K-norm noise against the least error of averages that know more and more."""
    for size in (3, 4, 6, 8, 10):
        sets = candidates(size, 3)
        rarest = sets.min(axis=1)
        kept = {"all": rarest >= 0, "an empty category": rarest == 0, "two of each": rarest >= 2}
        for label, which in kept.items():
            if which.sum() > 1:
                average = which / which.sum() * (1 - 2.0**-45)
                least, _ = Program.of(sets, np.ones(3), 1.0).smallest(average)
                ratio = from_the_draw(size, 3, 1.0, average) / least
                yield f"| {size} | {label} | {which.sum()} | {least:.4f} | {ratio:.3f} |"


def parts(total: int, number: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as a sum of up to `number` descending positive integers."""
    if total == 0:
        yield ()
    elif number:
        for first in range(min(total, largest), 0, -1):
            for rest in parts(total - first, number - 1, first):
                yield (first, *rest)


def standing_for(vector: tuple[int, ...]) -> tuple[int, ...]:
    """Return the listed one of all vectors that permutations and reflection make of a vector."""
    falling = tuple(sorted(vector, reverse=True))
    return max(falling, tuple(-entry for entry in reversed(falling)))


def noise_kinds(norm: int, k: int) -> tuple[list[tuple[int, ...]], Floats]:
    """One vector of integers with sum 0 for all that permutations and reflection make of it, up to
    a norm `||z||_1 / 2`; and how many it stands for.
    """
    found = {(0,) * k}
    for total in range(1, norm + 1):
        sides = list(parts(total, k - 1, total))
        for up, down in product(sides, repeat=2):
            if len(up) + len(down) <= k:
                rest = (0,) * (k - len(up) - len(down))
                found.add(standing_for((*up, *rest, *(-entry for entry in down))))
    kinds = sorted(found)
    numbers = []
    for kind in kinds:
        repeated = math.prod(math.factorial(kind.count(entry)) for entry in set(kind))
        reflected = 1 if tuple(-entry for entry in reversed(kind)) == kind else 2
        numbers.append(math.factorial(k) // repeated * reflected)
    return kinds, np.array(numbers, dtype=np.float64)


def least_additive(k: int, epsilon: float, norm: int) -> tuple[float, float, float]:
    """The least expected Euclidean norm of ε-private noise with sum 0 and up to a norm
    `||z||_1 / 2`; what the dual proves; and that of K-norm noise up to there.

    An optimal law may be averaged over permutations and reflection, so there is one variable for
    each kind of vector: its probability over that of K-norm noise.
    """
    kinds, number = noise_kinds(norm, k)
    place = {kind: i for i, kind in enumerate(kinds)}
    pairs = set()
    for i, kind in enumerate(kinds):
        for up, down in product(range(k), repeat=2):
            step = [entry + (at == up) - (at == down) for at, entry in enumerate(kind)]
            j = place.get(standing_for(tuple(step)))
            if j is not None and j != i:
                pairs.add((i, j))
    one, other = np.array(sorted(pairs)).T
    vectors = np.array(kinds)
    norms, length = np.maximum(vectors, 0).sum(axis=1), np.sqrt((vectors**2).sum(axis=1))
    weights = number * np.exp(-epsilon * norms)
    weights /= weights.sum()
    rows = np.tile(np.arange(len(one)), 2)
    entries = np.append(np.exp(-epsilon * (1 + norms[one] - norms[other])), -np.ones(len(one)))
    private = sparse.csr_matrix((entries, (rows, np.append(one, other))))
    found = linprog(
        weights * length,
        A_ub=private,
        b_ub=np.zeros(len(one)),
        A_eq=weights[None],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ipm",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(found.fun), float(found.eqlin.marginals[0]), float(weights @ length)


#: Categories, ε and the norm up to which noise is looked at.
ADDITIVE = [
    *((2, 0.3, 84), (2, 1.0, 25), (2, 4.0, 7)),
    *((3, 0.3, 60), (3, 1.0, 22), (3, 4.0, 6)),
    *((4, 0.3, 30), (4, 1.0, 14), (4, 4.0, 6)),
    *((5, 0.3, 22), (5, 1.0, 14), (5, 4.0, 6)),
    *((6, 0.3, 16), (6, 0.3, 20), (6, 0.5, 16), (6, 1.0, 12), (6, 4.0, 6)),
]


def additive() -> Iterator[str]:
    for k, epsilon, norm in ADDITIVE:
        primal, dual, ours = least_additive(k, epsilon, norm)
        yield (
            f"| {k} | {epsilon} | {norm} | {primal:.9f} | {dual - primal:.0e} | {ours:.9f} |"
            f" {ours / primal - 1:.0e} |"
        )


def by_signs(epsilon: float, largest: int) -> dict[bool, Floats]:
    """Weights `e^(-ε ||z||_1 / 2)` of the noise vectors of four categories up to a norm, and these
    times the Euclidean norm: of those with at least two entries of either sign, and of the others.
    """
    found = {True: np.zeros(2), False: np.array([1.0, 0.0])}
    for norm in range(1, largest + 1):
        x = np.arange(1, norm)
        rest = norm - x - x[:, None]
        one, two = np.array([norm**2]), x**2 + (norm - x) ** 2
        three = (x**2 + x[:, None] ** 2 + rest**2)[rest > 0]
        # How many ways there are to place the signs.
        for squares, ways, both in (
            (one + one, 12, False),
            (one + two, 24, False),
            (one + three, 8, False),
            (np.add.outer(two, two), 6, True),
        ):
            sums = np.array([squares.size, np.sqrt(squares).sum()])
            found[both] += ways * math.exp(-epsilon * norm) * sums
    return found


def less_than_k_norm() -> Iterator[str]:
    """Four categories: noise that is `e^ε` times as likely as K-norm noise where two entries of
    either sign are not 0.
    """
    for epsilon in (0.3, 0.2, 0.1, 0.08, 0.05, 0.03):
        sums = by_signs(epsilon, math.ceil(26 / epsilon))
        weight, cost = sums[True] + sums[False]
        other, less = sums[True] * math.exp(epsilon) + sums[False]
        inside, own = sums[True]
        yield (
            f"| {epsilon} | {cost / weight:.4f} | {inside / weight:.4f} |"
            f" {own / inside / (cost / weight):.4f} | {1 - less / other / (cost / weight):.1e} |"
        )


def mean_norm(k: int, epsilon: float, largest: int) -> float:
    """The expected Euclidean norm of K-norm noise cut off at a norm: below that of all of it."""
    if k == 4:
        weight, cost = sum(by_signs(epsilon, largest).values())
        return float(cost / weight)
    # Of so many positive parts, how many have a sum and a sum of squares.
    parts = np.zeros((k, largest + 1, largest**2 + 1))
    parts[0, 0, 0] = 1
    for number, x in product(range(1, k), range(1, largest + 1)):
        parts[number, x:, x * x :] += parts[number - 1, :-x, : -x * x]
    weight, cost = 1.0, 0.0
    for norm, up in product(range(1, largest + 1), range(1, k)):
        for down in range(1, k - up + 1):
            ways = math.comb(k, up) * math.comb(k - up, down) * math.exp(-epsilon * norm)
            i, j = (np.flatnonzero(parts[number, norm]) for number in (up, down))
            one, other = parts[up, norm, i], parts[down, norm, j]
            weight += ways * one.sum() * other.sum()
            cost += ways * float(one @ np.sqrt(i[:, None] + j) @ other)
    return cost / weight


def gain_within(k: int, epsilon: float, norm: int, mean: float) -> float:
    """By what part of the expected Euclidean norm, at least `mean`, noise could be below K-norm
    noise if from a norm on it is K-norm noise, but for a factor: 0 if it cannot be.

    Its law over that of K-norm noise never falls along a step that raises the norm; let it be `1 -
    h` up to a factor, h between 0 and 1, and 0 from the norm on. It is below iff `sum h μ (f - E
    f) > 0`. No other constraint is asked for, so that 0 is proved and more would not be.
    """
    kinds, number = noise_kinds(norm, k)
    place = {kind: i for i, kind in enumerate(kinds)}
    steps = set()
    for i, kind in enumerate(kinds):
        for up, down in product(range(k), repeat=2):
            if up != down and kind[up] >= 0 >= kind[down]:
                step = [entry + (at == up) - (at == down) for at, entry in enumerate(kind)]
                steps.add((i, place.get(standing_for(tuple(step)))))
    low, high = np.array(sorted((i, j) for i, j in steps if j is not None)).T
    vectors = np.array(kinds)
    norms, length = np.maximum(vectors, 0).sum(axis=1), np.sqrt((vectors**2).sum(axis=1))
    q = math.exp(-epsilon)
    total = sum(math.comb(k - 1, i) ** 2 * q**i for i in range(k)) / (1 - q) ** (k - 1)
    rows = np.tile(np.arange(len(low)), 2)
    entries = np.repeat([-1.0, 1.0], len(low))
    found = linprog(
        -number * q**norms / total * (length / mean - 1),
        A_ub=sparse.csr_matrix((entries, (rows, np.append(low, high)))),
        b_ub=np.zeros(len(low)),
        bounds=np.stack([np.zeros(len(kinds)), norms < norm], axis=1),
        method="highs-ipm",
    )
    return abs(float(found.fun))


#: Categories, ε, the norm up to which noise may differ from K-norm noise, and up to which K-norm
#: noise is summed.
WITHIN = [
    *((4, 0.3, 30, 100), (4, 0.2, 45, 150), (4, 0.15, 60, 200), (4, 0.1, 80, 300)),
    *((5, 0.3, 26, 70), (6, 0.3, 27, 60)),
]


def within() -> Iterator[str]:
    for k, epsilon, norm, largest in WITHIN:
        mean = mean_norm(k, epsilon, largest)
        gain = gain_within(k, epsilon, norm, mean)
        yield f"| {k} | {epsilon} | {norm} | {mean:.4f} | {gain:.0e} |"


def main() -> None:
    for table in (two_categories, several_categories, averages, additive, less_than_k_norm, within):
        print(table.__name__)
        for line in table():
            print(line, flush=True)


if __name__ == "__main__":
    main()
