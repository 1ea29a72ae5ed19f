"""Neighbouring data sets: the relation between them, and how far apart their counts are."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from opendp_bayes.mathematics.validation import as_distance

#: A record is exchanged for another, or a record joins or leaves.
Relation = Literal["change-one", "add/remove"]


def relation_of(size: int | None) -> Relation:
    """The neighbour relation that goes with a public (`int`) or private (`None`) number of records.

    Examples
    --------
    >>> relation_of(None)
    'add/remove'
    """
    return "add/remove" if size is None else "change-one"


def default_total(size: int | None) -> Literal["remainder", "private"]:
    """Default for a mechanism's `total`: the last count keeps a public number of records, and
    nothing keeps a private one.

    Examples
    --------
    >>> default_total(100)
    'remainder'
    """
    return "private" if size is None else "remainder"


@dataclass(frozen=True)
class Distance:
    """Largest distance of the counts of neighbouring data sets, in three norms.

    Under change-one neighbours each holds for the counts that rise alone, and for those that fall.
    Every bound is lowered to what the others imply. As a whole number a distance is its `records`,
    and a whole number d is the distance (d, d^2, d): all records may be in one count
    (`docs/research/proofs.md`, "Distances of counts").

    Attributes
    ----------
    records : int
        The sum of what all counts move by.
    squared : int
        The sum of the squares.
    largest : int
        What one count moves by.

    Examples
    --------
    >>> Distance.limited(10, largest=1)
    Distance(records=10, squared=10, largest=1)
    >>> Distance.of(3)
    Distance(records=3, squared=9, largest=3)
    """

    records: int
    squared: int
    largest: int

    def __post_init__(self) -> None:
        records, squared, largest = map(as_distance, (self.records, self.squared, self.largest))
        records = min(records, squared)
        largest = min(largest, records, math.isqrt(squared))
        records = records if largest else 0
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "largest", largest)
        of_pieces = sum(number * moved**2 for moved, number in self.pieces)
        object.__setattr__(self, "squared", min(squared, of_pieces))

    @classmethod
    def of(cls, d_in: "SupportsIndex | Distance") -> "Distance":
        """A distance as it is, or that of a whole number; `ValueError`/`TypeError` for others."""
        if isinstance(d_in, Distance):
            return d_in
        records = as_distance(d_in)
        return cls(records, records**2, records)

    @classmethod
    def limited(cls, records: int, largest: int) -> "Distance":
        """Distance of so many records, of which at most `largest` are in one count."""
        return cls.among(records, {largest: records})

    @classmethod
    def among(cls, records: int, counts: Mapping[int, int]) -> "Distance":
        """Distance of so many records among counts that have limits: `counts` has the number of
        counts of each limit. The sum of squares is largest where the largest limits are used up
        first.
        """
        left, squared = records, 0
        for largest, number in sorted(counts.items(), reverse=True):
            moved = min(left, number * largest)
            whole, rest = divmod(moved, max(largest, 1))
            squared += whole * largest**2 + rest**2
            left -= moved
        return cls(records - left, squared, max(counts, default=0))

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """The records in as few counts as can be: what each moves by, and how many there are."""
        if not self.largest:
            return ()
        number, remainder = divmod(self.records, self.largest)
        return ((self.largest, number), *(((remainder, 1),) if remainder else ()))

    @property
    def stated(self) -> "int | Distance":
        """The whole number of records where that says all, as maps state it."""
        return self.records if self == Distance.of(self.records) else self

    def within(self, size: int | None) -> "Distance":
        """Distance where no more than `size` records can move, or any number."""
        if size is None or self.records <= size:
            return self
        return Distance(size, self.squared, min(self.largest, size))

    def __index__(self) -> int:
        return self.records

    def __le__(self, other: "Distance") -> bool:
        return (
            self.records <= other.records
            and self.squared <= other.squared
            and self.largest <= other.largest
        )


ONE_RECORD = Distance.of(1)
