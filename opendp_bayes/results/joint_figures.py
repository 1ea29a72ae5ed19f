"""Pictures of joint tables: heat maps, with matplotlib (extra `plot`), imported when a picture is
made.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import MOST_DRAWN, first_of, pyplot, wrapped, write_above
from opendp_bayes.display.wording import in_words
from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.mathematics.validation import Floats, as_level, as_names
from opendp_bayes.release_format.labels import distinct, numbered
from opendp_bayes.results.inferred_release import InferredRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most cells whose numbers are written into them.
_MOST_NUMBERS = 120
#: Characters of a line of a label beside or below the map.
_LINE = 18
#: The longest colour bar, inches.
_LONGEST_BAR = 6.0
#: Above this share of the largest probability, numbers are white on dark blue.
_DARK = 0.55


def plot_table(
    release: InferredRelease,
    ax: "Axes | None",
    *,
    variables: Sequence[str] | None,
    level: float,
    title: str | None,
) -> "Axes":
    """A heat map of the posterior means of two variables of a joint table: the first downwards, the
    second to the right. `Release.plot`.

    The numbers are means with intervals of probability `level`, in per cent, where there is room
    for them; elsewhere it is said how wide these are. Cells that the table leaves out are hatched.
    Of many rows and columns the first 100 are drawn.
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
    rows, columns, at = _places(posterior)
    shape, cut = (len(rows), len(columns)), max(len(rows), len(columns)) > MOST_DRAWN
    numbered = shape[0] * shape[1] <= _MOST_NUMBERS and not cut
    means = np.full(shape, np.nan)
    means[at] = posterior.mean()
    means, rows, columns = means[:MOST_DRAWN, :MOST_DRAWN], rows[:MOST_DRAWN], columns[:MOST_DRAWN]
    if ax is None:
        ax = plt.subplots(figsize=_size(rows, columns, numbered), layout="constrained")[1]
    ax.set_facecolor("#f2f2f2")
    image = ax.pcolormesh(100 * means, cmap="Blues", vmin=0, edgecolors="white", linewidth=0.5)
    hatch = {"fill": False, "hatch": "///", "edgecolor": "#bfbfbf", "linewidth": 0}
    for row, column in np.argwhere(np.isnan(means)).tolist():
        ax.add_patch(plt.Rectangle((column, row), 1, 1, **hatch))
    if numbered:
        _numbers(ax, means, at, posterior, level)
    _labelled(ax, names, rows, columns)
    shrink = min(0.8, _LONGEST_BAR / _size(rows, columns, numbered)[1])
    ax.figure.colorbar(image, ax=ax, label="Posterior mean, %", shrink=shrink)
    sentences = in_words(release.guarantee).replace(". ", ".\n")
    if numbered:
        sentences += f"\nPer cent of all, with {100 * level:.6g} % intervals."
    else:
        widths = 100 * np.diff(posterior.interval(level), axis=0)[0]
        sentences += (
            f"\nThe {100 * level:.6g} % intervals are {widths.min():.2g} to {widths.max():.2g}"
            " percentage points wide."
        )
    if cut:
        sentences += (
            f"\nNot all is drawn{first_of(shape[0], 'rows')}{first_of(shape[1], 'columns')}."
        )
    write_above(ax, sentences)
    if title is not None:
        ax.set_title(
            title, loc="left", fontweight="bold", pad=12.0 + 12.5 * (sentences.count("\n") + 1)
        )
    return ax


def _places(posterior: NoiseAwarePosterior) -> tuple[list[Any], list[Any], tuple[Any, Any]]:
    """Labels of the rows and columns, and the row and column of every cell."""
    cells: Any = posterior.categories
    down, right = zip(*cells, strict=True)
    at = np.array(numbered(down)), np.array(numbered(right))
    return distinct(down), distinct(right), at


def _size(rows: list[Any], columns: list[Any], numbered: bool) -> tuple[float, float]:
    """Inches of the figure."""
    width, height = (1.05, 0.55) if numbered else (0.3, 0.22)
    return max(6.0, 2.8 + width * len(columns)), max(3.2, 1.9 + height * len(rows))


def _labelled(ax: "Axes", names: Sequence[str], rows: list[Any], columns: list[Any]) -> None:
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


def _numbers(
    ax: "Axes", means: Floats, at: Any, posterior: NoiseAwarePosterior, level: float
) -> None:
    """Means and intervals, written into the cells."""
    lower, upper = posterior.interval(level)
    narrowest = max(100 * float((upper - lower).min()), 1e-6)
    decimals = int(np.clip(1 - np.floor(np.log10(narrowest)), 0, 4))
    dark = _DARK * np.nanmax(means)
    for row, column, low, high in zip(*at, lower, upper, strict=True):
        mean = means[row, column]
        ax.text(
            column + 0.5,
            row + 0.5,
            f"{100 * mean:.{decimals}f}\n{100 * low:.{decimals}f} to {100 * high:.{decimals}f}",
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if mean > dark else "black",
        )
