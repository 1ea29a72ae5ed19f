"""The contract between a mechanism and everything that uses it: the sampler, the accountant, the
OpenDP constructors, the release.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss


@runtime_checkable
class Mechanism(Protocol):
    """A private way to release counts, as a frozen dataclass whose fields are plain data (they are
    written to JSON).

    A mechanism never sees data except through `log_pmf` and `sample`; whatever else it computes
    depends on public quantities only. `size` is the public number of records under change-one
    neighbours, or `None` under add/remove, where it is private.

    `docs/plugins.md` shows how to write one, and how a separately installed package registers it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    #: The name users type: snake case, unique among installed mechanisms.
    name: ClassVar[str]

    @property
    def scale(self) -> float:
        """Noise scale, a field; `dataclasses.replace(mechanism, scale=...)` must work for any
        number from 2^-40 to 2^60.
        """
        ...

    if (
        TYPE_CHECKING
    ):  # not checked by isinstance, so that a class that is not frozen is refused for that reason

        def __hash__(self) -> int:
            """Equal values are one mechanism: what is computed for it is kept."""
            ...

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the mechanism cannot be used for this size and this prior, of shape
        `(k,)`. Called at construction.
        """
        ...

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Every candidate, shape `(c, k)`, and the logarithm of its probability given `counts`,
        shape `(c,)`; `ValueError` if not enumerable.
        """
        ...

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` independent releases, shape `(size, k)`, with randomness from a CSPRNG.

        Total: any non-negative `counts` that satisfy `check` give a result; nothing but the result
        depends on them.
        """
        ...

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """Certified loss between data sets at distance `d_in` (records changed, or added and
        removed), including every numerical error.

        Non-decreasing in `d_in` and zero at 0. `delta` is what the caller is ready to spend; a
        mechanism with a pure guarantee ignores it.
        """
        ...
