"""Counts on a tree with noise at any node: laws, draws, learned concentrations, tables."""

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.surveys.levels import tree_counts
from opendp_bayes.surveys.levels.concentrations import (
    _ENOUGH,
    _slopes,
    _some_families,
    with_learned_concentrations,
)
from opendp_bayes.surveys.levels.levels_posterior import LevelsPosterior
from opendp_bayes.surveys.levels.tree import Look, Tree, Weights
from opendp_bayes.surveys.levels.tree_counts import TreeCounts, log_sums
from opendp_bayes.surveys.levels.windows import fitted, starting_windows
from tests.helpers.given_noise import given_noise, log_evidence
from tests.helpers.nested_counts import largest_error, random_case, regular
from tests.helpers.releases import release as made
from tests.helpers.sweeps import slow

LEAVES = 12
STATES = np.arange(LEAVES) // 4
REGIONS = np.array([0, 0, 1])[STATES]


def flat(k: int, drawn: Any, law: Any, size: int | None, highest: int) -> TreeCounts:
    """Counts of one table."""
    parent = np.append(np.full(k, k), -1)
    looks = [Look(np.arange(k), DrawnCounts.of(drawn, law))]
    return TreeCounts(Weights(Tree.of(parent), parent, np.ones(k + 1), looks, size), highest)


def exact_sum(one: Any, other: Any, total: int) -> float:
    """The logarithm of a sum of products of weights, by listing every two that make the total."""
    pairs = [(i, total - i) for i in range(len(one)) if 0 <= total - i < len(other)]
    return special.logsumexp([one[i] + other[j] for i, j in pairs]) if pairs else -np.inf


def release(drawn: Any, labels: Any, scale: float, size: int | None = None) -> ob.Release:
    noise = ob.LaplaceParameters(scale, total="private")
    return made(tuple(np.asarray(drawn).tolist()), tuple(labels), noise, size)


def tables(size: int | None, seed: int = 0) -> dict[str, ob.Release]:
    """Three levels, in an order of their own, the states also in an order of their own."""
    rng = np.random.default_rng(seed)
    counties = rng.multinomial(900, rng.dirichlet(np.ones(LEAVES)))
    states = np.bincount(STATES, counties).astype(int)
    regions = np.bincount(REGIONS, counties).astype(int)
    law, order = DiscreteLaplace(8.0), [2, 0, 1]

    def noised(counts):
        return counts + law.simulate((len(counts),), rng)

    return {
        "state": release(noised(states)[order], [f"s{i}" for i in order], 8.0, size),
        "county": release(noised(counties), [f"c{i}" for i in range(LEAVES)], 8.0, size),
        "region": release(noised(regions), ["north", "south"], 8.0, size),
    }


PARTS = {"state": np.array([1, 2, 0])[STATES], "county": np.arange(LEAVES), "region": REGIONS}


@pytest.fixture(scope="module", params=[900, None])
def posterior(request: pytest.FixtureRequest) -> Any:
    return LevelsPosterior(tables(request.param), PARTS)


def test_sums_are_exact_where_they_are_least_probable() -> None:
    """Newton's steps towards the tilt of the middle go to and fro, within what bounds it. Two
    peaks in either law, far apart; sums between are e^-60 as probable, and less.
    """
    rng = np.random.default_rng(0)
    one, other = -0.5 * np.arange(60) ** 1.5 * rng.uniform(1, 2, (4, 1)), rng.normal(0, 9, (4, 80))
    other[1, :7] = -np.inf
    first = np.array([0, 20, -3, 100])
    found = log_sums(one, other, first, np.full(4, 50))
    for row in range(4):
        for at, total in enumerate(first[row] + np.arange(50)):
            exact = exact_sum(one[row], other[row], total)
            assert found[row, at] == pytest.approx(exact, abs=1e-6)
    one = [-21.380927, -22.408532, -22.83716, -22.946381, -22.847158, -22.598207, -22.235327]
    one += [-24.35752, -26.406341, -28.394126, -30.330249, -32.222023, -34.075275, -35.89473]
    one += [-37.68428, -39.447168, -41.186128]
    other = [-61.765704, -47.666389, -35.390188, -24.936942, -16.306421, -9.498282, -4.511973]
    other += [-1.346527, 0.0, -1.555814, -5.993915]
    found = log_sums(np.array([one]), np.array([other]), np.array([10]), np.array([15]))
    for at, total in enumerate(range(10, 25)):
        assert found[0, at] == pytest.approx(exact_sum(one, other, total), abs=1e-6)
    places = np.arange(90)
    one = np.maximum(-3.0 * places, -3.0 * (89 - places)) + np.zeros((2, 1))
    other = np.maximum(-2.5 * places, 4.0 * (places - 89)) + np.zeros((2, 1))
    other[1, 60:] = -np.inf
    found = log_sums(one, other, np.array([0, 0]), np.full(2, 179))
    for row, total in np.ndindex(2, 179):
        exact = exact_sum(one[row], other[row], total)
        assert found[row, total] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("seeds", [range(10), *slow([range(1000, 4000)])])
def test_small_trees_agree_with_a_list_of_all_counts(seeds: range) -> None:
    assert max(largest_error(random_case(np.random.default_rng(s))) for s in seeds) < 1e-4


def test_wrong_priors_and_large_windows_are_noticed() -> None:
    """Negative control."""
    case = random_case(np.random.default_rng(0))
    counts = case.counts()
    case.prior[:-1] *= 1.5
    assert abs(case.counts().log_evidence - counts.log_evidence) > 1e-3
    drawn = np.full(2000, 10**6)
    with pytest.raises(ValueError, match=r"in all windows.* 6.7e[+]07"):
        flat(2000, drawn, DiscreteLaplace(1e4), None, 10**10)
    with pytest.raises(TypeError, match="releases, parts: must be mappings"):
        LevelsPosterior(ob.Release, PARTS)


@pytest.mark.parametrize("law", [DiscreteLaplace(2.0), DiscreteGaussian(2.0)])
def test_levels_that_are_far_from_each_other(law: Any) -> None:
    """Two counts and their sum, drawn fifty deviations apart."""
    parent, drawn = np.array([2, 2, -1]), np.array([300, 500])
    looks = [
        Look(np.array([0, 1]), DrawnCounts.of(drawn, law)),
        Look(np.array([2]), DrawnCounts.of([900], law)),
    ]
    weights = Weights(Tree.of(parent), parent, np.array([1.5, 0.5, 0.0]), looks, None)
    found = TreeCounts(weights, 1200)
    x, y = np.meshgrid(np.arange(1201), np.arange(1201), indexing="ij")
    logs = law.log_mass(300 - x) + law.log_mass(500 - y) + law.log_mass(900 - x - y)
    logs = logs + special.gammaln(x + 1.5) - special.gammaln(x + 1)
    logs = logs + special.gammaln(y + 0.5) - special.gammaln(y + 1)
    logs = logs + special.gammaln(x + y + 1) - special.gammaln(x + y + 2)
    logs = np.where(x + y <= 1200, logs, -np.inf)
    exact = np.exp(logs - special.logsumexp(logs))
    for place, value in zip(found.tree.node_of, (x, y, x + y), strict=True):
        _, counts, masses = found.laws(np.array([place]))
        mean = (exact * value).sum()
        assert masses @ counts == pytest.approx(mean, rel=1e-5)
        assert masses @ (counts - mean) ** 2 == pytest.approx(
            (exact * (value - mean) ** 2).sum(), rel=1e-3
        )


@pytest.mark.parametrize(("size", "scale"), [(2000, 6.0), (2000, 60.0), (None, 6.0)])
def test_one_table_agrees_with_the_engine_of_one_table(size: int | None, scale: float) -> None:
    rng, law = np.random.default_rng(1), DiscreteGaussian(scale)
    true = rng.multinomial(2000, rng.dirichlet(np.ones(30)))
    drawn = true + law.simulate((30,), rng)
    other = given_noise(drawn, np.ones(30), law, size=size)
    found = flat(30, drawn, law, size, 2000 if size else 4000)
    row, counts, masses = found.laws(found.tree.node_of[:30])
    mean = np.bincount(row, masses * counts)
    std = np.sqrt(np.bincount(row, masses * (counts - mean[row]) ** 2))
    assert np.abs(mean - other.counts.mean()).max() < 2e-3 * std.min()
    assert std == pytest.approx(other.counts.std(), rel=2e-3)
    assert found.log_evidence == pytest.approx(log_evidence(other), abs=2e-3)


def test_the_derivative_of_the_evidence_by_concentrations() -> None:
    rng = np.random.default_rng(0)
    parent, level, looks, _ = regular([3, 4, 5], 4.0, 2000, rng, prior=2.0)

    def at(logs: Any) -> TreeCounts:
        prior = np.append(np.exp(logs)[level], 0.0)
        return TreeCounts(Weights(Tree.of(parent), parent, prior, looks, 2000), 2000)

    here, step = np.array([0.4, -0.3, 0.1]), 1e-4
    slope = [
        (at(here + step * e).log_evidence - at(here - step * e).log_evidence) / (2 * step)
        for e in np.eye(3)
    ]
    assert _slopes(at(here), parent, level, np.exp(here)[level]) == pytest.approx(slope, rel=1e-4)


def test_large_levels_tell_concentrations_from_whole_families() -> None:
    rng = np.random.default_rng(0)
    parent, level, looks, _ = regular([30, 15, 20], 4.0, 20_000, rng)
    looks = looks[::-1]
    parents, levels, some, _ = _some_families(parent, level, looks, np.ones(level.size))
    numbers = np.bincount(levels)
    assert numbers.tolist() == [_ENOUGH, 450, 30]
    families = np.bincount(parents[:_ENOUGH], minlength=_ENOUGH + 480)
    assert set(families[families > 0].tolist()) == {20}
    assert parents[-1] == -1
    assert np.all(parents[:-1] > np.arange(parents.size - 1))
    kept = families[_ENOUGH : _ENOUGH + 450] > 0
    own = np.repeat(kept, 20)
    assert np.array_equal(some[-1].noisy.drawn, looks[-1].noisy.drawn[own])
    assert np.array_equal(some[0].noisy.drawn, looks[0].noisy.drawn)
    assert np.array_equal(np.concatenate([one.counts for one in some[::-1]]), np.arange(4480))
    assert np.array_equal(parents[4000:4450], 4450 + np.arange(450) // 15)


@pytest.mark.slow
@pytest.mark.parametrize("size", [20_000, None])
def test_learned_levels_cover_what_they_promise(size: int | None) -> None:
    """Twelve trees of 5 × 10 × 20 leaves with a concentration of 2 in every family: 95 % of the
    true counts of 12 000 leaves and 600 counties within .02 and .035 (each less than one in 10^3
    by chance), and learned concentrations within a factor of 2 at the two finer levels.
    """
    inside: list[list[Any]] = [[], [], []]
    for seed in range(12):
        rng = np.random.default_rng(seed)
        parent, level, looks, true = regular([5, 10, 20], 20.0, 20_000, rng, prior=2.0)
        found, learned = with_learned_concentrations(
            parent, level, looks, size, 20_000 if size else 40_000
        )
        assert np.all(np.abs(np.log(learned[:2] / 2.0)) < np.log(2))
        for at, values in enumerate(true[:-1]):
            numbers = found.tree.node_of[np.flatnonzero(level == at)]
            row, counts, masses = found.laws(numbers)
            below = np.bincount(row, masses * (counts < values[row]))
            here = np.bincount(row, masses * (counts == values[row]))
            u = below + here * rng.random(values.size)
            inside[at].extend((u > 0.025) & (u < 0.975))
    leaves, counties, states = (float(np.mean(each)) for each in inside)
    assert abs(leaves - 0.95) < 0.02
    assert abs(counties - 0.95) < 0.035
    assert states > 0.8  # of 60, seen .89 of 35


def test_levels_add_up_in_each_draw_and_have_the_computed_laws(posterior: Any) -> None:
    """Kolmogorov-Smirnov and chi-squared tests, wrong less than once in 1000 seeds."""
    drawn = posterior.sample(50, random_state=3)
    for name, parts in PARTS.items():
        sums = np.stack([np.bincount(parts, row) for row in drawn["county"]])
        assert drawn[name] == pytest.approx(sums, abs=1e-12)
        counts = posterior["county"].counts.sample(50, random_state=3)
        sums = np.stack([np.bincount(parts, row) for row in counts])
        assert np.array_equal(posterior[name].counts.sample(50, random_state=3), sums)
    assert np.array_equal(
        posterior["state"].sample(5, random_state=3), posterior.sample(5, 3)["state"]
    )
    p_values = []
    for level in posterior.values():
        shares = level.sample(4000, random_state=1)
        counts = level.counts.sample(4000, random_state=2)
        for at in range(len(level.categories)):
            one = level[level.categories[at]]
            p_values.append(stats.kstest(shares[:, at], one.cdf).pvalue)
            edges = np.unique(np.quantile(counts[:, at], np.linspace(0.1, 0.9, 9)))
            below = level._engine.counts.cdf(edges[:, None])[:, at]
            expected = np.diff(np.concatenate([[0], below, [1]])) * 4000
            seen = np.bincount(np.searchsorted(edges, counts[:, at]), minlength=expected.size)
            kept = expected > 5
            p_values.append(
                stats.chi2.sf((((seen - expected) ** 2 / expected)[kept]).sum(), kept.sum() - 1)
            )
    assert min(p_values) > 1e-3 / len(p_values)


@pytest.mark.parametrize("most", [1, 30])
def test_windows_that_widen_to_the_last_pass_have_laws(most, monkeypatch):
    """After the last pass the laws are those of the windows; enough passes find the right ones."""
    drawn, law = np.array([20, 35, 0, 7, 90]), DiscreteLaplace(4.0)
    right = flat(5, drawn, law, None, 400)

    def narrow(weights: Weights, highest: int) -> Any:
        low, high = starting_windows(weights, highest)
        return fitted(weights.tree, low + (high - low) // 3, high - (high - low) // 3)

    monkeypatch.setattr(tree_counts, "starting_windows", narrow)
    monkeypatch.setattr(tree_counts, "_MOST_PASSES", most)
    found = flat(5, drawn, law, None, 400)
    assert found.masses.size == found.start[-1]
    close = abs(found.log_evidence - right.log_evidence) < 1e-4
    assert close or most == 1


def test_windows_leave_out_what_no_other_counts_add_up_to() -> None:
    """By the lists of all counts; where no parts add up to a sum's window, it is theirs."""
    tree, rng = Tree.of(np.array([4, 4, 5, 5, 6, 6, -1])), np.random.default_rng(5)
    pairs = {node: (int(tree.left[node]), int(tree.right[node])) for node in (4, 5, 6)}
    empty = 0
    for _ in range(300):
        low = rng.integers(0, [6] * 4 + [12, 12, 24])
        high = low + rng.integers(0, 6, 7)
        window = [set(range(a, b + 1)) for a, b in zip(low, high, strict=True)]
        for node, (left, right) in pairs.items():
            sums = {a + b for a in window[left] for b in window[right]}
            empty += not window[node] & sums
            window[node] = window[node] & sums or sums
        for node, both in reversed(pairs.items()):
            for one, other in (both, both[::-1]):
                left_over = {s - b for s in window[node] for b in window[other]}
                window[one] = window[one] & left_over
        found = np.array(fitted(tree, low, high))
        assert found.tolist() == [[of(each) for each in window] for of in (min, max)]
    assert empty > 30


def test_two_tables_of_the_same_counts_may_have_them_in_any_order() -> None:
    """A cycle of three, which is not its own inverse; negative control: the inverse."""
    fine = [f"{part}{half}" for part in "abc" for half in "12"]
    parts = {part: (f"{part}1", f"{part}2") for part in "abc"}
    counts = {"a": 400, "b": 40, "c": 160}

    def table(labels: Any, merged: Any = ()) -> ob.Release:
        drawn = tuple(counts[label[0]] // (1 if merged else 2) for label in labels)
        return made(drawn, tuple(labels), parts=merged, columns=("v",))

    for order in ("abc", "cab", "bca"):
        tables = {
            "fine": table(fine),
            "one": table("abc", tuple(parts[part] for part in "abc")),
            "other": table(order, tuple(parts[part] for part in order)),
        }
        found = ob.combine_tables(tables, draws_may_agree=True)["other"].counts.mean()
        assert found == pytest.approx([counts[part] for part in order], abs=3)
