"""Sheets of releases: their tables on the terminal and in a notebook."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opendp_bayes.display.sheet import CONTROLS, Body, Column, Marked, Note, Row, Sheet, Table
from opendp_bayes.display.wording import (
    described,
    group_name,
    in_words,
    limited,
    prior_said,
)
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.unmapped_records import unmatched_in, unmatched_in_groups
from opendp_bayes.inference.ways import is_quick
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import (
    TAKES_LONG,
    Estimate,
    estimate_or_reason,
    noise_aware_estimate,
    plug_in_estimate,
    says_little,
)
from opendp_bayes.results.inferred_release import InferredRelease

CATEGORY = Column("Category", number=False)
_COUNT = Column("Released\ncount")
_COMMANDS = re.compile(rf"{CONTROLS.pattern}|[\t\n]")


def release_sheet(release: InferredRelease, level: float, *, title: str, wait: bool) -> Sheet:
    """A row for every category, the guarantee, and how to read the intervals; `Release.sheet`."""
    aware = estimate_or_reason(release, level, wait=wait)
    percent = f"{100 * level:.6g} %"
    columns = [*_named(release), _COUNT]
    cells = [*_labels(release), list(map(str, release.counts))]
    notes: list[Note] = [*promised(release.guarantee), _by(release.mechanism)]
    if release.learned_prior:
        notes.append(_prior_of(release))
    reading = ""
    decimals = None
    if isinstance(aware, Estimate):
        columns += [
            Column("Mean", full="Posterior\nmean"),
            Column(f"{percent}\ninterval", weight="strong"),
        ]
        cells += aware.shown()
        decimals = aware.decimals
        notes += little_said({None: (release, aware)})
        reading = (
            "Mean and interval take the noise into account: given the release and the prior, each"
            f" probability lies in its interval with probability {percent}. The plug-in interval"
            " takes the released counts for the data: where the noise matters, it is too narrow."
        )
    else:
        notes.append(aware)
    notes += unmatched_in(release)
    if aware != TAKES_LONG and release.k > 1:
        columns.append(Column(f"Plug-in {percent}\n(ignores noise)", weight="faint"))
        cells.append(plug_in_estimate(release, level).shown(decimals)[1])
    table = Table(tuple(columns), (Body(_rows(cells)),))
    return Sheet((table,), tuple(notes), title=title, reading=reading)


def grouped_sheet(
    releases: Mapping[Key, InferredRelease],
    guarantee: PrivacyGuarantee,
    mechanism: Mechanism,
    level: float,
    *,
    by: Sequence[str],
    wait: bool,
) -> Sheet:
    """A row for every group and category, and the guarantee of all groups together;
    `GroupedRelease.sheet`. Noise-aware columns for all groups or none.
    """
    percent = f"{100 * as_level(level):.6g} %"
    columns = [Column("Group", number=False), *_named(next(iter(releases.values()))), _COUNT]
    notes: list[Note] = [*promised(guarantee, "All groups together: "), _by(mechanism)]
    reading = ""
    shown = wait or is_quick(*(one for one in releases.values() if not one.has_posterior))
    if shown:
        columns += [Column("Posterior\nmean"), Column(f"{percent}\ninterval")]
        reading = f"Mean and {percent} interval take the noise into account."
    else:
        notes.append(
            "The noise-aware posteriors of these groups take long: call to_frame() of this release,"
            " then show it again."
        )
    bodies, known = [], {}
    for group, release in releases.items():
        cells = [*_labels(release), list(map(str, release.counts))]
        if shown:
            known[group] = release, noise_aware_estimate(release, level)
            cells += known[group][1].shown()
        bodies.append(Body(_rows(cells), group=group_name(group)))
    notes += little_said(known)
    notes += unmatched_in_groups(releases, by)
    return Sheet((Table(tuple(columns), tuple(bodies)),), tuple(notes), reading=reading)


def little_said(estimates: Mapping[Any, tuple[InferredRelease, Estimate]]) -> list[str]:
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


def unmatched_of(release: Any) -> list[str]:
    """Say of a release, or one of groups, where nearly all records are none of its categories."""
    if isinstance(release, InferredRelease):
        return list(unmatched_in(release))
    if not hasattr(release, "grouped_by"):  # every value that was discovered is a category
        return []
    return list(unmatched_in_groups(release, release.grouped_by))


def promised(guarantee: PrivacyGuarantee, whose: str = "") -> list[Note]:
    """State the promise, and the limit on the rows of an identifier where there is one."""
    return [f"{whose}{in_words(guarantee)}", *limited(guarantee)]


def _by(mechanism: Mechanism) -> Note:
    return "Mechanism: ", Marked(described(mechanism), "code"), "."


def _prior_of(release: InferredRelease) -> Note:
    """State the prior, and what was learned of it where the posterior has been computed."""
    said = prior_said(release.prior, learned=release.learned_prior, ordered=release.ordered)
    if not release.has_posterior or not isinstance(release.posterior, LearnedPosterior):
        return f"Prior: {said}."
    learned = release.posterior.learned
    told = (f"{name} {learned[name].mean():.3g} ± {learned[name].std():.2g}" for name in learned)
    return f"Prior: {said} ({', '.join(told)})."


def _named(release: InferredRelease) -> list[Column]:
    """Name the columns that show the category of a row: one, or one for each axis of a table."""
    return [Column(axis, number=False) for axis in release.axes] or [CATEGORY]


def _labels(release: InferredRelease) -> list[list[str]]:
    values = list(release.values_of_axes.values()) or [release.categories]
    return [list(map(visible, of_axis)) for of_axis in values]


def visible(label: object) -> str:
    """A label as text; in quotes and with escapes where it is empty, has blanks around it, or
    characters that are taken for commands.
    """
    text = str(label)
    is_plain = text == text.strip() and text and not _COMMANDS.search(text)
    return text if is_plain else repr(text)


def _rows(columns: list[list[str]]) -> tuple[Row, ...]:
    return tuple(zip(*columns, strict=True))
