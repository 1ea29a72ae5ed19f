"""Calibrate to the exact loss where that takes more than a few seconds: find the scale with the
pairs of neighbours that were worst so far, and then look at all pairs. A pair that is worse joins
them, and the search begins again.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from opendp_bayes.accounting.exact import LARGEST_WORK, bad_pairs, loss_within
from opendp_bayes.accounting.large_simplex import SUM_ERROR, loss_of_pairs
from opendp_bayes.accounting.pairs import Setting
from opendp_bayes.mechanisms.laws import ExponentialWeights
from opendp_bayes.mechanisms.protocol import Mechanism, law_of

M = TypeVar("M", bound=Mechanism)

#: Of the loss asked for, left to the rounding between one way to compute a loss and another.
_MARGIN = 1e-12
#: A loss of all pairs that exceeds the one asked for by no more than this part of it ends the
#: choice of the smoothness, around whose best value the error is flat.
_NEAR = 0.005


def thorough(
    mechanism: M,
    size: int | None,
    prior: tuple[float, ...],
    epsilon: float,
    solved: Callable[[M, Callable[[Mechanism], float], bool], M],
) -> M:
    """The mechanism that `solved` finds for the exact loss of all pairs at distance 1.

    `solved` takes a mechanism, its loss relative to the one asked for, and whether it may choose
    the smoothness too. Raises `ValueError` where there are too many probabilities to compare.
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
        return solved(mechanism, of_all, True)
    known: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def of_known(candidate: Mechanism) -> float:
        own = law_of(candidate, size, np.array(prior))
        assert isinstance(own, ExponentialWeights)  # noqa: S101 (it was for the first one)
        error = 2 * (own.widths.log_error(size, np.array(prior)) + SUM_ERROR)
        return (loss_of_pairs(own, size, prior, known) + error) / epsilon * (1 + _MARGIN)

    found, near = mechanism, False
    while True:
        bad = bad_pairs(found, size=size, prior=prior)
        named = [(pair.first, pair.second) for pair in bad]
        if not bad or named[0] in known:
            return solved(found, of_all, not near)
        # From there on only the scale is sought, which more pairs can only raise.
        near = near or (len(known) > 0 and bad[0].epsilon <= epsilon * (1 + _NEAR))
        known += [pair for pair in named if pair not in known]
        found = solved(found if near else mechanism, of_known, not near)
        if of_all(found) <= 1:
            return found
