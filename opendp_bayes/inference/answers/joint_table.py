"""Joint tables: which cells, and which of them together, a table of some variables is of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import listed_names, meant, told
from opendp_bayes.mathematics.validation import as_names
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import distinct, numbered, place_of


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


def place_among(variable: str, value: Value, values: Iterable[Label]) -> int:
    """Find a value among those of a variable.

    Raises
    ------
    ValueError
        For what is none.
    """
    listed = distinct(values)
    position = place_of(value, listed)
    if position is None:
        raise ValueError(
            f"{variable}={told(value)}: is not a value of it; those are {listed_names(listed)}."
            f"{meant(value, listed)}"
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

    def grid(self) -> dict[str, tuple[Label, ...]]:
        """The values of each axis, where the cells are all their combinations, the last axis
        running fastest; empty otherwise.
        """
        places = np.indices([len(values) for values in self._values])
        if not np.array_equal(places.reshape(len(self.axes), -1).T, self._places):
            return {}
        return dict(zip(self.axes, map(tuple, self._values), strict=True))

    def collapsed(
        self, axes: Sequence[int], inside: Sequence[int]
    ) -> tuple[tuple[Label, ...], list[list[int]]]:
        """Labels of the table of the variables at `axes`, and for each the cells among those at
        `inside` that it is of.

        Raises
        ------
        ValueError
            Where less than two values remain.
        """
        members: dict[tuple[int, ...], list[int]] = {}
        for number, places in enumerate(self._places[np.ix_(inside, axes)].tolist()):
            members.setdefault(tuple(places), []).append(number)
        of_axes = [self._values[axis] for axis in axes]
        labels: list[Label] = []
        for places in sorted(members):
            values = [values[place] for values, place in zip(of_axes, places, strict=True)]
            labels.append(tuple(values) if len(axes) > 1 else values[0])
        if len(labels) < 2:
            raise ValueError(
                f"variables={[self.axes[axis] for axis in axes]!r}: have the values"
                f" {labels!r} only; the probability of one value is 1."
            )
        return tuple(labels), [members[places] for places in sorted(members)]
