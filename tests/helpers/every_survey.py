"""The posterior of small surveys by listing every data set: no cliques, no separators, no moves.

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

Floats = NDArray[np.float64]
Scope = tuple[int, ...]


@dataclass(frozen=True)
class SmallSurvey:
    """Levels of the variables, what was drawn for each table, the noise, and the decomposable
    model, its cliques and separators written down by hand.
    """

    levels: tuple[int, ...]
    cliques: tuple[Scope, ...]
    separators: tuple[Scope, ...]
    scopes: tuple[Scope, ...]
    noise: tuple[IntegerNoise, ...]
    size: int | None
    concentration: float


@lru_cache(maxsize=8)
def data_sets(sizes: tuple[int, ...], cells: int) -> NDArray[np.int64]:
    """Every table of so many cells with one of these numbers of records."""
    rows = np.array([[size] for size in sizes])
    for _ in range(cells - 1):
        last = rows[:, -1]
        first = np.repeat(np.arange(len(rows)), last + 1)
        taken = np.concatenate([np.arange(rest + 1) for rest in last])
        rows = np.column_stack([rows[first, :-1], taken, last[first] - taken])
    return rows


def margin(rows: NDArray[np.int64], levels: Sequence[int], scope: Scope) -> NDArray[np.int64]:
    cells = list(product(*map(range, levels)))
    wanted = list(product(*(range(levels[v]) for v in scope)))
    indicator = np.array(
        [[all(cell[v] == at for v, at in zip(scope, one, strict=True)) for one in wanted]
         for cell in cells],
        dtype=np.int64,
    )  # fmt: skip
    return rows @ indicator


def posterior(
    survey: SmallSurvey, drawn: Sequence[NDArray[np.int64]], largest: int
) -> tuple[NDArray[np.int64], Floats]:
    """Every data set, of at most `largest` records where their number is private, and its
    posterior probability.
    """
    sizes = (survey.size,) if survey.size is not None else tuple(range(largest + 1))
    rows = data_sets(sizes, int(np.prod(survey.levels)))
    total, whole = rows.sum(axis=1), survey.concentration
    # Orders of the records that make the table, and the expected product of their probabilities.
    log_p = gammaln(total + 1) - gammaln(rows + 1).sum(axis=1)
    log_p += gammaln(whole) - gammaln(total + whole)
    for sign, scopes in ((1, survey.cliques), (-1, survey.separators)):
        for scope in scopes:
            counts = margin(rows, survey.levels, scope)
            alpha = whole / counts.shape[1]
            log_p += sign * (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)
    for scope, noise, y in zip(survey.scopes, survey.noise, drawn, strict=True):
        log_p += noise.log_mass(y - margin(rows, survey.levels, scope)).sum(axis=1)
    return rows, softmax(log_p)
