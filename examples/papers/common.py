"""Objects of the papers, written out from their definitions over all data sets of a small size, for
the checks of the papers' claims.

Every function here enumerates. Only the Hellinger distance is the package's, because three
log-gamma functions lose its digits; a check of its own compares it with an integral.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np

import opendp_bayes as ob

Array = np.ndarray
Prior = tuple[float, ...]
UNIFORM: Prior = (1.0, 1.0)  # Beta(1, 1)
#: The constant that the papers give for the global sensitivity.
PAPERS_GS = float(np.sqrt(1 - np.pi / 4))

CHECKS: dict[str, Callable[[], str]] = {}


def check(*claims: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register a function that returns one line as the check of these claims."""

    def registered(function: Callable[[], str]) -> Callable[[], str]:
        for claim in claims:
            if claim in CHECKS:
                raise ValueError(f"claim {claim} has two checks.")
            CHECKS[claim] = function
        return function

    return registered


def data_sets(n: int, k: int) -> Array:
    """All counts of n records in k categories, shape `(c, k)`; for two, the first counts up."""
    bars = np.array(list(combinations(range(n + k - 1), k - 1)), dtype=np.int64).reshape(-1, k - 1)
    padded = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), n + k - 1)])
    return np.diff(padded, axis=1) - 1


@lru_cache(maxsize=64)
def distances(n: int, prior: Prior = UNIFORM) -> Array:
    """Hellinger distances between all posteriors of n records, shape `(c, c)`."""
    posteriors = data_sets(n, len(prior)) + np.array(prior)
    return ob.mechanisms.hellinger_distance(posteriors[:, None], posteriors[None])


@lru_cache(maxsize=64)
def hamming(n: int, k: int = 2) -> Array:
    """Records in which the data sets behind two counts differ at least, shape `(c, c)`."""
    sets = data_sets(n, k)
    return np.abs(sets[:, None] - sets[None]).sum(axis=2) // 2


def local(n: int, prior: Prior = UNIFORM) -> Array:
    """Local sensitivities of all data sets: the largest distance to a neighbour's posterior."""
    near = hamming(n, len(prior)) == 1
    return np.where(near, distances(n, prior), 0.0).max(axis=1)


def gamma_smooth(n: int, prior: Prior = UNIFORM, gamma: float = 1.0) -> Array:
    """`1 / min over x' of 1/LS(x') + gamma d(x, x')` of all data sets."""
    return 1 / (1 / local(n, prior)[None] + gamma * hamming(n, len(prior))).min(axis=1)


def beta_smooth(n: int, prior: Prior, beta: float) -> Array:
    """`max over x' of LS(x') exp(-beta d(x, x'))` of all data sets."""
    return (local(n, prior)[None] * np.exp(-beta * hamming(n, len(prior)))).max(axis=1)


def notes_beta(epsilon: float, delta: float, n: int) -> float:
    """The β of the notes, `ln(1 - ε / (2 ln(δ / (2 (n + 1)))))`."""
    return float(np.log1p(epsilon / (2 * np.log(2 * (n + 1) / delta))))


def exponential(n: int, prior: Prior, widths: Array | float) -> Array:
    """`P(r | x) ∝ exp(-H / width(x))`, a row for each data set."""
    widths = np.broadcast_to(widths, len(distances(n, prior)))
    weights = np.exp(-distances(n, prior) / widths[:, None])
    return weights / weights.sum(axis=1, keepdims=True)


def ehd(n: int, prior: Prior = UNIFORM, epsilon: float = 1.0, gs: float | None = None) -> Array:
    """The laws of EHD, with the true global sensitivity unless another is given."""
    return exponential(n, prior, 2 * (local(n, prior).max() if gs is None else gs) / epsilon)


def ehdl(n: int, prior: Prior = UNIFORM, epsilon: float = 1.0) -> Array:
    """The laws of EHDL."""
    return exponential(n, prior, 2 * local(n, prior) / epsilon)


def ehds(n: int, prior: Prior = UNIFORM, epsilon: float = 1.0, gamma: float = 1.0) -> Array:
    """The laws of EHDS."""
    return exponential(n, prior, 2 * (1 + gamma) * gamma_smooth(n, prior, gamma) / epsilon)


def notes_mechanism(
    n: int, prior: Prior = UNIFORM, epsilon: float = 1.0, delta: float = 1e-8
) -> Array:
    """The laws of the notes' (ε, δ) mechanism."""
    widths = 2 * beta_smooth(n, prior, notes_beta(epsilon, delta, n)) / epsilon
    return exponential(n, prior, widths)


def pure_loss(laws: Array, n: int, k: int = 2) -> float:
    """The largest log-ratio of probabilities over neighbours and outcomes."""
    first, second = np.nonzero(hamming(n, k) == 1)
    return float(np.abs(np.log(laws[first]) - np.log(laws[second])).max())


def hockey_stick(laws: Array, n: int, epsilon: float, k: int = 2) -> float:
    """δ(ε): the largest `sum of (P - e^ε Q)+` over neighbours."""
    first, second = np.nonzero(hamming(n, k) == 1)
    return float(np.maximum(laws[first] - np.exp(epsilon) * laws[second], 0).sum(axis=1).max())


def floored_laplace(t: Array | int, scale: float) -> Array:
    """`P(floor(Lap(scale)) = t)`."""
    t = np.asarray(t)
    mass = (1 - np.exp(-1 / scale)) / 2
    return mass * np.exp(-np.where(t >= 0, t, -1 - t) / scale)


def laplace_law(n: int, x: int, scale: float) -> Array:
    """The law of the first count that a floored and clamped Laplace mechanism releases, k = 2."""
    tail = np.arange(-n - 60 * int(scale + 1), n + 60 * int(scale + 1) + 1)
    law = np.zeros(n + 1)
    np.add.at(law, np.clip(x + tail, 0, n), floored_laplace(tail, scale))
    return law
