"""Categories by their labels, and groups of them; of joint tables, which cells, and which of them
together, a table of some variables is of.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from opendp_bayes.mathematics.telling import listed_names, meant, told
from opendp_bayes.mathematics.validation import as_names
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import distinct, numbered, place_of, position_of

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

    def __new__(cls, ends: tuple[E, E], categories: tuple[Label, ...] = ()) -> "Intervals[E]":
        intervals = super().__new__(cls, ends)
        intervals._categories = categories
        return intervals

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
        Where a group is empty, where a category is in two groups, or where two labels are the same.
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
    return labels, members + [[position] for position in alone]


def positions_among(axes: tuple[str, ...], names: Any, argument: str = "variables") -> list[int]:
    """Positions of variables among the axes of a table.

    Raises
    ------
    ValueError
        For what is none.
    """
    names = as_names(names, argument)
    if not axes:
        raise ValueError(
            f"{argument}={told(names)}: needs the posterior of a joint table, such as that of"
            " `ob.posterior(query, ['region', 'vote'])` is."
        )
    if not names or set(names) - set(axes) or len(set(names)) < len(names):
        raise ValueError(
            f"{argument}={told(names)}: must be some of the variables, each once:"
            f" {', '.join(map(repr, axes))}."
        )
    return [axes.index(variable) for variable in names]


def check_others(given: Mapping[str, Value], variables: Sequence[str]) -> None:
    """Raise `ValueError` unless the values of some other variables are given."""
    if not given or set(variables) & set(given):
        raise ValueError(
            f"given={told(given)}: must give the values of other variables than"
            f" {told(list(variables))}."
        )


def place_among(variable: str, value: Value, values: Sequence[Label]) -> int:
    """Find a value among those of a variable.

    Raises
    ------
    ValueError
        For what is none.
    """
    position = place_of(value, values)
    if position is None:
        raise ValueError(
            f"{variable}={told(value)}: is not a value of it; those are {listed_names(values)}."
            f"{meant(value, values)}"
        )
    return position


class TableCells:
    """The cells of a table of several variables, each cell the places of its values among those of
    their variables.
    """

    def __init__(self, axes: tuple[str, ...], cells: Sequence[Any]) -> None:
        columns = list(zip(*cells, strict=True))
        self.axes, self._values = axes, [distinct(column) for column in columns]
        self._places = np.array([numbered(column) for column in columns]).T

    def given(self, values: Mapping[str, Value]) -> list[int]:
        """Positions of the cells with these values of some variables.

        Raises
        ------
        ValueError
            For what is no variable, or no value of it.
        """
        matching = np.full(len(self._places), True)
        axes = positions_among(self.axes, values, "given")
        for axis, value in zip(axes, values.values(), strict=True):
            place = place_among(self.axes[axis], value, self._values[axis])
            matching &= self._places[:, axis] == place
        return np.flatnonzero(matching).tolist()

    def collapsed(
        self, axes: Sequence[int], inside: Sequence[int]
    ) -> tuple[tuple[Label, ...], list[list[int]]]:
        """Labels of the table of the variables at `axes`, and for each the positions of the cells
        among those at `inside` that it is of.
        """
        members: dict[tuple[int, ...], list[int]] = {}
        rows = self._places[np.ix_(inside, axes)].tolist()
        for cell, places in zip(inside, rows, strict=True):
            members.setdefault(tuple(places), []).append(cell)
        of_axes = [self._values[axis] for axis in axes]
        labels: list[Label] = []
        for places in sorted(members):
            values = [values[place] for values, place in zip(of_axes, places, strict=True)]
            labels.append(tuple(values) if len(axes) > 1 else values[0])
        return tuple(labels), [members[places] for places in sorted(members)]
