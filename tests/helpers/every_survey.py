"""The posterior of small surveys by listing every data set: no junction tree, no tables that agree,
no moves.

The prior of the cell probabilities of all variables together is hyper-Dirichlet; the probability of
a data set is an expected product of its records' probabilities, which the definition gives clique
by clique.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from opendp_bayes.mechanisms.integer_noise import IntegerNoise
from tests.helpers import oracles

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Scope = tuple[int, ...]


@dataclass(frozen=True)
class SmallSurvey:
    """Levels, what was measured, the noise, and the model, written down by hand."""

    levels: tuple[int, ...]
    cliques: tuple[Scope, ...]
    separators: tuple[Scope, ...]
    scopes: tuple[Scope, ...]
    noise: tuple[IntegerNoise, ...]
    size: int | None
    concentration: float


def cliques_and_separators(
    variables: int, scopes: Sequence[Scope]
) -> tuple[tuple[Scope, ...], tuple[Scope, ...]]:
    """Of at most three variables: every graph on so few has no circle but the triangle."""
    pairs = [(a, b) for a, b in ((0, 1), (0, 2), (1, 2)) if b < variables]
    tied = [pair for pair in pairs if any(set(pair) <= set(scope) for scope in scopes)]
    if variables == 3 and len(tied) == 3:
        return ((0, 1, 2),), ()
    if len(tied) == 2:
        (middle,) = set(tied[0]) & set(tied[1])
        return tuple(tied), ((middle,),)
    alone = [(v,) for v in range(variables) if not any(v in pair for pair in tied)]
    cliques = (*tied, *alone)
    return cliques, ((),) * (len(cliques) - 1)


@lru_cache(maxsize=40)
def data_sets(sizes: tuple[int, ...], cells: int) -> Integers:
    """Every table of so many cells with one of these numbers of records."""
    return np.concatenate([np.array(oracles.data_sets(size, cells)) for size in sizes])


@lru_cache(maxsize=400)
def margins(sizes: tuple[int, ...], levels: tuple[int, ...], scope: Scope) -> Integers:
    """A table of some variables in every data set."""
    return margin(data_sets(sizes, int(np.prod(levels))), levels, scope)


def margin(rows: Integers, levels: Sequence[int], scope: Scope) -> Integers:
    cells = list(product(*map(range, levels)))
    wanted = list(product(*(range(levels[v]) for v in scope)))
    indicator = np.array(
        [[all(cell[v] == at for v, at in zip(scope, one, strict=True)) for one in wanted]
         for cell in cells],
        dtype=np.int64,
    )  # fmt: skip
    return rows @ indicator


def weighed(
    survey: SmallSurvey, drawn: Sequence[Floats | Integers], largest: int
) -> tuple[Integers, Floats]:
    """Every data set up to `largest`, and its logarithm of weight; cells not drawn are NaN."""
    sizes = (survey.size,) if survey.size is not None else tuple(range(largest + 1))
    rows = data_sets(sizes, int(np.prod(survey.levels)))
    every, whole = np.arange(max(sizes) + 1), survey.concentration
    total = margins(sizes, survey.levels, ())[:, 0]
    # Orders of the records that make the table, and the expected product of their probabilities.
    log_p = (gammaln(every + 1) + gammaln(whole) - gammaln(every + whole))[total]
    log_p -= gammaln(every + 1)[rows].sum(axis=1)
    for sign, scopes in ((1, survey.cliques), (-1, survey.separators)):
        for scope in scopes:
            counts = margins(sizes, survey.levels, scope)
            alpha = whole / counts.shape[1]
            log_p += sign * (gammaln(every + alpha) - gammaln(alpha))[counts].sum(axis=1)
    for scope, noise, y in zip(survey.scopes, survey.noise, drawn, strict=True):
        counts = margins(sizes, survey.levels, scope)
        for column, value in zip(counts.T[~np.isnan(y)], y[~np.isnan(y)], strict=True):
            log_p += noise.log_mass(value - every)[column]
    return rows, log_p


def posterior(
    survey: SmallSurvey, drawn: Sequence[Floats | Integers], largest: int
) -> tuple[Integers, Floats]:
    """Every data set that `weighed` lists, and its posterior probability."""
    rows, log_p = weighed(survey, drawn, largest)
    return rows, softmax(log_p)
