"""Results of a report whose categories were discovered: their tables, and what is said of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opendp_bayes import DiscoveredRelease
from opendp_bayes.display.sheet import MOST_ROWS
from opendp_bayes.display.wording import EVERYTHING_ELSE, described, label_said
from opendp_bayes.results.estimates import Estimate, estimate_of
from opendp_bayes.unlisted.posterior.noisy_keys import hidden_bound
from opendp_bayes_office.report.report_document import Report

#: The first digits of the steps of a scale, which has at most so many.
_STEPS, _MOST_STEPS = (1, 2, 5, 10), 2


@dataclass(frozen=True)
class DiscoveredRow:
    """A category, or everything else, as text, and where the picture has it, in per cent."""

    name: str
    mean: str
    interval: str
    count: str
    share: str
    share_interval: str
    at: float
    low: float
    width: float


@dataclass(frozen=True)
class Discovered:
    """The table of a result whose categories were discovered.

    Attributes
    ----------
    unit : str
        What is counted.
    rows : tuple[DiscoveredRow, ...]
        The categories, the largest first.
    rest : DiscoveredRow or None
        Everything else; None where that was not asked.
    ticks : tuple[tuple[str, float], ...]
        Of the scale, as text and in per cent.
    left : int
        The number of categories that have no row.
    """

    unit: str
    rows: tuple[DiscoveredRow, ...]
    rest: DiscoveredRow | None
    ticks: tuple[tuple[str, float], ...]
    left: int


def discovered(release: DiscoveredRelease, level: float) -> Discovered:
    """The table of a discovery, with intervals of probability `level`; computes its posterior."""
    shares = estimate_of(release.among_shown if release.rest is None else release.among_all, level)
    counts, rest = release.posterior, release.rest
    (lower, upper), mean = counts.interval(level), counts.mean()
    ends = None if rest is None else rest.interval(level)
    highest = max(1.0, *upper.tolist(), 0.0 if ends is None else ends[1])
    step = _step(highest)
    end = step * math.ceil(highest / step)
    texts = _shown(shares)

    def row(name: str, value: str, count: int, share: tuple[str, str], *at: float) -> DiscoveredRow:
        middle, low, high = (float(one) for one in at)
        places = (round(100 * one / end, 3) for one in (middle, low, high - low))
        interval = f"{low:.0f} to {high:.0f}"
        return DiscoveredRow(name, value, interval, str(count), *share, *places)

    order = np.argsort(-mean, kind="stable")[:MOST_ROWS].tolist()
    rows = [
        row(
            label_said(release.categories[at]),
            f"{mean[at]:.1f}",
            release.drawn[at],
            texts[at],
            *(mean[at], lower[at], upper[at]),
        )
        for at in order
    ]
    last = None
    if rest is not None and ends is not None:
        middle = min(max(rest.drawn, ends[0]), ends[1])
        last = row(EVERYTHING_ELSE, "–", rest.drawn, texts[-1], middle, *ends)
    ticks = tuple(
        (f"{tick:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"), round(100 * tick / end, 3))
        for tick in range(0, end + 1, step)
    )
    return Discovered(units(release).capitalize(), tuple(rows), last, ticks, release.k - len(rows))


def notes_of(release: DiscoveredRelease, level: float) -> Iterator[str]:
    """Yield sentences that say which categories are shown, and what the others may have."""
    law, unit, rest = release.discovery.law, units(release), release.discovery.rest
    yield (
        f"Which categories there are was not known: every value that occurs got a noisy count, and"
        f" is shown if that was at least {law.threshold}. With {law.least_shown(0.5)} {unit} a"
        f" category is shown in half of all releases, with {law.least_shown(0.95)} in 95 of 100,"
        f" with {law.least_shown(0.99)} in 99."
    )
    if release.people and (most := release.guarantee.distance.records) > 1:
        yield (
            f"Each person is counted once in each of up to {most} categories; shares, and"
            " everything else, are of such counts and not of people."
        )
    if release.listed:
        names = ", ".join(map(label_said, release.categories[: release.listed]))
        yield f"Listed beforehand, and shown whatever their count: {names}."
    most = hidden_bound(law, level, rest=release.drawn_rest, rest_noise=rest)
    yield (
        f"A category that is not shown has at most {most} {unit}: of a category that was named"
        f" before the release was made, this is wrong in at most {100 * (1 - level):.6g} % of"
        " releases. How many such categories there are is not known."
    )
    if release.warning:
        yield f"Beware: {release.warning}."
    if rest is None:
        yield f"How many {unit} the categories have together that are not shown was not asked."


def sentences_of(report: Report, level: float) -> Iterator[str]:
    """Yield sentences for the methods on each result whose categories were discovered."""
    for result, release in zip(report.specification.results, report.releases, strict=True):
        if not isinstance(release, DiscoveredRelease):
            continue
        law, rest = release.discovery.law, release.discovery.rest
        yield (
            f" The categories of “{result.heading}” were discovered: every value that occurs got"
            f" its number of {units(release)} with noise, {described(law)}, and is shown with that"
            f" if it is at least {law.threshold}. Estimates are means and equal-tailed"
            f" {100 * level:.6g} % credible intervals of the true numbers given these; the law of"
            " the numbers of all values, hidden ones too, was learned with them."
        )
        if rest is not None:
            yield (
                f" The number of all others together has noise of its own, {described(rest)}; its"
                f" interval holds it with at least {100 * level:.6g} %, whatever it is."
            )


def units(release: DiscoveredRelease) -> str:
    """What a discovery counts."""
    return "people" if release.people else "records"


def _step(highest: float) -> int:
    """The step of a scale up to there."""
    least = highest / _MOST_STEPS
    power = 10 ** max(0, math.floor(math.log10(least))) if least > 1 else 1
    return next(digit * power for digit in _STEPS if digit * power >= least)


def _shown(shares: Estimate) -> list[tuple[str, str]]:
    """Shares and their intervals as text."""
    if not shares.mean.size:
        return []
    means, intervals = shares.shown(min(shares.decimals, 4))
    return [(mean, of.replace(" to ", "–")) for mean, of in zip(means, intervals, strict=True)]
