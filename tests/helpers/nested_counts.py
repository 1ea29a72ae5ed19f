"""Random trees of counts with noise at any of them, and their posterior by listing all counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from opendp_bayes.surveys.levels.tree import Look, Tree, Weights
from opendp_bayes.surveys.levels.tree_counts import TreeCounts
from tests.helpers import oracles

_LAWS = (DiscreteLaplace, DiscreteGaussian, FlooredLaplace)


@dataclass
class Case:
    """A tree of counts: parents, concentrations, looks and the number of records."""

    parent: Any
    prior: Any
    looks: list[Look]
    size: int | None
    highest: int

    def counts(self) -> TreeCounts:
        tree = Tree.of(self.parent)
        weights = Weights(tree, self.parent, self.prior, self.looks, self.size)
        return TreeCounts(weights, self.highest)


def random_case(rng: np.random.Generator) -> Case:
    """Up to five leaves below one to four levels, unequal families, any priors, up to two looks."""
    sizes, above = [int(rng.integers(2, 6))], []
    for _ in range(rng.integers(0, 4)):
        m = int(rng.integers(1, sizes[-1] + 1))
        above.append(rng.permutation(np.append(np.arange(m), rng.integers(0, m, sizes[-1] - m))))
        sizes.append(m)
    above.append(np.zeros(sizes[-1], dtype=int))
    start = np.cumsum([0, *sizes, 1])
    parent = np.concatenate([*(a + start[i + 1] for i, a in enumerate(above)), [-1]])
    nested, prior = rng.random() < 0.5, np.zeros(parent.size)
    for count in range(parent.size - 1):
        own = nested or count < sizes[0]
        prior[count] = 10 ** rng.uniform(-1, 1) if own else prior[parent == count].sum()
    size = int(rng.integers(0, 12))
    true = [rng.multinomial(size, rng.dirichlet(np.ones(sizes[0])))]
    for a in above:
        true.append(np.bincount(a, true[-1]).astype(int))
    looks = []
    for level, values in enumerate(true):
        for _ in range(rng.integers(0 if level else 1, 3)):
            law = _LAWS[rng.integers(3)](float(10 ** rng.uniform(-0.7, 0.7)))
            noised = tuple((rng.random(values.size) < 0.8).tolist())
            drawn = values + law.simulate(values.shape, rng)
            numbers = start[level] + np.arange(values.size)
            looks.append(Look(numbers, DrawnCounts.of(drawn, law, noised)))
    public = rng.random() < 0.5
    highest = {2: 45, 3: 45, 4: 24, 5: 14}[sizes[0]]
    return Case(parent, prior, looks, size if public else None, size if public else highest)


@dataclass
class Listed:
    """Every possible set of counts with its probability, and what follows."""

    counts: Any
    weights: Any
    log_evidence: float
    means: Any
    squares: Any


def listed(case: Case) -> Listed:
    """The posterior by definition."""
    parent, prior = case.parent, case.prior
    leaves = np.flatnonzero(np.bincount(parent[:-1], minlength=parent.size) == 0)
    sizes = range(case.highest + 1) if case.size is None else [case.size]
    rows = np.array([row for size in sizes for row in oracles.data_sets(size, leaves.size)])
    counts = np.zeros((len(rows), parent.size), dtype=int)
    counts[:, leaves] = rows
    for count, above in enumerate(parent[:-1]):
        counts[:, above] += counts[:, count]
    logs = np.zeros(len(rows))
    for whole in np.flatnonzero(np.bincount(parent[:-1], minlength=parent.size)):
        parts = np.flatnonzero(parent == whole)
        number, a = counts[:, whole], prior[parts]
        logs += special.gammaln(number + 1) + special.gammaln(a.sum())
        logs -= special.gammaln(number + a.sum()) + special.gammaln(a).sum()
        for part, own in zip(parts, a, strict=True):
            logs += special.gammaln(counts[:, part] + own) - special.gammaln(counts[:, part] + 1)
    for look in case.looks:
        for at, count in enumerate(look.counts):
            logs += look.noisy.log_mass(counts[:, count], at)
    evidence = float(special.logsumexp(logs))
    first, second = np.ones(counts.shape), np.ones(counts.shape)
    for count in range(parent.size - 2, -1, -1):
        above = parent[count]
        own, whole = prior[count] + counts[:, count], prior[parent == above].sum()
        whole = whole + counts[:, above]
        first[:, count] = first[:, above] * own / whole
        second[:, count] = second[:, above] * own * (own + 1) / (whole * (whole + 1))
    weights = np.exp(logs - evidence)
    return Listed(counts, weights, evidence, weights @ first, weights @ second)


def largest_error(case: Case) -> float:
    """Of probabilities of counts, means, mean squares and the logarithm of the evidence."""
    found, exact = case.counts(), listed(case)
    worst = abs(found.log_evidence - exact.log_evidence)
    for count in range(case.parent.size):
        node = np.array([found.tree.node_of[count]])
        _, values, masses = found.laws(node)
        law = np.bincount(exact.counts[:, count], exact.weights, values.max() + 1)
        own = np.zeros(law.size)
        own[values] = masses
        first, second = (masses @ np.exp(each) for each in found.shares_of(node))
        worst = max(
            worst,
            np.abs(own - law).max(),
            abs(first - exact.means[count]),
            abs(second - exact.squares[count]),
        )
    return float(worst)


def regular(
    branches: list[int], scale: float, size: int, rng: np.random.Generator, prior: float = 1.0
) -> tuple[Any, Any, list[Look], list[Any]]:
    """A regular tree of true counts with Gaussian noise: parents, levels, looks and true counts."""
    shares, sizes = np.ones(1), [1]
    for branch in branches:
        shares = (shares[:, None] * rng.dirichlet(np.full(branch, prior), shares.size)).ravel()
        sizes.append(shares.size)
    true = [rng.multinomial(size, shares)]
    for branch in branches[::-1]:
        true.append(true[-1].reshape(-1, branch).sum(axis=1))
    start = np.cumsum([0, *sizes[::-1]])
    above = [np.arange(values.size) // b for values, b in zip(true, branches[::-1], strict=False)]
    parent = np.concatenate([*(a + start[i + 1] for i, a in enumerate(above)), [-1]])
    law, looks = DiscreteGaussian(scale), []
    for level, values in enumerate(true[:-1]):
        drawn = values + law.simulate(values.shape, rng)
        noise = DrawnCounts.of(drawn, law)
        looks.append(Look(start[level] + np.arange(values.size), noise))
    levels = np.repeat(np.arange(len(branches)), [values.size for values in true[:-1]])
    return parent, levels, looks, true
