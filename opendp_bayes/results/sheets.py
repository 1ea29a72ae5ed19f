"""Sheets of releases: their tables on the terminal and in a notebook."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import estimates_table
from opendp_bayes.display.wording import in_plain_words, in_words, limited, prior_said
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.unmapped_records import unmatched_in, unmatched_in_groups
from opendp_bayes.inference.ways import is_quick
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import (
    TAKES_LONG,
    Estimate,
    are_computed_together,
    estimate_or_reason,
    frame_of,
    plug_in_estimate,
    says_little,
)

if TYPE_CHECKING:
    import polars as pl

#: Shares of groups that are computed together in about a second.
_QUICK = 2000


def estimates_sheet(
    frame: "pl.DataFrame",
    level: float,
    guarantee: PrivacyGuarantee,
    notes: Iterable[str],
    *,
    title: str = "",
    whose: str = "",
) -> Sheet:
    """Sheet of a frame of estimates: its table, whose guarantee it has, and what else is said."""
    stated = [f"{whose}{in_words(guarantee)}", *limited(guarantee)]
    return Sheet((estimates_table(frame, level),), (*stated, *notes), title)


def release_sheet(release: Any, level: float, *, title: str, wait: bool) -> Sheet:
    """A row for every category, and the guarantee; `Release.sheet`."""
    aware = estimate_or_reason(release, level, wait=wait)
    known = aware if isinstance(aware, Estimate) else None
    notes = [f"Mechanism: {in_plain_words(release.mechanism)}."]
    if release.learned_prior:
        notes.append(_prior_of(release))
    if known is None:
        notes.append(str(aware))
    elif not release.learned_prior:
        notes += little_said(says_little(release.prior, known))
    notes += unmatched_in(release)
    ignoring = plug_in_estimate(release, level) if aware != TAKES_LONG and release.k > 1 else None
    frame = frame_of(release, known, ignoring, level)
    return estimates_sheet(frame, level, release.guarantee, notes, title=title)


def grouped_sheet(releases: Any, level: float, *, wait: bool) -> Sheet:
    """A row for every group and category, and the guarantee of all groups together;
    `GroupedRelease.sheet`. Noise-aware columns for all groups or none.
    """
    level = as_level(level)
    notes = [f"Mechanism: {in_plain_words(releases.mechanism)}."]
    known = None
    if wait or level in releases._estimates or _are_quick(releases):
        known = releases._estimate(level)
        notes += little_said(says_little(releases.prior, known))
    else:
        notes.append(
            "The noise-aware posteriors of these groups take long: call to_frame() of this release,"
            " then show it again."
        )
    notes += unmatched_in_groups(releases, releases.grouped_by)
    frame = releases._frame(known, level)
    return estimates_sheet(frame, level, releases.guarantee, notes, whose="All groups together: ")


def _are_quick(releases: Any) -> bool:
    """True if the estimates of all groups take at most a second or two."""
    if are_computed_together(releases):
        return len(releases) * len(releases.categories) <= _QUICK
    return is_quick(*(one for one in releases.values() if not one.has_posterior))


def little_said(little: NDArray[np.bool_]) -> list[str]:
    """Say where intervals are about those of the prior: of one release, or of some groups."""
    number = int(np.count_nonzero(little))
    if not number:
        return []
    where = f" of {number} of the {little.size} groups" if number < little.size else ""
    return [
        f"The intervals{where} are about as wide as the prior's own: the data say hardly anything"
        " through the noise. A larger budget, or more records, narrows them."
    ]


def _prior_of(release: Any) -> str:
    """State the prior, and what was learned of it where the posterior has been computed."""
    said = prior_said(release.prior, learned=release.learned_prior, ordered=release.ordered)
    if not release.has_posterior or not isinstance(release.posterior, LearnedPosterior):
        return f"Prior: {said}."
    learned = release.posterior.learned
    told = (f"{name} {learned[name].mean():.3g} ± {learned[name].std():.2g}" for name in learned)
    return f"Prior: {said} ({', '.join(told)})."
