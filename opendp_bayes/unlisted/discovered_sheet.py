"""The sheet of a discovery: its table on the terminal and in a notebook."""

from typing import Any

from opendp_bayes.display.sheet import Body, Column, Note, Sheet, Table
from opendp_bayes.display.wording import label_said
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.results.estimates import estimate_of
from opendp_bayes.results.sheets import CATEGORY, promised


def discovered_sheet(release: Any, level: float, *, title: str, wait: bool) -> Sheet:
    """A row for every category that is shown, the rest, and the guarantee;
    `DiscoveredRelease.sheet`.
    """
    percent = f"{100 * as_level(level):.6g} %"
    columns = [CATEGORY, Column("Noisy\ncount")]
    cells = [list(map(label_said, release.categories)), list(map(str, release.drawn))]
    unit = "people" if release.people else "records"
    law, reading = release.discovery.law, ""
    if release.k and (wait or release.has_posterior):
        counts, shares = (
            estimate_of(one, level) for one in (release.posterior, release.among_shown)
        )
        columns += [
            Column("Mean", full="Posterior\nmean"),
            Column(f"{percent}\ninterval", weight="strong"),
            Column(f"Share of shown,\n{percent} interval"),
        ]
        ends = zip(counts.lower, counts.upper, strict=True)
        cells += [
            [f"{mean:.1f}" for mean in counts.mean],
            [f"{first:.0f} to {last:.0f}" for first, last in ends],
            shares.shown()[1],
        ]
        reading = (
            f"Mean and interval are of the true number of {unit}, given the release; shares are"
            " those among the categories that are shown."
        )
    elif release.k:
        reading = "The posterior takes seconds: read it, release.posterior, and show this again."
    notes: list[Note] = [*promised(release.guarantee)]
    notes.append(
        f"Every value that occurred got a noisy count, and is shown if that was at least"
        f" {law.threshold}: with {law.least_shown(0.5)} {unit} in half of all releases, with"
        f" {law.least_shown(0.95)} in 95 of 100."
    )
    if release.listed:
        names = shortly(map(label_said, release.categories[: release.listed]), release.listed)
        notes.append(f"Listed, and shown whatever their count: {names}.")
    notes.append(_hidden_of(release, unit, level, percent))
    if release.has_posterior and release.warning:
        notes.append(f"Beware: {release.warning}.")
    rows = tuple(zip(*cells, strict=True))
    table = Table(tuple(columns), (Body(rows),))
    return Sheet((table,), tuple(notes), title=title, reading=reading)


def _hidden_of(release: Any, unit: str, level: float, percent: str) -> Note:
    """What is known of everything that is not shown."""
    rest = release.rest
    if rest is None:
        return "The number of all others was not asked for; rest= in the question, or --rest, does."
    low, high = rest.interval(level)
    each = ", each once for every category," if release.people else ""
    return (
        f"Everything else together: {rest.drawn} {unit}{each} with noise, {percent} interval"
        f" {low:.0f} to {high:.0f}."
    )
