"""Releases of discovered categories as JSON. Which labels there are was drawn: it depends on the
data, as a noisy count does.
"""

from dataclasses import fields
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.document import Document, Draw, instance_of
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.unlisted.thresholds import LAWS, Discovery, OptimalThreshold, RestNoise, Threshold

_NOISES: dict[str, type[Any]] = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}
_Scale = Annotated[float, Meta(gt=0)]


class LawDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The law of the noise of each count, and its threshold."""

    name: Annotated[str, Meta(description="Of the law.")]
    parameters: Annotated[dict[str, float | int | None], Meta(description="Its parameters.")]
    threshold: Annotated[int, Meta(description="The least noisy count that is shown.", ge=1)]
    weights: Annotated[
        list[str],
        Meta(
            description=(
                "Of the optimal law: the weights, whole numbers in decimal, by which it was drawn."
                " The noise is the threshold less 1, 2, and so on."
            )
        ),
    ] = []

    @classmethod
    def of(cls, law: Threshold) -> "LawDocument":
        weights = list(map(str, law.weights)) if isinstance(law, OptimalThreshold) else []
        stated = {field.name: getattr(law, field.name) for field in fields(law) if field.compare}  # type: ignore[arg-type]
        return cls(name=law.name, parameters=stated, threshold=law.threshold, weights=weights)

    def value(self) -> Threshold:
        """The law; `ValueError` where it is not known or does not fit what is written of it."""
        if self.name not in LAWS:
            raise ValueError(
                f"law.name={self.name!r}: must be one of {', '.join(map(repr, LAWS))}."
            )
        law = instance_of(LAWS[self.name], "law", self.name, self.parameters)
        if LawDocument.of(law) != self:
            raise ValueError(
                f"law: its threshold or weights are not those of {law}; the document was changed."
            )
        return law


class NoiseDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The noise of the number of all hidden records."""

    name: Annotated[Literal["laplace", "gaussian"], Meta(description="Of its law.")]
    scale: Annotated[_Scale, Meta(description="In records.")]

    def value(self) -> RestNoise:
        return _NOISES[self.name](self.scale)


class DiscoveredDocument(Document, frozen=True, kw_only=True):
    """A private release of counts of categories that nobody listed."""

    format: Annotated[Literal["opendp-bayes discovery"], Meta(description="What the document is.")]
    version: Annotated[Literal[2], Meta(description="Of the format.")]
    labels: Annotated[
        Literal["drawn"],
        Meta(
            description="Which categories there are was drawn; only the first `listed` were listed."
        ),
    ]
    column: Annotated[str, Meta(description="The column that was asked.")]
    categories: Annotated[
        list[Value],
        Meta(description="The labels that are shown.", extra_json_schema={"uniqueItems": True}),
    ]
    noisy_counts: Annotated[list[Draw], Meta(description="The noisy count of each.")]
    listed: Annotated[int, Meta(description="How many of the categories were listed.", ge=0)] = 0
    people: Annotated[bool, Meta(description="Whether people were counted, and not records.")] = (
        False
    )
    law: Annotated[LawDocument, Meta(description="Of the noise of each count.")]
    rest_noise: Annotated[NoiseDocument | None, Meta(description="Of the rest.")] = None
    rest: Annotated[
        Draw | None, Meta(description="The noisy number of records of all hidden categories.")
    ] = None

    @classmethod
    def of(cls, result: Any, **fields: Any) -> str:
        """The JSON of a release."""
        law, noise = result.discovery.law, result.discovery.rest
        kinds: Any = {kind: noise_name for noise_name, kind in _NOISES.items()}
        fields |= {"labels": "drawn", "law": LawDocument.of(law), "rest": result.noisy_rest}
        if noise is not None:
            fields["rest_noise"] = NoiseDocument(kinds[type(noise)], noise.scale)
        return super().of(result, **fields)

    def rules(self) -> list[tuple[str, bool, str]]:
        """The fields whose values must fit others, whether each does, and what it must be."""
        discovered, k = self.categories[self.listed :], len(self.categories)
        kinds = {type(label) for label in self.categories}
        least = min(self.noisy_counts[self.listed :], default=self.law.threshold)
        lowest = self.law.value().masses[0]
        with_delta = [measure for measure in MEASURES if "Approximate" in measure]
        return [
            (
                "categories",
                len(distinct(self.categories)) == k and len(kinds) <= 1,
                "must be all different, and of one type.",
            ),
            (
                "noisy_counts",
                len(self.noisy_counts) == k >= self.listed,
                f"must be {k} integers, of which listed={self.listed!r} are of listed categories.",
            ),
            (
                "categories",
                len(kinds) > 1 or discovered == sorted(discovered),
                "those that were discovered must be sorted.",
            ),
            (
                "noisy_counts",
                least >= self.law.threshold,
                f"must be at least the threshold, {self.law.threshold}, of every category that was"
                " discovered.",
            ),
            (
                "noisy_counts",
                min(self.noisy_counts, default=lowest) >= lowest,
                f"must be at least {lowest} by the law of the noise.",
            ),
            (
                "rest",
                (self.rest is None) == (self.rest_noise is None),
                "must be there where rest_noise is, and only there.",
            ),
            (
                "measure",
                self.measure in with_delta,
                f"must be one with δ, {' or '.join(map(repr, with_delta))}.",
            ),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `DiscoveredRelease`."""
        noise = None if self.rest_noise is None else self.rest_noise.value()
        named = ("column", "listed", "people")
        return {field: getattr(self, field) for field in named} | {
            "categories": tuple(self.categories),
            "noisy_counts": tuple(self.noisy_counts),
            "discovery": Discovery(self.law.value(), noise),
            "noisy_rest": self.rest,
            "guarantee": self.guarantee(None),
        }
