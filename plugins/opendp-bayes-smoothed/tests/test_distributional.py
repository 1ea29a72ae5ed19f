"""Definition 4 and Proposition 9: smoothed differential privacy implies the distributional kind."""

import math

import numpy as np
import pytest

import opendp_bayes_smoothed as obs
from opendp_bayes_smoothed import distributional

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


def test_too_large_a_program() -> None:
    law = obs.of_a_sample(lambda h: h, 2, 60, 0.9)
    with pytest.raises(ValueError, match=r"size=60: .* constraints for"):
        obs.distributional_delta(law, CORNERS, 60, 0.3)


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
    with pytest.raises(ValueError, match="distributions: have 3 categories; the utility is"):
        obs.smoothed_utility([[0.2, 0.3, 0.5]], size, rate, epsilon)
