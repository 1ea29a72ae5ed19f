r"""The law of cells' intensities, of which a table of counts is a Poisson draw.

A cell has the intensity `λ = exp(location) γ`: the location is the sum of an origin and the effects
of margins (`margins`), γ is independent of other cells and has the law

    sum_j w_j K_j,    w ~ Dirichlet(4 base).

K_0 is an empty cell of intensity `exp(-7.5)`, `base` .15. The others are normal in ln γ: wide ones
of standard deviation .5, narrow ones of .12, whose shares of `base` follow a logistic density.

On computers ln λ lies on a lattice of step .1, and each of its points stands for a Gamma law of
shape 100, a tenth wide. So a count is negative binomial given the point, and the intensity given
the count and the point is a Gamma law again.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage, special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_negative_binomial
from opendp_bayes.mathematics.validation import Floats, Integers

#: Step of the lattice of ln λ, and shape of the Gamma law at each point, which is as wide.
STEP, SHAPE = 0.1, 100.0
#: The least number of steps by which all components can be shifted to others.
UNIT = 10
#: How far the location may be from the origin, in steps.
REACH = 120
#: The lowest point, that of an empty cell, and its share of `base`; the mass of the prior of w.
_LOWEST, _EMPTY, _MASS = -75, 0.15, 4.0
#: How far a component goes from its centre, in steps.
_HALF = 32
#: Counts up to this have a class each; larger ones share classes that grow by so much.
_DENSE, _GROWTH = 128, 0.02
#: How far apart components may be, in the order of their centres, that divide their weights anew.
_NEIGHBOURS = 6
#: How many components divide their weights anew with the empty one.
_WITH_EMPTY = 30
#: Added to every share: below it a component cannot be told from none, and sums stay above 0.
_LEAST, _TINY = 1e-12, np.float32(1e-37)
#: Products of two masses below this may be no normal number of 32 bits.
_SLOW = 1e-18


@dataclass(frozen=True, eq=False)
class Evidence:
    """Likelihoods of the points of the lattice of ln λ, a row for each kind of cell.

    All are up to a factor `exp(log_top)` of each row: `masses`, shape `(kinds, points)`; `smooth`,
    shape `(kinds, points, 2)`, of wide and of narrow components about each point; and `empty`,
    shape `(kinds,)`, of an empty cell.
    """

    masses: NDArray[np.float32]
    smooth: NDArray[np.float32]
    empty: NDArray[np.float32]
    log_top: NDArray[np.float32]


class IntensityLaw:
    """Intensities on a lattice, the components of their law, and the probabilities of counts.

    Counts fall into classes: one for each small count, then one for every 2 %, with `values`.
    `kernels`, shape `(j, g)`, are the components but the empty one on the lattice of ln γ, of which
    `first` is the first point in steps; `base`, shape `(j + 1,)`, begins with the empty one.

    Parameters
    ----------
    origin : float
        Logarithm of a typical intensity.
    largest : int
        The largest count that is possible.
    """

    def __init__(self, origin: float, largest: int) -> None:
        self.largest = largest
        self.origin = round(origin / STEP)
        lowest = min(-9.0, math.floor(STEP * _LOWEST - origin))
        centres = np.concatenate([np.arange(lowest, 8.01, 0.5), np.arange(-5, 5.01, 0.2)])
        self._wide = centres.size - 51
        self.first, end = round(lowest / STEP) - _HALF, 81 + _HALF
        places = np.rint(centres / STEP).astype(np.int64) - self.first
        shapes = np.exp(-((STEP * np.arange(-_HALF, _HALF + 1) / [[0.5], [0.12]]) ** 2) / 2)
        self._shapes = shapes / shapes.sum(axis=1, keepdims=True)
        narrow = (np.arange(centres.size) >= self._wide).astype(np.int64)
        self.kernels = np.zeros((centres.size, end - self.first))
        about = places[:, None] + np.arange(-_HALF, _HALF + 1)
        np.put_along_axis(self.kernels, about, self._shapes[narrow], axis=1)
        self._places = 2 * places + narrow
        self._by_centre = np.append(0, 1 + np.argsort(centres, kind="stable"))
        density = special.expit(centres) * special.expit(-centres)
        shares = density / np.where(narrow, 51, self._wide)
        self.base = np.concatenate([[_EMPTY], (1 - _EMPTY) * shares / shares.sum()])
        index = np.arange(math.floor(self.place(largest)) + 2)
        self.values = np.where(
            index <= _DENSE, index, _DENSE * np.exp(_GROWTH * np.maximum(index - _DENSE, 0))
        )
        highest = math.ceil(math.log(1.5 * (largest + 5)) / STEP)
        points = np.arange(_LOWEST, highest + 1)
        log_p = log_negative_binomial(self.values[:, None], SHAPE, np.exp(STEP * points))
        self._log_top = log_p.max(axis=1, keepdims=True)
        self._pmf = np.exp(log_p - self._log_top)
        #: Points of the lattice from that of the lowest location and γ on; those beyond the ends
        #: stand for the ends.
        self.points = np.clip(
            np.arange(self.origin - REACH + self.first, self.origin + REACH + end), _LOWEST, highest
        )

    def evidence(self, shares: Floats | None = None) -> Evidence:
        """Likelihoods by the class of a count, or by what has the probability `shares`, shape
        `(kinds, classes)`, given each class.
        """
        masses, log_top = self._pmf, self._log_top
        if shares is not None:
            masses = shares @ (np.exp(log_top) * masses)
            top = masses.max(axis=1, keepdims=True)
            masses, log_top = masses / top, np.log(top)
        masses = _without_tails(masses).astype(np.float32)
        on_points = np.ascontiguousarray(masses[:, self.points - _LOWEST])
        smooth = [ndimage.correlate1d(on_points, shape, mode="constant") for shape in self._shapes]
        log_top = log_top[:, 0].astype(np.float32)
        return Evidence(on_points, np.stack(smooth, axis=-1), masses[:, 0], log_top)

    def of_components(
        self, evidence: Evidence, kinds: Integers, locations: Integers
    ) -> NDArray[np.float32]:
        """Likelihoods of all components for kinds of cells at locations, counted from the lowest;
        shape `(j + 1, kinds)`.
        """
        start = 2 * (kinds * evidence.smooth.shape[1] + locations)
        found = np.take(evidence.smooth.reshape(-1), self._places[:, None] + start)
        return np.concatenate([evidence.empty[None, kinds], found])

    @property
    def gammas(self) -> int:
        """Points of the lattice of ln γ."""
        return self.kernels.shape[1]

    def place(self, counts: ArrayLike) -> Floats:
        """The classes of counts, not rounded."""
        counts = np.asarray(counts, dtype=np.float64)
        if counts.max() <= _DENSE:
            return counts
        beyond = np.log(np.maximum(counts, _DENSE) / _DENSE) / _GROWTH
        return np.minimum(counts, _DENSE) + beyond

    def classes(self, counts: Integers) -> Integers:
        """The nearest classes of counts."""
        return np.rint(self.place(counts)).astype(np.int64)

    def density(self, weights: Floats) -> Floats:
        """Masses of the points of ln γ, without those of empty cells, for weights of shape
        `(..., j + 1)`; shape `(..., g)`.
        """
        return weights[..., 1:] @ self.kernels

    def spread(self, weights: Floats) -> Floats:
        """Standard deviation of ln γ of the cells that are not empty; shape `(...)`."""
        density = self.density(weights)
        density = density / density.sum(axis=-1, keepdims=True)
        ln_gamma = STEP * (self.first + np.arange(self.gammas))
        mean = density @ ln_gamma
        return np.asarray(np.sqrt(density @ ln_gamma**2 - mean**2))

    def log_masses(
        self,
        evidence: Evidence,
        kinds: Integers | slice,
        weights: Floats,
        lowest: int,
        highest: int,
    ) -> NDArray[np.float32]:
        """`ln P(evidence | location)` of some kinds of cells at the locations from `lowest` to
        `highest` steps off the origin; shape `(chains, kinds, locations)`.
        """
        locations, density = highest - lowest + 1, self.density(weights)
        start = lowest + REACH
        part = evidence.masses[kinds, start : start + self.gammas + locations - 1]
        found = np.empty((len(weights), len(part), locations), dtype=np.float32)
        for chain, masses in enumerate(_without_tails(density).astype(np.float32)):
            padded = np.pad(masses, locations - 1)
            windows = np.lib.stride_tricks.sliding_window_view(padded, locations)[:, ::-1]
            found[chain] = part @ windows
            found[chain] += np.float32(weights[chain, 0]) * evidence.empty[kinds, None]
        np.log(found + _TINY, out=found)
        found += evidence.log_top[kinds, None]
        return found

    def prior_weights(self, chains: int, rng: np.random.Generator) -> Floats:
        """Weights drawn from their prior, shape `(chains, j + 1)`."""
        return self.weights_given(np.zeros((chains, self.base.size)), rng)

    def weights_given(self, cells: Floats | Integers, rng: np.random.Generator) -> Floats:
        """Weights drawn given how many cells each component has, shape `(chains, j + 1)`."""
        drawn = rng.standard_gamma(_MASS * self.base + cells)
        drawn = drawn / drawn.sum(axis=1, keepdims=True) + _LEAST
        return drawn / drawn.sum(axis=1, keepdims=True)

    def log_prior(self, cells: Integers) -> Floats:
        """`ln P`, up to a constant, that each cell is of its component, where these have so many
        cells, shape `(chains, j + 1)`, and any weights; shape `(chains,)`.
        """
        return np.asarray(special.gammaln(_MASS * self.base + cells).sum(axis=1))

    def shifted(self, cells: Integers, units: int) -> Integers:
        """Shift all components but the empty one by so many `UNIT`: how many cells each has then.
        Cells are lost whose components leave the grid.
        """
        found = np.zeros_like(cells)
        found[:, 0] = cells[:, 0]
        wide, narrow = (1, 1 + self._wide), (1 + self._wide, self.base.size)
        for (first, last), step in ((wide, 2 * units), (narrow, 5 * units)):
            start, end = max(first, first + step), min(last, last + step)
            found[:, start:end] = cells[:, start - step : end - step]
        return found

    def pairs(self, rng: np.random.Generator) -> Integers:
        """The empty component with some others, and pairs near each other, in a random order;
        shape `(pairs, 2)`.
        """
        others = 1 + rng.permutation(self.base.size - 1)[:_WITH_EMPTY]
        apart = int(rng.integers(1, _NEIGHBOURS + 1))
        at = rng.permutation(self.base.size - apart)
        near = self._by_centre[at[:, None] + [0, apart]]
        return np.concatenate([np.column_stack([np.zeros_like(others), others]), near])

    def shares(self, pairs: Integers, number: int, rng: np.random.Generator) -> Floats:
        """The part that the first of each pair of components has of what both have together, under
        their prior, shape `(pairs, number)`.
        """
        a = _MASS * self.base[pairs, None]
        return rng.beta(a[:, 0], a[:, 1], (len(pairs), number))


def _without_tails(masses: Floats) -> Floats:
    """Masses with zeros for those so small that processors are slow with them."""
    return np.where(masses < _SLOW, 0.0, masses)
