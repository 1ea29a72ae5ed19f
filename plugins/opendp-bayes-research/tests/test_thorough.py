"""Thorough calibration, and the losses that it looks at."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting.divergences import WorstPair
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes_research import calibrate_thoroughly, thorough as module

ONES = (1.0, 1.0, 1.0)
A, B, C = (((n, 0, 0), (n - 1, 1, 0)) for n in (5, 4, 3))
START = Setting.of(ob.mechanisms.SmoothHellingerExponential(100.0, gamma=1.0), 5, ONES)
EPSILON = 0.5


class MadeUp:
    """Each pair loses so much at a scale of 1, and less in proportion to the scale."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, losses: dict[Any, float]) -> None:
        self.losses = losses
        self.solved_with: list[tuple[float, bool]] = []
        monkeypatch.setattr(module, "worst_pair", self.worst_pair)
        monkeypatch.setattr(module, "_loss_of", self.loss_of_pairs)
        monkeypatch.setattr(module, "loss_of", self.loss_of)
        monkeypatch.setattr(type(START.mechanism), "log_error", lambda self, size, prior: 0.0)

    def worst_pair(self, setting: Setting) -> WorstPair:
        worst = max(self.losses, key=self.losses.__getitem__)
        return WorstPair(*worst, self.losses[worst] / setting.mechanism.scale)

    def loss_of_pairs(self, setting: Setting, pairs: Sequence[Any]) -> float:
        return max(self.losses[pair] for pair in pairs) / setting.mechanism.scale

    def loss_of(self, setting: Setting, *_: Any, **__: Any) -> ob.PrivacyLoss:
        loss = max(self.losses.values()) / setting.mechanism.scale
        return ob.PrivacyLoss(loss, loss, loss)

    def solved(self, start: Any, relative: Callable[[Any], float], chosen: bool) -> Any:
        """At the scale where the loss is the one asked for; and what worst pairs do there."""
        scale = start.mechanism.scale
        self.solved_with.append((scale, chosen))
        found = start.changed(scale=scale * relative(start))
        self.after()
        return found

    def after(self) -> None:
        """What changes with the smoothness that was chosen."""

    def calibrated(self) -> Any:
        return module.thorough(START, EPSILON, self.solved).mechanism


def test_no_pair_loses_more_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is missing: another pair is worse at each smoothness, and joins."""
    made = MadeUp(monkeypatch, {A: 3.0, B: 1.0, C: 1.0})
    worse = iter([(B, 3.0 * 1.3), (C, 3.0 * 1.3 * 1.0004)])
    made.after = lambda: made.losses.update([next(worse, (A, 3.0))])
    found = made.calibrated()
    assert found.scale == pytest.approx(3.0 * 1.3 * 1.0004 / EPSILON, rel=1e-9)
    # Near the end only the scale is sought, from the one found.
    assert [chosen for _, chosen in made.solved_with] == [True, True, False]
    assert [start for start, _ in made.solved_with[:2]] == [START.mechanism.scale] * 2
    assert made.solved_with[2][0] == pytest.approx(3.0 * 1.3 / EPSILON, rel=1e-9)


@pytest.mark.parametrize(("part", "ends"), [(0.9, True), (1.0, True), (1.1, False)])
def test_the_choice_ends_at_a_small_part(part, ends, monkeypatch):
    """Of one pair at the second look; at the first, when nothing is known, it never does."""
    monkeypatch.setattr(module, "_NEAR", 0.25)
    monkeypatch.setattr(module, "_MARGIN", 0.0)
    made = MadeUp(monkeypatch, {A: EPSILON, B: 0.25})
    made.after = lambda: made.losses.update({B: EPSILON * (1 + 0.25 * part)})
    found = module.thorough(START.changed(scale=1.0), EPSILON, made.solved).mechanism
    assert [chosen for _, chosen in made.solved_with] == [True, not ends]
    assert found.scale == pytest.approx(1 + 0.25 * part, rel=1e-9)


def test_a_known_pair_that_is_the_worst_again_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then rounding is all that is left, and the scale is sought by the loss of all pairs."""
    made = MadeUp(monkeypatch, {A: 3.0, B: 1.0})
    monkeypatch.setattr(module, "_loss_of", lambda of, _: 2.5 / of.mechanism.scale)
    found = made.calibrated()
    assert found.scale == pytest.approx(3.0 / EPSILON, rel=1e-9)


def test_losses_of_known_pairs_have_room_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for the error of the sampler, twice."""
    made = MadeUp(monkeypatch, {A: 3.0})
    monkeypatch.setattr(module, "_MARGIN", 0.1)
    monkeypatch.setattr(type(START.mechanism), "log_error", lambda self, size, prior: 0.3)
    seen = []

    def solved(start: Any, relative: Callable[[Any], float], chosen: bool) -> Any:
        seen.append(relative(start.changed(scale=2.0)))
        return start.changed(scale=100.0)

    module.thorough(START, EPSILON, solved)
    assert seen == [pytest.approx((3.0 / 2.0 + 2 * 0.3) / EPSILON * 1.1, rel=1e-12)]
    assert made.losses == {A: 3.0}


@pytest.mark.parametrize(
    ("mechanism", "size", "prior"),
    [
        (START.mechanism, 5, (1.0, 1.0)),
        (ob.mechanisms.PermuteAndFlip(1.0), 5, ONES),
        (ob.LaplaceParameters(1.0), 5, ONES),
        (ob.LaplaceParameters(1.0, total="private"), None, ONES),
    ],
)
def test_all_pairs_are_looked_at_where_that_is_quick(mechanism, size, prior, monkeypatch):
    monkeypatch.setattr(module, "worst_pair", lambda _: pytest.fail("was asked"))
    calls = []

    def solved(start: Any, relative: Callable[[Any], float], chosen: bool) -> Any:
        calls.append((start, chosen, relative(start)))
        return start

    setting = Setting.of(mechanism, size, prior)
    assert module.thorough(setting, EPSILON, solved) is setting
    loss = ob.exact_loss(mechanism, size=size, prior=prior).epsilon
    assert calls == [(setting, True, loss / EPSILON)]


def test_one_look_at_all_pairs_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with a pair that is not the worst alone, the loss is too large."""
    mechanism = ob.mechanisms.SmoothHellingerExponential(1.0)
    with pytest.raises(ValueError, match=r"size=5000, 3 categories: .* probabilities"):
        calibrate_thoroughly(mechanism, size=5000, prior=ONES, epsilon=1.0)
    template = ob.mechanisms.SmoothHellingerExponential(1.0)
    only = WorstPair((10, 10, 10), (11, 9, 10), 0.0)
    monkeypatch.setattr(module, "worst_pair", lambda _: only)
    monkeypatch.setattr(module, "loss_of", lambda *_, **__: ob.PrivacyLoss(0.0, 0.0, 0.0))
    found = calibrate_thoroughly(template, size=30, prior=ONES, epsilon=1.0)
    assert ob.exact_loss(found, size=30, prior=ONES).epsilon > 1.01


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
def test_reach_also_with_the_smoothness_chosen(size: int, k: int) -> None:
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
    prior = (1.0,) * k
    template = ob.mechanisms.SmoothHellingerExponential(1.0, gamma=0.25)
    setting = {"size": size, "prior": prior, "epsilon": 1.0, "tune": False}
    found = calibrate_thoroughly(template, **setting)
    loss = ob.exact_loss(found, size=size, prior=prior)
    assert 1 - 1e-6 <= loss.epsilon <= 1
    assert loss.method == "exact"
    assert found.scale < 0.7 * ob.calibrate(template, **setting).scale  # that of the proven bound
