"""Counts that each cell of pooled groups may have, and what the noise says of them."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.nodes import nodes_of
from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts further than this from what was drawn, `exp(-DEPTH)` of the noise's largest mass, are
#: left out by default.
DEPTH = 14.0


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
        cls,
        noisy: DrawnCounts,
        start: Integers,
        *,
        largest: Integers | None = None,
        depth: float = DEPTH,
        factorial: bool = True,
    ) -> "CountedCells":
        """Cells with possible counts to begin with, shape `(G, k)`, as deep in the noise's tails;
        up to a `largest` count, with every integer a node, or without the `factorial`.
        """
        every = largest is not None
        nodes, first, last, log_number = nodes_of(noisy, start, depth, largest, every=every)
        log_mass = log_number + noisy.log_mass(nodes, (..., None))
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
