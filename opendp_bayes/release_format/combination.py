"""Releases that are read together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import are_same

#: Whether releases are looks at the same records, or of different records.
Records = Literal["same", "different"]


@dataclass(frozen=True)
class Combination:
    """Releases of the same categories with the same prior.

    Attributes
    ----------
    releases : at least two.
    records : `"same"`, whose true counts are equal, so that none is `truncated`, or `"different"`,
        which have nothing in common but the probabilities.
    draws_may_agree : whether two of them may hold the same: otherwise they are taken for one
        release, given twice.

    Raises `ValueError` for releases that do not fit each other.
    """

    releases: tuple[ReleasedData, ...]
    records: Records
    draws_may_agree: bool = False

    def __post_init__(self) -> None:
        as_choice(self.records, "records", ("same", "different"))
        if len(self.releases) < 2:
            raise ValueError(f"releases: holds {len(self.releases)}; give at least two.")
        first = self.releases[0]
        for place, release in enumerate(self.releases):
            if release.whole is not None:
                raise ValueError(
                    f"releases[{place}]: is one group of a table, and the noise of all groups is"
                    " one draw; combine the tables, `grouped.whole`, and look at the cells of the"
                    " group with `posterior.given(...)`."
                )
            if self.records == "same" and release.promise.truncated:
                raise ValueError(
                    f"releases[{place}]: is of rows that were limited for each identifier, and"
                    " which of them are kept may differ from release to release, and so may the"
                    " true counts; make one release with the budget of all, or limit the rows in"
                    " the frame, before the Context, with `contributions=` as the privacy unit."
                )
            for name, fits in (
                ("categories", are_same(release.categories, first.categories)),
                ("prior", release.prior == first.prior),
            ):
                if not fits:
                    raise ValueError(
                        f"releases[{place}]: has {name}={getattr(release, name)}, the first has"
                        f" {getattr(first, name)}; release all with the same {name}, or give"
                        " tables of the same records by name, as in combine({'vote': one, 'vote"
                        " and party': other}, records='same')."
                    )
        if self.records == "same" and len(self._sizes) > 1:
            raise ValueError(
                f"releases: have {sorted(self._sizes)} records, which cannot be the same; use"
                " records='different'."
            )
        if not self.draws_may_agree:
            self._check_given_once()

    def _check_given_once(self) -> None:
        """Raise `ValueError` where one draw is given twice, whatever is promised of it."""
        first: dict[Any, int] = {}
        for place, release in enumerate(self.releases):
            before = first.setdefault((release.drawn, release.mechanism, release.size), place)
            if before != place:
                raise ValueError(
                    f"releases[{place}]: is the same release as releases[{before}], or drew the"
                    " same; counted twice it would say twice as much. Give it once, or where they"
                    " are two draws that happen to agree, draws_may_agree=True."
                )

    @classmethod
    def of(
        cls, releases: Sequence[ReleasedData], records: Records, draws_may_agree: bool = False
    ) -> "Combination":
        """Combine a sequence of releases; `TypeError` where it holds anything else."""
        if not isinstance(releases, (list, tuple)):
            raise TypeError(f"releases={told(releases)}: must be a list of releases.")
        for place, release in enumerate(releases):
            if not isinstance(release, ReleasedData):
                raise TypeError(
                    f"releases[{place}]: must be a Release, not {type(release).__name__}; of a"
                    " grouped release combine the releases of one group."
                )
        as_choice(draws_may_agree, "draws_may_agree", (True, False))
        return cls(tuple(releases), records, draws_may_agree)

    @property
    def categories(self) -> tuple[Label, ...]:
        """The category labels."""
        return self.releases[0].categories

    @property
    def prior(self) -> tuple[float, ...]:
        """Concentration of the prior."""
        return self.releases[0].prior

    @property
    def axes(self) -> Any:
        """The variables of a joint table, those of every release."""
        return self.releases[0].axes

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def size(self) -> int | None:
        """The public number of all records; None where that of some is private."""
        if self.records == "same":
            return next(iter(self._sizes), None)
        sizes = [release.size for release in self.releases if release.size is not None]
        return sum(sizes) if len(sizes) == len(self.releases) else None

    @property
    def _sizes(self) -> set[int]:
        return {release.size for release in self.releases if release.size is not None}
