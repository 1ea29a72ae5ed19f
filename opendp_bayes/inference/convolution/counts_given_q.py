"""Counts whose number of records is private, every number being equally probable.

`n! / Γ(n + A)` is `(n + A)(n + A + 1) / Γ(A + 1)` times the integral of `q^n (1 - q)^A` over q from
0 to 1. So the counts are independent given one number q, but for a polynomial of their sum: laws of
counts, their moments and the evidence are sums over some values of q. Only the law of what stands
beside a count is convolved (`docs/research/how-it-works.md`).
"""

from functools import cached_property

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.convolution.lattices import Lattices, cubic
from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_cells import Cells, log_or_nothing
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising, picked
from opendp_bayes.inference.laws.mixtures_of_pairs import Side, mixtures_of_pairs
from opendp_bayes.mathematics.all_but_one import products_of_others
from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts are looked at where the noise costs no more than `exp(-_REACH)` beyond the draws, on at
#: most so many numbers, also of all rows and of all sums; their law has to have vanished there.
_REACH, _LONGEST, _MOST_ROWS, _MOST, _MOST_SUMS = 40.0, 1 << 15, 2000, 1 << 20, 1 << 25
_EDGE = 1e-10
#: Logits of q that are looked at first; the integrand is followed down to `exp(-_DEPTH)`.
_LOGITS, _DEPTH = np.linspace(-32, 44, 229), 26.0
#: Logits are so many deviations of the number of records given q apart, and every fourth is enough
#: to know the sums; there are so many at least and at most.
_APART, _EVERY, _FEWEST, _MOST_LOGITS = 1.2, 4, 24, 700
#: Steps of lattices are at most this share of the narrowest deviation, and so long.
_STEP, _LONGEST_STEP = 0.14, 64
#: Sums that are too small for a step weigh less than this; the error of a transform.
_LEFT, _ROUNDING = 1e-5, 1e-15
#: Deviations of a sum that are added to the length of its counts.
_TAILS = 18.0
#: Means of sums are at most so many of their deviations away from those of the counts.
_OFF = 1e-3
#: Powers over which sums are taken together are at most `exp(_DIGITS)`.
_DIGITS, _TINY = 500.0, 1e-300


class TooWideError(Exception):
    """Says that the laws are spread over too many numbers to be listed."""


class CountsGivenQ:
    """Laws of the counts of different categories, one by one in each row.

    Raises `TooWideError` for counts whose laws are spread over too many numbers.

    Parameters
    ----------
    leaves : NoisedCategories
        The looks at the categories, and their priors.
    times : ndarray of int
        How many categories each row stands for.
    others : ndarray
        The priors of all categories but one of the row.
    """

    def __init__(self, leaves: NoisedCategories, times: Integers, others: Floats) -> None:
        self.leaves, self._times, self._others = leaves, times, others
        self._concentration = float(times @ leaves.prior)
        if not all(look.is_complete for look in leaves.looks) or times.size > _MOST_ROWS:
            raise TooWideError
        ends = [(np.maximum(x.drawn, 0), x.noise.reach(_REACH)) for x in leaves.looks]
        low = np.min([at - reach for at, reach in ends], axis=0)
        high = np.max([at + reach for at, reach in ends], axis=0)
        # A multiple of all steps.
        self._low = np.maximum(low, 0) // _LONGEST_STEP * _LONGEST_STEP
        self._length = int((high - self._low).max()) + 1
        if self._length > _LONGEST or self._length * times.size > _MOST:
            raise TooWideError
        self._away = np.arange(self._length)
        self._counts = self._low[:, None] + self._away
        #: A count of each row, whose weight is 1.
        self.origin = ends[0][0]
        row = np.repeat(np.arange(times.size), self._length)
        logs = leaves.log_weight(row, self._counts.ravel().astype(np.float64), self.origin)
        self._log_weights = logs.reshape(self._counts.shape)
        self._place()
        step, self._beside = self._found_beside()  # which says at once if its sums are too wide
        self.records = _records(step, self._beside)

    def _place(self) -> None:
        """Find the logits of q that matter, and take as many as are enough."""
        u = _LOGITS
        while True:
            self._at(u)
            seen = np.flatnonzero(self._log_share > self._log_share.max() - _DEPTH)
            first, last = seen[0] - 1, seen[-1] + 1
            if (
                first < 0
                or last == u.size
                or not np.all(np.isfinite(self._log_share[[first, last]]))
            ):
                raise TooWideError
            u = np.linspace(u[first], u[last], 49)
            if seen.size >= 10:
                break
        p, q = special.expit(-self._u), special.expit(self._u)
        number = self._size + self._concentration + 2
        unit = np.sqrt(self._spread * p**2 + number * p * q + 2.0)[seen].max()
        logits = max(int((u[-1] - u[0]) * unit / _APART) + 2, _FEWEST)
        if logits > _MOST_LOGITS:
            raise TooWideError
        self._at(np.linspace(u[0], u[-1], logits))
        if not np.all(np.isfinite(self._log_share)):
            raise TooWideError
        ends = self._masses[:, [0, -1]] * np.stack([self._low > 0, self._low >= 0], axis=1)
        powers = np.exp(np.outer(self._away[[0, -1]], self._tilts))
        at_ends = (ends[..., None] * powers / self._norms[:, None]) @ self._share
        if np.max(at_ends) > _EDGE:
            raise TooWideError

    def _at(self, u: Floats) -> None:
        """Compute the weights of logits, and the moments of all counts given each of them."""
        self._u, tilts, whole = u, -np.logaddexp(0, -u), self._concentration
        # Weights are relative to the last one, so that powers do not overflow.
        logs = self._log_weights + tilts[-1] * self._away
        tops = logs.max(axis=1, keepdims=True)
        self._masses, self._last, self._tilts = np.exp(logs - tops), tilts[-1], tilts - tilts[-1]
        powers = self._powers
        norms = self._masses @ powers
        seen = np.all(norms > _TINY, axis=0)
        self._norms = np.where(seen, norms, 1.0)
        first, second = (
            (self._masses * self._away**power) @ powers / self._norms for power in (1, 2)
        )
        self._means, self._variances = (
            self._low[:, None] + first,
            np.maximum(second - first**2, 0.0),
        )
        self._size, self._spread = (self._times @ x for x in (self._means, self._variances))
        logs = np.log(self._norms) + tops + self._low[:, None] * tilts
        logs = self._times @ logs - (whole + 1) * np.logaddexp(0, u) + tilts + np.log(u[1] - u[0])
        logs = np.where(seen, logs, -np.inf)
        factor = (self._size + whole) * (self._size + whole + 1) + self._spread
        self._log_share = logs + np.log(factor)
        self._share = special.softmax(self._log_share)
        self._measure = self._share / factor

    @property
    def _powers(self) -> Floats:
        """Factor of each logit on the weights of counts, shape `(length, logits)`; large."""
        return np.exp(np.outer(self._away, self._tilts))

    @cached_property
    def _laws(self) -> Floats:
        """The laws of all counts, shape `(rows, length)`."""
        rest = self._size - self._means + self._concentration
        base, variance = self._measure / self._norms, self._spread - self._variances
        constant, linear = base * (rest * (rest + 1) + variance), base * (2 * rest + 1)
        powers = self._powers.T
        found = base @ powers
        for each in (linear, constant):
            found = self._counts * found + each @ powers
        found *= self._masses
        return found / found.sum(axis=1, keepdims=True)

    @cached_property
    def counts(self) -> CountLaws:
        """The laws of the counts of all rows."""
        return _law_of(self._counts, self._laws)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The laws of the probabilities of all rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            tilts = np.log(self._laws) - np.log(self._masses)
        tilts = np.where(np.isfinite(tilts), tilts, 0.0)
        own = Side(
            self._counts.astype(np.float64),
            self._laws,
            tilts,
            np.sqrt(self._variances @ self._share),
        )
        every = self._beside
        beside = Side(
            *(x[:-1] for x in (every.numbers, every.masses, every.log_tilts, every.deviation))
        )
        low = own.numbers[:, 0] + beside.numbers[:, 0]
        high = own.numbers[:, -1] + beside.numbers[:, -1]
        sizes = np.arange(max(low.min() - 1, 0.0), high.max() + 2)
        known = -log_rising(sizes, self._concentration) - self._last * sizes
        found = mixtures_of_pairs(own, beside, self.leaves.prior, self._others, (sizes, known))
        del self._beside  # which is large, and used once
        return found

    def _found_beside(self) -> tuple[int, Side]:
        """The records beside one category of each row, and in the end those in all categories, on
        lattices with the step that is told.
        """
        variances = self._variances[:, self._share > 1e-7]
        beside = self._times @ variances - variances
        narrow = np.sqrt(max(float(beside.min()), float(variances.min())))
        step = min(1 << int(np.log2(max(_STEP * narrow, 1.0))), _LONGEST_STEP)
        # A step is no longer than a Beta is wide, and an edge at 0 far from what is seen.
        least = self._size - self._means - 4 * np.sqrt(self._spread - self._variances)
        least = float((least + self._others[:, None])[:, self._share > 1e-6].min())
        while step > 1 and least < max(4 * step, step**2 // 4):
            step //= 2
        others = np.append(self._others, self._concentration)[:, None]
        while True:
            found = self._sums(step)
            near = found.numbers + others < max(4 * step, step**2 // 4)
            if step == 1 or np.sum(found.masses * near, axis=1).max() < _LEFT:
                return step, found
            step //= 2

    def _sums(self, step: int) -> Side:
        rows, some = self._times.size, slice(self._u.size % _EVERY // 2, None, _EVERY)
        means, variances, norms = (
            np.append(each, np.full_like(each[:1], none), axis=0)
            for each, none in ((self._means, 0.0), (self._variances, 0.0), (self._norms, 1.0))
        )
        # One window of each row holds its sums given every q.
        lowest_mean, highest_mean = (
            end((self._size - means)[:, some], axis=1) for end in (np.min, np.max)
        )
        wide = self._length + _TAILS * np.sqrt(self._spread.max())
        length = int(wide + (highest_mean - lowest_mean).max()) // step + 8
        length = fft.next_fast_len(length, real=True)
        if rows * self._share[some].size * length > _MOST_SUMS:
            raise TooWideError
        product = np.zeros((rows + 1, length // 2 + 1), dtype=np.complex128)
        every = zip(self._tilts[some], self._norms.T[some], self._share[some], strict=True)
        for tilt, norm, share in every:  # one by one, for there may be many large ones
            laws = self._masses * np.exp(self._away * tilt) / norm[:, None]
            waves = fft.rfft(laws if step == 1 else _spread(laws, step), length)
            others = products_of_others(waves, self._times)
            product += share * np.concatenate([others, others[-1:] * waves[-1:]])
        found = fft.irfft(product, length)
        found[found < _ROUNDING] = 0.0
        lowest = int(self._times @ self._low) - np.append(self._low, 0)
        origin = lowest // step
        if step > 1:  # lattices of counts begin one step below
            origin += np.append(np.ones(rows, dtype=np.int64), 0) - int(self._times.sum())
        begin = np.rint((lowest_mean + highest_mean) / (2 * step)).astype(np.int64) - length // 2
        first, places = np.maximum(begin, 0), np.arange(length)
        shift = (first - origin)[:, None] + places
        masses = np.take_along_axis(found, shift % length, axis=1)
        masses[places >= (begin + length - first)[:, None]] = 0.0
        away = step * places
        # What is known of a sum by each logit, over what these multiply its weight by.
        logs = np.log(norms) - self._times @ np.log(self._norms)
        logs += self._tilts * (step * first - lowest)[:, None] + np.log(self._measure + _TINY)
        numbers, whole = step * first[:, None] + away, means + self._concentration
        factors = whole * (whole + 1) + variances, 2 * whole + 1
        log_tilts = np.empty(masses.shape)
        block = max(int(_DIGITS / max(-self._tilts[0] * step, _TINY)), 1)
        for start in range(0, away.size, block):
            here = slice(start, start + block)
            middle = away[here][away[here].size // 2]
            each = logs + self._tilts * middle
            top = each.max(axis=1, keepdims=True)
            mine, powers = np.exp(each - top), np.exp(np.outer(self._tilts, away[here] - middle))
            known = (mine * self._share / (self._measure + _TINY))[:, some] @ powers[some]
            beside = numbers[:, here] * (mine @ powers) + (mine * factors[1]) @ powers
            beside = numbers[:, here] * beside + (mine * factors[0]) @ powers
            masses[:, here] *= beside / np.maximum(known, _TINY)
            log_tilts[:, here] = top + np.log(np.maximum(beside, _TINY))
        total = masses.sum(axis=1, keepdims=True)
        masses /= np.where(total > 0, total, np.nan)
        deviation = np.sqrt((self._spread - variances) @ self._share)
        found = Side(numbers.astype(np.float64), masses, log_tilts, deviation)
        mean, std = found.mean_and_std()
        own = np.append(np.sum(self._laws * self._counts, axis=1), 0.0)
        right = self._times @ own[:-1] - own
        # The means are known from the counts.
        if away.size < 4 or not np.all(np.abs(mean - right) <= _OFF * np.maximum(std, 0.01)):
            raise TooWideError
        return found

    def sample(self, leaf: Integers, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts of categories, of which `leaf` tells the row; shape
        `(draws, categories)`.
        """
        numbers = rng.multinomial(draws, self._share / self._share.sum())
        found = [
            self._drawn(node, leaf, int(numbers[node]), rng)
            for node in np.flatnonzero(numbers).tolist()
        ]
        return rng.permutation(np.concatenate(found))

    def _drawn(self, node: int, leaf: Integers, draws: int, rng: np.random.Generator) -> Integers:
        """Draws given one q. The factor `(n + A)(n + A + 1)` is a sum over pairs of categories: a
        pair is drawn, and its counts are weighted by their factors.
        """
        found = np.empty((draws, leaf.size), dtype=np.int64)
        powers = np.exp(self._away * self._tilts[node])

        def put(draw: Integers, columns: Integers, times: int) -> None:
            rows, place = np.unique(leaf[columns], return_inverse=True)
            a = self._counts[rows] + self.leaves.prior[rows, None] if times else np.ones(1)
            law = self._masses[rows] * powers * (a if times < 2 else a * (a + 1))
            at = picked(law, place, rng.random(place.size))
            found[draw, columns] = self._low[rows[place]] + at

        put(*np.divmod(np.arange(found.size), leaf.size), 0)
        a = (self._means[:, node] + self.leaves.prior)[leaf]
        both, whole = a * (a + 1) + self._variances[leaf, node], a.sum()
        first = rng.choice(leaf.size, draws, p=(w := a * (whole - a) + both) / w.sum())
        same = rng.random(draws) * w[first] < both[first]
        put(np.flatnonzero(same), first[same], 2)
        rows, first = np.flatnonzero(~same), first[~same]
        up_to = np.cumsum(a)
        level = rng.random(rows.size) * (whole - a[first])
        level += np.where(level >= up_to[first] - a[first], a[first], 0.0)
        put(rows, first, 1)
        second = np.searchsorted(up_to, level, side="right")
        put(rows, np.minimum(second, leaf.size - 1), 1)
        return found


def _spread(laws: Floats, step: int) -> Floats:
    """Masses at whole numbers, handed to the nearest four points of a lattice that begins one step
    below them: all moments up to the third are kept.
    """
    more = [(0, 0)] * (laws.ndim - 1) + [(0, -laws.shape[-1] % step)]
    parts = np.pad(laws, more).reshape(*laws.shape[:-1], -1, step)
    points = parts.shape[-2]
    found = np.zeros((*laws.shape[:-1], points + 3))
    for offset, weight in enumerate(cubic(1 + np.arange(step) / step)):
        found[..., offset : offset + points] += parts @ weight
    return found


def _records(step: int, beside: Side) -> CountLaws:
    """The law of the number of records, the last sum on a lattice."""
    numbers, masses = beside.numbers[-1].astype(np.int64), beside.masses[-1]
    if step == 1:
        return _law_of(numbers[None], masses[None])
    laws = Lattices(numbers[:1], np.array([step]), masses[None])
    first = numbers[:-1][np.maximum(masses[:-1], masses[1:]) > 1e-16]
    cells = Cells(np.zeros_like(first), first, first + step - 1)
    return CountLaws.of(cells, lambda *where: log_or_nothing(np.maximum(laws.read(*where), 0.0)))


def _law_of(numbers: Integers, laws: Floats) -> CountLaws:
    """Laws of listed numbers, each in a cell of its own."""
    row, place = np.nonzero(laws > 1e-17)
    return CountLaws.of_numbers(row, numbers[row, place], laws[row, place])
