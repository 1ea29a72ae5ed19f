"""Plans: expected errors against sums and draws made otherwise, the recommendation over many settings, and the inverse questions."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import (
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    PermuteAndFlip,
    PrivacyLoss,
    Release,
    SmoothHellingerExponential,
    exact_loss,
    hellinger_distance,
    plan,
    smallest_epsilon,
    smallest_size,
)
from opendp_bayes import expected_error as errors
from opendp_bayes.accounting.calibration import relative_loss, smallest_scale
from opendp_bayes.expected_error import expected_error
from opendp_bayes.planning import PlanRow, _errors, choose, usual

#: Standard errors between an expectation and its simulation. Five are exceeded once in 1.7 million times.
DEVIATIONS = 5.0

LISTED: list[tuple[Any, list[int]]] = [
    (LaplaceParameters(1.5), [12, 30]),
    (LaplaceParameters(1.5), [0, 30]),
    (LaplaceParameters(1.0, "floored"), [3, 4, 5]),
    (LaplaceParameters(1.0, "floored", "bounded"), [3, 4, 5]),
    (LaplaceParameters(0.7, total="bounded"), [2, 9]),
    (KNormParameters(1.2), [4, 30]),
    (KNormParameters(0.8), [2, 5, 20]),
    (KNormParameters(0.5), [1, 2, 3, 4]),
    (HellingerExponential(0.1), [5, 35]),
    (SmoothHellingerExponential(1.2, gamma=0.3), [7, 20, 3]),
    (PermuteAndFlip(0.2), [10, 10]),
]


@pytest.mark.parametrize(("mechanism", "counts"), LISTED, ids=str)
def test_an_expectation_is_the_sum_over_the_whole_law(mechanism: Any, counts: list[int]) -> None:
    prior = np.linspace(0.5, 1.5, len(counts))
    found = expected_error(mechanism, np.array(counts), prior)
    outcomes, log_p = mechanism.log_pmf(counts, prior)
    released, true = outcomes + prior, np.array(counts) + prior
    moved = np.abs(released / released.sum(axis=1, keepdims=True) - true / true.sum()).sum(axis=1) / 2
    assert found.method == "exact"
    assert found.hellinger == pytest.approx(np.exp(log_p) @ hellinger_distance(released, true), rel=1e-5)
    assert found.total_variation == pytest.approx(np.exp(log_p) @ moved, rel=1e-5)


DRAWN: list[tuple[Any, list[int], int]] = [
    (LaplaceParameters(1.0), [200_000, 800_000], 20_000),
    (LaplaceParameters(1.0, total="private"), [50, 60, 7], 10_000),
    (LaplaceParameters(2.0, "floored", "private"), [50, 60, 7, 0, 3], 6_000),
    (LaplaceParameters(2.0, "discrete", "bounded"), [50, 60, 7, 0, 3], 6_000),
    (KNormParameters(10.0), [27, 27, 26], 10_000),
    (KNormParameters(1.0), [10, 20, 30, 40, 50, 0], 6_000),
    (HellingerExponential(0.05), [300, 500, 400, 900], 100_000),
    (SmoothHellingerExponential(1.5, gamma=0.1), [700_000, 300_000], 100_000),
]


def deviations(mechanism: Any, counts: list[int], draws: int, factor: float = 1.0) -> float:
    """How many standard errors lie between the expected Hellinger error and the mean over draws of the mechanism's own sampler."""
    prior = np.ones(len(counts))
    expected = expected_error(replace(mechanism, scale=factor * mechanism.scale), np.array(counts), prior)
    distance = hellinger_distance(mechanism.sample(counts, prior, draws) + prior, np.array(counts) + prior)
    return abs(float(distance.mean()) - expected.hellinger) / math.hypot(expected.standard_error, float(distance.std()) / math.sqrt(draws))


@pytest.mark.parametrize(("mechanism", "counts", "draws"), DRAWN, ids=str)
def test_an_expectation_is_the_mean_over_releases(mechanism: Any, counts: list[int], draws: int) -> None:
    assert deviations(mechanism, counts, draws) < DEVIATIONS


def test_a_scale_that_is_off_by_a_tenth_is_seen() -> None:
    """The negative control of the test above."""
    assert deviations(LaplaceParameters(1.0), [200_000, 800_000], 20_000, factor=1.1) > DEVIATIONS
    assert deviations(KNormParameters(1.0), [10, 20, 30, 40, 50, 0], 6_000, factor=1.1) > DEVIATIONS


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "counts", "draws"), DRAWN, ids=str)
def test_an_expectation_is_within_one_percent_of_simulation(mechanism: Any, counts: list[int], draws: int) -> None:
    """The simulation has a standard error of about 0.2 %, the expectation, where it is one too, of about 0.3 %."""
    prior, true = np.ones(len(counts)), np.array(counts) + 1
    simulated = float(np.mean(hellinger_distance(mechanism.sample(counts, prior, 120_000) + prior, true)))
    assert expected_error(mechanism, np.array(counts), prior).hellinger == pytest.approx(simulated, rel=0.01)


@pytest.mark.parametrize("mechanism", [LaplaceParameters(2.0), LaplaceParameters(1.0, "floored", "private"), KNormParameters(1.0)], ids=str)
def test_listed_and_simulated_noise_agree(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, prior = np.array([9, 20, 31]), np.ones(3)
    listed = expected_error(mechanism, counts, prior)
    monkeypatch.setattr(errors, "_LARGEST_NOISE", 0)
    simulated = expected_error(mechanism, counts, prior)
    assert (listed.method, simulated.method) == ("exact", "simulated")
    assert listed.standard_error == 0 < simulated.standard_error < 0.01 * simulated.hellinger
    assert abs(listed.hellinger - simulated.hellinger) < DEVIATIONS * simulated.standard_error
    assert simulated.interval_width == pytest.approx(listed.interval_width, rel=0.01)
    assert expected_error(mechanism, counts, prior) == simulated, "the same question has the same answer"


def test_the_interval_width_is_that_of_noise_aware_intervals_away_from_the_edge() -> None:
    counts, prior, mechanism = np.array([80, 120]), np.ones(2), LaplaceParameters(5.0)
    widths = []
    for shift in mechanism.sample(counts, prior, 100).tolist():
        release = Release(tuple(shift), ("a", "b"), (1.0, 1.0), mechanism, 200, 1, PrivacyLoss(0.2, 0.02, 0.4), "MaxDivergence")
        lower, upper = release.posterior.interval(0.95)
        widths.append(upper[0] - lower[0])
    assert expected_error(mechanism, counts, prior).interval_width == pytest.approx(np.mean(widths), rel=0.03)


# --- the recommendation ------------------------------------------------------------------------------------------------------------------------


def settings() -> Iterator[dict[str, Any]]:
    """200 public settings."""
    for size, k, epsilon, alpha in product((3, 10, 50, 500), (2, 3, 5), (0.1, 0.5, 1.0, 3.0), (0.5, 1.0, 20.0)):
        yield {"size": size, "prior": (alpha,) * k, "epsilon": epsilon}
    for size, k, rho, alpha in product((50, 500), (2, 3, 5), (0.01, 0.1, 0.5, 2.0), (0.5, 1.0)):
        yield {"size": size, "prior": (alpha,) * k, "rho": rho}
    for epsilon, alpha in product((0.1, 0.5, 1.0, 3.0), (0.5, 1.0)):
        yield {"size": 5000, "prior": (alpha,) * 2, "epsilon": epsilon}


def excess(setting: dict[str, Any]) -> tuple[float, float]:
    """The scores of the plan's recommendation and of `choose`, relative to the best mechanism's."""
    found = plan(**setting)
    prior, loss = np.array(found.prior), relative_loss(**found.budget)
    chosen = choose(lambda template: smallest_scale(template, lambda value: loss(value, found.size, prior, 1, "exact")), found.size, prior)
    best = min(row.score for row in found.rows)
    score = PlanRow(chosen, None, _errors(chosen, prior, found.proportions, found.records)).score
    return found.rows[0].score / best, score / best


QUICK = {2, 17, 32, 41, 55, 60, 73, 88, 96, 100, 108, 109, 115, 121, 126, 130, 144, 147, 168, 170}


@pytest.mark.parametrize(
    "setting", [pytest.param(setting, marks=() if i in QUICK else pytest.mark.slow) for i, setting in enumerate(settings())], ids=str
)
def test_the_recommendation_is_within_five_percent_of_the_best(setting: dict[str, Any]) -> None:
    recommended, automatic = excess(setting)
    assert recommended <= 1.01
    assert automatic <= 1.05
