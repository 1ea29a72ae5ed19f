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
    left, right : the two nodes of each sum, shape `(nodes,)`; -1 for leaves. Children come before
        their parents, and the root is last.
    place : the node of every count that was asked for; an only child is its parent's node.
    family : the count asked for whose children a node sums up, all of them or some, shape
        `(nodes,)`; -1 for leaves.
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
        number = parent.size
        children: list[list[int]] = [[] for _ in range(number)]
        place = np.empty(number, dtype=np.int64)
        left: list[int] = []
        right: list[int] = []
        family: list[int] = []
        for count, above in enumerate(parent.tolist()):
            nodes = children[count]
            if not nodes:
                left.append(-1)
                right.append(-1)
                family.append(-1)
                nodes = [len(left) - 1]
            while len(nodes) > 1:
                pairs = []
                for one, other in zip(nodes[::2], nodes[1::2], strict=False):
                    left.append(one)
                    right.append(other)
                    family.append(count)
                    pairs.append(len(left) - 1)
                nodes = pairs + nodes[2 * len(pairs) :]
            place[count] = nodes[0]
            if above >= 0:
                children[above].append(nodes[0])
        return cls(*(np.array(each, dtype=np.int64) for each in (left, right, place, family)))

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
