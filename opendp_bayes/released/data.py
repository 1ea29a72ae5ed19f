"""The data of a release: all that inference and reports read."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.protocol import Mechanism, projected
from opendp_bayes.released.promise import Promise, Promised

#: A category's label.
Label = str | bool | int
#: A group's; None is the group of the nulls.
Key = Label | None


@dataclass(frozen=True)
class ReleasedData(Promised):
    """What a mechanism drew, from what and under which promise. Plain data: everything here may be
    published.

    Attributes
    ----------
    drawn : what the mechanism drew, an integer for each category; those of added noise may be
        negative and need not sum to the number of records.
    categories : the category labels.
    prior : concentration of the prior, one entry for each category.
    mechanism : the mechanism that made the release, with its scale.
    promise : neighbours, privacy loss and measure (`Promise`).
    """

    drawn: tuple[int, ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: Mechanism
    promise: Promise

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The released counts, one for each category: what was drawn, made to look like counts by
        the mechanism's projection.
        """
        counts = projected(self.mechanism, np.array(self.drawn, dtype=np.int64), self.size)
        return tuple(counts.tolist())

    @property
    def concentration(self) -> Floats:
        """Concentration of the released posterior, `prior + counts`, shape `(k,)`."""
        return np.array(self.prior) + np.array(self.counts)
