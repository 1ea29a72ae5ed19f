"""Ranges of counts that a posterior leaves, to begin with.

Every leaf's tilted law is taken for a normal law, and so is every weight of an inner node. Then
means and variances go up and down the tree, leaves get new tilts, and so on
(`docs/research/computation.md`).
"""

import numpy as np
from scipy import special

from opendp_bayes.inference.likelihood.drawn_counts import nodes_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree import Tree, Weights

#: Windows reach so many deviations from the mean, and so many more above means near 0.
_REACH, _SKEW, _MORE = 6.5, 3.0, 6.0
#: Leaves' counts end where noise is `exp(-_DEPTH)` as probable as it may be, and are so many times
#: as far apart as those of pooled counts.
_DEPTH, _APART = 60.0, 2.0
#: Tilts go half of the way to where they should be, until their means are off by so few deviations.
_MOST_STEPS, _SETTLED = 100, 0.03
#: A step of a tilt moves a leaf's mean by so many deviations: a longer one may reach tilts at which
#: a law has no end.
_LONGEST = 0.5
_SMALLEST = 1e-9
#: A weight that pulls a count away from its mean may undo this share of what holds it there.
_BENT = 0.8


def starting_windows(weights: Weights, highest: int) -> tuple[Integers, Integers]:
    """Find the first and the last count of the window of every node, none above `highest`; shapes
    `(nodes,)`.
    """
    mean, variance = _normal_laws(weights, highest)
    deviation = np.sqrt(variance)
    skewed = np.where(mean < _SKEW * deviation, _REACH + _MORE, _REACH)
    low = np.floor(mean - _REACH * deviation - 3)
    high = np.ceil(mean + skewed * deviation + 3)
    low, high = (np.clip(end, 0, highest).astype(np.int64) for end in (low, high))
    if weights.size is not None:
        low[-1] = high[-1] = weights.size
        if fitted(weights.tree, low, high)[0][-1] > weights.size:
            low[:-1] = 0
    return fitted(weights.tree, low, high)


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
    counts, logs = _counts_of(weights, leaves, highest)
    # Where the prior is level: that of a sum undoes what slope its parts have.
    middle, alpha = np.median(counts, axis=1), weights.above[leaves]
    tilt = np.minimum(special.digamma(middle + 1) - special.digamma(middle + alpha), 0.0)
    mean, variance, sums = np.zeros((3, tree.nodes))
    spread = np.full(tree.nodes, np.inf)
    for _ in range(_MOST_STEPS):
        shares = special.softmax(logs + tilt[:, None] * counts, axis=1)
        own_mean = np.sum(shares * counts, axis=1) + _SMALLEST
        own_variance = np.sum(shares * (counts - own_mean[:, None]) ** 2, axis=1)
        own_variance = np.maximum(own_variance, _SMALLEST * (1 + own_mean))
        mean[leaves], variance[leaves] = own_mean - tilt * own_variance, own_variance
        sums[leaves] = own_mean
        smoothed, spread = _smoothed(weights, mean, variance, tree.summed(sums), spread)
        deviation = np.sqrt(own_variance)
        off = (smoothed[leaves] - own_mean) / deviation
        tilt += np.clip(off / 2, -_LONGEST, _LONGEST) / deviation
        if np.abs(off).max() < _SETTLED:
            break
    return np.maximum(smoothed, 0), spread


def _counts_of(weights: Weights, leaves: Integers, highest: int) -> tuple[Floats, Floats]:
    """Counts that stand for all of each leaf, and logarithms of their weights; shapes `(leaves,
    points)`.
    """
    noisy = min(weights.noisy, key=lambda noisy: (~noisy.noised[leaves].any(), noisy.noise.scale))
    wide = np.where(noisy.noised[leaves], 1.0, np.sqrt(leaves.size))
    middle = np.clip(noisy.drawn[leaves], 0, highest)
    nodes = nodes_of(middle, noisy.noise, _DEPTH, part=_APART, wide=wide, most=highest)
    points, _, number = nodes.swapaxes(1, 2)
    with np.errstate(divide="ignore"):
        return points, weights.log_weight(leaves, points) + np.log(number)


def _smoothed(
    weights: Weights, mean: Floats, variance: Floats, center: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Means and variances of normal laws at all nodes given all others, by those of the leaves.
    Slopes and bends of inner nodes' weights are taken so far to both sides as counts may be.
    """
    tree = weights.tree
    mean, variance, before, wide = mean.copy(), variance.copy(), mean.copy(), variance.copy()
    away = np.sqrt(np.minimum(spread, tree.summed(variance))) + 0.3
    away = np.minimum(away, (center + 0.5) / 4)
    inner = np.flatnonzero(~tree.is_leaf)
    logs = weights.log_weight(inner, (center + away * [[-1], [0], [1]]).T[inner])
    slope, bend = np.zeros((2, tree.nodes))
    slope[inner] = (logs[:, 2] - logs[:, 0]) / (2 * away[inner])
    bend[inner] = (2 * logs[:, 1] - logs[:, 0] - logs[:, 2]) / away[inner] ** 2
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
        for child, other in ((left, right), (right, left)):
            share = variance[child] / wide[nodes]
            smoothed[child] = mean[child] + share * (smoothed[nodes] - before[nodes])
            spread[child] = share * variance[other] + share**2 * spread[nodes]
    return smoothed, spread
