"""Theorems 3 to 5 as numbers on both sides, with counterexamples where the text fails."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations

import definitions
import numpy as np
import paper
import pytest

from opendp_bayes_smoothed import database_profile, smoothed_delta, vertices


def test_theorems_1_and_3_ii() -> None:
    """δ >= (T/n) max_π max_i π(i)^n, of one kind of record: exponential with rate ln f at most.
    With all distributions in Π the smoothed δ is the largest profile, T/n.
    """
    for corners in ([[0.5, 0.5]], [[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.3, 0.5]]):
        for size in (5, 10, 20):
            found = smoothed_delta(corners, size, 0.8, 2.0)
            assert found >= 0.8 * np.max(corners) ** size * (1 - 1e-12)
            assert found >= 0.8 * np.min(corners) ** size
    everything = np.eye(3).tolist()
    assert smoothed_delta(everything, 6, 0.5, 1.0) == pytest.approx(0.5, rel=1e-8)
    assert smoothed_delta([[0.5, 0.25, 0.25]], 6, 0.5, 1.0) < 0.48


def average_law(values: list[Fraction], samples: int) -> definitions.Law:
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    for chosen in combinations(values, samples):
        law[sum(chosen, Fraction(0)) / samples] += Fraction(1, math.comb(len(values), samples))
    return law


def test_theorem_4_continuous_averages_have_no_smoothed_privacy() -> None:
    """Random fractions have no coincidences, so d(x', x) = T/n for every ε and every law."""
    rng = np.random.default_rng(0)
    for size, samples in [(5, 2), (6, 3), (6, 5), (4, 4)]:
        x = [Fraction(int(v), 10**9) for v in rng.integers(0, 10**9, size)]
        other = [*x[:-1], Fraction(int(rng.integers(0, 10**9)), 10**9)]
        for epsilon in (0.0, 1.0, 30.0):
            factor = Fraction(math.exp(epsilon))
            assert definitions.hockey_stick(
                average_law(other, samples), average_law(x, samples), factor
            ) == Fraction(samples, size)
    # The other side: values on a coarse grid coincide, and the divergence is smaller.
    grid = [Fraction(v) for v in (0, 0, 1, 1, 0, 1)]
    moved = [*grid[:-1], Fraction(0)]
    assert definitions.hockey_stick(
        average_law(moved, 3), average_law(grid, 3), Fraction(math.exp(1.0))
    ) < Fraction(3, 6)


def test_smoothed_average() -> None:
    """Algorithm 1 over all histograms of three levels against the definition."""
    distributions = [
        (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),
        (Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)),
    ]
    floats = [[float(p) for p in row] for row in distributions]
    size, samples, epsilon = 5, 2, 0.3

    def law(counts: tuple[int, ...]) -> definitions.Law:
        values = [Fraction(v) for v, count in enumerate(counts) for _ in range(count)]
        return average_law(values, samples)

    truth = float(definitions.smoothed_delta(law, distributions, size, epsilon))
    average = paper.of_a_sample(lambda h: h[1] + 2 * h[2], 3, samples)
    found = paper.smoothed(average, floats, size, epsilon)
    assert found == pytest.approx(truth, rel=1e-8)
    assert found <= smoothed_delta(floats, size, Fraction(samples, size), epsilon)


def test_theorem_5_smoothed() -> None:
    """T = o(n): at ε = 1 + 2T/n δ falls exponentially, and is 0 once both counts exceed T + 1."""
    logs = []
    for size in (100, 200, 400):
        samples = math.isqrt(size)
        epsilon = 1 + 2 * samples / size
        rate = Fraction(samples, size)
        counts = [samples + 2, size - samples - 2]
        assert database_profile(counts, rate, epsilon, replacement="with") < 1e-10
        of = [[0.3, 0.7]], size, rate, epsilon
        logs.append(math.log(smoothed_delta(*of, replacement="with")))
    slopes = np.diff(logs) / np.diff([100, 200, 400])
    assert np.all(slopes < -0.05)


def test_nebraska_2_is_no_vertex() -> None:
    """Biden carried NE-2, so its share lies inside; the other end of the hull is NE-3."""
    votes = paper.districts()
    rows = {name: first / (first + second) for name, (first, second) in votes.items()}
    ends = vertices([[share, 1 - share] for share in rows.values()])[:, 0]
    assert ends.tolist() == pytest.approx([rows["Nebraska 3"], rows["District of Columbia"]])
    names = "Nebraska 3", "Wyoming", "Nebraska 2", "District of Columbia"
    small, smaller, large, larger = (rows[name] for name in names)
    assert small < smaller < 0.5 < large < larger
    assert rows["District of Columbia"] == pytest.approx(0.9446, abs=2e-4)
    assert tuple(map(sum, zip(*(votes[f"Nebraska {i}"] for i in (1, 2, 3)), strict=True))) == (
        374_583,
        556_846,
    )
    assert tuple(map(sum, zip(*(votes[f"Maine {i}"] for i in (1, 2)), strict=True))) == (
        435_072,
        360_737,
    )
