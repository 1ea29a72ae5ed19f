"""The posterior of multinomial counts with a Dirichlet prior, given additive noise on each:
marginal laws by exponential tilts and convolution.

The weights of the counts are a product over the categories but for their sum. So the law of one
count is its own weight times that of what stands beside it: the sum of the others, which completes
it to a number of records (`docs/research/how-it-works.md`).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.convolution.completions import (
    Beside,
    Completions,
    PrivateBeside,
    beside_of,
)
from opendp_bayes.inference.convolution.counts_given_q import CountsGivenQ, TooWideError
from opendp_bayes.inference.convolution.draws_given_sum import DrawsGivenSum
from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.convolution.number_of_records import (
    Total,
    private,
    public,
)
from opendp_bayes.inference.convolution.sums import Parts, SumLaws, part_of
from opendp_bayes.inference.convolution.tilt_search import Served, TiltSearch
from opendp_bayes.inference.convolution.tilted_sums import TiltedSums
from opendp_bayes.inference.engines.engine import Groups
from opendp_bayes.inference.engines.merged import ByLaws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, varied
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, log_or_nothing
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.mixtures_of_counts import (
    Bins,
    grouped,
    long_cells,
    short_cells,
)
from opendp_bayes.inference.laws.refinement import cells_between, refined
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import Floats, Integers

#: Tilts that weigh less than `exp(-_DEPTH)` are left out.
_DEPTH = 23.0
#: Of the laws of counts, cells that hold less than `exp(-_SEEN)` are left out; over others the
#: logarithm changes by so much.
_SEEN, _CHANGE = 32.0, 1.0
#: Sums that should agree are warned about where they differ by this share.
_DISAGREE = 3e-3
#: Weights of sums of some categories are tabulated up to so many sums.
_LONGEST_TABLE = 1 << 16


class CountsGivenNoise(ByLaws):
    """The true counts and the probabilities of k >= 2 categories, given what was drawn.

    The prior of the probabilities is Dirichlet, and the counts are multinomial.

    Raises `ValueError` before any sum is computed where one would take more than 1000 tilts.

    Every mean and standard deviation is within 1e-2 of the standard deviation, and every cumulative
    probability within 1e-2; mostly much nearer. Where the weights of all categories, each from
    other sums, do not agree to 3e-3, a `UserWarning` says so with the first answer.

    Parameters
    ----------
    categories : NoisedCategories
        What was drawn of the counts, and their prior.
    total : {"remainder", "private", "bounded"}
        The number of records, with its weights.
    flat : bool, default False
        Whether it is private and every number equally probable.
    """

    def __init__(self, categories: NoisedCategories, total: Total, flat: bool = False) -> None:
        self.categories, self._total, self.prior = categories, total, categories.prior
        # Categories that are alike are one leaf: the leaf of each, and the first of each leaf.
        index: dict[tuple[float, ...], int] = {}
        keys = zip(*(column.tolist() for column in categories.columns), strict=True)
        self._leaf = np.array([index.setdefault(key, len(index)) for key in keys])
        self._first = np.unique(self._leaf, return_index=True)[1]
        self._times = np.bincount(self._leaf)
        # Logarithms of weights are relative to those of these counts.
        self._origin = np.clip(categories.looks[0].drawn[self._first], 0, total.highest)
        self._leaves = categories.chosen(self._first)
        self._private: CountsGivenQ | None = None
        if flat:
            others = all_but_one(categories.prior)[self._first]
            with suppress(TooWideError):
                self._private = CountsGivenQ(self._leaves, self._times, others)
        if self._private is None:
            _ = self._sums  # which refuses at once what cannot be answered

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
            Where nothing bounds a private number of records.
        """
        # What was drawn without noise says nothing, and is alike.
        known = [replace(look, drawn=np.where(look.noised, look.drawn, 0)) for look in looks]
        categories = NoisedCategories(tuple(known), np.asarray(prior, dtype=np.float64))
        if size is None:
            total = private(categories, records_prior)
        else:
            total = public(size, float(categories.prior.sum()))
        return cls(categories, total, size is None and records_prior is None)

    @cached_property
    def _tilts(self) -> list[Served]:
        return TiltSearch(self._leaves, self._times, self._origin, self._total).all()

    @cached_property
    def _sums(self) -> list[TiltedSums]:
        """The sums under each tilt that weighs anything."""
        sums = [
            TiltedSums(tilted, self._times, self._total, self._origin, ends)
            for tilted, ends in self._tilts
        ]
        best = max(each.log_evidence for each in sums)
        return [each for each in sums if each.log_evidence >= best - _DEPTH]

    def _times_in(self, categories: Sequence[int]) -> Integers:
        """Number of times that some categories have each leaf."""
        return np.bincount(self._leaf[list(categories)], minlength=self._times.size)

    # -- answers ------------------------------------------------------------------------------

    @cached_property
    def _marginals(self) -> tuple[CountLaws, BetaMixtures]:
        if self._private is not None:
            return self._private.counts, self._private.probabilities
        others = all_but_one(self.categories.prior)[self._first]
        alpha = self.categories.prior[self._first]
        return self._laws(None, alpha, others)

    def _laws(
        self, groups: Groups | None, alpha: Floats, others: Floats
    ) -> tuple[CountLaws, BetaMixtures]:
        """The laws of the counts of groups, or of single categories, and of their probabilities.
        The priors of each and of all other categories are `alpha` and `others`.
        """
        sums, parts, rest = self._sums, *self._sides(groups)
        own = [x.sums.each if parts is None else x.sums.of(parts) for x in sums]
        both = [(x, laws.outline) for x, laws in zip(sums, own, strict=True)]
        bins = Bins(others, *np.min([x.deviations(o, alpha, others) for x, o in both], axis=0))
        beside = [beside_of(x, o, rest, bins) for x, o in both]
        scale = np.array([each.log_scale for each in beside])
        top = float(scale.max())
        scale = scale - top

        def log_weight(row: Integers, counts: Floats) -> Floats:
            found = np.zeros(counts.shape)
            for law, rest, log_scale in zip(own, beside, scale.tolist(), strict=True):
                found += np.exp(log_scale) * law.density(row, counts) * rest.weights(row, counts)
            return log_or_nothing(found)

        start = _start(beside, own)
        cells = refined(log_weight, start, alpha.size, _SEEN, _CHANGE)
        law = CountLaws.of(cells, log_weight)
        cells = short_cells(law, alpha, others, float(self.records.mean()[0]))
        log_masses = cells.log_masses(log_weight)
        _check_agree(sums, cells.log_sums(log_masses) + top)
        law = CountLaws.of_masses(cells, log_masses)
        return law, self._mixtures(law, own, beside, alpha, bins)

    def _mixtures(
        self,
        law: CountLaws,
        own: list[SumLaws],
        beside: list[Beside],
        alpha: Floats,
        bins: Bins,
    ) -> BetaMixtures:
        """Mixtures of Betas that the probabilities are, given the laws of their counts."""
        cells, used, others = law.cells, law.cells.used, bins.others
        row = np.broadcast_to(cells.category[:, None], used.shape)[used]
        counts, masses = cells.nodes[used], law.masses[used]
        a = alpha[row] + counts
        of_private = [rest for rest in beside if isinstance(rest, PrivateBeside)]
        if not of_private:
            size = self._total.lowest
            left = np.maximum(size - counts, 0)
            cell = long_cells(cells, alpha, others, size)[np.nonzero(used)[0]]
            return grouped(a, others[row] + left, masses, counts, left, row, cell)
        top = max(rest.log_scale for rest in of_private)
        found = []
        for laws, rest in zip(own, of_private, strict=True):
            part = rest.completions(row, counts)
            scale = np.exp(rest.log_scale - top) * laws.density(row, counts)
            found.append(replace(part, weight=part.weight * scale[part.point]))
        known = Completions.joined(found)
        if len(found) > 1:  # what is alike under several tilts is one part
            known = known.binned(bins.of(row[known.point], np.maximum(known.mean, 0)))
        point, weight = known.point, known.weight
        weight = (
            weight * (masses / np.maximum(np.bincount(point, weight, counts.size), 1e-300))[point]
        )
        seen = weight > 0
        point, weight, left = point[seen], weight[seen], np.maximum(known.mean[seen], 0)
        a, row = a[point], row[point]
        a, b = varied(a, others[row] + left, 0.0, known.variance[seen])
        return grouped(a, b, weight, a - alpha[row], b - others[row], row)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        return self._marginals[1].chosen(self._leaf)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the true counts of all categories."""
        return self._marginals[0].chosen(self._leaf)

    @cached_property
    def records(self) -> CountLaws:
        """The law of the number of records."""
        if self._total.is_point:
            return CountLaws.of_number(self._total.lowest)
        if self._private is not None:
            return self._private.records
        top = max(tilted.log_evidence for tilted in self._sums)
        every = [tilted.size_cells for tilted in self._sums]
        edges = np.unique(np.concatenate([np.append(c.first, c.last + 1) for c in every]))
        cells = Cells(np.zeros_like(edges[1:]), edges[:-1], edges[1:] - 1)

        def log_weight(row: Integers, sizes: Floats) -> Floats:
            found = [tilted.log_total(row, sizes) - top for tilted in self._sums]
            return np.asarray(special.logsumexp(found, axis=0))

        return CountLaws.of(cells, log_weight)

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        """The laws of the counts of groups of categories, and of their probabilities; of no group
        that holds all categories, or none.
        """
        prior, own = self.categories.prior, [list(group) for group in groups]
        alpha = np.array([prior[group].sum() for group in own])
        others = np.array([np.delete(prior, group).sum() for group in own])
        laws, mixtures = self._laws(own, alpha, others)
        return [(laws.chosen(np.array([at])), mixtures[at]) for at in range(len(own))]

    def _sides(self, groups: Groups | None) -> tuple[Parts, Parts]:
        """Groups and what is beside each of them; None for single categories."""
        if groups is None:
            return None, None
        own = [self._times_in(group) for group in groups]
        return [part_of(times) for times in own], [part_of(self._times - times) for times in own]

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
        sums, (parts, others) = self._sums, self._sides([inside.tolist()])
        bins = Bins(*np.ones((3, 1)))  # only the weights of all are asked for
        laws = [tilted.sums.of(parts) for tilted in sums]
        outlines = [own.outline for own in laws]
        beside = [beside_of(x, o, others, bins) for x, o in zip(sums, outlines, strict=True)]
        times = self._times_in(inside.tolist())
        known = [tilted.counts.log_sum(times, self._origin) for tilted in sums]
        seeds = [rest.seeds(outline) for rest, outline in zip(beside, outlines, strict=True)]
        seeds += [own.seeds() for own in laws]
        lowest = max(min(float(outline.low[0]) for outline in outlines), 0.0)
        highest = max(float(outline.high[0]) for outline in outlines)
        ends = np.floor(np.clip(np.concatenate(seeds, axis=None), lowest, highest))
        every = np.unique(np.append(ends, [lowest, highest])).astype(np.int64)

        def log_weight(sizes: Floats) -> Floats:
            flat = np.ravel(np.asarray(sizes, dtype=np.float64))
            found = [
                log_or_nothing(rest.weights(np.zeros(flat.size, dtype=np.int64), flat))
                + (rest.log_scale + tilted.counts.tilt * flat - own)
                for tilted, rest, own in zip(sums, beside, known, strict=True)
            ]
            whole = np.maximum(special.logsumexp(found, axis=0), NOTHING)
            return np.asarray(whole).reshape(np.shape(sizes))

        heights = log_weight(every.astype(np.float64))
        seen = np.flatnonzero(heights > NOTHING / 2)
        first, last = max(int(seen[0]) - 1, 0), min(int(seen[-1]) + 1, every.size - 1)
        total = Total(int(every[first]), int(every[last]), log_weight, every[first : last + 1])
        if total.highest - total.lowest <= _LONGEST_TABLE:
            total = total.tabulated()  # asked for far more often than there are sums
        return CountsGivenNoise(self.categories.chosen(inside), total)

    def sample(self, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the true counts, shape `(draws, k)`."""
        if self._private is not None:
            return self._private.sample(self._leaf, draws, rng)
        return self.sample_sums([[i] for i in range(self.categories.k)], draws, rng)

    def sample_sums(self, groups: Groups, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the sums of groups, which have every category once."""
        sums, parts = self._sums, [part_of(self._times_in(group)) for group in groups]
        shares = special.softmax([tilted.log_evidence for tilted in sums])
        numbers = rng.multinomial(draws, shares).tolist()
        found = []
        for tilted, number in zip(sums, numbers, strict=True):
            if not number:
                continue
            law = CountLaws.of(tilted.size_cells, tilted.log_total)
            sizes = law.draw(np.zeros(number, dtype=np.int64), rng)
            found.append(DrawsGivenSum(tilted.sums, parts).of(sizes, rng))
        drawn = np.concatenate(found)
        return drawn if len(found) == 1 else rng.permutation(drawn)


def _start(beside: list[Beside], own: list[SumLaws]) -> Cells:
    """Cells that begin wherever the weight of a law may have a peak."""
    outlines, starts = [laws.outline for laws in own], []
    for laws, rest, outline in zip(own, beside, outlines, strict=True):
        seeds = rest.seeds(outline)
        row = np.repeat(np.arange(len(seeds)), seeds.shape[1])
        starts += [laws.starts(), (row, seeds.ravel())]
    row, first = (np.concatenate(each) for each in zip(*starts, strict=True))
    low = np.min([outline.low for outline in outlines], axis=0)
    high = np.max([outline.high for outline in outlines], axis=0)
    narrow = [np.minimum(s.narrow, b.narrow) for s, b in zip(outlines, beside, strict=True)]
    return cells_between(row, first, low, high, np.max(narrow, axis=0))


def _check_agree(sums: list[TiltedSums], log_sums: Floats) -> None:
    """Warn where what all counts of a category weigh is not the same for all categories: each has
    it from other sums, and their lattices, cuts and tilts are good where all agree.
    """
    log_evidence = special.logsumexp([tilted.log_evidence for tilted in sums])
    off = float(np.abs(log_sums - log_evidence).max())
    if off > _DISAGREE:
        warn(
            "the posterior given noise on the counts may be less exact than the 1e-2 that is"
            f" stated: sums that should agree differ by a share of {off:.2g}.",
        )
