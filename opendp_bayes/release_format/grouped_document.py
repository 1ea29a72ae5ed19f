"""Releases of groups as JSON."""

from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np

from opendp_bayes.mechanisms.protocol import noises_every_count
from opendp_bayes.release_format.document import (
    NUMBERS,
    Document,
    Rule,
    as_labels,
    check_counts,
    check_loss,
    field_of,
    of_row,
)
from opendp_bayes.release_format.labels import distinct


class GroupedReleaseDocument(Document, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Private releases of the posteriors of groups."""

    kind: ClassVar[str] = "grouped release"
    name: ClassVar[str] = "opendp-bayes grouped release"

    format: Annotated[str, field_of("What the document is.", const=name)]
    groups: Annotated[
        list[str | bool | int | list[str | bool | int | None] | None],
        field_of(
            "Labels of the groups, lists where several columns make them; null is that of the"
            " nulls.",
            minItems=1,
            uniqueItems=True,
        ),
    ]
    drawn: Annotated[
        list[Annotated[list[int], field_of("Of one group, one for each category.", **NUMBERS)]],
        field_of("What the mechanism drew, one row for each group.", minItems=1),
    ]
    rest: Annotated[
        int | None,
        field_of("What was drawn for the rows in no group, where their sum is public."),
    ] = None
    sizes: Annotated[
        list[int] | None,
        field_of("Public numbers of records of the groups, one for each; null where private."),
    ] = None

    def of_draws(self) -> list[Rule]:
        """A row was drawn for each of the groups."""
        number, k = len(self.groups), len(self.categories)
        lengths = {len(key) if isinstance(key, list) else 0 for key in self.groups}
        return [
            (
                number >= 1
                and len(distinct(as_labels(self.groups))) == number
                and len(lengths) == 1,
                f"groups={self.groups!r}: must be at least 1, all different, and all values or all"
                " lists of one length.",
            ),
            (
                len(self.drawn) == number,
                f"drawn={self.drawn!r}: must have {number} rows, one for each group.",
            ),
            *(of_row(row, k) for row in self.drawn),
            of_row([] if self.rest is None else [self.rest], 0 if self.rest is None else 1),
            (
                (self.rest is None) == (self.size is None),
                f"rest={self.rest!r}: must be an integer where the number of records is public, and"
                " null where it is private.",
            ),
        ]

    def values(self) -> dict[str, Any]:
        """The arguments of `GroupedRelease`."""
        values, drawn = self.shared(), tuple(map(tuple, self.drawn))
        mechanism = values["mechanism"]
        if self.rest is None and not noises_every_count(mechanism):
            raise ValueError(
                f"mechanism={mechanism!r}: must noise every count, such as LaplaceParameters with"
                " total='private', where there is no rest."
            )
        rest = [] if self.rest is None else [1.0]
        prior = np.array([*self.prior * len(self.groups), *rest])
        if self.rest is not None:
            mechanism.check(size=self.size, prior=prior)
            check_counts(mechanism, [*chain(*self.drawn), self.rest], self.size)
        check_loss(values["promise"], mechanism, prior)
        sizes = None if self.sizes is None else tuple(self.sizes)
        groups = as_labels(self.groups)
        return {"groups": groups, "drawn": drawn, "rest": self.rest, "sizes": sizes, **values}
