"""Pictures of results: the panels of their frames, and heat maps of joint tables, with matplotlib
(extra `plot`), imported when a picture is made.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import (
    COLOURS,
    MOST_DRAWN,
    Panel,
    first_of,
    plot_panel,
    plot_panels,
    plot_ranked,
    pyplot,
    wrapped,
    write_above,
)
from opendp_bayes.display.wording import EVERYTHING_ELSE, group_name, in_words, label_said
from opendp_bayes.mathematics.validation import Floats, as_level, as_names
from opendp_bayes.release_format.labels import distinct, numbered, position_of
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most cells whose numbers are written into them, and characters of a line of a label.
_MOST_NUMBERS, _LINE = 120, 18
#: Above this share of the largest probability, numbers are white on dark blue.
_DARK = 0.55


def panel_of(frame: "pl.DataFrame", title: str = "") -> Panel:
    """The panel of the estimates of a result: a row for each category; or where there are groups
    for each of these, with the categories in colours, if there are enough.
    """
    grouped = frame["group"].null_count() < frame.height
    parts = frame.partition_by("category", maintain_order=True)
    if grouped and len(parts) <= len(COLOURS):
        series = {str(part["category"][0]): bounds_of(part) for part in parts}
        return Panel(title, list(map(label_said, parts[0]["group"])), series)
    rows = frame["category"].fill_null(EVERYTHING_ELSE)
    if grouped:
        rows = frame["group"] + ": " + rows
    return Panel(title, list(map(label_said, rows)), {"": bounds_of(frame)})


def bounds_of(frame: "pl.DataFrame", prefix: str = "") -> Floats:
    """Means, lower and upper ends, shape `(3, rows)`."""
    return frame.select(f"{prefix}{name}" for name in ("mean", "lower", "upper")).to_numpy().T


def plot_estimates(
    frame: "pl.DataFrame", guarantee: PrivacyGuarantee, ax: "Axes | None", title: str | None
) -> "Axes":
    """The panel of shares of a result."""
    return plot_panel(panel_of(frame), in_lines(guarantee), ax, title)


def plot_release(release: Any, ax: "Axes | None", *, level: float, title: str | None) -> "Axes":
    """The noise-aware posterior of a release beside the plug-in one; `Release.plot`."""
    panel = _panel_of_release(release, level, "")
    return plot_panel(panel, in_lines(release.guarantee), ax, title)


def plot_groups(releases: Any, columns: int, level: float) -> "Figure":
    """A panel of every group, `columns` to a row; `GroupedRelease.plot`."""
    panels = [
        _panel_of_release(release, level, group_name(group))
        for group, release in islice(releases.items(), MOST_DRAWN)
    ]
    more = first_of(len(releases), "groups")
    said = f"All groups together: {in_words(releases.guarantee)}{more}"
    return plot_panels(panels, said, columns, alike=True)


def plot_ranking(releases: Any, category: Any, level: float, title: str | None) -> "Axes":
    """The share of one category in all groups, from the highest down;
    `GroupedRelease.plot_category`.
    """
    place = position_of(category, releases.categories)
    shares = releases.estimates(level).gather_every(len(releases.categories), place)
    said = (
        f"Share of {label_said(group_name(category))} in each group, with {100 * level:.6g} %"
        f" intervals.\nAll groups together: {in_lines(releases.guarantee)}"
    )
    names = list(map(label_said, shares["group"]))
    return plot_ranked(names, bounds_of(shares), said, None, title)


def _panel_of_release(release: Any, level: float, title: str) -> Panel:
    frame, interval = (
        release.to_frame(level, plug_in=True),
        f"mean and {100 * level:.6g} % interval",
    )
    series = {
        f"Noise-aware: {interval}": bounds_of(frame),
        f"Plug-in, which ignores the noise: {interval}": bounds_of(frame, "plug_in_"),
    }
    return Panel(title, [label_said(group_name(label)) for label in release.categories], series)


def in_lines(guarantee: PrivacyGuarantee) -> str:
    """The promise, a sentence to a line."""
    return in_words(guarantee).replace(". ", ".\n")


def plot_table(
    release: Any,
    ax: "Axes | None",
    *,
    variables: Sequence[str] | None,
    level: float,
    title: str | None,
) -> "Axes":
    """A heat map of the posterior means of two variables of a joint table: the first downwards, the
    second to the right. `Release.plot`.

    The numbers are means with intervals of probability `level`, in per cent, where there is room
    for them; elsewhere it is said how wide these are. Cells that the table leaves out are grey. Of
    many rows and columns the first 100 are drawn.
    """
    level = as_level(level)
    plt = pyplot(ax, title)
    names = tuple(release.axes if variables is None else as_names(variables, "variables"))
    if len(names) != 2:
        raise ValueError(
            f"variables={variables!r}: must name the two variables to draw, of"
            f" {', '.join(map(repr, release.axes))}."
        )
    posterior = release.posterior
    if names != release.axes:
        posterior = posterior.marginal(*names)
    cells: Any = posterior.categories
    down, right = zip(*cells, strict=True)
    rows, columns, at = distinct(down), distinct(right), (numbered(down), numbered(right))
    means = np.full((len(rows), len(columns)), np.nan)
    means[at] = 100 * posterior.mean()
    means = means[:MOST_DRAWN, :MOST_DRAWN]
    has_numbers = (
        len(rows) * len(columns) <= _MOST_NUMBERS and max(len(rows), len(columns)) <= MOST_DRAWN
    )
    if ax is None:
        width, height = (1.05, 0.55) if has_numbers else (0.3, 0.22)
        size = max(6.0, 2.8 + width * means.shape[1]), max(3.2, 1.9 + height * means.shape[0])
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    ax.set_facecolor("#e0e0e0")
    image = ax.pcolormesh(means, cmap="Blues", vmin=0, edgecolors="white", linewidth=0.5)
    ax.figure.colorbar(image, ax=ax, label="Posterior mean, %", shrink=0.8)
    _name_cells(ax, names, rows[:MOST_DRAWN], columns[:MOST_DRAWN])
    lower, upper = (100 * end for end in posterior.interval(level))
    if has_numbers:
        _write_numbers(ax, means, at, lower, upper)
        said = f"Per cent of all, with {100 * level:.6g} % intervals."
    else:
        widths = upper - lower
        said = (
            f"The {100 * level:.6g} % intervals are {widths.min():.2g} to {widths.max():.2g}"
            f" percentage points wide{first_of(len(rows), 'rows')}"
            f"{first_of(len(columns), 'columns')}."
        )
    write_above(ax, f"{in_lines(release.guarantee)}\n{said}", title)
    return ax


def _name_cells(ax: "Axes", names: Sequence[str], rows: list[Any], columns: list[Any]) -> None:
    """The first row at the top; the names of many columns stand upright."""
    ax.invert_yaxis()
    down = [wrapped(row, _LINE) for row in rows]
    ax.set_yticks(np.arange(len(rows)) + 0.5, down, parse_math=False)
    turn = 90 if len(columns) > 8 else 0
    right = [wrapped(column, _LINE if turn else 12) for column in columns]
    ax.set_xticks(np.arange(len(columns)) + 0.5, right, rotation=turn, parse_math=False)
    ax.tick_params(length=0)
    ax.set_ylabel(names[0], parse_math=False)
    ax.set_xlabel(names[1], parse_math=False)
    ax.spines[:].set_visible(False)


def _write_numbers(ax: "Axes", means: Floats, at: Any, lower: Floats, upper: Floats) -> None:
    """Means and intervals, written into the cells."""
    decimals = int(np.clip(1 - np.floor(np.log10(max((upper - lower).min(), 1e-6))), 0, 4))
    for row, column, low, high in zip(*at, lower, upper, strict=True):
        mean = means[row, column]
        ax.text(
            column + 0.5,
            row + 0.5,
            f"{mean:.{decimals}f}\n{low:.{decimals}f} to {high:.{decimals}f}",
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if mean > _DARK * np.nanmax(means) else "black",
        )
