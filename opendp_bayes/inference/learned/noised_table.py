"""A table of counts as it was drawn, and the variables of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.envelope import check_bounds, check_same_records
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import distinct, identity, numbered

#: Counts further than this from what was drawn, `exp(-_DEPTH)` of the noise's largest mass, are
#: left out.
_DEPTH = 30.0


@dataclass(frozen=True, eq=False)
class NoisedTable:
    """Counts of k cells with independent noise, drawn once or several times.

    Attributes
    ----------
    looks : Sequence[DrawnCounts]
        Each draw with its noise, for the same counts.
    size : int or None
        The public number of records; None if it is private.
    variables : dict[str, ndarray of int]
        Of every variable, in which of its values each cell is, as numbers from 0 on, shape `(k,)`;
        one variable for a table of one column. Values that are in no order come last.
    apart : dict[str, int]
        Of every variable, how many of its values are in no order.
    """

    looks: Sequence[DrawnCounts]
    size: int | None
    variables: dict[str, Integers] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)

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
        is_bounded = all(look.is_complete for look in self.looks)
        return min(highest, max(self.size, 1)) if is_bounded else self.size

    def start(self) -> Integers:
        """Counts to begin with, shape `(k,)`."""
        return np.clip(self.looks[0].drawn, 0, self.largest)

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
        log_mass = np.zeros(counts.shape)
        for look in self.looks:
            log_mass += look.log_mass(counts, (cells, None))
        return log_mass


def table_of(releases: Sequence[ReleasedData], size: int | None) -> NoisedTable:
    """The table of `size` records that releases were drawn from.

    Raises
    ------
    ValueError
        Where a draw is not noise on counts, is out of the bounds of `docs/limits.md`, or
        contradicts another.
    """
    looks = []
    for release in releases:
        release.setting.check_learnable()
        looks.append(noise_of("releases", release))
        check_bounds(looks[-1], size)
    check_same_records(looks)
    return NoisedTable(looks, size, *_variables(releases))


def _variables(releases: Sequence[ReleasedData]) -> tuple[dict[str, Integers], dict[str, int]]:
    """In which value of each variable every cell is, those in no order last, and how many these
    are.
    """
    variables, apart = {}, {}
    columns = releases[0].values_of_axes
    for axis, (variable, values) in enumerate((columns or {"": releases[0].categories}).items()):
        unordered = {
            identity(label)
            for release in releases
            for label in (release.unordered_values(axis) if columns else release.unordered)
        }
        labels = distinct(values)
        last = np.array([identity(label) in unordered for label in labels])
        rank = np.argsort(np.argsort(last, kind="stable"))
        variables[variable], apart[variable] = (
            rank[numbered(values)],
            min(int(last.sum()), last.size - 1),
        )
    return variables, apart
