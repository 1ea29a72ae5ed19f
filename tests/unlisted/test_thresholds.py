"""Laws by which unlisted keys are shown: published chances, proved weights, and draws."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.unlisted import thresholds
from tests.helpers import listed_keys, oracles
from tests.helpers.sweeps import some_of

LAWS: list[thresholds.Threshold] = [
    thresholds.OptimalThreshold(1.0, 1e-8),
    thresholds.OptimalThreshold(0.5, 0.02, 0.3),
]
LAWS += [thresholds.LaplaceThreshold(1.5, 12), thresholds.GaussianThreshold(5.2, 31)]
WHOLE = 1 << 128


#: The first are those of the tests of Google's library.
TABLED: list[tuple[tuple[float, ...], int, dict[int, float]]] = [
    ((0.5, 0.02), 12, {6: 0.588404844583, 8: 0.868070806254}),
    ((0.5, 0.02), 12, {2: 0.0529744254140, 5: 0.344754965369, 11: 0.994513423092}),
    ((1.0, 1e-8), 37, {10: 1.28183080505e-4, 18: 0.382125720297}),
    ((1.0, 1e-8), 37, {19: 0.772696758947, 25: 0.999436577402}),
    ((0.1, 1e-6), 218, {50: 1.40165324978e-3, 109: 0.515117342208}),
    ((0.1, 1e-6), 218, {110: 0.561260932710, 200: 0.999955362456}),
    ((2.0, 1e-10), 25, {5: 3.44737398667e-7, 12: 0.414601495411, 13: 0.920774927589}),
    ((1.0, 1e-8, 0.8), 41, {19: 0.722371194440, 25: 0.997715193249, 35: 0.999999241690}),
]


@pytest.mark.parametrize(("parameters", "length", "values"), TABLED)
def test_published_chances(parameters, length, values):
    law = thresholds.OptimalThreshold(*parameters)
    assert len(law.weights) == length
    assert law.shown([*values]) == pytest.approx([*values.values()], rel=3e-12)
    assert law.shown([0, length, length + 1]).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("epsilon", "rows"),
    [
        (0.1, [(109, 132, 148, 218, 14.1), (155, 178, 194, 310, 14.1), (201, 224, 240, 402, 14.1)]),
        (0.5, [(26, 30, 34, 51, 2.82), (35, 40, 43, 70, 2.81), (44, 49, 52, 88, 2.84)]),
        (1.0, [(14, 16, 18, 28, 1.38), (19, 21, 23, 37, 1.42), (23, 26, 27, 46, 1.44)]),
        (2.0, [(8, 9, 10, 15, 0.667), (10, 11, 12, 20, 0.704), (13, 14, 15, 25, 0.774)]),
    ],
)
def test_published_counts_that_are_shown(epsilon: float, rows: list[tuple[float, ...]]) -> None:
    for delta, row in zip((1e-6, 1e-8, 1e-10), rows, strict=True):
        law = thresholds.OptimalThreshold(epsilon, delta)
        found = (*(law.least_shown(share) for share in (0.5, 0.95, 0.99)), len(law.weights))
        assert found == row[:4]
        assert law.std == pytest.approx(row[4], rel=5e-3)
        assert law.threshold == law.least_shown(0.5)


def exact_weights(epsilon: Fraction, decay: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Weights of exact rationals, which floats are not."""
    return thresholds._weights(epsilon, decay, delta)[0]


def test_published_weights_and_numbers_of_values() -> None:
    found = exact_weights(Fraction(1), Fraction(1), Fraction(1, 10**8))
    assert found[0] == 3402823669209384634633746074297
    assert found[1] == 9249833745462203371509110358378
    assert found[-1] == 1221765389883622342991254728920
    for growth, delta, decay in SETTINGS[::5]:
        told = thresholds._length(growth, decay, delta)
        assert abs(told - len(thresholds.OptimalThreshold(growth, delta, decay).weights)) <= 3


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


GROWTHS, DELTAS = (0.1, 0.5, 1.0, 2.0, 7.0, 30.0), (0.3, 1e-2, 1e-6, 1e-10, 1e-15, 1e-20)
EVERY = product(GROWTHS, DELTAS, (1, 0.8, 0.3))
SETTINGS = [(growth, delta, growth * part) for growth, delta, part in EVERY]


#: Weights that were rounded and not checked at the decay exceed δ here, by some 1e-39.
ROUNDED = [(1.3, 0.01, 0.13), (2.0, 0.01, 0.2), (2.0, 0.01, 0.4)]


@pytest.mark.parametrize(("growth", "delta", "decay"), [*ROUNDED, *some_of(SETTINGS, 12)])
def test_weights_give_no_more_away_than_delta(growth: float, delta: float, decay: float) -> None:
    """Both sums of the proof, in ball arithmetic over the whole numbers that are sampled."""
    law = thresholds.OptimalThreshold(growth, delta, decay)
    weights = law.weights
    assert sum(weights) == WHOLE
    assert min(weights) > 0
    with ctx.workprec(700):
        up, down = ball(Fraction(growth)).exp(), ball(Fraction(decay)).exp()
        limit = ball(Fraction(delta)) * WHOLE
        rising = sum(
            (d - up * before for before, d in pairwise([0, *weights]) if d - up * before > 0),
            arb(0),
        )
        assert rising <= limit
        seen, hidden = arb(0), WHOLE
        for d, after in pairwise([0, *weights, 0]):
            lost, later = d - up * after, hidden - after
            seen += lost if lost > 0 else 0
            falls = hidden - down * later
            assert seen + (falls if falls > 0 else 0) <= limit
            hidden = later
        # Hardly anything is given away, and a little less of δ would not be kept.
        assert rising >= limit * (1 - 1e-9)
    assert thresholds.excess(weights, Fraction(growth), Fraction(decay)) <= Fraction(delta)


@pytest.mark.parametrize(("growth", "delta", "decay"), some_of(SETTINGS, 12))
def test_chances_are_those_of_the_closed_form(growth: float, delta: float, decay: float) -> None:
    """Of balls: growth from below, then decay of what is hidden, and the recursion of floats."""
    law = thresholds.OptimalThreshold(growth, delta, decay)
    ends = [end / WHOLE for end in accumulate(law.weights)]
    with ctx.workprec(500):
        g, h, d = (ball(Fraction(value)) for value in (growth, decay, delta))
        grown = [d * (g * n).expm1() / g.expm1() for n in range(len(ends) + 1)]
        turn = 0
        while turn < len(ends):
            following = 1 - (-h).exp() * (1 - grown[turn] - d)
            if following < grown[turn + 1] or grown[turn + 1] > 1:
                break
            turn += 1
        q = d / h.expm1()
        for n, end in enumerate(ends[:-1], start=1):
            fallen = (1 - grown[turn] + q) * (-h * (n - turn)).exp() - q
            exact = float(grown[n] if n <= turn else 1 - fallen)
            assert end == pytest.approx(exact, rel=1e-9, abs=1e-30)
    if delta > 1e-12:
        by_steps = listed_keys.chances(growth, delta, decay)
        assert abs(len(by_steps) - 1 - len(ends)) <= 1
        assert ends[: len(by_steps) - 2] == pytest.approx(by_steps[1:-1], rel=1e-6)


def test_unrounded_chances_are_near_and_an_optimal_law_meets_its_delta() -> None:
    """A negative control: weights rounded from δ itself give more away."""
    for growth, delta, decay in ((1.0, 1e-8, 1.0), (0.5, 1e-3, 0.2), (7.0, 1e-10, 5.6)):
        law = thresholds.OptimalThreshold(growth, delta, decay)
        d = [b - a for a, b in pairwise([0, *law.chances])]
        error = 1 << 320 - 248
        assert all(
            (b + error) ** 2 >= max(0, a - error) * max(0, c - error)
            for a, b, c in zip(d, d[1:], d[2:], strict=False)
        )
        assert [chance >> 192 for chance in law.chances] == [*accumulate(law.weights)]
        assert law.chances[-1] == 1 << 320
    chances = thresholds._chances(Fraction(1), Fraction(1), Fraction(1, 10**8))
    weights = tuple(b - a for a, b in pairwise([0, *(chance >> 192 for chance in chances)]))
    assert thresholds.excess(weights, Fraction(1), Fraction(1)) > Fraction(1, 10**8)
    k, epsilon = 3, 1.0
    r = math.exp(-epsilon)
    largest = (1 - r) / (1 + r - 2 * r ** (k + 1))
    law = thresholds.OptimalThreshold(epsilon, largest * r**k)
    masses = law.masses[1]
    truncated = [largest * r ** abs(z) for z in range(-k, k + 1)]
    assert sorted(masses)[-(2 * k + 1) :] == pytest.approx(sorted(truncated), rel=1e-9)
    assert math.fsum(masses) == pytest.approx(math.fsum(truncated), rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_chances_and_moments_are_those_of_masses_and_draws(law: thresholds.Threshold) -> None:
    """Chi-square at `oracles.FALSE_ALARM`; a scale wrong by 30 % is noticed."""
    first, p = law.masses
    value = first + np.arange(p.size)
    assert math.fsum(p) == pytest.approx(1, abs=1e-13)
    mean = math.fsum(value * p)
    assert law.std == pytest.approx(math.sqrt(math.fsum((value - mean) ** 2 * p)), rel=1e-12)
    counts = np.arange(3 * law.threshold)
    truth = [math.fsum(p[value >= law.threshold - n]) if n else 0.0 for n in counts.tolist()]
    assert law.shown(counts) == pytest.approx(truth, rel=1e-11)
    assert law.shown(counts.reshape(3, -1)).shape == (3, law.threshold)
    assert law.shown(10**12) == 1.0
    for share in (1e-9, 0.1, 0.5, 0.95, 0.99, 0.999999):
        least = law.least_shown(share)
        assert law.shown(least) >= share
        assert least == 1 or law.shown(least - 1) < share
    drawn = law.draws(60_000)
    assert drawn.dtype == law.draws(0).dtype == np.int64
    assert law.draws(0).shape == (0,)
    assert drawn.shape == (60_000,)
    first, p = law.masses
    masses: dict[Any, float] = dict(enumerate(p.tolist(), start=first))
    assert not oracles.rejects(Counter(drawn.tolist()), masses)
    wider = Counter(np.rint(drawn * 1.3).astype(int).tolist())
    assert oracles.rejects(wider, masses)


def test_tables_leave_out_little_and_values_travel() -> None:
    for law, noise in (
        (thresholds.LaplaceThreshold(7.0, 30), DiscreteLaplace(7.0)),
        (thresholds.GaussianThreshold(7.0, 30), DiscreteGaussian(7.0)),
    ):
        first, p = law.masses
        beyond = noise.log_at_most(first - 1), noise.log_at_least(first + p.size)
        assert np.exp(beyond).sum() < (1e-18)
        assert law.noise == noise
    law = thresholds.OptimalThreshold(1, 1e-8)
    assert law == thresholds.OptimalThreshold(1.0, 1e-8, 1.0)
    assert law != thresholds.OptimalThreshold(1.0, 1e-8, 0.8)
    assert (
        len({law, thresholds.OptimalThreshold(1.0, 1e-8), thresholds.LaplaceThreshold(1.0, 19)})
        == 2
    )
    assert repr(law) == "OptimalThreshold(epsilon=1.0, delta=1e-08, decay=1.0)"
    assert thresholds.LaplaceThreshold(1, 20) != thresholds.GaussianThreshold(1, 20)
    for one in LAWS:
        again = pickle.loads(pickle.dumps(one))  # noqa: S301
        assert again == one
        assert again.threshold == one.threshold
        assert [*again.shown([5, 20])] == [*one.shown([5, 20])]
    names = {law.name for law in LAWS}
    assert names == {"optimal_threshold", "laplace_threshold", "gaussian_threshold"}
    with pytest.raises(AttributeError):
        law.threshold = 3
