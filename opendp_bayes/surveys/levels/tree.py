"""Trees of counts, whose nodes with many children become sums two by two, and weights of the counts
of one node: of noise, of the prior and of the total.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers


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


@dataclass(frozen=True, eq=False)
class Look:
    """Noisy counts, each of the count whose number is in `counts`."""

    counts: Integers
    noisy: DrawnCounts


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
