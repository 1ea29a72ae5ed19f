"""Probabilities of draws against ball arithmetic, at the size of elections, and fractions."""

from fractions import Fraction
from math import comb

import definitions
import numpy as np
import pytest
from definitions import log_comb
from scipy.special import gammaln

from opendp_bayes.extend import candidates
from opendp_bayes_smoothed.draws import (
    DRAWS,
    WithoutReplacement,
    WithReplacement,
    log_factorial,
    log_pmf_error,
    log_sampled,
)
from tests.helpers import oracles

LARGE = [(16_144_093, 9_139_661, 0.998), (81_283_501, 74_223_975, 0.998), (10**8, 10**8, 0.5)]
LARGE += [(5 * 10**8, 3, 0.1), (1000, 10**9 - 1000, 0.9999)]


def points(a: int, b: int, s: int) -> list[int]:
    low, high = max(0, s - b), min(a, s)
    n = a + b
    spread = int((s * (a / n) * (b / n) * (n - s) / (n - 1)) ** 0.5) + 1
    centre = s * a // (a + b)
    return sorted(
        {min(max(centre + z * spread, low), high) for z in (-40, -12, -3, 0, 1, 3, 12, 40)}
        | {low, high}
    )


@pytest.mark.parametrize(("a", "b", "rate"), LARGE)
def test_hypergeometric_probabilities_are_within_their_bound(a: int, b: int, rate: float) -> None:
    s = round(rate * (a + b))
    k = np.array(points(a, b, s))
    found = WithoutReplacement().log_pmf(k, np.array(a), np.array(b), np.array(s))
    textbook_errors = []
    for value, log_p, bound in zip(
        k.tolist(), found.tolist(), log_pmf_error(found).tolist(), strict=True
    ):
        truth = log_comb(a, value) + log_comb(b, s - value) - log_comb(a + b, s)
        assert float(abs(oracles.real(log_p) - truth)) <= bound
        pairs = ((a, value), (b, s - value), (a + b, s))
        parts = [float(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)) for n, m in pairs]
        textbook_errors.append(float(abs(oracles.real(parts[0] + parts[1] - parts[2]) - truth)))
    # Negative control: three binomial coefficients from gammaln are far outside the bound.
    assert max(textbook_errors) > 1e3 * float(log_pmf_error(np.zeros(1))[0])


@pytest.mark.parametrize(
    ("a", "b", "s"), [(10**8, 5 * 10**7, 10**6), (3, 10**9 - 3, 10**9), (10**5, 1, 10**4)]
)
def test_binomial_probabilities_are_within_their_bound(a: int, b: int, s: int) -> None:
    spread = int((s * (a / (a + b)) * (b / (a + b))) ** 0.5) + 1
    k = np.unique(np.clip(s * a // (a + b) + np.array([-12, -3, 0, 1, 12]) * spread, 0, s))
    found = WithReplacement().log_pmf(k, np.array(a), np.array(b), np.array(s))
    for value, log_p, bound in zip(
        k.tolist(), found.tolist(), log_pmf_error(found).tolist(), strict=True
    ):
        truth = (
            log_comb(s, value)
            + value * oracles.real(Fraction(a, a + b)).log()
            + (s - value) * oracles.real(Fraction(b, a + b)).log()
        )
        assert float(abs(oracles.real(log_p) - truth)) <= bound


def test_log_factorials_and_the_error_of_a_logarithm() -> None:
    for n in (0, 1, 2, 15, 16, 17, 1000, 10**6):
        truth = oracles.log_gamma(Fraction(n + 1))
        assert (
            oracles.relative_error(float(log_factorial(np.array(n))), truth) < 1e-15
            if n > 1
            else float(log_factorial(np.array(n))) == pytest.approx(0, abs=1e-15)
        )
    logs = np.array([0.0, -1.0, -700.0, -1e9])
    assert np.all(log_pmf_error(logs) >= 2.0**-44 + 2.0**-46 * (48 - logs))


@pytest.mark.parametrize("draw", [WithoutReplacement(), WithReplacement()], ids=["without", "with"])
def test_steps_ratios_and_support_by_fractions(draw: WithoutReplacement | WithReplacement) -> None:
    def pmf(k: int, a: int, b: int, s: int) -> Fraction:
        if isinstance(draw, WithoutReplacement):
            return Fraction(comb(a, k) * comb(b, s - k), comb(a + b, s))
        return comb(s, k) * Fraction(a, a + b) ** k * Fraction(b, a + b) ** (s - k)

    for a, b, s in [(3, 4, 2), (3, 4, 6), (1, 5, 5), (6, 1, 4), (4, 0, 3), (1, 0, 1)]:
        arrays = [np.array([value]) for value in (a, b, s)]
        low, high = (int(end[0]) for end in draw.support(*arrays))
        assert [k for k in range(s + 1) if pmf(k, a, b, s) > 0] == list(range(low, high + 1))
        for k in range(low, high + 1):
            at = np.array([k])
            assert np.exp(draw.log_pmf(at, *arrays))[0] == pytest.approx(
                float(pmf(k, a, b, s)), rel=1e-14
            )
            ratio = pmf(k, a - 1, b + 1, s) / pmf(k, a, b, s)
            assert draw.ratio(at, *arrays)[0] == pytest.approx(
                float(ratio), rel=float(draw.ratio_error(*arrays)[0])
            )
            if k < high:
                assert draw.step(at, *arrays)[0] == pytest.approx(
                    float(pmf(k + 1, a, b, s) / pmf(k, a, b, s)), rel=1e-14
                )


@pytest.mark.parametrize("draw", [WithoutReplacement(), WithReplacement()], ids=["without", "with"])
def test_ratios_are_within_their_error(draw: WithoutReplacement | WithReplacement) -> None:
    """Against ball arithmetic; with replacement the error grows with the number drawn."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        a, b = (int(10 ** rng.uniform(0.4, 8)) for _ in range(2))
        s = int(rng.integers(1, a + b))
        low, high = (int(end) for end in draw.support(np.array(a), np.array(b), np.array(s)))
        k = int(rng.integers(low, high + 1))
        arrays = [np.array([value]) for value in (k, a, b, s)]
        found, bound = float(draw.ratio(*arrays)[0]), float(draw.ratio_error(*arrays[1:])[0])
        if isinstance(draw, WithoutReplacement):
            truth = oracles.real(definitions.ratio(k, a, b, s))
            assert bound >= 3 * 2.0**-53
        else:
            truth = (
                k * oracles.real(Fraction(a - 1, a)).log()
                + (s - k) * oracles.real(Fraction(b + 1, b)).log()
            ).exp()
            assert bound >= 5 * 2.0**-53 * (2 * s / a + s / b)
        if 1e-290 < found < 1e290:
            error = float(abs(oracles.real(found) / truth - 1))
            assert error <= bound
            worst = max(worst, error / 2.0**-51)
    assert worst > (0.3 if isinstance(draw, WithoutReplacement) else 100)


@pytest.mark.parametrize("replacement", ["without", "with"])
@pytest.mark.parametrize(("size", "samples", "k"), [(6, 3, 2), (5, 5, 2), (4, 2, 3), (5, 3, 4)])
def test_the_laws_of_a_sample(size: int, samples: int, k: int, replacement: str) -> None:
    histograms = candidates(samples, k)
    for x in oracles.data_sets(size, k):
        truth = definitions.sampled(x, samples, replacement)
        found = np.exp(log_sampled(DRAWS[replacement], np.array(x), histograms))
        for p, h in zip(found, histograms.tolist(), strict=True):
            exact = truth.get(tuple(h), Fraction(0))
            assert abs(Fraction(p) - exact) <= exact * Fraction(2.0**-35)


def test_the_laws_of_a_large_sample_are_as_accurate_as_they_say() -> None:
    counts, histograms = np.array([1500, 900, 600]), np.array([[700, 450, 350], [850, 350, 300]])
    found = np.exp(log_sampled(DRAWS["without"], counts, histograms))
    for p, h in zip(found, histograms.tolist(), strict=True):
        ways = comb(1500, h[0]) * comb(900, h[1]) * comb(600, h[2])
        exact = Fraction(ways, comb(3000, 1500))
        assert abs(Fraction(p) - exact) <= exact * Fraction(2.0**-35)
