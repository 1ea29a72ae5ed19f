"""Releases of the same records as looks at tables of one set of variables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opendp_bayes.inference.compatible import check_given_once, check_same_rows, check_whole
from opendp_bayes.inference.likelihood.envelope import check_drawn
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
        axes = [release.axes or release.columns or (name,) for name, release in releases]
        variables = tuple(distinct(v for names in axes for v in names))
        labels: dict[str, tuple[Label, ...]] = {}
        unordered: dict[str, tuple[Label, ...]] = {}
        looks = []
        for (name, release), names in zip(releases, axes, strict=True):
            for at, v in enumerate(names):
                _settle(labels, v, _labels_of(release, at), name)
                own = (*unordered.get(v, ()), *release.unordered_values(at))
                unordered[v] = tuple(distinct(own))
            looks.append(_look(name, release, names, labels, variables))
        size = next((one.size for _, one in releases if one.size is not None), None)
        found = cls(
            variables,
            tuple(labels[v] for v in variables),
            tuple(looks),
            size,
            unordered,
        )
        scopes = [look.scope for look in looks]
        check_cliques(found.levels, scopes, [name for name, _ in releases])
        return found

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of labels of each variable."""
        return tuple(map(len, self.labels))


def check_tables(releases: list[tuple[str, ReleasedData]], draws_may_agree: bool) -> None:
    """Raise `ValueError` for releases that cannot be of the same records, or are given twice, and
    for counts that cannot have been drawn.
    """
    by_name = {f"tables[{name!r}]": release for name, release in releases}
    for name, release in by_name.items():
        check_whole(name, release)
    check_same_rows(by_name)
    if not draws_may_agree:
        check_given_once(by_name)
    for name, release in by_name.items():
        noisy = noise_of(name, release)
        try:
            check_drawn(noisy, release.size)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _check_not_merged(releases: list[tuple[str, ReleasedData]]) -> None:
    for name, release in releases:
        if release.parts:
            raise ValueError(
                f"tables[{name!r}]: merges categories, and there is another table that neither"
                " merges these nor is merged by them; take the nested tables alone, as in"
                " ob.combine_tables({name: survey[name] for name in [...]})."
            )


def _labels_of(release: ReleasedData, at: int) -> list[Label]:
    """The labels of one axis, in the order of the cells."""
    if not release.axes:
        return list(release.categories)
    return distinct(release.values_of_axes[release.axes[at]])


def _settle(labels: dict[str, tuple[Label, ...]], v: str, own: list[Label], name: str) -> None:
    """Note the labels of a variable; `ValueError` where another table has others."""
    known = labels.setdefault(v, tuple(own))
    if set(map(identity, known)) != set(map(identity, own)):
        raise ValueError(
            f"tables[{name!r}]: has the labels {own!r} of {v!r}, another table has {list(known)!r};"
            " ask all with the same labels, or merge them before."
        )


def _look(
    name: str,
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
            f"tables[{name!r}]: has {release.k} cells of {math.prod(shape)} combinations of labels;"
            " every combination needs one, so ask without cells=."
        )
    known = {v: places_of(labels[v]) for v in order}
    places = []
    for cell in release.categories:
        values: Any = cell if release.axes else (cell,)
        where = dict(zip(names, values, strict=True))
        place = [known[v][identity(where[v])] for v in order]
        places.append(int(np.ravel_multi_index(place, shape)))
    scope: Scope = tuple(variables.index(v) for v in order)
    return NoisyTable(scope, noise_of(f"tables[{name!r}]", release).placed(places, release.k))
