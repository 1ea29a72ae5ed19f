"""Releases of discovered categories as JSON. Which labels there are was drawn: it depends on the
data, as a noisy count does.
"""

from dataclasses import fields
from typing import Annotated, Any, Final, Literal

import msgspec

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.document import (
    Draw,
    Largest,
    LossDocument,
    Rule,
    Squared,
    check_rules,
    distance_in,
    field_of,
    in_document,
)
from opendp_bayes.release_format.kind_of_text import check_kind, without_mark
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.privacy_guarantee import MEASURES, PrivacyGuarantee
from opendp_bayes.unlisted.discovered_data import DiscoveredData
from opendp_bayes.unlisted.thresholds import LAWS, Discovery, OptimalThreshold, Threshold

NAME: Final = "opendp-bayes discovery"
VERSION: Final = 1
_NOISES: dict[str, type[Any]] = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}
_Scale = Annotated[float, msgspec.Meta(gt=0)]


class LawDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The law of the noise of each count, and its threshold."""

    name: Annotated[str, field_of("Of the law.")]
    parameters: Annotated[dict[str, float | int | None], field_of("Its parameters.")]
    threshold: Annotated[int, field_of("The least noisy count that is shown.", ge=1)]
    weights: Annotated[
        list[str],
        field_of(
            "Of the optimal law: the weights, whole numbers in decimal, by which it was drawn. The"
            " noise is the threshold less 1, 2, and so on."
        ),
    ] = []

    @classmethod
    def of(cls, law: Threshold) -> "LawDocument":
        weights = [str(one) for one in law.weights] if isinstance(law, OptimalThreshold) else []
        stated = {of.name: getattr(law, of.name) for of in fields(law) if of.compare}  # type: ignore[arg-type]
        return cls(name=law.name, parameters=stated, threshold=law.threshold, weights=weights)

    def value(self) -> Threshold:
        """The law; `ValueError` where it is not known or does not fit what is written of it."""
        if self.name not in LAWS:
            raise ValueError(
                f"law.name={self.name!r}: must be one of {', '.join(map(repr, LAWS))}."
            )
        try:
            law = LAWS[self.name](**self.parameters)
        except (TypeError, ValueError) as error:
            raise ValueError(f"law.parameters: {self.name} does not accept them: {error}") from None
        if LawDocument.of(law) != self:
            raise ValueError(
                f"law: its threshold or weights are not those of {law}; the document was changed."
            )
        return law


class NoiseDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The noise of the number of all hidden records."""

    name: Annotated[Literal["laplace", "gaussian"], field_of("Of its law.")]
    scale: Annotated[_Scale, field_of("In records.")]

    @classmethod
    def of(cls, noise: IntegerNoise) -> "NoiseDocument":
        name: Any = next(name for name, kind in _NOISES.items() if isinstance(noise, kind))
        return cls(name=name, scale=noise.scale)

    def value(self) -> IntegerNoise:
        return _NOISES[self.name](self.scale)


class DiscoveredDocument(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """A private release of counts of categories that nobody listed."""

    format: Annotated[Literal["opendp-bayes discovery"], field_of("What the document is.")]
    version: Annotated[Literal[1], field_of("Of the format.")]
    labels: Annotated[
        Literal["drawn"],
        field_of("Which categories there are was drawn; only the first `listed` were listed."),
    ]
    column: Annotated[str, field_of("The column that was asked.")]
    categories: Annotated[
        list[Value], field_of("The labels that are shown.", extra_json_schema={"uniqueItems": True})
    ]
    drawn: Annotated[list[Draw], field_of("The noisy count of each.")]
    listed: Annotated[int, field_of("How many of the categories were listed.", ge=0)] = 0
    people: Annotated[bool, field_of("Whether people were counted, and not records.")] = False
    law: Annotated[LawDocument, field_of("Of the noise of each count.")]
    rest_noise: Annotated[NoiseDocument | None, field_of("Of the rest.")] = None
    rest: Annotated[
        Draw | None, field_of("The noisy number of records of all hidden categories.")
    ] = None
    d_in: Annotated[int, field_of("The values or records that one privacy unit moves.", ge=1)]
    squared: Squared = None
    largest: Largest = None
    loss: Annotated[LossDocument, field_of("Certified upper bounds.")]
    measure: Annotated[str, field_of("The privacy measure of the release.")]
    truncated: Annotated[
        bool, field_of("Whether rows of each identifier were limited before they were counted.")
    ] = False
    kept: Annotated[
        str, field_of("Which rows were kept; empty where they were drawn for this release.")
    ] = ""

    @classmethod
    def write(cls, release: DiscoveredData) -> str:
        """The JSON of a release."""
        guarantee, noise = release.guarantee, release.discovery.rest
        document = cls(
            format=NAME,
            version=VERSION,
            labels="drawn",
            column=release.column,
            categories=list(release.categories),
            drawn=list(release.drawn),
            listed=release.listed,
            people=release.people,
            law=LawDocument.of(release.discovery.law),
            rest_noise=None if noise is None else NoiseDocument.of(noise),
            rest=release.drawn_rest,
            **in_document(guarantee.distance),
            loss=LossDocument.of(guarantee.loss),
            measure=guarantee.measure,
            truncated=guarantee.truncated,
            kept=guarantee.kept,
        )
        return msgspec.json.encode(document).decode()

    @classmethod
    def read(cls, text: str | bytes) -> "DiscoveredDocument":
        """Read the document and check every constraint on its values; `ValueError` that names the
        field and its fault.
        """
        check_kind(text, NAME, VERSION)
        try:
            document = msgspec.json.decode(without_mark(text), type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"text: is not a discovery in JSON: {error}") from None
        check_rules(document._rules())
        return document

    def _rules(self) -> list[Rule]:
        found, drawn = self.categories[self.listed :], self.drawn[self.listed :]
        kinds = {type(label) for label in self.categories}
        return [
            (
                len(distinct(self.categories)) == len(self.categories) and len(kinds) <= 1,
                f"categories={self.categories!r}: must be all different, and of one type.",
            ),
            (
                len(self.drawn) == len(self.categories) >= self.listed,
                f"drawn={self.drawn!r}: must be {len(self.categories)} integers, of which"
                f" listed={self.listed!r} are of listed categories.",
            ),
            (
                len(kinds) > 1 or found == sorted(found),
                f"categories={self.categories!r}: those that were discovered must be sorted.",
            ),
            (
                all(one >= self.law.threshold for one in drawn),
                f"drawn={self.drawn!r}: must be at least the threshold,"
                f" {self.law.threshold}, of every category that was discovered.",
            ),
            (
                (self.rest is None) == (self.rest_noise is None),
                f"rest={self.rest!r}: must be there where rest_noise is, and only there.",
            ),
            (
                "Approximate" in self.measure and self.measure in MEASURES,
                f"measure={self.measure!r}: must be one with δ,"
                f" {' or '.join(repr(name) for name in MEASURES if 'Approximate' in name)}.",
            ),
            (
                self.truncated or not self.kept,
                f"kept={self.kept!r}: is of rows that were limited; truncated must be true.",
            ),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `DiscoveredRelease`."""
        rest = None if self.rest_noise is None else self.rest_noise.value()
        discovery = Discovery(self.law.value(), rest)
        distance = distance_in(self.d_in, self.squared, self.largest)
        guarantee = PrivacyGuarantee(
            None, distance, self.loss.value(), self.measure, self.truncated, self.kept
        )
        return {
            "column": self.column,
            "categories": tuple(self.categories),
            "drawn": tuple(self.drawn),
            "listed": self.listed,
            "discovery": discovery,
            "drawn_rest": self.rest,
            "guarantee": guarantee,
            "people": self.people,
        }
