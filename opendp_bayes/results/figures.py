"""Pictures of results: the panels of their frames, with matplotlib (extra `plot`), imported when a
picture is made.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import COLOURS, Panel, plot_cells, plot_panel
from opendp_bayes.display.wording import EVERYTHING_ELSE, group_name, in_words, label_said
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.labels import distinct, numbered
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def panel_of(frame: "pl.DataFrame", title: str = "") -> Panel:
    """The panel of the estimates of a result: a row for each category; or where there are groups
    for each of these, with the categories in colours, if there are enough.
    """
    grouped = frame["group"].null_count() < frame.height
    groups, categories = frame["group"].fill_null("(null)").to_list(), frame["category"].to_list()
    names, rows = distinct(categories), distinct(groups)
    if grouped and len(names) <= len(COLOURS):
        bounds = np.full((3, len(rows), len(names)), np.nan)  # where a table leaves out cells
        bounds[:, numbered(groups), numbered(categories)] = bounds_of(frame)
        series = {label_said(label): bounds[..., column] for column, label in enumerate(names)}
        axis = "Share" if len(names) > 1 else f"Share of {label_said(names[0])}"
        return Panel(title, list(map(label_said, rows)), series, axis)
    labels = frame["category"].fill_null(EVERYTHING_ELSE)
    if grouped:
        labels = frame["group"] + ": " + labels
    return Panel(title, list(map(label_said, labels)), {"": bounds_of(frame)})


def bounds_of(frame: "pl.DataFrame", prefix: str = "") -> Floats:
    """Means, lower and upper ends, shape `(3, rows)`."""
    columns = (f"{prefix}{statistic}" for statistic in ("mean", "lower", "upper"))
    return frame.select(columns).to_numpy().T


def plot_estimates(
    frame: "pl.DataFrame",
    level: float,
    guarantee: PrivacyGuarantee,
    ax: "Axes | None",
    title: str | None,
    whose: str = "",
) -> "Axes":
    """Draw the panel of the estimates of a result, whose guarantee stands above."""
    return plot_panel(panel_of(frame), whose + _said(level, guarantee), ax, title)


def _said(level: float, guarantee: PrivacyGuarantee) -> str:
    return f"{in_lines(guarantee)}\nMeans with {100 * level:.6g} % intervals."


def plot_release(release: Any, ax: "Axes | None", *, level: float, title: str | None) -> "Axes":
    """The noise-aware posterior of a release beside the plug-in one, of a table of two variables a
    heat map, and of other tables that of each cell; `Release.plot`.
    """
    values, is_table = list(release.values_of_axes.values()), len(release.axes) > 1
    frame = release.to_frame(level, plug_in=not is_table)
    if len(values) == 2:
        sides = (distinct(values[0]), distinct(values[1]))
        bounds = np.full((3, len(sides[0]), len(sides[1])), np.nan)  # where cells are left out
        bounds[:, numbered(values[0]), numbered(values[1])] = bounds_of(frame)
        return plot_cells(release.axes, sides, bounds, _said(level, release.guarantee), ax, title)
    if is_table:
        return plot_estimates(release.estimates(level), level, release.guarantee, ax, title)
    interval = f"mean and {100 * level:.6g} % interval"
    series = {
        f"Noise-aware: {interval}": bounds_of(frame),
        f"Plug-in, which ignores the noise: {interval}": bounds_of(frame, "plug_in_"),
    }
    labels = [label_said(group_name(label)) for label in release.categories]
    return plot_panel(Panel("", labels, series), in_lines(release.guarantee), ax, title)


def in_lines(guarantee: PrivacyGuarantee) -> str:
    """The promise, a sentence to a line."""
    return in_words(guarantee).replace(". ", ".\n")
