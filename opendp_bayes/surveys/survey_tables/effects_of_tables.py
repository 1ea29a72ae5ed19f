"""Log-linear effects of measured tables: how strong the interactions of pairs are, and along which
levels.

In a decomposable model the interactions of a pair that a clique holds are those of the pair's own
table, so that every table is fitted alone.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import softmax

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
        own = rng.standard_normal((draws, self.root.shape[1])) @ self.root.T
        return (self.mean + own).reshape(draws, *self.shape)


def measured_effects(
    levels: tuple[int, ...], looks: tuple[NoisyTable, ...], size: float
) -> dict[Scope, PairEffects]:
    """The effects of every pair of variables, of two levels or more, that a look has together: of
    the table with the least noise, where several have it. `size` is the number of records, about.
    """
    tables: dict[Scope, list[NoisyTable]] = {}
    for look in sorted(looks, key=lambda one: one.std):
        tables.setdefault(look.scope, []).append(look)
    found: dict[Scope, PairEffects] = {}
    for scope, of in tables.items():
        wide = tuple(v for v in scope if levels[v] > 1)
        if len(wide) > 1:
            # Levels of the others are one each, so that the cells are those of these.
            found = _fitted(wide, [levels[v] for v in wide], of, size) | found
    return found


def _fitted(
    scope: Scope, shape: list[int], looks: list[NoisyTable], size: float
) -> dict[Scope, PairEffects]:
    """Fit effects of single variables and of pairs to looks at one table, by Gauss-Newton; the
    strengths of pairs by EM under their law.
    """
    table = _Table.of(looks, size)
    cells = np.indices(shape).reshape(len(shape), -1)
    blocks = [part for number in (1, 2) for part in combinations(range(len(shape)), number)]
    rows = [_indicator(cells[list(block)], [shape[at] for at in block]) for block in blocks]
    features = np.concatenate(rows)
    ends = np.cumsum([0, *map(len, rows)])
    own = {block: slice(*ends[at : at + 2]) for at, block in enumerate(blocks)}
    logs = {block: CENTRE for block in blocks if len(block) == 2}
    effects, covariance = np.zeros(len(features)), np.eye(len(features))
    for step in range(_STEPS):
        penalty = np.full(len(features), _OF_MARGINS**-2)
        for pair, log in logs.items():
            penalty[own[pair]] = math.exp(-2 * log)
        before, (effects, covariance) = effects, _step(table, features, effects, penalty)
        if step < _FIRST:
            continue
        squares = effects**2 + np.diag(covariance)
        fitted = {pair: _log_strength(squares[own[pair]]) for pair in logs}
        changes = [abs(effects - before).max(), *(abs(fitted[of] - logs[of]) for of in logs)]
        logs = fitted
        if max(changes) < _SETTLED:
            break
    root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return {
        (scope[one], scope[other]): PairEffects(
            (shape[one], shape[other]),
            effects[own[one, other]],
            root[own[one, other]],
            math.exp(log),
        )
        for (one, other), log in logs.items()
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

    known: Integers
    drawn: Floats
    noise: Floats
    size: float

    @classmethod
    def of(cls, looks: list[NoisyTable], size: float) -> "_Table":
        weights = np.array([look.noisy.noised / look.std**2 for look in looks])
        drawn = np.array([look.noisy.drawn for look in looks])
        weight = weights.sum(axis=0)
        known = np.flatnonzero(weight)
        mean = (weights * drawn).sum(axis=0)[known] / weight[known]
        return cls(known, mean, 1 / weight[known], size)

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
        return self.table.drawn - self.table.size * self.p[self.table.known]

    def slopes(self, features: Floats) -> Floats:
        """Derivatives of the expected counts, for each effect."""
        shares, inside = self.p[self.table.known], features[:, self.table.known]
        return self.table.size * (inside - (features @ self.p)[:, None]) * shares

    def weighed(self, rows: Floats) -> Floats:
        """Rows by the inverse of the covariance, `diag(noise + n p) - n p pᵀ`."""
        shares = self.p[self.table.known]
        variances = self.table.noise + self.table.size * shares
        own = shares / variances
        rest = 1 / self.table.size - shares @ own
        return rows / variances + np.multiply.outer(rows @ own, own) / rest


def _indicator(levels: Integers, shape: list[int]) -> Floats:
    """For each cell of the table of some variables, which cells of the whole are in it."""
    code = np.ravel_multi_index(tuple(levels), tuple(shape))
    return np.equal.outer(np.arange(math.prod(shape)), code).astype(np.float64)


def _log_strength(squares: Floats) -> float:
    """The most probable logarithm of the strength of effects with these expected squares, by
    Newton's method for a derivative that decreases.
    """
    total, variance, log = float(squares.sum()), BETWEEN**2 + WITHIN**2, CENTRE
    for _ in range(50):
        pull = total * math.exp(-2 * log)
        slope = pull - squares.size - (log - CENTRE) / variance
        move = slope / (2 * pull + 1 / variance)
        log += min(max(move, -1.0), 1.0)
        if abs(move) < 1e-9:
            break
    return log
