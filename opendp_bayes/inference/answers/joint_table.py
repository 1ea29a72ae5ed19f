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
    return [axes.index(name) for name in names]


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
    known = distinct(values)
    place = place_of(value, known)
    if place is None:
        raise ValueError(
            f"{variable}={told(value)}: is not a value of it; those are {listed_names(known)}."
            f"{meant(value, known)}"
        )
    return place


def cells_given(
    axes: tuple[str, ...], cells: tuple[Any, ...], given: Mapping[str, Value]
) -> list[int]:
    """Positions of the cells with the given values.

    Raises
    ------
    ValueError
        For what is no variable, or no value of it.
    """
    found = list(range(len(cells)))
    places = positions_among(axes, given, "given")
    for place, value in zip(places, given.values(), strict=True):
        place_among(axes[place], value, [cell[place] for cell in cells])
        found = [at for at in found if are_same(cells[at][place], value)]
    return found


def grid_of(axes: tuple[str, ...], cells: tuple[Any, ...]) -> dict[str, tuple[Label, ...]]:
    """The values of each axis, where the cells are all their combinations, the last axis running
    fastest; empty otherwise.
    """
    values = {axis: tuple(distinct(cell[at] for cell in cells)) for at, axis in enumerate(axes)}
    if math.prod(map(len, values.values())) != len(cells):
        return {}
    return values if all(map(are_same, product(*values.values()), cells)) else {}


def collapsed(
    axes: tuple[str, ...], cells: tuple[Any, ...], kept: Sequence[int], inside: Sequence[int]
) -> tuple[tuple[Label, ...], list[list[int]]]:
    """Labels of the table of the variables at `kept`, and for each the cells among those at
    `inside` that it is of.

    Raises
    ------
    ValueError
        Where less than two values remain.
    """
    order = [places_of(cell[place] for cell in cells) for place in kept]
    members: dict[tuple[int, ...], list[int]] = {}
    for number, at in enumerate(inside):
        values = [cells[at][place] for place in kept]
        key = tuple(known[identity(value)] for known, value in zip(order, values, strict=True))
        members.setdefault(key, []).append(number)
    together = [members[key] for key in sorted(members)]
    firsts = [[cells[inside[group[0]]][place] for place in kept] for group in together]
    labels: list[Label] = [tuple(values) if len(kept) > 1 else values[0] for values in firsts]
    if len(labels) < 2:
        raise ValueError(
            f"variables={[axes[place] for place in kept]!r}: have the values"
            f" {labels!r} only; the probability of one value is 1."
        )
    return tuple(labels), together
