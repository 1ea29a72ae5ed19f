"""A junction tree whose cliques hold given sets of variables: the conditional independences that a
survey's tables leave open are assumed, and no others. Where tables form a cycle, its cliques also
have pairs of variables that no table has.

Variables are numbers, and every set of them is an ascending tuple.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

#: Cells of the largest clique: chains on larger ones do not mix.
LARGEST_CLIQUE = 2000

Scope = tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """A clique, by its place in the tree, its parent, and the variables that both have."""

    child: int
    parent: int
    separator: Scope


@dataclass(frozen=True)
class JunctionTree:
    """Cliques with the first as root, and an edge for every other one, parents first.

    Cliques that share no variable are joined by an empty separator. `measured` are the largest sets
    of variables of which every two were given in one scope.
    """

    cliques: tuple[Scope, ...]
    edges: tuple[Edge, ...]
    measured: tuple[Scope, ...]

    def separations(self) -> list[tuple[Scope, Scope, Scope]]:
        """The independences that the tree assumes, one for each edge: the variables below it, all
        others, and the separator given which the two are independent.
        """
        below = [set(clique) for clique in self.cliques]
        for edge in reversed(self.edges):  # children before their parents
            below[edge.parent] |= below[edge.child]
        variables = set().union(*self.cliques)
        triples: list[tuple[Scope, Scope, Scope]] = []
        for edge in self.edges:
            inner = below[edge.child] - set(edge.separator)
            triples.append(
                (
                    tuple(sorted(inner)),
                    tuple(sorted(variables - inner - set(edge.separator))),
                    edge.separator,
                )
            )
        return triples

    def downwards(self) -> list[tuple[Scope, Scope]]:
        """Every clique, parents first, with the variables that it shares with its parent."""
        below = ((self.cliques[edge.child], edge.separator) for edge in self.edges)
        return [(self.cliques[0], ()), *below]

    def holding(self, variables: Scope) -> Scope | None:
        """The first clique that holds some variables; None unless they are `measured` together."""
        if not any(set(variables) <= set(clique) for clique in self.measured):
            return None
        return next(clique for clique in self.cliques if set(variables) <= set(clique))


def junction_tree(levels: Sequence[int], scopes: Sequence[Scope]) -> JunctionTree:
    """Triangulate the graph in which variables of one scope are joined, and join its cliques.

    The next variable to eliminate is the one that adds the fewest edges, then the smallest clique;
    the tree is a spanning tree of the largest separators.

    Parameters
    ----------
    levels : Sequence[int]
        The number of levels of each variable.
    scopes : Sequence[Scope]
        The sets of variables that some clique must hold.

    Examples
    --------
    >>> tree = junction_tree([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3)])
    >>> tree.cliques, [edge.separator for edge in tree.edges]
    (((0, 1), (1, 2), (2, 3)), [(1,), (2,)])
    """
    cliques = _maximal_cliques(levels, scopes)
    edges: list[Edge] = []
    inside, outside = [0], list(range(1, len(cliques)))
    while outside:
        parent, child = max(
            ((joined, open_clique) for joined in inside for open_clique in outside),
            key=lambda pair: len(set(cliques[pair[0]]) & set(cliques[pair[1]])),
        )
        shared = tuple(sorted(set(cliques[parent]) & set(cliques[child])))
        edges.append(Edge(child, parent, shared))
        inside.append(child)
        outside.remove(child)
    pairs = {pair for scope in scopes for pair in combinations(scope, 2)}
    measured: list[Scope] = []
    inside_cliques = {subset for clique in cliques for subset in subsets(clique)}
    for subset in sorted(inside_cliques, key=len)[::-1]:
        if pairs.issuperset(combinations(subset, 2)) and not any(
            set(subset) <= {*larger} for larger in measured
        ):
            measured.append(subset)
    return JunctionTree(tuple(cliques), tuple(edges), tuple(sorted(measured)))


def without_filling(levels: Sequence[int], tree: JunctionTree) -> JunctionTree:
    """A tree of known sets alone, each of which meets those before it within one of them."""
    chosen: list[Scope] = []
    for scope in tree.measured:
        shared = {v for scope_before in chosen for v in scope_before if v in scope}
        if not chosen or any(shared <= {*scope_before} for scope_before in chosen):
            chosen.append(scope)
    return junction_tree(levels, [*chosen, *((v,) for v in range(len(levels)))])


def subsets(scope: Scope) -> list[Scope]:
    """Every non-empty subset of some variables."""
    return [subset for number in range(1, len(scope) + 1) for subset in combinations(scope, number)]


def most_cells(levels: Sequence[int], tree: JunctionTree) -> int:
    """The number of cells of the largest clique."""
    return max(math.prod(levels[v] for v in clique) for clique in tree.cliques)


def check_cliques(levels: Sequence[int], scopes: Sequence[Scope], names: Sequence[str]) -> None:
    """Raise `ValueError` where tables are tied together beyond what chains can do, with the one to
    leave out, by its name.
    """
    cells = most_cells(levels, junction_tree(levels, scopes))
    if cells > LARGEST_CLIQUE:
        worst = names[to_leave_out(levels, scopes)]
        raise ValueError(
            f"tables: tied together they need a table of {cells} cells, which may have at most"
            f" {LARGEST_CLIQUE}; leave out {worst!r} first, or merge labels."
        )


def to_leave_out(levels: Sequence[int], scopes: Sequence[Scope]) -> int:
    """The place of the scope without which the largest clique is smallest."""

    def cells_without(position: int) -> int:
        others = [*scopes[:position], *scopes[position + 1 :], *((v,) for v in scopes[position])]
        return most_cells(levels, junction_tree(levels, others))

    return min(range(len(scopes)), key=cells_without)


def _maximal_cliques(levels: Sequence[int], scopes: Sequence[Scope]) -> list[Scope]:
    neighbours: dict[int, set[int]] = {v: set() for scope in scopes for v in scope}
    for scope in scopes:
        for first, second in combinations(scope, 2):
            neighbours[first].add(second)
            neighbours[second].add(first)

    def cost(v: int) -> tuple[int, int, int]:
        around = neighbours[v]
        missing = sum(b not in neighbours[a] for a, b in combinations(sorted(around), 2))
        return missing, math.prod(levels[u] for u in around | {v}), v

    cliques: list[frozenset[int]] = []
    while neighbours:
        v = min(neighbours, key=cost)
        around = neighbours.pop(v)
        clique = frozenset(around | {v})
        if not any(clique <= clique_before for clique_before in cliques):
            cliques.append(clique)
        for u in around:
            neighbours[u] |= around - {u}
            neighbours[u].discard(v)
    return sorted(tuple(sorted(clique)) for clique in cliques)
