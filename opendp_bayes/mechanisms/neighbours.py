"""Which data sets are neighbours: it follows from whether the number of records is public."""

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
    """What becomes of the number of records, a mechanism's `total`, unless the user says: a public
    one is kept by the last count, a private one is not.

    >>> default_total(100)
    'remainder'
    """
    return "private" if size is None else "remainder"
