"""Releases of discovered categories as JSON. Which labels there are was drawn: it depends on the
data, as a noisy count does.
"""

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.document import Document, Draw, Rule, field_of
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.unlisted.discovered_data import DiscoveredData
from opendp_bayes.unlisted.thresholds import LAWS, Discovery, OptimalThreshold, Threshold

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


class DiscoveredDocument(Document, frozen=True, kw_only=True):
    """A private release of counts of categories that nobody listed."""

    NAME: ClassVar[str] = "opendp-bayes discovery"
    VERSION: ClassVar[int] = 1
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

    @classmethod
    def of(cls, release: DiscoveredData) -> str:
        """The JSON of a release."""
        noise = release.discovery.rest
        return cls.write(
            release.guarantee,
            labels="drawn",
            column=release.column,
            categories=list(release.categories),
            drawn=list(release.drawn),
            listed=release.listed,
            people=release.people,
            law=LawDocument.of(release.discovery.law),
            rest_noise=None if noise is None else NoiseDocument.of(noise),
            rest=release.drawn_rest,
        )

    def rules(self) -> list[Rule]:
        """What must hold of several fields together."""
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
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `DiscoveredRelease`."""
        rest = None if self.rest_noise is None else self.rest_noise.value()
        discovery = Discovery(self.law.value(), rest)
        return {
            "column": self.column,
            "categories": tuple(self.categories),
            "drawn": tuple(self.drawn),
            "listed": self.listed,
            "discovery": discovery,
            "drawn_rest": self.rest,
            "guarantee": self.guarantee(None),
            "people": self.people,
        }
