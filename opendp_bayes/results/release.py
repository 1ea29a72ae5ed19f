"""What the analyst holds: a release with its posteriors, tables, pictures and JSON."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from scipy import stats

from opendp_bayes.inference import NoiseAwarePosterior, noise_aware_posterior
from opendp_bayes.released.data import ReleasedData
from opendp_bayes.released.document import ReleaseDocument

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Release(ReleasedData):
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
    """

    @property
    def plug_in(self) -> Any:
        """The papers' posterior: the released counts taken as if they were the data.

        A frozen `scipy.stats.beta` (k = 2, probability of the first category) or
        `scipy.stats.dirichlet`. It leaves the noise out of account, so its intervals are too short
        (`docs/limits.md`); `posterior` does not.
        """
        return (
            stats.beta(*self.concentration) if self.k == 2 else stats.dirichlet(self.concentration)
        )

    @cached_property
    def posterior(self) -> NoiseAwarePosterior:
        """The posterior of the category probabilities given the release, its noise taken into
        account (`NoiseAwarePosterior`).

        Computed when first used. `noise_aware_posterior` makes one with other than the default
        settings.
        """
        return noise_aware_posterior(self)

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> "Axes":
        """Draw `posterior` beside `plug_in`, with intervals of probability `level`, on `ax` or on
        new axes; returns the axes.

        Two categories: the densities of the probability of the first. More: a bar with intervals
        for each. The guarantee stands above, and `title` above it. On axes narrower than about 5
        inches they do not fit: use `plotting.plot_posterior` with `compact=True`. Raises
        `ImportError` without matplotlib (extra `plot`), `ValueError` unless `0 < level < 1`, or
        where the posterior is refused.
        """
        from opendp_bayes.results.figures import plot_posterior

        return plot_posterior(self, ax, level=level, title=title)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each category, the results with equal-tailed intervals of
        probability `level`.

        Columns: `category` as text, `count` as released, `mean`, `std`, `lower`, `upper` of
        `posterior`, and the same of `plug_in` as `plug_in_mean`, `plug_in_std`, `plug_in_lower`,
        `plug_in_upper`. Raises `ValueError` unless `0 < level < 1`, or where the posterior is
        refused.
        """
        import polars as pl

        from opendp_bayes.inference.estimates import noise_aware_estimate, plug_in_estimate

        aware, plug_in = (
            vars(noise_aware_estimate(self, level)),
            vars(plug_in_estimate(self, level)),
        )
        labels = pl.Series(list(map(str, self.categories)), dtype=pl.String)
        taken = {f"plug_in_{name}": values for name, values in plug_in.items()}
        return pl.DataFrame(
            {
                "category": labels,
                "count": pl.Series(list(self.counts), dtype=pl.Int64),
                **aware,
                **taken,
            }
        )

    def _repr_html_(self) -> str:
        """The table that notebooks show. The noise-aware columns need `posterior` to be quick to
        compute, or computed before.
        """
        from opendp_bayes.report.notebook import release_html

        return release_html(self)

    def to_json(self) -> str:
        """The release as JSON; `Release.from_json` reads it back."""
        return ReleaseDocument.write(self, drawn=list(self.drawn))

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
        with it. Version 1 is refused, which does not hold what was drawn.
        """
        return cls(**ReleaseDocument.read(text).values())

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{label!r}: {count}" for label, count in zip(self.categories, self.counts, strict=True)
        )
        return (
            f"Release({{{counts}}}, prior={list(self.prior)}, mechanism={self.mechanism},"
            f" {self._promised()})"
        )
