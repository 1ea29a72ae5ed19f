r"""Additive noise: one pair of distributions of a few values that stands for every pair of
neighbours.

The log-ratio of a Laplace density and its shift by m takes at most m + 1 values, whatever the data,
and clamping merges only outcomes of equal ratio. So the loss of a release is that of a pair on
those values (`docs/proofs.md`, "Exact loss of additive noise").
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opendp_bayes.accounting.divergences import Block
from opendp_bayes.mathematics.validation import Floats

#: Error of a logarithm below, relative to its largest term: a few dozen roundings.
_RELATIVE_ERROR = 2.0**-48


@dataclass(frozen=True)
class NoisePairs:
    """`copies` independent coordinates, each with the log-probabilities `law` of the classes of
    outcomes with equal log-ratio.
    """

    law: tuple[Floats, Floats]
    log_error: float
    copies: int = 1
    method: str = "exact"

    def blocks(self) -> Iterator[Block]:
        log_p, log_q = np.zeros(1), np.zeros(1)
        for _ in range(self.copies):
            log_p, log_q = (
                np.add.outer(total, one).ravel()
                for total, one in zip((log_p, log_q), self.law, strict=True)
            )
        none = np.zeros((1, 0), dtype=np.int64)
        yield Block(none, none, log_p[:, None], log_q[:, None])


def laplace_shift(moved: int, scale: float, noise: str) -> tuple[Floats, Floats]:
    """Log-probabilities of integer Laplace noise, and of the same moved by `moved` records, over
    classes of outcomes with equal ratio.

    Classes are "at most 0", the single values 1..moved-1, and "at least moved"; for floored noise
    "below 0", 0..moved-1, "at least moved".
    """
    rate = 1 / scale
    value = np.arange(1 if noise == "discrete" else 0, moved)
    if noise == "discrete":
        log_cell = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))

        def log_mass(at: Floats) -> Floats:
            return -rate * np.abs(at) + log_cell

        log_half = -math.log1p(math.exp(-rate))  # P(Z <= 0) = P(Z >= 0) = 1 / (1 + q)
    else:
        log_cell = math.log(-math.expm1(-rate)) - math.log(2)

        def log_mass(at: Floats) -> Floats:
            return -rate * np.where(at >= 0, at, -at - 1) + log_cell

        log_half = -math.log(2)  # P(Z < 0) = P(Z >= 0) = 1/2

    ends_p = (log_half, log_half - rate * moved)
    log_p = np.concatenate([[ends_p[0]], log_mass(value.astype(np.float64)), [ends_p[1]]])
    log_q = np.concatenate([[ends_p[1]], log_mass(value.astype(np.float64) - moved), [ends_p[0]]])
    return log_p, log_q


def knorm_step(k: int, scale: float) -> tuple[Floats, Floats]:
    """Log-probabilities of K-norm noise by whether one changed record brings the outcome nearer:
    log-ratios `1/scale`, 0, `-1/scale`.

    The first has probability `A_{k-2}(q) / A_{k-1}(q)` with `A_j(q) = sum_i C(j, i)^2 q^i`, `q =
    exp(-1/scale)`, the last q times that.
    """
    log_near = _log_squares(k - 2, scale) - _log_squares(k - 1, scale)
    log_far = log_near - 1 / scale
    # 1 - (1 + q) A_{k-2} / A_{k-1}, term by term: C(k-1, i)^2 - C(k-2, i)^2 - C(k-2, i-1)^2 = 2
    # C(k-2, i) C(k-2, i-1).
    binomials = _log_binomials(k - 2)
    even = [math.log(2) + binomials[i] + binomials[i - 1] - i / scale for i in range(1, k - 1)]
    log_even = _log_sum(even) - _log_squares(k - 1, scale) if even else -math.inf
    return np.array([log_near, log_even, log_far]), np.array([log_far, log_even, log_near])


def laplace_error(moved: int, scale: float) -> float:
    """Bound on the error of the log-probabilities of `laplace_shift`."""
    return _RELATIVE_ERROR * (16 + moved / scale + abs(math.log(scale)))


def knorm_error(k: int, scale: float) -> float:
    """Bound on the error of the log-probabilities of `knorm_step`: logarithms of sums of up to k
    terms, each of a binomial and an exponential.
    """
    return _RELATIVE_ERROR * (16 + 4 * k + k / scale)


def _log_squares(j: int, scale: float) -> float:
    return _log_sum([2 * binomial - i / scale for i, binomial in enumerate(_log_binomials(j))])


def _log_binomials(n: int) -> list[float]:
    """`ln C(n, i)` for i = 0..n, from exact integers, each by one step from the one before."""
    logs, binomial = [], 1
    for i in range(n + 1):
        logs.append(math.log(binomial))
        binomial = binomial * (n - i) // (i + 1)
    return logs


def _log_sum(terms: list[float]) -> float:
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))
