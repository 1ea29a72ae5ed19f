"""Definition 4 and Proposition 9: smoothed differential privacy implies the distributional kind."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import definitions
import numpy as np
import pytest

import opendp_bayes_smoothed as obs
from opendp_bayes_smoothed import distributional
from tests.helpers import oracles

CORNERS = [[0.5, 0.5], [0.9, 0.1]]


def test_smoothed_implies_distributional() -> None:
    """On random mechanisms and samples; strictly weaker where the others hide the record."""
    rng = np.random.default_rng(0)
    smaller = 0
    for size in (2, 3, 4):
        for _ in range(4):
            rows = dict(enumerate(rng.dirichlet(np.ones(3), size + 1)))
            law = lambda x, rows=rows: rows[x[0]]  # noqa: E731
            for epsilon in (0.0, 0.5):
                found = obs.distributional_delta(law, CORNERS, size, epsilon)
                smoothed = obs.anonymous_delta(law, CORNERS, size, epsilon)
                assert found <= smoothed * (1 + 1e-7) + 1e-7
                smaller += found < 0.9 * smoothed
    assert smaller > 4


def test_a_mechanism_without_randomness() -> None:
    """The histogram itself: nothing hides a record from one who knows all others, and the others
    hide it from one who knows how they are distributed.
    """
    law = obs.of_a_sample(lambda h: h, 2, 5, 1.0)
    assert obs.anonymous_delta(law, [[0.5, 0.5]], 5, 1.0) == pytest.approx(1.0)
    assert obs.distributional_delta(law, [[0.5, 0.5]], 5, 1.0) < 0.1


def test_one_record_against_arithmetic() -> None:
    """n = 1: there are no others, so the simulator is one law between those of the two values, and
    at ε = 0 half of their distance away from both.
    """
    law = lambda x: [0.8, 0.2] if x[0] else [0.2, 0.8]  # noqa: E731
    for corners in (CORNERS, [[0.3, 0.7]]):
        assert obs.distributional_delta(law, corners, 1, 0.0) == pytest.approx(0.3, abs=1e-7)


def test_whatever_the_simulator_the_result_is_its_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poor simulator gives a larger δ, never a smaller one."""
    law = obs.of_a_sample(lambda h: h, 2, 4, 0.5)
    best = obs.distributional_delta(law, CORNERS, 4, 0.3)
    monkeypatch.setattr(
        distributional,
        "_best_simulator",
        lambda others, truths, epsilon: np.full((others.shape[1], truths.shape[2]), 1 / 3),
    )
    assert obs.distributional_delta(law, CORNERS, 4, 0.3) > best


def test_a_random_record_in_the_place_of_the_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the linear program: never below the best simulator, for a winner as good, and never
    above the smoothed δ (Proposition 9), as a fixed record can be.
    """
    above = []
    for size, rule in ((6, obs.plurality), (9, lambda h: h)):
        law = obs.of_a_sample(rule, 2, size, 0.6)
        for epsilon in (0.0, 0.5):
            best = obs.distributional_delta(law, CORNERS, size, epsilon)
            with monkeypatch.context() as patch:
                patch.setattr(distributional, "_LARGEST_PROGRAM", 0)
                found = obs.distributional_delta(law, CORNERS, size, epsilon)
                patch.setattr(distributional, "_best_record", lambda *_: np.array([0.0, 1.0]))
                fixed = obs.distributional_delta(law, CORNERS, size, epsilon)
            smoothed = obs.anonymous_delta(law, CORNERS, size, epsilon)
            assert best - 1e-9 <= found <= smoothed
            assert found <= fixed * (1 + 1e-9)
            above.append(fixed / found)
            if rule is obs.plurality:
                assert found == pytest.approx(best, rel=1e-6)
    assert max(above) > 1.5


def test_the_best_record_of_three_categories() -> None:
    """Cuts against a grid of records: no record on it is better."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        truths = rng.dirichlet(np.full(4, 0.5), (3, 6))
        record = distributional._best_record(truths, 0.3)
        grid = [np.array([i, j, 12 - i - j]) / 12 for i in range(13) for j in range(13 - i)]
        own, *others = (
            distributional._worst(truths, np.tensordot(row, truths, 1), 0.3)
            for row in (record, *grid)
        )
        assert own <= min(others) * (1 + 1e-8)
        assert own < 0.999 * max(others)


@pytest.mark.parametrize(("rows", "size"), [(CORNERS, 5), ([[0.2, 0.3, 0.5], [0.5, 0.5, 0.0]], 4)])
def test_the_others_of_every_choice(rows: list[list[float]], size: int) -> None:
    """Each law of the others' histogram, against enumeration in fractions."""
    exact = [tuple(Fraction(p) for p in row) for row in rows]
    k = len(rows[0])
    histograms = oracles.data_sets(size, k)
    order = [tuple(h) for h in distributional.candidates(size, k).tolist()]
    truth = sorted(
        tuple(
            float(definitions.expectation(lambda x, h=h: Fraction(x == h), choice, k))
            for h in order
        )
        for choice in combinations_with_replacement(exact, size)
    )
    found = sorted(map(tuple, distributional._others(np.array(rows), size).tolist()))
    assert len(order) == len(histograms)
    assert np.array(found) == pytest.approx(np.array(truth), rel=1e-12)


def test_too_many_records() -> None:
    law = lambda x: [0.5, 0.5]  # noqa: E731
    with pytest.raises(ValueError, match=r"size=1100: 1100 choices .* 1100 histograms"):
        obs.distributional_delta(law, CORNERS, 1100, 0.3)
    with pytest.raises(ValueError, match=r"size=\d+: .* histograms"):
        obs.distributional_delta(law, [[0.2, 0.3, 0.5]], 10_000, 0.3)


def test_justifications_1_and_2() -> None:
    """The best test's errors, and inequality (2) with 2 + e^-ε where the paper has 2."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        p, q = rng.dirichlet(np.full(5, 0.4), 2)
        for epsilon in (0.0, 0.4, 1.5):
            first, second = obs.likelihood_ratio_test(p, q, epsilon)
            d, back = obs.divergence(q, p, epsilon), obs.divergence(p, q, epsilon)
            assert math.exp(epsilon) * first + second == pytest.approx(1 - d, abs=1e-12)
            delta = max(d, back)
            allowed = (2 + math.exp(-epsilon)) * delta
            assert obs.insensitivity(p, q, epsilon) >= 1 - allowed - 1e-12
    p, q = [0.2, 0.0999, 0.7001], [0.0999, 0.2, 0.7001]
    delta = max(obs.divergence(p, q, 0.0), obs.divergence(q, p, 0.0))
    assert delta == pytest.approx(0.1001)
    assert obs.insensitivity(p, q, 0.0) == pytest.approx(0.7001)
    assert obs.insensitivity(p, q, 0.0) < 1 - 2 * delta


def test_the_smoothed_utility() -> None:
    """Justification 3: the expectation of the utility of each database; at most twice the δ."""
    size, rate, epsilon = 12, 0.5, 0.3
    found = obs.smoothed_utility(CORNERS, size, rate, epsilon)
    utility = lambda x: obs.database_utility(x, rate, epsilon)  # noqa: E731
    assert found == pytest.approx(obs.smoothed_value(utility, CORNERS, size), rel=1e-7)
    assert found <= 2 * obs.smoothed_delta(CORNERS, size, rate, epsilon)
    with pytest.raises(ValueError, match="distributions: have 3 categories"):
        obs.smoothed_utility([[0.2, 0.3, 0.5]], size, rate, epsilon)
