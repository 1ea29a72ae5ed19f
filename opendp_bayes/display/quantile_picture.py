"""Picture of quantiles of ordered categories: one bar with its interval for each level."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from opendp_bayes.display.pictures import GREY, NOISE_AWARE, pyplot, with_grid, wrapped, write_above
from opendp_bayes.mathematics.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Categories whose names stand at the axis, at most, and characters of a line of one.
_MOST_NAMES, _LINE = 12, 12
#: Inches of the picture, and of each level more.
_WIDTH, _HEIGHT, _EACH = 6.4, 1.3, 0.3


def plot_quantiles(
    levels: Sequence[float],
    middle: Floats,
    ends: tuple[Floats, Floats],
    names: Sequence[str] | None,
    sentence: str,
    ax: "Axes | None",
) -> "Axes":
    """Draw a dot and an interval for each level, from the lowest upwards, and return the axes, by
    default new ones; with `names`, the places are those of categories.
    """
    plt = pyplot(ax)
    if ax is None:
        height = _HEIGHT + _EACH * len(levels)
        _, ax = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
    rows = np.arange(len(levels))
    ax.hlines(rows, *ends, color=NOISE_AWARE, linewidth=4, alpha=0.45)
    ax.plot(middle, rows, "o", color=NOISE_AWARE, markersize=5)
    ax.set_yticks(rows, [f"{level:g}" for level in levels])
    ax.set_ylabel("quantile")
    if names is not None:
        step = -(-len(names) // _MOST_NAMES)
        places = range(0, len(names), step)
        ax.set_xticks(places, [wrapped(names[place], _LINE) for place in places])
        ax.set_xlim(-0.5, len(names) - 0.5)
    ax.margins(y=0.5 / max(len(levels), 2))
    with_grid(ax)
    ax.tick_params(colors=GREY, labelcolor="black")
    write_above(ax, sentence)
    return ax
