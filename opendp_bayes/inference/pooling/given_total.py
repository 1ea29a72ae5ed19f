"""Counts of pooled groups whose number of all records is public.

Given q, counts are independent, and their sum has nearly a Gamma law. So groups and categories are
drawn one after another, each with the Gamma law of what remains, or a normal one where some records
may be in no group and nothing was drawn of those; weights say by how much that differs from the
exact law.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.counted_cells import CountedCells
from opendp_bayes.inference.pooling.size_mixtures import (
    Mixture,
    SizeMixtures,
    powers_of_factor,
    tilted,
)
from opendp_bayes.mathematics.validation import Floats, Integers

#: A variance of whole numbers is at least that of what rounds them.
_ROUNDING = 1 / 12
#: Below every logarithm of a probability that matters.
_IMPOSSIBLE = -1e30
#: Steps to the tilt of counts, and the longest.
_STEPS, _LONGEST = 12, 1.0
#: Numbers of weights of counts that are kept at once.
_BLOCK = 1 << 22


class GivenTotal:
    """Groups whose number of all records is public, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`, one of which may not have been noised.
    start : ndarray of int
        Counts with the public sum.
    total : int
        The number of all records.
    rest : tuple[DrawnCounts, int] or None
        What was drawn for those in no group, and a possible number of them; None where there are
        none.
    a : ndarray
        Typical concentrations κ m, shape `(k,)`, at which counts are tilted to the public sum.
    """

    def __init__(
        self,
        noisy: DrawnCounts,
        start: Integers,
        total: int,
        rest: tuple[DrawnCounts, int] | None,
        a: Floats,
    ) -> None:
        # What was not noised is left over in the end.
        self._groups = np.argsort(~noisy.noised.all(axis=1), kind="stable")
        self._categories = np.argsort(~noisy.noised.all(axis=0), kind="stable")
        order = np.ix_(self._groups, self._categories)
        self._mixtures = SizeMixtures(noisy.chosen(order), start[order])
        self._total, known, free = total, None, False
        if rest is not None:
            drawn, free = rest[0].chosen((None, None)), not rest[0].noised
            known = None if free else CountedCells.of(drawn, np.array([[rest[1]]]), factorial=False)
        self._left_out = Remainder(0.0, known, bool(free))
        for _ in range(_STEPS):
            mean, variance = self._sums(self._mixture(a))[1:]
            step = (total - mean) / max(variance, _ROUNDING)
            if free:  # there may be fewer
                step = min(step, -self._left_out.tilt)
            step = float(np.clip(step, -_LONGEST, _LONGEST))
            self._left_out = replace(self._left_out, tilt=self._left_out.tilt + step)
            if step**2 * variance < 0.01:
                break

    def terms(self, a: Floats) -> Floats:
        """Log-probabilities of what was drawn of every group for κ m of shape `(k,)`, and that all
        records are so many, nearly.
        """
        of_groups, mean, variance = self._sums(self._mixture(a))
        return np.append(of_groups, self._left_out.log_mass(self._total, mean, variance))

    def counts(self, a: Floats, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Counts drawn for several κ m, shape `(draws, k)`, and the logarithms of their weights."""
        cells, counts, log_weights = self._mixtures.cells, [], []
        block = max(1, _BLOCK // cells.nodes.size)
        for at in range(0, len(a), block):
            different, place = np.unique(a[at : at + block], axis=0, return_inverse=True)
            mixtures = [self._mixture(each) for each in different]
            walk = _Walk(
                [mixtures[each] for each in place.ravel()], cells, self._total, self._left_out, rng
            )
            counts.append(np.stack([walk.group(each) for each in range(len(cells.nodes))], axis=1))
            log_weights.append(
                walk.log_weight + self._left_out.log_mass_of_rest(walk.left[:, None])[:, 0]
            )
        found = np.empty((len(a), *cells.nodes.shape[:2]), dtype=np.int64)
        found[:, self._groups[:, None], self._categories] = np.concatenate(counts)
        return found, np.concatenate(log_weights)

    def _mixture(self, a: Floats) -> Mixture:
        return self._mixtures.mixture(a[self._categories], self._left_out.tilt)

    def _sums(self, mixture: Mixture) -> tuple[Floats, float, float]:
        """Log-probabilities of what was drawn of every group, and mean and variance of all records
        and those in no group.
        """
        of_groups, means, variances = mixture.of_groups()
        mean, variance = self._left_out.of_rest()
        return of_groups, mean + float(means.sum()), variance + float(variances.sum())


@dataclass(frozen=True, eq=False)
class Remainder:
    """The rest of a public number of all records, for those that are yet to be drawn.

    Attributes
    ----------
    tilt : float
        All counts weigh `exp(tilt x)` times as much.
    rest : CountedCells or None
        The cell of the records in no group; None where there are none, or where nothing was drawn
        of it.
    free : bool
        True where any number of records may be in no group.
    """

    tilt: float
    rest: CountedCells | None
    free: bool

    def log_mass(self, left: Any, mean: Any, variance: Any) -> Floats:
        """Log-probability that so many records are `left`, from the moments of what is to come;
        where some may be in no group, that no more come, weighted by the tilt of those.
        """
        variance = np.maximum(variance, _ROUNDING)
        if not self.free:
            mean = mean + 0.5
            shape, times = mean**2 / variance, np.maximum(left + 0.5, _ROUNDING) / mean
            log_p = shape * (np.log(times) - times) - np.log(times * mean)
            log_p += shape * np.log(shape) - special.gammaln(shape)
            return np.where(left < 0, _IMPOSSIBLE, log_p)
        lower = mean - self.tilt * variance
        of_tilt = self.tilt * (left - (mean + lower) / 2)
        return np.asarray(of_tilt + special.log_ndtr((left + 0.5 - lower) / np.sqrt(variance)))

    def of_rest(self) -> tuple[float, float]:
        """Mean and variance of the number of records in no group, where some were drawn."""
        if self.rest is None:
            return 0.0, 0.0
        law = self._law(self.rest)
        return float(law.mean[0, 0]), float(law.variance[0, 0])

    def log_mass_of_rest(self, left: Integers) -> Floats:
        """Log-probability that so many records are in no group, shape `(draws, ...)`."""
        if self.free:
            return np.where(left >= 0, self.tilt * left, -np.inf)
        if self.rest is None:
            return np.zeros(left.shape)
        law = self._law(self.rest)
        law.log_p = np.broadcast_to(law.log_p, (len(left), *law.log_p.shape[1:]))
        return law.log_mass(left, 0)

    def _law(self, rest: CountedCells) -> "_Law":
        return _Law((rest.log_mass[0] + self.tilt * rest.nodes[0])[None], rest, 0)

    @property
    def takes_all(self) -> bool:
        """True where all records are in groups."""
        return not self.free and self.rest is None


class _Law:
    """Laws of the counts of one group in several draws: logarithms of the probabilities of nodes,
    `(draws, k, m)`, given up to a factor; means and variances, `(draws, k)`.
    """

    def __init__(self, log_p: Floats, cells: CountedCells, group: int) -> None:
        top = log_p.max(axis=-1, keepdims=True)
        p = np.exp(log_p - top)
        x, self.first, self.last = (of[group] for of in (cells.nodes, cells.first, cells.last))
        moments = (p[..., None, :] @ np.stack([x**power for power in range(3)], axis=-1))[..., 0, :]
        log_sum = np.log(moments[..., 0]) + top[..., 0]
        self.mean = moments[..., 1] / moments[..., 0]
        self.variance = moments[..., 2] / moments[..., 0] - self.mean**2
        self.log_p = log_p - log_sum[..., None]

    def log_mass(self, count: Integers, j: int) -> Floats:
        """Log-probability of counts of category j, shape `(draws, ...)`."""
        first, last = self.first[j], self.last[j]
        at = np.minimum(np.searchsorted(last, count), last.size - 1)
        inside = (first[at] <= count) & (count <= last[at])
        log_p = np.take_along_axis(self.log_p[:, j], at, axis=1)
        return np.where(inside, log_p - np.log(np.maximum(last[at] - first[at] + 1, 1)), -np.inf)


class _Walk:
    """Counts of several draws, group after group, until all records are distributed.

    Attributes
    ----------
    left
        Records that are yet to be drawn, shape `(draws,)`.
    log_weight
        Logarithm of the exact law of what was drawn divided by that of these draws.
    """

    def __init__(
        self,
        mixtures: Sequence[Mixture],
        cells: CountedCells,
        total: int,
        left_out: Remainder,
        rng: np.random.Generator,
    ) -> None:
        self._cells, self._left_out, self._rng = cells, left_out, rng
        self._kappa = np.array([each.kappa for each in mixtures])
        self._log_weights, self._log_q, self._log_mass, self._means, self._variances = (
            np.stack([getattr(each, name) for each in mixtures])
            for name in ("log_weights", "log_q", "log_mass", "means", "variances")
        )
        self._sizes, self._spreads = (
            np.stack([getattr(each, name) for each in mixtures]) for name in ("sizes", "spreads")
        )
        of_groups = np.stack([each.of_groups() for each in mixtures])
        self._log_mass -= of_groups[:, 0, :, None]
        coming = np.concatenate([of_groups[:, 1:], np.zeros((len(mixtures), 2, 1))], axis=2)
        coming[:, :, -1] = left_out.of_rest()
        #: Means and variances of all that comes from each group on, shape `(draws, 2, G + 1)`.
        self._coming = np.cumsum(coming[:, :, ::-1], axis=2)[:, :, ::-1]
        self.left = np.full(len(mixtures), total)
        self.log_weight = -left_out.log_mass(self.left, *self._coming[:, :, 0].T)

    def group(self, group: int) -> Integers:
        """Counts of the next group, shape `(draws, k)`."""
        draws = np.arange(len(self.left))
        mean, variance = self._coming[:, :, group + 1, None].swapaxes(0, 1)
        coming = self._left_out.log_mass(
            self.left[:, None], mean + self._sizes[:, group], variance + self._spreads[:, group]
        )
        at = self._choose(self._log_mass[:, group], coming)
        means, variances = (of[draws, group, :, at] for of in (self._means, self._variances))
        powers = powers_of_factor(self._kappa, means, variances, self._rng)
        log_q, nodes = self._log_q[draws, group, at], self._cells.nodes[group]
        log_p = tilted(self._log_weights[:, group], nodes, log_q, powers)
        law, k = _Law(log_p, self._cells, group), len(nodes)
        counts = np.empty((len(draws), k), dtype=np.int64)
        last = group == self._coming.shape[2] - 2
        takes_all = last and self._left_out.takes_all
        means, variances = (
            np.cumsum(np.insert(of[:, ::-1], 0, further, axis=1), axis=1)[:, ::-1]
            for of, further in ((law.mean, mean[:, 0]), (law.variance, variance[:, 0]))
        )
        for j in range(k - takes_all):
            left = self.left[:, None] - nodes[j]
            if last and takes_all and j == k - 2:
                coming = law.log_mass(left, k - 1)
            elif last and not takes_all and j == k - 1:
                coming = self._left_out.log_mass_of_rest(left)
            else:
                coming = self._left_out.log_mass(
                    left, means[:, j + 1 :][:, :1], variances[:, j + 1 :][:, :1]
                )
            node = self._choose(law.log_p[:, j], coming)
            counts[:, j] = self._rng.integers(law.first[j][node], law.last[j][node] + 1)
            self.left = self.left - counts[:, j]
        if takes_all:
            counts[:, -1] = self.left
            self.log_weight += law.log_mass(self.left[:, None], k - 1)[:, 0]
        return counts

    def _choose(self, log_p: Floats, coming: Floats) -> Integers:
        """Choose by normalised probabilities and those of what then is yet to come, both
        logarithms of shape `(draws, choices)`.
        """
        log_both = log_p + coming
        top = np.maximum(log_both.max(axis=1, keepdims=True), _IMPOSSIBLE)
        upto = np.exp(log_both - top).cumsum(axis=1)
        levels = self._rng.random((len(upto), 1)) * upto[:, -1:]
        at = np.minimum((upto <= levels).sum(axis=1), upto.shape[1] - 1)
        with np.errstate(divide="ignore"):
            self.log_weight += np.log(upto[:, -1]) + top[:, 0]
        self.log_weight -= np.maximum(coming[np.arange(len(at)), at], _IMPOSSIBLE)
        return at
