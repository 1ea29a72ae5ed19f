"""Releases that are read together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import Label, ReleasedData, Value
from opendp_bayes.release_format.labels import are_same, distinct, identity

#: Whether releases are looks at the same records, or of different records.
Records = Literal["same", "different"]


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
    """

    releases: Sequence[ReleasedData]
    records: Records
    draws_may_agree: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.releases, (list, tuple)):
            raise TypeError(
                "releases: must be a list of at least two releases, not"
                f" {type(self.releases).__name__}; tables by name have one posterior by"
                " combine_tables."
            )
        for place, release in enumerate(self.releases):
            if not isinstance(release, ReleasedData):
                raise TypeError(
                    f"releases[{place}]: must be a Release, not {type(release).__name__}; of a"
                    " grouped release combine the releases of one group."
                )
        as_choice(self.draws_may_agree, "draws_may_agree", (True, False))
        as_choice(self.records, "records", ("same", "different"))
        object.__setattr__(self, "releases", tuple(self.releases))
        if len(self.releases) < 2:
            raise ValueError(f"releases: holds {len(self.releases)}; give at least two.")
        first = self.releases[0]
        for place, release in enumerate(self.releases):
            check_whole(f"releases[{place}]", release)
            for name in ("categories", "prior", "learned_prior", "ordered"):
                one, other = getattr(release, name), getattr(first, name)
                if not (are_same(one, other) if name == "categories" else one == other):
                    raise ValueError(
                        f"releases[{place}]: has {name}={one}, the first has {other}; release all"
                        f" with the same {name}, or give tables of the same records by name, as in"
                        " combine_tables({'vote': one, 'vote and party': other})."
                    )
        named = {f"releases[{place}]": one for place, one in enumerate(self.releases)}
        if self.records == "same":
            check_same_records(named)
        if not self.draws_may_agree:
            check_given_once(named)

    @property
    def categories(self) -> tuple[Label, ...]:
        """The category labels."""
        return self.releases[0].categories

    @property
    def prior(self) -> tuple[float, ...]:
        """Concentration of the prior."""
        return self.releases[0].prior

    @property
    def learned_prior(self) -> bool:
        """True if the releases' posteriors learn their prior."""
        return self.releases[0].learned_prior

    @property
    def ordered(self) -> tuple[str, ...]:
        """The variables along which a learned prior is smooth."""
        return self.releases[0].ordered

    @property
    def axes(self) -> Any:
        """The variables of a joint table, those of every release."""
        return self.releases[0].axes

    def unordered_values(self, at: int = 0) -> tuple[Value, ...]:
        """The labels of a column, by its place, that are in no order in some release."""
        return tuple(distinct(x for one in self.releases for x in one.unordered_values(at)))

    @property
    def unordered(self) -> tuple[Label, ...]:
        """The categories that are in no order in some release."""
        return tuple(distinct(label for one in self.releases for label in one.unordered))

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.categories)

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
        cells = release.axes, identity(release.categories)
        key = cells, release.drawn, release.mechanism, release.size
        before = first.setdefault(key, name)
        if before != name:
            raise ValueError(
                f"{name}: is the same release as {before}, or an identical draw; using it twice"
                " would count it twice. Give it once, or where they are two draws that happen to"
                " agree, draws_may_agree=True."
            )
