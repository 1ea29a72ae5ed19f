"""The union of different records of the same probabilities, each released with noise of its own.

A category whose releases have the counts x_r, with the sum s, has the weight
`Γ(prior + s) prod_r f_r(drawn_r - x_r) / x_r!`. The weight of the counts of all categories is the
product of these and of `prod_r n_r! / Γ(A + n)`, for the numbers of records n_r with the sum n and
the sum A of the prior.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.dense_tables import FEW_LEFT, Given
from opendp_bayes.inference.convolution.looks import NoisyDataSet
from opendp_bayes.inference.convolution.parts_of_different_records import of_private, of_public
from opendp_bayes.inference.engines.true_counts import ByDraws, Drawn
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.mixtures_of_counts import grouped
from opendp_bayes.mathematics.validation import Floats, Integers

_SMALLEST = 1e-6
#: Draws behind what is told of merged categories, and of some among themselves.
_DRAWS = 40_000


class Union(ByDraws):
    """The counts of the union, and the probabilities, given counts with noise of each release.

    The numbers of records of all releases are public, or those of two are private. Raises
    `ValueError` where the tables are too large, or the draws too far from any counts.
    """

    def __init__(self, looks: Sequence[NoisyDataSet], prior: Floats) -> None:
        self.prior = prior
        self._sizes = [look.size for look in looks if look.size is not None]
        if self._sizes:
            self._parts, self._shares = [of_public(looks, self._sizes, prior)], np.ones(1)
        else:
            self._parts, self._shares = of_private(looks[0], looks[1], prior)

    @cached_property
    def _found(self) -> list[list[Given]]:
        """For every category, of all parts; the weights sum to 1."""
        found: list[list[Given]] = [[] for _ in self.prior]
        for part, share in zip(self._parts, self._shares, strict=True):
            for category, given in enumerate(part.given()):
                total = sum(one.weights.sum() for one in given) / share
                found[category] += [replace(one, weights=one.weights / total) for one in given]
        return [_joined(given, float(self.prior.sum())) for given in found]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        mixtures = []
        for alpha, given in zip(self.prior.tolist(), self._found, strict=True):
            components = [(*self._betas(alpha, one), one.weights, one.counts) for one in given]
            a, b, weights, counts = map(np.concatenate, zip(*components, strict=True))
            mixtures.append(grouped(a, b, weights, counts, b, np.zeros(a.size, dtype=np.int64))[0])
        return BetaMixtures.joined(mixtures)

    def _betas(self, alpha: float, given: Given) -> tuple[Floats, Floats]:
        """The parameters of the probability given its count."""
        whole, a = float(self.prior.sum()), np.asarray(alpha + given.counts, dtype=np.float64)
        if self._sizes or given.left is not None:
            left = sum(self._sizes) - given.counts if given.left is None else given.left
            return a, np.asarray(whole - alpha + left + np.zeros_like(a))
        # Mean and variance over the numbers of records; the mean no larger than where no record is
        # in another category, the variance no smaller than that of the mean number.
        mean = np.minimum(a * given.inverse, a / (a + whole - alpha))
        spread = mean * (1 - mean)
        least = spread / (1 / given.inverse + 1)
        variance = np.maximum(a * (a + 1) * given.inverse_square - mean**2, least)
        more = np.maximum(spread / variance - 1, _SMALLEST)
        return np.asarray(mean * more), np.asarray((1 - mean) * more)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the counts of all categories."""
        laws = []
        for given in self._found:
            counts = np.concatenate([one.counts for one in given])
            weights = np.concatenate([one.weights for one in given])
            laws.append(CountLaws.of_rows(counts[:, None], weights))
        return CountLaws.joined(laws)

    @cached_property
    def size(self) -> CountLaws:
        """The law of the number of all records."""
        if self._sizes:
            return CountLaws.of_number(sum(self._sizes))
        laws = [part.number_law() for part in self._parts]
        rows = np.concatenate([numbers for numbers, _ in laws])[:, None]
        pairs = zip(laws, self._shares, strict=True)
        return CountLaws.of_rows(rows, np.concatenate([share * law for (_, law), share in pairs]))

    @cached_property
    def drawn(self) -> Drawn:
        """Draws behind what is told of merged categories, and of some among themselves."""
        drawn = self.sample(_DRAWS, np.random.default_rng(0))
        return Drawn(drawn, self.prior)

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts, shape `(size, k)`."""
        sizes = rng.multinomial(size, self._shares)
        pairs = zip(self._parts, sizes.tolist(), strict=True)
        drawn = np.concatenate([part.sample(number, rng) for part, number in pairs if number])
        return drawn if len(self._parts) == 1 else rng.permutation(drawn)


def _joined(given: list[Given], concentration: float) -> list[Given]:
    """Join entries with equal counts in a category and in the others, where these are given."""
    near = [(one.counts, one.left, one.weights) for one in given if one.left is not None]
    if not near:
        return given
    counts = np.concatenate([own for own, _, _ in near])
    left = np.concatenate([rest for _, rest, _ in near])
    weights = np.concatenate([law for _, _, law in near])
    first = int(counts.min())
    places = (counts - first) * FEW_LEFT + left
    law = np.asarray(np.bincount(places, weights), dtype=np.float64)
    seen = np.flatnonzero(law)
    counts, left = first + seen // FEW_LEFT, seen % FEW_LEFT
    inverse = 1 / (concentration + counts + left)
    together = Given(counts, law[seen], inverse, inverse / (1 / inverse + 1), left)
    return [together, *(one for one in given if one.left is None)]
