"""The sampling-average mechanism on whole numbers (paper, Algorithm 3): its law and its profile, exactly up to rounding."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from opendp_bayes_smoothed.draws import Floats
from opendp_bayes_smoothed.profile import as_epsilon, samples_of


def average_profile(records: Sequence[int], levels: int, rate: float | Fraction, epsilon: float) -> float:
    """`δ_ε(x)` of the average of `T = ceil(rate n)` records drawn without replacement, which are whole numbers from 0 to `levels - 1`.

    The maximum over all records that could have changed and all values they could have had instead, in both directions. A float computation from sums
    of positive terms, for figures; not rounded up. Takes `O(v n T² levels)` steps for v different values.

    With B the law of the sum of T of the others and A that of T - 1, a record of value v gives the sum the law `(1 - T/n) B + (T/n) A(· - v)`.
    """
    values = np.asarray(records, dtype=np.int64)
    if values.ndim != 1 or values.size < 2 or values.min() < 0 or values.max() >= levels:
        raise ValueError(f"records: must be at least 2 whole numbers from 0 to {levels - 1}.")
    size = values.size
    samples = samples_of(rate, size)
    share, factor = samples / size, np.exp(as_epsilon(epsilon))
    worst = 0.0
    for value in np.unique(values):
        place = int(np.argmax(values == value))
        less, same = sum_laws(np.delete(values, place), levels, samples)
        shifted = np.zeros((levels, same.size))
        for other in range(levels):
            shifted[other, other : other + less.size] = less[: same.size - other]
        laws = (1 - share) * same + share * shifted
        here = laws[value]
        worst = max(worst, float(np.maximum(here - factor * laws, 0).sum(axis=1).max()), float(np.maximum(laws - factor * here, 0).sum(axis=1).max()))
    return worst


def sum_laws(values: np.ndarray, levels: int, samples: int) -> tuple[Floats, Floats]:
    """The laws of the sum of `samples - 1` and of `samples` of `values`, drawn without replacement; the second on `0..samples (levels - 1)`.

    With r records seen, a t-subset of them contains the last one with probability t / r.
    """
    width = samples * (levels - 1) + 1
    laws = np.zeros((samples + 1, width))
    laws[0, 0] = 1
    for seen, value in enumerate(values.tolist(), start=1):
        for t in range(min(seen, samples), 0, -1):
            chosen = t / seen
            moved = chosen * laws[t - 1, : width - value]
            laws[t] *= 1 - chosen
            laws[t, value:] += moved
    return laws[samples - 1, : width - (levels - 1)], laws[samples]
