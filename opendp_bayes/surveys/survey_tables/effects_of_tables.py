"""Log-linear effects of measured tables: how strong the interactions of pairs are, and along which
levels.

In a decomposable model the interactions of a pair that a clique holds are those of the pair's own
table, so that every table is fitted alone.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import softmax, wrightomega

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.tables import NoisyTable

#: Law of the logarithm of a pair's strength: its centre, the standard deviation between surveys,
#: and that between the pairs of one survey.
CENTRE, BETWEEN, WITHIN = -1.1, 0.6, 0.9
#: Standard deviation of the effects of single variables: hardly any prior.
_OF_MARGINS = 3.0
#: Most steps of a fit, the first in which strengths move, and the change at which it ends.
_STEPS, _FIRST, _SETTLED = 60, 2, 1e-2
#: Part of a step below which it is not halved.
_SHORTEST = 1e-4


@dataclass(frozen=True, eq=False)
class PairEffects:
    """The effects of a measured pair: a normal law of its cells, with the `mean` and `root`, a
    square root of the covariance; and the `strength`, their standard deviation, as fitted.
    """

    shape: tuple[int, int]
    mean: Floats
    root: Floats
    strength: float

    def draw(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draws of the effects, shape `(draws, levels, levels)`."""
        deviations = rng.standard_normal((draws, self.root.shape[1])) @ self.root.T
        return (self.mean + deviations).reshape(draws, *self.shape)


def measured_effects(
    levels: tuple[int, ...], looks: tuple[NoisyTable, ...], size: float
) -> dict[Scope, PairEffects]:
    """The effects of every pair of variables, of two levels or more, that a look has together: of
    the table with the least noise, where several have it. `size` is the number of records, about.
    """
    tables: dict[Scope, list[NoisyTable]] = {}
    for look in sorted(looks, key=lambda noisy_table: noisy_table.std):
        tables.setdefault(look.scope, []).append(look)
    effects: dict[Scope, PairEffects] = {}
    for scope, looks_of_scope in tables.items():
        wide = tuple(v for v in scope if levels[v] > 1)
        if len(wide) > 1:
            # Levels of the others are one each, so that the cells are those of these.
            effects = _fitted(wide, [levels[v] for v in wide], looks_of_scope, size) | effects
    return effects


def _fitted(
    scope: Scope, shape: list[int], looks: list[NoisyTable], size: float
) -> dict[Scope, PairEffects]:
    """Fit effects of single variables and of pairs to looks at one table, by Gauss-Newton; the
    strengths of pairs by EM under their law.
    """
    table = _Table.of(looks, size)
    cells = np.indices(shape).reshape(len(shape), -1)
    blocks = [subset for number in (1, 2) for subset in combinations(range(len(shape)), number)]
    rows = [_indicator(cells[list(block)], [shape[v] for v in block]) for block in blocks]
    features = np.concatenate(rows)
    ends = np.cumsum([0, *map(len, rows)])
    rows_of = {block: slice(*ends[i : i + 2]) for i, block in enumerate(blocks)}
    logs = {block: CENTRE for block in blocks if len(block) == 2}
    effects, covariance = np.zeros(len(features)), np.eye(len(features))
    for step in range(_STEPS):
        penalty = np.full(len(features), _OF_MARGINS**-2)
        for pair, log in logs.items():
            penalty[rows_of[pair]] = math.exp(-2 * log)
        before, (effects, covariance) = effects, _step(table, features, effects, penalty)
        if step < _FIRST:
            continue
        squares = effects**2 + np.diag(covariance)
        fitted = {pair: _log_strength(squares[rows_of[pair]]) for pair in logs}
        changes = [abs(effects - before).max(), *(abs(fitted[pair] - logs[pair]) for pair in logs)]
        logs = fitted
        if max(changes) < _SETTLED:
            break
    root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return {
        (scope[first], scope[second]): PairEffects(
            (shape[first], shape[second]),
            effects[rows_of[first, second]],
            root[rows_of[first, second]],
            math.exp(log),
        )
        for (first, second), log in logs.items()
    }


def _step(
    table: "_Table", features: Floats, effects: Floats, penalty: Floats
) -> tuple[Floats, Floats]:
    """Effects one step of Gauss-Newton further, halved until it is an improvement, and their
    covariance at where they were.
    """
    point = table.at(effects @ features)
    slopes = point.slopes(features)
    covariance = np.linalg.inv(slopes @ point.weighed(slopes).T + np.diag(penalty))
    move = covariance @ (slopes @ point.weighed(point.gap) - penalty * effects)

    def loss(length: float) -> float:
        there = effects + length * move
        gap = table.at(there @ features).gap
        return float(gap @ point.weighed(gap) + (penalty * there) @ there)

    length, before = 1.0, loss(0.0)
    while loss(length) > before and length > _SHORTEST:
        length /= 2
    return effects + length * move, covariance


@dataclass(frozen=True, eq=False)
class _Table:
    """Looks at one table put together: places of the cells that they have, what was drawn of them
    and the variance of its noise, and the number of records.
    """

    cells: Integers
    noisy_counts: Floats
    noise: Floats
    size: float

    @classmethod
    def of(cls, looks: list[NoisyTable], size: float) -> "_Table":
        weights = np.array([look.noisy.noised / look.std**2 for look in looks])
        noisy_counts = np.array([look.noisy.drawn for look in looks])
        weight = weights.sum(axis=0)
        cells = np.flatnonzero(weight)
        mean = (weights * noisy_counts).sum(axis=0)[cells] / weight[cells]
        return cls(cells, mean, 1 / weight[cells], size)

    def at(self, logs: Floats) -> "_Point":
        return _Point(self, softmax(logs))


@dataclass(frozen=True, eq=False)
class _Point:
    """A table at probabilities `p` of its cells, where what was drawn is normal about n p, with the
    covariance of the noise and of n records.
    """

    table: _Table
    p: Floats

    @property
    def gap(self) -> Floats:
        return self.table.noisy_counts - self.table.size * self.p[self.table.cells]

    def slopes(self, features: Floats) -> Floats:
        """Derivatives of the expected counts, for each effect."""
        shares, inside = self.p[self.table.cells], features[:, self.table.cells]
        return self.table.size * (inside - (features @ self.p)[:, None]) * shares

    def weighed(self, rows: Floats) -> Floats:
        """Rows by the inverse of the covariance, `diag(noise + n p) - n p pᵀ`."""
        shares = self.p[self.table.cells]
        variances = self.table.noise + self.table.size * shares
        weighted_shares = shares / variances
        remainder = 1 / self.table.size - shares @ weighted_shares
        return (
            rows / variances
            + np.multiply.outer(rows @ weighted_shares, weighted_shares) / remainder
        )


def _indicator(levels: Integers, shape: list[int]) -> Floats:
    """For each cell of the table of some variables, which cells of the whole are in it."""
    code = np.ravel_multi_index(tuple(levels), tuple(shape))
    return np.equal.outer(np.arange(math.prod(shape)), code).astype(np.float64)


def _log_strength(squares: Floats) -> float:
    """The most probable logarithm of the strength of effects with these expected squares, where
    `sum(squares) exp(-2 log) = size + (log - CENTRE) / variance`: by Wright's omega function.
    """
    variance = BETWEEN**2 + WITHIN**2
    lowest = CENTRE - variance * squares.size
    double = wrightomega(math.log(2 * variance * float(squares.sum())) - 2 * lowest)
    return lowest + float(double) / 2
