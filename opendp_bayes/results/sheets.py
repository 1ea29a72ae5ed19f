"""Sheets and pictures of results: their tables on the terminal and in a notebook."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.display.sheet import Sheet, ShownAtOnce
from opendp_bayes.display.tables import estimates_table
from opendp_bayes.display.wording import in_plain_words, in_words, prior_said
from opendp_bayes.mathematics.validation import as_flag, as_level, as_text
from opendp_bayes.results.estimates import TAKES_LONG, Estimate, estimate_or_reason, says_little
from opendp_bayes.results.figures import plot_estimates

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


class Estimated(ShownAtOnce):
    """A result whose sheet and picture are those of its estimates."""

    #: What stands before its guarantee.
    _WHOSE: ClassVar[str] = ""
    guarantee: Any
    estimates: Callable[[float], "pl.DataFrame"]

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> "Axes":
        """Draw the estimates of the shares with intervals of probability `level`, on `ax` or on new
        axes, which are returned. The guarantee stands above, and `title` above it.

        Raises
        ------
        ImportError
            Without matplotlib (extra `plot`).
        ValueError
            Unless `0 < level < 1`.
        """
        frame = self.estimates(as_level(level))
        return plot_estimates(frame, level, self.guarantee, ax, title, self._WHOSE)

    def sheet(
        self, level: float = 0.95, *, title: str = "", wait: bool = True, percent: bool = False
    ) -> Sheet:
        """Sheet of the result: counts, means and intervals of probability `level`, perhaps in per
        cent, of every group if there are any, and the guarantee.

        Computes the posteriors, which may take seconds, or without `wait` only where that is quick;
        where they are missing or refused, a note says why.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        title, wait, level = as_text(title, "title"), as_flag(wait, "wait"), as_level(level)
        percent = as_flag(percent, "percent")
        frame, notes = self._shown(level, wait)
        stated = f"{self._WHOSE}{in_words(self.guarantee)}"
        return Sheet((estimates_table(frame, level, percent=percent),), (stated, *notes), title)

    def _shown(self: Any, level: float, wait: bool) -> tuple["pl.DataFrame", list[str]]:
        """A row for every category, of every group, and what is said of them."""
        aware = estimate_or_reason(self, level, wait=wait)
        estimate = aware if isinstance(aware, Estimate) else None
        notes = [f"Mechanism: {in_plain_words(self.mechanism)}."]
        if self.learned_prior:
            notes.append(_prior_of(self))
        if estimate is None:
            notes.append(str(aware))
        elif not self.learned_prior:
            notes += little_said(says_little(self.prior, estimate))
        notes += self.unmatched
        return self._frame(estimate, level, plug_in=aware != TAKES_LONG), notes


def little_said(little: NDArray[np.bool_]) -> list[str]:
    """Say where intervals are about those of the prior: of one release, or of some groups."""
    number = int(np.count_nonzero(little))
    if not number:
        return []
    where = f" of {number} of the {little.size} groups" if number < little.size else ""
    return [
        f"The intervals{where} are about as wide as the prior's own: the noise hides almost"
        " everything. A larger budget, or more records, narrows them."
    ]


def _prior_of(release: Any) -> str:
    """State the prior, and what was learned of it where the posterior has been computed."""
    text = prior_said(release.prior, learned=release.learned_prior, ordered=release.ordered)
    learned = release.posterior.learned if release.has_posterior else {}
    told = ", ".join(
        f"{parameter} {learned[parameter].mean():.3g} ± {learned[parameter].std():.2g}"
        for parameter in learned
    )
    return f"Prior: {text} ({told})." if told else f"Prior: {text}."
