"""Pictures of surveys: the panels of all questions, and the graph of the variables that were
measured together.
"""

import textwrap
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opendp_bayes.display.pictures import (
    COLOURS,
    GREY,
    MOST_DRAWN,
    Panel,
    draw_panel,
    first_of,
    pyplot,
    wrapped,
    write_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Characters of a line above one panel, and inches of the least width of a figure and of a panel.
_SENTENCE, _WIDTH, _OF_PANEL = 75, 6.4, 4.2
#: Inches between two neighbours on the circle, and characters of a line of a variable's name.
_STEP, _LINE = 1.6, 14


def plot_panels(panels: Sequence[Panel], sentences: str, columns: int) -> "Figure":
    """Draw panels, `columns` to a row, below sentences."""
    sentences += first_of(len(panels), "pictures")
    panels = panels[:MOST_DRAWN]
    columns = min(columns, len(panels))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(panel.height for panel in row) for row in rows]
    figure, axes = pyplot().subplots(
        len(rows),
        columns,
        figsize=(max(_WIDTH, _OF_PANEL * columns), sum(heights) + 0.6),
        squeeze=False,
        height_ratios=heights,
        layout="constrained",
    )
    for ax, panel in zip(axes.flat, panels, strict=False):
        draw_panel(ax, panel)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    text = textwrap.fill(sentences, max(_SENTENCE, 56 * columns))
    figure.suptitle(text, x=0.01, ha="left", fontsize="small", color=GREY)
    return figure


def plot_graph(
    variables: Sequence[str], tables: Sequence[Sequence[str]], ax: "Axes | None"
) -> "Axes":
    """Draw variables on a circle with a line between any two of one table, and return the axes, by
    default new ones.
    """
    plt = pyplot(ax)
    angle = np.pi - np.linspace(0, 2 * np.pi, len(variables), endpoint=False)
    radius = _STEP * max(len(variables) / (2 * np.pi), 0.6)
    places = radius * np.column_stack([1.5 * np.cos(angle), np.sin(angle)])
    if ax is None:
        size = np.ptp(places, axis=0) + np.array([2.2, 1.6])
        _, ax = plt.subplots(figsize=size.clip((4.4, 1.8), 12), layout="constrained")
    pairs = {pair for names in tables for pair in combinations(sorted(set(names)), 2)}
    for pair in sorted(pairs):
        ends = places[[variables.index(variable) for variable in pair]]
        ax.plot(*ends.T, color=COLOURS[0], linewidth=2, zorder=1)
    for centre, variable in zip(places, variables, strict=True):
        ax.annotate(
            wrapped(variable, _LINE),
            centre,
            ha="center",
            va="center",
            parse_math=False,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.4"},
        )
    (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
    ax.set(xlim=(left - 1, right + 1), ylim=(low - 0.4, high + 0.4), aspect="equal")
    ax.set_axis_off()
    write_above(
        ax,
        "A line joins two variables of one table.\n"
        "Others are independent given those between them.",
    )
    return ax
