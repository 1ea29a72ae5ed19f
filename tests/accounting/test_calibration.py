"""Calibration: as private as asked, by the smallest scale and the smoothness that serves."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import KNormParameters, LaplaceParameters, calibrate, exact_loss, privacy_profile
from opendp_bayes.accounting import calibration
from opendp_bayes.accounting.calibration import counts_in_proportion, smallest_scale
from opendp_bayes.accounting.losses import Curve, delta_from_bounds
from opendp_bayes.mechanisms import (
    HellingerExponential,
    PermuteAndFlip,
    SmoothHellingerExponential,
    hellinger_distance,
)
from opendp_bayes.mechanisms.neighbours import ONE_RECORD
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers.sweeps import some_of

BETA_ONE = (1.0, 1.0)
MECHANISMS: list[Any] = [HellingerExponential(1.0), HellingerExponential(1.0, sensitivity="local")]
MECHANISMS += [SmoothHellingerExponential(1.0, **of) for of in ({"gamma": 0.3}, {"beta": 0.1})]
MECHANISMS += [LaplaceParameters(1.0), LaplaceParameters(1.0, noise="floored", total="bounded")]
MECHANISMS.append(KNormParameters(1.0))
TARGETS: list[dict[str, float]] = [{"epsilon": 1.0}, {"epsilon": 0.5, "delta": 1e-5}]
TARGETS += [{"rho": 0.1}, {"delta": 0.1}, {"epsilon": 0.05}, {"epsilon": 1.0, "delta": 1e-9}]


def within(mechanism, size, prior, d_in, accounting, target):
    """Whether the loss asked for is kept, by the functions that tell the loss."""
    if accounting == "exact":
        loss = exact_loss(mechanism, size=size, prior=prior, d_in=d_in)
        profile = privacy_profile(mechanism, size=size, prior=prior, d_in=d_in)
        if "delta" in target:
            return bool(profile(target.get("epsilon", 0.0)) <= target["delta"])
    else:
        delta = target.get("delta", 0.0)
        loss = mechanism.proven_loss(d_in, size=size, prior=np.array(prior))
        if delta:
            spent = mechanism.proven_loss(d_in, size=size, prior=np.array(prior), delta=delta)
            at = target.get("epsilon", 0.0)
            return spent.epsilon <= at or delta_from_bounds(loss, at) <= delta
    of = "rho" if "rho" in target else "epsilon"
    return bool(getattr(loss, of) <= target[of])


@pytest.mark.parametrize("mechanism", [*MECHANISMS[:3], PermuteAndFlip(1.0)], ids=str)
def test_exponential_mechanisms_take_the_scale_of_epsilon(mechanism, monkeypatch):
    """Where no profile is computed, at every step, for the fifth digit of the scale."""
    pure = calibrate(mechanism, size=30, prior=BETA_ONE, epsilon=1.0, tune=False)
    asked = {"size": 30, "prior": BETA_ONE, "epsilon": 1.0, "delta": 1e-6}
    with monkeypatch.context() as patched:
        patched.setattr(Curve, "delta", None)
        found = calibrate(mechanism, **asked, tune=False)
        with pytest.raises(TypeError, match="not callable"):
            calibrate(LaplaceParameters(1.0), **asked)
    assert pure.scale <= found.scale <= pure.scale * (1 + 1e-8)
    profile = privacy_profile(found, size=30, prior=BETA_ONE)
    assert profile(1.0) == 0.0
    least = replace(found, scale=(1 - 1e-4) * found.scale)
    assert privacy_profile(least, size=30, prior=BETA_ONE)(1.0) > 1e-6


@pytest.mark.parametrize(("mechanism", "target"), some_of(product(MECHANISMS, TARGETS), 8), ids=str)
def test_private_as_asked_and_no_more(mechanism: Any, target: dict[str, float]) -> None:
    for accounting, d_in, (size, prior) in (
        ("exact", 1, (30, BETA_ONE)),
        ("exact", 2, (12, (0.05, 2.0))),
        ("exact", 1, (5, (1.0, 1.0, 1.0))),
        ("proven", 1, (300, (0.3, 0.3))),
        ("proven", 2, (8, (1.0, 0.1, 1.0))),
    ):
        if accounting == "proven" and getattr(mechanism, "sensitivity", "") == "local":
            continue
        if isinstance(mechanism, (LaplaceParameters, KNormParameters)) and size not in (8, 12):
            continue  # noise does not depend on the size
        of = {"size": size, "prior": prior, "accounting": accounting, "d_in": d_in}
        found = calibrate(mechanism, tune=False, **of, **target)
        assert type(found) is type(mechanism)
        assert within(found, size, prior, d_in, accounting, target), (
            f"{found}, {accounting}, d_in = {d_in}"
        )
        if found.scale > 2.0**-40 and math.isfinite(found.scale):
            assert not within(
                replace(found, scale=0.99 * found.scale), size, prior, d_in, accounting, target
            ), f"{found} has too much noise"


def mean_error(mechanism: Any, counts: Any, prior: tuple[float, ...]) -> float:
    """Expected Hellinger distance between the release and the posterior of `counts`."""
    candidates, log_p = mechanism.log_pmf(counts, prior)
    return float(
        np.exp(log_p)
        @ hellinger_distance(candidates + np.array(prior), np.array(counts) + np.array(prior))
    )


@pytest.mark.slow
def test_balanced_error_for_three_categories_and_eighty_records() -> None:
    prior = (1.0, 1.0, 1.0)
    found = calibrate(SmoothHellingerExponential(1.0), size=80, prior=prior, epsilon=1.0)
    assert mean_error(found, [27, 27, 26], prior) <= 0.23


OF_SMOOTH = [(SmoothHellingerExponential(1.0), "gamma")]
OF_SMOOTH.append((SmoothHellingerExponential(1.0, beta=1.0), "beta"))


@pytest.mark.parametrize(
    ("loss", "root", "most"),
    [
        (lambda scale: (scale / 3) ** -1.7, 3.0, 4),
        (lambda scale: 3 / scale if scale < 2 else (2 / scale) ** 9, 2.0, 130),
        (lambda scale: 1e12 if scale < math.pi else 1 - 1e-6, math.pi, 160),
    ],
    ids=["a power", "a kink", "a step"],
)
def test_the_search_is_short(loss: Any, root: float, most: int) -> None:
    """Few evaluations where the loss is a power of the scale, and not thousands where it jumps."""
    asked: list[float] = []

    def counted(setting: Setting) -> float:
        asked.append(setting.mechanism.scale)
        return float(loss(setting.mechanism.scale))

    found = smallest_scale(Setting.of(LaplaceParameters(1.0), 5, BETA_ONE), counted).mechanism
    assert root <= found.scale <= root * (1 + 2e-9)
    assert found.scale in asked
    assert len(asked) <= most


def test_counts_in_proportion() -> None:
    assert counts_in_proportion(10, np.ones(3)).tolist() == [4, 3, 3]
    assert counts_in_proportion(7, np.ones(3), [0, 1, 1]).tolist() == [0, 4, 3]
    for proportions in ([0.31, 0.29, 0.4], [1e-9, 1.0, 5.0]):
        counts = counts_in_proportion(1003, np.ones(3), proportions)
        assert counts.sum() == 1003
        assert np.max(np.abs(counts - 1003 * np.array(proportions) / sum(proportions))) < 1


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize(
    "mechanism",
    [HellingerExponential(1.0), SmoothHellingerExponential(1.0, gamma=0.3), LaplaceParameters(1.0)],
    ids=str,
)
def test_the_inverse_of_the_profile_gives_no_more_than_was_asked(mechanism, delta):
    """ε found from δ has a tolerance of 1e-11 of the pure loss; the scale leaves room for it."""
    for epsilon in (0.05, 0.3, 1.0):
        found = calibrate(
            mechanism, size=7, prior=BETA_ONE, epsilon=epsilon, delta=delta, tune=False
        )
        assert privacy_profile(found, size=7, prior=BETA_ONE).epsilon(delta) <= epsilon


def test_the_profile_is_asked_for_a_smaller_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def delta(curve: Curve, epsilon: float) -> float:
        asked.append(epsilon)
        return 0.5

    monkeypatch.setattr(Curve, "delta", delta)
    setting = Setting.of(LaplaceParameters(1.0), 5, BETA_ONE)
    relative = calibration.relative_loss(epsilon=0.7, delta=0.25)(setting, ONE_RECORD, "exact")
    assert relative == 2.0
    assert 0.7 * (1 - 2e-9) <= asked[0] <= 0.7 * (1 - 1e-9)


@dataclass(frozen=True)
class Spendthrift(LaplaceParameters):
    """A mechanism of a plugin that proves a small ε with a larger δ than it was asked for."""

    name = "spendthrift"
    is_pure: bool = True

    def proven_loss(self, *arguments: Any, delta: float = 0.0, **public: Any) -> PrivacyLoss:
        loss = super().proven_loss(*arguments, **public)
        if delta:
            return replace(loss, epsilon=loss.epsilon / 100, delta=0.5)
        return loss if self.is_pure else NO_BOUND


def test_a_bound_with_a_larger_delta_than_was_asked_for_is_not_used() -> None:
    """Whether the mechanism has a bound without δ or not, and whichever door asks."""
    public: dict[str, Any] = {"size": 9, "prior": BETA_ONE}
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "accounting": "proven"}
    honest = calibrate(LaplaceParameters(1.0), **budget, **public)
    found = calibrate(Spendthrift(1.0), **budget, **public)
    assert found.scale == pytest.approx(honest.scale, rel=1e-6)
    with pytest.raises(ValueError, match=r"exceeds .* at every scale"):
        calibrate(Spendthrift(1.0, is_pure=False), **budget, **public)
    pure, other = (privacy_profile(Spendthrift(1.0, is_pure=of), **public) for of in (True, False))
    small = Spendthrift(1.0).proven_loss(1, delta=0.5, **public).epsilon
    assert (pure.loss.epsilon, pure.epsilon(0.0)) == (100 * small, 100 * small)
    assert 0.99 < pure.epsilon(1e-6) / pure.loss.epsilon < 1
    assert (other.epsilon(1e-6), other.epsilon(0.49)) == (math.inf, math.inf)
    assert (other.epsilon(0.5), other.epsilon(0.6)) == (small, small)
