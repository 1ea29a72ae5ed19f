"""Tables of the true counts of keys given their noisy counts, a row for each noisy count."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import picked
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.unlisted.posterior.law_of_keys import Lattice

#: Rows of one block have noisy counts this close, or within a part of the width of the noise; and
#: shares of probability that draws leave out.
_BLOCK, _PART, _UNLIKELY = 8, 16, 1e-14


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows whose noisy counts are near each other.

    Attributes
    ----------
    rows : slice
        Their places.
    lowest : int
        The first of the true counts.
    density : ndarray
        Of the true counts before any is seen, for each law of keys, shape `(draws, n)`.
    noise : ndarray
        The probability of the noisy count of each row given each true count, shape `(n, rows)`.
    """

    rows: slice
    lowest: int
    density: Floats
    noise: Floats

    @property
    def counts(self) -> Floats:
        """The true counts, shape `(n, 1)`."""
        return self.lowest + np.arange(float(len(self.noise)))[:, None]

    @cached_property
    def masses(self) -> Floats:
        """Posterior masses of the true counts, shape `(n, rows)`."""
        evidence = self.density @ self.noise
        return np.asarray(self.noise * (self.density.T @ (1 / evidence)) / len(evidence))

    @property
    def means(self) -> Floats:
        """Expected true counts given each law of keys, shape `(draws, rows)`."""
        expected = self.density @ (self.noise * self.counts)
        return np.asarray(expected / (self.density @ self.noise))

    def drawn(self, law: int, row: Integers, level: Floats) -> Integers:
        """True counts of some rows by one law of keys, at levels of shape `(..., rows)`."""
        likely = self._likely
        masses = self.density[law, likely] * self.noise[likely].T
        return np.asarray(self.lowest + likely.start + picked(masses, row, level))

    @cached_property
    def _likely(self) -> slice:
        """The true counts that draws do not leave out."""
        masses = self.density.mean(axis=0)[:, None] * self.noise
        seen = np.flatnonzero((masses > _UNLIKELY * masses.sum(axis=0)).any(axis=1))
        return slice(int(seen[0]), int(seen[-1]) + 1)

    @property
    def flat_means(self) -> Floats:
        """Expected true counts, of at least 1, under a flat prior, shape `(rows,)`."""
        flat = np.where(self.counts >= 1, self.noise, 0.0)
        return np.asarray((self.counts * flat).sum(axis=0) / flat.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct noisy counts, and what their true counts may be.

    Attributes
    ----------
    noisy : ndarray of int
        The noisy counts in units of a lattice, ascending.
    first : int
        The place of the first row among all.
    lowest : int
        The first of the true counts.
    density : ndarray
        Of true counts before any is seen, for each law of keys, shape `(draws, n)`.
    lattice : Lattice
        Of the noise.
    """

    noisy: Integers
    first: int
    lowest: int
    density: Floats
    lattice: Lattice

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks of noisy counts near each other."""
        masses, lattice = self.lattice.masses, self.lattice
        span, low = max(_BLOCK, masses.size // _PART), 0
        while low < self.noisy.size:
            high = int(np.searchsorted(self.noisy, self.noisy[low] + span))
            noisy = self.noisy[low:high]
            least = max(int(noisy[0]) - lattice.last, self.lowest)
            most = int(noisy[-1]) - lattice.first
            places = noisy - np.arange(least, most + 1)[:, None] - lattice.first
            inside = (places >= 0) & (places < masses.size)
            noise = np.where(inside, masses[np.clip(places, 0, masses.size - 1)], 0.0)
            density = self.density[:, least - self.lowest : most + 1 - self.lowest]
            yield Block(slice(self.first + low, self.first + high), least, density, noise)
            low = high
