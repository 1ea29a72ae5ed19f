"""Plans of sums: every category is in the root so many times as it is there."""

from collections import Counter

import numpy as np
import pytest

from opendp_bayes.inference.convolution.plan_of_sums import PlanOfSums


def leaves(plan, node):
    """The leaves below a node, counted."""
    if node < plan.leaves:
        return Counter([node])
    first, second = plan.children(node)
    return leaves(plan, first) + leaves(plan, second)


@pytest.mark.parametrize("times", [[1, 1], [5, 1, 2], [1000], [3, 7, 1, 1, 64]])
def test_the_root_holds_every_category(times):
    row = np.repeat(np.arange(len(times)), times)
    plan = PlanOfSums.of(row, np.linspace(1, 9, len(times)))
    assert leaves(plan, plan.root) == Counter(row.tolist())


def test_equal_categories_are_summed_once():
    plan = PlanOfSums.of(np.zeros(1024, dtype=int), np.ones(1))
    assert len(plan.pairs) == 10
    apart = PlanOfSums.of(np.arange(1024), np.ones(1024))
    assert len(apart.pairs) == 1023


def test_groups_are_nodes_and_may_be_one_in_the_other():
    row = np.array([0, 1, 2, 0, 3, 4])
    groups = [[0, 1, 3], [0, 1], [4, 5]]
    plan = PlanOfSums.of(row, np.ones(5), groups)
    for group, node in zip(groups, plan.groups, strict=True):
        assert leaves(plan, node) == Counter(row[group].tolist())
    assert leaves(plan, plan.root) == Counter(row.tolist())


def test_levels_and_parents_agree_with_the_pairs():
    plan = PlanOfSums.of(np.array([0, 1, 2, 2, 3, 3, 3]), np.ones(4))
    known = set(range(plan.leaves))
    for level in plan.levels():
        for node in level.tolist():
            assert set(plan.children(node)) <= known
        known |= set(level.tolist())
    assert known == set(range(plan.nodes))
    parent, sibling = plan.parents()
    assert parent[plan.root] == sibling[plan.root] == -1
    for node in set(range(plan.nodes)) - {plan.root}:
        assert Counter([node, int(sibling[node])]) == Counter(plan.children(int(parent[node])))
