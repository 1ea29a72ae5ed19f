"""The result of a query per group: one release for each group, which cost one query together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from opendp_bayes.display import notebook, plain
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.wording import group_name
from opendp_bayes.inference.pooling.pooled_groups import groups_of_release
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.release_format.data import Key, Label
from opendp_bayes.release_format.grouped_document import GroupedReleaseDocument
from opendp_bayes.release_format.labels import ByLabel, in_order
from opendp_bayes.release_format.promise import Promise, Promised
from opendp_bayes.results.figures import plot_groups
from opendp_bayes.results.pooled_release import Pooled, pooled
from opendp_bayes.results.release import Release
from opendp_bayes.results.sheets import grouped_sheet

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class GroupedRelease(Promised, Mapping[Key, Release]):
    """Private releases of the posteriors of groups: a mapping from each public group to its
    `Release`. Plain data: everything here may be published.

    Attributes
    ----------
    groups : the groups, in the order of the keys; None is that of the nulls. Tuples where several
        columns make the groups.
    drawn : what the mechanism drew for each group, one integer for each category; `counts` is made
        of it.
    categories, prior : labels and prior concentration, the same for every group.
    mechanism : made one draw for all groups.
    promise : what is promised to all records (`Promise`), those in no group included; its parts are
        also `size`, `d_in`, `loss` and so on. The numbers of records of the groups are private.
    axes : the columns of a joint table in every group; empty where one column is asked.
    rest : where the number of all records is public, what was drawn for those in no group;
        otherwise None.
    sizes : the public numbers of records of the groups, where `with_sizes` stated them; otherwise
        None.

    With a `rest`, the groups are parts of one table, `whole`, whose counts have a public sum: the
    posterior of each group is that of the table, conditional on being in the group. Without, the
    groups know nothing of each other, and the release of each states what is promised to records
    that join or leave it: add/remove neighbours. The losses of the groups do not add up: the loss
    is for all of them (`docs/proofs.md`, "Groups").
    """

    groups: tuple[Key, ...]
    drawn: tuple[tuple[int, ...], ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: Mechanism
    promise: Promise
    axes: tuple[str, ...] = ()
    rest: int | None = None
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if (self.rest is None) != (self.size is None):
            raise ValueError(
                f"rest={self.rest!r}: must be what was drawn for the rows in no group where the"
                f" number of records is public, and None where it is private; size={self.size!r}."
            )
        if self.sizes is not None:
            self._check_sizes(self.sizes)

    @property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """The released counts of each group, one for each category."""
        return tuple(release.counts for release in self.values())

    def __getitem__(self, key: Key) -> Release:
        return self._releases[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def whole(self) -> Release | None:
        """The release of all cells, group by group, and last of the rows in no group; None without
        `rest`. Its labels are text.
        """
        if self.rest is None:
            return None
        cells = [f"{group!r}: {label!r}" for group in self.groups for label in self.categories]
        return Release(
            drawn=(*(number for row in self.drawn for number in row), self.rest),
            categories=(*cells, "in no group"),
            prior=(*self.prior * len(self.groups), 1.0),
            mechanism=self.mechanism,
            promise=self.promise,
        )

    @cached_property
    def _releases(self) -> ByLabel[Key, Release]:
        whole = self.whole
        shared = self.categories, self.prior, self.mechanism, self.promise, self.axes, whole
        k, sizes = len(self.categories), self.sizes or (None,) * len(self.groups)
        each = enumerate(zip(self.groups, self.drawn, sizes, strict=True))
        releases = (
            (group, Release(drawn, *shared, 0 if whole is None else at * k, size))
            for at, (group, drawn, size) in each
        )
        return ByLabel(releases, ("group", "groups"))

    def with_sizes(self, sizes: Mapping[Key, int]) -> "GroupedRelease":
        """Copy the release with the number of records of every group stated, where these are public
        too, as a margin by the grouping columns with `invariant="lengths"` declares.

        The posterior of a group then knows how many records it has, is mostly narrower, and does
        not depend on the other groups (`docs/proofs.md`, "Groups"). Nothing is drawn anew, and the
        loss is what it was. A number that is not public is not protected here: do not state it.
        Needs a `rest`, and noise on the counts: K-norm, Gaussian or Laplace.

        Parameters
        ----------
        sizes : from each group to its number of records, at least 1.

        Raises `ValueError`/`TypeError` for other groups, for numbers that add up to more than all
        records, and for a release that does not allow it.
        """
        numbers = in_order(sizes, self.groups) if isinstance(sizes, Mapping) else None
        if numbers is None:
            raise ValueError(
                f"sizes={sizes!r}: must be a mapping with a number of records for each group,"
                f" {', '.join(map(repr, self.groups))}."
            )
        return replace(self, sizes=tuple(as_size(number, "sizes") for number in numbers))

    def _check_sizes(self, sizes: tuple[int, ...]) -> None:
        if self.size is None:
            raise ValueError(
                f"sizes={sizes!r}: the number of all records is private here, and so are those of"
                " the groups."
            )
        if len(sizes) != len(self.groups) or sum(sizes) > self.size or min(sizes) < 1:
            raise ValueError(
                f"sizes={sizes!r}: must be a positive number for each of {len(self.groups)} groups,"
                f" and add up to at most {self.size}, the number of all records."
            )
        assert self.whole is not None  # noqa: S101  # for the number of all records is public
        if not self.whole.setting.adds_noise:
            raise ValueError(
                f"sizes={sizes!r}: are used with noise on the counts only, such as KNormParameters,"
                f" not with {self.mechanism}."
            )

    def pooled(
        self,
        *,
        m_prior: ArrayLike = 1.0,
        kappa_prior: Any = None,
        ess: int = 100,
        seed: int | None = 0,
    ) -> Pooled:
        """Pool the groups: estimate each together with the others, alike as far as the release says
        so. The probabilities of all groups are drawn from one `Dirichlet(kappa * m)`.

        Returns a mapping from each group to a `PooledPosterior`, with `kappa`, `m` and
        `diagnostics`.

        Parameters
        ----------
        m_prior : concentration of the Dirichlet prior of m, one positive number or one for each
            category. The release's own `prior`, which is for a group alone, is not used.
        kappa_prior : prior of κ, a frozen continuous distribution of scipy on positive numbers; by
            default `scipy.stats.fisk(1, scale=10)`, under which `10 / (10 + κ)` is uniform.
        ess : the number of effective draws of ln κ and of every entry of m, from four
            Markov chains, unless 5500 sweeps do not suffice.
        seed : of the chains; None for another at each call.

        The true counts are unknown, and so are the numbers of records of the groups, except where
        `with_sizes` stated them: among all that agree with public knowledge, each is equally
        probable before. The privacy of the release is not touched. Raises `ValueError`/`TypeError`
        for priors that are not valid, and where the draw is not noise on counts; warns where the
        chains have not met.

        Source: `docs/pooling.md`.
        """
        return pooled(
            groups_of_release(self),
            self.promise,
            m_prior=m_prior,
            kappa_prior=kappa_prior,
            ess=ess,
            seed=seed,
        )

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A row for every group and category: released `count`, and `mean`, `std`, `lower` and
        `upper` of the noise-aware posterior.

        `lower` and `upper` are the ends of the equal-tailed interval of probability `level`. Groups
        and categories are shown as text, those of a joint table in a column for each of its
        variables.
        """
        import polars as pl

        parts = []
        for group, release in self.items():
            frame = release.to_frame(level)
            kept = [name for name in frame.columns if not name.startswith("plug_in_")]
            name = "group"
            while name in kept:
                name += "_"
            shown = pl.lit(None if group is None else group_name(group), dtype=pl.String)
            parts.append(frame.select(shown.alias(name), *kept))
        return pl.concat(parts)

    def plot(self, columns: int = 3) -> "Figure":
        """Small multiples: the posterior of every group, `columns` to a row, probabilities on one
        scale; returns a matplotlib `Figure`.

        Raises `ImportError` without matplotlib, which the extra `plot` installs.
        """
        return plot_groups(
            self, self.promise, min(as_size(columns, "columns", "columns"), len(self))
        )

    def sheet(self, level: float = 0.95, *, wait: bool = True) -> Sheet:
        """Sheet of the release: counts, means and intervals of probability `level` for every group,
        and the guarantee.

        Computes the posteriors, which may take seconds, or without `wait` only where that is quick.
        Raises `ValueError` unless `0 < level < 1`.
        """
        return grouped_sheet(self, self.promise, self.mechanism, level, wait=wait)

    def _repr_html_(self) -> str:
        """The table that notebooks show. The noise-aware columns need the posteriors to be quick to
        compute, or computed before.
        """
        return notebook.rendered(self.sheet(wait=False))

    def __rich__(self) -> Any:
        from opendp_bayes.display import terminal  # which needs rich, of the extra `cli`

        return terminal.rendered(self.sheet())

    def to_json(self) -> str:
        """The release as JSON; `GroupedRelease.from_json` reads it back."""
        return GroupedReleaseDocument.write(
            self,
            groups=[list(key) if isinstance(key, tuple) else key for key in self.groups],
            drawn=[list(row) for row in self.drawn],
            rest=self.rest,
            sizes=None if self.sizes is None else list(self.sizes),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "GroupedRelease":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        Raises `ValueError` that names the field and what is wrong with it. Version 1 is refused,
        which does not hold what was drawn, and so is a loss below what the mechanism loses at
        least, where that is computed in an instant.
        """
        return cls(**GroupedReleaseDocument.read(text).values())

    def __str__(self) -> str:
        return plain.rendered(self.sheet(wait=False), rows=20)

    def __repr__(self) -> str:
        k, own = len(self.categories), list(map(repr, self.categories))
        groups = (
            f"{group!r}: {{{shortly(map('{}: {}'.format, own, counts), k)}}}"
            for group, counts in zip(self, self.counts, strict=True)
        )
        return (
            f"GroupedRelease({{{shortly(groups, len(self))}}},"
            f" prior=[{shortly(self.prior, k)}], mechanism={self.mechanism},"
            f" {self._promised()})"
        )
