"""The posterior of multinomial counts with a Dirichlet prior, given additive noise on each:
marginal laws by exponential tilts and convolution.

The weights of the counts are a product over the categories but for their sum. So given the sum the
law of one count is its own weight times that of the sum of the others, which completes it. A
private number of records, whatever its prior, is a sum over all: under a few tilts for the counts,
and in parts for the probabilities (`docs/research/how-it-works.md`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.convolution.draws_given_sum import DrawsGivenSum
from opendp_bayes.inference.convolution.number_of_records import Total, private, public
from opendp_bayes.inference.convolution.numbers_and_tilts import Numbers, numbers_of
from opendp_bayes.inference.convolution.sums import Sums
from opendp_bayes.inference.convolution.tilted_counts import Moments, NoisedCategories
from opendp_bayes.inference.engines import ByLaws, Groups
from opendp_bayes.inference.laws.beta_mixture import NEGLIGIBLE, BetaMixtures, varied
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, cells_between, log_or_nothing
from opendp_bayes.inference.laws.count_laws import CountLaws, binned, grouped, short_cells
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import Floats, Integers

#: Cells are at most this part of the deviation of a count given the sum, up to so many deviations.
_LENGTH, _AROUND = 0.3, 9.0
#: Counts of a shorter range are all listed; the most cells of a law.
_SINGLE, _MOST = 256, 2000
#: Numbers of records of tilts that are rarer are not looked at for the lengths of cells.
_RARE = 1e-3
#: Probabilities above this are found from those of all others, where the deviation of the number
#: of records is more than this part of the records in these.
_LARGE, _ROUGH = 0.5, 0.12
#: Numbers that are worked on at once.
_BLOCK = 1 << 17
#: Sums that should agree are warned about where they differ by this share.
_DISAGREE = 3e-3
#: Weights of sums of some categories are tabulated at up to so many sums.
_TABLE = 1 << 16

#: Row and counts, to their probabilities under the tilt of every number of records.
Density = Callable[[Integers, Floats], Floats]


class CountsGivenNoise(ByLaws):
    """The true counts and the probabilities of k >= 2 categories, given what was drawn.

    The prior of the probabilities is Dirichlet, and the counts are multinomial.

    Every mean and standard deviation is within 1e-2 of the standard deviation, and every cumulative
    probability within 1e-2; mostly much nearer. Where the weights of all categories, each from
    other sums, do not agree to 3e-3, a `UserWarning` says so with the first answer.

    Parameters
    ----------
    categories : NoisedCategories
        What was drawn of the counts, and their prior.
    total : Total
        The number of records, with its weights.
    warns : bool, default True
        Whether it says so.
    """

    def __init__(self, categories: NoisedCategories, total: Total, *, warns: bool = True) -> None:
        self.categories, self._total, self.prior = categories, total, categories.prior
        # Categories that are alike are one leaf: the leaf of each, and the first of each leaf.
        index: dict[tuple[float, ...], int] = {}
        keys = zip(*(column.tolist() for column in categories.columns), strict=True)
        self._leaf = np.array([index.setdefault(key, len(index)) for key in keys])
        self._first = np.unique(self._leaf, return_index=True)[1]
        self._times = np.bincount(self._leaf)
        self._leaves = categories.chosen(self._first)
        self._warned = not warns
        _ = self._numbers  # which refuses at once what cannot be answered

    @classmethod
    def of(
        cls,
        looks: Sequence[DrawnCounts],
        prior: ArrayLike,
        *,
        size: int | None = None,
        records_prior: Any = None,
    ) -> "CountsGivenNoise":
        """Find the posterior of counts as they were drawn.

        Parameters
        ----------
        looks : Sequence[DrawnCounts]
            The counts as they were drawn, once or several times, each time with noise of its own.
        prior : array_like
            Concentration of the Dirichlet prior, shape `(k,)`.
        size : int, optional
            The public number of records, which the true counts sum to; None if it is private.
        records_prior : Any, optional
            Of a private number, a frozen discrete distribution of scipy; by default every number is
            equally probable.

        Raises
        ------
        ValueError
            Where nothing bounds a private number of records, or it is too uncertain.
        """
        noised_looks = [look.without_others for look in looks]
        categories = NoisedCategories(tuple(noised_looks), np.asarray(prior, dtype=np.float64))
        if size is None:
            total = private(categories, records_prior)
        else:
            total = public(size, float(categories.prior.sum()))
        return cls(categories, total)

    @cached_property
    def _numbers(self) -> Numbers:
        """Numbers of records, without counts that the others do not complete to any."""
        numbers, times = numbers_of(self._leaves, self._times, self._total), self._times
        moments, (low, high) = numbers.moments, numbers.counts.ends
        least = numbers.sizes[0] - (high @ times - high)
        most = numbers.sizes[-1] - (low @ times - low)
        counts = numbers.counts.within(np.maximum(low, least), np.minimum(high, most))
        # Probabilities stay what they are; the moments are those of the parts.
        moments = replace(counts.under(moments.tilts), log_norm=moments.log_norm)
        return replace(numbers, counts=counts, moments=moments)

    def _times_in(self, categories: Sequence[int]) -> Integers:
        """Number of times that some categories have each leaf."""
        return np.bincount(self._leaf[list(categories)], minlength=self._times.size)

    # -- answers ------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Sums:
        """The laws of sums of counts of leaves."""
        return Sums(self._numbers, self._times)

    @cached_property
    def _single(self) -> tuple[CountLaws, Callable[[], BetaMixtures]]:
        """The laws of the counts of all leaves, and what makes those of their probabilities."""
        numbers, times = self._numbers, self._times
        counts, moments, kinks = numbers.counts, numbers.moments, self._leaves.kinks
        along = partial(_along, moments, counts.anchor, moments.log_norm)

        def alone(row: Integers, x: Floats) -> Floats:
            return np.exp(counts.log_weight(row, x) + along(row, x))

        if times.sum() == 2 and self._total.is_point:  # the other count is no sum
            other, size = np.arange(times.size)[::-1], self._total.lowest

            def beside(row: Integers, x: Floats) -> Floats:
                return alone(other[row], np.maximum(size - x, 0.0)) * (x <= size)

            kinks += [size - kink[other] for kink in kinks]
        else:
            beside = partial(self._sums.beside(*counts.ends).of_all, times.size)
        start = self._start(moments.mean, moments.variance, kinks, *counts.ends)
        alpha = self.prior[self._first]
        others = all_but_one(self.prior)[self._first]
        sides = alone, along, beside, self._sums.beside_of_parts
        laws = self._laws(sides, start, alpha, others)
        self._check_means(laws[0])
        return laws

    def _start(
        self, mean: Floats, variance: Floats, kinks: Sequence[Integers], low: Floats, high: Floats
    ) -> tuple[Cells, Floats]:
        """Cells of counts between ends that are short beside their deviations given the sum, whose
        means and variances without it have the shape `(tilts, rows)`: single counts where these are
        few; and the shortest of the deviations that matter.
        """
        numbers, rows_of_all = self._numbers, np.arange(low.size)
        total, whole = (
            (x @ self._times)[:, None] for x in (numbers.moments.mean, numbers.moments.variance)
        )
        share = variance / np.maximum(whole, 1e-12)
        mean = mean + share * (numbers.middles[:, None] - total)  # of what the tilt misses its part
        given = np.sqrt(variance * np.maximum(1 - share, 0.0))
        highest = float(np.ceil(numbers.sizes.max()))
        low, high = np.minimum(low, highest), np.minimum(high, highest)
        # Of each tilt beyond the reach of those before, as short as those after it need.
        matters = np.where(numbers.shares[:, None] > _RARE, given, np.inf)
        shortest = np.minimum.accumulate(matters[::-1])[::-1]
        shortest = np.where(np.isfinite(shortest), shortest, given)
        most = np.clip(np.maximum.accumulate(mean + _AROUND * given) + 2, low, high)
        least = np.clip((mean - _AROUND * given).min(axis=0) - 2, low, high)
        start = np.maximum(np.concatenate([least[None], most[:-1]]), least)
        few = high - low < _SINGLE
        start, most = np.where(few, low, start), np.where(few, high, most)
        length = np.where(few, 1.0, np.maximum(_LENGTH * shortest, 1.0))
        number = np.clip(np.ceil((most - start) / length), 0, _MOST).astype(np.int64) + 1
        row = np.tile(rows_of_all, len(mean))
        ends = (end.ravel().astype(np.int64) for end in (np.floor(start), np.ceil(most)))
        even = Cells(row, *ends).cut(number.ravel())
        away = 2.0 ** np.arange(np.log2(highest + 2))
        edges = np.concatenate([[0.0], away, highest + 1 - away])
        rows = [even.category, np.repeat(rows_of_all, edges.size)]
        first = [even.first, np.tile(edges, rows_of_all.size)]
        for kink in kinks:
            rows += [rows_of_all, rows_of_all]
            first += [kink, kink + 1]
        return cells_between(np.concatenate(rows), np.concatenate(first), low, high), shortest[0]

    def _laws(
        self, sides: tuple[Density, ...], start: tuple[Cells, Floats], alpha: Floats, others: Floats
    ) -> tuple[CountLaws, Callable[[], BetaMixtures]]:
        """The laws of counts, and what makes those of their probabilities. The sides are the laws
        of the counts under every tilt, the factors by which tilts change these, and what is beside
        them, for every tilt and for every part of the numbers of records. The priors of each count
        and of all others are `alpha` and `others`.
        """
        alone, along, beside, parts = sides

        def log_weight(row: Integers, x: Floats) -> Floats:
            blocks = _blocks(row, x, pairs=self._numbers.moments.tilts.size)
            weights = [(alone(*at) * np.maximum(beside(*at), 0.0)).sum(axis=0) for at in blocks]
            return log_or_nothing(np.concatenate(weights))

        law = CountLaws.of(start[0], log_weight)
        cells = short_cells(law, alpha, others, self._numbers.mean)
        log_masses = cells.log_masses(log_weight)
        log_totals = cells.log_sums(log_masses)
        self._check_agree(log_totals)
        law = CountLaws.of_masses(cells, log_masses)
        return law, partial(self._mixtures, along, parts, law, start[1], alpha, others)

    def _mixtures(
        self,
        along: Density,
        parts: Density,
        law: CountLaws,
        shortest: Floats,
        alpha: Floats,
        others: Floats,
    ) -> BetaMixtures:
        """The laws of the probabilities of categories whose counts have these laws, with deviations
        given the number of records that are at least the `shortest`.
        """
        which, masses, counts = binned(law, alpha, others, self._numbers.mean, shortest)
        is_public = self._numbers.sizes.size == 1
        of_parts = np.ones((1, 1, which.size)) if is_public else parts(which, counts)
        number = which.size * self._numbers.centres.size // _BLOCK + 1
        mixtures = []
        for rows in np.array_split(np.arange(alpha.size), min(number, alpha.size)):
            inside = np.isin(which, rows)
            some = which[inside], masses[inside], counts[inside]
            pairs = self._pairs(along, of_parts[..., inside], *some)
            row, mass, x, left, spread = pairs
            a, b = varied(alpha[row] + x, others[row] + left, spread)
            mixtures.append(grouped(a, b, mass, x, left, row - rows[0]))
        return BetaMixtures.joined(mixtures)

    def _pairs(
        self, along: Density, beside: Floats, row: Integers, mass: Floats, x: Floats
    ) -> list[Any]:
        """Pairs of a count that stands for others and a part of the numbers of records: the row,
        the probability, the count, and the mean and variance of what is left to all others.
        """
        numbers, off, spread = self._numbers, 0.0, np.zeros((1, x.size))
        whole, *moments = beside
        if moments:
            logs = log_or_nothing(np.maximum(whole, 0.0)) + along(row, x)[numbers.tilt]
            mass = mass * special.softmax(logs, axis=0)
            whole, reach = np.maximum(whole, 1e-300), float(np.ptp(numbers.sizes))
            off = np.clip(moments[0] / whole, -reach, reach)
            spread = np.clip(moments[1] / whole - off**2, 0.0, reach**2)
        left = np.maximum(numbers.centres[:, None] + off - x, 0.0)
        seen = np.broadcast_to(mass, left.shape) > NEGLIGIBLE
        return [np.broadcast_to(array, left.shape)[seen] for array in (row, mass, x, left, spread)]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        mixtures, index = self._single[1]().chosen(self._leaf), np.arange(self._leaf.size)
        # Parts of the numbers are rough beside few records that are in other categories.
        mean = mixtures.mean()
        records_left = (1 - mean) * (self._numbers.mean + self.prior.sum())
        is_rough = self.records.std() > _ROUGH * records_left
        large = np.flatnonzero((mean > _LARGE) & is_rough)
        if large.size:
            if index.size == 2:
                rest_laws = mixtures.chosen(1 - large)
            else:
                groups = [np.delete(index, category).tolist() for category in large.tolist()]
                rest_laws = BetaMixtures.joined([mixture for _, mixture in self.together(groups)])
            index[large] = index.size + np.arange(large.size)
            mixtures = BetaMixtures.joined([mixtures, rest_laws.mirrored]).chosen(index)
        self._warn_above(abs(float(mixtures.mean().sum()) - 1) / float(mixtures.std().sum()))
        return mixtures

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the true counts of all categories."""
        return self._single[0].chosen(self._leaf)

    @property
    def log_evidence(self) -> float:
        """Logarithm of the sum of the weights of all data sets."""
        numbers, leaves = self._numbers, self._leaves
        anchor = numbers.counts.anchor
        of_anchors = leaves.log_alone(np.arange(anchor.size), anchor)
        of_anchors += sum(share * look.log_mass(anchor) for share, look in leaves.used)
        log_norm = numbers.log_norm + float(of_anchors @ self._times)
        return log_norm + math.log(float(self._masses_of_numbers.sum()))

    @cached_property
    def _masses_of_numbers(self) -> Floats:
        """The weights of the numbers of records."""
        numbers, row = self._numbers, np.zeros(1, dtype=np.int64)
        density = np.maximum(self._sums.laws().of_all(1, row, numbers.sizes), 0.0)
        return np.asarray((numbers.masses * density[numbers.tilt]).sum(axis=0))

    @cached_property
    def records(self) -> CountLaws:
        """The law of the number of records."""
        if self._total.is_point:
            return CountLaws.of_number(self._total.lowest)
        numbers, masses = self._numbers, self._masses_of_numbers
        first = np.append(numbers.sizes[0], np.ceil((numbers.sizes[1:] + numbers.sizes[:-1]) / 2))
        first = first.astype(np.int64)
        cells = Cells(np.zeros_like(first), first, np.append(first[1:] - 1, int(numbers.sizes[-1])))
        seen = masses > 0
        nodes = masses[:, None] * cells.node_weights / cells.length[:, None]
        return CountLaws.of_masses(cells.where(seen), log_or_nothing(nodes[seen]))

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        """The laws of the counts of groups of several categories, and of their probabilities; of no
        group that holds all.
        """
        parts = [self._times_in(group) for group in groups]
        moments, rows = self._numbers.moments, len(parts)
        mean, variance = (
            np.stack([x @ part for part in parts], axis=1) for x in (moments.mean, moments.variance)
        )
        low, high = (np.array([end @ part for part in parts]) for end in self._numbers.counts.ends)
        together = np.stack(parts, axis=1)
        lattices = self._sums.laws(together), self._sums.beside(low, high, together)
        law, beside = (partial(laws.of_all, rows) for laws in lattices)
        along = partial(_along, moments, moments.anchor @ together, moments.log_norm @ together)
        start = self._start(mean, variance, [], low, high)
        alpha = np.array([self.prior[list(group)].sum() for group in groups])
        others = np.array([np.delete(self.prior, list(group)).sum() for group in groups])

        def alone(row: Integers, x: Floats) -> Floats:
            return np.maximum(law(row, x), 0.0)

        sides = alone, along, beside, partial(self._sums.beside_of_parts, sums=together)
        laws, of_probabilities = self._laws(sides, start, alpha, others)
        mixtures = of_probabilities()
        return [(laws.chosen(np.array([i])), mixtures[i]) for i in range(rows)]

    def given(self, categories: Sequence[int]) -> ByLaws:
        """The posterior of some categories among themselves: of their counts, and of their
        probabilities divided by the sum of these. At least two.

        It is that of a private number of records, whose weight is what the other categories and the
        number of all records say of it.
        """
        inside = np.isin(np.arange(self.categories.k), categories)
        some = self if np.all(inside) else self._some(np.flatnonzero(inside))
        order = np.argsort(np.argsort(categories))
        return some if np.all(np.diff(order) > 0) else some.merged([[i] for i in order.tolist()])

    def _some(self, inside: Integers) -> "CountsGivenNoise":
        """The posterior of two or more categories, but not all, in their order."""
        numbers, part = self._numbers, self._times_in(inside.tolist())
        moments, tilts = numbers.moments, numbers.moments.tilts
        low, high = (float(end @ part) for end in numbers.counts.ends)
        beside = self._sums.beside(np.array([low]), np.array([high]), part[:, None])
        weights = -moments.log_norm @ part - tilts * float(moments.anchor @ part)
        sizes = np.unique(np.floor(np.linspace(low, high, _TABLE)))
        row = np.zeros(1, dtype=np.int64)
        log_beside = log_or_nothing(np.maximum(beside.of_all(1, row, sizes), 0.0))
        logs = np.logaddexp.reduce(log_beside + weights[:, None] + tilts[:, None] * sizes, axis=0)
        seen = np.flatnonzero(logs > NOTHING / 2)
        possible = slice(int(seen[0]), int(seen[-1]) + 1)
        sizes, logs = sizes[possible], logs[possible]
        weight: Any = partial(np.interp, xp=sizes, fp=logs)  # which pickles
        deviation = np.sqrt(moments.variance @ part)
        seeds = (moments.mean @ part)[:, None] + deviation[:, None] * np.linspace(-9, 9, 37)
        seeds = np.unique(np.clip(np.floor(seeds), sizes[0], sizes[-1]))
        total = Total(int(sizes[0]), int(sizes[-1]), weight, seeds.astype(np.int64))
        return CountsGivenNoise(self.categories.chosen(inside), total)

    def sample(self, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the true counts, shape `(draws, k)`."""
        numbers = self._numbers.finer
        sizes = self.records.draw(np.zeros(1, dtype=np.int64), draws, rng)[0]
        counts = np.empty((draws, self.categories.k), dtype=np.int64)
        means = numbers.moments.mean @ self._times
        nearest = np.searchsorted((means[1:] + means[:-1]) / 2, sizes)
        for number in np.unique(nearest).tolist():
            some = np.flatnonzero(nearest == number)
            counts[some] = DrawsGivenSum(numbers.chosen(number, number + 1), self._leaf).of(
                sizes[some], rng
            )
        return counts

    def _check_agree(self, log_totals: Floats) -> None:
        """Warn where what all counts of a category weigh is not the same for all categories: each
        has it from other sums, and their lattices, cuts and tilts are good where all agree.
        """
        if not self._total.is_point:
            log_totals = np.append(log_totals, np.log(self._masses_of_numbers.sum()))
        self._warn_above(float(np.ptp(log_totals)))

    def _check_means(self, law: CountLaws) -> None:
        """Warn where the means of all counts do not add up to that of the number of records."""
        number = float(self._total.lowest)
        if not self._total.is_point:
            number = float(np.average(self._numbers.sizes, weights=self._masses_of_numbers))
        deviations = float(self._times @ np.maximum(law.std(), 0.1))
        self._warn_above(abs(float(self._times @ law.mean()) - number) / deviations)

    def _warn_above(self, off: float) -> None:
        if off > _DISAGREE and not self._warned:
            self._warned = True
            warn(
                "the posterior given noise on the counts may be less exact than the 1e-2 that is"
                f" stated: sums that should agree differ by a share of {off:.2g}."
            )


def _blocks(*columns: Any, pairs: int) -> Any:
    """Columns of equal length in pieces, for so many numbers for each row."""
    number = columns[0].size * pairs // _BLOCK + 1
    return zip(*(np.array_split(column, number) for column in columns), strict=True)


def _along(
    moments: Moments, anchors: Integers, log_norms: Floats, row: Integers, counts: Floats
) -> Floats:
    """Logarithms of what each tilt multiplies the law of a count by, of rows whose anchors and
    logarithms of norms are told; shape `(tilts, m)`.
    """
    return moments.tilts[:, None] * (counts - anchors[row]) - log_norms[:, row]
