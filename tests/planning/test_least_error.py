"""The least error: primal against dual, below every mechanism, and against another program."""

import math
from itertools import product
from typing import Any

import numpy as np
import oracles
import pytest
from scipy.optimize import linprog

import opendp_bayes as ob
from opendp_bayes.planning import least_error as module
from opendp_bayes.planning.least_error import LARGEST_PROGRAM, least_error

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
    templates = [
        ob.LaplaceParameters(1.0),
        ob.LaplaceParameters(1.0, "floored"),
        ob.LaplaceParameters(1.0, total="bounded"),
        ob.LaplaceParameters(1.0, "floored", "bounded"),
        ob.KNormParameters(1.0),
        ob.HellingerExponential(1.0),
        ob.HellingerExponential(1.0, "local"),
        ob.SmoothHellingerExponential(1.0),
        ob.PermuteAndFlip(1.0),
    ]
    found = []
    for template in templates:
        try:
            scaled = ob.calibrate(template, size=size, prior=prior, epsilon=epsilon, tune=False)
            scaled.check(size=size, prior=np.array(prior))
        except ValueError:  # it would ignore the data
            continue
        found.append(scaled)
    return found


@pytest.mark.parametrize(("size", "prior", "epsilon"), SETTINGS, ids=str)
def test_certified_and_below_every_mechanism(
    size: int, prior: tuple[float, ...], epsilon: float
) -> None:
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
def test_against_the_program_written_out(
    size: int, prior: tuple[float, ...], epsilon: float
) -> None:
    least = least_error(size, prior, epsilon)
    assert least.value == pytest.approx(by_definition(size, prior, epsilon, False), abs=1e-6)
    assert least.worst_case == pytest.approx(by_definition(size, prior, epsilon, True), abs=1e-6)


def test_one_record_of_two_categories() -> None:
    """Randomised response, in closed form."""
    least = least_error(1, [1.0, 1.0], 1.0)
    flipped = 1 / (1 + math.e)
    distance = float(ob.hellinger_distance([2.0, 1.0], [1.0, 2.0]))
    assert least.value == pytest.approx(flipped * distance, rel=1e-9)
    assert least.worst_case == pytest.approx(flipped * distance, rel=1e-9)


def test_any_multipliers_prove_a_bound() -> None:
    """What is certified does not depend on the solver: made-up multipliers prove less, never
    more.
    """
    sets = np.array(oracles.data_sets(6, 2))
    program = module.Program.of(sets, np.ones(2), 0.8)
    weights = np.full(7, 1 / 7)
    least = least_error(6, [1.0, 1.0], 0.8)
    rng = np.random.default_rng(1)
    assert program._proved(weights, np.zeros(program.first.size * 7)) == 0.0
    found = program._solve((weights[:, None] * program.distance).ravel(), None, 1.0, "highs-ds")
    best = found.ineqlin.marginals / 7
    for part in (0.0, 0.01, 0.3):
        noise = 1 + part * rng.standard_normal(best.size)
        proved = program._proved(weights, best * noise)
        assert proved <= least.value
        assert (proved > least.value - 1e-6) == (part == 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_discrete_laplace_noise_is_optimal_for_two_categories_after_a_remapping(seed: int) -> None:
    """Found, not proved: random sizes, losses, priors and both averages."""
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(2, 25)), float(np.exp(rng.uniform(-3, 0.7)))
    prior, average = np.exp(rng.uniform(-2, 2, 2)), ("uniform", "prior")[seed % 2]
    least = least_error(size, prior, epsilon, average)
    found = least.standing(ob.LaplaceParameters(1 / epsilon))
    assert found.remapped_ratio == pytest.approx(1, abs=1e-9)


def test_an_average_by_the_prior() -> None:
    least = least_error(6, [0.2, 0.2], 1.0, "prior")
    assert least.value < 0.85 * least_error(6, [0.2, 0.2], 1.0).value
    same = least_error(6, [1.0, 1.0], 1.0, "prior")
    assert same.value == pytest.approx(least_error(6, [1.0, 1.0], 1.0).value, rel=1e-9)


def test_a_plan_of_few_records_shows_it() -> None:
    found = ob.plan(size=20, prior=[1.0, 1.0], epsilon=1.0)
    assert found.least == least_error(20, [1.0, 1.0], 1.0)
    [note] = [note for note in found.sheet().notes if "no 1-private mechanism" in note]
    assert "is 0.1477; no 1-private mechanism has one below 0.1477" in note
    assert '"certified":0.14766' in found.to_json()
    for other in ({"epsilon": 1.0, "d_in": 2}, {"rho": 0.1}, {"epsilon": 1.0, "size": 60}):
        setting: dict[str, Any] = {"size": 20, "prior": [1.0, 1.0], **other}
        assert ob.plan(**setting, mechanisms=[ob.LaplaceParameters(1.0)]).least is None


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=f"there are 91 data sets.* at most {LARGEST_PROGRAM}"):
        least_error(12, [1.0] * 3, 1.0)
    with pytest.raises(ValueError, match="average='worst': must be one of 'uniform', 'prior'"):
        least_error(3, [1.0, 1.0], 1.0, "worst")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="epsilon=0: must be finite and greater than 0"):
        least_error(3, [1.0, 1.0], 0)
