"""The order in which counts are added up: two by two, equal ones once."""

from collections.abc import Iterable, Sequence

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers


class PlanOfSums:
    """A binary tree whose first nodes are the leaves; every other node is the sum of two before it.

    A leaf that is there several times is one node, and so are sums of the same nodes. What is
    beside a node is the same wherever it stands, so each node knows one of its parents.

    Attributes
    ----------
    leaves : number of leaves.
    pairs : the two nodes that each sum is of, from node number `leaves` on.
    root : the sum of all.
    groups : the node of each group that was asked for.
    """

    def __init__(self, leaves: int) -> None:
        self.leaves, self.root = leaves, -1
        self.pairs: list[tuple[int, int]] = []
        self.groups: list[int] = []
        self._known: dict[tuple[int, int], int] = {}

    @classmethod
    def of(
        cls, leaf: Integers, width: Floats, groups: Sequence[Iterable[int]] = ()
    ) -> "PlanOfSums":
        """Plan the sum of all categories, of which `leaf` tells the leaf, shape `(k,)`.

        Leaves of similar `width` are added first. Every group of categories is a node of the tree,
        too; of two groups one is inside the other or they have nothing in common.
        """
        plan = cls(int(width.size))
        nodes = dict(enumerate(leaf.tolist()))  # of the categories that are not yet in a group
        order = sorted(range(len(groups)), key=lambda place: len(list(groups[place])))
        owner = {category: frozenset([category]) for category in nodes}
        node_of = {frozenset([category]): node for category, node in nodes.items()}
        found = {}
        widths = list(width)
        for place in order:
            whole = frozenset(groups[place])
            parts = {owner[category] for category in whole}
            found[place] = plan._sum([node_of[part] for part in parts], widths)
            node_of[whole] = found[place]
            for category in whole:
                owner[category] = whole
        plan._known.clear()  # sums of others that equal a group are split, which groups are not
        plan.root = plan._sum([node_of[part] for part in set(owner.values())], widths)
        plan.groups = [found[place] for place in range(len(groups))]
        return plan

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.leaves + len(self.pairs)

    def children(self, nodes: Integers) -> tuple[Integers, Integers]:
        """The two nodes that each of some sums is of."""
        first, second = np.array(self.pairs)[nodes - self.leaves].T
        return first, second

    def levels(self) -> list[Integers]:
        """The sums, such that each list needs only leaves and the lists before it."""
        level = np.zeros(self.nodes, dtype=np.int64)
        for node, (first, second) in enumerate(self.pairs, start=self.leaves):
            level[node] = 1 + max(level[first], level[second])
        return [np.flatnonzero(level == depth) for depth in range(1, int(level.max()) + 1)]

    def parents(self) -> tuple[Integers, Integers]:
        """Parent and sibling of every node, -1 for the root's."""
        parent, sibling = np.full(self.nodes, -1), np.full(self.nodes, -1)
        for node, (first, second) in enumerate(self.pairs, start=self.leaves):
            parent[first] = parent[second] = node
            sibling[first], sibling[second] = second, first
        return parent, sibling

    def _sum(self, nodes: list[int], widths: list[float]) -> int:
        """Add up nodes, of which some may be there several times; returns the node of their sum."""
        pool: dict[int, int] = {}
        for node in nodes:
            pool[node] = pool.get(node, 0) + 1
        while sum(pool.values()) > 1:
            paired: dict[int, int] = {}
            single = sorted(
                (node for node, times in pool.items() if times % 2), key=lambda n: (widths[n], n)
            )
            for node, times in pool.items():
                if times > 1:
                    both = self._joined(node, node, widths)
                    paired[both] = paired.get(both, 0) + times // 2
            for first, second in zip(single[::2], single[1::2], strict=False):
                both = self._joined(first, second, widths)
                paired[both] = paired.get(both, 0) + 1
            if len(single) % 2:
                paired[single[-1]] = paired.get(single[-1], 0) + 1
            pool = paired
        return next(iter(pool))

    def _joined(self, first: int, second: int, widths: list[float]) -> int:
        key = min(first, second), max(first, second)
        if key not in self._known:
            self._known[key] = self.nodes
            self.pairs.append(key)
            widths.append(float(np.hypot(widths[first], widths[second])))
        return self._known[key]


def families(groups: Sequence[Iterable[int]]) -> list[list[int]]:
    """Places of groups, in as few lists as are found that one plan holds: any two groups of a list
    are one inside the other or apart.
    """
    members, found = [frozenset(group) for group in groups], list[list[int]]()
    for place, group in enumerate(members):
        for family in found:
            if all(_fit(group, members[other]) for other in family):
                family.append(place)
                break
        else:
            found.append([place])
    return found


def _fit(first: frozenset[int], second: frozenset[int]) -> bool:
    return first < second or second < first or not first & second
