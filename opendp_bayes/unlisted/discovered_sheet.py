"""The sheet of a discovery: its table on the terminal and in a notebook."""

from typing import Any

from opendp_bayes.display.sheet import Sheet, labelled_frame
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.results.sheets import estimates_sheet


def discovered_sheet(release: Any, level: float, *, title: str, wait: bool, percent: bool) -> Sheet:
    """A row for every category that is shown, the rest, and the guarantee;
    `DiscoveredRelease.sheet`.
    """
    level = as_level(level)
    unit, law = "people" if release.people else "records", release.discovery.law
    notes = [
        f"Every value that occurred got a noisy count, and is shown if that was at least"
        f" {law.threshold}: with {law.least_shown(0.5)} {unit} in half of all releases, with"
        f" {law.least_shown(0.95)} in 95 of 100.",
    ]
    if release.k and (wait or release.has_posterior):
        frame = release.to_frame(level)
        notes.append(f"Mean and interval are of the true number of {unit}.")
    else:
        frame = labelled_frame({"category": release.categories}, {"drawn": list(release.drawn)})
        if release.k:
            notes.append(
                "The posterior takes seconds: read it, release.posterior, and show this again."
            )
    if release.listed:
        names = shortly(map(repr, release.categories[: release.listed]), release.listed)
        notes.append(f"Listed, and shown whatever their count: {names}.")
    notes.append(_hidden_of(release, unit, level))
    if release.has_posterior and release.warning:
        notes.append(f"Beware: {release.warning}.")
    return estimates_sheet(frame, level, release.guarantee, notes, title=title, percent=percent)


def _hidden_of(release: Any, unit: str, level: float) -> str:
    """What is known of everything that is not shown."""
    rest = release.rest
    if rest is None:
        return "The number of all others was not asked for; rest= in the question, or --rest, does."
    low, high = rest.interval(level)
    each = ", each once for every category," if release.people else ""
    return (
        f"Everything else together: {rest.drawn} {unit}{each} with noise, {100 * level:.6g} %"
        f" interval {low:.0f} to {high:.0f}."
    )
