"""Whether an audit can be trusted: what it does with its draws, its false alarms, its power."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes import KNormParameters, LaplaceParameters, exact_loss
from opendp_bayes.mechanisms import (
    HellingerExponential,
    PermuteAndFlip,
    SmoothHellingerExponential,
    knorm_parameters,
)
from opendp_bayes.samplers import integers, uniform
from opendp_bayes_research import audit
from opendp_bayes_research.auditing import audited_draws as draws_of_pairs
from opendp_bayes_research.auditing.audited_draws import log_ratio_bound
from tests.helpers.broken_mechanisms import rescaled
from tests.helpers.wrong_scales import LISTED, ONES, ONES_3, UNLISTED

PAIRS_AND_DELTAS = [
    (LaplaceParameters(1.0), 20, ONES, (), 1),
    (LaplaceParameters(1.0), 20, ONES, (1e-6, 1e-3, 0.1), 1),
    (LaplaceParameters(1.0, total="private"), None, ONES_3, (1e-6, 1e-3), 2),
]


@pytest.mark.parametrize(("mechanism", "size", "prior", "deltas", "pairs"), PAIRS_AND_DELTAS)
def test_the_confidence_is_shared_by_all_statements(
    mechanism: Any,
    size: int | None,
    prior: tuple[float, ...],
    deltas: tuple[float, ...],
    pairs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two orders of each pair at each δ have half of what may go wrong; the fits have the rest."""
    levels, tests = set(), 0

    def spy(a: Any, n: Any, b: Any, m: Any, delta: float, level: float) -> Any:
        nonlocal tests
        levels.add(level)
        tests += np.ndim(a) == 0
        return log_ratio_bound(a, n, b, m, delta, level)

    monkeypatch.setattr(draws_of_pairs, "log_ratio_bound", spy)
    found = audit(mechanism, size=size, prior=prior, deltas=deltas, draws=1000, confidence=0.9)
    statements = 2 * pairs * (1 + len(deltas))
    assert (len(found.drawn), tests) == (pairs, statements)
    assert len(levels) == 1
    assert levels.pop() == pytest.approx(0.05 / statements)
    assert found.level == pytest.approx(0.05 / max(len(found.fits), 1))
    assert len(found.fits) == (2 * pairs if size else 0)


def refuted(parts: list[tuple[list[int], list[int]]]) -> float:
    """The ε refuted at δ = 0 by draws that come in parts, of two outcomes with so many each."""
    sets = []
    for side in (0, 1):
        drawn = [np.repeat([[4, 0], [0, 4]], part[side], axis=0) for part in parts]
        sets.append(np.concatenate(drawn))
    pair = (2, 2), (1, 3)
    return float(draws_of_pairs.refuted_by(*sets, (None, None), pair, [0.0], 0.01)[0])


def test_the_event_is_chosen_and_ordered_by_draws_that_do_not_test_it() -> None:
    """A quarter orders the outcomes, a quarter chooses where to cut, half tests. Choosing draws
    that point the wrong way choose an event that refutes nothing. Outcomes that are all drawn
    once: whoever has seen them all tells the data sets apart.
    """
    apart, alike = ([900, 100], [100, 900]), ([500, 500], [500, 500])
    assert refuted([apart, apart, apart, apart]) > 1.5
    # Where the testing half does not differ, nothing that was seen before it counts.
    assert refuted([apart, apart, alike, alike]) == 0
    # In each of its two quarters it counts by half.
    assert 0.4 < refuted([apart, apart, alike, apart]) < 1
    assert 0.4 < refuted([apart, apart, apart, alike]) < 1
    apart, opposite = ([900, 100], [100, 900]), ([100, 900], [900, 100])
    assert refuted([opposite, opposite, apart, apart]) == 0
    rng = np.random.default_rng(0)
    p, q = (rng.permutation(np.arange(start, 4000, 2)) for start in (0, 1))
    sets = [np.column_stack([drawn, 4000 - drawn]) for drawn in (p, q)]
    pair = (2000, 2000), (1999, 2001)
    assert draws_of_pairs.refuted_by(*sets, (None, None), pair, [0.0], 0.01)[0] == 0


def test_nearness_is_the_log_ratio_of_noise_also_on_many_counts() -> None:
    """Of two-sided geometric noise on each count, in units of 1 / scale. The direction alone,
    without which count rises, would refute no more than 0.55 of ε = 1.
    """
    first, second = (5, 1, 2), (4, 2, 2)
    outcomes = np.array([[7, 0, 1], [5, 1, 2], [4, 2, 2], [4, 1, 3], [0, 5, 3]])
    towards, absolute = draws_of_pairs._nearness(outcomes, first, second)
    assert towards.tolist() == [7, 4, 2, 3, -5]
    assert absolute.tolist() == [2, 2, -2, 0, -2]
    mechanism, prior = KNormParameters(1.0), [1.0] * 7
    pair = (400, *[100] * 6), (399, 101, *[100] * 5)
    p, q = (mechanism.sample(counts, prior, 10_000) for counts in pair)
    found = draws_of_pairs.refuted_by(p, q, (None, None), pair, [0.0], 1e-7)[0]
    assert 0.65 < found <= 1


SOUND: list[tuple[Any, int | None, tuple[float, ...]]] = [
    (LaplaceParameters(1.0), 20, ONES),
    (LaplaceParameters(1.0, total="bounded"), 4, ONES_3),
    (LaplaceParameters(1.0, total="private"), None, ONES),
    (KNormParameters(1.0), 6, ONES_3),
    (HellingerExponential(0.5), 10, ONES),
    (HellingerExponential(2.0, sensitivity="local"), 20, ONES),
    (SmoothHellingerExponential(4.0), 20, ONES),
    (PermuteAndFlip(0.5), 10, ONES),
]


def upper_bound(events: int, trials: int) -> float:
    """Of the probability of an event, at 99 % confidence (Clopper-Pearson, one-sided)."""
    return float(stats.beta.isf(0.01, events + 1, trials - events))


@pytest.mark.slow
def test_false_alarms() -> None:
    """2000 audits at 95 %: the upper bound on the rate is within 5 %, as it is up to 77 alarms.

    The draws have 2.5 % at most and the fits 2.5 % nearly, so more than 77 have probability 1e-3.
    """
    each = 2000 // len(SOUND)
    alarms = 0
    for mechanism, size, prior in SOUND:
        for _ in range(each):
            found = audit(mechanism, size=size, prior=prior, draws=1000, confidence=0.95)
            alarms += not found.passed
    assert upper_bound(alarms, each * len(SOUND)) <= 0.05


def test_the_bound_on_false_alarms_and_what_so_many_audits_show() -> None:
    assert upper_bound(77, 2000) <= 0.05 < upper_bound(78, 2000)
    assert stats.beta.ppf(0.05, 59, 1) >= 0.95 > stats.beta.ppf(0.05, 58, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTED)
def test_a_scale_that_is_a_fifth_too_small_is_caught(name: str) -> None:
    """Nearly always, as `test_power.py` computes."""
    mechanism, size, prior, _ = LISTED[name]
    epsilon = exact_loss(mechanism, size=size, prior=prior).epsilon
    assert not audit(rescaled(mechanism, 0.8), size=size, prior=prior, epsilon=epsilon).passed


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of our samplers, whose laws have tests of their own, from numpy and a seed."""
    rng = np.random.default_rng(0)

    def geometrics(rate: Fraction, size: int) -> Any:
        return rng.geometric(-math.expm1(-rate), size) - 1

    def knorm_noise(k: int, scale: Fraction, size: int) -> Any:
        weights = np.array([math.comb(k - 1, i) ** 2 * math.exp(-i / scale) for i in range(k)])
        totals = rng.choice(k, size, p=weights / weights.sum())
        totals += rng.negative_binomial(2 * k - 1, -math.expm1(-1 / scale), size)
        up, down = (rng.multinomial(totals, rng.dirichlet(np.ones(k), size)) for _ in range(2))
        return up - down

    def words(size: int) -> Any:
        return rng.integers(0, 2**64, size, dtype=np.uint64)

    monkeypatch.setattr(integers, "geometrics", geometrics)
    monkeypatch.setattr(uniform, "random_words", words)
    monkeypatch.setattr(knorm_parameters, "knorm_noise", knorm_noise)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "percent"),
    [(name, each) for name in UNLISTED for each in sorted({20, UNLISTED[name][-1]})],
)
def test_a_scale_too_small_is_caught_by_draws(name: str, percent: int, seeded: None) -> None:
    """In every audit of 59, so that at 95 % confidence it is in at least 95 % of all."""
    mechanism, size, prior, _ = UNLISTED[name]
    epsilon = exact_loss(mechanism, size=size, prior=prior).epsilon
    assert audit(mechanism, size=size, prior=prior, epsilon=epsilon).passed  # negative control
    broken = rescaled(mechanism, 1 - percent / 100)
    for _ in range(59):
        assert not audit(broken, size=size, prior=prior, epsilon=epsilon).passed
