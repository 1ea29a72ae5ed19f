"""Bounds of a privacy unit, and the distance of the counts that it changes
(`docs/research/proofs.md`, "Distances of counts").
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.mathematics.validation import Floats, as_distance
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.kinds import ColumnKind, is_pattern

#: What rows are grouped by: the name of a column, or an expression as polars writes it down.
Key = str | bytes
#: Stands for any number of values.
_MANY = 2.0**70


@dataclass(frozen=True)
class Limit:
    """Limits on the rows that a unit changes, in groups by some keys: the most in one group, and
    the most groups; None for what is not limited.
    """

    by: frozenset[Key]
    per_group: int | None = None
    num_groups: int | None = None


@dataclass(frozen=True)
class Bounds:
    """The rows that a unit adds and removes: limits, all of which hold."""

    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, d_in: Any) -> "Bounds":
        """A distance between frames: `Bounds`, a `Bound` of OpenDP or a list of them, or a number
        of rows.

        Raises
        ------
        ValueError, TypeError
            For others, and where the rows are not limited.
        """
        if isinstance(d_in, Bounds):
            return d_in
        if not isinstance(d_in, Sequence) and not hasattr(d_in, "by"):
            return cls((Limit(frozenset(), as_distance(d_in)),))
        stated = d_in if isinstance(d_in, Sequence) else [d_in]
        bounds = cls(
            tuple(
                Limit(frozenset(map(_key, bound.by)), bound.per_group, bound.num_groups)
                for bound in stated
            )
        )
        if bounds._per_group(frozenset()) is None:
            raise ValueError(
                f"d_in={d_in!r}: no Bound limits the number of records of a unit. Give"
                " Bound(by=[], per_group=...), or per_group= together with num_groups=; with an"
                " identifier, truncate first with `query.truncate_per_group(k)`."
            )
        return bounds

    @property
    def records(self) -> int:
        """The most rows."""
        return self.per_group(frozenset())

    def per_group(self, columns: frozenset[Key]) -> int:
        """The most rows in one group by some columns."""
        most = self._per_group(columns)
        assert most is not None  # noqa: S101 (as `of` has checked)
        return most

    def _per_group(self, columns: frozenset[Key]) -> int | None:
        """Rows with the same values of the columns are in as many groups of a limit as the other
        keys of that limit have; no more than `per_group` of them in each.
        """
        return min(
            (
                limit.per_group * groups
                for limit in self.limits
                if limit.per_group is not None
                and (groups := self._groups(limit.by - columns)) is not None
            ),
            default=None,
        )

    def _groups(self, keys: frozenset[Key]) -> int | None:
        """The most groups by some keys: of limits that have all of these keys together, the product
        of their numbers.
        """
        if not keys:
            return 1
        first = min(keys, key=str)
        return min(
            (
                limit.num_groups * others
                for limit in self.limits
                if limit.num_groups is not None
                and first in limit.by
                and (others := self._groups(keys - limit.by)) is not None
            ),
            default=None,
        )

    def of_people(self, column: Key, person: str, people: int) -> "Bounds":
        """Bounds of rows of which each person has one for each value of a column, where the unit
        is so many people.
        """
        limits = Limit(frozenset((column, person)), 1), Limit(frozenset((person,)), None, people)
        return Bounds((*self.limits, *limits))

    def distance(
        self, cells: Cells, kinds: Mapping[str, ColumnKind], kept: frozenset[str]
    ) -> Distance:
        """The distance of the counts of cells (`docs/research/proofs.md`, "Distances of counts").
        Of equal numbers of rows it is that for one side of as many changes as there can be.

        Parameters
        ----------
        cells : Cells
            In which the rows are counted.
        kinds : Mapping[str, ColumnKind]
            Of the columns that they are counted by.
        kept : frozenset[str]
            Of these, the columns that are what they were when the Bounds were stated. A Bound by
            any other column limits the number of rows alone.
        """
        records = self.records if cells.space.size is None else (self.records + 1) // 2
        columns = kept & {axis.column for axis in cells.axes}
        most = np.full(cells.space.k, records, dtype=object)
        for group in {columns & limit.by for limit in self.limits} - {frozenset()}:
            values = _number_of_values(cells, kinds, group)
            per_group = self.per_group(group)
            limits = {
                number: records if number >= _MANY else min(records, int(number) * per_group)
                for number in np.unique(values).tolist()
            }
            most = np.minimum(most, [limits[number] for number in values.tolist()])
        return Distance.among(records, Counter(most.tolist()))


def _key(key: Any) -> Key:
    expr = pl.col(key) if isinstance(key, str) else key
    name = expr.meta.output_name() if expr.meta.is_column() else "*"
    return bytes(expr.meta.serialize()) if is_pattern(name) else str(name)


def _number_of_values(
    cells: Cells, kinds: Mapping[str, ColumnKind], columns: frozenset[str]
) -> Floats:
    """Number of different values of some columns are counted in each cell, shape `(k,)`; at least
    `_MANY` where that is not known.
    """
    chosen = [position for position, axis in enumerate(cells.axes) if axis.column in columns]
    others = [position for position in range(len(cells.axes)) if position not in chosen]
    values = np.ones(())
    for position in chosen:
        axis = cells.axes[position]
        values = np.multiply.outer(
            values, _values_at(axis, kinds[axis.column], cells.index.shape[position])
        )
    index = cells.index.transpose(*chosen, *others).reshape(values.size, -1)
    k = cells.space.k
    pairs = np.unique(index + 1 + (k + 1) * np.arange(values.size)[:, None])
    group, cell = np.divmod(pairs, k + 1)
    return np.bincount(cell, values.ravel()[group], minlength=k + 1)[1:].astype(
        np.float64
    )  # without those of no cell


def _values_at(axis: Axis, kind: ColumnKind, places: int) -> Floats:
    """Number of values that have each place of an axis."""
    values = np.zeros(places)
    values[: len(axis.values)] = 1
    values[axis.null] += kind.nullable
    values[axis.unknown] += _unlisted(axis, kind)
    return values


def _unlisted(axis: Axis, kind: ColumnKind) -> float:
    """Number of values that a column may have beside those of its axis."""
    declared = {False, True} if kind.kind == "boolean" else kind.declared
    return _MANY if declared is None else len(set(declared) - set(axis.values))
