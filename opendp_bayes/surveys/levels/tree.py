"""Trees of counts, whose nodes with many children become sums two by two."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree in which every count is that of a leaf or the sum of two others.

    Attributes
    ----------
    left, right : ndarray of int
        The two nodes of each sum, shape `(nodes,)`; -1 for leaves. Children come before their
        parents, and the root is last.
    place : ndarray of int
        The node of every count that was asked for; an only child is its parent's node.
    family : ndarray of int
        The count asked for whose children a node sums up, all of them or some, shape `(nodes,)`; -1
        for leaves.
    """

    left: Integers
    right: Integers
    place: Integers
    family: Integers

    @classmethod
    def of(cls, parent: Integers) -> "Tree":
        """Make the tree of counts with their parents, shape `(m,)`, which have larger numbers; the
        last is the root, of parent -1.
        """
        children: list[list[int]] = [[] for _ in range(parent.size)]
        place = np.empty(parent.size, dtype=np.int64)
        nodes: list[tuple[int, int, int]] = []  # left, right, family
        for count, above in enumerate(parent.tolist()):
            parts = children[count]
            if not parts:
                parts = [len(nodes)]
                nodes.append((-1, -1, -1))
            while len(parts) > 1:
                pairs = list(zip(parts[::2], parts[1::2], strict=False))
                sums = list(range(len(nodes), len(nodes) + len(pairs)))
                nodes += [(one, other, count) for one, other in pairs]
                parts = sums + parts[2 * len(pairs) :]
            place[count] = parts[0]
            if above >= 0:
                children[above].append(parts[0])
        left, right, family = np.array(nodes, dtype=np.int64).T.copy()
        return cls(left, right, place, family)

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
        for node, (one, other) in enumerate(pairs):
            if one >= 0:
                heights[node] = 1 + max(heights[one], heights[other])
        height = np.array(heights)
        order = np.argsort(height, kind="stable")
        edges = np.searchsorted(height[order], np.arange(1, height.max() + 2))
        return [order[a:b] for a, b in itertools.pairwise(edges)]

    def summed(self, values: Floats) -> Floats:
        """Sum values of the leaves, shape `(nodes, ...)`, in place, up to the root."""
        for nodes in self.rounds:
            values[nodes] = values[self.left[nodes]] + values[self.right[nodes]]
        return values
