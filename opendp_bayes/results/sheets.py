"""Sheets of releases: their tables on the terminal and in a notebook."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.display.tables import estimates_table
from opendp_bayes.display.wording import in_plain_words, in_words, limited, prior_said
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.unmapped_records import unmatched_in, unmatched_in_groups
from opendp_bayes.inference.ways import is_quick
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import (
    TAKES_LONG,
    Estimate,
    estimate_or_reason,
    frame_of,
    grouped_frame,
    noise_aware_estimate,
    plug_in_estimate,
    says_little,
)

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
    notes += little_said({None: (release, known)}) if known else [str(aware)]
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
    known: dict[Key, tuple[Any, Estimate]] = {}
    if wait or is_quick(*(one for one in releases.values() if not one.has_posterior)):
        known = {key: (one, noise_aware_estimate(one, level)) for key, one in releases.items()}
    else:
        notes.append(
            "The noise-aware posteriors of these groups take long: call to_frame() of this release,"
            " then show it again."
        )
    frame = grouped_frame(
        {
            key: frame_of(one, known[key][1] if known else None, None, level)
            for key, one in releases.items()
        }
    )
    notes += [*little_said(known), *unmatched_in_groups(releases, releases.grouped_by)]
    return estimates_sheet(frame, level, releases.guarantee, notes, whose="All groups together: ")


def little_said(estimates: Mapping[Any, tuple[Any, Estimate]]) -> list[str]:
    """Say where intervals are about those of the prior: of one release, under None, or of groups
    by their names.
    """
    groups = [group for group, known in estimates.items() if says_little(*known)]
    if not groups:
        return []
    where = ""
    if len(groups) < len(estimates):
        where = f" of {len(groups)} of the {len(estimates)} groups"
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
