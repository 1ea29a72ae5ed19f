"""The Hellinger score `u(x, r) = -H(posterior(x), r)` of every candidate `r`, and how far a change
of records can move it.
"""

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.exponential.hellinger import (
    distance_from_divergence,
    gap_above,
)
from opendp_bayes.mathematics.exponential.sensitivity import (
    RELATIVE_ERROR,
    global_sensitivity,
)
from opendp_bayes.mathematics.rounding import round_up, upper_end
from opendp_bayes.mathematics.simplex import candidate_sums
from opendp_bayes.mathematics.validation import Floats, Integers, as_distance, as_scale


class Chosen(ABC):
    """A mechanism that chooses one of the candidates. Subclasses are frozen dataclasses with a
    `scale`.
    """

    scale: float

    def __post_init__(self) -> None:
        # A float, whatever number was given.
        object.__setattr__(self, "scale", as_scale(self.scale))

    @abstractmethod
    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """`draws` releases, shape `(draws, k)`."""

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw as `sample` does, shape `(draws, k)`."""
        return self.sample(counts, prior, draws)

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Return the draw unchanged: it is counts already."""
        return drawn


def public_size(user: str, size: int | None) -> int:
    """Return `size`; raise `ValueError` that names `user` where it is private: the candidates
    depend on it.
    """
    if size is None:
        raise ValueError(
            f"{user}: its candidates are the posteriors of `size` records, so the number of records"
            " must be public. Under add/remove neighbours use LaplaceParameters, or state the"
            " privacy unit as changes and pass size=."
        )
    return size


def candidate_distances(counts: Integers, prior: Floats) -> Floats:
    """`H(posterior(counts), r)` for every candidate `r` in the order of `simplex.candidates`, shape
    `(c,)`, entries in `[0, 1]`.

    By the separable form: k tables of size + 1 gaps, then sums. The distance of `counts` to
    themselves is exactly 0.
    """
    split = np.arange(counts.sum() + 1)
    own = counts[:, None]
    tables = gap_above(prior[:, None] + np.minimum(own, split), np.abs(split - own) / 2)
    return distance_from_divergence(candidate_sums(list(tables)))


def score_error(k: int) -> Fraction:
    """Bound on the absolute error of an entry of `candidate_distances` for `k` categories (docs:
    Numerics, "Scores").
    """
    return Fraction(RELATIVE_ERROR) + Fraction(k + 8, 2**53)


def score_change(d_in: int, *, size: int, prior: Floats) -> float:
    """Bound on the change of any computed score between data sets at distance `d_in`: `d_in GS`,
    and the error of a score at each of the two.

    Rounded up; 0 at distance 0. `prior` has shape `(k,)`. Source: `docs/research/proofs.md`,
    "Scores".
    """
    records = as_distance(d_in)
    if records == 0:
        return 0.0
    largest_change = Fraction(upper_end(global_sensitivity(size, prior), RELATIVE_ERROR))
    return round_up(records * largest_change + 2 * score_error(prior.size))
