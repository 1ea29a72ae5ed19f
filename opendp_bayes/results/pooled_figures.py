"""Pictures of pooled groups, with matplotlib (extra `plot`), imported when a picture is made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display.pictures import (
    GREY,
    MOST_DRAWN,
    NOISE_AWARE,
    PLUG_IN,
    pyplot,
    with_grid,
    wrapped,
)
from opendp_bayes.display.wording import group_name
from opendp_bayes.inference.pooling.pooled_posterior import PooledPosterior
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_size
from opendp_bayes.release_format.data import Key
from opendp_bayes.results.estimates import estimate_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Groups whose names are written; of more, the rows are narrow lines without names.
_MOST_NAMES = 60
#: Characters of a line of a category's label above its picture.
_LINE = 26


def plot_pooled(
    groups: Mapping[Key, PooledPosterior], m: Floats, drawn: Integers, *, columns: int, level: float
) -> "Figure":
    """Draw `Pooled.plot` from groups, draws of m, shape `(draws, k)`, and the draws of the
    mechanism, `(G, k)`. Of many categories the first 100.
    """
    level, columns = as_level(level), as_size(columns, "columns", "columns")
    plt = pyplot()
    categories = next(iter(groups.values())).categories
    shown = 1 if len(categories) == 2 else min(len(categories), MOST_DRAWN)
    columns, named = min(columns, shown), len(groups) <= _MOST_NAMES
    rows = -(-shown // columns)
    height = 1.1 + (0.27 if named else 0.06) * len(groups)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(max(5.2, 3.2 * columns), height * rows + 0.9),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    found = np.array([estimate_of(one, level).bounds for one in groups.values()])
    positive = np.maximum(drawn, 0)
    shares = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1)
    used, unused = axes.flat[:shown], axes.flat[shown:]
    for at, ax in enumerate(used):
        _groups(ax, found[:, :, at], shares[:, at], m[:, at], level, named)
        ax.set_title(
            wrapped(group_name(categories[at]), _LINE), fontsize="medium", parse_math=False
        )
        ax.tick_params(axis="y", length=0)
        if at + columns >= shown:
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("Probability")
    right = used[0].get_xlim()[1]  # of all, which share it
    used[0].set_xlim(-0.015 * right, right)  # room for a share of 0
    _label_rows(list(used[::columns]), groups, named)
    for ax in unused:
        ax.set_axis_off()
    handles, labels = used[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=1, frameon=False, fontsize="small"
    )
    return figure


def _label_rows(firsts: Sequence["Axes"], groups: Iterable[Key], named: bool) -> None:
    """The names of the groups, or how many there are, beside the first picture of every row."""
    names = [wrapped(group_name(key), _LINE) for key in groups]
    if named:
        firsts[0].set_yticks(np.arange(len(names)), names, parse_math=False)
    else:
        firsts[0].set_yticks([])
        for ax in firsts:
            ax.set_ylabel(f"{len(names)} groups")
    firsts[0].set_ylim(len(names) - 0.4, -0.6)


def _groups(
    ax: "Axes",
    found: Floats,
    shares: Floats,
    m: Floats,
    level: float,
    named: bool,
) -> None:
    """One category: a row for every group, the first at the top."""
    places, (mean, lower, upper) = np.arange(len(found)), found.T
    low, high = np.quantile(m, [(1 - level) / 2, (1 + level) / 2])
    percent = f"{100 * level:.6g} % interval"
    band: dict[str, Any] = {"color": GREY, "linewidth": 0, "alpha": 0.15}
    ax.axvspan(low, high, label=f"All groups on average: mean and {percent}", **band)
    ax.axvline(float(m.mean()), color=GREY, linewidth=1)
    ax.plot(
        shares,
        places,
        "o",
        color=PLUG_IN,
        markerfacecolor="white",
        markersize=5 if named else 2.5,
        linestyle="none",
        label="Share of what was drawn for the group, which ignores the noise",
    )
    ax.errorbar(
        mean,
        places,
        xerr=np.clip([mean - lower, upper - mean], 0, None),
        fmt="o",
        color=NOISE_AWARE,
        elinewidth=2.5 if named else 0.8,
        markersize=5 if named else 2,
        label=f"Pooled: mean and {percent}",
    )
    with_grid(ax)
