"""Mixtures of Betas of pairs, records in a category and those in all others, whose joint law is a
product but for a weight of their sum: both in bins, to the second order within these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, varied
from opendp_bayes.inference.laws.mixtures_of_counts import Bins, grouped, in_bins
from opendp_bayes.mathematics.validation import Floats, Integers

#: Bins of counts are as wide as this part of the deviation of their Betas.
_WIDTH = 0.35
#: Nor are bins wider than this part of the deviation that the numbers have given q, where they are
#: more than so much of the deviation of the logit: else what pairs have in common would be lost.
_PART, _MATTERS = 0.5, 0.05
#: Numbers, and pairs, that weigh less are left out.
_RARE, _RAREST = 1e-9, 1e-17
#: The largest correction of the logarithm of a pair's weight for what varies within its bins.
_LARGEST = 2.0
_TINY = 1e-300
#: Rows whose pairs are kept at once.
_ROWS = 32


@dataclass(frozen=True, eq=False)
class Side:
    """Numbers of records on one side of pairs, ascending in equal steps; shapes `(rows, m)`.

    Attributes
    ----------
    numbers, masses : ndarray
        The numbers and their probabilities, which sum to 1 in each row.
    log_tilts : ndarray
        Logarithms of what the other side multiplies the weights of the numbers by.
    deviation : ndarray
        That of the numbers given q, shape `(rows,)`.
    """

    numbers: Floats
    masses: Floats
    log_tilts: Floats
    deviation: Floats

    def mean_and_std(self) -> tuple[Floats, Floats]:
        """Moments of every row."""
        mean = np.sum(self.masses * self.numbers, axis=1)
        return mean, np.sqrt(np.sum(self.masses * (self.numbers - mean[:, None]) ** 2, axis=1))

    @cached_property
    def tilts_and_slopes(self) -> tuple[Floats, Floats]:
        """The logarithms, and their derivatives; shapes `(rows, m)`."""
        tilts, step = np.maximum(self.log_tilts, -1e4), self.numbers[0, 1] - self.numbers[0, 0]
        return tilts, np.gradient(tilts, step, axis=1)

    def binned(self, row: int, bins: Callable[[Floats], Integers]) -> "_Binned":
        """Put the numbers of a row together."""
        seen = np.flatnonzero(self.masses[row] > _RAREST)
        seen = np.arange(seen[0], seen[-1] + 1)
        numbers, masses = self.numbers[row, seen], self.masses[row, seen] + _TINY
        of = bins(numbers)
        of = np.cumsum(np.diff(of, prepend=of[0]) != 0)
        whole, mean, variance = in_bins(of, masses, numbers)
        between = (np.interp(mean, self.numbers[row], each[row]) for each in self.tilts_and_slopes)
        return _Binned(mean, whole, variance, *between)


@dataclass(frozen=True, eq=False)
class _Binned:
    """Bins of a row: mean, probability and variance, and the tilt with its slope at the mean."""

    mean: Floats
    mass: Floats
    variance: Floats
    log_tilt: Floats
    slope: Floats


def mixtures_of_pairs(
    own: Side, rest: Side, alpha: Floats, others: Floats, sizes: tuple[Floats, Floats]
) -> BetaMixtures:
    """The law of the probability of each category.

    Parameters
    ----------
    own, rest : Side
        The records in the category and in all others.
    alpha, others : ndarray
        The priors of the category and of all others, shape `(rows,)`.
    sizes : tuple[ndarray, ndarray]
        Numbers of records, one after the other, and logarithms of their weights; the weight of a
        pair is that of its sum times those of its sides.
    """
    (mean, std), (beside, spread) = own.mean_and_std(), rest.mean_and_std()
    a, b = alpha + mean, others + beside
    known, unknown = np.sqrt(1 / a + 1 / b + (std / a) ** 2), spread / b
    given = np.minimum(rest.deviation, spread) / b
    most = np.where(unknown > _MATTERS * np.hypot(known, unknown), _PART * given, np.inf)
    bins = Bins(others, known, given, np.maximum(most, 1e-9))
    total = *sizes, np.gradient(sizes[1])

    def of(rows: Integers) -> BetaMixtures:
        parts = []
        for row in rows.tolist():
            first = own.binned(row, lambda x: _narrow(x + alpha[row], own.deviation[row]))  # noqa: B023
            second = rest.binned(row, lambda x: bins.of(np.full(x.size, row), x))  # noqa: B023
            parts.append(_pairs(first, second, total, (alpha[row], others[row])))
        x, r, vx, vr, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
        place = np.repeat(np.arange(rows.size), [part[0].size for part in parts])
        owner = rows[place]
        a, b = varied(alpha[owner] + x, others[owner] + r, vx, vr)
        return grouped(a, b, weight, x, r, place)

    blocks = np.array_split(np.arange(alpha.size), -(-alpha.size // _ROWS))
    return BetaMixtures.joined([of(rows) for rows in blocks])


def _pairs(
    first: _Binned,
    second: _Binned,
    total: tuple[Floats, Floats, Floats],
    prior: tuple[float, float],
) -> list[Floats]:
    """Means and variances on both sides of pairs of bins, and their probabilities; of those that
    matter for the mean or the deviation.
    """
    size = first.mean[:, None] + second.mean
    log_size, along = (np.interp(size, total[0], values) for values in total[1:])
    by_first, by_second = along - first.slope[:, None], along - second.slope
    within = first.variance[:, None] * by_first**2 + second.variance * by_second**2
    logs = log_size - first.log_tilt[:, None] - second.log_tilt + np.minimum(within / 2, _LARGEST)
    joint = np.exp(logs - logs.max()) * first.mass[:, None] * second.mass
    for _ in range(2):  # what each side has alone is known
        joint *= (first.mass / np.maximum(joint.sum(axis=1), _TINY))[:, None]
        joint *= second.mass / np.maximum(joint.sum(axis=0), _TINY)
    # And so are the means of all bins.
    by_first -= ((joint * by_first).sum(axis=1) / np.maximum(joint.sum(axis=1), _TINY))[:, None]
    by_second -= (joint * by_second).sum(axis=0) / np.maximum(joint.sum(axis=0), _TINY)
    share = (first.mean[:, None] + prior[0]) / (size + sum(prior))
    squares = joint * (share - np.sum(joint * share)) ** 2
    point, other = np.nonzero((joint > _RARE) | (squares > _RARE * squares.sum()))
    return [
        np.maximum(first.mean[point] + (first.variance[:, None] * by_first)[point, other], 0.0),
        np.maximum(second.mean[other] + (second.variance * by_second)[point, other], 0.0),
        first.variance[point],
        second.variance[other],
        joint[point, other],
    ]


def _narrow(a: Floats, deviation: float) -> Integers:
    """Bins of first parameters of Betas, in ascending order one apart."""
    widths = np.maximum(np.minimum(_WIDTH * np.sqrt(a), _PART * deviation), 1.0)
    return np.floor(np.cumsum(1 / widths) - 1 / widths[0] + 1e-9).astype(np.int64)
