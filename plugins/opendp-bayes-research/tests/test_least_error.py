"""The least error: primal against dual, below every mechanism, and against another program."""

import math
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import opendp_bayes as ob
from opendp_bayes.mathematics.zero_sum import noise_vectors
from opendp_bayes_research.least_error import least_error
from opendp_bayes_research.linear_program import Program
from tests.helpers import oracles
from tests.helpers.by_path import loaded
from tests.helpers.sources import ROOT
from tests.helpers.sweeps import some_of

SETTINGS: list[tuple[int, tuple[float, ...], float]] = [
    *((size, (1.0, 1.0), epsilon) for size, epsilon in product((1, 4, 12), (0.1, 0.5, 1.0, 2.0))),
    *((size, (0.3, 2.0), epsilon) for size, epsilon in product((2, 9, 20), (0.2, 1.0, 1.5))),
    *((size, (20.0, 5.0), 0.7) for size in (3, 15)),
    *((size, (0.5, 0.5), epsilon) for size, epsilon in product((6, 25), (0.05, 0.4, 1.0))),
    *((size, (1.0,) * 3, epsilon) for size, epsilon in product((1, 2, 4), (0.1, 0.5, 1.0, 3.0))),
    *((size, (0.2, 1.0, 4.0), epsilon) for size, epsilon in product((2, 3), (0.3, 1.0))),
    *((size, (1.0,) * 4, epsilon) for size, epsilon in product((1, 2), (0.3, 1.0, 2.0))),
]


def mechanisms(size: int, prior: tuple[float, ...], epsilon: float) -> list[Any]:
    """Every built-in kind at its smallest scale."""
    exponential = ob.mechanisms.HellingerExponential
    templates = [ob.LaplaceParameters(1.0, *of) for of in ((), ("floored",))]
    templates += [ob.LaplaceParameters(1.0, of, "bounded") for of in ("discrete", "floored")]
    templates += [ob.KNormParameters(1.0), exponential(1.0), exponential(1.0, "local")]
    templates += [ob.mechanisms.SmoothHellingerExponential(1.0), ob.mechanisms.PermuteAndFlip(1.0)]
    found = []
    for template in templates:
        try:
            scaled = ob.calibrate(template, size=size, prior=prior, epsilon=epsilon, tune=False)
            scaled.check(size=size, prior=np.array(prior))
        except ValueError:  # it would ignore the data
            continue
        found.append(scaled)
    return found


@pytest.mark.parametrize(("size", "prior", "epsilon"), some_of(SETTINGS, 4), ids=str)
def test_certified_and_below_every_mechanism(size, prior, epsilon):
    assert len(SETTINGS) >= 50
    least = least_error(size, prior, epsilon)
    assert 0 <= least.value - least.certified <= 1e-9
    assert 0 <= least.worst_case - least.certified_worst_case <= 1e-9
    assert least.certified <= least.worst_case
    for mechanism in mechanisms(size, prior, epsilon):
        try:
            found = least.standing(mechanism)
        except ValueError:  # too many noise vectors to list
            assert isinstance(mechanism, ob.KNormParameters)
            continue
        assert least.certified <= found.remapped * (1 + 1e-12)
        assert least.certified <= found.error * (1 + 1e-12)
        if getattr(mechanism, "total", None) != "bounded":  # whose releases have other sums
            assert found.remapped <= found.error * (1 + 1e-12)
        assert least.certified_worst_case <= found.worst_case * (1 + 1e-12)
        assert found.ratio == pytest.approx(found.error / least.value)


def test_notices_a_mechanism_with_too_little_noise() -> None:
    """The negative control: at 0.9 of the scale the error is below the bound."""
    least = least_error(20, [1.0, 1.0], 1.0)
    assert least.standing(ob.LaplaceParameters(0.9)).error < least.certified
    assert least.standing(ob.LaplaceParameters(1.0)).error >= least.certified


def by_definition(size: int, prior: tuple[float, ...], epsilon: float, worst: bool) -> float:
    """The same program written out with distances in ball arithmetic and dense matrices."""
    sets = oracles.data_sets(size, len(prior))
    posteriors = [oracles.posterior(counts, prior) for counts in sets]
    c = len(sets)
    distance = np.array([[float(oracles.hellinger(a, b)) for b in posteriors] for a in posteriors])
    rows = []
    for i, counts in enumerate(sets):
        for other in oracles.neighbours(counts):
            for r in range(c):
                row = np.zeros(c * c + 1)
                row[i * c + r], row[sets.index(other) * c + r] = 1.0, -math.exp(epsilon)
                rows.append(row)
    for i in range(c):
        row = np.zeros(c * c + 1)
        row[i * c : (i + 1) * c], row[-1] = distance[i], -1.0
        rows.append(row)
    sums = np.zeros((c, c * c + 1))
    for i in range(c):
        sums[i, i * c : (i + 1) * c] = 1
    cost = np.append(np.zeros(c * c), 1.0) if worst else np.append(distance.ravel() / c, 0.0)
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(c))
    return float(found.fun)


@pytest.mark.parametrize(
    ("size", "prior", "epsilon"), [(5, (1.0, 1.0), 0.7), (2, (0.5, 1.0, 2.0), 1.0)]
)
def test_against_the_program_written_out(size, prior, epsilon):
    least = least_error(size, prior, epsilon)
    assert least.value == pytest.approx(by_definition(size, prior, epsilon, False), abs=1e-6)
    assert least.worst_case == pytest.approx(by_definition(size, prior, epsilon, True), abs=1e-6)


def test_one_record_of_two_categories_and_multipliers_that_prove_a_bound() -> None:
    """Randomised response, in closed form. Whatever the solver finds: made-up multipliers prove
    less, never more.
    """
    least = least_error(1, [1.0, 1.0], 1.0)
    flipped = 1 / (1 + math.e)
    distance = float(ob.mechanisms.hellinger_distance([2.0, 1.0], [1.0, 2.0]))
    assert least.value == pytest.approx(flipped * distance, rel=1e-9)
    assert least.worst_case == pytest.approx(flipped * distance, rel=1e-9)
    sets = np.array(oracles.data_sets(6, 2))
    program = Program.of(sets, np.ones(2), 0.8)
    weights = np.full(7, 1 / 7)
    least = least_error(6, [1.0, 1.0], 0.8)
    rng = np.random.default_rng(1)
    assert program._proved(weights, np.zeros(program.first.size * 7)) == 0.0
    found = program._solve(weights, 1.0, "highs-ds")
    best = found.ineqlin.marginals / 7
    for part in (0.0, 0.01, 0.3):
        noise = 1 + part * rng.standard_normal(best.size)
        proved = program._proved(weights, best * noise)
        assert proved <= least.value
        assert (proved > least.value - 1e-6) == (part == 0.0)


def geometric(size: int, epsilon: float) -> Any:
    """Discrete Laplace noise clamped to 0..size, a row for each count."""
    table = np.exp(-epsilon * np.abs(np.subtract.outer(range(size + 1), range(size + 1))))
    table[:, 1:-1] *= 1 - math.exp(-epsilon)
    return table / (1 + math.exp(-epsilon))


def smallest_average(loss: Any, weights: Any, epsilon: float) -> float:
    """Of all ε-private mechanisms on counts, from the program written out."""
    c = len(loss)
    rows = []
    for x, r in product(range(c - 1), range(c)):
        for one, other in ((x, x + 1), (x + 1, x)):
            row = np.zeros((c, c))
            row[one, r], row[other, r] = math.exp(-epsilon), -1.0
            rows.append(row.ravel())
    sums = np.repeat(np.eye(c), c, axis=1)
    cost = (weights[:, None] * loss).ravel()
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(c))
    return float(found.fun)


@pytest.mark.parametrize("seed", range(8))
def test_the_theorem_of_two_categories(seed: int) -> None:
    """Losses that increase to either side of the truth, each in its own way, and any weights."""
    rng = np.random.default_rng(seed)
    c, epsilon = int(rng.integers(2, 9)), float(np.exp(rng.uniform(-2, 0.7)))
    steps = rng.exponential(size=(c, c)) * (rng.random((c, c)) < 0.6)
    above, below = np.triu(steps, 1).cumsum(axis=1), np.tril(steps, -1)[:, ::-1].cumsum(axis=1)
    loss = np.triu(above, 1) + np.tril(below[:, ::-1], -1)
    weights = rng.dirichlet(np.full(c, 0.5))
    remapped = ((weights[:, None] * geometric(c - 1, epsilon)).T @ loss).min(axis=1).sum()
    assert smallest_average(loss, weights, epsilon) == pytest.approx(remapped, abs=1e-8)


def test_the_theorem_needs_losses_that_increase() -> None:
    """The negative control: of losses in any order, others do better than noise."""
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(10):
        loss, weights = rng.random((4, 4)), rng.dirichlet(np.ones(4))
        remapped = ((weights[:, None] * geometric(3, 1.0)).T @ loss).min(axis=1).sum()
        gains.append(remapped - smallest_average(loss, weights, 1.0))
    assert min(gains) > -1e-8
    assert max(gains) > 1e-3


@pytest.mark.parametrize(
    ("size", "prior", "epsilon"),
    [(5, (1.0, 1.0), 0.2), (12, (0.3, 2.0), 0.5), (20, (1.0, 1.0), 1.0)],
)
def test_the_worst_case_of_two_categories(size, prior, epsilon):
    """The best random remapping of discrete Laplace noise has the least worst case."""
    c = size + 1
    counts = np.stack([np.arange(c), size - np.arange(c)], axis=1) + np.array(prior)
    distance = ob.mechanisms.hellinger_distance(counts[:, None], counts[None])
    noise = geometric(size, epsilon)
    # Variables: the remapping of every release, and the largest error.
    errors = [np.append(np.outer(noise[x], distance[x]).ravel(), -1.0) for x in range(c)]
    sums = np.hstack([np.repeat(np.eye(c), c, axis=1), np.zeros((c, 1))])
    cost = np.append(np.zeros(c * c), 1.0)
    found = linprog(cost, np.array(errors), np.zeros(c), sums, np.ones(c))
    assert found.fun == pytest.approx(least_error(size, prior, epsilon).worst_case, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_discrete_laplace_noise_is_optimal_for_two_categories_after_a_remapping(seed: int) -> None:
    """Random sizes, losses, priors and both averages."""
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(2, 25)), float(np.exp(rng.uniform(-3, 0.7)))
    prior, average = np.exp(rng.uniform(-2, 2, 2)), ("uniform", "prior")[seed % 2]
    least = least_error(size, prior, epsilon, average)
    found = least.standing(ob.LaplaceParameters(1 / epsilon))
    assert found.remapped_ratio == pytest.approx(1, abs=1e-9)


def test_the_lattice_of_three_categories() -> None:
    """Of vectors up to symmetry: how many, and that their law is log-supermodular."""
    vectors = np.array([z for z in product(range(-12, 13), repeat=3) if sum(z) == 0])
    sizes = np.sort(np.abs(vectors), axis=1)[:, :2]  # m, M; the third is their sum
    kinds, number = np.unique(sizes, axis=0, return_counts=True)
    law = {
        (int(large), int(small)): int(times)
        for (small, large), times in zip(kinds, number, strict=True)
        if large + small <= 12
    }
    for (large, small), times in law.items():
        expected = 12 // (1 + (small == 0)) // (1 + (small == large)) if large else 1
        assert times == expected

    def supermodular(law: dict[tuple[int, int], int]) -> bool:
        return all(
            law[min(a, c), min(b, d)] * law[max(a, c), max(b, d)] >= law[a, b] * law[c, d]
            for (a, b), (c, d) in product(law, law)
            if (max(a, c), max(b, d)) in law
        )

    assert supermodular(law)
    assert not supermodular({**law, (2, 2): 24})


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return loaded(ROOT / "benchmarks" / "optimality.py")


def test_less_noise_than_k_norm_but_not_near_the_data(benchmark: ModuleType) -> None:
    """Where two entries of either sign are more likely, at ε = 0.08; not so at 0.2. The
    control: with a mean that K-norm noise does not have there is some.
    """
    for epsilon, largest, less in ((0.08, 280, True), (0.2, 110, False)):
        sums = benchmark.by_signs(epsilon, largest)
        q = math.exp(-epsilon)
        total = sum(math.comb(3, i) ** 2 * q**i for i in range(4)) / (1 - q) ** 3
        weight, cost = sums[True] + sums[False]
        assert weight == pytest.approx(total, rel=1e-6)
        other, other_cost = math.exp(epsilon) * sums[True] + sums[False]
        assert (other_cost / other < cost / weight * (1 - 1e-4)) == less
    assert benchmark.gain_within(4, 0.3, 16, benchmark.mean_norm(4, 0.3, 60)) < 1e-9
    assert benchmark.gain_within(4, 0.3, 16, 8.0) > 0.01
    for k in (4, 5):
        vectors = noise_vectors(6, k)
        weights = np.exp(-0.7 * np.maximum(vectors, 0).sum(axis=1))
        mean = weights @ np.sqrt((vectors**2).sum(axis=1)) / weights.sum()
        assert benchmark.mean_norm(k, 0.7, 6) == pytest.approx(mean, rel=1e-12)


def test_that_noise_is_private() -> None:
    """By brute force; more than `e^ε` for such vectors would not be."""
    epsilon = 0.08

    def log_weight(z: tuple[int, ...], factor: float) -> float:
        both = sum(entry > 0 for entry in z) == sum(entry < 0 for entry in z) == 2
        return factor * epsilon * both - epsilon * sum(map(abs, z)) / 2

    def loss(factor: float) -> float:
        return max(
            abs(log_weight(z, factor) - log_weight(tuple(np.add(z, step).tolist()), factor))
            for z in product(range(-3, 4), repeat=4)
            if sum(z) == 0
            for step in ((1, -1, 0, 0), (0, 1, -1, 0), (0, 1, 0, -1))
        )

    assert loss(1.0) == pytest.approx(epsilon)
    assert loss(1.05) > 1.04 * epsilon


def test_averages_by_the_prior_and_the_largest_program_are_solved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    least = least_error(6, [0.2, 0.2], 1.0, "prior")
    assert least.value < 0.85 * least_error(6, [0.2, 0.2], 1.0).value
    same = least_error(6, [1.0, 1.0], 1.0, "prior")
    assert same.value == pytest.approx(least_error(6, [1.0, 1.0], 1.0).value, rel=1e-9)
    monkeypatch.setitem(least_error.__globals__, "LARGEST_PROGRAM", 4)
    assert 0 < least_error(3, [1.0, 1.0], 1.0).value < 1
    with pytest.raises(ValueError, match="there are 5 data sets"):
        least_error(4, [1.0, 1.0], 1.0)
