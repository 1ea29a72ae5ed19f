"""Permute-and-flip: its law against every order of the candidates and against exact polynomials,
its samples, its map, its accuracy.

The general comparison of maps with exact losses is in `test_privacy.py`; here is the case that
attains all three bounds, in which half the noise is noticed. Every statistical check is
`oracles.rejects` at `oracles.FALSE_ALARM`, with laws of another scale and of EHD as negative
controls.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy.special import gammaln

from opendp_bayes import exact_loss, privacy_profile
from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, global_sensitivity
from opendp_bayes.mechanisms.exponential import permute_and_flip
from opendp_bayes.mechanisms.exponential.permute_and_flip import log_permute_and_flip
from opendp_bayes.mechanisms.exponential.posterior_exponential import (
    candidate_distances,
    score_change,
    score_error,
)
from opendp_bayes.samplers import coins as coins_of
from opendp_bayes.samplers.inversion import exp_enclosure
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

DRAWS = 20_000
SPACES: list[tuple[int, tuple[float, ...]]] = [(1, (1.0, 1.0)), (7, (0.05, 0.3)), (12, (1.0, 1.0))]
SPACES += [(5, (0.1, 2.0, 0.7)), (3, (0.5,) * 4)]


# The law.
@pytest.mark.parametrize("scale", [0.05, 0.7, 40.0])
@pytest.mark.parametrize(
    ("counts", "prior"),
    [
        *(((3, 2), (1.0, 1.0)), ((5, 0), (0.05, 0.3)), ((0, 1, 1), (0.1, 2.0, 0.7))),
        *(((1, 0, 0, 0), (0.5,) * 4), ((1, 0, 0, 0, 0, 0), (1.0,) * 6)),
    ],
)
def test_law_by_permutations(counts, prior, scale):
    stated = oracles.law_of(PermuteAndFlip(scale), counts, prior)
    truth = oracles.permute_and_flip_law(counts, prior, scale)
    assert list(stated) == list(oracles.data_sets(sum(counts), len(counts)))
    assert oracles.largest_relative_difference(stated, truth) < 1e-12


def test_law_notices_what_is_wrong() -> None:
    counts, prior = (1, 4), (0.1, 0.1)
    stated = oracles.law_of(PermuteAndFlip(0.7), counts, prior)
    for wrong in (
        oracles.permute_and_flip_law(counts, prior, 0.5),
        oracles.permute_and_flip_law(counts, prior, 0.9),
        oracles.permute_and_flip_law(counts, (0.5, 0.5), 0.7),
        oracles.exponential_law(counts, prior, 0.7),
    ):
        assert oracles.largest_relative_difference(stated, wrong) > 1e-3


def integral_of_polynomial(coins: Sequence[arb], chosen: int) -> float:
    """`p_r` times the integral over [0, 1] of `prod_{j != r} (1 - p_j t)`, in 200 bits."""
    coefficients = [arb(1)]
    for index, coin in enumerate(coins):
        if index != chosen:
            coefficients = [
                a - coin * b
                for a, b in zip([*coefficients, arb(0)], [arb(0), *coefficients], strict=True)
            ]
    return float(
        coins[chosen] * sum((c / (power + 1) for power, c in enumerate(coefficients)), start=arb(0))
    )


@pytest.mark.parametrize("scale", [0.02, 0.3, 2.0, 1e3, SCALES[1]])
@pytest.mark.parametrize(
    ("counts", "prior"),
    [((20, 25), (0.5, 0.2)), ((30, 30), (1.0, 1.0)), ((2, 0, 6), (0.3, 1.0, 2.0))],
)
def test_law_by_polynomials(counts: oracles.Counts, prior: tuple[float, ...], scale: float) -> None:
    candidates, log_p = PermuteAndFlip(scale).log_pmf(counts, prior)
    centre = oracles.posterior(counts, prior)
    coins = [
        (-oracles.hellinger(centre, oracles.posterior(y, prior)) / oracles.real(scale)).exp()
        for y in candidates.tolist()
    ]
    for index in range(0, len(coins), 4):
        assert math.exp(log_p[index]) == pytest.approx(
            integral_of_polynomial(coins, index), rel=1e-12, abs=0
        )


@pytest.mark.parametrize("likely", [1, 2, 3, 40, 41, 42, 43, 1000, 10**5])
@pytest.mark.parametrize("unlikely", [0, 7])
def test_equal_candidates_share_the_probability(likely: int, unlikely: int) -> None:
    """On both sides of where the quadrature stops short of 1, and with coins that underflow."""
    exponents = np.concatenate([np.zeros(likely), np.full(unlikely, 1e5)])
    log_p = log_permute_and_flip(exponents)
    np.testing.assert_allclose(log_p[:likely], -math.log(likely), rtol=0, atol=1e-12)
    # Among `likely` certain heads and one coin p the coin's chance is p / (likely + 1) up to p^2.
    np.testing.assert_allclose(log_p[likely:], -1e5 - math.log(likely + 1), rtol=1e-15, atol=1e-9)


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0, 1e4])
@pytest.mark.parametrize("number", [1, 2, 50, 100_000])
def test_probabilities_sum_to_one(number: int, spread: float) -> None:
    exponents = np.linspace(0, spread, number)
    assert math.fsum(np.exp(log_permute_and_flip(exponents))) == pytest.approx(1, rel=1e-12)


# Samples.
@pytest.mark.parametrize(
    ("counts", "prior", "scale"),
    [
        ((3, 5), (1.0, 1.0), 0.25),
        ((0, 8), (0.3, 1.0), 0.4),
        ((1, 1, 2), (0.5, 1.0, 2.0), 0.3),
        ((4, 0, 0), (1.0, 1.0, 1.0), 0.2),
    ],
)
def test_samples(counts: oracles.Counts, prior: tuple[float, ...], scale: float) -> None:
    samples = PermuteAndFlip(scale).sample(counts, prior, draws=DRAWS)
    assert samples.shape == (DRAWS, len(counts))
    other = oracles.exponential_law(counts, prior, scale)
    oracles.check_draws(
        samples, lambda of: oracles.law_of(PermuteAndFlip(of * scale), counts, prior), other
    )


def test_coins_are_of_the_distances_and_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly: where each is in doubt, coins of `exp(-distance / scale)` are enclosed as such."""
    enclosed: list[Fraction] = []

    def enclosure(x: Fraction, bits: int) -> tuple[int, int]:
        enclosed.append(x)
        return exp_enclosure(x, bits)

    monkeypatch.setattr(coins_of, "exp_enclosure", enclosure)
    monkeypatch.setattr(coins_of, "_DOUBT", 2.0)
    law = PermuteAndFlip(0.3).law(5, np.ones(2))
    assert (law.scale, law.limit.widths.scale) == (0.3, 0.3)
    counts, prior = np.array([1, 4]), np.array([0.3, 2.0])
    PermuteAndFlip(0.3).sample(counts, prior)
    distances = candidate_distances(counts, prior).tolist()
    assert enclosed == [Fraction(distance) / Fraction(0.3) for distance in distances]


# Scores.
@pytest.mark.parametrize(
    ("counts", "prior"),
    [
        *(((2048, 2048), (0.1, 0.1)), ((10, 4086), (0.3, 7.7)), ((0, 50_000), (1e-3, 1.0))),
        *(((2, 0, 6), (1e-9, 3.0, 0.2)), ((1, 1, 1, 1, 1), (0.5,) * 5)),
    ],
)
def test_computed_distances_are_within_the_certified_error(counts, prior):
    computed = candidate_distances(np.array(counts), np.array(prior))
    assert computed.min() == 0
    assert computed.max() <= 1
    centre, number = oracles.posterior(counts, prior), computed.size
    candidates, _ = PermuteAndFlip(1.0).log_pmf(counts, prior)
    for index in {
        *range(0, number, number // min(number, 150)),
        number - 1,
        int(np.argmin(computed)),
    }:
        truth = oracles.hellinger(centre, oracles.posterior(candidates[index].tolist(), prior))
        assert abs(oracles.real(computed[index]) - truth) <= oracles.real(score_error(len(prior)))


def test_three_log_gammas_are_not_within_the_certified_error() -> None:
    """Negative control: the textbook formula for a neighbour among 4096 records."""
    a, b = np.array([2048.1, 2048.1]), np.array([2049.1, 2047.1])
    log_bc = np.sum(gammaln((a + b) / 2) - gammaln(a) / 2 - gammaln(b) / 2)
    textbook = oracles.real(float(np.sqrt(1 - np.exp(log_bc))))
    assert abs(textbook - oracles.hellinger(a, b)) > oracles.real(score_error(2))


@pytest.mark.parametrize("d_in", [1, 2, 3])
@pytest.mark.parametrize(("size", "prior"), SPACES)
def test_computed_scores_change_by_at_most_the_bound(size, prior, d_in):
    """As rational numbers, over all pairs; at distance 1 a bound of 1 % less is exceeded."""
    rows = [
        list(map(Fraction, candidate_distances(np.array(counts), np.array(prior)).tolist()))
        for counts in oracles.data_sets(size, len(prior))
    ]
    away = oracles.distances(size, len(prior))
    change = max(
        abs(p - q)
        for row, near in zip(rows, (away > 0) & (away <= d_in), strict=True)
        for other in np.flatnonzero(near)
        for p, q in zip(row, rows[other], strict=True)
    )
    bound = Fraction(score_change(d_in, size=size, prior=np.array(prior)))
    assert change <= bound
    if d_in == 1:
        assert change > bound * Fraction(99, 100)
        assert change > bound - 4 * score_error(len(prior)) - Fraction(1, 2**44)


def test_score_change_is_rounded_up() -> None:
    prior = np.array([0.3, 1.7])
    exact = Fraction(global_sensitivity(50, prior))
    for d_in in (1, 7, 10**9):
        bound = Fraction(score_change(d_in, size=50, prior=prior))
        assert (
            d_in * exact + 2 * score_error(2)
            < bound
            < d_in * exact * (1 + Fraction(1, 2**43)) + 3 * score_error(2)
        )
    assert score_change(0, size=50, prior=prior) == 0.0


# The map.
@pytest.mark.parametrize("scale", [0.05, 0.9, 7.0])
def test_map_is_twice_the_change_of_the_score(scale: float) -> None:
    for size, prior in SPACES:
        for d_in in (1, 2, 10**6):
            loss = PermuteAndFlip(scale).proven_loss(d_in, size=size, prior=np.array(prior))
            exact = (
                2 * Fraction(score_change(d_in, size=size, prior=np.array(prior))) / Fraction(scale)
            )
            assert exact <= Fraction(loss.epsilon) <= exact * (1 + Fraction(1, 2**52))
            assert 2 * exact <= Fraction(loss.range)
            assert exact**2 / 2 <= Fraction(loss.rho)
            # that of EHD, up to what the errors of the two add
            ehd = HellingerExponential(scale).proven_loss(d_in, size=size, prior=np.array(prior))
            assert loss.epsilon == pytest.approx(ehd.epsilon, rel=1e-9)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.05, 0.05)])
def test_one_record_attains_the_map(prior: tuple[float, ...]) -> None:
    """All three bounds, to first order in 1 / scale: so the range is twice ε, and ρ is not ε^2 / 8
    as it is for the exponential mechanism.

    Negative control: 10 % less noise exceeds each of them.
    """
    bound = PermuteAndFlip(50.0).proven_loss(1, size=1, prior=np.array(prior))
    for name, loss in oracles.exact_losses(PermuteAndFlip(50.0), 1, prior).items():
        assert 0.97 * getattr(bound, name) < loss <= getattr(bound, name) + 1e-15
    for name, loss in oracles.exact_losses(PermuteAndFlip(45.0), 1, prior).items():
        assert loss > getattr(bound, name) * 1.05
    assert oracles.exact_losses(HellingerExponential(50.0), 1, prior)["rho"] <= bound.rho / 4


def test_notices_half_the_noise_and_the_direction_of_the_dominance() -> None:
    """Negative control: with the roles exchanged the comparison fails."""
    for size, prior in [(1, (1.0, 1.0)), (2, (0.05, 0.05)), (1, (1.0, 1.0, 1.0))]:
        bound = PermuteAndFlip(4.0).proven_loss(1, size=size, prior=np.array(prior)).epsilon
        own, half = (oracles.exact_losses(PermuteAndFlip(of), size, prior) for of in (4.0, 2.0))
        assert own["epsilon"] <= bound
        assert half["epsilon"] > 1.1 * bound
    counts, prior = (3, 9), (1.0, 1.0)
    order = np.argsort(candidate_distances(np.array(counts), np.array(prior)))
    flip, ehd = (
        np.exp(value.log_pmf(counts, prior)[1])
        for value in (PermuteAndFlip(0.3), HellingerExponential(0.3))
    )
    assert np.min(np.cumsum(ehd[order]) - np.cumsum(flip[order])) < -0.01


# Accuracy.
MORE = [*SPACES, (60, (1.0, 1.0)), (10, (1.0, 1.0, 1.0))]


@pytest.mark.parametrize(
    ("size", "prior", "scale"),
    some_of(((*space, scale) for space in MORE for scale in (0.05, 0.3, 1.0, 5.0)), 14),
)
def test_every_data_set_gets_less_error_than_from_ehd(size, prior, scale):
    """At the same ε: within any distance of the truth lies at least as much probability."""
    gained = 0.0
    for counts in oracles.data_sets(size, len(prior)):
        distance = candidate_distances(np.array(counts), np.array(prior))
        order = np.argsort(distance, kind="stable")
        flip, ehd = (
            np.exp(value.log_pmf(counts, prior)[1])
            for value in (PermuteAndFlip(scale), HellingerExponential(scale))
        )
        assert np.all(np.cumsum(flip[order]) >= np.cumsum(ehd[order]) - 1e-12)
        assert flip @ distance <= ehd @ distance
        gained = max(gained, 1 - flip @ distance / (ehd @ distance))
    assert gained > (0.1 if scale == 0.05 else 0)
    assert gained <= 0.5  # EHD's error is at most twice as large (McKenna and Sheldon)


def test_one_of_those_with_heads_is_chosen_evenly() -> None:
    """Of five candidates at distance 0 and one whose coin hardly ever shows heads."""
    distances = np.array([0.0] * 3 + [50.0] + [0.0] * 2)
    chosen = Counter(coins_of.among_heads(distances, Fraction(1), DRAWS).tolist())
    law = dict.fromkeys((0, 1, 2, 4, 5), 0.2)
    assert not oracles.rejects(chosen, law)
    assert oracles.rejects(chosen, law | {0: 0.26, 1: 0.14})
    assert coins_of.among_heads(distances, Fraction(1), 0).shape == (0,)


def test_the_error_of_the_law_covers_the_weights_of_the_quadrature() -> None:
    """Of numpy's nodes and weights, against those in ball arithmetic, which enter each term."""
    points, weights = np.polynomial.legendre.leggauss(permute_and_flip._POINTS.size)
    worst = 0.0
    for at, (point, weight) in enumerate(zip(points.tolist(), weights.tolist(), strict=True)):
        root, truth = arb.legendre_p_root(
            permute_and_flip._POINTS.size, len(points) - 1 - at, weight=True
        )
        assert abs(oracles.real(point) - root) < 2.0**-52
        worst = max(worst, oracles.relative_error(weight, truth))
    # It is stated as a loss, so it should not be much larger either.
    assert 2.0**-50 < worst <= permute_and_flip.LAW_ERROR / 4 <= 25 * worst


@pytest.mark.parametrize(("size", "prior"), [(6, (1.0, 0.3)), (4, (0.5, 1.0, 2.0))])
@pytest.mark.parametrize("d_in", [2, 3])
def test_the_loss_of_several_records_is_that_of_all_pairs(d_in, size, prior):
    """And attained; at every ε so is δ. Negative control: that of one record is exceeded."""
    mechanism = PermuteAndFlip(0.5)
    _, log_p = oracles.log_laws(mechanism, size, prior)
    away = oracles.distances(size, len(prior))
    one, several = (exact_loss(mechanism, size=size, prior=prior, d_in=d) for d in (1, d_in))
    exact = oracles.exact_losses(mechanism, size, prior, d_in)
    truth = exact["epsilon"]
    assert one.epsilon < truth <= several.epsilon <= truth * (1 + 1e-6)
    assert exact["range"] <= several.range
    assert exact["rho"] <= several.rho
    profile, of_one = (
        privacy_profile(mechanism, size=size, prior=prior, d_in=d) for d in (d_in, 1)
    )
    for epsilon in (0.0, 0.5 * truth, 0.9 * truth):
        delta = oracles.over_pairs(log_p, away, d_in, oracles.hockey_stick(epsilon))
        assert of_one(epsilon) < delta <= float(profile(epsilon)) <= delta * (1 + 1e-6) + 1e-12
