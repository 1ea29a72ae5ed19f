"""Questions that every posterior answers, of one number or of one for each category."""

from typing import Any, Protocol

from numpy.typing import ArrayLike


class Law(Protocol):
    """A distribution of one number, whose answers are numbers, or of `k`, whose answers are arrays
    of shape `(k,)`: probabilities, counts, numbers of records, quantities and differences.
    """

    def mean(self) -> Any:
        """Expected value."""
        ...

    def std(self) -> Any:
        """Standard deviation."""
        ...

    def cdf(self, values: ArrayLike) -> Any:
        """Probability of being at most the values, of shape `(...)`; of `k` numbers `(..., k)`."""
        ...

    def interval(self, level: float) -> tuple[Any, Any]:
        """Both ends of the equal-tailed interval of probability `level`."""
        ...

    def sample(self, size: int, seed: int | None = None) -> Any:
        """Draws, shape `(size,)` or `(size, k)`."""
        ...
