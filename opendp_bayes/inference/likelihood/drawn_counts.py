"""Counts as they were drawn, each with independent noise of one law, and the bounds within which
posteriors given them are exact to what is stated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import alike
from opendp_bayes.mathematics.validation import BYTES_OF_CATEGORY, Floats, Integers, check_cells
from opendp_bayes.mechanisms.integer_noise import IntegerNoise


@dataclass(frozen=True, eq=False)
class DrawnCounts:
    """Counts with independent noise, as they were drawn.

    Attributes
    ----------
    drawn : ndarray of int
        What was drawn of each count, an array of integers; most often of shape `(k,)`.
    noise : IntegerNoise
        Law of the noise.
    noised : NDArray[bool_]
        Which of them were drawn with this noise, shaped as `drawn`; the others say nothing.
    """

    drawn: Integers
    noise: IntegerNoise
    noised: NDArray[np.bool_]

    @classmethod
    def of(
        cls, noisy_counts: ArrayLike, noise: IntegerNoise, noised: ArrayLike = True
    ) -> "DrawnCounts":
        """Make it of array-likes; by default every count was noised."""
        array = np.asarray(noisy_counts, dtype=np.int64)
        return cls(array, noise, np.broadcast_to(np.asarray(noised, dtype=bool), array.shape))

    @cached_property
    def is_complete(self) -> bool:
        """True if every count was noised."""
        return bool(self.noised.all())

    @property
    def kinks(self) -> list[Integers]:
        """Counts at which the logarithm of the noise is not smooth, each shaped as `drawn`."""
        return [self.drawn - kink for kink in self.noise.kinks]

    def chosen(self, index: Any) -> "DrawnCounts":
        """Those at an index of the array."""
        return DrawnCounts(self.drawn[index], self.noise, self.noised[index])

    def placed(self, places: Any, shape: int | tuple[int, ...]) -> "DrawnCounts":
        """Put them at places of an array of another shape, whose other counts are not noised."""
        noisy_counts, noised = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        noisy_counts[places], noised[places] = self.drawn, self.noised
        return DrawnCounts(noisy_counts, self.noise, noised)

    @property
    def without_others(self) -> "DrawnCounts":
        """These counts, but 0 for those that were not noised, which say nothing, and are alike."""
        return replace(self, drawn=np.where(self.noised, self.drawn, 0))

    def log_mass(self, counts: ArrayLike, index: Any = ...) -> Floats:
        """Log-probability of what was drawn at an index of the array, given counts that broadcast
        against it; 0 where nothing was noised.
        """
        log_mass = self.noise.log_mass(self.drawn[index] - np.asarray(counts))
        return log_mass if self.is_complete else np.where(self.noised[index], log_mass, 0.0)

    def log_ratio(self, counts: ArrayLike, step: ArrayLike, index: Any = ...) -> Floats:
        """Change of `log_mass` when a step, which need not be whole, is added to the counts; by a
        formula that keeps its digits where both logarithms are huge.
        """
        log_ratio = self.noise.log_ratio(self.drawn[index] - np.asarray(counts), -np.asarray(step))
        return log_ratio if self.is_complete else np.where(self.noised[index], log_ratio, 0.0)

    def log_likelihood(self, counts: Integers) -> Floats:
        """Log-probability of all that was drawn, given rows of counts of shape `(m, k)`."""
        return np.asarray(self.log_mass(counts).sum(axis=-1))


#: Counts are as far apart as this part of the noise's scale, and of their distance from what was
#: drawn, or as this part of the square root of the count, where that is less.
_OF_SCALE, _OF_DISTANCE, _OF_ROOT = 0.8, 0.5, 1.5


def nodes_of(
    drawn: Integers,
    noise: IntegerNoise,
    depth: float,
    *,
    part: float = 1.0,
    wide: ArrayLike = 1.0,
    most: float = math.inf,
) -> Floats:
    """Counts in order that stand for all that may be behind what was drawn, shape `(m,)`: these,
    the real number at which the integers begin that each stands for, and for how many it does,
    shape `(3, c, m)`. Two stand for an interval, with its mean and variance, what was drawn for
    itself alone, and copies at the end for none.

    They go as far as the noise, so many times as `wide`, has `exp(-depth)` of its largest mass, and
    up to the `most`; they are `part` as far apart as by default.
    """
    widths, every = np.broadcast_to(np.asarray(wide, dtype=np.float64), drawn.shape), []
    first, place = alike(drawn, widths)
    for middle, times in zip(drawn[first].tolist(), widths[first].tolist(), strict=True):
        nodes: list[tuple[float, float, float]] = []
        reach = math.ceil(noise.reach(depth) * times)
        x, end = max(middle - reach, 0), int(min(max(middle, 0) + reach, most)) + 1
        while x < end:
            step = part * (_OF_SCALE * noise.scale * times + _OF_DISTANCE * abs(x - middle))
            size = max(1, int(min(step, part * _OF_ROOT * math.sqrt(x))))
            following = middle if x < middle else middle + 1 if x == middle else end
            size = min(size, following - x, end - x)
            centre, away, half = x + (size - 1) / 2, math.sqrt((size**2 - 1) / 12), size / 2
            of_two = [(centre - away, x, half), (centre + away, x + half, half)]
            nodes += of_two if size > 1 else [(x, x, 1)]
            x += size
        every.append(nodes)
    longest = max(map(len, every))
    padded = np.array([nodes + [(*nodes[-1][:2], 0)] * (longest - len(nodes)) for nodes in every])
    return np.asarray(padded.T.take(place, axis=2))


#: The smallest and the largest entry of a prior.
SMALLEST_PRIOR, LARGEST_PRIOR = 1e-4, 1e6
#: Under noise of a larger scale than this, in records, the smallest entry of a fixed prior.
NARROW_NOISE, SMALLEST_UNDER_NOISE = 10.0, 0.3
#: The most records; of a private number, the largest sum of what was drawn.
MOST_RECORDS = 10**9
#: The largest scale of the noise on a count, in records.
LARGEST_SCALE = 1e6
#: Under a private number, the largest concentration of a prior, where the noise of all counts
#: together is of a larger scale than this.
MOST_CONCENTRATED, MOST_UNCERTAIN = 3e3, 1e4
#: Noise is taken to be possible if its probability is at least `exp(-_IMPOSSIBLE)` of that of 0.
_IMPOSSIBLE = 700.0
_REMAINS = "the plug_in of a release takes its counts as they are"


def check_envelope(noisy: DrawnCounts, prior: Floats, size: int | None) -> None:
    """Check that a posterior given noise on counts is within its bounds, before it is computed.

    A release outside of them is as private as any other, and its plug-in estimates remain.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn, and the noise.
    prior : ndarray
        Concentration of the Dirichlet prior, shape `(k,)`.
    size : int or None
        The public number of records; None if it is private.

    Raises
    ------
    ValueError
        With the argument that is out of its bounds.
    """
    scale = noisy.noise.scale
    smallest = SMALLEST_PRIOR if scale <= NARROW_NOISE else SMALLEST_UNDER_NOISE
    if prior.min() < smallest or prior.max() > LARGEST_PRIOR:
        raise ValueError(
            f"prior: has entries from {prior.min():g} to {prior.max():g}, and under noise of scale"
            f" {scale:g} on a count a posterior is known for entries from {smallest:g} to"
            f' {LARGEST_PRIOR:g}; give a prior within them or prior="learned", or {_REMAINS}.'
        )
    check_bounds(noisy, size)


def check_bounds(noisy: DrawnCounts, size: int | None) -> None:
    """Check the bounds that hold whatever the prior is, also where it is learned."""
    check_cells("categories", noisy.drawn.size, BYTES_OF_CATEGORY)
    if noisy.noise.scale > LARGEST_SCALE:
        raise ValueError(
            f"scale: is {noisy.noise.scale:g} records on a count, and a posterior is known up to"
            f" {LARGEST_SCALE:g}; spend more of the privacy budget on the release, or {_REMAINS}."
        )
    check_drawn(noisy, size)


def check_drawn(noisy: DrawnCounts, size: int | None) -> None:
    """Check that some counts of at most `MOST_RECORDS` records are within reach of the noise of
    every draw.
    """
    number = math.fsum(noisy.drawn.tolist()) if size is None else size
    if number > MOST_RECORDS:
        what = "noisy_counts: sums to" if size is None else "size: is"
        raise ValueError(
            f"{what} {number:.10g} records, and a posterior given noise on the counts is known for"
            f" at most {MOST_RECORDS:g}; release a sample or parts of the records, or {_REMAINS}."
        )
    drawn, reach = noisy.drawn[noisy.noised], noisy.noise.reach(_IMPOSSIBLE)
    nearest = np.clip(drawn, 0, size)
    missing = 0 if size is None else size - int(nearest.sum())
    is_far = abs(missing) > reach * drawn.size and (missing < 0 or noisy.is_complete)
    if is_far or np.abs(drawn - nearest).max() > reach:
        records = "any number of records" if size is None else f"size={size} records"
        raise ValueError(
            f"noisy_counts: are from {drawn.min()} to {drawn.max()} and sum to {drawn.sum()}, which"
            f" noise of scale {noisy.noise.scale:g} makes of {records} with a probability below"
            " 1e-300; check the scale and the size of the release."
        )


def check_same_records(noisy: Sequence[DrawnCounts]) -> None:
    """Check that draws of the same counts do not contradict each other.

    Raises
    ------
    ValueError
        Where no count is within reach of the noise of two draws of it.
    """
    for first, second in combinations(noisy, 2):
        both = first.noised & second.noised
        reach = first.noise.reach(_IMPOSSIBLE) + second.noise.reach(_IMPOSSIBLE)
        apart = np.where(both, np.abs(first.drawn - second.drawn), 0)
        worst = int(np.argmax(apart))
        if apart[worst] > reach:
            raise ValueError(
                f"releases: drew {int(first.drawn[worst])} and {int(second.drawn[worst])} for the"
                " same category, which has a probability below 1e-300 for the same records and such"
                " noise; give releases of the same records."
            )


def check_concentration(concentration: float, scale: float, k: int) -> None:
    """Raise `ValueError` where a private number of records may have too many parts, whatever was
    drawn: without a prior of its own, with noise of some scale on k counts.
    """
    if concentration > MOST_CONCENTRATED and scale * math.sqrt(k) > MOST_UNCERTAIN:
        raise too_uncertain(concentration)


def too_uncertain(concentration: float) -> ValueError:
    """Make the error for a prior that needs too many parts of the number of records."""
    return ValueError(
        f"prior: its concentration, {concentration:g}, is too large for this uncertain a private"
        f" number of records. Up to {MOST_CONCENTRATED:g}, or where the scale of the noise times"
        f" sqrt(categories) is at most {MOST_UNCERTAIN:g}, there is a posterior; give a smaller"
        " prior or a narrower records_prior."
    )
