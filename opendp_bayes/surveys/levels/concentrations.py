"""A concentration for each level of a tree of counts, learned from what was drawn."""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree import Look, Tree, Weights
from opendp_bayes.surveys.levels.tree_counts import TreeCounts

#: Concentrations are learned within these bounds, until a slope is so small or a step makes the
#: evidence, some nats for each count, better by so many nats for each count.
_BOUNDS, _NEAR, _GAIN, _MOST_STEPS = (np.log(1e-3), np.log(1e4)), 0.02, 0.005, 25
#: Logarithms are searched so far around a point at a time.
_REACH, _MOST_BOXES = 1.0, 16
#: The prior of a concentration is log-logistic about this.
_MIDDLE = 0.5
#: Where a level has more counts, concentrations are learned from so many, of whole families.
_ENOUGH = 4000


def with_learned_concentrations(
    parent: Integers,
    level: Integers,
    looks: Sequence[Look],
    size: int | None,
    highest: int,
    members: ArrayLike = 1.0,
) -> tuple[TreeCounts, Floats]:
    """The posterior of counts on a tree, and the concentration of each level that makes what was
    drawn most probable, times its prior.

    `level` is the level of every count but the root, shape `(m - 1,)`, the finest 0. All counts of
    a level have the same concentration among those of the same parent, times their number of
    `members`. Levels of many thousands of counts tell it from a part of them.
    """
    members = np.broadcast_to(np.asarray(members, dtype=np.float64), level.shape)
    some = _some_families(parent, level, looks, members)
    concentrations = _most_probable(*some, size, highest)
    prior = np.append(concentrations[level] * members, 0.0)
    weights = Weights(Tree.of(parent), parent, prior, looks, size)
    return TreeCounts(weights, highest), concentrations


def _some_families(
    parent: Integers, level: Integers, looks: Sequence[Look], members: Floats
) -> tuple[Integers, Integers, list[Look], Floats]:
    """Leave out, where a level has more than enough counts, whole families drawn at random: what
    was drawn for the others has a probability without them.
    """
    is_chosen = np.append(np.zeros(level.size, dtype=bool), True)
    rng = np.random.default_rng(0)
    for depth in range(int(level.max()), -1, -1):
        counts = np.flatnonzero(level == depth)
        counts = counts[is_chosen[parent[counts]]]
        families, family_of, sizes = np.unique(
            parent[counts], return_inverse=True, return_counts=True
        )
        order = rng.permutation(families.size)
        before = np.empty(families.size, dtype=np.int64)
        before[order] = np.cumsum(sizes[order]) - sizes[order]
        is_chosen[counts] = (before < _ENOUGH)[family_of]
    number = np.cumsum(is_chosen) - 1
    parents = np.append(number[parent[:-1][is_chosen[:-1]]], -1)
    chosen_looks = [_part(look, is_chosen, number) for look in looks]
    return parents, level[is_chosen[:-1]], chosen_looks, members[is_chosen[:-1]]


def _part(look: Look, is_chosen: NDArray[np.bool_], number: Integers) -> Look:
    """Noisy counts of those that are kept, with their new numbers."""
    in_look = is_chosen[look.counts]
    return Look(number[look.counts[in_look]], look.noisy.chosen(in_look))


def _most_probable(
    parent: Integers,
    level: Integers,
    looks: Sequence[Look],
    members: Floats,
    size: int | None,
    highest: int,
) -> Floats:
    """The most probable concentration of each level, shape `(levels,)`.

    The derivative of the logarithm of the evidence is the posterior mean of that of the prior
    (Fisher's identity), so one way up and one down the tree tell both.
    """
    tree = Tree.of(parent)
    last: TreeCounts | None = None

    def loss(logs: Floats) -> tuple[float, Floats]:
        nonlocal last
        prior = np.append(np.exp(logs)[level] * members, 0.0)
        weights = Weights(tree, parent, prior, looks, size)
        last = counts = TreeCounts(weights, highest, last)
        relative = logs - np.log(_MIDDLE)
        log_prior = -relative - 2 * np.log1p(np.exp(-relative))
        slope = -1 + 2 * special.expit(-relative)
        value = counts.log_evidence + log_prior.sum()
        return -value, -(_slopes(counts, parent, level, prior[:-1]) + slope)

    logs = np.zeros(int(level.max()) + 1)
    for _ in range(_MOST_BOXES):
        box = np.clip(logs - _REACH, *_BOUNDS), np.clip(logs + _REACH, *_BOUNDS)
        logs = scipy.optimize.minimize(
            loss,
            logs,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(*box, strict=True)),
            options={"maxiter": _MOST_STEPS, "ftol": _GAIN / parent.size, "gtol": _NEAR},
        ).x
        inside = (box[0] < logs) & (logs < box[1])
        if np.all(inside | (logs <= _BOUNDS[0]) | (logs >= _BOUNDS[1])):
            break
    return np.asarray(np.exp(logs), dtype=np.float64)


def _slopes(
    counts: TreeCounts, parent: Integers, level: Integers, concentrations: Floats
) -> Floats:
    """Derivatives of the log-evidence by the logarithms of the concentrations, shape `(levels,)`;
    `concentrations` are those of all counts but the root.

    Those of `ln Γ(A) - ln Γ(s + A) + sum_c (ln Γ(s_c + a_c) - ln Γ(a_c))` over the counts s that
    have parts, on average.
    """
    whole: Floats = np.bincount(parent[:-1], concentrations, parent.size).astype(np.float64)
    has, numbers = np.flatnonzero(whole), np.arange(parent.size - 1)
    below = np.empty(parent.size, dtype=np.int64)
    below[parent[:-1]] = level
    whole = whole[has]
    slopes = whole * (special.digamma(whole) - _mean(counts, has, whole))
    more = concentrations * (
        _mean(counts, numbers, concentrations) - special.digamma(concentrations)
    )
    return np.asarray(np.bincount(below[has], slopes) + np.bincount(level, more), dtype=np.float64)


def _mean(counts: TreeCounts, some: Integers, a: Floats) -> Floats:
    """Expected `ψ(s + a)` of some counts s, shape `(len(some),)`."""
    row, value, masses = counts.laws(counts.tree.node_of[some])
    seen = masses > 1e-12
    row, value, masses = row[seen], value[seen], masses[seen]
    expected = np.bincount(row, masses * special.digamma(value + a[row]), some.size)
    return np.asarray(expected, dtype=np.float64)
