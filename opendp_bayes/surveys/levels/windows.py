"""Ranges of counts that a posterior leaves, to begin with.

Every leaf's tilted law is taken for a normal law, and so is every weight of an inner node. Then
means and variances go up and down the tree, leaves get new tilts, and so on
(`docs/research/computation.md`).
"""

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree import Tree, Weights

#: Windows reach so many deviations from the mean, and so many more above means near 0.
_REACH, _SKEW, _MORE = 8.0, 3.0, 6.0
#: Steps of the leaves' grids grow by this factor.
_GROWTH = 1.5
#: Grids end where noise is `exp(-_DEPTH)` as probable as it may be.
_DEPTH = 60.0
_MOST_STEPS, _SETTLED = 80, 0.03
#: A step of a tilt moves a leaf's mean by so many deviations: a longer one may reach tilts at which
#: a law has no end.
_LONGEST = 1.0
_POINTS, _POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_SMALLEST = 1e-9
#: A weight that pulls a count away from its mean may undo this share of what holds it there.
_BENT = 0.8


def starting_windows(weights: Weights, highest: int) -> tuple[Integers, Integers]:
    """Find the first and the last count of the window of every node, none above `highest`; shapes
    `(nodes,)`.
    """
    tree = weights.tree
    mean, variance = _normal_laws(weights, highest)
    deviation = np.sqrt(variance)
    skewed = np.where(mean < _SKEW * deviation, _REACH + _MORE, _REACH)
    low = np.floor(mean - _REACH * deviation - 3)
    high = np.ceil(mean + skewed * deviation + 3)
    low, high = (np.clip(end, 0, highest).astype(np.int64) for end in (low, high))
    if weights.size is not None:
        low[-1] = high[-1] = weights.size
    windows = fitted(tree, low, high)
    if weights.size is not None:
        # Until the others add up to it.
        while not windows[0][-1] == windows[1][-1] == weights.size:
            more = high - low + 1
            low[:-1] = np.maximum(low - more, 0)[:-1]
            high[:-1] = np.minimum(high + more, highest)[:-1]
            windows = fitted(tree, low, high)
    return windows


def fitted(tree: Tree, low: Integers, high: Integers) -> tuple[Integers, Integers]:
    """Leave out of windows what no counts in the others' windows add up to."""
    low, high = low.copy(), high.copy()
    for nodes in tree.rounds:
        left, right = tree.left[nodes], tree.right[nodes]
        low[nodes] = np.maximum(low[nodes], low[left] + low[right])
        high[nodes] = np.minimum(high[nodes], high[left] + high[right])
        empty = low[nodes] > high[nodes]
        low[nodes] = np.where(empty, low[left] + low[right], low[nodes])
        high[nodes] = np.where(empty, high[left] + high[right], high[nodes])
    for nodes in reversed(tree.rounds):
        left, right = tree.left[nodes], tree.right[nodes]
        least = low[nodes] - high[right], low[nodes] - high[left]
        most = high[nodes] - low[right], high[nodes] - low[left]
        for child, below, above in zip((left, right), least, most, strict=True):
            low[child] = np.maximum(low[child], below)
            high[child] = np.minimum(high[child], above)
    return low, high


def _normal_laws(weights: Weights, highest: int) -> tuple[Floats, Floats]:
    """Means and variances of all counts, about; shapes `(nodes,)`."""
    tree = weights.tree
    leaves = np.flatnonzero(tree.is_leaf)
    grid, logs = _grid(weights, leaves, highest)
    tilt, before, damping = np.zeros(leaves.size), np.zeros(leaves.size), np.ones(leaves.size)
    spread = np.full(tree.nodes, np.inf)
    mean, variance = np.zeros(tree.nodes), np.zeros(tree.nodes)
    for _ in range(_MOST_STEPS):
        own_mean, own_variance = _moments(grid, logs, tilt)
        mean[leaves], variance[leaves] = own_mean - tilt * own_variance, own_variance
        sums = np.zeros(tree.nodes)
        sums[leaves] = own_mean
        center = tree.summed(sums)
        slope, bend = _slopes(weights, center, spread, variance)
        smoothed, spread = _smoothed(weights, mean, variance, center, slope, bend)
        nearer = np.clip(
            smoothed[leaves], own_mean / 4, 4 * own_mean + 4 * np.sqrt(own_variance) + 1
        )
        step = (nearer - own_mean) / own_variance
        deviation = np.sqrt(own_variance)
        # Where a step turns back it was too long.
        damping = np.where(step * before < 0, damping / 2, np.minimum(damping * 1.3, 1.0))
        before = step
        tilt += damping * np.clip(step, -_LONGEST / deviation, _LONGEST / deviation)
        off = np.abs(step) * deviation
        if off.max() < _SETTLED:
            break
    return np.maximum(smoothed, 0), spread


def _grid(weights: Weights, leaves: Integers, highest: int) -> tuple[Floats, Floats]:
    """Counts of each leaf, near together at 0 and at what was drawn, and logarithms of weights of
    the counts around them; shapes `(leaves, points)`.
    """
    steps = np.unique(np.floor(_GROWTH ** np.arange(np.log(highest + 2) / np.log(_GROWTH) + 1)))
    anchors = [(np.zeros(leaves.size, dtype=np.int64), np.concatenate([[0], steps]))]
    for noisy in weights.noisy:
        near = steps[steps < _GROWTH * noisy.noise.reach(_DEPTH) + 2]
        anchors.append((noisy.drawn[leaves], np.concatenate([-near, [0], near])))
    points = np.concatenate(
        [np.clip(anchor, 0, highest)[:, None] + away for anchor, away in anchors], axis=1
    )
    points = np.sort(np.clip(points, 0, highest), axis=1)
    ends = np.floor((points[:, 1:] + points[:, :-1]) / 2)
    edges = np.concatenate([np.full((leaves.size, 1), -1.0), ends, points[:, -1:]], axis=1)
    width = np.diff(edges, axis=1)
    used = np.any(width > 0, axis=0)
    points, width = points[:, used], width[:, used]
    with np.errstate(divide="ignore"):
        return points, weights.log_weight(leaves, points) + np.log(width)


def _moments(grid: Floats, logs: Floats, tilt: Floats) -> tuple[Floats, Floats]:
    """Means and variances of the leaves' tilted laws."""
    share = logs + tilt[:, None] * grid
    share = np.exp(share - share.max(axis=1)[:, None])
    share /= share.sum(axis=1)[:, None]
    mean = np.sum(share * grid, axis=1)
    variance = np.sum(share * (grid - mean[:, None]) ** 2, axis=1)
    return mean + _SMALLEST, np.maximum(variance, _SMALLEST * (1 + mean))


def _slopes(
    weights: Weights, center: Floats, spread: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Slopes and bends of logarithms of inner nodes' weights, averaged where the counts may be."""
    tree = weights.tree
    slope, bend = np.zeros(tree.nodes), np.zeros(tree.nodes)
    inner = np.flatnonzero(~tree.is_leaf & (weights.any_noise | weights.nested))
    if weights.size is None:
        inner = np.union1d(inner, [tree.nodes - 1])
    if not inner.size:
        return slope, bend
    summed = tree.summed(np.where(tree.is_leaf, variance, 0.0))
    deviation = np.sqrt(np.minimum(spread[inner], summed[inner])) + 0.3
    deviation = np.minimum(deviation, (center[inner] + 0.5) / 4)
    points = center[inner, None] + deviation[:, None] * _POINTS
    heights = weights.log_weight(inner, np.maximum(points, 0))
    heights -= heights[:, [_POINTS.size // 2]]
    shares = _POINT_WEIGHTS / _POINT_WEIGHTS.sum()
    slope[inner] = heights @ (shares * _POINTS) / deviation
    bend[inner] = -(heights @ (shares * (_POINTS**2 - 1))) / deviation**2
    return slope, bend


def _smoothed(
    weights: Weights, mean: Floats, variance: Floats, center: Floats, slope: Floats, bend: Floats
) -> tuple[Floats, Floats]:
    """Means and variances of normal laws at all nodes given all others."""
    tree = weights.tree
    mean, variance = mean.copy(), variance.copy()
    before, wide = np.zeros(tree.nodes), np.zeros(tree.nodes)
    for nodes in tree.rounds:
        left, right = tree.left[nodes], tree.right[nodes]
        before[nodes], wide[nodes] = mean[left] + mean[right], variance[left] + variance[right]
        bends = np.maximum(bend[nodes], -_BENT / wide[nodes])
        precision = 1 / wide[nodes] + bends
        pull = before[nodes] / wide[nodes] + slope[nodes] + bends * center[nodes]
        mean[nodes], variance[nodes] = pull / precision, 1 / precision
    smoothed, spread = mean.copy(), variance.copy()
    if weights.size is not None:
        smoothed[-1], spread[-1] = weights.size, 0.0
    for nodes in reversed(tree.rounds):
        left, right = tree.left[nodes], tree.right[nodes]
        apart = variance[left] * variance[right] / wide[nodes]
        for child in (left, right):
            share = variance[child] / wide[nodes]
            smoothed[child] = mean[child] + share * (smoothed[nodes] - before[nodes])
            spread[child] = apart + share**2 * spread[nodes]
    return smoothed, spread
