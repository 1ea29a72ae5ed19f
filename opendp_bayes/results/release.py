"""The analyst's results: a release with its posteriors, tables, pictures and JSON, and releases of
groups, which cost one query together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.sheet import labelled_frame
from opendp_bayes.display.wording import group_name, in_plain_words
from opendp_bayes.mathematics.telling import shortly, told
from opendp_bayes.mathematics.validation import as_flag, as_level, as_size
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import Key, Label, ReleasedData, Value
from opendp_bayes.release_format.document import ReleaseDocument
from opendp_bayes.release_format.labels import ByLabel, in_order, position_of
from opendp_bayes.release_format.privacy_guarantee import Guaranteed, PrivacyGuarantee
from opendp_bayes.results.estimates import (
    Estimate,
    are_computed_together,
    estimate_of,
    estimate_of_groups,
    estimates_frame,
    plug_in_estimate,
    results_of,
)
from opendp_bayes.results.figures import plot_estimates, plot_release
from opendp_bayes.results.sheets import Estimated

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
    from opendp_bayes.results.pooled_release import Pooled


#: Categories of one table, and shares of groups that are computed together, in about a second.
_QUICK_TABLE, _QUICK = 500, 2000


@dataclass(frozen=True, eq=False)
class Release(Estimated, ReleasedData):
    """A private release of a posterior. Plain data: everything here may be published.

    Attributes
    ----------
    noisy_counts
        What the mechanism drew, an integer for each category; those of added noise may be negative
        and need not sum to the number of records. `counts` is made of it.
    categories
        The category labels.
    prior
        Concentration of the prior, one entry for each category.
    mechanism
        The mechanism that made the release, with its scale.
    guarantee
        Between which data sets the privacy loss holds, and what it is (`PrivacyGuarantee`); its
        parts are also `size`, `d_in`, `loss`, `measure`, `relation`, `epsilon`, `delta` and `rho`.
    axes
        The columns of a joint table, whose labels are tuples; empty where one column is asked.
    whole, inside
        For one group of a table of groups, the release of all groups, whose mechanism and promise
        it has, and the places of its categories in it; None and empty elsewhere.
    group_size
        The number of records of that group, where it is public too.
    learned_prior
        Whether `posterior` learns its prior from the release (`prior="learned"` in a query).
        `prior` is that of `plug_in` then.
    ordered
        The variables along which a learned prior is smooth.
    parts
        Of merged categories (`merge=` in a survey), the labels that each of them stands for; empty
        where none are merged.
    columns
        Those that were counted, also where one was; empty where they are not known.
    nulls, unknown
        Of each column counted, the label under which nulls, and values that are none of its
        categories, are counted, and no category is; None where there is no such label. Ordered
        answers leave them out, as they do `unordered`.
    """

    @classmethod
    def of(cls, data: ReleasedData, **stated: Any) -> "Release":
        """The release of what was drawn, with more fields `stated`."""
        values = {field.name: getattr(data, field.name) for field in fields(data)}
        return cls(**values | stated)

    @property
    def plug_in(self) -> Any:
        """The papers' posterior: the released counts taken as if they were the data.

        A frozen `scipy.stats.beta` (k = 2, probability of the first category) or
        `scipy.stats.dirichlet`. It ignores the noise, so its intervals are too short
        (`docs/limits.md`); `posterior` does not.
        """
        from scipy import stats

        return (
            stats.beta(*self.concentration) if self.k == 2 else stats.dirichlet(self.concentration)
        )

    @cached_property
    def posterior(self) -> "NoiseAwarePosterior":
        """The posterior of the category probabilities given the release, its noise taken into
        account (`NoiseAwarePosterior`).

        Computed when first used; `noise_aware_posterior` makes one with other settings.
        """
        from opendp_bayes.inference.noise_aware import noise_aware_posterior

        if isinstance(self.source, Release):  # whose posterior all its groups share
            return self.source.posterior._part(self)
        return noise_aware_posterior(self)

    @property
    def has_posterior(self) -> bool:
        """True if `posterior` was computed before."""
        return "posterior" in vars(self)

    def __getitem__(self, label: Label) -> int:
        """The released count of one category. Raises `KeyError` for what is none."""
        return self.counts[position_of(label, self.categories)]

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> "Axes":
        """Draw `posterior` beside `plug_in`, with intervals of probability `level`, on `ax` or on
        new axes; returns the axes.

        A dot with its interval for each category, of the first 100. The guarantee stands above, and
        `title` above it. A table of two variables is a heat map of the means, with their intervals
        where there are at most 120 cells; draw two of more by `posterior.marginal`.

        Raises
        ------
        ImportError
            Without matplotlib (extra `plot`), `ValueError` unless `0 < level < 1`, or where the
            posterior is refused.
        """
        return plot_release(self, ax, level=as_level(level), title=title)

    def by(self, *columns: str) -> Mapping[Key, "Release"]:
        """The releases of the groups that some columns of a joint table make: a mapping from their
        values, tuples where they are several, to releases of the other columns.

        Each is as a query by these columns would have made it of the same draws. Where the number
        of records is private a group stands for itself; where it is public, or the prior is
        learned, the group is a part of the table, `whole`, and its posterior that of the table,
        conditional on being in it. Nothing is drawn anew, and the loss of each is that of all.

        Raises
        ------
        ValueError, TypeError
            For what is no column of the table, for all of them, and for a table that leaves out
            cells.
        """
        from opendp_bayes.inference.pooling.pooled_groups import cells_by

        keys, categories, places = cells_by(self, columns, "columns")
        left = [place for place, axis in enumerate(self.axes) if axis not in columns]
        axes = tuple(self.axes[place] for place in left)
        shares = self.size is not None or self.learned_prior
        releases = (
            Release(
                tuple(self.noisy_counts[cell] for cell in cells),
                categories,
                tuple(self.prior[cell] for cell in cells),
                self.mechanism,
                self.guarantee,
                axes if len(axes) > 1 else (),
                whole=self if shares else None,
                inside=tuple(cells) if shares else (),
                learned_prior=self.learned_prior,
                ordered=tuple(axis for axis in self.ordered if axis in axes),
                columns=axes if self.columns else (),
                nulls=tuple(self.nulls[place] for place in left if self.nulls),
                unknown=tuple(self.unknown[place] for place in left if self.unknown),
            )
            for cells in places.tolist()
        )
        return ByLabel(zip(keys, releases, strict=True), ("group", "groups"))

    def pooled(
        self,
        by: str | Sequence[str],
        *,
        m_prior: ArrayLike = 1.0,
        kappa_prior: Any = None,
        ess: int = 100,
        random_state: int | None = 0,
    ) -> "Pooled":
        """Pool the groups of a joint table: estimate each together with the others, so that they
        borrow strength. A group is all records with the same values of the variables `by`.

        Of a public `size` the mean number of records of a group is used, and not the sum.

        Source: `docs/groups.md`.

        Parameters
        ----------
        by : str or Sequence[str]
            One variable of the table, or several, whose groups are tuples; the values of the others
            are the categories, tuples where they are several.
        m_prior : array_like, default 1.0
            Concentration of the Dirichlet prior of m, one positive number or one for each category.
            The release's own `prior`, which is for a group alone, is not used.
        kappa_prior : Any, optional
            Prior of κ, a frozen continuous distribution of scipy on positive numbers; by default
            `scipy.stats.fisk(1, scale=10)`, under which `10 / (10 + κ)` is uniform.
        ess : int, default 100
            How many effective draws of κ and m there are at least; each has two draws of the
            counts.
        random_state : int or None, default 0
            Of the draws; None for another at each call.

        Returns
        -------
        Pooled
            A mapping from each group to the posterior of the other variables, with `kappa`,
            `m` and `diagnostics`.

        Raises
        ------
        ValueError, TypeError
            For a variable or prior that does not fit, and where too few draws are effective. For a
            release that is no joint table, leaves out cells of it or is not noise on every count.
        """
        from opendp_bayes.inference.pooling.pooled_groups import groups_of_table
        from opendp_bayes.results.pooled_release import pooled

        return pooled(
            groups_of_table(self, by),
            self.guarantee,
            m_prior=m_prior,
            kappa_prior=kappa_prior,
            ess=ess,
            random_state=random_state,
        )

    def to_frame(self, level: float = 0.95, *, plug_in: bool = False) -> "pl.DataFrame":
        """A polars frame with a row for each category.

        Columns: `category` as text, or for a joint table one for each of its variables (with `_` at
        the end of a name that is that of a result); `mean`, `std`, `lower` and `upper` of
        `posterior`, their `level`, and the `count` as released.

        Parameters
        ----------
        level : float, default 0.95
            The probability of the equal-tailed intervals.
        plug_in : bool, default False
            Whether there are also the results that ignore the noise, as `plug_in_mean`,
            `plug_in_std`, `plug_in_lower` and `plug_in_upper`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`, or where the posterior is refused.
        """
        return self._frame(self._estimate(level), level, plug_in=as_flag(plug_in, "plug_in"))

    def _estimate(self, level: float) -> Estimate:
        return estimate_of(self.posterior, as_level(level))

    def _is_quick(self) -> bool:
        """True if its estimates take at most a second or two."""
        if isinstance(self.source, Release):
            return self.source._is_quick()
        is_small = self.k <= _QUICK_TABLE
        if not self.setting.adds_noise:  # a private number is refused at once
            is_small = self.size is None or (self.k == 2 and self.setting.law is not None)
        return self.has_posterior or (is_small and not self.learned_prior)

    def _frame(self, estimate: Estimate | None, level: float, *, plug_in: bool) -> "pl.DataFrame":
        """`to_frame` of what is known."""
        ignoring = plug_in_estimate(self, level)._asdict() if plug_in and self.k > 1 else {}
        results = results_of(estimate, self.counts, level)
        results |= {f"plug_in_{statistic}": numbers for statistic, numbers in ignoring.items()}
        return labelled_frame(self.values_of_axes or {"category": self.categories}, results)

    def estimates(self, level: float = 0.95) -> "pl.DataFrame":
        """The estimates in the columns that results of all kinds have: `group`, which is null, and
        `category`, whose parts are separated by commas, before `mean`, `std`, `lower`, `upper`,
        `level` and `count` (`to_frame`).
        """
        return estimates_frame(self._estimate(level), self.categories, self.counts, level)

    @property
    def overview(self) -> tuple[str, str]:
        """The categories counted, and the mechanism, in words."""
        counted = f"{self.k} {'cells' if self.axes else 'categories'}"
        return counted, in_plain_words(self.mechanism)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Sentences where nearly all records are none of the categories."""
        from opendp_bayes.inference.unmapped_records import unmatched_in

        return tuple(unmatched_in([self]))

    def to_json(self) -> str:
        """The release as JSON; `Release.from_json` reads it back.

        Raises
        ------
        ValueError
            For one group of a table, whose posterior needs the whole.
        """
        if self.whole is not None:
            raise ValueError(
                "to_json: this release is one group of a table, and its posterior needs the draw"
                " of all groups; keep the release of all."
            )
        return ReleaseDocument.of(self)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of what `to_json` writes. `from_json` checks more: what
        has to agree, such as the numbers of entries.
        """
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **msgspec.json.schema(ReleaseDocument),
        }

    @staticmethod
    def from_json(text: str | bytes) -> Any:
        """Read a release written by `to_json`, checking its format, version and that its fields fit
        each other: a `Release`, or of groups a mapping from each to its `Release`.

        A mechanism from a plugin must have been named to `load_mechanism` before: a document does
        not choose what code is loaded. Versions 1 and 2, of before 1.0.0, are refused. A file
        is as good as who gives it: no loss is compared with the mechanism.

        Raises
        ------
        ValueError
            That names the field and what is wrong with it.
        """
        document = ReleaseDocument.read(text)
        return (GroupedRelease if document.groups else Release)(**document.values())

    def __repr__(self) -> str:
        pairs = zip(self.categories, self.counts, strict=True)
        counts = shortly((f"{label!r}: {count}" for label, count in pairs), self.k)
        prior = "'learned'" if self.learned_prior else f"[{shortly(self.prior, self.k)}]"
        if self.ordered:
            prior += f", ordered={list(self.ordered)}"
        facts = f"prior={prior}, mechanism={self.mechanism}, {self.guarantee}"
        return f"Release({{{counts}}}, {facts})"


@dataclass(frozen=True, eq=False)
class GroupedRelease(Estimated, Guaranteed, Mapping[Key, Release]):
    """Private releases of the posteriors of groups: a mapping from each public group to its
    `Release`. Plain data: everything here may be published.

    With a `rest`, the groups are parts of one table, `whole`, whose counts have a public sum: the
    posterior of each group is that of the table, conditional on being in the group. Without, the
    groups know nothing of each other, and the release of each states what is promised to records
    that join or leave it: add/remove neighbours. The losses of the groups do not add up: the loss
    is for all of them (`docs/research/proofs.md`, "Groups").

    Attributes
    ----------
    groups : tuple[Key, ...]
        The groups, in their order; None is that of the nulls. Tuples where several columns make
        them.
    noisy_counts : tuple[tuple[int, ...], ...]
        What the mechanism drew for each group, one integer for each category; `counts` is made of
        it.
    categories, prior : tuple[str or int or bool or tuple, ...], tuple[float, ...]
        Labels and prior concentration, the same for every group.
    mechanism : Mechanism
        Made one draw for all groups.
    guarantee
        What is promised to all records (`PrivacyGuarantee`), those in no group included; its parts
        are also `size`, `d_in`, `loss` and so on. The numbers of records of the groups are private.
    axes : tuple[str, ...]
        The columns of a joint table in every group; empty where one column is asked.
    rest : int or None
        Where the number of all records is public, what was drawn for those in no group; otherwise
        None.
    sizes : tuple[int, ...] or None
        The public numbers of records of the groups, where `with_sizes` stated them; otherwise None.
    grouped_by : tuple[str, ...]
        The columns that make the groups; empty where a document does not say.
    columns, nulls, unknown : tuple, tuple, tuple
        Those that were counted, and the labels under which each counts nulls, and values that are
        none of its categories, as of a `Release`.
    """

    _WHOSE = "All groups together: "
    learned_prior: ClassVar[bool] = False
    groups: tuple[Key, ...]
    noisy_counts: tuple[tuple[int, ...], ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: Mechanism
    guarantee: PrivacyGuarantee
    axes: tuple[str, ...] = ()
    rest: int | None = None
    sizes: tuple[int, ...] | None = None
    grouped_by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    nulls: tuple[Value | None, ...] = ()
    unknown: tuple[Value | None, ...] = ()

    def __post_init__(self) -> None:
        if (self.rest is None) != (self.size is None):
            raise ValueError(
                f"rest={self.rest!r}: must be what was drawn for the rows in no group where the"
                f" number of records is public, and None where it is private; size={self.size!r}."
            )
        if self.sizes is None:
            return
        fits = len(self.sizes) == len(self.groups) and min(self.sizes) > 0
        if not fits or sum(self.sizes) > (self.size or 0):
            raise ValueError(
                f"sizes={self.sizes!r}: must be a positive number for each of {len(self.groups)}"
                f" groups, and add up to at most {self.size}, the number of all records, which must"
                " be public."
            )
        if not Setting(self.mechanism, self.size, self.prior).adds_noise:
            raise ValueError(
                f"sizes={self.sizes!r}: are used with noise on the counts only, such as"
                f" KNormParameters, not with {self.mechanism}."
            )

    @cached_property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """The released counts of each group, one for each category."""
        if self.whole is not None:
            return tuple(release.counts for release in self.values())
        setting = Setting(self.mechanism, None, self.prior)
        counts = setting.projected(np.array(self.noisy_counts, dtype=np.int64))
        return tuple(map(tuple, counts.tolist()))

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
            noisy_counts=(*chain(*self.noisy_counts), self.rest),
            categories=(*cells, "in no group"),
            prior=(*self.prior * len(self.groups), 1.0),
            mechanism=self.mechanism,
            guarantee=self.guarantee,
        )

    @cached_property
    def _releases(self) -> ByLabel[Key, Release]:
        shared = self.categories, self.prior, self.mechanism, self.guarantee, self.axes, self.whole
        k, sizes = len(self.categories), self.sizes or (None,) * len(self.groups)
        releases = (
            Release(
                noisy_counts,
                *shared,
                inside=() if self.whole is None else tuple(range(number * k, (number + 1) * k)),
                group_size=size,
                columns=self.columns,
                nulls=self.nulls,
                unknown=self.unknown,
            )
            for number, (noisy_counts, size) in enumerate(
                zip(self.noisy_counts, sizes, strict=True)
            )
        )
        return ByLabel(zip(self.groups, releases, strict=True), ("group", "groups"))

    def with_sizes(self, sizes: Mapping[Key, int]) -> "GroupedRelease":
        """Copy the release with the number of records of every group stated, where these are public
        too, as a margin by the grouping columns with `invariant="lengths"` declares.

        The posterior of a group then knows how many records it has, is mostly narrower, and does
        not depend on the other groups (`docs/research/proofs.md`, "Groups"). Nothing is drawn anew,
        and the loss is what it was. A number that is not public is not protected here: do not state
        it. Needs a `rest`, and noise on the counts: K-norm, Gaussian or Laplace.

        Parameters
        ----------
        sizes : Mapping[Key, int]
            From each group to its number of records, at least 1.

        Raises
        ------
        ValueError, TypeError
            For other groups, for numbers that add up to more than all records, and for a release
            that does not allow it.
        """
        numbers = in_order(sizes, self.groups) if isinstance(sizes, Mapping) else None
        if numbers is None:
            raise ValueError(
                f"sizes={told(sizes)}: must be a mapping with a number of records for each group,"
                f" {', '.join(map(repr, self.groups))}."
            )
        return replace(self, sizes=tuple(as_size(number, "sizes") for number in numbers))

    def pooled(
        self,
        *,
        m_prior: ArrayLike = 1.0,
        kappa_prior: Any = None,
        ess: int = 100,
        random_state: int | None = 0,
    ) -> "Pooled":
        """Pool the groups: estimate each together with the others, alike as far as the release says
        so. The probabilities of all groups are drawn from one `Dirichlet(kappa * m)`.

        The true counts are unknown, and so are the numbers of records of the groups, except where
        `with_sizes` stated them: each is equally probable before, or where the number of all
        records is public, geometric with their mean. The privacy of the release is not touched.

        Source: `docs/groups.md`.

        Parameters
        ----------
        m_prior : array_like, default 1.0
            Concentration of the Dirichlet prior of m, one positive number or one for each category;
            `prior`, which is for a group alone, is not used.
        kappa_prior : Any, optional
            Prior of κ, a frozen continuous distribution of scipy on positive numbers; by default
            `scipy.stats.fisk(1, scale=10)`.
        ess : int, default 100
            How many effective draws of κ and m there are at least; each has two draws of the
            counts.
        random_state : int or None, default 0
            Of the draws; None for another at each call.

        Returns
        -------
        Pooled
            A mapping from each group to its posterior, with `kappa`, `m` and `diagnostics`.

        Raises
        ------
        ValueError, TypeError
            For priors that are not valid, and where the draw is not noise on counts, or where draws
            are worth fewer.
        """
        from opendp_bayes.inference.pooling.pooled_groups import groups_of_release
        from opendp_bayes.results.pooled_release import pooled

        return pooled(
            groups_of_release(self),
            self.guarantee,
            m_prior=m_prior,
            kappa_prior=kappa_prior,
            ess=ess,
            random_state=random_state,
        )

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A row for every group and category: `mean`, `std`, `lower` and `upper` of the noise-aware
        posterior, their `level`, and the `count` as released.

        `lower` and `upper` are the ends of the equal-tailed interval of probability `level`. Groups
        and categories are shown as text, those of a joint table in a column for each of its
        variables.
        """
        return self._frame(self._estimate(level), level)

    def _estimate(self, level: float) -> Estimate:
        return estimate_of_groups(self, as_level(level))

    def _is_quick(self) -> bool:
        """True if the estimates of all groups take at most a second or two."""
        cells = len(self) * len(self.categories)
        if are_computed_together(self):
            return cells <= _QUICK
        return cells <= _QUICK_TABLE and all(release._is_quick() for release in self.values())

    def _frame(
        self, estimate: Estimate | None, level: float, *, plug_in: bool = False
    ) -> "pl.DataFrame":
        """`to_frame` of what is known; `plug_in` is for one posterior."""
        release = next(iter(self.values()))
        values_of_axes = release.values_of_axes or {"category": release.categories}
        heading = "group"
        while heading in values_of_axes:
            heading += "_"
        labels: dict[str, Any] = {heading: [key for key in self for _ in release.categories]}
        labels |= {axis: [*values] * len(self) for axis, values in values_of_axes.items()}
        return labelled_frame(labels, results_of(estimate, [*chain(*self.counts)], level))

    def estimates(self, level: float = 0.95) -> "pl.DataFrame":
        """The estimates in the columns that results of all kinds have: `group` and `category`,
        whose parts are separated by commas, before `mean`, `std`, `lower`, `upper`, `level` and
        `count` (`to_frame`).
        """
        names, counts = list(map(group_name, self)), [*chain(*self.counts)]
        return estimates_frame(self._estimate(level), self.categories, counts, level, names)

    @property
    def overview(self) -> tuple[str, str]:
        """The categories counted, and the mechanism, in words."""
        counted, mechanism = next(iter(self.values())).overview
        return f"{counted} in {len(self)} groups", mechanism

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Sentences where nearly all records are none of the categories, or in no group."""
        from opendp_bayes.inference.unmapped_records import unmatched_in

        return tuple(unmatched_in([*self.values()], self.grouped_by))

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        category: Label | None = None,
        level: float = 0.95,
        title: str | None = None,
    ) -> "Axes":
        """Draw the posterior of every group, on `ax` or on new axes; returns the axes.

        A row for each group, of the first 100, with the categories in colours, if these are at most
        seven.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where it is drawn; by default new axes.
        category : str or int or bool or tuple, optional
            Draw the share of this category alone, from the highest down.
        level : float, default 0.95
            The probability of the intervals.
        title : str, optional
            Stands above.

        Raises
        ------
        ImportError
            Without matplotlib, which the extra `plot` installs.
        KeyError
            For what is no category.
        ValueError
            Unless `0 < level < 1`.
        """
        frame = self.estimates(as_level(level))
        if category is not None:
            position = position_of(category, self.categories)
            frame = frame.gather_every(len(self.categories), position)
            frame = frame.sort("mean", descending=True, maintain_order=True)
        return plot_estimates(frame, level, self.guarantee, ax, title, self._WHOSE)

    def to_json(self) -> str:
        """The release as JSON; `Release.from_json` reads it back."""
        rest_of_size = () if self.rest is None else (self.rest,)
        noisy_counts = (*chain(*self.noisy_counts), *rest_of_size)
        return ReleaseDocument.of(
            self, by=self.grouped_by, noisy_counts=noisy_counts, sizes=self.sizes or ()
        )

    def __repr__(self) -> str:
        k, labels = len(self.categories), list(map(repr, self.categories))
        groups = (
            f"{group!r}: {{{shortly(map('{}: {}'.format, labels, counts), k)}}}"
            for group, counts in zip(self, self.counts, strict=True)
        )
        return (
            f"GroupedRelease({{{shortly(groups, len(self))}}},"
            f" prior=[{shortly(self.prior, k)}], mechanism={self.mechanism},"
            f" {self.guarantee})"
        )
