"""Releases as JSON, version 2."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np

from opendp_bayes.mathematics.telling import depth_told
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism, noises_every_count, projected
from opendp_bayes.mechanisms.registry import known_mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import Key, Value
from opendp_bayes.release_format.kind_of_text import check_kind, without_mark
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

D = TypeVar("D", bound="Document")
T = TypeVar("T")
#: What must hold, and the message where it does not.
Rule = tuple[bool, str]


def field_of(description: str, **constraints: Any) -> msgspec.Meta:
    """Description of a field in the JSON schema, and the constraints that msgspec checks."""
    return msgspec.Meta(description=description, **constraints)


_NUMBERS = {"min_length": 1}
_DIFFERENT = {"extra_json_schema": {"uniqueItems": True}}
#: Draws and their sum are integers of the machine.
_LARGEST = 2**63 - 1
Draw = Annotated[int, msgspec.Meta(ge=-_LARGEST - 1, le=_LARGEST)]
_Bound = Annotated[
    Annotated[float, msgspec.Meta(ge=0)] | None, field_of("An upper bound; null is infinite.")
]


_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class MechanismDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mechanism by name."""

    name: Annotated[str, field_of("As `load_mechanism` knows it.")]
    parameters: Annotated[
        dict[str, float | str | None], field_of("Its parameters, the scale among them.")
    ]

    def value(self) -> Mechanism:
        """The mechanism; `ValueError` if it is not known or does not take these parameters."""
        kind = known_mechanism(self.name)
        try:
            return kind(**self.parameters)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"mechanism: {self.name} does not accept these parameters: {error}"
            ) from None


class LossDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A privacy loss. `None` stands for infinity, which JSON does not have."""

    epsilon: _Bound
    rho: _Bound
    range: _Bound
    delta: Annotated[float, field_of("Goes with epsilon.", ge=0, le=1)]
    method: Annotated[str, field_of("How the bounds were found.")]

    @classmethod
    def of(cls, loss: PrivacyLoss) -> "LossDocument":
        """The loss with null for infinity."""
        bounds: dict[str, Any] = {
            name: None if value == math.inf else value for name, value in asdict(loss).items()
        }
        return cls(**bounds)

    def value(self) -> PrivacyLoss:
        """The loss with infinity for null."""
        stated = msgspec.structs.asdict(self).items()
        bounds: dict[str, Any] = {
            name: math.inf if value is None else value for name, value in stated
        }
        return PrivacyLoss(**bounds)


def decoded(kind: type[T], text: str | bytes, name: str, version: int) -> T:
    """Decode a document of a format and version; `ValueError` that says what is wrong with it."""
    check_kind(text, name, version)
    try:
        return msgspec.json.decode(without_mark(text), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = name.removeprefix("opendp-bayes ")
        raise ValueError(f"text: is not a {what} in JSON: {error}") from None


class Document(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What the documents of all results have: their guarantee, and how they are read."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    format: str
    version: int
    d_in: Annotated[
        _AtLeastOne,
        field_of("Records changed, or added and removed, between the data sets of `loss`."),
    ]
    squared: Annotated[
        _AtLeastOne | None,
        field_of("The sum of the squares of what the counts move by, where less than d_in^2."),
    ] = None
    largest: Annotated[
        _AtLeastOne | None,
        field_of("The most records by which one count moves, where fewer than d_in."),
    ] = None
    loss: Annotated[LossDocument, field_of("Certified upper bounds.")]
    measure: Annotated[str, field_of("The privacy measure of the release.")]
    truncated: Annotated[
        bool, field_of("Whether rows of each identifier were limited before they were counted.")
    ] = False
    kept: Annotated[
        str, field_of("Which rows were kept; empty where they were drawn for this release.")
    ] = ""

    @classmethod
    def write(cls, guarantee: PrivacyGuarantee, **fields: Any) -> str:
        """The JSON of a result with that guarantee and the `fields` of its kind."""
        distance = guarantee.distance
        if distance != Distance.of(distance.records):
            fields |= {"squared": distance.squared, "largest": distance.largest}
        document = cls(
            format=cls.NAME,
            version=cls.VERSION,
            d_in=distance.records,
            loss=LossDocument.of(guarantee.loss),
            measure=guarantee.measure,
            truncated=guarantee.truncated,
            kept=guarantee.kept,
            **fields,
        )
        return msgspec.json.encode(document).decode()

    @classmethod
    def read(cls: type[D], text: str | bytes) -> D:
        """Read the document and check every constraint on its values; `ValueError` that names the
        field and its fault.
        """
        document = decoded(cls, text, cls.NAME, cls.VERSION)
        for holds, message in document.rules():
            if not holds:
                raise ValueError(message)
        if document.kept and not document.truncated:
            raise ValueError(
                f"kept={document.kept!r}: is of rows that were limited; truncated must be true."
            )
        return document

    def rules(self) -> list[Rule]:
        """What must hold of several fields together."""
        raise NotImplementedError

    def guarantee(self, size: int | None) -> PrivacyGuarantee:
        """The guarantee that is stated, for so many records."""
        plain = Distance.of(self.d_in)
        distance = Distance(self.d_in, self.squared or plain.squared, self.largest or plain.largest)
        loss = self.loss.value()
        return PrivacyGuarantee(size, distance, loss, self.measure, self.truncated, self.kept)


class ReleaseDocument(Document, frozen=True, kw_only=True):
    """A private release of a posterior, or of the posteriors of groups."""

    NAME: ClassVar[str] = "opendp-bayes release"
    VERSION: ClassVar[int] = 2
    format: Annotated[Literal["opendp-bayes release"], field_of("What the document is.")]
    version: Annotated[Literal[2], field_of("Of the format.")]
    categories: Annotated[
        list[Value | list[Value]],
        field_of("Labels; of a joint table, a value of each axis.", **_NUMBERS, **_DIFFERENT),
    ]
    prior: Annotated[
        list[Annotated[float, field_of("Of one category.", gt=0)]],
        field_of("Concentration of the prior, of every group.", **_NUMBERS),
    ]
    mechanism: Annotated[MechanismDocument, field_of("Made the release.")]
    size: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] | None,
        field_of("The public number of records; null where it is private."),
    ]
    axes: Annotated[list[str], field_of("The columns of a joint table.", **_DIFFERENT)] = []
    columns: Annotated[
        list[str], field_of("The columns that were counted; empty where not known.")
    ] = []
    nulls: Annotated[
        list[Value | None],
        field_of("Of each column, the label of nulls; null where none is for them alone."),
    ] = []
    unknown: Annotated[
        list[Value | None],
        field_of(
            "Of each column, the label of values that are none of its categories; null where none"
            " is for them alone."
        ),
    ] = []
    drawn: Annotated[
        list[Draw],
        field_of(
            "What the mechanism drew, one for each category; may be negative. Of groups, one group"
            " after the other, and last for the rows in no group where `size` is public.",
            **_NUMBERS,
        ),
    ]
    learned_prior: Annotated[
        bool, field_of("Whether the posterior learns its prior from the release.")
    ] = False
    ordered: Annotated[
        list[str], field_of("The variables along which a learned prior is smooth.")
    ] = []
    parts: Annotated[
        list[Annotated[list[Value | list[Value]], msgspec.Meta(min_length=1)]],
        field_of("Of merged categories, the labels that each of them stands for."),
    ] = []
    by: Annotated[list[str], field_of("The columns that make the groups.", **_DIFFERENT)] = []
    groups: Annotated[
        list[Value | list[Value | None] | None],
        field_of(
            "Labels of the groups, lists where several columns make them; null is that of the"
            " nulls. Empty for one posterior.",
            **_DIFFERENT,
        ),
    ] = []
    sizes: Annotated[
        list[int], field_of("Public numbers of records of the groups; empty where private.")
    ] = []

    @classmethod
    def of(cls, release: Any, **fields: Any) -> str:
        """The JSON of a release, of one posterior or of groups, with the fields that only its kind
        has.
        """
        mechanism = release.mechanism
        return cls.write(
            release.guarantee,
            size=release.size,
            categories=as_lists(release.categories),
            axes=list(release.axes),
            columns=list(release.columns),
            nulls=list(release.nulls),
            unknown=list(release.unknown),
            prior=list(release.prior),
            mechanism=MechanismDocument(mechanism.name, asdict(mechanism)),
            **fields,
        )

    def rules(self) -> list[Rule]:
        """What must hold of several fields together."""
        return [*self._of_labels(), *self._of_entries()]

    def _of_labels(self) -> list[Rule]:
        axes, number = len(self.axes), len(self.groups)
        tables = [len(label) if isinstance(label, list) else 0 for label in self.categories]
        lengths = {len(key) if isinstance(key, list) else 0 for key in self.groups}
        columns = len(self.by) if len(self.by) != 1 else 0
        return [
            (
                len(distinct(as_labels(self.categories))) == len(self.categories),
                f"categories={self.categories!r}: must be all different.",
            ),
            (
                set(tables) <= {axes} and len(set(self.axes)) == axes,
                f"axes={self.axes!r}: must be different, and every category a list with a value of"
                " each; without axes, every category is one value.",
            ),
            (
                not self.axes or self.columns in ([], self.axes),
                f"columns={self.columns!r}: must be the axes, {self.axes!r}, where there are any.",
            ),
            *(
                (
                    len(labels) in (0, len(self.columns or self.axes) or 1),
                    f"{name}={labels!r}: must be left out, or have a label or null for each of"
                    f" columns={self.columns!r}.",
                )
                for name, labels in (("nulls", self.nulls), ("unknown", self.unknown))
            ),
            (
                len(distinct(as_labels(self.groups))) == number
                and len(lengths) <= 1
                and (not self.by or lengths == {columns}),
                f"groups={self.groups!r}: must be all different, and all values or all lists of one"
                f" length, that of by={self.by!r} where it is more than one.",
            ),
        ]

    def _of_entries(self) -> list[Rule]:
        """An integer was drawn for each category, and no two stand for the same label."""
        k, number = len(self.categories), len(self.groups)
        cells = number * k + (self.size is not None) if number else k
        every = [label for part in self.parts for label in as_labels(part)]
        return [
            (
                k > 1 or list(map(len, self.parts)) > [1],
                f"categories={self.categories!r}: must be at least 2, or one of several parts.",
            ),
            (
                not number or not (self.learned_prior or self.parts),
                "learned_prior, parts: belong to one posterior; must be left out where there are"
                " groups.",
            ),
            (len(self.drawn) == cells, f"drawn={self.drawn!r}: must be {cells} integers."),
            (
                len(self.parts) in (0, k) and len(distinct(every)) == len(every),
                f"parts={self.parts!r}: must hold the labels that each of {k} merged categories"
                " stands for, every label once.",
            ),
            (len(self.prior) == k, f"prior={self.prior!r}: must be {k} numbers."),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `Release`, or where there are groups of `GroupedRelease`."""
        mechanism, categories = self.mechanism.value(), as_labels(self.categories)
        guarantee = self.guarantee(self.size)
        rest = [1.0] if self.groups and self.size is not None else []
        prior = np.array([*self.prior * (len(self.groups) or 1), *rest])
        if self.groups and not rest:
            if not noises_every_count(mechanism):
                raise ValueError(
                    f"mechanism={mechanism!r}: must noise every count, such as LaplaceParameters"
                    " with total='private', where there is no rest."
                )
        else:
            mechanism.check(size=self.size, prior=prior)
            check_counts(mechanism, self.drawn, self.size)
        shared = {
            "categories": categories,
            "axes": tuple(self.axes),
            "columns": tuple(self.columns),
            "nulls": tuple(self.nulls),
            "unknown": tuple(self.unknown),
            "prior": tuple(self.prior),
            "mechanism": mechanism,
            "guarantee": guarantee,
        }
        if self.groups:
            k, cells = len(categories), len(categories) * len(self.groups)
            return shared | {
                "groups": as_labels(self.groups),
                "drawn": tuple(tuple(self.drawn[at : at + k]) for at in range(0, cells, k)),
                "rest": self.drawn[-1] if rest else None,
                "sizes": tuple(self.sizes) or None,
                "grouped_by": tuple(self.by),
            }
        if self.learned_prior:
            Setting(mechanism, self.size, tuple(self.prior)).check_learnable()
        check_ordered(self.ordered, self.learned_prior, self.axes)
        return shared | {
            "drawn": tuple(self.drawn),
            "learned_prior": self.learned_prior,
            "ordered": tuple(self.ordered),
            "parts": tuple(as_labels(part) for part in self.parts),
        }


class _Format(msgspec.Struct):
    format: str = ""


def format_of(text: str | bytes) -> str:
    """Read the format that a document states; empty where it states none.

    Raises
    ------
    ValueError
        For one that is nested too deep.
    """
    try:
        with depth_told("text"):
            return msgspec.json.decode(without_mark(text), type=_Format).format
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def as_labels(values: Sequence[Any]) -> tuple[Any, ...]:
    """Labels from JSON, which has lists for tuples."""
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def check_ordered(ordered: Sequence[str], learned: bool, axes: Sequence[str]) -> None:
    """Raise `ValueError` for ordered variables that a learned prior of this table cannot have."""
    known = set(ordered) <= set(axes) if axes else len(ordered) <= 1
    if not known or (ordered and not learned):
        raise ValueError(
            f"ordered={list(ordered)!r}: must be variables of the table, {list(axes)!r}, or one"
            " name where it has one column; and only where learned_prior is true."
        )


def as_lists(labels: Sequence[Key]) -> list[Any]:
    """Labels for JSON, which has lists for tuples."""
    return [list(label) if isinstance(label, tuple) else label for label in labels]


def check_counts(mechanism: Mechanism, drawn: list[int], size: int | None) -> None:
    """Raise `ValueError` where draws do not become counts."""
    if projected(mechanism, np.array(drawn, dtype=np.int64), size).min() < 0:
        raise ValueError(
            f"drawn={drawn!r}: must be at least 0, because {mechanism.name} draws counts."
        )
