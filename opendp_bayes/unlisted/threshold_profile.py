"""The exact δ of keys that nobody listed, by how many of one person's keys are new
(`docs/research/proofs.md`, "Keys that nobody listed").
"""

import math
from collections.abc import Callable
from fractions import Fraction

from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.unlisted.threshold_pairs import MOST_OUTCOMES, ONE, count_outcomes, excess, hidden
from opendp_bayes.unlisted.thresholds import GaussianThreshold, Threshold

#: Up to so many keys the largest δ over how many of them are new is found; beyond, a bound.
MOST_KEYS = 64
#: A bound that exceeds what was found by a smaller part is taken for the largest.
_CLOSE = 1 + Fraction(1, 2**46)

#: Numbers of keys that rise, and of keys that fall.
Pair = tuple[int, int]


def delta_of_discovery(
    law: Threshold, epsilon: float, *, keys: int = 1, records: int = 1, changed: bool = False
) -> float:
    """Return a certified upper bound on the exact δ at ε of the keys that are shown and their noisy
    counts.

    The bound exceeds the exact δ by a part of about 1e-13 (`docs/research/proofs.md`, "Exact loss
    of several keys").

    Parameters
    ----------
    law : Threshold
        The threshold law.
    epsilon : float
        Finite number of at least 0.
    keys : int, default 1
        The most keys of one person.
    records : int, default 1
        The most records of one person in each key.
    changed : bool, default False
        Whether one person's records are replaced by others, rather than added or removed.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and where too many losses would have to be told apart.

    Examples
    --------
    >>> from opendp_bayes.unlisted.thresholds import LaplaceThreshold
    >>> round(delta_of_discovery(LaplaceThreshold(1.0, 20), 1.0), 20)
    4.09597239998e-09
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon={told(epsilon)}: must be at least 0, and finite.")
    keys, records = as_size(keys, "keys", "keys"), as_size(records, "records")
    if keys > MOST_KEYS:
        raise ValueError(
            f"keys={told(keys)}: must be at most {MOST_KEYS}; loss_of_discovery bounds the loss of"
            " more."
        )
    sides = [(keys, keys)] if changed else [(keys, 0), (0, keys)]
    for up, down in sides:
        if count_outcomes(law, records, up, down) > MOST_OUTCOMES:
            raise ValueError(
                f"keys={told(keys)}, records={told(records)}: more than {MOST_OUTCOMES} losses"
                " would have to be told apart; ask for fewer keys, or for a bound by"
                " loss_of_discovery."
            )
    return round_up(max(_of_side(law, records, epsilon, side) for side in sides))


def _of_side(law: Threshold, records: int, epsilon: float, keys: Pair) -> Fraction:
    """The largest δ where so many keys rise and so many fall, each old or new."""
    return largest_delta(
        law, records, epsilon, keys, lambda new: (keys[0] - new[0], keys[1] - new[1])
    )


def delta_in_any_directions(law: GaussianThreshold, epsilon: float, keys: int) -> float:
    """A certified upper bound on δ at ε where the counts of `keys` keys move by one each, some up
    and some down as it may be: the exact one up to `MOST_KEYS` keys.
    """
    if keys > MOST_KEYS:
        return round_up(min(Fraction(1), _bound(law, 1, epsilon, (keys, keys), (keys, 0))))
    return round_up(
        largest_delta(law, 1, epsilon, (keys, keys), lambda new: (keys - new[0] - new[1], 0))
    )


def _bound(law: Threshold, records: int, epsilon: float, new: Pair, old: Pair) -> Fraction:
    """δ of so many new keys, held by nobody else, that appear and that disappear, and of so many
    old ones.
    """
    keep, left = (hidden(law, records, number) for number in new)
    if not keep or not left:
        return Fraction(1)
    return Fraction(ONE - keep, ONE) + excess(law, records, *old, epsilon, keep, left)


def largest_delta(
    law: Threshold, records: int, epsilon: float, most: Pair, old_of: Callable[[Pair], Pair]
) -> Fraction:
    """The largest δ over the numbers of new keys, up to `most`, where `old_of` says how many are
    old beside them; those for which it says less than none do not occur.

    With more new keys and more old ones δ is larger, so that a range of numbers is bounded at once,
    and left out where another is larger already.
    """

    def searched(low: Pair, high: Pair, best: Fraction) -> Fraction:
        old = old_of(low)
        if min(old) < 0:
            return best
        bound = _bound(law, records, epsilon, high, old)
        if low == high or bound <= best * _CLOSE:
            return max(best, bound)
        axis = 0 if high[0] - low[0] >= high[1] - low[1] else 1
        middle = (low[axis] + high[axis]) // 2
        below = (middle, high[1]) if axis == 0 else (high[0], middle)
        above = (middle + 1, low[1]) if axis == 0 else (low[0], middle + 1)
        return searched(above, high, searched(low, below, best))

    best = Fraction(0)
    for corner in ((0, 0), (most[0], 0), (0, most[1])):  # the likeliest come first
        best = searched(corner, corner, best)
    return min(Fraction(1), searched((0, 0), most, best))
