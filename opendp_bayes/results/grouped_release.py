"""What the analyst holds of a query per group: one release for each group, which cost one query
together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from textwrap import fill
from typing import Any

import msgspec
import numpy as np
import polars as pl

from opendp_bayes.accounting.exact import feasible_loss
from opendp_bayes.framework.spaces import Key
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.mechanisms import LaplaceParameters
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.results.release import _FORMAT as _RELEASE_FORMAT
from opendp_bayes.results.release import _VERSION as _RELEASE_VERSION
from opendp_bayes.results.release import (
    Label,
    Relation,
    Release,
    _Document,
    _finite_or_none,
    _Loss,
    _Mechanism,
    relation_of,
)

_FORMAT = "opendp-bayes grouped release"
_VERSION = 1


@dataclass(frozen=True)
class GroupedRelease(Mapping[Key, Release]):
    """Private releases of the posteriors of groups: a mapping from each public group to its
    `Release`. Plain data: everything here may be published.

    Attributes
    ----------
    groups : the groups, in the order of the keys; None is that of the nulls.
    counts : released counts of each group, one for each category.
    categories, prior : labels and prior concentration, the same for every group.
    mechanism : Laplace noise with a private total, the same for every group.
    size : the public number of records in all, those in no group included, under change-one
        neighbours; None under add/remove. The numbers of records of the groups are private.
    d_in : the distance between neighbouring data sets that `loss` is for, in records changed, or
        added and removed.
    loss : certified upper bounds on the privacy loss of all groups together.
    measure : the OpenDP privacy measure the release was made under.

    The losses of the groups do not add up: `loss` is for all of them (`docs/proofs.md`, "Groups").
    The release of one group states what is promised to the records of that group, which a record
    may join or leave: add/remove neighbours, at twice the distance where `size` is public.
    """

    groups: tuple[Key, ...]
    counts: tuple[tuple[int, ...], ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: LaplaceParameters
    size: int | None
    d_in: int
    loss: PrivacyLoss
    measure: str

    @property
    def relation(self) -> Relation:
        """The neighbour relation of all records: `"change-one"` or `"add/remove"`."""
        return relation_of(self.size)

    @property
    def epsilon(self) -> float:
        """Upper bound on ε of all groups together, holding together with `delta`."""
        return self.loss.epsilon

    @property
    def delta(self) -> float:
        """The δ that goes with `epsilon`; 0 for a pure guarantee."""
        return self.loss.delta

    @property
    def rho(self) -> float:
        """Upper bound on ρ of zero-concentrated differential privacy, of all groups together."""
        return self.loss.rho

    def __getitem__(self, key: Key) -> Release:
        if key not in self._releases:
            raise KeyError(
                f"{key!r}: is not a group; the groups are {', '.join(map(repr, self.groups))}."
            )
        return self._releases[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def _releases(self) -> dict[Key, Release]:
        d_in, loss = self.d_in, self.loss
        if self.size is not None:
            # A record changed is one that left a group and one that joined one, and both may be the
            # same group.
            d_in *= 2
            loss = feasible_loss(
                self.mechanism,
                size=None,
                prior=np.array(self.prior),
                d_in=d_in,
                delta=self.loss.delta,
            )
        return {
            group: Release(
                counts, self.categories, self.prior, self.mechanism, None, d_in, loss, self.measure
            )
            for group, counts in zip(self.groups, self.counts, strict=True)
        }

    def with_loss(self, *, d_in: int, loss: PrivacyLoss, measure: str) -> "GroupedRelease":
        """The same release with its privacy loss stated for another distance or measure."""
        return replace(self, d_in=d_in, loss=loss, measure=measure)

    def to_frame(self, level: float = 0.95) -> pl.DataFrame:
        """A row for every group and category: released `count`, and `mean`, `std`, `lower` and
        `upper` of the noise-aware posterior.

        `lower` and `upper` are the ends of the equal-tailed interval of probability `level`. Groups
        and categories are shown as text.
        """
        rows: list[tuple[str | None, str, int, float, float, float, float]] = []
        for group, release in self.items():
            posterior = release.posterior
            results = (posterior.mean(), posterior.std(), *posterior.interval(level))
            for i, label in enumerate(self.categories):
                mean, std, lower, upper = (float(result[i]) for result in results)
                rows.append(
                    (
                        None if group is None else str(group),
                        str(label),
                        release.counts[i],
                        mean,
                        std,
                        lower,
                        upper,
                    )
                )
        schema = {
            "group": pl.String,
            "category": pl.String,
            "count": pl.Int64,
            **dict.fromkeys(("mean", "std", "lower", "upper"), pl.Float64),
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def plot(self, columns: int = 3) -> Any:
        """Small multiples: the posterior of every group, `columns` to a row, probabilities on one
        scale; returns a matplotlib `Figure`.

        Raises `ImportError` without matplotlib, which the extra `plot` installs.
        """
        columns = min(as_size(columns, "columns"), len(self))
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("plot needs matplotlib: pip install 'opendp-bayes[plot]'.") from None
        from opendp_bayes.report.wording import guarantee
        from opendp_bayes.results.figures import bars_height, plot_posterior, wrapped

        rows, k = -(-len(self) // columns), len(self.categories)
        height = 3.0 if k == 2 else max(3.0, 1.2 + bars_height(self[self.groups[0]]))
        figure, axes = pyplot.subplots(
            rows,
            columns,
            figsize=(4 * columns, height * rows + 0.8),
            squeeze=False,
            layout="constrained",
        )
        drawn, rest = axes.flat[: len(self)], axes.flat[len(self) :]
        for place, (group, ax) in enumerate(zip(self, drawn, strict=True)):
            plot_posterior(self[group], ax, compact=True)
            ax.set_title(wrapped(_shown(group)), parse_math=False)
            if k > 2 and place % columns:
                ax.tick_params(labelleft=False)  # the same categories as in the first of the row
        low, high = zip(*(ax.get_xlim() for ax in drawn), strict=True)
        for ax in drawn:
            ax.set_xlim(min(low), max(high))
        for ax in rest:
            ax.set_axis_off()
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(
            handles,
            [label.split(":")[0] for label in labels],
            loc="outside lower center",
            ncols=min(columns, 2),
            frameon=False,
        )
        whole: Any = self
        sentences = f"All groups together: {guarantee(whole)} Means with 95 % intervals.".replace(
            ". ", ".\n"
        ).split("\n")
        promise = "\n".join(fill(sentence, 56 * columns) for sentence in sentences)
        figure.suptitle(promise, x=0.01, ha="left", fontsize="small", color="#595959")
        return figure

    def _repr_html_(self) -> str:
        """The table that notebooks show. The noise-aware columns need the posteriors to be quick to
        compute, or computed before.
        """
        from opendp_bayes.report.notebook import grouped_html

        return grouped_html(self)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from opendp_bayes.inference.estimates import noise_aware_estimate
        from opendp_bayes.report.wording import described, guarantee

        table = Table()
        for name in ("Group", "Category"):
            table.add_column(name)
        for name in ("Released\ncount", "Posterior\nmean", "95 % interval"):
            table.add_column(name, justify="right")
        for group, release in self.items():
            means, intervals = noise_aware_estimate(release).shown()
            for i, (label, *numbers) in enumerate(
                zip(
                    map(str, self.categories),
                    map(str, release.counts),
                    means,
                    intervals,
                    strict=True,
                )
            ):
                table.add_row(
                    Text("" if i else _shown(group)),
                    Text(label),
                    *numbers,
                    end_section=i == len(self.categories) - 1,
                )
        whole: Any = self
        return Group(
            table,
            Text(
                f"All groups together: {guarantee(whole)}\nMechanism: {described(self.mechanism)}."
            ),
        )

    def to_json(self) -> str:
        """The release as JSON; `GroupedRelease.from_json` reads it back."""
        document = _GroupedDocument(
            format=_FORMAT,
            version=_VERSION,
            groups=list(self.groups),
            counts=[list(counts) for counts in self.counts],
            categories=list(self.categories),
            prior=list(self.prior),
            mechanism=_Mechanism(name=self.mechanism.name, parameters=asdict(self.mechanism)),
            size=self.size,
            d_in=self.d_in,
            loss=_Loss(
                **{name: _finite_or_none(value) for name, value in asdict(self.loss).items()}
            ),
            measure=self.measure,
        )
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "GroupedRelease":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        Raises `ValueError` that names the field and what is wrong with it.
        """
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"text: must be str or bytes, not {type(text).__name__}.")
        try:
            document = msgspec.json.decode(text, type=_GroupedDocument)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"text: is not a grouped release in JSON: {error}") from None
        document.check()
        mechanism = document.mechanism.value()
        if not (isinstance(mechanism, LaplaceParameters) and mechanism.total == "private"):
            raise ValueError(
                f"mechanism={mechanism!r}: must be LaplaceParameters with total='private'."
            )
        return cls(
            groups=tuple(document.groups),
            counts=tuple(tuple(counts) for counts in document.counts),
            categories=tuple(document.categories),
            prior=tuple(document.prior),
            mechanism=mechanism,
            size=document.size,
            d_in=document.d_in,
            loss=document.loss.value(),
            measure=document.measure,
        )

    def __repr__(self) -> str:
        groups = ", ".join(
            f"{group!r}: {dict(zip(self.categories, counts, strict=True))}"
            for group, counts in zip(self, self.counts, strict=True)
        )
        size = f"size={self.size}, " if self.size is not None else ""
        return (
            f"GroupedRelease({{{groups}}}, prior={list(self.prior)}, mechanism={self.mechanism},"
            f" relation={self.relation!r}, {size}d_in={self.d_in}, epsilon={self.epsilon:.6g},"
            f" delta={self.delta:.3g}, rho={self.rho:.6g}, measure={self.measure!r})"
        )


class _GroupedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    groups: list[str | bool | int | None]
    counts: list[list[int]]
    categories: list[str | bool | int]
    prior: list[float]
    mechanism: _Mechanism
    size: int | None
    d_in: int
    loss: _Loss
    measure: str

    def check(self) -> None:
        """Raise `ValueError` for values that no grouped release has; the rules of `Release` hold
        for the counts of every group.
        """
        number = len(self.groups)
        rules = [
            (self.format == _FORMAT, f"format={self.format!r}: must be {_FORMAT!r}."),
            (
                self.version == _VERSION,
                (
                    f"version={self.version}: this package reads version {_VERSION}; use the"
                    " package version that wrote it."
                ),
            ),
            (
                number >= 1 and len(set(self.groups)) == number,
                f"groups={self.groups!r}: must be at least 1, all different.",
            ),
            (
                len(self.counts) == number,
                f"counts={self.counts!r}: must have {number} rows, one for each group.",
            ),
        ]
        for holds, message in rules:
            if not holds:
                raise ValueError(message)
        shared = {
            name: getattr(self, name)
            for name in ("categories", "prior", "mechanism", "size", "d_in", "loss", "measure")
        }
        for counts in self.counts:
            _Document(
                format=_RELEASE_FORMAT, version=_RELEASE_VERSION, counts=counts, **shared
            ).check()


def _shown(group: Key) -> str:
    return "(null)" if group is None else str(group)
