"""Calibrate to the exact loss where that takes more than a few seconds: find the scale with the
pairs of neighbours that were worst so far, and then look at all pairs. A pair that is worse joins
them, and the search begins again.
"""

from collections.abc import Callable

from opendp_bayes.accounting.exact import LARGEST_WORK, bad_pairs, loss_within
from opendp_bayes.accounting.exponential.large_simplex import SUM_ERROR, loss_of_pairs
from opendp_bayes.accounting.pairs import work_of
from opendp_bayes.mechanisms.laws import ExponentialWeights
from opendp_bayes.mechanisms.neighbours import ONE_RECORD
from opendp_bayes.mechanisms.setting import Setting

#: Of the loss asked for, left to the rounding between one way to compute a loss and another.
_MARGIN = 1e-12
#: A loss of all pairs that exceeds the one asked for by no more than this part of it ends the
#: choice of the smoothness, around whose best value the error is flat.
_NEAR = 0.005


def thorough(
    setting: Setting,
    epsilon: float,
    solved: Callable[[Setting, Callable[[Setting], float], bool], Setting],
) -> Setting:
    """The mechanism that `solved` finds for the exact loss of all pairs at distance 1.

    `solved` takes a mechanism, its loss relative to the one asked for, and whether it may choose
    the smoothness too. Raises `ValueError` where there are too many probabilities to compare.
    """
    size, prior = setting.size, setting.prior
    work = work_of(size, prior)
    if work > LARGEST_WORK:
        raise ValueError(
            f"accounting='thorough', size={size}, {len(prior)} categories: {work:.1e} probabilities"
            f" would have to be compared, and {LARGEST_WORK:.0e} are allowed. Use 'exact', which"
            " takes the proven bound there."
        )

    def of_all(candidate: Setting) -> float:
        return loss_within(candidate, ONE_RECORD, LARGEST_WORK, False).epsilon / epsilon

    if size is None or len(prior) == 2 or not isinstance(setting.law, ExponentialWeights):
        return solved(setting, of_all, True)
    known: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def of_known(candidate: Setting) -> float:
        own = candidate.law
        assert isinstance(own, ExponentialWeights)  # noqa: S101 (it was for the first one)
        error = 2 * (own.widths.log_error(size, setting.prior_array) + SUM_ERROR)
        return (loss_of_pairs(own, size, prior, known) + error) / epsilon * (1 + _MARGIN)

    found, near = setting, False
    while True:
        bad = bad_pairs(found)
        named = [(pair.first, pair.second) for pair in bad]
        if not bad or named[0] in known:
            return solved(found, of_all, not near)
        # From there on only the scale is sought, which more pairs can only raise.
        near = near or (len(known) > 0 and bad[0].epsilon <= epsilon * (1 + _NEAR))
        known += [pair for pair in named if pair not in known]
        found = solved(found if near else setting, of_known, not near)
        if of_all(found) <= 1:
            return found
