"""Any anonymous mechanism by its laws, and what is released of a sample, against the definitions in
rational arithmetic.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product

import definitions
import numpy as np
import pytest

from opendp_bayes.extend import candidates
from opendp_bayes_smoothed import (
    anonymous_delta,
    anonymous_profile,
    laws,
    smoothed_delta,
    smoothed_value,
)
from opendp_bayes_smoothed.draws import DRAWS
from opendp_bayes_smoothed.kernels import average_laws, noise_kernel, noised_laws
from opendp_bayes_smoothed.laws import histogram_laws, hockey_stick, sampled
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

EPSILONS = (0.0, 0.3, 1.0)
PI = {
    2: [(Fraction(1, 4), Fraction(3, 4)), (Fraction(5, 8), Fraction(3, 8))],
    3: [tuple(Fraction(x, 8) for x in row) for row in ((4, 3, 1), (1, 4, 3))],
}


def floats(rows: list[tuple[Fraction, ...]]) -> list[list[float]]:
    return [[float(p) for p in row] for row in rows]


def mechanism(size: int, k: int, seed: int) -> dict[tuple[int, ...], list[Fraction]]:
    """A random anonymous mechanism with four outcomes, some of them impossible."""
    rng = np.random.default_rng(seed)
    rows = {}
    for counts in oracles.data_sets(size, k):
        weights = rng.integers(0, 6, 4) + np.array([1, 0, 0, 0])
        rows[counts] = [Fraction(int(w), int(weights.sum())) for w in weights]
    return rows


@pytest.mark.parametrize(("size", "k"), [(1, 2), (5, 2), (4, 3), (3, 4)])
def test_profiles_and_algorithm_1_equal_the_definitions(size: int, k: int) -> None:
    rows = mechanism(size, k, seed=size * k)
    for epsilon in EPSILONS:
        truth = {
            x: definitions.profile(lambda y: dict(enumerate(rows[y])), x, epsilon) for x in rows
        }
        for x, exact in truth.items():
            found = anonymous_profile(lambda y: [float(p) for p in rows[y]], x, epsilon)
            assert exact <= Fraction(found) <= exact * Fraction(1 + 1e-9) + Fraction(1e-9)
        if k in PI:
            found = anonymous_delta(
                lambda y: [float(p) for p in rows[y]], floats(PI[k]), size, epsilon
            )
            exact = definitions.smoothed(lambda x, t=truth: t[x], PI[k], size)
            assert exact <= Fraction(found) <= exact * Fraction(1 + 1e-8) + Fraction(1e-9)


def test_the_comparison_notices_one_direction_alone() -> None:
    """Negative control: divergences from x only, or to its first neighbour only."""
    rows = mechanism(5, 2, seed=3)
    law: Callable = lambda y: [float(p) for p in rows[y]]  # noqa: E731
    truth = [definitions.profile(lambda y: dict(enumerate(rows[y])), x, 0.3) for x in rows]
    one_way = [
        max(
            definitions.hockey_stick(
                dict(enumerate(rows[x])), dict(enumerate(rows[y])), Fraction(math.exp(0.3))
            )
            for y in oracles.neighbours(x)
        )
        for x in rows
    ]
    assert any(a < b for a, b in zip(one_way, truth, strict=True))
    found = [anonymous_profile(law, x, 0.3) for x in rows]
    assert all(a >= b for a, b in zip(found, truth, strict=True))


@pytest.mark.parametrize("replacement", ["without", "with"])
@pytest.mark.parametrize(("size", "samples", "k"), [(6, 3, 2), (5, 5, 2), (4, 2, 3), (5, 3, 4)])
def test_the_laws_of_a_sample(size: int, samples: int, k: int, replacement: str) -> None:
    found = histogram_laws(size, samples, k, replacement)
    for row, x in zip(found.matrix, oracles.data_sets(size, k), strict=True):
        truth = definitions.sampled(x, samples, replacement)
        for p, h in zip(row, candidates(samples, k).tolist(), strict=True):
            exact = truth.get(tuple(h), Fraction(0))
            assert abs(Fraction(p) - exact) <= exact * Fraction(found.error)


def test_the_laws_of_a_large_sample_are_as_accurate_as_they_say() -> None:
    counts, histograms = np.array([1500, 900, 600]), np.array([[700, 450, 350], [850, 350, 300]])
    found = sampled(DRAWS["without"], counts, histograms)
    for p, h in zip(found, histograms.tolist(), strict=True):
        ways = math.prod(math.comb(int(x), y) for x, y in zip(counts, h, strict=True))
        exact = Fraction(ways, math.comb(3000, 1500))
        assert abs(Fraction(p) - exact) <= exact * Fraction(2.0**-35)


def noised(
    samples: int, scale: float, largest: int
) -> Callable[[tuple[int, ...]], definitions.Law]:
    """The law of the noised histogram (Algorithm 4), up to a largest count."""
    q = Fraction(math.exp(-1 / scale))

    def of_count(h: int) -> list[Fraction]:
        total = (1 + q - q ** (h + 1)) / (1 - q)
        return [q ** abs(y - h) / total for y in range(largest + 1)]

    @cache  # data sets have the same samples
    def of_sample(h: tuple[int, ...]) -> definitions.Law:
        each = [of_count(count) for count in h]
        outcomes = product(range(largest + 1), repeat=len(h))
        return {y: math.prod(row[at] for row, at in zip(each, y, strict=True)) for y in outcomes}

    def law(counts: tuple[int, ...]) -> definitions.Law:
        result: dict = {}
        for h, p in definitions.sampled(counts, samples, "without").items():
            if p:
                for y, weight in of_sample(h).items():
                    result[y] = result.get(y, Fraction(0)) + p * weight
        return result

    return law


@pytest.mark.parametrize(
    ("size", "samples", "scale", "largest"),
    some_of([(4, 2, 1.0, 29), (3, 3, 0.5, 19), (5, 3, 2.0, 39)], 1),
)
def test_the_noised_histogram_equals_the_definition(
    size: int, samples: int, scale: float, largest: int
) -> None:
    """All counts of at least T taken for one outcome, against counts so large that what is left out
    matters less than 1e-8.
    """
    found = noised_laws(size, samples, 2, scale)
    law = noised(samples, scale, largest)
    rows = {x: law(x) for x in oracles.data_sets(size, 2)}
    for epsilon in (0.1, 0.6):
        logs = found.log_profiles(epsilon)
        for x, log_delta in zip(rows, logs, strict=True):
            truth = definitions.profile(rows.__getitem__, x, epsilon)
            above = truth * Fraction(1 + 1e-9) + Fraction(2 * math.exp(-(largest - 1) / scale))
            assert truth <= Fraction(math.exp(log_delta)) <= above
            alone = definitions.profile(
                lambda y: definitions.sampled(y, samples, "without"), x, epsilon
            )
            assert truth < alone, "the control: sampling without the noise is far above"


def test_too_little_noise_is_caught() -> None:
    """Negative control: the δ of 10 % less noise is above, that of 10 % more below."""
    own, less, more = (noised_laws(8, 5, 2, scale).log_profiles(0.2) for scale in (2.0, 1.8, 2.2))
    assert np.all(less > own)
    assert np.all(more < own)


def test_the_kernel_of_the_noise_is_a_law() -> None:
    kernel = noise_kernel(6, 2, 1.7)
    assert kernel.shape == (7, 49)
    assert kernel.sum(axis=1) == pytest.approx(np.ones(7), rel=1e-13)


def test_noise_or_samples_beyond_reach_are_not_tabulated() -> None:
    assert noised_laws(2000, 1000, 2, 2.0) is None
    assert average_laws(10**6, 10, (0.0, 1.0, 2.0), "without") is None


def test_an_average_whose_values_are_equal_tells_nothing() -> None:
    found = average_laws(6, 3, (0.5, 0.5, 0.5), "without")
    assert found.matrix.shape == (28, 1)
    assert np.all(np.exp(found.log_profiles(0.3)) < 1e-250)
    merged = average_laws(6, 3, (0.1, 0.1, 0.3), "without")
    assert merged.matrix.shape == (28, 4), "0.1 twice and 0.3: by how many are 0.3"


def test_outcomes_in_doubt_count() -> None:
    """With probabilities too low by their error: still a bound, at every outcome."""
    rng = np.random.default_rng(0)
    for error in (1e-3, 1e-9):
        p, q = rng.dirichlet(np.ones(6), 50), rng.dirichlet(np.ones(6), 50)
        wrong = p * (1 - error) / (1 + 1e-12), q * (1 + error) / (1 - 1e-12)
        for epsilon in (0.0, 0.5):
            truth = np.maximum(p - math.exp(epsilon) * q, 0).sum(axis=1)
            found = hockey_stick(*wrong, epsilon, 1.01 * error)
            assert np.all(truth <= found)
            blind = hockey_stick(*wrong, epsilon, 0.0)
            assert np.any(blind < truth), "the control"


@pytest.mark.parametrize("outcomes", [1, 5, 300])
def test_the_roundings_of_a_sum_are_counted(outcomes: int) -> None:
    """One of each outcome, and two more."""
    found = hockey_stick(np.ones(outcomes), np.zeros(outcomes), 1.0, 0.0)
    assert Fraction(float(found)) >= outcomes * (1 + Fraction(outcomes + 2, 2**50))


def test_the_errors_of_laws_one_after_the_other_are_added() -> None:
    """And the roundings of a sum over the outcomes between them."""
    first = laws.Laws(np.full((2, 64), 1 / 64), 0.25, 1, 2)
    then = first.then(np.full((64, 3), 1 / 3), 2.0**-30)
    assert Fraction(then.error) >= Fraction(1, 4) + Fraction(1, 2**30) + Fraction(64, 2**51)


def test_a_large_epsilon_leaves_what_the_neighbour_cannot_have() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    assert hockey_stick(p, q, math.inf, 0.0) == pytest.approx(0.5)
    assert hockey_stick(p, np.array([1e-3, 0.999]), 700.0, 0.0) < 1e-250


def test_any_value_is_averaged() -> None:
    """The same as the smoothed δ, from the profiles; and a refusal of what is no probability."""
    corners, size = floats(PI[2]), 6
    profiles = {
        x: float(definitions.profile(lambda y: definitions.sampled(y, 3, "without"), x, 0.4))
        for x in oracles.data_sets(size, 2)
    }
    found = smoothed_value(profiles.__getitem__, corners, size)
    assert found == pytest.approx(smoothed_delta(corners, size, 0.5, 0.4), rel=1e-8)
    with pytest.raises(ValueError, match=r"function: gives 2.0 for \(0, 3\)"):
        smoothed_value(lambda x: 2.0, corners, 3)
    with pytest.raises(ValueError, match=r"function: gives nan"):
        smoothed_value(lambda x: math.nan, corners, 3)


@pytest.mark.parametrize(
    ("law", "match"),
    [
        (lambda x: [0.5, 0.6], r"law: gives \[0.5, 0.6\] for \(0, 3\)"),
        (lambda x: [1.5, -0.5], "law: gives"),
        (lambda x: [[1.0]], "law: gives"),
        (
            lambda x: [1.0] if x[0] else [0.5, 0.5],
            r"law: gives 1 outcomes .* and 2",
        ),
    ],
)
def test_what_is_no_law(law: Callable, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        anonymous_delta(law, [[0.5, 0.5]], 3, 1.0)
    with pytest.raises(ValueError, match=match.replace("(0, 3)", "(0, 3)")):
        anonymous_profile(law, [0, 3], 1.0)


def test_too_many_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "LARGEST_LAWS", 10)
    with pytest.raises(ValueError, match="law: gives 4 outcomes"):
        anonymous_delta(lambda x: [0.25] * 4, [[0.5, 0.5]], 3, 1.0)
    with pytest.raises(ValueError, match=r"size=20: .* 21 histograms"):
        anonymous_delta(lambda x: [1.0], [[0.5, 0.5]], 20, 1.0)


def test_a_law_may_be_off_by_the_error_that_is_allowed() -> None:
    error = 2.0**-35

    def law(counts: tuple[int, ...]) -> list[float]:
        first = 0.75 * (1 - error) if counts[0] > counts[1] else 0.25 * (1 + error)
        return [first, 1 - first]

    assert anonymous_profile(law, [2, 1], 0.5) >= 0.75 - math.exp(0.5) * 0.25
