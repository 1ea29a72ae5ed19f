"""How long a draw takes: with a clock and a sleep of the test's, so that nothing waits."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted import measurements as pacing
from opendp_bayes.trusted.spaces import PosteriorSpace

PRIOR = np.array([1.0, 0.5, 2.0])
SPACE = PosteriorSpace(("a", "b", "c"), 6, tuple(PRIOR))
LEAST = 1 / 4
OF_HELLINGER = ob.mechanisms.HellingerExponential
EXPONENTIAL = [OF_HELLINGER(0.5), OF_HELLINGER(2.0, "local")]
EXPONENTIAL += [ob.mechanisms.SmoothHellingerExponential(2.0), ob.mechanisms.PermuteAndFlip(0.5)]
NOISE = [ob.LaplaceParameters(1.0), ob.LaplaceParameters(1.0, "floored")]
NOISE += [ob.KNormParameters(1.0), ob.GaussianParameters(1.0)]


class Clock:
    """Time that passes when a draw or a sleep says so, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.slept = 1000.0, list[float]()
        monkeypatch.setattr(pacing, "monotonic_ns", lambda: round(self.now * 1e9))
        monkeypatch.setattr(pacing, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def release(mechanism: Any) -> Any:
    concentrated = isinstance(mechanism, ob.GaussianParameters)
    measure = dp.zero_concentrated_divergence() if concentrated else dp.max_divergence()
    measurement = ob.m.make_mechanism(
        SPACE.domain, SPACE.metric, measure, mechanism, accounting="proven"
    )
    return measurement(SPACE.prior_array + np.array([1, 2, 3]))


@pytest.mark.parametrize("mechanism", EXPONENTIAL, ids=repr)
def test_an_exponential_mechanism_waits_once_a_release(mechanism, monkeypatch):
    clock = Clock(monkeypatch)
    assert sum(release(mechanism).counts) == 6
    assert clock.slept == [LEAST], "on this clock its own time is none"


@pytest.mark.parametrize("mechanism", NOISE, ids=repr)
def test_noise_on_the_counts_waits_for_nothing(mechanism, monkeypatch):
    clock = Clock(monkeypatch)
    release(mechanism)
    assert clock.slept == []


def test_a_mechanism_that_states_no_law_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(ob.LaplaceParameters):
        def sample(self, counts: Any, prior: Any, size: int = 1) -> Any:
            return np.tile([1, 2, 3], (size, 1))

    clock = Clock(monkeypatch)
    draw = pacing.paced(lambda counts, number: counts, Setting.of(Other(1.0), 6, PRIOR))
    draw(np.array([1, 2, 3]), 1)
    assert clock.slept == [LEAST]


@pytest.mark.parametrize(
    ("takes", "until"),
    [(0.0, 1), (0.001, 1), (LEAST, 1), (0.251, 2), (0.8, 4), (1.1, 8), (20.0, 128), (32.001, 256)],
)
def test_it_ends_at_a_quarter_of_a_second_doubled_as_often_as_it_takes(takes, until, monkeypatch):
    """Of a draw that takes so long, whatever was drawn."""
    clock = Clock(monkeypatch)

    def draw(counts: Any, number: int) -> Any:
        clock.now += takes
        return 2 * counts + number

    start = clock.now
    paced = pacing.paced(draw, Setting.of(EXPONENTIAL[0], 6, PRIOR))
    assert paced(np.array([1, 2, 3]), 1).tolist() == [3, 5, 7]
    assert clock.now - start == pytest.approx(until * LEAST, abs=1e-8)


def test_a_draw_that_fails_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def draw(counts: Any, number: int) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pacing.paced(draw, Setting.of(EXPONENTIAL[0], 6, PRIOR))(np.array([1, 2, 3]), 1)
    assert clock.slept == []


def test_the_page_says_how_long() -> None:
    page = Path(__file__).parents[2] / "docs" / "limits.md"
    assert re.search(r"at least 1/4\s+s", page.read_text(encoding="utf-8"))
    assert pacing.LEAST == LEAST * 1e9
