"""Picture of the graph of a survey's model: which variables were measured together."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from opendp_bayes.display.pictures import COLOURS, pyplot, wrapped, write_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Inches between two neighbours, and characters of a line of a variable's name.
_STEP, _LINE = 1.3, 14


def plot_graph(
    variables: Sequence[str],
    tables: Sequence[Sequence[str]],
    ax: "Axes | None",
) -> "Axes":
    """Draw variables with a line between any two of one table, and return the axes, by default new
    ones.
    """
    plt = pyplot(ax)
    joined = _pairs(variables, tables)
    places = _places(len(variables), joined)
    if ax is None:
        size = np.ptp(places, axis=0) * _STEP + np.array([2.2, 1.6])
        _, ax = plt.subplots(figsize=size.clip((4.4, 1.8), 12), layout="constrained")
    for one, other in sorted(joined):
        ax.plot(*places[[one, other]].T, color=COLOURS[0], linewidth=2, zorder=1)
    for place, name in zip(places, variables, strict=True):
        ax.annotate(
            wrapped(name, _LINE),
            place,
            ha="center",
            va="center",
            parse_math=False,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.4"},
        )
    ax.set(xlim=_ends(places[:, 0], 0.7), ylim=_ends(places[:, 1], 0.35), aspect="equal")
    ax.set_axis_off()
    write_above(
        ax,
        "A line joins two variables of one table.\n"
        "Others are independent given those between them.",
    )
    return ax


def _ends(along: Any, more: float) -> tuple[float, float]:
    return along.min() - more, along.max() + more


def _pairs(variables: Sequence[str], sets: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
    places = [sorted(variables.index(name) for name in names) for names in sets]
    return {pair for of in places for pair in combinations(of, 2)}


def _places(number: int, joined: set[tuple[int, int]]) -> Any:
    """Positions whose distances are those in the graph, as nearly as the plane has them, shape
    `(number, 2)`; the longest direction lies flat.

    Source: Kamada and Kawai, "An algorithm for drawing general undirected graphs" (1989).
    """
    if number == 1:
        return np.zeros((1, 2))
    edges = np.zeros((number, number))
    for pair in joined:
        edges[pair] = 1
    wanted = scipy.sparse.csgraph.shortest_path(edges, directed=False, unweighted=True)
    wanted[np.isinf(wanted)] = wanted[np.isfinite(wanted)].max() + 1  # parts that nothing joins
    first, second = np.triu_indices(number, 1)
    length = wanted[first, second]

    def strain(flat: Any) -> tuple[float, Any]:
        apart = flat.reshape(number, 2)[first] - flat.reshape(number, 2)[second]
        now = np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
        excess = (now - length) / length**2
        pull = (2 * excess / now)[:, None] * apart
        slope = np.zeros((number, 2))
        np.add.at(slope, first, pull)
        np.add.at(slope, second, -pull)
        return float((excess * (now - length)).sum()), slope.reshape(-1)

    angle = np.linspace(0, 2 * np.pi, number, endpoint=False) + 0.1
    start = length.max() / 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    best = scipy.optimize.minimize(strain, start.reshape(-1), jac=True, method="L-BFGS-B")
    found = best.x.reshape(number, 2)
    found = found - found.mean(axis=0)
    return found @ np.linalg.svd(found, full_matrices=False)[2].T
