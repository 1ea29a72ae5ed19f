"""Releases whose categories are sums of those of others, as looks at counts on a tree; the tree,
whose nodes with many children become sums two by two; and the weights of the counts of one node: of
noise, of the prior and of the total.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.release_format.data import ReleasedData

#: Beyond what was drawn a private number of records may be so many scales of the noise larger.
_BEYOND = 60.0
#: Standard deviations of the noise between counts that are the same, added for one of them.
_FAR = 12.0


@dataclass(frozen=True, eq=False)
class Look:
    """Noisy counts, each of the count whose number is in `counts`."""

    counts: Integers
    noisy: DrawnCounts


@dataclass(frozen=True, eq=False)
class NestedTables:
    """Counts of all levels with their parents, and what was drawn of them.

    Attributes
    ----------
    parent : ndarray of int
        The count that each count is a part of, a larger number; -1 of the last, the root.
    levels : tuple[ndarray of int, ...]
        Numbers of the counts of each level from the root's down to the finest, halves that no
        release has among them.
    places : dict[str, tuple[int, ndarray of int]]
        By name of each release the level, and the place of each category among its counts.
    looks : tuple[Look, ...]
        Of the releases.
    size : int or None
        The public number of records; None where it is private.
    members : ndarray
        How many categories of the next level that was asked for each half stands for, and 1 for
        what was asked for, of all counts but the root.
    """

    parent: Integers
    levels: tuple[Integers, ...]
    places: dict[str, tuple[int, Integers]]
    looks: tuple[Look, ...]
    size: int | None
    members: Floats

    @classmethod
    def of(
        cls, releases: Mapping[str, ReleasedData], parts: Mapping[str, Integers]
    ) -> "NestedTables":
        """Make the tree of releases of the same records, finest first.

        `parts` has by name of a release, for each cell of the finest table, the category of the
        release that the cell is a part of, shape `(cells,)`.
        """
        names = sorted(parts, key=lambda release_name: -releases[release_name].k)
        distinct: list[Integers] = []
        level_of: dict[str, tuple[int, Integers]] = {}
        for release_name in names:
            part, k = parts[release_name], releases[release_name].k
            if distinct and nests(part, distinct[-1]):  # the same, for it has no more parts
                order = np.empty(k, dtype=np.int64)
                order[part] = distinct[-1]
            else:
                distinct.append(part)
                order = np.arange(k)
            level_of[release_name] = (len(distinct) - 1, order)
        root, released = np.zeros_like(distinct[0]), []
        whole: list[Integers] = []
        members: list[Floats] = []
        for fine, coarse in itertools.pairwise([*distinct, root]):
            released.append(len(whole))
            for part, number in [(fine, np.ones(int(fine.max()) + 1)), *halves(fine, coarse)]:
                whole.append(part)
                members.append(number)
        start = np.cumsum([0, *(number.size for number in members), 1])
        parent = np.full(start[-1], -1)
        for position, (fine, coarse) in enumerate(itertools.pairwise([*whole, root])):
            parent[start[position] + fine] = start[position + 1] + coarse
        numbers = [np.arange(a, b) for a, b in itertools.pairwise(start)]
        looks, places = [], dict.fromkeys(releases, (0, root))
        for release_name in names:
            position, order = released[level_of[release_name][0]], level_of[release_name][1]
            looks.append(
                Look(
                    numbers[position][order],
                    noise_of(f"tables[{release_name!r}]", releases[release_name]),
                )
            )
            places[release_name] = len(whole) - position, order
        size = next(
            (release.size for release in releases.values() if release.size is not None), None
        )
        return cls(
            parent, tuple(numbers[::-1]), places, tuple(looks), size, np.concatenate(members)
        )

    @property
    def level(self) -> Integers:
        """The level of each count but the root, 0 being the finest."""
        finest_first = self.levels[:0:-1]
        return np.repeat(np.arange(len(finest_first)), [counts.size for counts in finest_first])

    @property
    def highest(self) -> int:
        """A number of records that is hardly exceeded, or the public one."""
        if self.size is not None:
            return self.size
        most = []
        for look in self.looks:
            noisy, noisy_counts = look.noisy, look.noisy.drawn
            beyond = _BEYOND * noisy.noise.scale * np.sqrt(noisy_counts.size) + _BEYOND
            most.append(int(np.maximum(noisy_counts, 0).sum() + beyond) if noisy.is_complete else 0)
        return max(most)


def halves(fine: Integers, coarse: Integers) -> list[tuple[Integers, Floats]]:
    """Partitions between two, finest first, each with how many of the finer parts each of its own
    has: families are halved again and again, in the order of the cells. None where the parts of one
    family are not neighbours.

    Shapes `(cells,)` of partitions.
    """
    run, family = (np.cumsum(np.diff(node, prepend=node[0]) != 0) for node in (fine, coarse))
    if run[-1] != fine.max() or family[-1] != coarse.max():
        return []
    first = run[np.searchsorted(family, np.arange(family[-1] + 1))]
    sizes = np.diff(first, append=run[-1] + 1)
    one_of_each = np.flatnonzero(np.diff(run, prepend=-1))
    nodes = []
    for depth in range(int(sizes.max() - 1).bit_length() - 1, 0, -1):
        piece = (run - first[family]) * 2**depth // sizes[family]
        children = np.unique(family * 2**depth + piece, return_inverse=True)[1]
        nodes.append((children, np.bincount(children[one_of_each]).astype(np.float64)))
    return nodes


def check_sums(releases: Mapping[str, ReleasedData], parts: Mapping[str, Integers]) -> None:
    """Raise `ValueError` for two releases, one of parts of the other or of the same counts, that
    differ by more than their noise explains: they are of other columns, or of other records.

    Over m counts, that is a root mean square of more than `1 + 12 / sqrt(m)` standard deviations,
    which Laplace noise alone has once in ten million.
    """
    names = sorted(parts, key=lambda release_name: -releases[release_name].k)
    for fine_name, coarse_name in itertools.pairwise(names):
        fine, coarse = (noise_of(f"tables[{n!r}]", releases[n]) for n in (fine_name, coarse_name))
        if not (fine.is_complete and coarse.is_complete):
            continue
        above = np.empty(fine.drawn.size, dtype=np.int64)
        above[parts[fine_name]] = parts[coarse_name]
        added = np.bincount(above)
        shift = [float(np.mean(noisy.noise.kinks or [0])) for noisy in (fine, coarse)]
        away = np.bincount(above, fine.drawn - shift[0]) - coarse.drawn + shift[1]
        width = added * typical_std(fine.noise) ** 2 + typical_std(coarse.noise) ** 2
        if np.sqrt(np.mean(away**2 / width)) > 1 + _FAR / np.sqrt(added.size):
            raise ValueError(
                f"tables[{fine_name!r}], tables[{coarse_name!r}]: have the same labels, and"
                " counts that differ by more than their noise explains; give tables of one column"
                " of the same records alone, with nulls and unknown values counted alike."
            )


def nests(fine: Integers, coarse: Integers) -> bool:
    """True if every part of one partition lies in one part of the other; shapes `(cells,)`."""
    coarse_of = np.empty(int(fine.max()) + 1, dtype=np.int64)
    coarse_of[fine] = coarse
    return bool(np.array_equal(coarse_of[fine], coarse))


def are_a_chain(parts: Sequence[Integers]) -> bool:
    """True if of any two partitions one is finer than the other."""
    ordered = sorted(parts, key=lambda part: -int(part.max()))
    return all(nests(finer, coarser) for finer, coarser in itertools.pairwise(ordered))


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree in which every count is that of a leaf or the sum of two others.

    Attributes
    ----------
    left, right : ndarray of int
        The two nodes of each sum, shape `(nodes,)`; -1 for leaves. Children come before their
        parents, and the root is last.
    node_of : ndarray of int
        The node of every count that was asked for; an only child is its parent's node.
    family : ndarray of int
        The count asked for whose children a node sums up, all of them or some, shape `(nodes,)`; -1
        for leaves.
    """

    left: Integers
    right: Integers
    node_of: Integers
    family: Integers

    @classmethod
    def of(cls, parent: Integers) -> "Tree":
        """Make the tree of counts with their parents, shape `(m,)`, which have larger numbers; the
        last is the root, of parent -1.
        """
        children: list[list[int]] = [[] for _ in range(parent.size)]
        node_of = np.empty(parent.size, dtype=np.int64)
        nodes: list[tuple[int, int, int]] = []  # left, right, family
        for count, above in enumerate(parent.tolist()):
            parts = children[count]
            if not parts:
                parts = [len(nodes)]
                nodes.append((-1, -1, -1))
            while len(parts) > 1:
                pairs = list(zip(parts[::2], parts[1::2], strict=False))
                sums = list(range(len(nodes), len(nodes) + len(pairs)))
                nodes += [(first, second, count) for first, second in pairs]
                parts = sums + parts[2 * len(pairs) :]
            node_of[count] = parts[0]
            if above >= 0:
                children[above].append(parts[0])
        left, right, family = np.array(nodes, dtype=np.int64).T.copy()
        return cls(left, right, node_of, family)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.left.size

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """True for leaves, shape `(nodes,)`."""
        return self.left < 0

    @cached_property
    def rounds(self) -> list[Integers]:
        """Sums in an order in which they can be taken: those of one round depend on former ones."""
        pairs = zip(self.left.tolist(), self.right.tolist(), strict=True)
        heights = [0] * self.nodes
        for node, (left, right) in enumerate(pairs):
            if left >= 0:
                heights[node] = 1 + max(heights[left], heights[right])
        height = np.array(heights)
        order = np.argsort(height, kind="stable")
        edges = np.searchsorted(height[order], np.arange(1, height.max() + 2))
        return [order[a:b] for a, b in itertools.pairwise(edges)]

    def summed(self, values: Floats) -> Floats:
        """Sum values of the leaves, shape `(nodes, ...)`, in place, up to the root."""
        for nodes in self.rounds:
            values[nodes] = values[self.left[nodes]] + values[self.right[nodes]]
        return values


class Weights:
    """Weight of every count on its own, whose product over the nodes is the posterior.

    Parameters
    ----------
    tree : Tree
        Of the counts.
    parent : ndarray of int
        Number of the count that each count is a part of, as for `Tree.of`.
    prior : ndarray
        Concentration of each count among those with the same parent, shape `(m,)`; that of the root
        is not used. Where the concentration of a count is the sum of those of its parts, the prior
        is one Dirichlet distribution.
    looks : Sequence[Look]
        Noisy counts.
    size : int or None
        The public number of records; None for a private one, of which all are equally probable.
    """

    def __init__(
        self, tree: Tree, parent: Integers, prior: Floats, looks: Sequence[Look], size: int | None
    ) -> None:
        self.tree, self.size, self.prior = tree, size, prior
        inner = np.bincount(parent[:-1], prior[:-1], prior.size)
        below = np.where(inner > 0, inner, prior)
        self.above, self.below = np.zeros(tree.nodes), np.zeros(tree.nodes)
        self.below[tree.node_of[::-1]] = below[::-1]  # of an only child and its parent the child's
        self.above[tree.node_of] = prior
        left, right = tree.left.tolist(), tree.right.tolist()
        for node in np.flatnonzero(self.below == 0).tolist():  # sums of some of a count's parts
            self.above[node] = self.below[node] = self.above[left[node]] + self.above[right[node]]
        root = tree.nodes - 1
        self.above[root] = self.below[root]
        #: Logarithm of the factor of the prior that no count changes.
        self.log_constant = float(special.gammaln(inner[inner > 0]).sum())
        self.log_constant -= float(special.gammaln(prior[:-1]).sum())
        if size is not None:
            self.log_constant -= float(log_rising(size, self.below[root]))
        close = np.isclose(self.above, self.below, rtol=1e-12)
        self.nested = ~close & ~tree.is_leaf
        #: Noisy counts by node, look by look.
        self.noisy = [look.noisy.placed(tree.node_of[look.counts], tree.nodes) for look in looks]
        self.any_noise = np.any([noisy.noised for noisy in self.noisy], axis=0)

    def log_weight(self, nodes: Integers, counts: Floats | Integers) -> Floats:
        """Logarithm of the weight of counts, shape `(len(nodes), w)`, up to one constant a node."""
        log_weights = np.zeros(counts.shape)
        leaf = np.flatnonzero(self.tree.is_leaf[nodes])
        if leaf.size:
            log_weights[leaf] = log_rising(counts[leaf], self.above[nodes[leaf], None])
        nested = np.flatnonzero(self.nested[nodes])
        if nested.size:
            nested_nodes, nested_counts = nodes[nested], counts[nested]
            log_weights[nested] = log_rising(nested_counts, self.above[nested_nodes, None])
            log_weights[nested] -= log_rising(nested_counts, self.below[nested_nodes, None])
        if nodes[-1] == self.tree.nodes - 1 and self.size is None:
            log_weights[-1] -= log_rising(counts[-1], self.below[-1])
        for noisy in self.noisy:
            rows = np.flatnonzero(noisy.noised[nodes])
            if rows.size:
                log_weights[rows] += noisy.log_mass(counts[rows], (nodes[rows], None))
        return log_weights
