"""The data of a release: all that inference and reports read."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.labels import distinct, identity
from opendp_bayes.release_format.privacy_guarantee import Guaranteed, PrivacyGuarantee

#: What a column says of a record.
Value = str | bool | int
#: A category's label: a value, or, of a cell of a joint table, a tuple with one of each column.
Label = Value | tuple[Value, ...]
#: A group's, where None is that of the nulls; a tuple where several columns make the groups.
Key = Value | None | tuple[Value | None, ...]


@dataclass(frozen=True, eq=False)
class ReleasedData(Guaranteed):
    """Draws of a mechanism, with what they were made from and under which promise. Plain data:
    everything here may be published.

    Attributes
    ----------
    noisy_counts : tuple[int, ...]
        What the mechanism drew, an integer for each category; those of added noise may be negative
        and need not sum to the number of records.
    categories : tuple[str or int or bool or tuple, ...]
        The category labels.
    prior : tuple[float, ...]
        Concentration of the prior, one entry for each category.
    mechanism : Mechanism
        The mechanism that made the release, with its scale.
    guarantee
        Neighbours, privacy loss and measure (`PrivacyGuarantee`).
    axes : tuple[str, ...]
        The columns of a joint table, whose labels are tuples; empty where one column is asked.
    whole, inside : Release or None, tuple[int, ...]
        Where this is one group of a table of groups, the release of the whole table and the places
        of the categories in it; the noise of all groups is one draw, and `mechanism` and
        `guarantee` are those of the whole.
    group_size : int or None
        Of such a group, its number of records where that is public too.
    learned_prior : bool
        Whether `posterior` learns its prior from the release; `prior` is for `plug_in` then.
    ordered : tuple[str, ...]
        The variables along which a learned prior is smooth.
    parts : tuple[tuple[str or int or bool or tuple, ...], ...]
        Of merged categories, the labels that each of them stands for; empty where none are.
    columns : tuple[str, ...]
        Those that were counted, also where one was; empty where they are not known.
    nulls, unknown : tuple[str or int or bool or None, ...]
        Of each column counted, the label under which nulls, and values that are none of its
        categories, are counted, and no category is; None where there is no such label.
    """

    noisy_counts: tuple[int, ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: Mechanism
    guarantee: PrivacyGuarantee
    axes: tuple[str, ...] = ()
    whole: "ReleasedData | None" = None
    inside: tuple[int, ...] = ()
    group_size: int | None = None
    learned_prior: bool = False
    ordered: tuple[str, ...] = ()
    parts: tuple[tuple[Label, ...], ...] = ()
    columns: tuple[str, ...] = ()
    nulls: tuple[Value | None, ...] = ()
    unknown: tuple[Value | None, ...] = ()

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def source(self) -> "ReleasedData | None":
        """The table whose counts and posterior its own are a part of: of a group that shares a draw
        and whose number of records is not public. None of anything else.
        """
        return self.whole if self.group_size is None else None

    @cached_property
    def setting(self) -> Setting:
        """The mechanism with what was public of the data that it drew from."""
        return Setting(self.mechanism, self.size, self.prior)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The released counts, one for each category: the draws, made to look like counts by the
        mechanism's projection.
        """
        if self.source is not None:
            return tuple(self.source.counts[cell] for cell in self.inside)
        setting = replace(self.setting, size=self.group_size or self.size)
        return tuple(setting.projected(np.array(self.noisy_counts, dtype=np.int64)).tolist())

    @property
    def values_of_axes(self) -> dict[str, tuple[Label, ...]]:
        """Values of every cell of a joint table, for each of its axes; empty without axes."""
        cells: Any = self.categories
        return {
            axis: tuple(cell[position] for cell in cells) for position, axis in enumerate(self.axes)
        }

    def unordered_values(self, at: int = 0) -> tuple[Value, ...]:
        """The labels of a column, by its place, that are in no order: they stand for no value, or
        for values that are none of its categories.
        """
        labels = (policies[at] for policies in (self.nulls, self.unknown) if policies)
        return tuple(distinct(label for label in labels if label is not None))

    @property
    def unordered(self) -> tuple[Label, ...]:
        """The categories that are in no order; none of those of a joint table."""
        if max(len(self.axes), len(self.nulls)) > 1:
            return ()
        values: Any = self.unordered_values()
        unordered = set(map(identity, [(value,) for value in values] if self.axes else values))
        members_of = self.parts or ((value,) for value in self.categories)
        return tuple(
            label
            for label, members in zip(self.categories, members_of, strict=True)
            if unordered.issuperset(map(identity, members))
        )

    @property
    def concentration(self) -> Floats:
        """Concentration of the released posterior, `prior + counts`, shape `(k,)`."""
        return np.array(self.prior) + np.array(self.counts)
