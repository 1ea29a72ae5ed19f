"""The set Π of distributions that describes the data: its checks, the vertices of its convex hull
(paper, Proposition 7) and its image under a function of records (Proposition 6).
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from opendp_bayes_smoothed.draws import Floats


def preprocessed(distributions: ArrayLike, categories: Sequence[int]) -> Floats:
    """Return `f(Π)` for a function f of single records (Proposition 6).

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories.
    categories : m whole numbers of at least 0: `categories[i]` is the category that f gives a
        record of category i.

    Returns rows of probabilities, shape `(l, max(2, max(categories) + 1))`. Raises `ValueError` for
    rows that are no probabilities, and for other numbers.
    """
    rows = as_distributions(distributions)
    if len(categories) != rows.shape[1] or min(categories) < 0:
        raise ValueError(
            f"categories={list(categories)!r}: must give each of the {rows.shape[1]} categories a"
            " new number of at least 0."
        )
    result = np.zeros((len(rows), max(2, max(categories) + 1)))
    for old, new in enumerate(categories):
        result[:, new] += rows[:, old]
    return result


def as_distributions(distributions: ArrayLike) -> Floats:
    """Return Π as a float array of shape `(l, m)` with rows that sum to 1, or raise ValueError."""
    rows = np.asarray(distributions, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 2:
        raise ValueError(
            f"distributions: have shape {rows.shape}; must be rows of at least 2 probabilities, one"
            " for each category."
        )
    sums = rows.sum(axis=1, keepdims=True)
    if not (np.all(rows >= 0) and np.all(np.abs(sums - 1) <= 1e-9)):
        raise ValueError(
            "distributions: every row must hold probabilities, at least 0 and with the sum 1."
        )
    return rows / sums


def vertices(distributions: ArrayLike) -> Floats:
    """Return the vertices of the convex hull of Π (Proposition 7), ascending, shape `(l*, m)`.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories.

    Exact for two categories, where they are the two ends, and for points on a line. For more it is
    Qhull's hull; points that it finds on the boundary within rounding are kept, and so are all
    points of a set that is flat: more points than needed cost time and change no result. Raises
    `ValueError` for rows that are no probabilities.
    """
    rows = np.unique(as_distributions(distributions), axis=0)
    if len(rows) <= 2:
        return rows
    if rows.shape[1] == 2 or _on_a_line(rows):
        return rows[[0, -1]]  # ascending in the first coordinate that differs
    if len(rows) > rows.shape[1]:
        try:
            hull = ConvexHull(rows[:, :-1], qhull_options="Qc")
        except QhullError:
            return rows
        return rows[
            np.unique(np.concatenate([hull.vertices, hull.coplanar[:, 0]]).astype(np.int64))
        ]
    return rows


def _on_a_line(rows: Floats) -> bool:
    exact = [[Fraction(value) for value in row] for row in rows.tolist()]
    first = exact[0]
    direction = [x - y for x, y in zip(exact[1], first, strict=True)]
    lead = next(i for i, value in enumerate(direction) if value)
    return all(
        (row[i] - first[i]) * direction[lead] == (row[lead] - first[lead]) * direction[i]
        for row in exact
        for i in range(len(first))
    )
