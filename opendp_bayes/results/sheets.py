"""Sheets of releases: their tables on the terminal and in a notebook."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import estimates_table
from opendp_bayes.display.wording import in_plain_words, in_words, prior_said
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import TAKES_LONG, Estimate, estimate_or_reason, says_little

if TYPE_CHECKING:
    import polars as pl


def estimates_sheet(
    frame: "pl.DataFrame",
    level: float,
    guarantee: PrivacyGuarantee,
    notes: Iterable[str],
    *,
    title: str = "",
    whose: str = "",
    percent: bool = False,
) -> Sheet:
    """Sheet of a frame of estimates: its table, whose guarantee it has, and what else is said."""
    stated = f"{whose}{in_words(guarantee)}"
    return Sheet((estimates_table(frame, level, percent=percent),), (stated, *notes), title)


def shown_of(result: Any, level: float, *, wait: bool) -> tuple["pl.DataFrame", list[str]]:
    """A row for every category, of every group, and what is said of them; `Release.sheet`."""
    aware = estimate_or_reason(result, level, wait=wait)
    estimate = aware if isinstance(aware, Estimate) else None
    notes = [f"Mechanism: {in_plain_words(result.mechanism)}."]
    if result.learned_prior:
        notes.append(_prior_of(result))
    if estimate is None:
        notes.append(str(aware))
    elif not result.learned_prior:
        notes += little_said(says_little(result.prior, estimate))
    notes += result.unmatched
    return result._frame(estimate, level, plug_in=aware != TAKES_LONG), notes


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
    if not learned:
        return f"Prior: {text}."
    told = (
        f"{parameter} {learned[parameter].mean():.3g} ± {learned[parameter].std():.2g}"
        for parameter in learned
    )
    return f"Prior: {text} ({', '.join(told)})."
