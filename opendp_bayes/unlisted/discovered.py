"""The analyst's result of a discovery: what is shown, and what is known of everything else."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from opendp_bayes.display.wording import in_plain_words
from opendp_bayes.mathematics.telling import shortly, told, warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, RandomState, as_generator, as_level, as_size
from opendp_bayes.release_format.data import Value
from opendp_bayes.release_format.labels import place_of
from opendp_bayes.results.estimates import estimate_of, estimates_frame
from opendp_bayes.results.sheets import Estimated
from opendp_bayes.unlisted.discovered_data import DiscoveredData
from opendp_bayes.unlisted.discovered_document import DiscoveredDocument

if TYPE_CHECKING:
    import polars as pl

    from opendp_bayes.unlisted.posterior.counts_of_keys import CountsOfKeys, SharesOfKeys
    from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys, NoisyRest


@dataclass(frozen=True)
class Rest(UnderflowIsZero):
    """The records, or people, of all categories that are not shown, together.

    Attributes
    ----------
    noisy_count : int
        Their noisy number, which may be negative.
    """

    noisy_count: int
    _noisy: "NoisyRest"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval of their number that holds it with at least the probability `level`, whatever
        it is; the ends belong to it. It follows from `noisy_count` alone, with no model.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        return self._noisy.interval(level)


@dataclass(frozen=True)
class Hidden(UnderflowIsZero):
    """A category that is not shown.

    Attributes
    ----------
    label : str or int or bool
        Of the category.
    """

    label: Value
    _keys: "NoisyKeys"

    def upper(self, level: float = 0.95) -> int:
        """The most records that the category has, or people: before the release was made, the
        chance was at most `1 - level` that this bound would be given and be wrong.

        That is promised for one label, which was fixed before the output was seen; for one that is
        picked after looking, or for several, nothing is promised. Follows from the law and from the
        rest alone, with no model.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        return self._keys.hidden_bound(level)


class OfCategories(UnderflowIsZero):
    """The posterior of a number for each category that is shown: of its true count, or its share;
    or of the shares of these and of everything else, whose entry is the last.

    Attributes
    ----------
    categories
        The labels, in the order of all arrays.
    """

    def __init__(
        self, inferred: "CountsOfKeys | SharesOfKeys", release: "DiscoveredRelease"
    ) -> None:
        self.categories, self._inferred, self._listed = release.categories, inferred, release.listed

    def _ordered(self, values: Any) -> Any:
        """Values of the discovered, then of the listed categories, in the order of `categories`,
        before that of everything else; along the last axis.
        """
        shown, hidden = np.split(values, [len(self.categories)], axis=-1)
        return np.concatenate([np.roll(shown, self._listed, axis=-1), hidden], axis=-1)

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return np.asarray(self._ordered(self._inferred.mean))

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.asarray(self._ordered(self._inferred.std))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of the equal-tailed intervals of probability `level`, two arrays of shape `(k,)`;
        those of counts belong to their intervals.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        lower, upper = self._ordered(self._inferred.interval(level).T)
        return lower, upper

    def sample(self, size: int = 1, random_state: RandomState = None) -> Any:
        """Draws of all together, shape `(size, k)`: sums of them have the right spread. They are
        repeatable with a seed as `random_state`.
        """
        return self._ordered(
            self._inferred.draws(as_size(size, "size", "draws"), as_generator(random_state))
        )


@dataclass(frozen=True, eq=False)
class DiscoveredRelease(Estimated, DiscoveredData):
    """A private release of counts of categories that nobody listed. Plain data: everything here may
    be published.

    Every value that occurred got a noisy count, and is shown with it if that reached the threshold.
    How many others there are is not known, nor to be found out.

    Attributes
    ----------
    column
        That was asked.
    categories
        The labels: those that were listed, in their order, then those that were discovered, sorted
        by value.
    noisy_counts
        The noisy count of each.
    listed
        The number of labels that were listed, and are shown whatever their count.
    discovery
        The law of the noise, its threshold, and the noise of the rest (`Discovery`).
    noisy_rest
        The noisy number of records of all hidden categories together; None where it was not bought.
    guarantee
        Neighbours, privacy loss and measure (`PrivacyGuarantee`).
    people
        Whether a count is the number of people who have the category, and not of records.
    """

    #: Every value that occurred is a category.
    unmatched: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, data: DiscoveredData) -> "DiscoveredRelease":
        """The release of what was drawn."""
        return cls(**{field.name: getattr(data, field.name) for field in fields(data)})

    @property
    def counts(self) -> tuple[int, ...]:
        """The noisy counts, those below 0 of listed categories made 0."""
        return tuple(max(0, count) for count in self.noisy_counts)

    @property
    def rest(self) -> Rest | None:
        """All hidden categories together; None where that was not bought."""
        noisy = self._keys.rest
        return None if noisy is None else Rest(noisy.noisy_count, noisy)

    def hidden(self, label: Value) -> Hidden:
        """A category that is not shown; `ValueError` for one that is."""
        if not isinstance(label, (str, int, np.integer)):
            raise TypeError(f"label={told(label)}: must be a label (str, int or bool).")
        position = place_of(label, self.categories)
        if position is not None:
            raise ValueError(
                f"label={told(label)}: is shown, with a count of {self.noisy_counts[position]}; its"
                " interval is that of posterior."
            )
        return Hidden(label, self._keys)

    @cached_property
    def posterior(self) -> OfCategories:
        """The posterior of the true counts of `categories`, given the release.

        The law of the counts of all categories, hidden ones too, is learned with it, from what is
        shown and from the rest. Computed when first used, in some seconds. Warns where what is
        shown may be categories of few records that the noise has lifted.
        """
        return OfCategories(self._inferred, self)

    @cached_property
    def among_shown(self) -> OfCategories:
        """The posterior of the shares of `categories` among themselves, which sum to 1."""
        return OfCategories(self._inferred.shares, self)

    @cached_property
    def among_all(self) -> OfCategories | None:
        """The posterior of the shares of `categories` among all, and of everything else together,
        whose entry is the last; None where the rest was not bought.
        """
        shares = self._inferred.shares_of_all
        return None if shares is None else OfCategories(shares, self)

    @cached_property
    def _inferred(self) -> "CountsOfKeys":
        from opendp_bayes.unlisted.posterior.counts_of_keys import counts_of_keys

        counts = counts_of_keys(self._keys)
        if counts.warning:
            warn(f"{self.column!r}: {counts.warning} (docs: Unlisted values).")
        return counts

    @cached_property
    def _keys(self) -> "NoisyKeys":
        from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys, NoisyRest

        listed, shown = np.split(np.array(self.noisy_counts, dtype=np.int64), [self.listed])
        number, noise = self.noisy_rest, self.discovery.rest
        rest = None if number is None or noise is None else NoisyRest(number, noise)
        return NoisyKeys(self.discovery.law, shown, listed, rest)

    def estimates(self, level: float = 0.95) -> "pl.DataFrame":
        """Means and intervals of probability `level` of the shares of the categories that are
        shown among all, with their noisy counts, in the columns that results of all kinds have:
        `group`, which is null, and `category`, before `mean`, `std`, `lower`, `upper`, `level` and
        `count`.

        The largest stand first. The last row is everything else, whose category is null; where the
        rest was not bought, it is left out, and the shares are those among the categories shown.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level = as_level(level)
        shares = estimate_of(self.among_all or self.among_shown, level)
        hidden = [] if self.rest is None else [max(0, self.rest.noisy_count)]
        labels = [*self.categories, *(None for _ in hidden)]
        frame = estimates_frame(shares, labels, [*self.counts, *hidden], level)
        return frame.sort(frame["category"].is_null(), -frame["mean"], maintain_order=True)

    @property
    def overview(self) -> tuple[str, str]:
        """Summary of the values shown and of their law, in words."""
        shown = f"{self.k} {'category' if self.k == 1 else 'categories'} shown"
        return shown, in_plain_words(self.discovery.law)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each category that is shown.

        Columns: `category` as text; `noisy_count`; `mean`, `std`, `lower` and `upper` of
        the true count; `share`, `share_lower` and `share_upper` of its share among those shown;
        `listed`, whether it was listed; and `level`, the probability of the equal-tailed intervals.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        import polars as pl

        level = as_level(level)
        counts, shares = estimate_of(self.posterior, level), estimate_of(self.among_shown, level)
        return self._frame_of_counts().hstack(
            pl.DataFrame(
                {
                    **counts._asdict(),
                    "share": shares.mean,
                    "share_lower": shares.lower,
                    "share_upper": shares.upper,
                    "listed": [position < self.listed for position in range(self.k)],
                    "level": pl.Series([level] * self.k, dtype=pl.Float64),
                }
            )
        )

    def _frame_of_counts(self) -> "pl.DataFrame":
        """The first columns of `to_frame`, which need no posterior."""
        import polars as pl

        types = {"category": pl.String, "noisy_count": pl.Int64}
        return pl.DataFrame(
            [list(map(str, self.categories)), list(self.noisy_counts)], schema=types
        )

    def _shown(self, level: float, wait: bool) -> tuple["pl.DataFrame", list[str]]:
        """A row for every category that is shown, and sentences on the rest."""
        unit, law = "people" if self.people else "records", self.discovery.law
        notes = [
            f"Every value that occurred got a noisy count, and is shown if that was at least"
            f" {law.threshold}: with {law.least_shown(0.5)} {unit} in half of all releases, with"
            f" {law.least_shown(0.95)} in 95 of 100."
        ]
        frame = self._frame_of_counts()
        if self.k and (wait or self.has_posterior):
            frame = self.to_frame(level)
            notes.append(f"Mean and interval are of the true number of {unit}.")
        elif self.k:
            notes.append(
                "The posterior takes seconds: read it, release.posterior, and show this again."
            )
        if self.listed:
            names = shortly(map(repr, self.categories[: self.listed]), self.listed)
            notes.append(f"Listed, and shown whatever their count: {names}.")
        notes.append(_hidden_of(self.rest, unit, level))
        if self.has_posterior and self.warning:
            notes.append(f"Beware: {self.warning}.")
        return frame, notes

    @property
    def warning(self) -> str | None:
        """A sentence that says so where what is shown may be categories of few records that the
        noise has lifted, by a rule of thumb; computes `posterior`.
        """
        return self._inferred.warning

    @property
    def has_posterior(self) -> bool:
        """True if `posterior` was computed."""
        return "_inferred" in self.__dict__

    def to_json(self) -> str:
        """The release as JSON; `DiscoveredRelease.from_json` reads it back."""
        return DiscoveredDocument.of(self)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of what `to_json` writes."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **msgspec.json.schema(DiscoveredDocument),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> "DiscoveredRelease":
        """Read a release written by `to_json`, checking its format, version and every constraint on
        its values.

        Raises
        ------
        ValueError
            That names the field and what is wrong with it.
        """
        return cls(**DiscoveredDocument.read(text).values())

    def __repr__(self) -> str:
        pairs = zip(self.categories, self.noisy_counts, strict=True)
        counts = shortly((f"{label!r}: {count}" for label, count in pairs), self.k)
        hidden = "" if self.noisy_rest is None else f", rest={self.noisy_rest}"
        law = self.discovery.law
        return f"DiscoveredRelease({{{counts}}}{hidden}, law={law}, {self.guarantee})"


def _hidden_of(rest: Rest | None, unit: str, level: float) -> str:
    """Say how many records are not shown, where that was bought."""
    if rest is None:
        return "The number of all others was not asked for; rest= in the question, or --rest, does."
    low, high = rest.interval(level)
    once = ", each once for every category," if unit == "people" else ""
    return (
        f"Everything else together: {rest.noisy_count} {unit}{once} with noise, {100 * level:.6g} %"
        f" interval {low:.0f} to {high:.0f}."
    )
