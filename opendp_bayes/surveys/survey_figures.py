"""Picture of a survey: small multiples, with matplotlib (extra `plot`), imported when drawn."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import (
    GREY,
    MOST_DRAWN,
    NOISE_AWARE,
    PLUG_IN,
    first_of,
    pyplot,
    with_grid,
    wrapped,
)
from opendp_bayes.display.wording import EVERYTHING_ELSE, group_name, label_said
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.labels import distinct, numbered
from opendp_bayes.results.estimates import Estimate, noise_aware_estimate
from opendp_bayes.results.inferred_release import InferredRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, which colour-blind readers tell apart.
_COLOURS = (NOISE_AWARE, PLUG_IN, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Characters of a line of a label.
_LINE = 22
#: Characters of a line of the legend, with 6 of each entry for its mark.
_LEGEND_LINE = 64
#: Inches of a row, and of the title, the axis and a line of the legend.
_ROW, _AROUND, _LEGEND = 0.24, 0.85, 0.2
#: Part of a row's height over which its dots are spread.
_SPREAD = 0.6


@dataclass(frozen=True, eq=False)
class Panel:
    """A question: a row for each category; or, with `columns`, for each group, or for what the
    first columns of a joint table hold.

    `bounds` are means, lower and upper ends, shape `(3, rows, columns)`.
    """

    title: str
    rows: list[str]
    columns: list[str]
    bounds: Floats

    @property
    def height(self) -> float:
        """Inches."""
        lines = sum(row.count("\n") + 1 for row in self.rows)
        legend = 0.15 + _LEGEND * -(-len(self.columns) // self.abreast) if self.columns else 0.0
        return _AROUND + _ROW * lines + legend

    @property
    def abreast(self) -> int:
        """Entries of the legend beside each other: three, or fewer where they are long."""
        return max(1, min(3, _LEGEND_LINE // (6 + max(map(len, self.columns), default=0))))


def panel_of(
    title: str, releases: Mapping[Any, InferredRelease], grouped: bool, level: float
) -> Panel:
    """The panel of one release under None, or of groups by their keys."""
    found = {key: noise_aware_estimate(one, level) for key, one in releases.items()}
    first = next(iter(releases.values()))
    if grouped:
        rows = [wrapped(group_name(key), _LINE) for key in found]
        columns = list(map(group_name, first.categories))
        bounds = np.stack([one.bounds for one in found.values()], axis=1)
        return Panel(title, rows, columns, bounds)
    if len(first.axes) < 2:
        rows = [wrapped(group_name(label), _LINE) for label in first.categories]
        return Panel(title, rows, [], found[None].bounds[..., None])
    return _table(title, first, found[None])


def panel_of_shares(title: str, estimate: Estimate, labels: Sequence[Any]) -> Panel:
    """The panel of a discovery: the shares of what is shown, the largest first, and of everything
    else, whose label is None and the last, where the rest was bought.
    """
    has_rest = bool(labels) and labels[-1] is None
    k, most = len(labels) - has_rest, MOST_DRAWN - has_rest
    order = np.argsort(-estimate.mean[:k], kind="stable")[:most]
    rows = [wrapped(label_said(labels[place]), _LINE) for place in order]
    if has_rest:
        order = np.append(order, k)
        rows.append(wrapped(EVERYTHING_ELSE, _LINE))
    whose = title if has_rest else f"{title}: of those shown"
    cut = f" (the first {most} of {k} categories)" if k > most else ""
    return Panel(whose + cut, rows, [], estimate.bounds[:, order, None])


def _table(title: str, release: InferredRelease, estimate: Estimate) -> Panel:
    """The panel of a joint table: its last column beside each other; NaN for cells left out."""
    cells: list[Any] = list(release.categories)
    down, right = [cell[:-1] for cell in cells], [cell[-1] for cell in cells]
    rows, columns = list(map(_in_lines, distinct(down))), list(map(group_name, distinct(right)))
    bounds = np.full((3, len(rows), len(columns)), np.nan)
    bounds[:, numbered(down), numbered(right)] = estimate.bounds
    return Panel(title, rows, columns, bounds)


def _in_lines(row: tuple[Any, ...]) -> str:
    """The name of a row, broken between its values where it is long."""
    name = group_name(row)
    if len(name) <= _LINE:
        return name
    return ",\n".join(wrapped(group_name(value), _LINE) for value in row)


def plot_survey(panels: Sequence[Panel], sentences: str, columns: int) -> "Figure":
    """Draw `Survey.plot`: every panel in the column that is shortest so far, `sentences` above.
    Of panels, and of the rows and columns of each, the first 100.
    """
    sentences += first_of(len(panels), "questions")
    panels = list(map(_cut, panels[:MOST_DRAWN]))
    columns = min(columns, len(panels))
    piles: list[list[Panel]] = [[] for _ in range(columns)]
    for panel in panels:
        min(piles, key=_height).append(panel)
    height = max(map(_height, piles))
    text = textwrap.fill(sentences, 62 * columns)
    above = 0.25 + 0.18 * (text.count("\n") + 1)
    figure = pyplot().figure(figsize=(4.6 * columns, height + above), layout="constrained")
    figure.suptitle(text, x=0.01, ha="left", fontsize="small", color=GREY)
    parts = figure.subfigures(1, columns, squeeze=False)[0]
    for part, pile in zip(parts, piles, strict=True):
        ratios = [panel.height for panel in pile]
        rest = height - sum(ratios)
        grid = part.add_gridspec(len(pile) + 1, 1, height_ratios=[*ratios, max(rest, 1e-3)])
        for place, panel in enumerate(pile):
            _draw(part.add_subplot(grid[place]), panel)
    return figure


def _cut(panel: Panel) -> Panel:
    """The first rows and columns of a panel, whose title says how many there are."""
    first = slice(MOST_DRAWN)
    shown = first_of(len(panel.rows), "rows") + first_of(len(panel.columns), "columns")
    return Panel(
        panel.title + shown,
        panel.rows[first],
        panel.columns[first],
        panel.bounds[:, first, first],
    )


def _height(pile: Sequence[Panel]) -> float:
    return sum(panel.height for panel in pile)


def _draw(ax: "Axes", panel: Panel) -> None:
    places = np.arange(len(panel.rows))
    if not panel.columns:
        ax.barh(places, panel.bounds[0, :, 0], height=0.62, color=NOISE_AWARE, alpha=0.25)
    abreast = panel.bounds.shape[2]
    for number in range(abreast):
        mean, lower, upper = panel.bounds[:, :, number]
        ax.errorbar(
            mean,
            places + _SPREAD * ((number + 0.5) / abreast - 0.5),  # none hides another
            xerr=np.clip([mean - lower, upper - mean], 0, None),
            fmt="o",
            color=_colour(number, abreast),
            elinewidth=2,
            markersize=4.5,
            alpha=0.9,
            label=panel.columns[number] if panel.columns else None,
        )
    high = min(1.0, 1.06 * float(np.nanmax(panel.bounds[2], initial=0.0)) or 1.0)
    ax.set(xlim=(-0.015 * high, high), ylim=(max(1, len(panel.rows)) - 0.5, -0.5))
    ax.set_yticks(places, panel.rows, fontsize="small", parse_math=False)
    ax.set_title(wrapped(panel.title), loc="left", fontsize="medium", parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize="small")
    ax.axvline(0, color="black", linewidth=0.8)
    with_grid(ax, frame=("top", "right", "left"))
    if panel.columns:
        from matplotlib.transforms import ScaledTranslation

        below = ax.transAxes + ScaledTranslation(0.0, -0.28, ax.figure.dpi_scale_trans)  # inches
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(0, 0),
            bbox_transform=below,
            ncols=panel.abreast,
            fontsize="x-small",
            frameon=False,
            borderaxespad=0,
            handlelength=1,
            columnspacing=1,
        )


def _colour(number: int, of: int) -> Any:
    if of <= len(_COLOURS):
        return _COLOURS[number]
    return pyplot().get_cmap("viridis")(number / (of - 1))
