"""Closed-form bounds on the smoothed δ (paper, Theorem 3 and Remark 8), corrected where they fail
(`docs/smoothed.md`, "What the paper says").
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
    """Remark 8 for sampling without replacement, as it can be proved: `exp(-t² (T/n) f n / (2
    max(3, 2 + t))) + m exp(-f n / 8)`, at most 1.

    f is the smallest probability of any category in Π and `t = (1 - e^-ε) n / T - 1 > 0`. The
    paper's first exponent is `-t² f n / 6`: its proof loses the factor `T / n` of the mean in
    Chernoff's inequality, whose form with 3 needs `t <= 1` besides. It also lets f leave out
    categories that never occur. `docs/smoothed.md` has a counterexample to each; for a rate near 1
    and `t <= 1` the two bounds are close.

    Raises `ValueError` for `t <= 0`, that is `ε <= ln(n / (n - T))`, where nothing is claimed.
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
