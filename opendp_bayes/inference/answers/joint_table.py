"""Joint tables: which cells, and which of them together, a table of some variables is of."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from opendp_bayes.mathematics.telling import listed_names, meant, told
from opendp_bayes.mathematics.validation import as_names
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import are_same, distinct, identity, place_of, places_of


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


def cells_given(
    axes: tuple[str, ...], cells: tuple[Any, ...], given: Mapping[str, Value]
) -> list[int]:
    """Positions of the cells with the given values.

    Raises
    ------
    ValueError
        For what is no variable, or no value of it.
    """
    matching = list(range(len(cells)))
    places = positions_among(axes, given, "given")
    for axis, value in zip(places, given.values(), strict=True):
        place_among(axes[axis], value, [cell[axis] for cell in cells])
        matching = [
            cell_number for cell_number in matching if are_same(cells[cell_number][axis], value)
        ]
    return matching


def grid_of(axes: tuple[str, ...], cells: tuple[Any, ...]) -> dict[str, tuple[Label, ...]]:
    """The values of each axis, where the cells are all their combinations, the last axis running
    fastest; empty otherwise.
    """
    values = {
        axis: tuple(distinct(cell[position] for cell in cells))
        for position, axis in enumerate(axes)
    }
    if math.prod(map(len, values.values())) != len(cells):
        return {}
    return values if all(map(are_same, product(*values.values()), cells)) else {}


def collapsed(
    axes: tuple[str, ...], cells: tuple[Any, ...], chosen: Sequence[int], inside: Sequence[int]
) -> tuple[tuple[Label, ...], list[list[int]]]:
    """Labels of the table of the variables at `chosen`, and for each the cells among those at
    `inside` that it is of.

    Raises
    ------
    ValueError
        Where less than two values remain.
    """
    order = [places_of(cell[axis] for cell in cells) for axis in chosen]
    members: dict[tuple[int, ...], list[int]] = {}
    for number, cell_number in enumerate(inside):
        values = [cells[cell_number][axis] for axis in chosen]
        key = tuple(
            places_of_values[identity(value)]
            for places_of_values, value in zip(order, values, strict=True)
        )
        members.setdefault(key, []).append(number)
    together = [members[key] for key in sorted(members)]
    firsts = [[cells[inside[group[0]]][axis] for axis in chosen] for group in together]
    labels: list[Label] = [tuple(values) if len(chosen) > 1 else values[0] for values in firsts]
    if len(labels) < 2:
        raise ValueError(
            f"variables={[axes[axis] for axis in chosen]!r}: have the values"
            f" {labels!r} only; the probability of one value is 1."
        )
    return tuple(labels), together
