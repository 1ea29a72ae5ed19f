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
    kept = np.append(np.zeros(level.size, dtype=bool), True)
    rng = np.random.default_rng(0)
    for one in range(int(level.max()), -1, -1):
        own = np.flatnonzero(level == one)
        own = own[kept[parent[own]]]
        families, place, sizes = np.unique(parent[own], return_inverse=True, return_counts=True)
        order = rng.permutation(families.size)
        before = np.empty(families.size, dtype=np.int64)
        before[order] = np.cumsum(sizes[order]) - sizes[order]
        kept[own] = (before < _ENOUGH)[place]
    number = np.cumsum(kept) - 1
    parents = np.append(number[parent[:-1][kept[:-1]]], -1)
    own = kept[:-1]
    return parents, level[own], [_part(look, kept, number) for look in looks], members[own]


def _part(look: Look, kept: NDArray[np.bool_], number: Integers) -> Look:
    """Noisy counts of those that are kept, with their new numbers."""
    own = kept[look.counts]
    return Look(number[look.counts[own]], look.noisy.chosen(own))


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

    found = np.zeros(int(level.max()) + 1)
    for _ in range(_MOST_BOXES):
        box = np.clip(found - _REACH, *_BOUNDS), np.clip(found + _REACH, *_BOUNDS)
        found = scipy.optimize.minimize(
            loss,
            found,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(*box, strict=True)),
            options={"maxiter": _MOST_STEPS, "ftol": _GAIN / parent.size, "gtol": _NEAR},
        ).x
        inside = (box[0] < found) & (found < box[1])
        if np.all(inside | (found <= _BOUNDS[0]) | (found >= _BOUNDS[1])):
            break
    return np.asarray(np.exp(found), dtype=np.float64)


def _slopes(counts: TreeCounts, parent: Integers, level: Integers, own: Floats) -> Floats:
    """Derivatives of the log-evidence by the logarithms of the concentrations, shape `(levels,)`;
    `own` are those of all counts but the root.

    Those of `ln Γ(A) - ln Γ(s + A) + sum_c (ln Γ(s_c + a_c) - ln Γ(a_c))` over the counts s that
    have parts, on average.
    """
    whole: Floats = np.bincount(parent[:-1], own, parent.size).astype(np.float64)
    has, of = np.flatnonzero(whole), np.arange(parent.size - 1)
    below = np.empty(parent.size, dtype=np.int64)
    below[parent[:-1]] = level
    whole = whole[has]
    slopes = whole * (special.digamma(whole) - _mean(counts, has, whole))
    more = own * (_mean(counts, of, own) - special.digamma(own))
    return np.asarray(np.bincount(below[has], slopes) + np.bincount(level, more), dtype=np.float64)


def _mean(counts: TreeCounts, some: Integers, a: Floats) -> Floats:
    """Expected `ψ(s + a)` of some counts s, shape `(len(some),)`."""
    row, value, masses = counts.laws(counts.tree.place[some])
    seen = masses > 1e-12
    row, value, masses = row[seen], value[seen], masses[seen]
    found = np.bincount(row, masses * special.digamma(value + a[row]), some.size)
    return np.asarray(found, dtype=np.float64)
