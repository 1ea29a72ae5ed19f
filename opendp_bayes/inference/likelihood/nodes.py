"""Counts that are possible given noise: all of them, or some that stand for others."""

import numpy as np

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: So many places stand for the scale of the noise, where it is wider.
_PLACES = 5
#: How many times as large as their distance small counts are at least; and how many deviations
#: about a count that was not noised, but follows from a public sum, are looked at.
_TIMES, _DEVIATIONS = 16, 6.0


def nodes_of(
    noisy: DrawnCounts, start: Integers, depth: float, largest: int | Integers | None = None
) -> tuple[Integers, Integers, Integers, Floats]:
    """Counts in order, shape `(..., m)`, of what was drawn with possible counts to begin with, both
    of shape `(...)`; the first and last of the integers that each stands for, and the logarithm of
    their number.

    They go as far as the noise has `exp(-depth)` of its largest mass, and up to a `largest` count,
    whose copies stand for none.
    """
    scale, reach = noisy.noise.scale, noisy.noise.reach(depth)
    step = 2 * int(scale / _PLACES / 2) + 1  # odd: nodes are in the middle
    of_sum = _DEVIATIONS * typical_std(noisy.noise) * np.sqrt(noisy.drawn.size)
    steps = np.where(noisy.noised, step, np.ceil(step * max(1, of_sum / reach)).astype(int))
    noisy_counts = np.where(noisy.noised, noisy.drawn, start)
    low = np.maximum(np.minimum(noisy_counts, start) - reach * steps // step, 0)
    high = np.maximum(noisy_counts, start) + reach * steps // step
    if largest is not None:
        high = np.minimum(high, largest)
    # The kink is a node.
    begin = np.maximum(noisy_counts - (noisy_counts - low) // steps * steps, low)
    number = int(((high - low) // steps).max()) + 2
    nodes = begin[..., None] + steps[..., None] * np.arange(number)
    if steps.max() > 1:
        small = np.maximum(_growing(int(steps.max())), low[..., None])
        nodes = np.sort(np.concatenate([nodes, small], axis=-1), axis=-1)
    if largest is not None:
        nodes = np.minimum(nodes, np.asarray(largest)[..., None])
    last = np.concatenate([(nodes[..., 1:] + nodes[..., :-1]) // 2, nodes[..., -1:]], axis=-1)
    first = np.concatenate([nodes[..., :1], last[..., :-1] + 1], axis=-1)
    with np.errstate(divide="ignore"):
        return nodes, first, last, np.log(last - first + 1)


def _growing(step: int) -> Integers:
    """Small counts, at odd distances that grow up to a step."""
    distances = [0]
    for distance in range(1, step, 2):
        distances += range(distances[-1] + distance, _TIMES * (distance + 2), distance)
    return np.array(distances)
