"""The posterior of the true counts and of the probabilities, given counts with additive noise.

The weights of the counts are a product over the categories but for their sum, so that the law of
one count, given the sum, needs the law of the sum of the others: a convolution. Nothing is drawn.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from opendp_bayes.inference.convolution.noised_categories import Categories
from opendp_bayes.inference.convolution.number_of_records import Total, private, public
from opendp_bayes.inference.convolution.one_tilt import Tilted
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.engines.merged import Groups, Merged, summed
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.grouped_components import Components
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Numbers of records that weigh less than `exp(-_DEPTH)` of all are left out.
_DEPTH = 26.0
#: Weights of sums of some categories are tabulated up to so many sums, so many at a time.
_LONGEST_TABLE, _BLOCK = 1 << 16, 1 << 10
#: The most tilts for one private number of records.
_MOST_PARTS = 300


class CountsGivenNoise:
    """The true counts and the probabilities of k >= 2 categories, given what was drawn.

    The prior of the probabilities is Dirichlet; the counts are multinomial; `drawn` are the counts
    and independent noise.

    Parameters
    ----------
    drawn : counts with noise, integers of shape `(k,)`, which may be negative.
    prior : concentration of the Dirichlet prior, shape `(k,)`.
    noise : law of the noise.
    noised : which entries of `drawn` count, shape `(k,)`; by default all.
    size : the public number of records, which the true counts sum to; None if it is private.
    size_prior : of a private number, a frozen discrete distribution of scipy; by default every
        number is equally probable.

    Raises `ValueError` where nothing bounds a private number of records.

    Every mean and standard deviation is within 1e-3 of the standard deviation, and every cumulative
    probability within 1e-3; mostly much nearer.
    """

    def __init__(
        self,
        drawn: ArrayLike,
        prior: ArrayLike,
        noise: IntegerNoise,
        *,
        noised: ArrayLike | None = None,
        size: int | None = None,
        size_prior: Any = None,
    ) -> None:
        known = np.ones(np.shape(drawn), dtype=bool) if noised is None else np.asarray(noised, bool)
        drawn = np.where(known, np.asarray(drawn, dtype=np.int64), 0)
        categories = Categories(drawn, known, np.asarray(prior, dtype=np.float64), noise)
        self._set(categories, _total(categories, size, size_prior))

    @classmethod
    def of_looks(cls, looks: Sequence[Categories], size: int | None) -> "CountsGivenNoise":
        """The same for counts that were drawn several times, each with noise of its own.

        The prior is that of the first.
        """
        categories = replace(looks[0], also=tuple(looks[1:]))
        return cls._of(categories, _total(categories, size, None))

    @classmethod
    def _of(cls, categories: Categories, total: Total) -> "CountsGivenNoise":
        made = cls.__new__(cls)
        made._set(categories, total)
        return made

    def _set(self, categories: Categories, total: Total) -> None:
        self.categories, self._total = categories, total
        index: dict[tuple[float, ...], int] = {}
        keys = zip(*(column.tolist() for column in categories.columns), strict=True)
        self._row = np.array([index.setdefault(key, len(index)) for key in keys])
        self._first = np.unique(self._row, return_index=True)[1]
        self._origin = np.clip(categories.drawn[self._first], 0, total.highest)
        self._parts = self._covering(total)
        evidence = [part.log_evidence for part in self._parts] if len(self._parts) > 1 else [0.0]
        self._shares = special.softmax(evidence)

    def _covering(self, total: Total) -> list[Tilted]:
        """Parts of the total, each with a tilt of its own, that hold all that it weighs."""
        rows = self.categories.chosen(self._first)
        parts: list[Tilted] = []
        gaps: list[tuple[Total, float, float | None]] = [(total, 0.0, None)]
        best = NOTHING
        while gaps:
            if len(parts) > _MOST_PARTS:
                raise ValueError(
                    f"prior: its concentration, {self.categories.prior.sum():g}, is too large for "
                    "this uncertain a private number of records; give a narrower size_prior."
                )
            gap, tilt, bounding = gaps.pop()
            if not gap.seeds.size:
                continue
            if bounding is not None and self._bound(rows, gap, bounding) < best - _DEPTH:
                continue
            part = Tilted(rows, self._row, gap, self._origin, tilt)
            if total.is_point:
                return [part]
            best = max(best, part.log_evidence)
            if part.log_evidence < best - _DEPTH:
                continue  # and what is beside it in the gap is still further away
            parts.append(part)
            below, above = part.log_ends() > best - _DEPTH
            lower, upper = part.end_tilts()
            if gap.lowest < part.total.lowest and (below or part.reaches_zero):
                beside = gap.between(gap.lowest, part.total.lowest - 1)
                gaps.append((beside, part.tilt, None if below else lower))
            if part.total.highest < gap.highest and (above or part.reaches_zero):
                beside = gap.between(part.total.highest + 1, gap.highest)
                gaps.append((beside, part.tilt, None if above else upper))
        parts = [part for part in parts if part.log_evidence > best - _DEPTH]
        return sorted(parts, key=lambda part: part.total.lowest)

    def _bound(self, rows: Categories, gap: Total, tilt: float) -> float:
        """An upper bound of the logarithm of what a gap weighs (Chernoff's)."""
        most = gap.most(tilt)
        if np.isinf(most):
            return most
        windows = Windows.of(rows, tilt, gap.highest + gap.margin)
        return windows.log_sum(np.bincount(self._row), self._origin) + most

    @cached_property
    def _marginals(self) -> tuple[CountLaws, BetaMixtures]:
        others = _sums_of_others(self.categories.prior)[self._first]
        found = [part.marginals(others) for part in self._parts]
        rows = range(self._first.size)
        laws = [CountLaws.mixed([laws[row] for laws, _ in found], self._shares) for row in rows]
        return CountLaws.joined(laws), self._mixtures([parts for _, parts in found])

    def _mixtures(self, parts: list[list[Components]]) -> BetaMixtures:
        """Of components of every row, for each part of the total."""
        rows = len(parts[0])
        flat = [row for part in parts for row in part]
        owner = np.repeat(np.tile(np.arange(rows), len(parts)), [row.a.size for row in flat])
        share = np.repeat(self._shares, [sum(row.a.size for row in part) for part in parts])
        order = np.argsort(owner, kind="stable")
        a, b, weights = (
            np.concatenate([getattr(row, name) for row in flat])[order]
            for name in ("a", "b", "weights")
        )
        key = np.concatenate([row.key for row in flat])[order]
        return BetaMixtures.grouped(a, b, weights * share[order], key, owner[order])

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        return self._marginals[1].chosen(self._row)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the true counts of all categories."""
        return self._marginals[0].chosen(self._row)

    @cached_property
    def size(self) -> CountLaws:
        """The law of the number of records."""
        return CountLaws.mixed([part.size for part in self._parts], self._shares)

    @cached_property
    def log_evidence(self) -> float:
        """`ln P(drawn)`, with a public or a private number of records."""
        prior, rows = self.categories.prior, self.categories.chosen(self._first)
        constant = special.gammaln(prior.sum()) - special.gammaln(prior).sum()
        constant += np.bincount(self._row) @ rows.log_absolute(self._origin)
        return float(special.logsumexp([part.log_evidence for part in self._parts]) + constant)

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the true counts, shape `(size, k)`."""
        sizes = rng.multinomial(size, self._shares)
        pairs = zip(self._parts, sizes.tolist(), strict=True)
        drawn = np.concatenate([part.sample(count, rng) for part, count in pairs if count])
        return drawn if len(self._parts) == 1 else rng.permutation(drawn)

    def sample_sums(self, groups: Groups, size: int, rng: np.random.Generator) -> Integers:
        return summed(self.sample(size, rng), groups)

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixture]]:
        """The laws of the counts of groups of categories, and of their probabilities; of no group
        that holds all categories, or none.
        """
        every = np.arange(self.categories.k)
        inside = np.stack([np.isin(every, group) for group in groups])
        found = [part.merged(inside) for part in self._parts]
        laws = [[law for law, _ in part] for part in found]
        mixtures = self._mixtures([[components for _, components in part] for part in found])
        return [
            (CountLaws.mixed(list(each), self._shares), mixtures[i])
            for i, each in enumerate(zip(*laws, strict=True))
        ]

    def merged(self, groups: Groups) -> Merged:
        """The counts and the probabilities of groups of categories; every category is in one
        group, and no group holds all.
        """
        return Merged(self, groups)

    def given(self, categories: Sequence[int]) -> "CountsGivenNoise | Merged":
        """The posterior of some categories among themselves: of their counts, and of their
        probabilities divided by the sum of these. At least two.

        It is that of a private number of records, whose weight is what the other categories and the
        number of all records say of it.
        """
        inside = np.isin(np.arange(self.categories.k), categories)
        some = self if np.all(inside) else self._some(inside)
        order = np.argsort(np.argsort(categories))
        return some if np.all(np.diff(order) > 0) else some.merged([[i] for i in order.tolist()])

    def _some(self, inside: NDArray[np.bool_]) -> "CountsGivenNoise":
        seeds = np.unique(np.concatenate([part.sums_of_some(inside) for part in self._parts]))
        weights = [part.weight_of_rest(inside) for part in self._parts]

        def log_weight(sums: Floats) -> Floats:
            sums = np.asarray(sums, dtype=np.float64)
            found = [weight(sums) for weight in weights]
            return np.maximum(special.logsumexp(found, axis=0), NOTHING)

        total = Total(int(seeds[0]), int(seeds[-1]), log_weight, seeds)
        if total.highest - total.lowest <= _LONGEST_TABLE:
            total = _tabulated(total)  # asked for far more often than there are sums
        return CountsGivenNoise._of(self.categories.chosen(np.flatnonzero(inside)), total)


def _total(categories: Categories, size: int | None, size_prior: Any) -> Total:
    concentration = float(categories.prior.sum())
    return private(categories, size_prior) if size is None else public(size, concentration)


def _sums_of_others(values: Floats) -> Floats:
    """The sum of all values but each, without a difference."""
    before = np.cumsum(np.append(0.0, values[:-1]))
    after = np.cumsum(np.append(0.0, values[:0:-1]))[::-1]
    return np.asarray(before + after)


def _tabulated(total: Total) -> Total:
    """The same with weights from a table of those of whole numbers, linear in between."""
    sums = np.arange(total.lowest, total.highest + 1, dtype=np.float64)
    parts = np.array_split(sums, sums.size // _BLOCK + 1)
    table = np.concatenate([total.log_weight(part) for part in parts])

    def upper(lowest: int, highest: int) -> float:
        return float(table[lowest - total.lowest : highest - total.lowest + 1].max())

    return replace(total, log_weight=lambda sizes: np.interp(sizes, sums, table), upper=upper)
