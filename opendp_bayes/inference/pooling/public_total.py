"""Pooled groups whose number of all records is public.

All counts are tilted, so that the number of records of all groups, whose law is nearly normal, is
about what is left for them. Several draws of every part of the groups are combined in all ways, of
which one is drawn by how probable the rest is that it leaves: the number of the records in no
group, or, where there are none, the last count. Weights say by how much that differs from the law.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.private_sizes import Mixture, PrivateSizes
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Parts of the groups, and how often each is drawn.
_PARTS, _TIMES = 6, 4
#: Numbers of records that integrals are of, over so many deviations; the largest tilt of counts,
#: and how many deviations the number of records may be off.
_POINTS, _DEVIATIONS, _LARGEST, _NEAR = 41, 8.0, 30.0, 1.0
#: A variance of whole numbers is at least that of what rounds them.
_ROUNDING = 1 / 12
#: Below every logarithm of a probability that matters.
_IMPOSSIBLE = -1e30
#: Which draw of each part every combination has, shape `(parts, combinations)`.
_CHOICES = np.indices((_TIMES,) * _PARTS).reshape(_PARTS, -1)


class PublicTotal:
    """Groups whose number of all records is public, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`, one of which may not have been noised.
    start : ndarray of int
        Counts with the public sum.
    total : int
        The number of all records.
    rest : DrawnCounts or None
        What was drawn for those in no group; None where there are none.
    """

    def __init__(
        self, noisy: DrawnCounts, start: Integers, total: int, rest: DrawnCounts | None
    ) -> None:
        self._groups = PrivateSizes(noisy, start, total)
        self._total, self._rest = total, rest
        #: About how many records are in no group, the deviation of the noise of that, and the
        #: largest tilt: with any number in no group, there may be fewer in the others.
        self._about, self._spread, self._largest = 0, 0.0, _LARGEST
        if rest is not None and rest.noised:
            self._about, self._spread = max(int(rest.drawn), 0), typical_std(rest.noise)
        elif rest is not None:
            self._largest = 0.0
        #: The count that takes what is left: one that was not noised, or the largest.
        place = np.lexsort((-start.ravel(), noisy.noised.ravel()))[0]
        self._taker = divmod(int(place), start.shape[1])
        self._latest: tuple[Mixture, float, float, float]
        self._tilt = 0.0
        remembered = lru_cache(self._groups.remembered)
        self._laws = remembered(lambda a: self._tilted(np.frombuffer(a)))

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn for κ m of shape `(k,)`, and that all records are so
        many, nearly.
        """
        mixture, tilt, log_total = self._laws(a.tobytes())
        return self._groups.log_sum(mixture) + log_total - tilt * self._total

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for one κ m, shape `(number, G, k)`, and the logarithm of
        their weight beside those of other κ m.
        """
        mixture, tilt, log_total = self._laws(a.tobytes())
        draws, (group, category) = self._groups.drawn(mixture, _TIMES, rng), self._taker
        if self._rest is None:
            draws[:, group, category] = 0
        sums = [draws[:, part::_PARTS].sum(axis=(1, 2)) for part in range(_PARTS)]
        left = self._total - sum(each[at] for each, at in zip(sums, _CHOICES, strict=True))
        if self._rest is None:
            log_p = self._log_of_taker(left, draws[:, group].sum(axis=1), a, tilt)
        else:
            log_p = self._log_of_rest(left, tilt)
        chosen = one_of(np.tile(log_p, (number, 1)), rng)
        found = np.empty((number, *draws.shape[1:]), dtype=np.int64)
        for part, at in enumerate(_CHOICES):
            found[:, part::_PARTS] = draws[at[chosen], part::_PARTS]
        if self._rest is None:
            found[:, group, category] = np.maximum(left[chosen], 0)
        return found, float(special.logsumexp(log_p)) - np.log(left.size) - log_total

    def _tilted(self, a: Floats) -> tuple[Mixture, float, float]:
        """The laws of the groups, the tilt of all counts, and the logarithm of about the
        probability of the public number under it.
        """

        def beyond(tilts: Floats, _: Integers) -> tuple[Floats, Floats]:
            mixture = self._groups.mixture(a, tilt := float(tilts[0]), 2)
            mean, variance = self._groups.all_records(mixture)
            self._latest = mixture, tilt, mean - self._total, variance
            wide = np.sqrt(variance + self._spread**2 + _ROUNDING)
            return (mean - self._total + self._about) / wide + 0 * tilts, wide + 0 * tilts

        start = np.array([self._tilt if self._largest else 0.0])
        increasing_roots(beyond, start, -_LARGEST, self._largest, _NEAR)
        mixture, tilt, over, variance = self._latest
        self._tilt = tilt
        width = np.sqrt(variance + _ROUNDING)
        if self._rest is None:
            return mixture, tilt, float(-((over / width) ** 2) / 2 - np.log(width))
        away = np.linspace(-_DEVIATIONS, _DEVIATIONS, _POINTS)
        places = self._about + self._spread * away, width * away - over, [0, 1]
        left = np.unique(np.maximum(np.rint(np.concatenate(places)), 0))
        log_p = self._log_of_rest(left, tilt) - ((left + over) / width) ** 2 / 2
        log_p += np.log(np.gradient(left) / width)
        return mixture, tilt, float(special.logsumexp(log_p))

    def _log_of_rest(self, left: Floats, tilt: float) -> Floats:
        """Logarithm of how much so many records in no group weigh."""
        log_p = 0.0 if self._rest is None else self._rest.log_mass(left)
        return np.where(left >= 0, log_p + tilt * left, _IMPOSSIBLE)

    def _log_of_taker(self, left: Integers, others: Integers, a: Floats, tilt: float) -> Floats:
        """Logarithm of the probability that the count that takes what is left is that, given the
        other counts of its group in each draw.
        """
        group, category = self._taker

        def law(log_mass: Floats, x: Any, others: Integers) -> Floats:
            of_size = special.gammaln(others + x + 1.0) - log_rising_factorial(a.sum(), others + x)
            return log_mass + log_rising_factorial(a[category], x) + tilt * x + of_size

        x = np.maximum(left, 0)
        log_mass = self._groups.noisy.log_mass(x, self._taker) - special.gammaln(x + 1.0)
        cell = self._groups.cells[self._taker]
        nodes, of_nodes = self._groups.nodes[:, cell], self._groups.log_mass[:, cell]
        whole = special.logsumexp(law(of_nodes, nodes, others[:, None]), axis=1)
        draw = _CHOICES[group % _PARTS]
        log_p = law(log_mass, x, others[draw]) - whole[draw]
        return np.where(left >= 0, log_p, _IMPOSSIBLE)
