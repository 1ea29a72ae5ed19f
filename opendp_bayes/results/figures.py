"""Pictures of results: the panels of their frames, with matplotlib (extra `plot`), imported when a
picture is made.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import COLOURS, Panel, plot_panel
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
        series = {label_said(name): bounds[..., at] for at, name in enumerate(names)}
        axis = "Share" if len(names) > 1 else f"Share of {label_said(names[0])}"
        return Panel(title, list(map(label_said, rows)), series, axis)
    labels = frame["category"].fill_null(EVERYTHING_ELSE)
    if grouped:
        labels = frame["group"] + ": " + labels
    return Panel(title, list(map(label_said, labels)), {"": bounds_of(frame)})


def bounds_of(frame: "pl.DataFrame", prefix: str = "") -> Floats:
    """Means, lower and upper ends, shape `(3, rows)`."""
    return frame.select(f"{prefix}{name}" for name in ("mean", "lower", "upper")).to_numpy().T


def plot_estimates(
    frame: "pl.DataFrame",
    level: float,
    guarantee: PrivacyGuarantee,
    ax: "Axes | None",
    title: str | None,
    whose: str = "",
) -> "Axes":
    """Draw the panel of the estimates of a result, whose guarantee stands above."""
    said = f"{whose}{in_lines(guarantee)}\nMeans with {100 * level:.6g} % intervals."
    return plot_panel(panel_of(frame), said, ax, title)


def plot_release(release: Any, ax: "Axes | None", *, level: float, title: str | None) -> "Axes":
    """The noise-aware posterior of a release beside the plug-in one, or of a joint table that of
    each cell, with the variable of the fewest values in colours; `Release.plot`.
    """
    import polars as pl

    values, is_table = release.values_of_axes, len(release.axes) > 1
    frame = release.to_frame(level, plug_in=not is_table)
    if is_table:
        colours = min(values, key=lambda name: len(distinct(values[name])))
        rows = zip(*(values[name] for name in values if name != colours), strict=True)
        groups = pl.Series("group", list(map(group_name, rows)))
        table = frame.with_columns(groups, category=pl.Series(list(map(str, values[colours]))))
        return plot_estimates(table, level, release.guarantee, ax, title)
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
