"""Counts that each cell of pooled groups may have, and what the noise says of them."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Counts further than this from what was drawn, `exp(-_DEPTH)` of the noise's largest mass, are
#: left out. So many places stand for the scale of the noise, where it is wider.
_DEPTH, _PLACES = 14.0, 5
#: How many times as large as their distance small counts are at least; and how many deviations
#: about a count that was not noised, but follows from a public sum, are looked at.
_TIMES, _DEVIATIONS = 16, 6.0


@dataclass(frozen=True, eq=False)
class CountedCells:
    """Counts of cells, `(G, k)` of them: `nodes`, shape `(G, k, m)`, each of which stands for the
    integers from `first` to `last`, if any.

    `log_mass` is the logarithm of what these have of `P(drawn | x) / x!`. `values` of each category
    are all of its nodes, and `places`, shape `(G, m)`, where they are among them.
    """

    nodes: Integers
    first: Integers
    last: Integers
    log_mass: Floats
    values: list[Integers]
    places: list[Integers]

    @classmethod
    def of(
        cls, noisy: DrawnCounts, start: Integers, *, every: bool = False, factorial: bool = True
    ) -> "CountedCells":
        """Cells with possible counts to begin with, shape `(G, k)`; with `every` integer a node, or
        without the `factorial`.
        """
        scale, reach = noisy.noise.scale, noisy.noise.reach(_DEPTH)
        step = (
            1 if every else 2 * int(scale / _PLACES / 2) + 1
        )  # odd, so that nodes are in the middle
        of_sum = _DEVIATIONS * typical_std(noisy.noise) * np.sqrt(noisy.drawn.size)
        steps = np.where(noisy.noised, step, np.ceil(step * max(1, of_sum / reach)).astype(int))
        drawn = np.where(noisy.noised, noisy.drawn, start)
        low = np.maximum(np.minimum(drawn, start) - reach * steps // step, 0)
        high = np.maximum(drawn, start) + reach * steps // step
        begin = np.maximum(drawn - (drawn - low) // steps * steps, low)  # the kink is a node
        number = int(((high - low) // steps).max()) + 2
        nodes = begin[..., None] + steps[..., None] * np.arange(number)
        if steps.max() > 1:
            small = np.maximum(_growing(int(steps.max())), low[..., None])
            nodes = np.sort(np.concatenate([nodes, small], axis=-1), axis=-1)
        last = np.concatenate([(nodes[..., 1:] + nodes[..., :-1]) // 2, nodes[..., -1:]], axis=-1)
        first = np.concatenate([nodes[..., :1], last[..., :-1] + 1], axis=-1)
        number = last - first + 1
        log_mass = noisy.log_mass(nodes, (slice(None), slice(None), None))
        log_mass = np.where(number > 0, log_mass + np.log(np.maximum(number, 1)), -np.inf)
        if not factorial:
            log_mass = log_mass + special.gammaln(nodes + 1.0)
        return cls._of(nodes, first, last, log_mass)

    @classmethod
    def single(cls, noisy: DrawnCounts, counts: Integers) -> "CountedCells":
        """Cells with such counts, each of which stands for itself; those below 0 are impossible."""
        known = np.maximum(counts, 0)
        log_mass = noisy.log_mass(known, (slice(None), slice(None), None))
        return cls._of(known, counts, counts, np.where(counts >= 0, log_mass, -np.inf))

    @classmethod
    def _of(
        cls, nodes: Integers, first: Integers, last: Integers, log_mass: Floats
    ) -> "CountedCells":
        found = [np.unique(each, return_inverse=True) for each in nodes.swapaxes(0, 1)]
        values, places = zip(*found, strict=True)
        places = [at.reshape(nodes[:, 0].shape) for at in places]
        log_mass = log_mass - special.gammaln(nodes + 1.0)
        return cls(nodes, first, last, log_mass, list(values), places)

    def integers(self, nodes: Integers, rng: np.random.Generator) -> Integers:
        """Counts drawn among those that nodes stand for, given the nodes' places, `(G, k)`."""
        first, last = (
            np.take_along_axis(ends, nodes[..., None], axis=-1)[..., 0]
            for ends in (self.first, self.last)
        )
        return rng.integers(first, last + 1)

    def log_weights(self, a: Floats) -> Floats:
        """`ln P(drawn | x) Γ(x + a) / Γ(a) x!` of the nodes, for κ m of shape `(k,)`."""
        found = self.log_mass.copy()
        for j, (values, places) in enumerate(zip(self.values, self.places, strict=True)):
            found[:, j] += log_rising_factorial(a[j], values)[places]
        return found


def _growing(step: int) -> Integers:
    """Small counts, at odd distances that grow up to a step."""
    found = [0]
    for distance in range(1, step, 2):
        found += range(found[-1] + distance, _TIMES * (distance + 2), distance)
    return np.array(found)
