"""The probability that Poisson counts have a sum, given what was drawn of each, and their means
given that: their characteristic functions are inverted at equally spaced frequencies.
"""

import math
from typing import Any

import numpy as np

from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.likelihood.poisson_counts import PoissonCounts
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: Of a sum: deviations that its law may fill on each side, and of its characteristic function, one
#: over how many deviations is looked at first, and below which size it has vanished, at so many
#: frequencies on end.
_WIDE, _FIRST, _VANISHED, _ENDS = 24.0, 4.0, 1e-8, 4
#: Deviations are not taken to be smaller, in records.
_SMALLEST = 0.01
#: Waves that are added up at once; shares of points that do not matter.
_BLOCK, _NEGLIGIBLE = 1 << 21, 1e-17


def given_sum(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the counts of all rows, two or more, sum to a number near their expected
    sum; and their means given that, shape `(rows,)`.
    """
    return (_of_two if laws.place.size == 2 else _of_several)(laws, size)


def _of_two(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the two counts sum to a number, and their means given that."""
    cells, is_first = laws.cells, laws.cells.category == 0
    first, last = cells.first[is_first], cells.last[is_first]
    mirrored = size - cells.last[~is_first][::-1], size - cells.first[~is_first][::-1]
    low, high = max(first[0], mirrored[0][0]), min(last[-1], mirrored[1][-1])
    starts = np.unique(np.concatenate([first, mirrored[0], [low]]))
    starts = starts[(starts >= low) & (starts <= high)]
    none = np.zeros_like(starts)
    both = Cells(none, starts, np.append(starts[1:] - 1, high))

    def log_weight(row: Integers, counts: Floats) -> Floats:
        return laws.log_weight(row, counts) + laws.log_weight(row + 1, size - counts)

    log_masses = both.log_masses(log_weight)
    log_sum = float(both.log_sums(log_masses)[0])
    mean = low + float(np.sum(np.exp(log_masses - log_sum) * (both.nodes - low)))
    return log_sum - float(laws.log_evidence.sum()), np.array([mean, size - mean])


def _of_several(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the counts sum to a number, and their means given that: an integral of
    their characteristic functions.
    """
    deviation = max(math.sqrt(float(laws.variance.sum())), _SMALLEST)
    # An odd number of frequencies around the circle, so that nothing that weighs anything meets.
    number = 2 * math.ceil(_WIDE * deviation + 8) + 1
    unit, most = 2 * math.pi / number, number // 2
    last = min(math.ceil(_FIRST / (unit * deviation)), most)
    fine = laws.cut(1 / (unit * last))
    while last < most and not _vanishes(fine, unit * np.arange(last - _ENDS, last + 0.0)):
        last = min(2 * last, most)
        fine = laws.cut(1 / (unit * last))
    frequency = unit * np.arange(last + 1.0)
    if last == most and fine.are_listed:
        value, first = _around_the_circle(fine, number)
    else:
        value, first = _characteristic(fine, frequency)
    others, centre = all_but_one(value, np.multiply), np.rint(fine.mean)
    turned = np.exp(-1j * frequency * (size - float(centre.sum()))) / number
    turned[1:] *= 2
    density = float(np.sum(others[0] * value[0] * turned).real)
    means = centre + (first * others @ turned).real / density
    return math.log(density), means


def _vanishes(laws: PoissonCounts, frequency: Floats) -> bool:
    """True if the characteristic function of the sum is next to nothing."""
    value, _ = _characteristic(laws, frequency)
    return bool(np.max(np.abs(np.prod(value, axis=0))) < _VANISHED)


def _characteristic(laws: PoissonCounts, frequency: Floats) -> tuple[Any, Any]:
    """Characteristic functions of the counts about their rounded means, and of the counts times
    these, shape `(k, frequencies)`; the frequencies are equally spaced.
    """
    counts, shares = laws.points
    seen = np.flatnonzero(shares > _NEGLIGIBLE)
    parts, shares = Segments.of(laws.parts.owner[seen]), shares[seen]
    away, blocks = counts[seen] - np.rint(laws.mean)[parts.owner], []
    # A frequency is that of its block and one that all blocks share: waves of both are multiplied.
    block = min(math.isqrt(frequency.size), _BLOCK // seen.size) + 1
    shared = shares * _waves(frequency[:block] - frequency[0], away)
    for start in frequency[::block]:
        waves = _waves(start, away) * shared
        blocks.append([parts.sums(waves).T, parts.sums(waves * away).T])
    value, first = (
        np.concatenate(arrays, axis=1)[:, : frequency.size] for arrays in zip(*blocks, strict=True)
    )
    return value, first


def _waves(frequency: Floats, away: Floats) -> Any:
    """A wave of each frequency at each point, shape `(..., points)` for frequencies `(...)`."""
    phase = np.multiply.outer(frequency, away)
    return np.cos(phase) + 1j * np.sin(phase)


def _around_the_circle(laws: PoissonCounts, number: int) -> tuple[Any, Any]:
    """Answer as `_characteristic` does, for listed counts, at all frequencies around the circle."""
    counts, shares = laws.points
    owner = laws.parts.owner
    away = (counts - np.rint(laws.mean)[owner]).astype(np.int64)
    entry, rows = owner * number + away % number, len(laws.parts)
    dense = [np.bincount(entry, weights, rows * number) for weights in (shares, shares * away)]
    value, first = (np.conj(np.fft.rfft(weights.reshape(rows, number))) for weights in dense)
    return value, first
