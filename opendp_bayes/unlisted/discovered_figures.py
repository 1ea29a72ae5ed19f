"""The picture of a discovery, with matplotlib (extra `plot`), imported when it is made."""

from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import (
    GREY,
    MOST_DRAWN,
    NOISE_AWARE,
    first_of,
    pyplot,
    with_grid,
    wrapped,
    write_above,
)
from opendp_bayes.display.wording import EVERYTHING_ELSE, in_words, label_said
from opendp_bayes.mathematics.validation import as_level
from opendp_bayes.results.estimates import estimate_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_discovered(
    release: Any, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
) -> "Axes":
    """A bar for the mean of every count, the largest first, 100 at most, and one for everything
    else; `DiscoveredRelease.plot`.
    """
    level = as_level(level)
    plt = pyplot(ax, title)
    counts, rest = release.posterior, release.rest
    found = estimate_of(counts, level)
    order = np.argsort(-found.mean, kind="stable")[:MOST_DRAWN]
    labels = [wrapped(label_said(release.categories[place])) for place in order]
    bars = [(*found.bounds[:, place], NOISE_AWARE) for place in order]
    if rest is not None:
        low, high = rest.interval(level)
        labels.append(EVERYTHING_ELSE)
        bars.append((min(max(rest.drawn, low), high), low, high, GREY))
    if ax is None:
        lines = sum(label.count("\n") + 1 for label in labels)
        size = 6.4, 1.9 + max(0.28 * len(labels), 0.1 + 0.17 * lines)
        _, ax = plt.subplots(figsize=size, layout="constrained")
    for place, (middle, low, high, color) in enumerate(bars):
        ax.barh(place, middle, color=color, alpha=0.35, height=0.7)
        ax.plot([low, high], [place, place], color=color, linewidth=2, solid_capstyle="butt")
        ax.plot(middle, place, "o", color=color, markersize=4)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)  # the first at the top
    unit = "People" if release.people else "Records"
    ax.set_xlabel(
        f"{unit}: mean and {100 * level:.6g} % interval{first_of(release.k, 'categories')}"
    )
    ax.set_xlim(left=0)
    with_grid(ax)
    write_above(ax, in_words(release.guarantee).replace(". ", ".\n"))
    if title is not None:
        ax.set_title(title, loc="left", fontweight="bold", pad=36.0)
    return ax
