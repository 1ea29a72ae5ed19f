"""The promise that a release makes to the records that it was made from."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.mechanisms.neighbours import Distance, Relation, relation_of
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, PrivacyLoss
from opendp_bayes.release_format.labels import identity

#: The measures of promises, and the loss that each states. The names are this format's own, and
#: stay what they are in JSON, whatever OpenDP calls its measures.
MEASURES: dict[str, Literal["epsilon", "rho"]] = {
    "MaxDivergence": "epsilon",
    "Approximate(MaxDivergence)": "epsilon",
    "ZeroConcentratedDivergence": "rho",
    "Approximate(ZeroConcentratedDivergence)": "rho",
}
#: The measure of a promise of nothing.
_NOT_STATED = "not stated"

P = TypeVar("P", bound="Guaranteed")


@dataclass(frozen=True)
class PrivacyGuarantee:
    """A privacy loss, and the data sets between which it holds. All of it is public.

    Attributes
    ----------
    size : int or None
        The public number of records under change-one neighbours; None under add/remove, where it is
        private.
    d_in : int or Distance
        The distance between neighbouring data sets that `loss` is for, in records changed, or added
        and removed; a `Distance` of the counts where the number does not say all.
    loss : PrivacyLoss
        Certified upper bounds on the privacy loss (`PrivacyLoss`).
    measure : str
        The privacy measure that the release was made under, by its name in `MEASURES`.
    truncated : bool
        Whether the rows of each identifier were limited before they were counted, so that what is
        estimated is the rows that were kept (`docs/limits.md`).
    kept : str
        Which rows were kept, where other releases may be of the same ones: by a fixed rule, such as
        "the first 2 rows of each person", or drawn once for all questions of a survey. Empty where
        they were drawn for this release alone, or the rule is not known.

    Examples
    --------
    >>> from opendp_bayes import PrivacyLoss, PrivacyGuarantee
    >>> loss = PrivacyLoss(epsilon=0.5, rho=0.125, range=1.0)
    >>> guarantee = PrivacyGuarantee(None, 1, loss, "MaxDivergence")
    >>> guarantee.relation, guarantee.loss.epsilon, guarantee.loss.delta
    ('add/remove', 0.5, 0.0)
    """

    size: int | None
    d_in: int | Distance
    loss: PrivacyLoss
    measure: str
    truncated: bool = False
    kept: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_in", Distance.of(self.d_in).stated)

    @classmethod
    def none(cls, size: int | None) -> "PrivacyGuarantee":
        """No guarantee: of noisy counts whose privacy is for others to state."""
        return cls(None if size is None else as_size(size), 1, NO_BOUND, _NOT_STATED)

    @property
    def is_stated(self) -> bool:
        """False where nothing is promised (`none`)."""
        return self.measure != _NOT_STATED

    @property
    def is_concentrated(self) -> bool:
        """True if the measure states ρ, and not ε."""
        return MEASURES.get(self.measure) == "rho"

    @property
    def distance(self) -> Distance:
        """The distance `d_in`, always as a `Distance`."""
        return Distance.of(self.d_in)

    @property
    def relation(self) -> Relation:
        """The neighbour relation: `"change-one"` or `"add/remove"`."""
        return relation_of(self.size)


class Guaranteed:
    """A frozen dataclass with a `guarantee`: its fields by short names, copies, and equality.

    Two are equal where their fields are, and their labels by type and value.
    What a property of a subclass has computed and kept is left out of copies and pickles, which
    hold the fields alone.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    guarantee: PrivacyGuarantee

    @property
    def size(self) -> int | None:
        """The public number of records; None where it is private."""
        return self.guarantee.size

    @property
    def d_in(self) -> int | Distance:
        """The distance between neighbouring data sets that `loss` is for."""
        return self.guarantee.d_in

    @property
    def loss(self) -> PrivacyLoss:
        """Certified upper bounds on the privacy loss."""
        return self.guarantee.loss

    @property
    def epsilon(self) -> float:
        """Upper bound on ε, holding together with `delta`."""
        return self.guarantee.loss.epsilon

    @property
    def delta(self) -> float:
        """The δ that goes with `epsilon`; 0 for a pure guarantee."""
        return self.guarantee.loss.delta

    @property
    def rho(self) -> float:
        """Upper bound on ρ of zero-concentrated differential privacy."""
        return self.guarantee.loss.rho

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._told_apart() == other._told_apart()

    def __hash__(self) -> int:
        return hash(self._told_apart())

    def _told_apart(self) -> Hashable:
        """All fields, labels by the identity of each."""
        return tuple(identity(getattr(self, field.name)) for field in fields(self))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
