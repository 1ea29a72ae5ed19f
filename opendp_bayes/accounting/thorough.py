"""Calibration to the exact loss beyond what a few seconds allow: the scale is found with the pairs
of neighbours that were worst so far, and then all pairs are looked at; a pair that is worse joins
them, and the search begins again.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from opendp_bayes.accounting.exact import LARGEST_WORK, loss_within
from opendp_bayes.accounting.exact import worst_pair as worst_of
from opendp_bayes.accounting.large_simplex import SUM_ERROR, loss_of_pairs
from opendp_bayes.accounting.pairs import Setting
from opendp_bayes.mechanisms.laws import ExponentialWeights
from opendp_bayes.mechanisms.protocol import Mechanism, law_of

M = TypeVar("M", bound=Mechanism)

#: Of the loss asked for, left to the rounding between one way to compute a loss and another.
_MARGIN = 1e-12


def thorough(
    mechanism: M,
    size: int | None,
    prior: tuple[float, ...],
    epsilon: float,
    solved: Callable[[M, Callable[[Mechanism], float]], M],
) -> M:
    """The mechanism that `solved` finds for the exact loss of all pairs at distance 1.

    `solved` takes a mechanism and its loss relative to the one asked for. Raises `ValueError` where
    there are too many probabilities to compare.
    """
    work = Setting(size, prior).work()
    if work > LARGEST_WORK:
        raise ValueError(
            f"accounting='thorough', size={size}, {len(prior)} categories: {work:.1e} probabilities"
            f" would have to be compared, and {LARGEST_WORK:.0e} are allowed. Use 'exact', which"
            " takes the proven bound there."
        )

    def of_all(candidate: Mechanism) -> float:
        return loss_within(candidate, size, prior, 1, LARGEST_WORK, False).epsilon / epsilon

    law = law_of(mechanism, size, np.array(prior))
    if size is None or len(prior) == 2 or not isinstance(law, ExponentialWeights):
        return solved(mechanism, of_all)
    known: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def of_known(candidate: Mechanism) -> float:
        own = law_of(candidate, size, np.array(prior))
        assert isinstance(own, ExponentialWeights)  # noqa: S101 (it was for the first one)
        error = 2 * (own.widths.log_error(size, np.array(prior)) + SUM_ERROR)
        return (loss_of_pairs(own, size, prior, known) + error) / epsilon * (1 + _MARGIN)

    found = mechanism
    while True:
        worst = worst_of(found, size=size, prior=prior)
        if worst is None or (worst.first, worst.second) in known:
            return solved(found, of_all)
        known.append((worst.first, worst.second))
        found = solved(mechanism, of_known)
        if of_all(found) <= 1:
            return found
