"""What was drawn of a table of counts, and the variables of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from opendp_bayes.inference.likelihood.of_counts import IndependentNoise, likelihood_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import identity, places_of

#: Counts further than this from what was drawn, `exp(-_DEPTH)` of the noise's largest mass, are
#: left out.
_DEPTH = 30.0


@dataclass(frozen=True, eq=False)
class NoisedTable:
    """Counts of k cells with independent noise, drawn once or several times.

    Attributes
    ----------
    looks : each draw with its noise, for the same counts.
    size : the public number of records; None if it is private.
    variables : of every variable, in which of its values each cell is, as numbers from 0 on, shape
        `(k,)`; one variable for a table of one column.
    """

    looks: Sequence[IndependentNoise]
    size: int | None
    variables: dict[str, Integers] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """Number of cells."""
        return self.looks[0].drawn.size

    @property
    def scale(self) -> float:
        """Standard deviation of the noise, but for a small factor."""
        return min(look.noise.scale for look in self.looks)

    @property
    def largest(self) -> int:
        """A number that no count exceeds but with negligible probability."""
        reach = [int(look.drawn.max()) + look.noise.reach(_DEPTH) for look in self.looks]
        highest = max(min(reach), 1)
        if self.size is None:
            return highest
        return self.size if not all(map(all, self._noised)) else min(highest, max(self.size, 1))

    @property
    def _noised(self) -> list[tuple[bool, ...]]:
        return [look.noised for look in self.looks]

    def start(self) -> Integers:
        """Counts to begin with, which have the public number of records, shape `(k,)`."""
        drawn = np.clip(self.looks[0].drawn, 0, self.largest)
        return drawn if self.size is None else nearest_counts(drawn, self.size)

    def origin(self) -> float:
        """Logarithm of a typical intensity: that of the mean of what was drawn, or what noise
        leaves visible.
        """
        mean = self.looks[0].drawn.mean() if self.size is None else self.size / self.k
        return float(np.log(max(mean, self.scale / (2 * np.sqrt(self.k)), 0.05)))

    def log_noise(self, counts: Integers, cells: Integers | slice = slice(None)) -> Floats:
        """Log-probability of what was drawn of some cells, given candidates for their counts of
        shape `(chains, cells, candidates)`; likewise shaped.
        """
        found = np.zeros(counts.shape)
        for look in self.looks:
            log_p = look.noise.log_mass(look.drawn[cells, None] - counts)
            found += np.where(np.array(look.noised)[cells, None], log_p, 0.0)
        return found


def table_of(release: ReleasedData) -> NoisedTable:
    """The table that a release was drawn from.

    Raises `ValueError` where its draw is not noise on counts.
    """
    prior: Floats = np.array(release.prior)
    likelihood = likelihood_of(release.mechanism, np.array(release.drawn), prior, release.size)
    if not isinstance(likelihood, IndependentNoise):
        raise ValueError(
            f"prior='learned': needs noise on the counts, as of KNormParameters, LaplaceParameters"
            f" or GaussianParameters; what {release.mechanism.name!r} draws depends on the prior"
            " that it was made with. Leave prior out."
        )
    return NoisedTable([likelihood], release.size, _variables(release))


def _variables(release: ReleasedData) -> dict[str, Integers]:
    """In which value of each variable every cell is."""
    columns = release.values_of_axes
    if not columns:
        return {"": np.arange(release.k)}
    found = {}
    for name, values in columns.items():
        places = places_of(values)
        found[name] = np.array([places[identity(value)] for value in values])
    return found
