"""Samplers against their laws, and maps against exact losses over all pairs of databases."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import definitions
import numpy as np
import pytest

import opendp_bayes as ob
import opendp_bayes_smoothed as obs
from opendp_bayes_smoothed.arguments import samples_of
from opendp_bayes_smoothed.mechanisms import amplified, noised
from opendp_bayes_smoothed.sampling import (
    _cumulative,
    binomial,
    draw_histogram,
    hypergeometric,
    invert,
)
from tests.helpers import oracles

PRIOR = np.ones(2)


def sampling(**fields: object) -> ob.Mechanism:
    return obs.SamplingHistogram(**fields)


def noisy(scale: float, rate: float = 1.0) -> ob.Mechanism:
    return obs.NoisySamplingHistogram(scale, rate)


# Samplers.
@pytest.mark.parametrize("replacement", ["without", "with"])
@pytest.mark.parametrize(
    ("counts", "rate"), [((7, 3), 0.5), ((3, 4, 2), 0.3), ((5, 0, 3, 2), 0.8), ((2, 2), 1.0)]
)
def test_samples_follow_the_law(counts: tuple[int, ...], rate: float, replacement: str) -> None:
    mechanism = sampling(rate=rate, replacement=replacement)
    samples = mechanism.samples(sum(counts))
    law = {h: float(p) for h, p in definitions.sampled(counts, samples, replacement).items() if p}
    stated = {h: p for h, p in oracles.law_of(mechanism, counts, 1.0).items() if p}
    assert stated.keys() == law.keys()
    assert all(stated[h] == pytest.approx(p, rel=1e-12) for h, p in law.items())
    drawn = Counter(map(tuple, mechanism.sample(counts, 1.0, draws=4000).tolist()))
    if len(law) > 1:
        assert not oracles.rejects(drawn, law)
        # Negative control: draws from the law for one record moved are told from this law.
        moved = next(oracles.neighbours(counts))
        wrong = Counter(map(tuple, mechanism.sample(moved, 1.0, draws=4000).tolist()))
        assert oracles.rejects(wrong, law)
    else:
        assert drawn.keys() == law.keys()


def test_few_bits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 4 bits to start from nearly every draw has a doubt and is refined; the law stays."""
    monkeypatch.setattr("opendp_bayes_smoothed.sampling._BITS", 4)
    law = {k: math.comb(12, k) * math.comb(8, 9 - k) / math.comb(20, 9) for k in range(1, 10)}
    assert not oracles.rejects(Counter(hypergeometric(12, 8, 9) for _ in range(6000)), law)
    law = {k: math.comb(9, k) * 0.25**k * 0.75 ** (9 - k) for k in range(10)}
    assert not oracles.rejects(Counter(binomial(5, 15, 9) for _ in range(6000)), law)
    # Negative control: a wrong ratio of two probabilities.
    wrong = Counter(invert(0, 9, 2, lambda k: ((9 - k) * 5, (k + 1) * 13)) for _ in range(6000))
    assert oracles.rejects(wrong, law)


def test_samples_of_an_electorate_and_of_one_kind_of_record() -> None:
    """Draws from 155 million; the mean of 40 draws within five standard errors."""
    counts = [81_283_501, 74_223_975]
    size, samples = sum(counts), math.ceil(Fraction("0.998") * sum(counts))
    drawn = sampling(rate=0.998).sample(counts, 1.0, draws=40)
    assert np.all(drawn.sum(axis=1) == samples)
    assert np.all((drawn >= 0) & (drawn <= counts))
    spread = math.sqrt(samples * 0.998 * 0.002 * (counts[0] / size) * (counts[1] / size) / 0.998)
    assert abs(drawn[:, 0].mean() - samples * counts[0] / size) < 5 * spread / math.sqrt(40)
    assert 0.5 * spread < drawn[:, 0].std() < 1.6 * spread
    assert draw_histogram([0, 5, 0], 3, "without") == [0, 3, 0]
    assert draw_histogram([0, 5, 0], 7, "with") == [0, 7, 0]
    assert draw_histogram([2, 3], 5, "without") == [2, 3]


def noise_law(count: int, scale: float, largest: int) -> dict[int, float]:
    weights = [math.exp(-abs(y - count) / scale) for y in range(largest + 200)]
    return {y: weight / sum(weights) for y, weight in enumerate(weights)}


@pytest.mark.parametrize(("count", "scale"), [(0, 1.0), (3, 2.0), (10, 0.7)])
def test_noise_follows_algorithm_4(count: int, scale: float) -> None:
    """`P(y | h) ∝ exp(-|y - h| / scale)` on y >= 0; clamped or rescaled by 30 % it is rejected."""
    drawn = Counter(noised(count, Fraction(scale)) for _ in range(6000))
    law = noise_law(count, scale, 60)
    assert not oracles.rejects(drawn, law)
    assert oracles.rejects(drawn, noise_law(count, 1.3 * scale, 60))
    if count < 3 * scale:
        clamped = Counter({max(y, 0): 0 for y in law})
        for y in range(-60, 61):
            mass = math.exp(-abs(y) / scale) * math.tanh(0.5 / scale)
            clamped[max(count + y, 0)] += round(6000 * mass)
        assert oracles.rejects(clamped, law)


# Differential privacy: the maps.
@pytest.mark.parametrize(("size", "rate"), [(6, 0.5), (7, 0.9), (5, 1.0)])
def test_sampling_loses_what_the_map_says(size: int, rate: float) -> None:
    """Over all databases within d_in changes, at every ε at most δ; attained for one change."""
    for replacement in ("without", "with"):
        mechanism = sampling(rate=rate, replacement=replacement)
        samples, sets = mechanism.samples(size), oracles.data_sets(size, 2)
        for d_in in (1, 2, 3):
            loss = mechanism.proven_loss(
                d_in, size=size, prior=PRIOR, delta=math.nextafter(1.0, 0.0)
            )
            law = definitions.drawn(samples, replacement)
            near = [(x, y) for x, y in product(sets, sets) if abs(x[0] - y[0]) <= d_in]
            for epsilon in (0.0, 2.0, 20.0):
                factor = Fraction(math.exp(epsilon))
                worst = max(definitions.hockey_stick(law(x), law(y), factor) for x, y in near)
                assert worst <= Fraction(loss.delta)
                if d_in == 1:
                    assert float(worst) == pytest.approx(loss.delta, rel=1e-12)


def test_sampling_loss_and_the_budget() -> None:
    mechanism = sampling(rate=0.3)
    spend = {"size": 10, "prior": PRIOR}
    assert mechanism.proven_loss(0, **spend) == mechanism.proven_loss(0, delta=0.5, **spend)
    assert mechanism.proven_loss(0, **spend).epsilon == 0
    assert mechanism.proven_loss(1, **spend).epsilon == math.inf
    assert mechanism.proven_loss(1, delta=0.2, **spend).epsilon == math.inf
    enough = mechanism.proven_loss(1, delta=0.3 + 1e-9, **spend)
    assert (enough.epsilon, enough.delta) == (0, pytest.approx(0.3))
    assert Fraction(enough.delta) >= Fraction(3, 10)
    assert enough.rho == enough.range == math.inf
    assert mechanism.proven_loss(7, delta=0.99, **spend).delta == 1


def noisy_law(counts: tuple[int, ...], samples: int, scale: float) -> np.ndarray:
    """Algorithm 4 on `0..T` for every count; beyond T all ratios stay as they are at T."""
    law = definitions.noised(samples, Fraction(math.exp(-1 / scale)), samples)
    return np.array([float(p) for p in law(counts).values()])


def exact_noisy_loss(size: int, k: int, rate: float, scale: float, d_in: int = 1) -> float:
    samples = noisy(scale, rate).samples(size)
    sets = oracles.data_sets(size, k)
    laws = {x: np.log(noisy_law(x, samples, scale)) for x in sets}
    return max(
        float(np.max(np.abs(laws[x] - laws[y])))
        for x, y in product(sets, sets)
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) <= 2 * d_in
    )


@pytest.mark.parametrize(
    ("size", "k", "rate"), [(6, 2, 0.5), (6, 2, 1.0), (8, 2, 0.1), (4, 3, 0.5)]
)
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_noisy_loss_is_below_the_map(size: int, k: int, rate: float, scale: float) -> None:
    for d_in in (1, 2):
        bound = noisy(scale, rate).proven_loss(d_in, size=size, prior=np.ones(k))
        assert exact_noisy_loss(size, k, rate, scale, d_in) <= bound.epsilon + 1e-12
        assert bound.rho == pytest.approx(bound.epsilon**2 / 2)
    # Negative control: a third of the scale violates the map of the whole.
    assert (
        exact_noisy_loss(size, k, rate, scale / 3)
        > noisy(scale, rate).proven_loss(1, size=size, prior=np.ones(k)).epsilon
    )


def test_amplification_and_table_1() -> None:
    """Table 1: (η ε, 0). At ε = 20, η = 0.1, n = 10 the exact loss is above 4, not 2."""
    epsilon, rate = 20.0, 0.1
    exact = exact_noisy_loss(10, 2, rate, 4 / epsilon)
    assert exact > 2 * rate * epsilon
    assert exact <= noisy(4 / epsilon, rate).proven_loss(1, size=10, prior=PRIOR).epsilon
    # For a small ε it is right with room to spare: the noise loses less than ε.
    assert exact_noisy_loss(10, 2, rate, 4 / 0.5) < rate * 0.5
    for epsilon, share in product((1e-12, 0.1, 1.0, 30.0, 699.0), (1e-9, 0.1, 0.998, 1.0)):
        truth = (1 + oracles.real(share) * (oracles.real(epsilon).exp() - 1)).log()
        assert (
            0 <= float((oracles.real(amplified(epsilon, share)) - truth) / truth) < 1e-11
            or amplified(epsilon, share) == epsilon
        )
    assert amplified(1000.0, 0.5) == 1000.0


@pytest.mark.parametrize("kind", [obs.SamplingHistogram, obs.NoisySamplingHistogram])
def test_every_scale_works(kind: Any) -> None:
    mechanism = kind(scale=1.0, rate=0.5)
    assert isinstance(mechanism, ob.Mechanism)
    for scale in (2.0**-40, 1e-3, 1.0, 1e6, 2.0**60):
        changed = replace(mechanism, scale=scale)
        losses = [
            changed.proven_loss(d, size=1000, prior=PRIOR, delta=0.9) for d in (0, 1, 2, 1000)
        ]
        assert [loss.epsilon for loss in losses] == sorted(loss.epsilon for loss in losses)
        assert [loss.delta for loss in losses] == sorted(loss.delta for loss in losses)
        assert changed.sample([600, 400], 1.0, draws=2).shape == (2, 2)


def test_a_quotient_of_whole_numbers_draws_its_numerator() -> None:
    """As floats and fractions, through each mechanism and function; other rates are rounded up."""
    for size in range(1, 61):
        for samples in range(1, size + 1):
            rate = samples / size
            assert sampling(rate=rate).samples(size) == samples
            assert noisy(1.0, rate).samples(size) == samples
            assert samples_of(Fraction(samples, size), size) == samples
            if samples < size:
                above = math.nextafter(rate, 1.0)
                assert samples_of(above, size) == samples + 1
    assert samples_of((10**9 - 1) / 10**9, 10**9) == 10**9 - 1
    assert sum(sampling(rate=5 / 7).sample([3, 4], 1.0)[0]) == 5
    # Negative control: of the decimal that the quotient prints as, one too many.
    assert math.ceil(Fraction(repr(5 / 7)) * 7) == 6
    samples = [sampling(scale=scale).samples(1000) for scale in (0.5, 1.0, 2.0, 3.0, 1e6)]
    assert samples == [1000, 1000, 500, 334, 1], "the scale divides the rate"
    assert sampling(rate=0.998).samples(1000) == 998


MANY = {"size": 2 * 10**9, "prior": PRIOR}


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: sampling(rate=0.0), ValueError, r"rate=0.0: .*greater than 0 and"),
        (lambda: sampling(scale=-1.0), ValueError, r"scale=-1.0: .*greater than 0"),
        (lambda: sampling(replacement="maybe"), ValueError, "replacement='maybe'"),
        (lambda: noisy(1.0, 2.0), ValueError, "rate=2.0"),
        (
            lambda: sampling().check(size=None, prior=PRIOR),
            ValueError,
            "size=None: .*draws a share",
        ),
        (lambda: noisy(1.0).check(**MANY), ValueError, "=2000000000: NoisySamplingHistogram takes"),
        (lambda: noisy(1.0).log_pmf([1, 2], 1.0), ValueError, "the released counts are unbounded"),
        (lambda: sampling().log_pmf([10**6, 10**6], 1.0), ValueError, "size=2000000"),
    ],
)
def test_bad_arguments(call, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


# Errors of logarithms and exponentials, made so large that each margin shows.
class Low:
    """`math` with functions whose values are too small by a relative error."""

    def __init__(self, **errors: float) -> None:
        self.errors = errors

    def __getattr__(self, name: str) -> object:
        function, error = getattr(math, name), self.errors.get(name)
        return function if error is None else lambda *arguments: function(*arguments) * (1 - error)


def test_the_share_drawn_is_an_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """`T / n`, and `1 - (1 - d / n)^T` with functions of the C library as wrong as is allowed."""
    for size in range(3, 60):
        mechanism = sampling(rate=0.3)
        delta = mechanism.proven_loss(1, size=size, prior=PRIOR, delta=0.9).delta
        assert Fraction(delta) >= Fraction(mechanism.samples(size), size)
    monkeypatch.setattr(obs.mechanisms, "math", Low(log1p=2.0**-50, expm1=2.0**-50))
    for size, rate, d_in in product((7, 10, 1000), (0.1, 0.5, 1.0), (1, 2, 3)):
        mechanism = sampling(rate=rate, replacement="with")
        delta = mechanism.proven_loss(d_in, size=size, prior=PRIOR, delta=0.5).delta
        assert Fraction(delta) >= 1 - (1 - Fraction(d_in, size)) ** mechanism.samples(size)


@pytest.mark.parametrize("scale", [0.02, 0.3, 0.7, 1.0, 3.1, 1e3])
def test_the_loss_of_the_noise_is_an_upper_end(scale: float) -> None:
    q, loss = (-1 / oracles.real(scale)).exp(), noisy(scale).noise_loss
    assert 2 / oracles.real(scale) + (1 + q - q * q).log() <= oracles.real(loss)
    computed = 2 * (1 / scale) + math.log1p(-math.exp(-1 / scale) * math.expm1(-1 / scale))
    assert Fraction(loss) * (1 - Fraction(1, 2**48)) >= Fraction(computed)
    assert loss < 4 / scale, "the paper's ε"
    if 0.5 < scale < 5:  # Many records of one kind and none of the other nearly attain it.
        assert exact_noisy_loss(30, 2, 1.0, scale) == pytest.approx(loss, rel=1e-3)


def test_what_is_amplified_has_room_for_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^-50 of the share, whose rounding is one, and 2^-40 of the result; without the end of
    the result, the share alone is above its quotient.
    """
    for scale, d_in in product(np.linspace(0.3, 5, 30).tolist(), (1, 3, 7)):
        mechanism = noisy(scale, 0.5)
        each = Fraction(amplified(mechanism.noise_loss, mechanism.samples(9) / 9))
        loss = mechanism.proven_loss(d_in, size=9, prior=PRIOR)
        assert Fraction(loss.epsilon) >= d_in * each
        assert Fraction(loss.range) >= 2 * d_in * each
        assert Fraction(loss.rho) >= (d_in * each) ** 2 / 2
    for share, epsilon in product((1e-9, 0.1, 1 / 3, 0.998, 1.0), (1e-12, 0.1, 1.0, 30.0)):
        scaled = math.log1p(share * (1 + 2.0**-50) * math.expm1(epsilon))
        assert Fraction(amplified(epsilon, share)) >= min(
            Fraction(epsilon), Fraction(scaled) / (1 - Fraction(1, 2**40))
        )
    monkeypatch.setattr(obs.mechanisms, "upper_end", lambda value, error: value)
    truth = (1 + oracles.real(Fraction(1, 3)) * (oracles.real(1e-3).exp() - 1)).log()
    assert truth <= oracles.real(amplified(1e-3, 1 / 3 * (1 - 2.0**-51)))


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("d_in", [2, 3])
def test_the_smoothed_loss_of_several_records_is_above_every_pair_s(d_in, scale):
    """Of noisy sampling, at every ε; what is said of one record is not."""
    mechanism, size = noisy(scale, 0.3), 6
    laws = {x: noisy_law(x, mechanism.samples(size), scale) for x in oracles.data_sets(size, 2)}
    guarantee = obs.SmoothedDP(size, ((0.25, 0.75), (0.625, 0.375)))
    several, one = (obs.SmoothedLoss(guarantee, mechanism, d) for d in (d_in, 1))
    exceeded = []
    for epsilon in (0.0, 0.5 * several.pure_epsilon, 0.9 * several.pure_epsilon):
        worst = max(
            float(np.maximum(laws[x] - math.exp(epsilon) * laws[y], 0).sum())
            for x, y in product(laws, laws)
            if abs(x[0] - y[0]) <= d_in
        )
        assert worst <= several.delta(epsilon) + 1e-12
        exceeded.append(worst > one.promised_delta(epsilon) + 1e-12)
    assert any(exceeded), "negative control"


@pytest.mark.parametrize("bits", [4, 8, 16, 64])
@pytest.mark.parametrize(("a", "b", "s"), [(5, 7, 6), (40, 60, 50), (300, 500, 200), (9, 900, 90)])
def test_cumulative_bounds_are_rounded_outwards(a: int, b: int, s: int, bits: int) -> None:
    """Against hypergeometric probabilities in integers, relative to the one at the mode."""
    low, high = max(0, s - b), min(a, s)
    mode = (s + 1) * (a + 1) // (a + b + 2)
    ways = {k: math.comb(a, k) * math.comb(b, s - k) for k in range(low, high + 1)}
    first, below, above = _cumulative(
        low, high, mode, lambda k: ((a - k) * (s - k), (k + 1) * (b - s + k + 1)), bits
    )
    unit = Fraction(2**bits, ways[mode])
    for place, (least, most) in enumerate(zip(below[:-1], above[:-1], strict=True)):
        known = sum(ways[k] for k in range(first, first + place))
        assert least <= known * unit
        assert sum(ways[k] for k in range(low, first + place)) * unit <= most
    assert below[-1] <= sum(ways.values()) * unit <= above[-1]
