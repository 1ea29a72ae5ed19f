"""The contract between a mechanism and everything that uses it: the sampler, the accountant, the
OpenDP constructors, the release.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_scale
from opendp_bayes.mechanisms.laws import AdditiveNoise, Law
from opendp_bayes.mechanisms.neighbours import default_total
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss


@runtime_checkable
class Mechanism(Protocol):
    """A private way to release counts, as a frozen dataclass whose fields are plain data (they are
    written to JSON).

    A mechanism never sees data except through `log_pmf` and `sample`; whatever else it computes
    depends on public quantities only. `size` is the public number of records under change-one
    neighbours, or `None` under add/remove, where it is private.

    `docs/extending.md` shows how to write one, and how a separately installed package registers it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    #: The name users type: snake case, unique among installed mechanisms.
    name: ClassVar[str]

    @property
    def scale(self) -> float:
        """Noise scale, a field; `dataclasses.replace(mechanism, scale=...)` must work for any
        number from 2^-40 to 2^60.
        """

    # Not checked by isinstance, so that a class that is not frozen is refused for that reason.
    if TYPE_CHECKING:

        def __hash__(self) -> int:
            """Hash by value: equal values are one mechanism, so results for one serve the other."""

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the mechanism cannot be used for this size and this prior, of shape
        `(k,)`. Called at construction.

        What makes only a scale useless belongs in a method `check_informative` with the same
        arguments, which is asked before a release: a search for a scale builds at all of them.
        """

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Every candidate, shape `(c, k)`, and the logarithm of its probability given `counts`,
        shape `(c,)`; `ValueError` if not enumerable.
        """

    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1, /) -> Integers:
        """Make independent releases, shape `(draws, k)`, with randomness from a CSPRNG.

        Total: any non-negative `counts` that satisfy `check` give a result; nothing but the result
        depends on them. The number is handed over by its place: mechanisms of this package call it
        `size`, as users do.
        """

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """Certified loss between data sets at distance `d_in` (records changed, or added and
        removed), including every numerical error.

        Non-decreasing in `d_in` and zero at 0. Mechanisms of this package take a `Distance` too,
        which tells how far single counts move. `delta` is what the caller is ready to spend; a
        mechanism with a pure guarantee ignores it.
        """


@runtime_checkable
class Lawful(Mechanism, Protocol):
    """A mechanism that also states its law: built-in ones do, and others may.

    Where a mechanism has these, a release keeps what was drawn, and inference and planning follow
    from the law. Its losses do not, unless it is built in: `docs/extending.md`.
    """

    def law(self, size: int | None, prior: Floats) -> Law:
        """Law of the draws, for `size` records (None where private); prior `(k,)`."""

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1, /) -> Integers:
        """Draw before anything is made to look like counts: integers, shape `(draws, k)`."""

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Turn draws, shape `(..., k)`, into the counts that are released."""


class DrawnCounts(ABC):
    """A lawful mechanism that releases what it draws, made into counts. Subclasses are frozen
    dataclasses with a `scale`.
    """

    scale: float

    def __post_init__(self) -> None:
        # A float, whatever number was given.
        object.__setattr__(self, "scale", as_scale(self.scale))

    @abstractmethod
    def law(self, size: int | None, prior: Floats) -> Law:
        """Law of the draws, for `size` records (None where private); prior `(k,)`."""

    @abstractmethod
    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw exactly, shape `(draws, k)`."""

    @abstractmethod
    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Project draws, shape `(..., k)`, to counts; `size` is the number of records if public.

        Post-processing, on which no loss depends.
        """

    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """`draws` releases, shape `(draws, k)`: draws made to look like counts."""
        return self.project(self.draw(counts, prior, draws), int(as_counts(counts).sum()))


def is_lawful(mechanism: Mechanism) -> TypeGuard[Lawful]:
    """True if a mechanism states its law, and no subclass draws in another way beneath it."""
    if not all(hasattr(mechanism, method) for method in ("law", "draw", "project")):
        return False  # isinstance would look at every name of both protocols
    return _depth(mechanism, "law") <= min(
        _depth(mechanism, method) for method in ("draw", "sample", "log_pmf")
    )


def law_of(mechanism: Mechanism, size: int | None, prior: Floats) -> Law | None:
    """The law of a mechanism; None for one that does not state it."""
    return mechanism.law(size, prior) if is_lawful(mechanism) else None


def drawn_by(mechanism: Mechanism, counts: Integers, prior: Floats, draws: int = 1) -> Integers:
    """Draw, shape `(draws, k)`, by `sample` where the mechanism has no other draws."""
    if is_lawful(mechanism):
        return mechanism.draw(counts, prior, draws)
    return mechanism.sample(counts, prior, draws)


def noises_every_count(mechanism: Mechanism) -> bool:
    """True if the mechanism adds independent noise to every count whatever their number of records.
    Then the cells of a table, whose numbers of records are private, can be released at once.
    """
    try:
        law = law_of(mechanism, None, np.ones(2))
    except ValueError:  # it needs a public number of records
        return False
    return isinstance(law, AdditiveNoise) and all(law.noised)


def default_options(kind: type[Mechanism], size: int | None) -> dict[str, str]:
    """Options of a kind of mechanism that follow from whether the number of records is public."""
    total = kind.__dataclass_fields__.get("total")
    # A total of None follows from the number of records by itself.
    return {} if total is None or total.default is None else {"total": default_total(size)}


def _depth(mechanism: Mechanism, method: str) -> int:
    """Place among the base classes of a mechanism, from the class itself on, where a method is
    defined.
    """
    kinds = type(mechanism).__mro__
    return next(depth for depth, kind in enumerate(kinds) if method in vars(kind))
