"""Losses at distances of counts in three norms, beside those of every move within them."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting.divergences import delta_from_rho
from opendp_bayes.accounting.losses import curve_of, loss_of
from opendp_bayes.accounting.pairs import all_pairs, largest_group
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.unlisted.threshold_losses import delta_of_several, loss_of_discovery, new_shown
from opendp_bayes.unlisted.threshold_pairs import chance_to_show, group_delta
from opendp_bayes.unlisted.threshold_profile import delta_of_discovery
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
)
from tests.helpers.listed_keys import partitions

LIMITS = (4, 1), (4, 2), (5, 2), (5, 3), (6, 3)
DISTANCES = [*(Distance.limited(*of) for of in LIMITS), Distance(6, 20, 4), Distance.of(4)]


def moves_within(distance: Distance) -> list[tuple[int, ...]]:
    """Every move up within a distance, by what each count moves by, largest first."""
    numbers = range(distance.records + 1)
    every = [one for number in numbers for one in partitions(number, distance.largest)]
    return [one for one in every if sum(part**2 for part in one) <= distance.squared]


def law_of(noise: str, scale: float, reach: int) -> Any:
    z = np.arange(-reach, reach + 1)
    log_p = -(z**2) / (2 * scale**2) if noise == "gaussian" else -np.abs(z) / scale
    p = np.exp(log_p - log_p.max())
    return z, p / p.sum()


def losses_of(noise: str, scale: float, moved: tuple[int, ...]) -> tuple[Any, Any]:
    """Log-ratios of what is drawn and their probabilities, of counts that move, by listing."""
    z, p = law_of(noise, scale, math.ceil(12 * scale) + 12)
    losses, masses = np.zeros(1), np.ones(1)
    for move in moved:
        if noise == "gaussian":
            ratio = move * (2 * z + move) / (2 * scale**2)
        else:
            ratio = (np.abs(z + move) - np.abs(z)) / scale
        values, at = np.unique(np.round(ratio, 9), return_inverse=True)
        one = np.bincount(at.ravel(), p)
        losses = np.add.outer(losses, values).ravel()
        values, at = np.unique(np.round(losses, 9), return_inverse=True)
        losses, masses = values, np.bincount(at.ravel(), np.multiply.outer(masses, one).ravel())
    return losses, masses


def delta_at(losses: Any, masses: Any, epsilon: float) -> float:
    return float(np.sum(masses * -np.expm1(np.minimum(epsilon - losses, 0))))


def renyi(losses: Any, masses: Any, order: float) -> float:
    seen = masses > 0
    logs = np.log(masses[seen]) + (order - 1) * losses[seen]
    return float(np.logaddexp.reduce(logs) / (order - 1))


def setting_of(noise: str, scale: float, size: int | None) -> Setting:
    kinds: dict[str, Any] = {"gaussian": ob.GaussianParameters, "laplace": ob.LaplaceParameters}
    return Setting.of(kinds[noise](scale, total="private"), size, np.ones(9))


@pytest.mark.parametrize(
    ("noise", "scale", "distance"),
    [
        pytest.param(*noise, of, marks=[pytest.mark.slow] * (noise[1] == 3.0 and of.records > 4))
        for noise in [("gaussian", 3.0), ("gaussian", 1.2), ("laplace", 2.5)]
        for of in DISTANCES
    ],
    ids=str,
)
def test_no_move_loses_more_than_the_map(noise: str, scale: float, distance: Distance) -> None:
    for size, sides in ((None, 1), (100, 2)):
        setting = setting_of(noise, scale, size)
        exact, proven = (loss_of(setting, distance), setting.proven_loss(distance))
        curve = curve_of(setting, distance)
        most = {"rho": 0.0, "epsilon": 0.0, "delta": 0.0}
        for moved in moves_within(distance):
            losses, masses = losses_of(noise, scale, moved * sides)
            for epsilon in (0.0, 0.3, 1.0, 2.5):
                delta = delta_at(losses, masses, epsilon)
                assert delta <= curve.delta(epsilon) * (1 + 1e-7) + 1e-15
                most["delta"] = max(most["delta"], delta / max(curve.delta(epsilon), 1e-300))
            for order in (1.01, 1.5, 2.0, 4.0):
                rho = renyi(losses, masses, order) / order
                most["rho"] = max(most["rho"], rho)
                assert rho <= exact.rho * (1 + 1e-7)
            if noise == "laplace":
                assert losses.max() <= exact.epsilon * (1 + 1e-7)
                most["epsilon"] = max(most["epsilon"], losses.max())
        assert exact.rho <= proven.rho
        if noise == "gaussian":  # the move of the largest squares attains it
            squares = max(sum(part**2 for part in moved) for moved in moves_within(distance))
            assert exact.rho == pytest.approx(sides * squares / (2 * scale**2))
            assert most["rho"] == pytest.approx(exact.rho, rel=1e-6)
        else:
            assert most["epsilon"] == pytest.approx(exact.epsilon)


def test_what_the_listing_of_moves_notices() -> None:
    """Negative control: the loss of a distance in fewer records per count is too small."""
    losses, masses = losses_of("gaussian", 3.0, (2, 2))
    curve = curve_of(setting_of("gaussian", 3.0, None), Distance.limited(4, 1))
    assert delta_at(losses, masses, 0.3) > curve.delta(0.3) * 1.1
    assert renyi(losses, masses, 2.0) / 2 > curve.loss.rho * 1.1


@pytest.mark.parametrize("largest", [1, 2])
def test_moves_of_one_and_two_have_the_exact_profile(largest: int) -> None:
    curve = curve_of(setting_of("gaussian", 3.0, None), Distance.limited(6, largest))
    losses, masses = losses_of("gaussian", 3.0, (largest,) * (6 // largest))
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        assert curve.delta(epsilon) == pytest.approx(delta_at(losses, masses, epsilon), rel=1e-6)


def test_delta_from_rho_is_a_bound_and_no_worse_than_the_closed_form() -> None:
    for scale, epsilon in product((1.0, 3.0, 20.0), (0.05, 0.5, 2.0, 6.0)):
        losses, masses = losses_of("gaussian", scale, (1,))
        rho = 1 / (2 * scale**2)
        found = delta_from_rho(rho, epsilon)
        assert delta_at(losses, masses, epsilon) <= found
        if epsilon > rho:
            closed = math.exp(-((epsilon - rho) ** 2) / (4 * rho))
            assert found <= closed * (1 + 1e-9) + 1e-300
    assert (delta_from_rho(0.0, 1.0), delta_from_rho(math.inf, 1.0)) == (0.0, 1.0)
    assert delta_from_rho(1e-12, 5.0) > 0.0


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_keys_are_hidden_however_records_are_divided(distance: Distance) -> None:
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**6)
    for law in (LaplaceThreshold(2.0, 9), GaussianThreshold(2.0, 6)):
        most = new_shown(law, distance)
        for moved in moves_within(Distance.limited(distance.records, distance.largest)):
            none = math.prod(1 - chance_to_show(law, part) for part in moved)
            assert 1 - none <= most
    for moved in moves_within(distance):
        lost = 1 - math.prod(1 - group_delta(epsilon, delta, part) for part in moved)
        assert lost <= Fraction(delta_of_several(epsilon, delta, distance))


@pytest.mark.parametrize(
    "law", [OptimalThreshold(0.4, 1e-6), LaplaceThreshold(3.0, 30), GaussianThreshold(4.0, 30)]
)
@pytest.mark.parametrize(("keys", "records"), [(1, 3), (2, 2), (3, 2), (4, 1)])
def test_a_discovery_loses_no_more_than_the_map(law: Any, keys: int, records: int) -> None:
    distance = Distance.limited(keys * records, records)
    loss = loss_of_discovery(Discovery(law), distance, concentrated=False, delta=1e-3)
    exact = delta_of_discovery(law, min(loss.epsilon, 50.0), keys=keys, records=records)
    assert exact <= loss.delta * (1 + 1e-9)
    whole = loss_of_discovery(Discovery(law), keys * records, concentrated=False, delta=1e-3)
    assert (loss.epsilon, loss.delta) <= (whole.epsilon * (1 + 1e-9), whole.delta * (1 + 1e-9))


@pytest.mark.parametrize(("size", "k"), [(10, 2), (3000, 2), (5000, 2), (12, 3), (60, 3)])
def test_groups_are_compared_up_to_the_largest_that_is_feasible(size: int, k: int) -> None:
    setting = Setting.of(ob.mechanisms.HellingerExponential(0.5), size, np.ones(k))
    most = largest_group(setting)
    for records in range(1, most + 1):
        found = all_pairs(setting, Distance.of(records))
        assert found is not None
        assert len(found) == records
    assert all_pairs(setting, Distance.of(most + 1)) is None
