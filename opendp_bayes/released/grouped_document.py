"""Releases of groups as JSON."""

from typing import Annotated, Any, ClassVar

from opendp_bayes.released.document import NUMBERS, Document, Rule, field_of, of_row


class GroupedReleaseDocument(Document, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Private releases of the posteriors of groups."""

    kind: ClassVar[str] = "grouped release"
    name: ClassVar[str] = "opendp-bayes grouped release"

    format: Annotated[str, field_of("What the document is.", const=name)]
    groups: Annotated[
        list[str | bool | int | None],
        field_of("Labels of the groups; null is that of the nulls.", minItems=1, uniqueItems=True),
    ]
    drawn: Annotated[
        list[Annotated[list[int], field_of("Of one group, one for each category.", **NUMBERS)]],
        field_of("What the mechanism drew, one row for each group.", minItems=1),
    ]

    def of_draws(self) -> list[Rule]:
        """A row was drawn for each of the groups."""
        number, k = len(self.groups), len(self.categories)
        return [
            (
                number >= 1 and len(set(self.groups)) == number,
                f"groups={self.groups!r}: must be at least 1, all different.",
            ),
            (
                len(self.drawn) == number,
                f"drawn={self.drawn!r}: must have {number} rows, one for each group.",
            ),
            *(of_row(row, k) for row in self.drawn),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `GroupedRelease`."""
        drawn = tuple(map(tuple, self.drawn))
        return {"groups": tuple(self.groups), "drawn": drawn, **self.shared()}
