"""Derive the neighbouring relation from whether the number of records is public."""

from typing import Literal

#: A record is exchanged for another, or a record joins or leaves.
Relation = Literal["change-one", "add/remove"]


def relation_of(size: int | None) -> Relation:
    """The neighbour relation that goes with a public (`int`) or private (`None`) number of records.

    >>> relation_of(None)
    'add/remove'
    """
    return "add/remove" if size is None else "change-one"


def default_total(size: int | None) -> Literal["remainder", "private"]:
    """Default for a mechanism's `total`: the last count keeps a public number of records, and
    nothing keeps a private one.

    >>> default_total(100)
    'remainder'
    """
    return "private" if size is None else "remainder"
