"""Sheets of releases: their tables on the terminal and in a notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

from opendp_bayes.display.sheet import Body, Column, Marked, Note, Row, Sheet, Table
from opendp_bayes.display.wording import described, group_name, guarantee, limited, prior_said
from opendp_bayes.inference.answers.learned_posterior import LearnedPosterior
from opendp_bayes.inference.estimates import (
    Estimate,
    InferredRelease,
    estimate_or_reason,
    noise_aware_estimate,
    plug_in_estimate,
)
from opendp_bayes.inference.unmatched import unmatched_in, unmatched_in_groups
from opendp_bayes.inference.ways import is_quick
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.promise import Promise

_CATEGORY = Column("Category", number=False)
_COUNT = Column("Released\ncount")


def release_sheet(release: InferredRelease, level: float, *, title: str, wait: bool) -> Sheet:
    """A row for every category, the guarantee, and how to read the intervals; `Release.sheet`."""
    plug_in = plug_in_estimate(release, level)
    aware = estimate_or_reason(release, level, wait=wait)
    percent = f"{100 * level:.6g} %"
    columns = [*_named(release), _COUNT]
    cells = [*_labels(release), _counts(release)]
    notes: list[Note] = [*promised(release.promise), _by(release.mechanism)]
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
        reading = (
            "Mean and interval take the noise into account: given the release and the prior, each"
            f" probability lies in its interval with probability {percent}. The plug-in interval"
            " takes the released counts for the data: where the noise matters, it is too narrow."
        )
    else:
        notes.append(aware)
    notes += unmatched_in(release)
    columns.append(Column(f"Plug-in {percent}\n(ignores noise)", weight="faint"))
    cells.append(plug_in.shown(decimals)[1])
    table = Table(tuple(columns), (Body(_rows(cells)),))
    return Sheet((table,), tuple(notes), title=title, reading=reading)


def grouped_sheet(
    releases: Mapping[Key, InferredRelease],
    promise: Promise,
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
    notes: list[Note] = [*promised(promise, "All groups together: "), _by(mechanism)]
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
    bodies = []
    for group, release in releases.items():
        cells = [*_labels(release), _counts(release)]
        if shown:
            cells += noise_aware_estimate(release, level).shown()
        bodies.append(Body(_rows(cells), group=group_name(group)))
    notes += unmatched_in_groups(releases, by)
    return Sheet((Table(tuple(columns), tuple(bodies)),), tuple(notes), reading=reading)


def unmatched_of(release: Any) -> list[str]:
    """Say of a release, or one of groups, where nearly all records are none of its categories."""
    if isinstance(release, InferredRelease):
        return list(unmatched_in(release))
    return list(unmatched_in_groups(release, release.grouped_by))


def promised(promise: Promise, whose: str = "") -> list[Note]:
    """State the promise, and the limit on the rows of an identifier where there is one."""
    return [f"{whose}{guarantee(promise)}", *limited(promise)]


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
    return [Column(axis, number=False) for axis in release.axes] or [_CATEGORY]


def _labels(release: InferredRelease) -> list[list[str]]:
    values = list(release.values_of_axes.values()) or [release.categories]
    return [list(map(_visible, of_axis)) for of_axis in values]


def _visible(label: object) -> str:
    """A label as text, in quotes where blanks around it would not be seen."""
    text = str(label)
    return text if text == text.strip() else repr(text)


def _counts(release: InferredRelease) -> list[str]:
    return [str(count) for count in release.counts]


def _rows(columns: list[list[str]]) -> tuple[Row, ...]:
    return tuple(zip(*columns, strict=True))
