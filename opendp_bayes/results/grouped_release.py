"""What the analyst holds of a query per group: one release for each group, which cost one query
together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.accounting.exact import feasible_loss
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes.mechanisms import LaplaceParameters
from opendp_bayes.released.data import Key, Label
from opendp_bayes.released.document import GroupedReleaseDocument
from opendp_bayes.released.promise import Promise, Promised
from opendp_bayes.results.release import Release


@dataclass(frozen=True)
class GroupedRelease(Promised, Mapping[Key, Release]):
    """Private releases of the posteriors of groups: a mapping from each public group to its
    `Release`. Plain data: everything here may be published.

    Attributes
    ----------
    groups : the groups, in the order of the keys; None is that of the nulls.
    drawn : what the mechanism drew for each group, one integer for each category; `counts` is made
        of it.
    categories, prior : labels and prior concentration, the same for every group.
    mechanism : Laplace noise with a private total, the same for every group.
    promise : what is promised to all records (`Promise`), those in no group included; its parts are
        also `size`, `d_in`, `loss` and so on. The numbers of records of the groups are private.

    The losses of the groups do not add up: the loss is for all of them (`docs/proofs.md`,
    "Groups"). The release of one group states what is promised to the records of that group, which
    a record may join or leave: add/remove neighbours, at twice the distance where `size` is public.
    """

    groups: tuple[Key, ...]
    drawn: tuple[tuple[int, ...], ...]
    categories: tuple[Label, ...]
    prior: tuple[float, ...]
    mechanism: LaplaceParameters
    promise: Promise

    @property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """The released counts of each group, one for each category."""
        return tuple(release.counts for release in self.values())

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
        promise = replace(self.promise, size=None)
        if self.size is not None:
            # A record changed is one that left a group and one that joined one, and both may be the
            # same group.
            d_in, prior = 2 * self.d_in, np.array(self.prior)
            loss = feasible_loss(
                self.mechanism, size=None, prior=prior, d_in=d_in, delta=self.delta
            )
            promise = replace(promise, d_in=d_in, loss=loss)
        return {
            group: Release(drawn, self.categories, self.prior, self.mechanism, promise)
            for group, drawn in zip(self.groups, self.drawn, strict=True)
        }

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
        sentences = (
            f"All groups together: {guarantee(self.promise)} Means with 95 % intervals.".replace(
                ". ", ".\n"
            ).split("\n")
        )
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
        return Group(
            table,
            Text(
                f"All groups together: {guarantee(self.promise)}\nMechanism: {described(self.mechanism)}."
            ),
        )

    def to_json(self) -> str:
        """The release as JSON; `GroupedRelease.from_json` reads it back."""
        return GroupedReleaseDocument.write(
            self, groups=list(self.groups), drawn=[list(row) for row in self.drawn]
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "GroupedRelease":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        Raises `ValueError` that names the field and what is wrong with it. Version 1 is refused,
        which does not hold what was drawn.
        """
        values = GroupedReleaseDocument.read(text).values()
        mechanism = values["mechanism"]
        if not (isinstance(mechanism, LaplaceParameters) and mechanism.total == "private"):
            raise ValueError(
                f"mechanism={mechanism!r}: must be LaplaceParameters with total='private'."
            )
        return cls(**values)

    def __repr__(self) -> str:
        groups = ", ".join(
            f"{group!r}: {dict(zip(self.categories, counts, strict=True))}"
            for group, counts in zip(self, self.counts, strict=True)
        )
        return (
            f"GroupedRelease({{{groups}}}, prior={list(self.prior)}, mechanism={self.mechanism},"
            f" {self._promised()})"
        )


def _shown(group: Key) -> str:
    return "(null)" if group is None else str(group)
