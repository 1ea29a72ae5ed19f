"""Releases of the same records as looks at tables of one set of variables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opendp_bayes.inference.compatible import check_together
from opendp_bayes.inference.likelihood.drawn_counts import check_drawn
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import distinct, identity, places_of
from opendp_bayes.surveys.survey_tables.junction_tree import Scope, check_cliques
from opendp_bayes.surveys.survey_tables.tables import NoisyTable


@dataclass(frozen=True)
class NoisyTables:
    """Variables with their labels, and looks at tables of them.

    Attributes
    ----------
    variables : tuple[str, ...]
        Their names.
    labels : tuple[tuple[str or int or bool or tuple, ...], ...]
        Those of each variable.
    looks : tuple[NoisyTable, ...]
        One for each release.
    size : int or None
        The public number of records; None where it is private.
    unordered : dict[str, tuple[str or int or bool or tuple, ...]]
        Of variables by name, the labels that are in no order.
    """

    variables: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    looks: tuple[NoisyTable, ...]
    size: int | None
    unordered: dict[str, tuple[Label, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, named: Iterable[tuple[str, ReleasedData]], draws_may_agree: bool = False
    ) -> "NoisyTables":
        """Read releases by name. Where one column was asked that is the variable, or the name is
        where the column is not known.

        Raises
        ------
        ValueError
            For releases that are not whole tables of the same records with independent noise on
            their counts, or whose model is too large for chains.
        """
        releases = list(named)
        check_tables(releases, draws_may_agree)
        _check_not_merged(releases)
        axes = [release.axes or release.columns or (table,) for table, release in releases]
        variables = tuple(distinct(v for names in axes for v in names))
        labels: dict[str, tuple[Label, ...]] = {}
        unordered: dict[str, tuple[Label, ...]] = {}
        looks = []
        for (table, release), names in zip(releases, axes, strict=True):
            for axis, v in enumerate(names):
                values = release.values_of_axes[v] if release.axes else release.categories
                _settle(labels, v, distinct(values), table)
                unordered_values = (*unordered.get(v, ()), *release.unordered_values(axis))
                unordered[v] = tuple(distinct(unordered_values))
            looks.append(_look(table, release, names, labels, variables))
        size = next((release.size for _, release in releases if release.size is not None), None)
        noisy = cls(variables, tuple(labels[v] for v in variables), tuple(looks), size, unordered)
        scopes = [look.scope for look in looks]
        check_cliques(noisy.levels, scopes, [table for table, _ in releases])
        return noisy

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of labels of each variable."""
        return tuple(map(len, self.labels))


def check_tables(releases: list[tuple[str, ReleasedData]], draws_may_agree: bool) -> None:
    """Raise `ValueError` for releases that cannot be of the same records, or are given twice, and
    for counts that cannot have been drawn.
    """
    by_name = {f"tables[{table!r}]": release for table, release in releases}
    check_together(by_name, draws_may_agree)
    for table, release in by_name.items():
        noisy = noise_of(table, release)
        try:
            check_drawn(noisy, release.size)
        except ValueError as error:
            raise ValueError(f"{table}: {error}") from None


def _check_not_merged(releases: list[tuple[str, ReleasedData]]) -> None:
    for table, release in releases:
        if release.parts:
            raise ValueError(
                f"tables[{table!r}]: merges categories, and there is another table that neither"
                " merges these nor is merged by them; take the nested tables alone, as in"
                " ob.combine_tables({name: survey[name] for name in [...]})."
            )


def _settle(
    labels: dict[str, tuple[Label, ...]], v: str, labels_of_table: list[Label], table: str
) -> None:
    """Note the labels of a variable; `ValueError` where another table has others."""
    labels_before = labels.setdefault(v, tuple(labels_of_table))
    if set(map(identity, labels_before)) != set(map(identity, labels_of_table)):
        raise ValueError(
            f"tables[{table!r}]: has the labels {labels_of_table!r} of {v!r}, another table has"
            f" {list(labels_before)!r}; ask all with the same labels, or merge them before."
        )


def _look(
    table: str,
    release: ReleasedData,
    names: Sequence[str],
    labels: dict[str, tuple[Label, ...]],
    variables: tuple[str, ...],
) -> NoisyTable:
    """The counts of a release in the order of the variables and their labels."""
    order = sorted(names, key=variables.index)
    shape = [len(labels[v]) for v in order]
    if math.prod(shape) != release.k:
        raise ValueError(
            f"tables[{table!r}]: has {release.k} cells of {math.prod(shape)} combinations of"
            " labels; every combination needs one, so ask without cells=."
        )
    positions = {v: places_of(labels[v]) for v in order}
    places = []
    for cell in release.categories:
        values: Any = cell if release.axes else (cell,)
        where = dict(zip(names, values, strict=True))
        position = [positions[v][identity(where[v])] for v in order]
        places.append(int(np.ravel_multi_index(position, shape)))
    scope: Scope = tuple(variables.index(v) for v in order)
    return NoisyTable(scope, noise_of(f"tables[{table!r}]", release).placed(places, release.k))
