"""Releases as JSON, version 3."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.registry import known_mechanism
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.kind_of_text import decoded, format_and_version
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

D = TypeVar("D", bound="Document")

_DIFFERENT = {"extra_json_schema": {"uniqueItems": True}}
#: Draws and their sum are integers of the machine.
_LARGEST = 2**63 - 1
Draw = Annotated[int, Meta(ge=-_LARGEST - 1, le=_LARGEST)]
_Bound = Annotated[
    Annotated[float, Meta(ge=0)] | None, Meta(description="An upper bound; null is infinite.")
]
_AtLeastOne = Annotated[int, Meta(ge=1)]


def instance_of(kind: Any, field: str, name: str, parameters: Mapping[str, Any]) -> Any:
    """Make what a document describes in `field`; `ValueError` where its `kind`, by its name, does
    not take these parameters.
    """
    try:
        return kind(**parameters)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{field}: {name} does not accept these parameters: {error}") from None


class MechanismDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mechanism by name."""

    name: Annotated[str, Meta(description="As `load_mechanism` knows it.")]
    parameters: Annotated[
        # A whole number is one that a float holds.
        dict[str, bool | Annotated[int, Meta(ge=-(2**53), le=2**53)] | float | str | None],
        Meta(description="Its parameters, the scale among them."),
    ]


class LossDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A privacy loss. `None` stands for infinity, which JSON does not have."""

    epsilon: _Bound
    rho: _Bound
    range: _Bound
    delta: Annotated[float, Meta(description="Goes with epsilon.", ge=0, le=1)]
    method: Annotated[str, Meta(description="How the bounds were found.")]


class Document(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The fields of all results: their guarantee, and how they are written and read."""

    format: str
    version: int
    d_in: Annotated[
        _AtLeastOne,
        Meta(description="Records changed, or added and removed, between the data sets of `loss`."),
    ]
    squared: Annotated[
        _AtLeastOne | None,
        Meta(
            description="The sum of the squares of what the counts move by, where less than d_in^2."
        ),
    ] = None
    largest: Annotated[
        _AtLeastOne | None,
        Meta(description="The most records by which one count moves, where fewer than d_in."),
    ] = None
    loss: Annotated[LossDocument, Meta(description="Certified upper bounds.")]
    measure: Annotated[str, Meta(description="The privacy measure of the release.")]
    truncated: Annotated[
        bool,
        Meta(description="Whether rows of each identifier were limited before they were counted."),
    ] = False
    kept: Annotated[
        str, Meta(description="Which rows were kept; empty where they were drawn for this release.")
    ] = ""

    @classmethod
    def of(cls, result: Any, **fields: Any) -> str:
        """The JSON of a result, which has the fields of its document under their names, but for
        those that are stated here.
        """
        guarantee, distance = result.guarantee, result.guarantee.distance
        named = dict(zip(("format", "version"), format_and_version(cls), strict=True))
        stated = {**vars(guarantee), **vars(result), **fields, **named, "d_in": distance.records}
        if distance != Distance.of(distance.records):
            stated |= {"squared": distance.squared, "largest": distance.largest}
        # Empty lists are left out, and the loss writes null for infinity.
        written: dict[str, Any] = {
            field: list(value) if isinstance(value, tuple) else value
            for field, value in stated.items()
            if field in cls.__struct_fields__
        }
        return msgspec.json.encode(cls(**written)).decode()

    @classmethod
    def read(cls: type[D], text: str | bytes) -> D:
        """Read the document and check every constraint on its values; `ValueError` that names the
        field and its fault.
        """
        document = decoded(cls, text)
        for field, holds, problem in document.rules():
            if not holds:
                raise ValueError(f"{field}={getattr(document, field)!r}: {problem}")
        return document

    def rules(self) -> list[tuple[str, bool, str]]:
        """The fields whose values must fit others, whether each does, and what it must be."""
        raise NotImplementedError

    def guarantee(self, size: int | None) -> PrivacyGuarantee:
        """The guarantee that is stated, for so many records."""
        distance = Distance(self.d_in, self.squared or self.d_in**2, self.largest or self.d_in)
        stated = msgspec.structs.asdict(self.loss).items()
        bounds: Any = {measure: math.inf if bound is None else bound for measure, bound in stated}
        loss = PrivacyLoss(**bounds)
        return PrivacyGuarantee(size, distance, loss, self.measure, self.truncated, self.kept)


class ReleaseDocument(Document, frozen=True, kw_only=True):
    """A private release of a posterior, or of the posteriors of groups."""

    format: Annotated[Literal["opendp-bayes release"], Meta(description="What the document is.")]
    version: Annotated[Literal[3], Meta(description="Of the format.")]
    categories: Annotated[
        list[Label],
        Meta(
            description="Labels; of a joint table, a value of each axis.",
            min_length=1,
            **_DIFFERENT,
        ),
    ]
    prior: Annotated[
        list[Annotated[float, Meta(description="Of one category.", gt=0)]],
        Meta(description="Concentration of the prior, of every group.", min_length=1),
    ]
    mechanism: Annotated[MechanismDocument, Meta(description="Made the release.")]
    size: Annotated[
        Annotated[int, Meta(ge=1, le=_LARGEST)] | None,
        Meta(description="The public number of records; null where it is private."),
    ]
    axes: Annotated[list[str], Meta(description="The columns of a joint table.", **_DIFFERENT)] = []
    columns: Annotated[
        list[str], Meta(description="The columns that were counted; empty where not known.")
    ] = []
    nulls: Annotated[
        list[Value | None],
        Meta(description="Of each column, the label of nulls; null where none is for them alone."),
    ] = []
    unknown: Annotated[
        list[Value | None],
        Meta(
            description=(
                "Of each column, the label of values that are none of its categories; null where"
                " none is for them alone."
            )
        ),
    ] = []
    noisy_counts: Annotated[
        list[Draw],
        Meta(
            description=(
                "What the mechanism drew, one for each category; may be negative. Of groups, one"
                " group after the other, and last for the rows in no group where `size` is public."
            ),
            min_length=1,
        ),
    ]
    learned_prior: Annotated[
        bool, Meta(description="Whether the posterior learns its prior from the release.")
    ] = False
    ordered: Annotated[
        list[str], Meta(description="The variables along which a learned prior is smooth.")
    ] = []
    parts: Annotated[
        list[Annotated[tuple[Label, ...], Meta(min_length=1)]],
        Meta(description="Of merged categories, the labels that each of them stands for."),
    ] = []
    by: Annotated[
        list[str], Meta(description="The columns that make the groups.", **_DIFFERENT)
    ] = []
    groups: Annotated[
        list[Value | tuple[Value | None, ...] | None],
        Meta(
            description=(
                "Labels of the groups, lists where several columns make them; null is that of the"
                " nulls. Empty for one posterior."
            ),
            **_DIFFERENT,
        ),
    ] = []
    sizes: Annotated[
        list[int], Meta(description="Public numbers of records of the groups; empty where private.")
    ] = []

    @classmethod
    def of(cls, result: Any, **fields: Any) -> str:
        """The JSON of a release, of one posterior or of groups."""
        mechanism = MechanismDocument(result.mechanism.name, dataclasses.asdict(result.mechanism))
        return super().of(result, mechanism=mechanism, **fields)

    def rules(self) -> list[tuple[str, bool, str]]:
        """The fields whose values must fit others: an integer was drawn for each category, and no
        two stand for the same label.
        """
        k, number, axes = len(self.categories), len(self.groups), len(self.axes)
        cells = number * k + (self.size is not None) if number else k
        widths, lengths = (
            {len(label) if isinstance(label, tuple) else 0 for label in labels}
            for labels in (self.categories, self.groups)
        )
        by = len(self.by) if len(self.by) != 1 else 0
        columns = len(self.columns or self.axes) or 1
        merged = [label for members in self.parts for label in members]
        of_columns = (
            f"must be left out, or have a label or null for each of columns={self.columns!r}."
        )
        return [
            ("categories", len(distinct(self.categories)) == k, "must be all different."),
            (
                "axes",
                widths <= {axes} and len(set(self.axes)) == axes,
                "must be different, and every category a list with a value of each; without axes,"
                " every category is one value.",
            ),
            (
                "columns",
                not axes or self.columns in ([], self.axes),
                f"must be the axes, {self.axes!r}, where there are any.",
            ),
            ("nulls", len(self.nulls) in (0, columns), of_columns),
            ("unknown", len(self.unknown) in (0, columns), of_columns),
            (
                "groups",
                len(distinct(self.groups)) == number
                and len(lengths) <= 1
                and (not self.by or lengths == {by}),
                "must be all different, and all values or all lists of one length, that of"
                f" by={self.by!r} where it is more than one.",
            ),
            (
                "categories",
                k > 1 or list(map(len, self.parts)) > [1],
                "must be at least 2, or one of several parts.",
            ),
            (
                "learned_prior",
                not (number and self.learned_prior),
                "belongs to one posterior; must be left out where there are groups.",
            ),
            (
                "parts",
                not (number and self.parts),
                "belong to one posterior; must be left out where there are groups.",
            ),
            ("noisy_counts", len(self.noisy_counts) == cells, f"must be {cells} integers."),
            (
                "parts",
                len(self.parts) in (0, k) and len(distinct(merged)) == len(merged),
                f"must hold the labels that each of {k} merged categories stands for, every label"
                " once.",
            ),
            ("prior", len(self.prior) == k, f"must be {k} numbers."),
            (
                "ordered",
                (set(self.ordered) <= set(self.axes) if axes else len(self.ordered) <= 1)
                and (self.learned_prior or not self.ordered),
                f"must be variables of the table, {self.axes!r}, or one name where it has one"
                " column; and only where learned_prior is true.",
            ),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `Release`, or where there are groups of `GroupedRelease`."""
        k, number, name = len(self.categories), len(self.groups), self.mechanism.name
        mechanism: Mechanism = instance_of(
            known_mechanism(name), "mechanism", name, self.mechanism.parameters
        )
        alone = () if number else ("noisy_counts", "ordered", "parts")
        names = ("categories", "axes", "columns", "nulls", "unknown", "prior", *alone)
        values: dict[str, Any] = {field: tuple(getattr(self, field)) for field in names}
        values |= {"mechanism": mechanism, "guarantee": self.guarantee(self.size)}
        if not number:
            mechanism.check(size=self.size, prior=np.array(self.prior))
            return values | {"learned_prior": self.learned_prior}
        return values | {
            "groups": tuple(self.groups),
            "noisy_counts": tuple(
                tuple(self.noisy_counts[start : start + k]) for start in range(0, number * k, k)
            ),
            "rest": self.noisy_counts[-1] if self.size is not None else None,
            "sizes": tuple(self.sizes) or None,
            "grouped_by": tuple(self.by),
        }
