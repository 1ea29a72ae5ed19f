"""Closed-form bounds on the smoothed δ (paper, Theorem 3 and Remark 8), corrected where they fail
(`docs/research/smoothed.md`, "What the paper says").
"""

import math
from fractions import Fraction

from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import as_size
from opendp_bayes_smoothed.arguments import as_epsilon, samples_of
from opendp_bayes_smoothed.distributions import as_distributions


def sampling_bound(
    distributions: ArrayLike, size: int, rate: float | Fraction, epsilon: float
) -> float:
    """Bound the smoothed δ of sampling without replacement by Remark 8, as it can be proved:
    `exp(-t² (T/n) f n / (2 max(3, 2 + t))) + m exp(-f n / 8)`, at most 1.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : greater than `ln(n / (n - T))`.

    f is the smallest probability of any category in Π and `t = (1 - e^-ε) n / T - 1 > 0`. The
    paper's first exponent is `-t² f n / 6`: its proof loses the factor `T / n` of the mean in
    Chernoff's inequality, whose form with 3 needs `t <= 1` besides. It also lets f leave out
    categories that never occur. `docs/research/smoothed.md` has a counterexample to each; for a
    rate near 1 and `t <= 1` the two bounds are close.

    Raises `ValueError`/`TypeError` for arguments that are not valid, and for `t <= 0`, where
    nothing is claimed.
    """
    rows = as_distributions(distributions)
    size = as_size(size)
    share = samples_of(rate, size) / size
    t = -math.expm1(-as_epsilon(epsilon)) / share - 1
    if t <= 0:
        raise ValueError(
            f"epsilon={epsilon!r}: must be greater than ln(n / (n - T)) ="
            f" {-math.log1p(-share) if share < 1 else math.inf:.6g}."
        )
    smallest = float(rows.min())
    first = math.exp(-t * t * share * smallest * size / (2 * max(3.0, 2 + t)))
    return min(1.0, (first + rows.shape[1] * math.exp(-smallest * size / 8)) * (1 + 2.0**-40))
