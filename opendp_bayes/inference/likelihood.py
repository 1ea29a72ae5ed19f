r"""The probability of a release as a function of the counts that it was made from, up to a factor
that does not depend on them.

Nothing here needs to be private or exact to the last digit: the release is already public. Where a
sum over all candidates would take too long it is taken over cells (`inference.cells`), and smooth
functions of the counts are interpolated; `docs/posterior.md` states the error and the tests measure
it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import Akima1DInterpolator, RBFInterpolator
from scipy.special import logsumexp

from opendp_bayes.inference.cells import graded_edges
from opendp_bayes.mathematics.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.simplex import candidate_sums, candidates, number_of_candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms import (
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    PermuteAndFlip,
)
from opendp_bayes.mechanisms.exponential import PosteriorExponential

#: Data sets of three or more categories up to which they are listed for an exponential mechanism,
#: and those of them at which its width and normaliser are computed, chosen out of a pool.
LARGEST_LIST, _SPREAD_NODES, _POOL = 200_000, 500, 20_000
#: Data sets up to which the `log_pmf` of a mechanism from a plugin is called for each.
_LARGEST_CALLS = 2_000
#: The largest scale of noise on the counts, which keeps sums of noised counts within the integers
#: of numpy.
_LARGEST_SCALE = 1e12
#: Data sets at which the normaliser of an exponential mechanism on two categories is computed; it
#: is interpolated between them.
_NODES = 32
_MOST_NODES = 200
#: Powers of the coins of permute-and-flip that are summed, the logarithm of a sum that counts as 0,
#: and the quadrature of its law, whose integrand is at most `exp(-S_1 t)`.
_POWERS, _NO_COINS = np.arange(1, 9), -40.0
_REACH, _FLIP_NODES = 40.0, 40
#: The error of an interpolated `ln w` that is accepted.
_WIDTH_ERROR = 1e-3


@dataclass(frozen=True, eq=False)
class IndependentNoise:
    """`prod_i f_i(x_i)`, `f_i` the probability that count `x_i` with Laplace noise of `scale`,
    clamped to `[0, upper]`, is `released_i`.

    `known` says which categories were noised; the others have `f_i = 1`. `upper` is None without a
    clamp from above.
    """

    released: Integers
    scale: float
    known: tuple[bool, ...]
    floored: bool = False
    upper: int | None = None

    def log_factor(self, category: int, counts: Integers) -> Floats:
        """`ln f_i(counts)` up to a constant, elementwise."""
        if not self.known[category]:
            return np.zeros(np.shape(counts))
        value = int(self.released[category])
        step = np.asarray(value - counts, dtype=np.float64)
        if not self.floored:
            return (
                -np.abs(step) / self.scale
            )  # also at the clamps: the sum of a geometric tail is proportional to its first term
        # floor(L) has the probability (1 - q) q^m / 2 with m = t or -1 - t, and each tail is q^m /
        # 2 of its own first m.
        if value == 0:
            below = np.where(
                np.asarray(counts) > 0,
                np.log(0.5) + (step + 1) / self.scale,
                np.log1p(-np.exp(-1 / self.scale) / 2),
            )
            return below if self.upper != 0 else np.zeros(below.shape)
        return -np.where(step >= 0, step, -step - 1) / self.scale

    def log_likelihood(self, counts: Integers) -> Floats:
        """Sum of the factors of every row of `counts`, shape `(m, k)`; shape `(m,)`."""
        return np.asarray(sum(self.log_factor(i, counts[:, i]) for i in range(self.released.size)))


@dataclass(frozen=True, eq=False)
class ProjectedNoise:
    """K-norm noise whose result had to be moved to the nearest counts: some released count is 0,
    and what it was before is not known.

    `exp(-sum_i |v_i - x_i| / scale)` summed over the noised counts `v` that lead to `released`.
    """

    released: Integers
    scale: float


@dataclass(frozen=True, eq=False)
class ExponentialWeights:
    """`exp(-H(posterior(x), released) / w(x)) / Z(x)`, of which the normaliser `Z(x)` is a sum over
    all candidates.
    """

    mechanism: PosteriorExponential
    released: Integers
    prior: Floats

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.released.sum())

    def log_likelihood(self, counts: Integers) -> Floats:
        """Of every row of `counts`, shape `(m, k)`; for two categories, or as few data sets as can
        be listed.
        """
        key = self.mechanism, self.size, tuple(self.prior.tolist())
        if self.prior.size == 2:
            log_width, log_normaliser = (
                curve(_position(counts[:, 0], self.size)) for curve in _curves(*key)
            )
        else:
            log_width, log_normaliser = (table[ranks(counts, self.size)] for table in _tables(*key))
        return -self.distances(counts, self.released) * np.exp(-log_width) - log_normaliser

    def distances(self, counts: Integers, other: Integers) -> Floats:
        """Hellinger distances between posteriors, shape `(m,)`."""
        return _distances(counts, other, self.prior)


@dataclass(frozen=True, eq=False)
class Flips:
    """Permute-and-flip: `p_r` times the integral over t from 0 to 1 of `prod_{s != r} (1 - t p_s)`,
    `p_s = exp(-H(posterior(x), s) / scale)`.

    The product over the candidates other than x and r is written with power sums of their coins,
    `ln prod (1 - t p_s) = -sum_m t^m S_m / m`.
    """

    mechanism: PermuteAndFlip
    released: Integers
    prior: Floats

    def log_likelihood(self, counts: Integers) -> Floats:
        """Of every row of `counts`, shape `(m, k)`; for two categories, or as few data sets as can
        be listed.
        """
        size, key = int(self.released.sum()), tuple(self.prior.tolist())
        log_sums = (
            _coin_curves(self.mechanism, size, key)(_position(counts[:, 0], size))
            if self.prior.size == 2
            else (_coin_tables(self.mechanism, size, key)[ranks(counts, size)])
        )
        sums, exponents = (
            np.exp(log_sums),
            _distances(counts, self.released, self.prior) / self.mechanism.scale,
        )
        coins = np.exp(-exponents)
        reach = np.minimum(1.0, _REACH / np.maximum(sums[:, 0], 1.0))
        points, weights = np.polynomial.legendre.leggauss(_FLIP_NODES)
        integral = np.zeros(len(counts))
        for t, weight in zip(
            np.multiply.outer((points + 1) / 2, reach),
            np.multiply.outer(weights / 2, reach),
            strict=True,
        ):
            log_product = np.log1p(-t) - (sums * t[:, None] ** _POWERS / _POWERS).sum(axis=1)
            integral += weight * np.exp(log_product) / (1 - t * coins)
        return np.log(integral) - exponents


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A likelihood that the mechanism computes itself, for rows of counts of shape `(m, k)`."""

    released: Integers
    log_likelihood: Callable[[Integers], Floats]


Likelihood = IndependentNoise | ProjectedNoise | ExponentialWeights | Flips | Tabulated


@singledispatch
def likelihood_of(
    mechanism: Any, released: Integers, prior: Floats, size: int | None
) -> Likelihood:
    """The likelihood of `released`, shape `(k,)`, under a mechanism.

    One from a plugin may have a method `log_likelihood(released, counts, prior)`: the
    log-probability of `released` given each row of `counts`, shape `(m, k)`, up to a constant
    common to all rows. Otherwise its `log_pmf` is called for every data set, of which there may be
    2000. Raises `ValueError` where neither is possible.
    """
    if hasattr(mechanism, "log_likelihood"):

        def of_plugin(counts: Integers) -> Floats:
            result = np.asarray(mechanism.log_likelihood(released, counts, prior), dtype=np.float64)
            if result.shape != (len(counts),) or not np.all(result < np.inf):
                raise ValueError(
                    f"mechanism={mechanism.name!r}: its log_likelihood returned nan, inf or the"
                    f" shape {result.shape} for {len(counts)} rows of counts; it must return one"
                    " number below inf for each."
                )
            return result

        return Tabulated(released, of_plugin)
    if size is None or number_of_candidates(size, released.size) > _LARGEST_CALLS:
        number = (
            "infinitely many"
            if size is None
            else f"{number_of_candidates(size, released.size):.3g}"
        )
        raise ValueError(
            f"mechanism={mechanism.name!r}: its log_pmf would be called for {number} data sets, at"
            f" most {_LARGEST_CALLS}. Give the mechanism a method log_likelihood(released, counts,"
            " prior), for counts of shape (m, k) (docs: Noise-aware posterior)."
        )

    def log_likelihood(counts: Integers) -> Floats:
        result = np.empty(len(counts))
        for row, data in enumerate(counts):
            support, log_p = mechanism.log_pmf(data, prior)
            result[row] = logsumexp(log_p[(support == released).all(axis=1)])
        return result

    return Tabulated(released, log_likelihood)


@likelihood_of.register
def _(
    mechanism: LaplaceParameters, released: Integers, prior: Floats, size: int | None
) -> Likelihood:
    _check_scale(mechanism.scale)
    known = tuple(i < prior.size - 1 or mechanism.total != "remainder" for i in range(prior.size))
    upper = None if mechanism.total == "private" else size
    return IndependentNoise(released, mechanism.scale, known, mechanism.noise == "floored", upper)


@likelihood_of.register
def _(
    mechanism: KNormParameters, released: Integers, prior: Floats, size: int | None
) -> Likelihood:
    _check_scale(mechanism.scale)
    if prior.size == 2:
        return IndependentNoise(released, mechanism.scale, (True, False))
    _check_total(released, size)
    if released.all():
        return IndependentNoise(released, 2 * mechanism.scale, (True,) * prior.size)
    return ProjectedNoise(released, 2 * mechanism.scale)


@likelihood_of.register
def _(
    mechanism: PosteriorExponential, released: Integers, prior: Floats, size: int | None
) -> Likelihood:
    _check_total(released, size)
    return ExponentialWeights(mechanism, released, prior)


@likelihood_of.register
def _(mechanism: PermuteAndFlip, released: Integers, prior: Floats, size: int | None) -> Likelihood:
    _check_total(released, size)
    if prior.size > 2 and number_of_candidates(int(released.sum()), prior.size) > LARGEST_LIST:
        # So many coins that all products are exponentials: their sum is what matters, as for the
        # exponential mechanism.
        return ExponentialWeights(HellingerExponential(mechanism.scale), released, prior)
    return Flips(mechanism, released, prior)


def _check_scale(scale: float) -> None:
    if scale > _LARGEST_SCALE:
        raise ValueError(
            f"scale={scale!r}: must be at most {_LARGEST_SCALE:.0e} records; noise of a larger"
            " scale leaves nothing to learn from a release."
        )


def _check_total(released: Integers, size: int | None) -> None:
    if released.sum() != size:
        raise ValueError(
            f"counts={released.tolist()}: must sum to size={size}, which this mechanism keeps."
        )


def _distances(counts: Integers, other: Integers, prior: Floats) -> Floats:
    gaps = gap_above(prior + np.minimum(counts, other), np.abs(counts - other) / 2)
    return distance_from_divergence(gaps.sum(axis=-1))


def _position(count: Integers, size: int) -> Floats:
    """The coordinate in which the width and the normaliser are smooth: log odds."""
    return np.log((count + 1.0) / (size - count + 1.0))


@lru_cache(maxsize=64)
def _curves(
    mechanism: PosteriorExponential, size: int, prior: tuple[float, ...]
) -> tuple[Akima1DInterpolator, Akima1DInterpolator]:
    """`ln w` and `ln Z` for two categories, as functions of `_position`.

    Nodes are evenly spaced in that coordinate. A smooth sensitivity has kinks, so an interval is
    halved where the curve misses `ln w` in its middle.
    """
    alpha = np.array(prior)

    def log_widths_at(counts: Integers) -> Floats:
        return np.log(mechanism._widths_at(np.column_stack([counts, size - counts]), alpha))

    nodes = _counts_at(np.linspace(-math.log(size + 1), math.log(size + 1), _NODES), size)
    log_widths = log_widths_at(nodes)
    unsure = nodes  # beginnings of intervals not yet known to be good
    while unsure.size and nodes.size < _MOST_NODES:
        place = _position(np.append(nodes, size), size)
        begin = np.searchsorted(nodes, unsure)
        middles = np.setdiff1d(_counts_at((place[begin] + place[begin + 1]) / 2, size), nodes)
        if not middles.size:
            break
        there = log_widths_at(middles)
        bad = middles[
            np.abs(Akima1DInterpolator(place[:-1], log_widths)(_position(middles, size)) - there)
            > _WIDTH_ERROR
        ]
        unsure = np.union1d(nodes[np.searchsorted(nodes, bad) - 1], bad)
        nodes, log_widths = np.append(nodes, middles), np.append(log_widths, there)
        order = np.argsort(nodes)
        nodes, log_widths = nodes[order], log_widths[order]
    log_normalisers = []
    for count, width in zip(nodes.tolist(), np.exp(log_widths).tolist(), strict=True):
        _, lengths, distances = _cells_around(count, size, alpha)
        log_normalisers.append(float(logsumexp(-distances / width, b=lengths)))
    place = _position(nodes, size)
    return Akima1DInterpolator(place, log_widths), Akima1DInterpolator(place, log_normalisers)


@lru_cache(maxsize=64)
def _coin_curves(
    mechanism: PermuteAndFlip, size: int, prior: tuple[float, ...]
) -> Akima1DInterpolator:
    """`ln S_m` of the coins of all candidates but x, for two categories, as a function of
    `_position`; shape `(..., len(_POWERS))`.
    """
    nodes = _counts_at(np.linspace(-math.log(size + 1), math.log(size + 1), _MOST_NODES), size)
    values = []
    for count in nodes.tolist():
        centres, lengths, distances = _cells_around(count, size, np.array(prior))
        others = np.where(centres == count, 0, lengths)
        values.append(
            logsumexp(-np.multiply.outer(_POWERS, distances) / mechanism.scale, b=others, axis=1)
        )
    return Akima1DInterpolator(_position(nodes, size), np.maximum(values, _NO_COINS))


def _cells_around(count: int, size: int, prior: Floats) -> tuple[Integers, Integers, Floats]:
    """All counts of the first of two categories in cells: their middles, their lengths, and the
    Hellinger distances of these from `count`.
    """
    edges = graded_edges(size, around=[count])
    lengths = np.diff(edges)
    centres = edges[:-1] + (lengths - 1) // 2
    distances = _distances(
        np.column_stack([centres, size - centres]), np.array([count, size - count]), prior
    )
    return centres, lengths, distances


@lru_cache(maxsize=8)
def _coin_tables(mechanism: PermuteAndFlip, size: int, prior: tuple[float, ...]) -> Floats:
    """The same of every data set of three or more categories, in lexicographic order."""

    def log_sums(counts: Integers, distances: Floats) -> Floats:
        coins = np.exp(-distances / mechanism.scale)
        coins[ranks(counts[None], size)] = 0
        power, sums = coins.copy(), []
        for _ in _POWERS:
            sums.append(power.sum())
            power *= coins
        return np.log(np.maximum(sums, math.exp(_NO_COINS)))

    return _tabulated(size, np.array(prior), log_sums)


def _counts_at(position: Floats, size: int) -> Integers:
    """The whole numbers nearest to the counts at the positions, without repetition."""
    odds = np.exp(position)
    return np.unique(np.rint((size * odds + odds - 1) / (1 + odds))).astype(np.int64)


@lru_cache(maxsize=8)
def _tables(
    mechanism: PosteriorExponential, size: int, prior: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """`ln w` and `ln Z` of every data set, in lexicographic order."""
    alpha = np.array(prior)

    def of(counts: Integers, distances: Floats) -> tuple[float, float]:
        width = mechanism._width(counts, alpha)
        return math.log(width), float(logsumexp(-distances / width))

    values = _tabulated(size, alpha, of)
    return values[:, 0], values[:, 1]


def _tabulated(size: int, prior: Floats, of: Callable[[Integers, Floats], ArrayLike]) -> Floats:
    """Functions of the counts and of the distances of all candidates from them, at every data set,
    in lexicographic order; shape `(data sets, ...)`.

    Computed for `_SPREAD_NODES` of them, or all if there are no more, with a thin-plate spline in
    between.
    """
    data, split = candidates(size, prior.size), np.arange(size + 1)
    tables = [
        gap_above(a + np.minimum.outer(split, split), np.abs(np.subtract.outer(split, split)) / 2)
        for a in prior
    ]
    place: Floats = (
        np.asarray(data + 0.5, dtype=np.float64) ** 0.25
    )  # spreads small counts out, where the functions bend
    nodes = np.arange(len(data)) if len(data) <= _SPREAD_NODES else _far_apart(place)
    sums = (
        candidate_sums([table[count] for table, count in zip(tables, row, strict=True)])
        for row in data[nodes]
    )
    values = np.array(
        [
            of(row, distance_from_divergence(gaps))
            for row, gaps in zip(data[nodes], sums, strict=True)
        ]
    )
    return (
        values
        if nodes.size == len(data)
        else RBFInterpolator(place[nodes], values, kernel="thin_plate_spline")(place)
    )


def _far_apart(place: Floats) -> Integers:
    """Indices of `_SPREAD_NODES` points: the extreme ones, then always the one furthest from all
    before, among as many as `_POOL`.
    """
    pool = np.unique(np.linspace(0, len(place) - 1, _POOL).astype(np.int64))
    pool = np.union1d(pool, place.argmax(axis=0))
    chosen = np.searchsorted(pool, place.argmax(axis=0)).tolist()
    nearest = np.min([((place[pool] - place[pool[c]]) ** 2).sum(axis=1) for c in chosen], axis=0)
    while len(chosen) < _SPREAD_NODES:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, ((place[pool] - place[pool[chosen[-1]]]) ** 2).sum(axis=1))
    return np.sort(pool[chosen])
