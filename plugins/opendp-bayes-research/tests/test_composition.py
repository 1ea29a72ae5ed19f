"""Loss distributions for `dp-accounting` lie above certified profiles, alone and composed."""

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import (
    from_laplace_mechanism,
    from_two_probability_mass_functions,
)

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters, privacy_profile
from opendp_bayes.accounting.losses import worst_pair
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes_research import privacy_loss_distribution
from tests.helpers import oracles

CASES: list[tuple[Any, int, tuple[float, ...]]] = [
    (HellingerExponential(0.4), 10, (1.0, 1.0)),
    (SmoothHellingerExponential(1.5, gamma=0.3), 40, (0.1, 2.0)),
    (HellingerExponential(1.0, sensitivity="local"), 12, (0.05, 0.05)),
    (SmoothHellingerExponential(1.0), 4, (1.0, 1.0, 1.0)),
    (LaplaceParameters(1.3, noise="floored"), 20, (1.0, 1.0)),
    (KNormParameters(0.9), 20, (1.0, 1.0, 1.0)),
]


@pytest.mark.parametrize("interval", [5e-3, 1e-3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_above_the_profile_and_close_to_it(case: Any, interval: float) -> None:
    mechanism, size, prior = case
    pld = privacy_loss_distribution(mechanism, size=size, prior=prior, interval=interval)
    profile = privacy_profile(mechanism, size=size, prior=prior)
    for epsilon in np.linspace(0, 1.1 * profile.loss.epsilon, 57):
        delta = pld.get_delta_for_epsilon(float(epsilon))
        assert profile(float(epsilon)) - 1e-12 <= delta <= profile(float(epsilon)) + interval / 5


PRIVATE = (LaplaceParameters(1.3, total="private"), None, (1.0, 1.0))


@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[5], PRIVATE], ids=str)
def test_more_records_have_the_profile_of_so_many(case: Any) -> None:
    """Negative control: that of one record is far below."""
    mechanism, size, prior = case
    setting: dict[str, Any] = {"size": size, "prior": prior, "d_in": 3}
    pld = privacy_loss_distribution(mechanism, **setting, interval=5e-3)
    profile, of_one = (privacy_profile(mechanism, **{**setting, "d_in": d_in}) for d_in in (3, 1))
    for epsilon in np.linspace(0, 1.05 * profile.loss.epsilon, 9).tolist():
        delta = pld.get_delta_for_epsilon(epsilon)
        assert profile(epsilon) - 1e-12 <= delta <= profile(epsilon) + 1e-3
    epsilon = of_one.loss.epsilon
    assert profile(epsilon) > 0.1 > of_one(epsilon) == 0


def composed_delta(p: Any, q: Any, epsilon: float) -> float:
    """δ of two independent releases, by every pair of outcomes."""
    both_p, both_q = np.multiply.outer(p, p), np.multiply.outer(q, q)
    return float(np.maximum(both_p - math.exp(epsilon) * both_q, 0).sum())


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_two_releases(case: Any) -> None:
    """What dominates each release, composed, dominates the composition, for every neighbours."""
    mechanism, size, prior = case
    pld = privacy_loss_distribution(mechanism, size=size, prior=prior, interval=2e-3)
    twice = pld.self_compose(2)
    _, log_p = oracles.log_laws(mechanism, size, prior)
    laws, away = np.exp(log_p), oracles.distances(size, len(prior))
    largest = privacy_profile(mechanism, size=size, prior=prior).loss.epsilon
    for share in (0.0, 0.3, 0.8, 1.2, 1.9):
        truth = max(
            composed_delta(laws[i], laws[j], share * largest)
            for i, j in zip(*np.nonzero(away == 1), strict=True)
        )
        assert truth <= twice.get_delta_for_epsilon(share * largest) + 1e-13
        assert twice.get_delta_for_epsilon(share * largest) <= 1.5 * truth + 5e-3
    assert twice.get_delta_for_epsilon(2.01 * largest) <= 1e-12


def test_the_largest_epsilon_does_not_dominate_and_what_is_refused() -> None:
    """Negative control: that pair alone promises too little δ at a smaller ε, by over a third."""
    mechanism, size, prior = SmoothHellingerExponential(0.44, gamma=0.56), 22, (0.14, 0.023)
    worst = worst_pair(Setting.of(mechanism, size, prior))
    assert worst is not None
    sets, log_p = oracles.log_laws(mechanism, size, prior)
    i, j = sets.index(worst.first), sets.index(worst.second)
    away = oracles.distances(size, len(prior))
    pld = privacy_loss_distribution(mechanism, size=size, prior=prior)
    alone = from_two_probability_mass_functions(
        *({outcome: float(p) for outcome, p in enumerate(log_p[row])} for row in (i, j))
    )
    below = 0
    for share in (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95):
        epsilon = share * worst.epsilon
        truth = oracles.over_pairs(log_p, away, 1, oracles.hockey_stick(epsilon))
        below += alone.get_delta_for_epsilon(epsilon) < 0.67 * truth
        assert truth <= pld.get_delta_for_epsilon(epsilon) + 1e-13
    assert below >= 1
    with pytest.raises(ValueError, match=r"interval=0\.0: .*greater than 0"):
        privacy_loss_distribution(HellingerExponential(1.0), size=5, prior=(1.0, 1.0), interval=0.0)
    with pytest.raises(ValueError, match=r"interval=1e-09: .* 100000 intervals"):
        privacy_loss_distribution(
            HellingerExponential(1.0), size=5, prior=(1.0, 1.0), interval=1e-9
        )
    with pytest.raises(ValueError, match="goes up to inf"):
        privacy_loss_distribution(
            HellingerExponential(1.0, sensitivity="local"), size=1000, prior=(1.0, 1.0, 1.0)
        )


def test_what_a_composition_leaves_out_counts_also_of_gaussian_noise() -> None:
    """Probability that a long composition truncates is moved to an infinite loss. What lies
    beyond it is kept, as a probability of an infinite loss.
    """
    mechanism = HellingerExponential(0.4)
    pld = privacy_loss_distribution(mechanism, size=10, prior=(1.0, 1.0), interval=0.02)
    largest = privacy_profile(mechanism, size=10, prior=(1.0, 1.0)).loss.epsilon
    whole = pld.self_compose(12, tail_mass_truncation=0)
    truncated = pld.self_compose(12, tail_mass_truncation=0.01)
    for share in (0.0, 0.1, 0.3, 0.6, 1.0):
        assert (
            truncated.get_delta_for_epsilon(12 * share * largest)
            >= whole.get_delta_for_epsilon(12 * share * largest) - 1e-13
        )
    # Only another pessimistic estimate may be composed with it.
    both = pld.compose(from_laplace_mechanism(2.0, value_discretization_interval=0.02))
    assert both.get_delta_for_epsilon(0.3) > pld.get_delta_for_epsilon(0.3)
    assert truncated.get_delta_for_epsilon(13 * largest) > 1e-4
    assert whole.get_delta_for_epsilon(13 * largest) < 1e-12
    noise = GaussianParameters(5.0)
    found = privacy_loss_distribution(noise, size=20, prior=[1.0, 1.0], interval=0.02)
    profile = privacy_profile(noise, size=20, prior=[1.0, 1.0])
    for epsilon in (0.1, 0.5, 1.0):
        assert profile(epsilon) <= found.get_delta_for_epsilon(epsilon) <= profile(epsilon) + 0.004
