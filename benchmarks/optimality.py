"""How close the mechanisms come to the least error that ε allows: the numbers of
docs/optimality.md. Takes about two minutes.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import opendp_bayes as ob
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mathematics.zero_sum import noise_vectors

#: Of the noise that is listed, the part of its weight that is left out.
_NEGLIGIBLE = 1e-9


def two_categories() -> Iterator[str]:
    for size, epsilon in product((5, 20, 40), (0.05, 0.2, 0.5, 1.0)):
        least = ob.least_error(size, [1.0, 1.0], epsilon)
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
        ob.HellingerExponential(1.0),
        ob.PermuteAndFlip(1.0),
    ]
    for template in templates:
        yield ob.calibrate(template, size=size, prior=[1.0] * k, epsilon=epsilon)


def from_the_draw(least: ob.LeastError, scale: float) -> float:
    """The error of K-norm noise after the best remapping of what is drawn, over the least error."""
    k = len(least.prior)
    norm = math.ceil(scale * -math.log(_NEGLIGIBLE)) + least.size
    sets = candidates(least.size, k)
    drawn = sets[0] + noise_vectors(norm + least.size, k)
    weights = np.exp(-np.abs(drawn[:, None] - sets).sum(axis=2) / (2 * scale)).T
    law = weights / weights.sum(axis=1, keepdims=True)
    distance = ob.hellinger_distance(sets[:, None] + 1.0, sets[None] + 1.0)
    return float((law.T @ distance / len(sets)).min(axis=1).sum()) / least.value


def several_categories() -> Iterator[str]:
    for size, k, epsilon in ((8, 3, 0.3), (8, 3, 1.0), (8, 3, 3.0), (4, 4, 1.0)):
        least = ob.least_error(size, [1.0] * k, epsilon)
        cells = []
        for mechanism in calibrated(size, k, epsilon):
            found = least.standing(mechanism)
            cells.append(f"{found.ratio:.3f}, {found.remapped_ratio:.3f}")
        drawn = from_the_draw(least, 1 / epsilon)
        yield (
            f"| {k} | {size} | {epsilon} | {least.value:.4f} | {' | '.join(cells)} | {drawn:.3f} |"
        )


def least_additive(k: int, epsilon: float, norm: int) -> tuple[float, float]:
    """The least expected Euclidean norm of ε-private noise with sum 0 and up to a norm
    `||z||_1 / 2`, and that of K-norm noise up to there.

    One variable stands for a vector and all that permutations and reflection make of it, over which
    an optimal law may be averaged.
    """
    vectors = noise_vectors(norm, k)
    shape = np.sort(vectors, axis=1)
    mirrored = np.sort(-vectors, axis=1)
    later = [tuple(a) < tuple(b) for a, b in zip(shape.tolist(), mirrored.tolist(), strict=True)]
    shape[later] = mirrored[later]
    kinds, number = np.unique(shape, axis=0, return_counts=True)
    place = {tuple(kind): i for i, kind in enumerate(kinds.tolist())}
    pairs = set()
    for i, kind in enumerate(kinds):
        for up, down in product(range(k), repeat=2):
            step = kind.copy()
            step[up] += 1
            step[down] -= 1
            one, other = np.sort(step).tolist(), np.sort(-step).tolist()
            j = place.get(tuple(max(one, other)))
            if j is not None and j != i:
                pairs.add((i, j))
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.tile([math.exp(-epsilon), -1.0], len(pairs))
    private = sparse.csr_matrix((values, (rows, np.array(sorted(pairs)).ravel())))
    length = np.sqrt((kinds**2).sum(axis=1))
    found = linprog(
        number * length,
        A_ub=private,
        b_ub=np.zeros(len(pairs)),
        A_eq=number[None].astype(float),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    weights = number * np.exp(-epsilon * np.maximum(kinds, 0).sum(axis=1))
    return float(found.fun), float(weights @ length / weights.sum())


def additive() -> Iterator[str]:
    reach: dict[int, Callable[[float], int]] = {
        2: lambda epsilon: math.ceil(25 / epsilon),
        3: lambda epsilon: min(math.ceil(22 / epsilon), 40),
        4: lambda epsilon: min(math.ceil(22 / epsilon), 14),
    }
    for k, epsilon in product((2, 3, 4), (0.5, 1.0, 2.0, 4.0)):
        norm = reach[k](epsilon)
        bound, ours = least_additive(k, epsilon, norm)
        yield f"| {k} | {epsilon} | {norm} | {bound:.6f} | {ours:.6f} | {ours / bound - 1:.0e} |"


def main() -> None:
    for table in (two_categories, several_categories, additive):
        print(table.__name__)
        for line in table():
            print(line, flush=True)


if __name__ == "__main__":
    main()
