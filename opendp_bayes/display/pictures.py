"""Pictures: dots with intervals in panels, and heat maps, with matplotlib (extra `plot`), imported
when needed.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.tables import CONTROLS
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, which colour-blind readers tell apart: first blue and vermilion.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#595959"
#: Rows, columns or panels that a picture has at most; the first are drawn.
MOST_DRAWN = 100
#: Characters of a line of a label, how many more a word may have, and lines of a label.
_LINE, _LONGER, _LINES = 30, 2, 3
#: Characters of a line of sentences above a panel.
_SENTENCE = 75
#: Inches of a line, of what is around the rows of a panel, of a panel's width, and the least beside
#: others.
_ROW, _AROUND, _WIDTH, _BESIDE = 0.24, 0.95, 6.4, 4.2
#: Inches of a cell of a heat map, and the most cells whose numbers are written into them.
_CELL, _MOST_NUMBERS = (1.05, 0.55), 120
#: The part of a row's height over which its dots are spread, none of which hides another.
_SPREAD = 0.6


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows of dots with intervals, the first at the top.

    Attributes
    ----------
    title : str
        Stands above the panel.
    rows : Sequence[str]
        What each row is of.
    series : Mapping[str, Floats]
        Dots by the names of their colours: middles, lower and upper ends, shape `(3, rows)`, NaN
        where there is none.
    axis : str
        What the shares are of.
    """

    title: str
    rows: Sequence[str]
    series: Mapping[str, Floats]
    axis: str = "Share"

    @property
    def height(self) -> float:
        """Inches."""
        lines = sum(wrapped(row).count("\n") + 1 for row in self.rows[:MOST_DRAWN])
        legend = len(self.series) if len(self.series) > 1 else 0
        return _AROUND + _ROW * (max(1, lines) + legend)


def plot_panel(
    panel: Panel, sentences: str, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw a panel below sentences and a title, and return its axes, new ones by default.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    plt = pyplot(ax, title)
    if ax is None:
        ax = plt.subplots(figsize=(_WIDTH, panel.height + 0.6), layout="constrained")[1]
    draw_panel(ax, panel)
    write_above(ax, sentences, title)
    return ax


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
        figsize=(max(_WIDTH, _BESIDE * columns), sum(heights) + 0.6),
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


def plot_cells(
    variables: Sequence[str],
    labels: tuple[Sequence[Any], Sequence[Any]],
    bounds: Floats,
    sentences: str,
    ax: "Axes | None",
    title: str | None,
) -> "Axes":
    """Draw a heat map of middles, with their intervals where there is room for numbers.

    Parameters
    ----------
    variables : Sequence[str]
        The names of the two variables, the first downwards.
    labels : tuple[Sequence, Sequence]
        Their values, of which the first 100 are drawn.
    bounds : ndarray
        Middles, lower and upper ends, shape `(3, rows, columns)`, NaN where there is no cell.
    sentences, ax, title : str, Axes or None, str or None
        As of `plot_panel`.
    """
    plt = pyplot(ax, title)
    turn = 90 if len(labels[1]) > 8 else 0
    down = [wrapped(label, 18) for label in labels[0][:MOST_DRAWN]]
    right = [wrapped(label, 18 if turn else 12) for label in labels[1][:MOST_DRAWN]]
    bounds = bounds[:, :MOST_DRAWN, :MOST_DRAWN]
    has_numbers = bounds[0].size <= _MOST_NUMBERS
    width, height = _CELL if has_numbers else (0.3, 0.22)
    if ax is None:
        size = max(_WIDTH, 2.8 + width * len(right)), max(3.2, 1.9 + height * len(down))
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    ax.set_facecolor("#e0e0e0")
    image = ax.pcolormesh(bounds[0], cmap="Blues", vmin=0, edgecolors="white", linewidth=0.5)
    shades = ax.figure.colorbar(image, ax=ax, label="Share", shrink=0.8)
    shades.ax.yaxis.set_major_formatter(_share)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(down)) + 0.5, down, parse_math=False)
    ax.set_xticks(np.arange(len(right)) + 0.5, right, rotation=turn, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_ylabel(variables[0] + first_of(len(labels[0]), "rows"), parse_math=False)
    ax.set_xlabel(variables[1] + first_of(len(labels[1]), "columns"), parse_math=False)
    if has_numbers:
        for row, column in np.argwhere(np.isfinite(bounds[0])):
            middle, lower, upper = bounds[:, row, column]
            text = f"{100 * middle:.1f} %\n{100 * lower:.1f} to {100 * upper:.1f}"
            shade = "white" if middle > 0.55 * np.nanmax(bounds[0]) else "black"
            centre = column + 0.5, row + 0.5
            ax.text(*centre, text, ha="center", va="center", fontsize="x-small", color=shade)
    write_above(ax, sentences, title)
    return ax


def pyplot(ax: Any = None, title: Any = None) -> Any:
    """Import `matplotlib.pyplot`.

    Raises
    ------
    ImportError
        With the extra to install.
    TypeError
        For axes and a title that are none.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'opendp-bayes[plot]'.") from None
    if not isinstance(ax, Axes | None):
        raise TypeError(f"ax={told(ax)}: must be axes of matplotlib, or None for new ones.")
    if title is not None:
        as_text(title, "title")
    return plt


def first_of(number: int, what: str) -> str:
    """Say in brackets that a picture shows the first of so many; empty where it shows all."""
    return f" (the first {MOST_DRAWN} of {number} {what})" if number > MOST_DRAWN else ""


def write_above(ax: "Axes", sentences: str, title: str | None = None) -> None:
    """Sentences in small print above the axes, and a title above them."""
    text = "\n".join(textwrap.fill(line, _SENTENCE) for line in sentences.split("\n"))
    ax.annotate(
        text,
        (0, 1),
        (0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize="small",
        color=GREY,
        va="bottom",
    )
    if title is not None:
        pad = 12.0 + 12.5 * (text.count("\n") + 1)
        ax.set_title(title, loc="left", fontweight="bold", pad=pad, parse_math=False)


def wrapped(label: object, width: int = _LINE) -> str:
    """A label in lines of that width, of which the third may end in an ellipsis; a word that is a
    little longer stays whole.
    """
    text = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(label))
    longest = max(map(len, text.split()), default=0)
    width = longest if width < longest <= width + _LONGER else width
    return textwrap.fill(text, width, max_lines=_LINES, placeholder=" …") or text


def draw_panel(ax: "Axes", panel: Panel) -> None:
    """Draw the rows of a panel and their names. Shares begin at 0, and end at 1 at most."""
    rows = list(map(wrapped, panel.rows[:MOST_DRAWN]))
    places, number = np.arange(len(rows)), len(panel.series)
    for row, (series, bounds) in enumerate(panel.series.items()):
        middle, lower, upper = bounds[:, :MOST_DRAWN]
        ax.errorbar(
            middle,
            places + _SPREAD * ((row + 0.5) / number - 0.5),
            xerr=np.clip([middle - lower, upper - middle], 0, None),
            fmt="o",
            color=COLOURS[row % len(COLOURS)],
            elinewidth=2,
            markersize=4.5,
            label=series,
        )
    ax.set_yticks(places, rows, parse_math=False)
    ax.set_ylim(max(1, len(rows)) - 0.4, -0.6)
    ax.set_xlabel(f"{panel.axis}{first_of(len(panel.rows), 'rows')}")
    ax.xaxis.set_major_formatter(_share)
    every = (bounds[:, :MOST_DRAWN] for bounds in panel.series.values() if bounds.size)
    highest = min(1.0, 1.06 * float(max(map(np.nanmax, every), default=1.0))) or 1.0
    ax.set_xlim(-0.015 * highest, highest)  # room for a middle at 0
    ax.axvline(0, color="black", linewidth=0.8)
    if panel.title:
        ax.set_title(wrapped(panel.title), loc="left", fontsize="medium", parse_math=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis="x", color="#e6e6e6")
    ax.tick_params(axis="y", length=0)
    if number > 1:
        _name_colours(ax)


def _share(share: float, _: object) -> str:
    """The share at a tick, in per cent."""
    return f"{100 * share:.6g} %"


def _name_colours(ax: "Axes") -> None:
    """The legend, so far below the axis that its numbers and name have room."""
    from matplotlib.transforms import ScaledTranslation

    below = ax.transAxes + ScaledTranslation(0.0, -0.45, ax.figure.dpi_scale_trans)  # inches
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=below,
        fontsize="small",
        frameon=False,
        borderaxespad=0,
    )
