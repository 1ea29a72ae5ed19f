"""A budget in parts, of which no rounding makes more than the whole."""

from collections.abc import Sequence
from fractions import Fraction

from opendp_bayes.mathematics.rounding import round_down, round_up

_ULP = Fraction(1, 1 << 52)


def divided(limit: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Parts of a finite `limit` in proportion to positive weights, each rounded down, whose sum
    does not exceed it even where every addition, in their order, rounds up.

    A sum of m floats, rounded up m - 1 times, exceeds the exact one by a factor of less than
    `(1 + 2^-52)^(m - 1)`, so that all but `(m - 1) 2^-52` of the limit is always given out.
    """
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    for lost in range(len(exact)):
        whole = Fraction(limit) * (1 - lost * _ULP)
        parts = tuple(round_down(whole * weight / total) for weight in exact)
        if sum_up(parts) <= limit:
            break
    return parts


def sum_up(losses: Sequence[float]) -> float:
    """The sum of losses, every addition in their order rounded up; infinite where one is."""
    total = 0.0
    for loss in losses:
        try:
            total = round_up(Fraction(total) + Fraction(loss))
        except OverflowError:  # infinity is no fraction
            return loss + total
    return total
