"""Releases that are read together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import Label, ReleasedData, Value
from opendp_bayes.release_format.labels import are_same, distinct, identity

#: Whether releases are looks at the same records, or of different records.
Records = Literal["same", "different"]
#: What all of them have in common.
_SHARED = ("categories", "prior", "learned_prior", "ordered", "axes", "k")


@dataclass(frozen=True)
class Combination:
    """Releases of the same categories with the same prior.

    Raises `ValueError` for releases that do not fit each other.

    Attributes
    ----------
    releases : tuple[Release, ...]
        At least two.
    records : {"same", "different"}
        `"same"`, whose true counts are equal, so that rows were limited by one fixed rule
        (`PrivacyGuarantee.kept`) or not at all; or `"different"`, which have nothing in common but
        the probabilities.
    draws_may_agree : bool
        Whether two of them may hold the same: otherwise they are taken for one release, given
        twice.
    categories, prior, learned_prior, ordered, axes, k
        Those of every release.
    """

    releases: Sequence[ReleasedData]
    records: Records
    draws_may_agree: bool = False
    categories: tuple[Label, ...] = field(init=False)
    prior: tuple[float, ...] = field(init=False)
    learned_prior: bool = field(init=False)
    ordered: tuple[str, ...] = field(init=False)
    axes: Any = field(init=False)
    k: int = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.releases, (list, tuple)):
            raise TypeError(
                "releases: must be a list of at least two releases, not"
                f" {type(self.releases).__name__}; tables by name have one posterior by"
                " combine_tables."
            )
        as_choice(self.draws_may_agree, "draws_may_agree", (True, False))
        as_choice(self.records, "records", ("same", "different"))
        if len(self.releases) < 2:
            raise ValueError(f"releases: holds {len(self.releases)}; give at least two.")
        first = self.releases[0]
        named = {f"releases[{place}]": one for place, one in enumerate(self.releases)}
        for name, release in named.items():
            if not isinstance(release, ReleasedData):
                raise TypeError(
                    f"{name}: must be a Release, not {type(release).__name__}; of a grouped release"
                    " combine the releases of one group."
                )
            check_whole(name, release)
            for shared in _SHARED[:4]:
                one, other = getattr(release, shared), getattr(first, shared)
                if not are_same(one, other):
                    raise ValueError(
                        f"{name}: has {shared}={one}, the first has {other}; release all with the"
                        f" same {shared}, or give tables of the same records by name, as in"
                        " combine_tables({'vote': one, 'vote and party': other})."
                    )
        if self.records == "same":
            check_same_records(named)
        if not self.draws_may_agree:
            check_given_once(named)
        for shared in _SHARED:
            object.__setattr__(self, shared, getattr(first, shared))
        object.__setattr__(self, "releases", tuple(self.releases))

    def unordered_values(self, at: int = 0) -> tuple[Value, ...]:
        """The labels of a column, by its place, that are in no order in some release."""
        return tuple(distinct(x for one in self.releases for x in one.unordered_values(at)))

    @property
    def unordered(self) -> tuple[Label, ...]:
        """The categories that are in no order in some release."""
        return tuple(distinct(label for one in self.releases for label in one.unordered))

    @property
    def size(self) -> int | None:
        """The public number of all records; None where that of some is private."""
        sizes = [release.size for release in self.releases if release.size is not None]
        if self.records == "same":
            return next(iter(sizes), None)
        return sum(sizes) if len(sizes) == len(self.releases) else None


def check_whole(name: str, release: ReleasedData) -> None:
    """Raise `ValueError` for one group of a table, by its name."""
    if release.whole is not None:
        raise ValueError(
            f"{name}: is one group of a table, and the noise of all groups is one draw; give the"
            " table, `grouped.whole`, and look at the cells of the group with"
            " `posterior.given(...)`."
        )


def check_same_records(named: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where releases, by their names, cannot be of the same records."""
    first = next(iter(named))
    for name, release in named.items():
        guarantee = release.guarantee
        if guarantee.truncated and not guarantee.kept:
            raise ValueError(
                f"{name}: is of rows that were limited for each identifier, and which of them are"
                " kept may differ from release to release, and so may the true counts; keep the"
                " first of each, with `query.truncate_per_group(..., keep='first')`, or ask all in"
                " one `ob.survey`."
            )
        if guarantee.kept != named[first].guarantee.kept:
            raise ValueError(
                f"{name}: is of {guarantee.kept or 'all rows'}, and {first} is of"
                f" {named[first].guarantee.kept or 'all rows'}, so that their true counts differ;"
                " release all with the same limit."
            )
    sizes = {name: one.size for name, one in named.items() if one.size is not None}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(
            f"records: cannot be the same, because their public numbers differ: {shown}. Different"
            " records combine as a list, with records='different'."
        )


def check_given_once(named: Mapping[str, ReleasedData]) -> None:
    """Raise `ValueError` where one draw is given twice, whatever is promised of it."""
    first: dict[Any, str] = {}
    for name, release in named.items():
        table = release.axes, identity(release.categories), release.size
        before = first.setdefault((table, release.drawn, release.mechanism), name)
        if before != name:
            raise ValueError(
                f"{name}: is the same release as {before}, or an identical draw; using it twice"
                " would count it twice. Give it once, or where they are two draws that happen to"
                " agree, draws_may_agree=True."
            )
