"""Pictures of a release, with matplotlib (extra `plot`), imported when a picture is made."""

import textwrap
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from opendp_bayes.display.pictures import (
    GREY,
    LINE,
    MOST_DRAWN,
    NOISE_AWARE,
    PLUG_IN,
    first_of,
    pyplot,
    with_grid,
    wrapped,
    write_above,
)
from opendp_bayes.display.wording import group_name, in_words
from opendp_bayes.mathematics.validation import Floats, as_level
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import Estimate, noise_aware_estimate, plug_in_estimate
from opendp_bayes.results.inferred_release import InferredRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points of a density.
_POINTS = 401
#: The probability that the picture of a density covers.
_COVERED = 0.998
#: The highest density shown, in units of the peak of the noise-aware one; a plug-in posterior that
#: knows far too much leaves the picture.
_HIGHEST = 3.0


def plot_posterior(
    release: InferredRelease,
    ax: "Axes | None" = None,
    *,
    level: float = 0.95,
    title: str | None = None,
    compact: bool = False,
) -> "Axes":
    """Draw the noise-aware posterior of a release beside the plug-in one, and return the axes.

    Parameters
    ----------
    release : InferredRelease
        With two categories, the densities of the probability of the first, and below them the means
        and intervals; with more, a bar for the mean of each category with its interval, of 100 at
        most.
    ax : Axes, optional
        The axes to draw on; new ones by default.
    level : float, default 0.95
        Probability of the equal-tailed intervals.
    title : str, optional
        Stands above the guarantee.
    compact : bool, default False
        Without legend and guarantee, for one of several small pictures, or for a caption that has
        them.

    Raises
    ------
    ImportError
        Without matplotlib, `ValueError` unless `0 < level < 1` or where there is no noise-aware
        posterior.
    """
    level = as_level(level)
    plt = pyplot(ax, title)
    aware, plug_in = noise_aware_estimate(release, level), plug_in_estimate(release, level)
    if ax is None:
        _, ax = plt.subplots(
            figsize=(6.4, 3.9 if release.k == 2 else 1.9 + bars_height(release)),
            layout="constrained",
        )
    if release.k == 2:
        _densities(release, ax, aware, plug_in, level, compact)
    else:
        _bars(release, ax, aware, plug_in, level, compact)
    with_grid(ax)
    if not compact:
        ax.legend(loc="upper left", frameon=False, fontsize="small", borderaxespad=0.2)
        write_above(ax, in_words(release.guarantee).replace(". ", ".\n"))
    if title is not None:
        ax.set_title(title, loc="left", fontweight="bold", pad=6.0 if compact else 36.0)
    return ax


def plot_groups(
    releases: Mapping[Key, InferredRelease], guarantee: PrivacyGuarantee, columns: int
) -> "Figure":
    """Small multiples: the posterior of every group, `columns` to a row, with probabilities on one
    scale and the promise of all groups above; `GroupedRelease.plot`. Of many groups the first 100.
    """
    many, releases = len(releases), dict(islice(releases.items(), MOST_DRAWN))
    first, rows = next(iter(releases.values())), -(-len(releases) // columns)
    height = 3.0 if first.k == 2 else max(3.0, 1.2 + bars_height(first))
    figure, axes = pyplot().subplots(
        rows,
        columns,
        figsize=(4 * columns, height * rows + 0.8),
        squeeze=False,
        layout="constrained",
    )
    used, unused = axes.flat[: len(releases)], axes.flat[len(releases) :]
    for place, ((group, release), ax) in enumerate(zip(releases.items(), used, strict=True)):
        plot_posterior(release, ax, compact=True)
        ax.set_title(wrapped(group_name(group)), parse_math=False)
        if first.k > 2 and place % columns:
            ax.tick_params(labelleft=False)  # the same categories as in the first of the row
    low, high = zip(*(ax.get_xlim() for ax in used), strict=True)
    for ax in used:
        ax.set_xlim(min(low), max(high))
    for ax in unused:
        ax.set_axis_off()
    handles, labels = used[0].get_legend_handles_labels()
    figure.legend(
        handles,
        [label.split(":")[0] for label in labels],
        loc="outside lower center",
        ncols=min(columns, 2),
        frameon=False,
    )
    sentences = (
        f"All groups together: {in_words(guarantee)} Means with 95 % intervals"
        f"{first_of(many, 'groups')}."
    )
    lines = [
        textwrap.fill(sentence, 56 * columns)
        for sentence in sentences.replace(". ", ".\n").split("\n")
    ]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="small", color=GREY)
    return figure


def bars_height(release: InferredRelease) -> float:
    """Inches that the bars and labels of a release with more than two categories take."""
    shown = release.categories[:MOST_DRAWN]
    lines = max(wrapped(label).count("\n") + 1 for label in shown)
    return len(shown) * max(0.42 if release.k <= 10 else 0.28, 0.1 + 0.17 * lines)


def _densities(
    release: InferredRelease,
    ax: "Axes",
    aware: Estimate,
    plug_in: Estimate,
    level: float,
    compact: bool,
) -> None:
    """The density of the first category's probability; its intervals are drawn below 0."""
    (low, high), grid, curves = _curves(release)
    peak = float(min(max(curve.max() for curve in curves), _HIGHEST * curves[0].max()))
    ax.fill_between(grid, curves[0], color=NOISE_AWARE, alpha=0.2, linewidth=0)
    ax.plot(
        grid,
        curves[0],
        color=NOISE_AWARE,
        linewidth=2,
        label=_legend("Noise-aware", aware, level, aware.decimals),
    )
    ax.plot(
        grid,
        np.where(curves[1] < 1.08 * peak, curves[1], np.nan),
        color=PLUG_IN,
        linewidth=1.5,
        linestyle=(0, (4, 2)),
        label=_legend("Plug-in", plug_in, level, aware.decimals),
    )
    _intervals_below(ax, aware, plug_in, peak)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(
        xlim=(low, high),
        ylim=(-0.22 * peak, (1.08 if compact else 1.35) * peak),
        ylabel="Posterior density",
    )
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.08 * peak])
    ax.set_xlabel(
        wrapped(f"Probability of {release.categories[0]}", LINE if compact else 2 * LINE),
        parse_math=False,
    )


def _curves(release: InferredRelease) -> tuple[tuple[float, float], Floats, tuple[Floats, Floats]]:
    """The range shown, probabilities in it, and the noise-aware and the plug-in density there."""
    posterior, taken = release.posterior, release.plug_in
    ends = np.array(
        [[bound[0] for bound in posterior.interval(_COVERED)], taken.interval(_COVERED)]
    )
    low, high = ends.min(), ends.max()
    low, high = max(low - 0.05 * (high - low), 0.0), min(high + 0.05 * (high - low), 1.0)
    # Inside the range, where no density is infinite, and finer where the plug-in posterior is.
    inside = [np.linspace(start, stop, _POINTS)[1:-1] for start, stop in ((low, high), ends[1])]
    grid = np.unique(np.concatenate(inside))
    return (low, high), grid, (posterior.pdf(grid)[:, 0], taken.pdf(grid))


def _intervals_below(ax: "Axes", aware: Estimate, plug_in: Estimate, peak: float) -> None:
    """Means and intervals of the first category as bars below densities of that peak."""
    for place, estimate, colour, width in (
        (-0.07, aware, NOISE_AWARE, 4),
        (-0.15, plug_in, PLUG_IN, 2),
    ):
        ax.plot(
            [estimate.lower[0], estimate.upper[0]],
            [place * peak] * 2,
            color=colour,
            linewidth=width,
            solid_capstyle="butt",
        )
        ax.plot(
            estimate.mean[0], place * peak, "o", color=colour, markersize=7, markeredgecolor="white"
        )


def _bars(
    release: InferredRelease,
    ax: "Axes",
    aware: Estimate,
    plug_in: Estimate,
    level: float,
    compact: bool,
) -> None:
    """A bar for every category, the first at the top."""
    labels = release.categories[:MOST_DRAWN]
    places = np.arange(len(labels))
    ax.barh(places, aware.mean[:MOST_DRAWN], height=0.62, color=NOISE_AWARE, alpha=0.25)
    highest = 0.0
    for place, estimate, colour, width, dot, name in (
        (-0.08, aware, NOISE_AWARE, 3, 6, "Noise-aware"),
        (0.2, plug_in, PLUG_IN, 1.2, 4, "Plug-in, which ignores the noise"),
    ):
        mean, lower, upper = estimate.bounds[:, :MOST_DRAWN]
        highest = max(highest, float(upper.max()))
        ax.errorbar(
            mean,
            places + place,
            xerr=np.clip([mean - lower, upper - mean], 0, None),
            fmt="o",
            color=colour,
            elinewidth=width,
            markersize=dot,
            label=f"{name}: mean and {100 * level:.6g} % interval",
        )
    ax.set_yticks(places, list(map(wrapped, labels)), parse_math=False)
    high = min(1.0, 1.06 * highest)
    ax.set_xlim(-0.015 * high, high)  # room for a mean near 0
    ax.set_xlabel(f"Probability{first_of(release.k, 'categories')}")
    ax.axvline(0, color="black", linewidth=0.8)
    ax.spines["left"].set_visible(False)
    # Half an inch for the legend.
    top = -0.6 if compact else -0.5 - 0.5 * len(labels) / bars_height(release)
    ax.set_ylim(len(labels) - 0.5, top)
    ax.tick_params(axis="y", length=0)


def _legend(name: str, estimate: Estimate, level: float, decimals: int) -> str:
    means, intervals = estimate.shown(decimals)
    return f"{name}: mean {means[0]}, {100 * level:.6g} % interval {intervals[0]}"
