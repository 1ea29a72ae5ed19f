"""The analyst's result: a release with its posteriors, tables, pictures and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec
from numpy.typing import ArrayLike

from opendp_bayes.display import notebook
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.inference.estimates import (
    InferredRelease,
    noise_aware_estimate,
    plug_in_estimate,
)
from opendp_bayes.inference.pooling.pooled_groups import groups_of_table
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.document import ReleaseDocument, as_lists
from opendp_bayes.results.figures import plot_posterior
from opendp_bayes.results.joint_figures import plot_table
from opendp_bayes.results.pooled_release import Pooled, pooled
from opendp_bayes.results.sheets import release_sheet

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Release(InferredRelease):
    """A private release of a posterior. Plain data: everything here may be published.

    Attributes
    ----------
    drawn : what the mechanism drew, an integer for each category; those of added noise may be
        negative and need not sum to the number of records. `counts` is made of it.
    categories : the category labels.
    prior : concentration of the prior, one entry for each category.
    mechanism : the mechanism that made the release, with its scale.
    promise : between which data sets the privacy loss holds, and what it is (`Promise`); its parts
        are also `size`, `d_in`, `loss`, `measure`, `relation`, `epsilon`, `delta` and `rho`.
    axes : the columns of a joint table, whose labels are tuples; empty where one column is asked.
    whole, start : for one group of a table of groups, the release of all groups, whose mechanism
        and promise it has, and the place of its first category in it; None and 0 elsewhere.
    group_size : the number of records of that group, where it is public too.
    learned_prior : whether `posterior` learns its prior from the release (`prior="learned"` in a
        query). `prior` is that of `plug_in` then.
    ordered : the variables along which a learned prior is smooth.
    parts : of merged categories (`merge=` in a survey), the labels that each of them stands for;
        empty where none are merged.
    """

    @classmethod
    def of(cls, data: ReleasedData, **stated: Any) -> "Release":
        """The release of what was drawn, with more fields `stated`."""
        values = {field.name: getattr(data, field.name) for field in fields(data)}
        return cls(**values | stated)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        variables: Sequence[str] | None = None,
        level: float = 0.95,
        title: str | None = None,
    ) -> "Axes":
        """Draw `posterior` beside `plug_in`, with intervals of probability `level`, on `ax` or on
        new axes; returns the axes.

        Two categories: the densities of the probability of the first. More: a bar with intervals
        for each. The guarantee stands above, and `title` above it. On axes narrower than about 5
        inches they do not fit: use `results.figures.plot_posterior` with `compact=True`.

        A joint table: a heat map of the means of two `variables`, the first downwards, with means
        and intervals written into the cells where they fit. Without `variables`, those of a table
        of two.

        Raises `ImportError` without matplotlib (extra `plot`), `ValueError` unless `0 < level < 1`,
        for variables that are no two of a table, or where the posterior is refused.
        """
        if len(self.axes) > 1 or variables is not None:
            return plot_table(self, ax, variables=variables, level=level, title=title)
        return plot_posterior(self, ax, level=level, title=title)

    def pooled(
        self,
        by: str | Sequence[str],
        *,
        m_prior: ArrayLike = 1.0,
        kappa_prior: Any = None,
        ess: int = 100,
        seed: int | None = 0,
    ) -> Pooled:
        """Pool the groups of a joint table: estimate each together with the others, so that they
        borrow strength. A group is all records with the same values of the variables `by`.

        Returns a mapping from each group to a `PooledPosterior` of the other variables, with
        `kappa`, `m` and `diagnostics`.

        Parameters
        ----------
        by : one variable of the table, or several, whose groups are tuples; the values of the
            others are the categories, tuples where they are several.
        m_prior : concentration of the Dirichlet prior of m, one positive number or one for each
            category. The release's own `prior`, which is for a group alone, is not used.
        kappa_prior : prior of κ, a frozen continuous distribution of scipy on positive numbers; by
            default `scipy.stats.fisk(1, scale=10)`, under which `10 / (10 + κ)` is uniform.
        ess : the number of effective draws of ln κ and of every entry of m, from four
            Markov chains, unless 5500 sweeps do not suffice.
        seed : of the chains; None for another at each call.

        Among all numbers of records of the groups that add up to a public `size`, each is equally
        probable before. Raises `ValueError`/`TypeError` for a variable or prior that does not
        fit, and for a release that is no joint table, leaves out cells of it or is not noise on
        counts. Warns where the chains have not met.

        Source: `docs/pooling.md`.
        """
        return pooled(
            groups_of_table(self, by),
            self.promise,
            m_prior=m_prior,
            kappa_prior=kappa_prior,
            ess=ess,
            seed=seed,
        )

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each category, the results with equal-tailed intervals of
        probability `level`.

        Columns: `category` as text, or for a joint table one for each of its variables (with `_` at
        the end of a name that is that of a result); `count` as released, `mean`, `std`, `lower`,
        `upper` of `posterior`, and the same of `plug_in` as `plug_in_mean`, `plug_in_std`,
        `plug_in_lower`, `plug_in_upper`. Raises `ValueError` unless `0 < level < 1`, or where the
        posterior is refused.
        """
        import polars as pl

        aware, plug_in = (
            noise_aware_estimate(self, level).numbers,
            plug_in_estimate(self, level).numbers,
        )
        results = {
            "count": pl.Series(list(self.counts), dtype=pl.Int64),
            **aware,
            **{f"plug_in_{name}": values for name, values in plug_in.items()},
        }
        labels: dict[str, pl.Series] = {}
        for name, values in (self.values_of_axes or {"category": self.categories}).items():
            while name in results or name in labels:
                name += "_"
            labels[name] = pl.Series(list(map(str, values)), dtype=pl.String)
        return pl.DataFrame({**labels, **results})

    def sheet(self, level: float = 0.95, *, title: str = "", wait: bool = True) -> Sheet:
        """Sheet of the release: counts, means and intervals of probability `level`, and the
        guarantee.

        Computes `posterior`, which may take seconds, or without `wait` only where that is quick;
        where it is missing or refused, a note says why. Raises `ValueError` unless `0 < level < 1`.
        """
        return release_sheet(self, level, title=title, wait=wait)

    def _repr_html_(self) -> str:
        """The table that notebooks show. The noise-aware columns need `posterior` to be quick to
        compute, or computed before.
        """
        return notebook.rendered(self.sheet(wait=False))

    def to_json(self) -> str:
        """The release as JSON; `Release.from_json` reads it back.

        Raises `ValueError` for one group of a table, whose posterior needs the whole.
        """
        if self.whole is not None:
            raise ValueError(
                "to_json: this release is one group of a table, and its posterior needs the draw"
                " of all groups; keep the `GroupedRelease`."
            )
        return ReleaseDocument.write(
            self,
            drawn=list(self.drawn),
            learned_prior=self.learned_prior,
            ordered=list(self.ordered),
            parts=[as_lists(part) for part in self.parts],
        )

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of what `to_json` writes. `from_json` checks more: what
        has to agree, such as the numbers of entries.
        """
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **msgspec.json.schema(ReleaseDocument),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> "Release":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        A mechanism from a plugin must have been named to `load_mechanism` before: a document does
        not choose what code is loaded. Raises `ValueError` that names the field and what is wrong
        with it. Version 1 is refused, which does not hold what was drawn, and so is a loss below
        what the mechanism loses at least, where that is computed in an instant.
        """
        return cls(**ReleaseDocument.read(text).values())

    def __repr__(self) -> str:
        each = zip(self.categories, self.counts, strict=True)
        counts = shortly((f"{label!r}: {count}" for label, count in each), self.k)
        prior = "'learned'" if self.learned_prior else f"[{shortly(self.prior, self.k)}]"
        if self.ordered:
            prior += f", ordered={list(self.ordered)}"
        return (
            f"Release({{{counts}}}, prior={prior}, mechanism={self.mechanism}, {self._promised()})"
        )
