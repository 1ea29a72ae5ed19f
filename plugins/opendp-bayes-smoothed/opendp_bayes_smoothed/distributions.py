"""The set Π of distributions that describes the data: its checks, and the vertices of its convex
hull (paper, Proposition 7).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from opendp_bayes_smoothed.draws import Floats


def vertices(distributions: ArrayLike) -> Floats:
    """Return the vertices of the convex hull of Π, ascending, shape `(l*, m)`: only they matter
    (Proposition 7).

    Parameters
    ----------
    distributions : array_like of float
        The set Π, shape `(l, m)`: rows of probabilities of the m categories.

    Returns
    -------
    ndarray
        The two ends for two categories, otherwise Qhull's hull. Points that it finds on the
        boundary within rounding are kept, and so are all points of a flat set: more points than
        needed cost time and change no result.

    Raises
    ------
    ValueError
        For rows that are no probabilities.
    """
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
    rows = np.unique(rows / sums, axis=0)
    if rows.shape[1] == 2:
        return rows[[0, -1]] if len(rows) > 2 else rows
    if len(rows) <= rows.shape[1]:
        return rows
    try:
        hull = ConvexHull(rows[:, :-1], qhull_options="Qc")
    except QhullError:
        return rows
    return rows[np.unique(np.concatenate([hull.vertices, hull.coplanar[:, 0]]).astype(np.int64))]
