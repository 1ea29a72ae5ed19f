"""Samplers: chi-square tests of the laws, an exact computation of the categorical sampler's law,
and the bound on its weights.

Every statistical check is `oracles.rejects` at `oracles.FALSE_ALARM` and comes with a negative
control: the same observations are rejected when the law they are compared with has its parameter
wrong by 30 %.
"""

import math
import secrets
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes.samplers import integers
from opendp_bayes.samplers.coins import exact_categorical
from opendp_bayes.samplers.integers import (
    discrete_laplaces,
    floored_laplaces,
    geometrics,
    uniform_below,
)
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

NUMBER = 30_000


def geometric_law(rate: float) -> dict[int, float]:
    return {t: -math.expm1(-rate) * math.exp(-rate * t) for t in range(math.ceil(40 / rate) + 1)}


def weights_law(exponents: np.ndarray) -> dict[int, float]:
    weights = np.exp(exponents.min() - exponents)
    return dict(enumerate((weights / weights.sum()).tolist()))


# Exact laws, by trying every answer of the random source.
class QuestionError(Exception):
    """More randomness is asked for than the script holds; the argument is what may be answered."""


class StartsAgainError(Exception):
    """What a draw does after this is as from its beginning."""


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 1), (1, 2), (2, 3), (3, 7)])
def test_a_coin_is_exactly_exp(numerator, denominator, monkeypatch):
    """Every answer to the first twelve questions; those that go on to another one are alike."""

    def toss(script: list[int]) -> tuple[bool | None, int]:
        """The outcome, or None where it asks for more; and the bound of the last question."""
        answers, bounds = iter(script), []

        def uniform_below(one: np.ndarray) -> np.ndarray:
            bounds.append(one.item())
            for answer in answers:
                return np.array([answer])
            raise QuestionError

        monkeypatch.setattr(integers, "uniform_below", uniform_below)
        try:
            found = integers._bernoulli_exp_units(np.array([numerator]), denominator)
            return found.item(), bounds[-1]
        except QuestionError:
            return None, bounds[-1]

    heads, undecided = Fraction(0), Fraction(1)
    for stage in range(12):
        bound = toss([0] * stage)[1]
        outcomes = [toss([*([0] * stage), answer])[0] for answer in range(bound)]
        heads += undecided * Fraction(outcomes.count(True), bound)
        undecided *= Fraction(outcomes.count(None), bound)
        if not undecided:
            break
    truth = (-oracles.real(Fraction(numerator, denominator))).exp()
    assert undecided < 1e-8
    assert oracles.real(heads) <= truth <= oracles.real(heads + undecided)


@pytest.mark.parametrize("denominator", [2, 1 << 58], ids=["int64", "beyond int64"])
def test_many_coins_are_tossed_until_each_fails(denominator, monkeypatch):
    """Coin i fails at toss i + 1: every other one shows heads."""
    last = np.arange(1, 41)

    def uniform_below(bounds: np.ndarray) -> np.ndarray:
        toss = int(bounds[0]) // denominator
        going = last[last >= toss]
        assert bounds.tolist() == [denominator * toss] * going.size
        return np.where(going == toss, bounds - 1, 0)

    monkeypatch.setattr(integers, "uniform_below", uniform_below)
    found = integers._bernoulli_exp_units(np.ones(last.size, dtype=np.int64), denominator)
    assert found.tolist() == [True, False] * 20


EXACT_RATES = [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(3, 2), Fraction(2)]


def exact_geometric_law(rate, smallest, monkeypatch):
    """The law of one draw but for outcomes of probability below `smallest`, for exact coins."""
    law: dict[int, oracles.arb] = {}
    started = oracles.arb(0)  # the probability that it does not start again
    scripts: list[tuple[list[int], oracles.arb]] = [([], oracles.arb(1))]
    while scripts:
        script, probability = scripts.pop()
        answers, bounds = iter(script), []

        def answer(possible: dict[int, oracles.arb], answers: Iterator[int] = answers) -> int:
            for given in answers:
                return given
            raise QuestionError(possible)

        def uniform_below(one: Any, bounds: list[int] = bounds, answer: Any = answer) -> Any:
            bounds.append(one.item())
            if len(bounds) > 1:
                raise StartsAgainError
            share = oracles.real(Fraction(1, bounds[0]))
            return np.array([answer(dict.fromkeys(range(bounds[0]), share))])

        def coin(numerators: Any, denominator: int, answer: Any = answer) -> Any:
            if not numerators.size:
                return np.zeros(0, dtype=np.bool_)
            heads = (-oracles.real(Fraction(numerators.item(), denominator))).exp()
            return np.array([bool(answer({1: heads, 0: 1 - heads}))])

        monkeypatch.setattr(integers, "uniform_below", uniform_below)
        monkeypatch.setattr(integers, "_bernoulli_exp_units", coin)
        try:
            outcome = geometrics(rate, 1).item()
        except StartsAgainError:
            continue
        except QuestionError as question:
            for given, share in question.args[0].items():
                if float(probability * share) > smallest:
                    scripts.append(([*script, given], probability * share))
                else:
                    started += probability * share
        else:
            law[outcome] = law.get(outcome, oracles.arb(0)) + probability
    total = sum(law.values(), start=started)
    return {outcome: probability / total for outcome, probability in law.items()}


@pytest.mark.parametrize("rate", EXACT_RATES)
def test_geometric_is_exact(rate: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    found = exact_geometric_law(rate, 1e-13, monkeypatch)
    q = (-oracles.real(rate)).exp()
    assert len(found) > 10
    for outcome in range(6):
        truth = (1 - q) * q**outcome
        assert abs(float(found[outcome] / truth) - 1) < 1e-9


#: As int64, and as Python integers.
LIMITS = {"int64": {}, "any length": {"_LARGEST_TERM": 0}}
BATCH_RATES = [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(2, 7), Fraction(3)]


@pytest.mark.parametrize(
    ("rate", "limits"),
    some_of(product([*BATCH_RATES, Fraction(0.1), Fraction(1 / 3.3)], LIMITS), 8),
)
def test_many_geometrics(rate: Fraction, limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LIMITS[limits].items():
        monkeypatch.setattr(integers, name, value)
    drawn = geometrics(rate, NUMBER)
    assert drawn.shape == (NUMBER,)
    drawn = drawn.astype(np.int64)
    oracles.check_draws(drawn, lambda factor: geometric_law(float(rate) * factor))


def test_geometrics_that_int64_does_not_hold() -> None:
    small = [Fraction(1, 1 << bits) for bits in (57, 62, 70)]
    for rate in (*small, Fraction((1 << 53) - 1, 1 << 57)):
        drawn = np.array([float(value * rate) for value in geometrics(rate, 4000).tolist()])
        # Standard exponential: mean and standard deviation 1.
        assert drawn.mean() == pytest.approx(1, abs=5 / math.sqrt(4000))
        assert drawn.max() > 5


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(20), Fraction(3.3)])
@pytest.mark.parametrize(
    ("draw", "noise"), [(floored_laplaces, "floored"), (discrete_laplaces, "discrete")]
)
def test_many_laplaces(draw, noise, scale):
    drawn = draw(scale, NUMBER)
    oracles.check_draws(drawn, lambda factor: oracles.noise_law(noise, float(scale) * factor))


@pytest.mark.parametrize("dtype", [np.int64, object])
@pytest.mark.parametrize("bound", [1, 2, 5, 8, 9])
def test_uniform_below(bound: int, dtype: type) -> None:
    observed = Counter(uniform_below(np.full(NUMBER, bound, dtype=dtype)).tolist())
    assert set(observed) == set(range(bound))
    if bound > 1:
        assert not oracles.rejects(observed, dict.fromkeys(range(bound), 1 / bound))
        wrong = {value: 1.3 if value == 0 else 1.0 for value in range(bound)}
        total = sum(wrong.values())
        wrong_law = {value: weight / total for value, weight in wrong.items()}
        assert oracles.rejects(observed, wrong_law)


def test_uniform_below_bounds_of_any_length_and_of_their_own() -> None:
    """Of so many numbers some are in the lowest quarter and some in the highest."""
    drawn = uniform_below(np.full(100, 2**100, dtype=object))
    assert all(0 <= number < 2**100 for number in drawn)
    assert min(drawn) < 2**98
    assert max(drawn) >= 3 * 2**98
    bounds = np.tile([1, 3, (1 << 63) - 1, 1 << 40], 500)
    drawn = uniform_below(bounds)
    assert np.all((drawn >= 0) & (drawn < bounds))
    assert set(drawn[1::4].tolist()) == {0, 1, 2}
    for place in (2, 3):  # uniform: a mean of 1/2, with standard deviation 1 / sqrt(12)
        share = drawn[place::4] / bounds[place::4]
        assert share.mean() == pytest.approx(0.5, abs=5 / math.sqrt(12 * 500))


@pytest.mark.parametrize("length", [2, 7, 8, 31, 32, 33, 48, 62])
def test_uniform_below_every_bit_is_drawn(length: int) -> None:
    """Of a bound with a bit at each end alone; one of 62 stays as it is with probability 1e-28."""
    drawn = uniform_below(np.full(100, (1 << length) + 1))
    below = drawn[drawn < 1 << length]
    assert np.bitwise_or.reduce(below) == (1 << length) - 1
    assert np.bitwise_and.reduce(below) == 0


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1e-3])
def test_laplace_with_almost_no_noise(scale: float) -> None:
    assert set(discrete_laplaces(Fraction(scale), 40).tolist()) == {0}
    assert set(floored_laplaces(Fraction(scale), 50).tolist()) <= {0, -1}


@pytest.mark.parametrize("scale", [1e15, 1e300])
def test_laplace_with_much_noise(scale: float) -> None:
    """`|noise| / scale`: below 1/100 with probability 1 %, above 40 with 4e-18."""
    sizes = np.abs(discrete_laplaces(Fraction(scale), 200)).astype(float) / scale
    assert sizes.max() < 40
    assert np.median(sizes) > 0.01


EXPONENTS = {"equal": [0.0] * 7, "one": [5.0], "ordinary": [0.0, 0.3, 1.0, 1.7, 2.5, 0.3]}
EXPONENTS |= {"unordered": [3.0, 0.0, 2.0, 1.0, 4.0, 0.5]}
EXPONENTS |= {"a thousand": (np.abs(np.arange(1000) - 400) / 30).tolist()}
EXPONENTS |= {"offset": [1000.0, 1000.5, 1001.0, 1002.0], "far apart": [0.0, 0.4, 700.0, 1e3, 1e4]}


@pytest.mark.parametrize("name", EXPONENTS)
def test_categorical(name: str) -> None:
    exponents = np.array(EXPONENTS[name])
    drawn = exact_categorical(exponents, NUMBER)
    if name == "one":
        assert set(drawn.tolist()) == {0}
    elif name == "equal":
        assert not oracles.rejects(drawn.tolist(), weights_law(exponents))
    else:
        oracles.check_draws(drawn, lambda factor: weights_law(factor * exponents))


@pytest.mark.parametrize("largest", [1e15, 1e20, 1e300])
def test_enormous_exponents(largest: float) -> None:
    exponents = np.array([largest, 0.0, 0.9 * largest]) - 0.5 * largest
    assert set(exact_categorical(exponents, 20).tolist()) == {1}


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_exponents_of_which_nothing_is_known_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="exponents: every entry must be finite"):
        exact_categorical(np.array([0.0, wrong]), 1)


def test_draws_come_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """No seed reaches the samplers: everything is asked of `secrets`."""
    result = exact_categorical(np.array([0.0, 1.0]), 5)
    assert result.shape == (5,)
    assert result.dtype == np.int64
    assert exact_categorical(np.array([0.0]), 0).shape == (0,)
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert set(exact_categorical(np.array([0.0, 0.0]), 50).tolist()) == {0}
