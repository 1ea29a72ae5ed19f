"""The sensitivities of the Hellinger score at every data set of a size, as curves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.sensitivity import global_sensitivity
from opendp_bayes.mathematics.sensitivity_tables import local_sensitivities, smooth_sensitivities
from opendp_bayes.mathematics.simplex import candidates, check_enumerable, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers, as_prior, as_size

#: Entries of the table that the smooth sensitivities of three or more categories need.
_LARGEST_TABLE = 1 << 23


@dataclass(frozen=True, eq=False)
class SensitivityCurves:
    """Sensitivities at every data set of a size.

    Attributes
    ----------
    counts : the data sets, in lexicographic order, shape `(c, k)`.
    local : LS(x), shape `(c,)`.
    smooth : S(x), shape `(c,)`.
    largest : the global sensitivity.
    """

    counts: Integers
    local: Floats
    smooth: Floats
    largest: float


def sensitivity_curves(
    size: int, prior: ArrayLike, *, gamma: float | None = None, beta: float | None = None
) -> SensitivityCurves:
    """Local, smooth and global sensitivity at every data set of `size` records.

    Parameters
    ----------
    size : the number of records, at least 1.
    prior : the prior concentration, shape `(k,)`.
    gamma : positive number for a smooth sensitivity with `1/S(x) = min over x' of 1/LS(x') + gamma
        d(x, x')`.
    beta : positive number for one with `S(x) = max over x' of LS(x') exp(-beta d(x, x'))`. Exactly
        one of `gamma` and `beta` is given.

    Raises `ValueError`/`TypeError` for arguments that are not valid or if there are too many data
    sets to list; for three or more categories also if there are more than about 8e6 / `size`.

    Source: tailoring paper, section 3 and Figure 1.

    >>> from opendp_bayes import sensitivity_curves
    >>> curves = sensitivity_curves(100, [1.0, 1.0], gamma=1.0)
    >>> round(curves.largest, 4), round(curves.local[50], 4), round(curves.local[0], 4)
    (0.3389, np.float64(0.0703), np.float64(0.3389))
    """
    size, prior = as_size(size), as_prior(prior)
    check_enumerable(size, prior.size)
    entries = number_of_candidates(size, prior.size) * size
    if prior.size > 2 and entries > _LARGEST_TABLE:
        raise ValueError(
            f"size={size}, {prior.size} categories: the smooth sensitivities need a table of"
            f" {entries:.1e} entries, and {_LARGEST_TABLE:.1e} are allowed. Use fewer records, or"
            " smooth_sensitivity at the data sets of interest."
        )
    return SensitivityCurves(
        counts=np.asarray(candidates(size, prior.size)),
        local=local_sensitivities(size, prior),
        smooth=smooth_sensitivities(size, prior, gamma=gamma, beta=beta),
        largest=global_sensitivity(size, prior),
    )
