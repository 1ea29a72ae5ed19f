"""Pictures of surveys: the panels of all questions."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendp_bayes.display.pictures import GREY, MOST_DRAWN, Panel, draw_panel, first_of, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Characters of a line above one panel, and inches of the least width of a figure and of a panel.
_SENTENCE, _WIDTH, _OF_PANEL = 75, 6.4, 4.2


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
