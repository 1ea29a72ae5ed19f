"""Counts at several levels: error and coverage of one posterior of all levels against least
squares, clamped sums and one table with the whole budget; time and memory by the number of leaves.

Run `python benchmarks/levels.py`, or with a depth to measure one tree of 10^depth leaves.
"""

import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from reporting import table

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.surveys.levels.concentrations import with_learned_concentrations
from opendp_bayes.surveys.levels.tree import Look, Tree, Weights
from opendp_bayes.surveys.levels.tree_counts import TreeCounts

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers.nested_counts import regular

TREES, RECORDS, BRANCHES = 11, 20_000, [10, 10, 20]
NAMES = ("leaves", "counties", "states", "nation")
DEPTHS = (3, 4, 5)


def sums(values: Any) -> list[Any]:
    """All levels of the tree from the leaves'."""
    found = [values]
    for branch in BRANCHES[::-1]:
        found.append(found[-1].reshape(-1, branch).sum(axis=1))
    return found


def of_levels(counts: TreeCounts, starts: Any, true: list[Any], rng: Any) -> list[Any]:
    """Mean squared error and share of counts in 95 % intervals, level by level."""
    rows = []
    for start, values in zip(starts, true, strict=True):
        row, number, masses = counts.laws(counts.tree.node_of[start + np.arange(values.size)])
        below = np.bincount(row, masses * (number < values[row]), values.size)
        here = np.bincount(row, masses * (number == values[row]), values.size)
        u = below + here * rng.random(values.size)
        error = np.mean((np.bincount(row, masses * number) - values) ** 2)
        rows.append((error, np.mean((u > 0.025) & (u < 0.975))))
    return rows


def of_estimates(found: list[Any], std: Any, true: list[Any]) -> list[Any]:
    """Mean squared error of estimates, and how often the truth is within 1.96 deviations."""
    return [
        (np.mean((one - values) ** 2), np.mean(np.abs(one - values) <= 1.96 * deviation))
        for one, deviation, values in zip(found, std, true, strict=True)
    ]


def errors(scale: float) -> None:
    """A table of errors and coverage at one scale of the noise of each level."""
    leaves = np.eye(int(np.prod(BRANCHES)))
    design = np.stack([np.concatenate(sums(leaf)) for leaf in leaves], axis=1)
    covariance = scale**2 * np.linalg.inv(design.T @ design)
    spread = np.sqrt(np.einsum("ij,jk,ik->i", design, covariance, design))
    sizes = np.cumsum([0, *(len(one) for one in sums(leaves[0]))])
    known = [spread[a:b] for a, b in pairwise(sizes.tolist())]
    found: dict[str, list[Any]] = {}
    for seed in range(TREES):
        rng = np.random.default_rng(seed)
        parent, level, looks, true = regular(BRANCHES, scale, RECORDS, rng)
        law, root = DiscreteGaussian(scale), parent.size - 1
        total = true[-1] + law.simulate((1,), rng)
        looks.append(Look(np.array([root]), DrawnCounts.of(total, law)))
        counts, _ = with_learned_concentrations(parent, level, looks, None, 2 * RECORDS)
        rows = {"one posterior": of_levels(counts, sizes[:-1], true, rng)}
        flat = np.concatenate(sums(np.ones(len(leaves))))
        plain = TreeCounts(Weights(Tree.of(parent), parent, flat, looks, None), 2 * RECORDS)
        rows["one prior for all levels"] = of_levels(plain, sizes[:-1], true, rng)
        drawn = np.concatenate([look.noisy.drawn for look in looks])
        fit = sums(covariance @ (design.T @ drawn) / scale**2)
        rows["least squares"] = of_estimates(fit, known, true)
        leaf = looks[0].noisy.drawn
        root_of = [scale * np.sqrt(len(leaves) / len(each)) for each in true]
        rows["leaves, clamped and summed"] = of_estimates(sums(np.maximum(leaf, 0)), root_of, true)
        half = DiscreteGaussian(scale / 2)
        whole = true[0] + half.simulate(leaf.shape, rng)
        rows["leaves only, summed"] = of_estimates(sums(whole), [x / 2 for x in root_of], true)
        alone = CountsGivenNoise.of([DrawnCounts.of(whole, half)], np.ones(leaf.size))
        alone = sums(alone.counts.mean())
        rows["leaves only, prior 1"] = of_estimates(alone, [np.nan] * 4, true)
        for name, values in rows.items():
            found.setdefault(name, []).append(values)
    table(
        f"Four levels, {len(leaves)} leaves, noise of {scale:g} at each",
        ["way", *(f"error, {name}" for name in NAMES), *(f"covered, {name}" for name in NAMES[:3])],
        [
            [
                name,
                *np.sqrt(np.mean(values, axis=0)[:, 0]).round(2).tolist(),
                *(f"{x:.3f}" if x else "" for x in np.mean(values, axis=0)[:3, 1]),
            ]
            for name, values in found.items()
        ],
        f"{TREES} trees of {RECORDS} records, a concentration of 1 in every family; the number of"
        " records is private and its noisy count a level too. Errors are root mean squares of"
        " counts, coverage that of 95 % intervals. Leaves only: one table that has the whole"
        " budget, half of the noise.",
    )


def one_tree(depth: int) -> None:
    """Print the processor's seconds for the posterior of 10^depth leaves, and the memory."""
    rng = np.random.default_rng(0)
    parent, level, looks, _ = regular([10] * depth, 10.0, 10 ** (depth + 1), rng)
    start = process_time()
    ones = np.append(np.ones(depth)[level], 0.0)
    TreeCounts(Weights(Tree.of(parent), parent, ones, looks, 10 ** (depth + 1)), 10 ** (depth + 1))
    known = process_time() - start
    with_learned_concentrations(parent, level, looks, 10 ** (depth + 1), 10 ** (depth + 1))
    learned = process_time() - start - known
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{known:.3g} {learned:.3g} {memory:.2g}")


def main() -> None:
    if len(sys.argv) > 1:
        one_tree(int(sys.argv[1]))
        return
    for scale in (5.0, 20.0):
        errors(scale)
        sys.stdout.flush()
    rows = []
    for depth in DEPTHS:
        command = [sys.executable, __file__, str(depth)]
        found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        rows.append([f"{10**depth:,}", depth, *found.stdout.split()])
    table(
        "Time of many levels",
        ["leaves", "levels", "s, concentrations given", "s, learned", "GB"],
        rows,
        "Families of 10, ten records a leaf, Gaussian noise of 10 at each level, a public number of"
        " records; seconds of the processor. Wanted: 100,000 leaves in 60 s and 4 GB.",
    )


main()
