"""The thorough calibration, with the exact losses of all pairs."""

from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting.divergences import WorstPair
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes_research import calibrate_thoroughly, thorough as module

ONES = (1.0, 1.0, 1.0)


def test_one_look_at_all_pairs_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with a pair that is not the worst alone, the loss is too large."""
    template = ob.mechanisms.SmoothHellingerExponential(1.0)
    only = WorstPair((10, 10, 10), (11, 9, 10), 0.0)
    monkeypatch.setattr(module, "worst_pair", lambda _: only)
    monkeypatch.setattr(module, "loss_of", lambda *_, **__: ob.PrivacyLoss(0.0, 0.0, 0.0))
    found = calibrate_thoroughly(template, size=30, prior=ONES, epsilon=1.0)
    assert ob.exact_loss(found, size=30, prior=ONES).epsilon > 1.01


def test_refusals() -> None:
    mechanism = ob.mechanisms.SmoothHellingerExponential(1.0)
    with pytest.raises(ValueError, match=r"size=5000, 3 categories: .* probabilities"):
        calibrate_thoroughly(mechanism, size=5000, prior=ONES, epsilon=1.0)


@pytest.mark.slow
def test_the_choice_ends_where_little_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early or late, the loss is the one asked for and the width nearly the same."""
    setting = {"size": 60, "prior": ONES, "epsilon": 1.0}
    looks, widths = [], []
    look = module.worst_pair
    for near in (module._NEAR, 0.0):
        seen: list[float] = []

        def counted(setting: Setting, _seen: list[float] = seen) -> Any:
            pair = look(setting)
            assert pair is not None
            _seen.append(pair.epsilon)
            return pair

        monkeypatch.setattr(module, "_NEAR", near)
        monkeypatch.setattr(module, "worst_pair", counted)
        template = ob.mechanisms.SmoothHellingerExponential(1.0)
        found = calibrate_thoroughly(template, **setting)
        assert 1 - 1e-6 <= ob.exact_loss(found, size=60, prior=ONES).epsilon <= 1
        looks.append(len(seen))
        widths.append(found.width(np.array([20, 20, 20]), np.array(ONES)))
    assert looks[0] <= looks[1]
    assert widths[0] == pytest.approx(widths[1], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(300, 3), (60, 4)])
def test_reach_with_the_smoothness_chosen(size: int, k: int) -> None:
    prior, balanced = (1.0,) * k, np.full(k, size // k)
    setting = {"size": size, "prior": prior, "epsilon": 1.0}
    found = calibrate_thoroughly(ob.mechanisms.SmoothHellingerExponential(1.0), **setting)
    loss = ob.exact_loss(found, size=size, prior=prior)
    assert 1 - 1e-6 <= loss.epsilon <= 1
    assert loss.method == "exact"
    # No worse than the γ of a smaller size, or twice or half the one chosen.
    assert found.gamma is not None
    for gamma in (0.5 * found.gamma, 0.25, 2 * found.gamma):
        template = ob.mechanisms.SmoothHellingerExponential(1.0, gamma=gamma)
        other = calibrate_thoroughly(template, tune=False, **setting)
        width = other.width(balanced, np.array(prior))
        assert found.width(balanced, np.array(prior)) <= width * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(300, 3), (60, 4)])
def test_reach(size: int, k: int) -> None:
    prior = (1.0,) * k
    template = ob.mechanisms.SmoothHellingerExponential(1.0, gamma=0.25)
    setting = {"size": size, "prior": prior, "epsilon": 1.0, "tune": False}
    found = calibrate_thoroughly(template, **setting)
    loss = ob.exact_loss(found, size=size, prior=prior)
    assert 1 - 1e-6 <= loss.epsilon <= 1
    assert loss.method == "exact"
    assert found.scale < 0.7 * ob.calibrate(template, **setting).scale  # that of the proven bound
