"""A release together with its promise under smoothed differential privacy."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from opendp_bayes import Release
from opendp_bayes.display import notebook, plain
from opendp_bayes.display.sheet import Body, Sheet, Table, columns
from opendp_bayes.display.wording import at_most, described, guarantee
from opendp_bayes.extend import as_size
from opendp_bayes.mathematics.telling import depth_told
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.losses import SmoothedDP, SmoothedLoss, loss_of

_FORMAT, _VERSION = "opendp-bayes-smoothed release", 1
#: Where a statement gives δ, unless it is asked for elsewhere.
EPSILONS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class SmoothedRelease:
    """A release under the measure `smoothed(Π, size=n)`. Everything in it may be published.

    Attributes
    ----------
    release : what was released, with what differential privacy promises for it.
    guarantee : for how many records, and for which distributions, the smoothed loss holds.
    """

    release: Release
    guarantee: SmoothedDP

    @property
    def loss(self) -> SmoothedLoss:
        """Loss under smoothed differential privacy, for one record changed."""
        return loss_of(self.release.mechanism, self.guarantee)

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of the sample, as released."""
        return tuple(self.release.counts)

    def sheet(self, epsilons: Sequence[float] = EPSILONS) -> Sheet:
        """Sheet of the release: the counts, the smoothed δ at each of `epsilons`, and both promises
        in words. Computing the δ may take seconds for thousands of records.
        """
        size, corners = self.guarantee.size, self.guarantee.vertices
        labels = zip(self.release.categories, self.counts, strict=True)
        counts = tuple((str(label), str(count)) for label, count in labels)
        deltas = tuple((f"{e:g}", at_most(self.loss.delta(e))) for e in epsilons)
        described_by = "; ".join("(" + ", ".join(f"{p:.4g}" for p in row) + ")" for row in corners)
        return Sheet(
            (
                Table(columns("Category", "Released\ncount"), (Body(counts),)),
                Table(columns("ε", "Smoothed δ"), (Body(deltas),)),
            ),
            (
                f"Smoothed differential privacy: on average over data sets of {size} independent"
                " records, each from some distribution in the convex hull of"
                f" {described_by}, in the order of the categories. It says nothing of one data"
                " set, nor where this does not describe the data.",
                f"Differential privacy, whatever the data: {guarantee(self.release.promise)}",
                f"Released by {described(self.release.mechanism)}.",
            ),
        )

    def __str__(self) -> str:
        return plain.rendered(self.sheet())

    def _repr_html_(self) -> str:
        return notebook.rendered(self.sheet())

    def to_json(self, epsilons: Sequence[float] = EPSILONS) -> str:
        """The release as JSON, with the smoothed δ at each of `epsilons` for readers without this
        package; `SmoothedRelease.from_json` reads it back.
        """
        return json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "release": json.loads(self.release.to_json()),
                "records": self.guarantee.size,
                "distributions": [list(row) for row in self.guarantee.vertices],
                "statement": [
                    {"epsilon": float(e), "smoothed_delta": self.loss.delta(e)} for e in epsilons
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "SmoothedRelease":
        """Read a release written by `to_json`.

        The smoothed δ are computed again, from what describes the release, and compared: raises
        `ValueError` for another format, a field that is missing or wrong, or a δ that is stated too
        small.
        """
        try:
            with depth_told("it"):
                document = json.loads(text)
            if (document["format"], document["version"]) != (_FORMAT, _VERSION):
                raise ValueError(f"its format is {document['format']!r:.40}")
            rows = vertices(document["distributions"]).tolist()
            guarantee = SmoothedDP(as_size(document["records"]), tuple(map(tuple, rows)))
            release = Release.from_json(json.dumps(document["release"]))
            stated = [(row["epsilon"], row["smoothed_delta"]) for row in document["statement"]]
            loss = loss_of(release.mechanism, guarantee)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"text: is no {_FORMAT} of version {_VERSION}: {error}") from None
        if (guarantee.size, len(rows[0])) != (release.size, len(release.categories)):
            raise ValueError(
                f"text: describes {guarantee.size} records of {len(rows[0])} categories, and"
                f" releases {release.size} of {len(release.categories)}; they must agree."
            )
        for epsilon, delta in stated:
            if loss.delta(epsilon) > delta * (1 + 1e-9):
                raise ValueError(
                    f"text: states a smoothed δ of {delta} at ε = {epsilon}, where it is"
                    f" {loss.delta(epsilon)}."
                )
        return cls(release, guarantee)
