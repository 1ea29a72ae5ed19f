"""The data of a release whose categories nobody listed: all that inference and reports read."""

from dataclasses import dataclass

from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.privacy_guarantee import Guaranteed, PrivacyGuarantee
from opendp_bayes.unlisted.thresholds import Discovery


@dataclass(frozen=True, eq=False)
class DiscoveredData(Guaranteed):
    """Noisy counts of the categories that were discovered. Plain data: everything here may be
    published.

    Attributes
    ----------
    column : str
        That was asked.
    categories : tuple[str or int or bool, ...]
        The labels: those that were listed, in their order, then those that were discovered, sorted
        by value.
    noisy_counts : tuple[int, ...]
        The noisy count of each; of a discovered one it is at least the threshold.
    listed : int
        The number of labels that were listed, and are shown whatever their count.
    discovery : Discovery
        The law of the noise, its threshold, and the noise of the rest (`Discovery`).
    noisy_rest : int or None
        The noisy number of records of all hidden categories together; None where it was not bought.
    guarantee
        Neighbours, privacy loss and measure (`PrivacyGuarantee`).
    people : bool
        Whether a count is the number of people who have the category, and not of records.
    """

    column: str
    categories: tuple[Value, ...]
    noisy_counts: tuple[int, ...]
    listed: int
    discovery: Discovery
    noisy_rest: int | None
    guarantee: PrivacyGuarantee
    people: bool = False

    @property
    def k(self) -> int:
        """Number of categories that are shown."""
        return len(self.categories)

    @property
    def threshold(self) -> int:
        """The least noisy count of a category that is discovered."""
        return self.discovery.law.threshold
