"""The posterior of OpenDP's b-ary tree: of what OpenDP draws, beside its consistent counts."""

import itertools
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes.inference.levels.tree import Tree
from opendp_bayes.inference.levels.tree_counts import TreeCounts
from opendp_bayes.inference.levels.weights import Look, Weights
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace

dp.enable_features("contrib")

SHAPES = [(10, 4), (17, 4), (16, 2), (9, 3), (3, 10), (2, 2)]


def tree(k: int, branching: int, *, gaussian: bool = False) -> Any:
    metric = (dp.l2_distance if gaussian else dp.l1_distance)(T=int)
    return dp.t.make_b_ary_tree(dp.vector_domain(dp.atom_domain(T=int)), metric, k, branching)


def posterior(noisy: Any, k: int, branching: int, **given: Any) -> Any:
    options = {"mechanism": "laplace_parameters", "scale": 4.0, **given}
    levels = ob.research.noisy_tree(noisy, "x", range(k), branching=branching, **options)
    return ob.combine(levels, records="same")


@pytest.mark.parametrize(("k", "branching"), SHAPES)
def test_counts_without_noise_are_where_opendp_has_them(k: int, branching: int) -> None:
    """The tree of counts itself, read as if it had noise of a scale that hardly draws any."""
    true = np.random.default_rng(0).permutation(1000 * np.arange(1, k + 1))
    found = posterior(tree(k, branching)(true.tolist()), k, branching, scale=0.05)
    width = 1
    for name, level in found.items():
        sums = [int(true[at : at + width].sum()) for at in range(0, k, width)]
        assert level.counts.mean() == pytest.approx(sums, abs=1e-3)
        assert name == ("x" if width == 1 else f"x by {width}")
        width *= branching
    assert found.records.mean() == pytest.approx(true.sum(), abs=1e-3)
    assert width // branching >= k > width // branching // branching


@pytest.mark.parametrize(("k", "branching"), [(64, 4), (16, 2), (27, 3)])
def test_large_counts_are_those_that_opendp_makes_consistent(k: int, branching: int) -> None:
    """Where the prior says nothing, the posterior is least squares, whose weights OpenDP has for
    whole trees. Gaussian noise of 4; the counts as they were drawn are not as near.
    """
    true = np.random.default_rng(1).integers(2000, 3000, k)
    noisy = (tree(k, branching, gaussian=True) >> dp.m.then_gaussian(scale=4.0))(true.tolist())
    consistent = np.array(dp.t.make_consistent_b_ary_tree(branching)(noisy))
    mean = posterior(noisy, k, branching, mechanism="gaussian_parameters")["x"].counts.mean()
    assert np.abs(mean - consistent).max() < 0.2
    assert np.abs(mean - noisy[-k:]).max() > 1


def test_it_is_the_posterior_of_every_count_of_the_tree() -> None:
    """With the concentrations that were learned, the engine's of a tree made by hand."""
    noisy = (tree(5, 2) >> dp.m.then_laplace(scale=4.0))([9, 0, 4, 30, 2])
    found = posterior(noisy, 5, 2)
    parent = np.array([5, 5, 6, 6, 7, 8, 8, 9, 10, 10, -1])
    learned = list(found.concentrations.values())
    prior = np.repeat([*learned[:3], 0.0], [5, 3, 2, 1])
    law, own = DiscreteLaplace(4.0), [*noisy[-5:], *noisy[3:6], *noisy[1:3], noisy[0]]
    looks = [
        Look(np.arange(a, b), DrawnCounts.of(own[a:b], law))
        for a, b in itertools.pairwise([0, 5, 8, 10, 11])
    ]
    exact = TreeCounts(Weights(Tree.of(parent), parent, prior, looks, None), 400)
    for count, place in enumerate(exact.tree.place[:5]):
        _, values, masses = exact.laws(np.array([place]))
        assert found["x"].counts.mean()[count] == pytest.approx(masses @ values, abs=1e-3)


def test_the_total_is_one_category() -> None:
    found = posterior([9, 6, 3, 4, 1, 3], 3, 2)
    assert found["x by 4"].categories == ("0 to 2",)
    assert found["x by 4"].mean() == pytest.approx([1.0])
    assert found["x by 4"].counts.mean()[0] == pytest.approx(found["x"].counts.mean().sum())
    assert posterior([9, 6, 3, 4, 1, 3], 3, 2, size=8).records.mean() == 8


def test_counts_that_look_clamped_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="63 are 0"):
        posterior([90, *[90, 0, 0, 0], *[90, *[0] * 15], *[90, *[0] * 63]], 64, 4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"column": ["x"]}, TypeError, r"column=.*of the finest level"),
        ({"branching": 1}, ValueError, "branching=1: must be the branching_factor"),
        ({"branching": 2.0}, ValueError, "branching=2.0: must be the branching_factor"),
        ({"counts": [4, 1, 3]}, ValueError, r"shape \(3,\); .*\(6,\).*not made consistent"),
        ({"counts": [9, 6.5, 3, 4, 1, 3]}, ValueError, "counts: have fractions"),
        ({"counts": [9, np.nan, 3, 4, 1, 3]}, ValueError, "must be finite"),
        ({"categories": [1, 1, 2]}, ValueError, "at least 2 different labels"),
        ({"scale": 0.0}, ValueError, "scale=0.0"),
        ({"size": 0}, ValueError, "size=0"),
    ],
)
def test_refusals(change: Any, error: Any, message: str) -> None:
    given: dict[str, Any] = {
        "counts": [9, 6, 3, 4, 1, 3],
        "column": "x",
        "categories": [0, 1, 2],
        "branching": 2,
        "mechanism": "laplace_parameters",
        "scale": 1.0,
    }
    with pytest.raises(error, match=message):
        ob.research.noisy_tree(**{**given, **change})
