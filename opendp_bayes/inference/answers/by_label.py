"""Categories by their labels, and groups of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from opendp_bayes.mathematics.telling import told
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import distinct, position_of

E = TypeVar("E")


class Intervals(tuple[E, E], Generic[E]):
    """Lower and upper ends of the intervals of all categories, two arrays of shape `(k,)`, and by
    label those of one, `interval["yes"]`.

    Attributes
    ----------
    lower, upper : numpy.ndarray
        The ends, in the order of the categories.
    """

    _categories: tuple[Label, ...]

    def __new__(cls, lower: E, upper: E, categories: tuple[Label, ...]) -> "Intervals[E]":
        intervals = super().__new__(cls, (lower, upper))
        intervals._categories = categories
        return intervals

    def __getnewargs__(self) -> tuple[Any, ...]:
        return *self, self._categories

    @property
    def lower(self) -> E:
        """The lower ends."""
        return tuple.__getitem__(self, 0)

    @property
    def upper(self) -> E:
        """The upper ends."""
        return tuple.__getitem__(self, 1)

    def __getitem__(self, label: Any) -> Any:
        """Both ends of one category. Raises `KeyError` for what is none."""
        position = position_of(label, self._categories)
        lower, upper = (np.asarray(end)[position].item() for end in self)
        return lower, upper


def positions_of(labels: Iterable[Label], categories: tuple[Label, ...], name: str) -> list[int]:
    """Raises `ValueError`/`TypeError` that names the argument for a label that is no category, or
    there twice.

    Raises
    ------
    ValueError, TypeError
        That names the argument for a label that is no category, or there twice.
    """
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name}={told(labels)}: must be a list of categories.")
    labels = list(labels)
    try:
        positions = [position_of(label, categories) for label in labels]
    except KeyError as error:
        raise ValueError(f"{name}={told(labels)}: {error.args[0]}") from None
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}={told(labels)}: must name every category once.")
    return positions


def grouped_positions(
    groups: Mapping[Label, Iterable[Label]], categories: tuple[Label, ...]
) -> tuple[tuple[Label, ...], list[list[int]]]:
    """Labels and positions of groups, then those of the categories in no group.

    Raises
    ------
    ValueError, TypeError
        Where a group is empty or holds all categories, where a category is in two groups, or where
        two labels are the same.
    """
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups={told(groups)}: must be a mapping from labels to lists of categories."
        )
    members = [positions_of(group, categories, "groups") for group in groups.values()]
    taken = [position for group in members for position in group]
    if not all(members) or len(set(taken)) < len(taken):
        raise ValueError(
            f"groups={told(groups)}: every group must have a category, and none may be in two."
        )
    alone = [position for position in range(len(categories)) if position not in set(taken)]
    labels: tuple[Any, ...] = (*groups, *(categories[position] for position in alone))
    if len(distinct(labels)) < len(labels):
        raise ValueError(
            f"groups={told(groups)}: a group has the label of a category outside of it; name it"
            " otherwise."
        )
    members += [[position] for position in alone]
    if len(members) < 2:
        raise ValueError(
            f"groups={told(groups)}: leave one category, of probability 1; at least 2 must remain."
        )
    return labels, members
