"""Different records of the same probabilities, each released with its own noise:
Dirichlet-multinomial counts in several data sets, by Fourier transforms of several axes.

A category whose releases have the counts x_r, with the sum s, has the weight
`Γ(prior + s) prod_r f_r(drawn_r - x_r) / x_r!`. The weight of the counts of all categories is the
product of these and of `prod_r n_r! / Γ(A + n)`, for the numbers of records n_r with the sum n and
the sum A of the prior.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.dense_tables import JointLaw
from opendp_bayes.inference.convolution.noisy_data_sets import NoisyDataSet
from opendp_bayes.inference.convolution.parts_of_different_records import of_private, of_public
from opendp_bayes.inference.engines.engine import ByDraws, IndependentDraws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, varied
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.mixtures_of_counts import grouped
from opendp_bayes.mathematics.validation import Floats, Integers

#: Draws behind what is told of merged categories, and of some among themselves.
_DRAWS = 40_000


class DifferentRecords(ByDraws):
    """The counts of all records together, and the probabilities, given those of each release with
    noise.

    The numbers of records of all releases are public, or those of two are private. Raises
    `ValueError` where the tables are too large, or the draws too far from any counts.
    """

    def __init__(self, data_sets: Sequence[NoisyDataSet], prior: Floats) -> None:
        self.prior = prior
        sizes = [each.size for each in data_sets if each.size is not None]
        if sizes:
            self._parts, self._shares = [of_public(data_sets, sizes, prior)], np.ones(1)
        else:
            self._parts, self._shares = of_private(data_sets[0], data_sets[1], prior)

    @cached_property
    def _found(self) -> list[JointLaw]:
        """For every category, of all parts; the weights sum to 1."""
        parts = zip(*(part.joint_laws() for part in self._parts), strict=True)
        return [JointLaw.joined(part, self._shares) for part in parts]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        mixtures = []
        for alpha, one in zip(self.prior.tolist(), self._found, strict=True):
            others = float(self.prior.sum()) - alpha
            a, b = varied(alpha + one.counts, others + one.left, one.variance)
            row = np.zeros(a.size, dtype=np.int64)
            mixtures.append(grouped(a, b, one.weights, a - alpha, b - others, row)[0])
        return BetaMixtures.joined(mixtures)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the counts of all categories."""
        laws = [CountLaws.of_rows(one.counts[:, None], one.weights) for one in self._found]
        return CountLaws.joined(laws)

    @cached_property
    def records(self) -> CountLaws:
        """The law of the number of all records."""
        laws = [part.number_law() for part in self._parts]
        rows = np.concatenate([numbers for numbers, _ in laws])[:, None]
        pairs = zip(laws, self._shares, strict=True)
        return CountLaws.of_rows(rows, np.concatenate([share * law for (_, law), share in pairs]))

    @cached_property
    def drawn(self) -> IndependentDraws:
        """Draws behind what is told of merged categories, and of some among themselves."""
        drawn = self.sample(_DRAWS, np.random.default_rng(0))
        return IndependentDraws(drawn, prior=self.prior)

    def sample(self, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts, shape `(draws, k)`."""
        pairs = zip(self._parts, rng.multinomial(draws, self._shares).tolist(), strict=True)
        drawn = np.concatenate([part.sample(number, rng) for part, number in pairs if number])
        return drawn if len(self._parts) == 1 else rng.permutation(drawn)
