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
from typing import Any

import numpy as np
import pytest

from opendp_bayes.samplers import integers, uniform
from opendp_bayes.samplers.coins import exact_categorical
from opendp_bayes.samplers.integers import discrete_laplaces, floored_laplaces, geometrics
from opendp_bayes.samplers.uniform import uniform_below
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

        def uniform_below(bound: int, number: int, bounds: Any = bounds, answer: Any = answer):
            assert number == 1
            bounds.append(bound)
            if len(bounds) > 1:
                raise StartsAgainError
            share = oracles.real(Fraction(1, bound))
            return np.array([answer(dict.fromkeys(range(bound), share))])

        def coin(exponents: Any, exact: Any, answer: Any = answer) -> Any:
            assert exponents.tolist() == [float(exact(0))]
            heads = (-oracles.real(exact(0))).exp()
            return np.array([bool(answer({1: heads, 0: 1 - heads}))])

        monkeypatch.setattr(integers, "uniform_below", uniform_below)
        monkeypatch.setattr(integers, "flips", coin)
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


BATCH_RATES = [Fraction(1, 2), Fraction(1, 3), Fraction(2, 7), Fraction(3), Fraction(0.1)]
BATCH_RATES += [Fraction(1 / 3.3), Fraction(1, 3) + Fraction(1, 2**70)]


@pytest.mark.parametrize("rate", some_of(BATCH_RATES, 5))
def test_many_geometrics(rate: Fraction) -> None:
    drawn = geometrics(rate, NUMBER)
    assert drawn.shape == (NUMBER,)
    oracles.check_draws(drawn.astype(np.int64), lambda factor: geometric_law(float(rate) * factor))


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
    drawn = draw(scale, NUMBER).astype(np.int64)
    oracles.check_draws(drawn, lambda factor: oracles.noise_law(noise, float(scale) * factor))


@pytest.mark.parametrize("bound", [1, 2, 5, 8, 9])
def test_uniform_below(bound: int) -> None:
    observed = Counter(uniform_below(bound, NUMBER).tolist())
    assert set(observed) == set(range(bound))
    if bound > 1:
        assert not oracles.rejects(observed, dict.fromkeys(range(bound), 1 / bound))
        wrong = {value: 1.3 if value == 0 else 1.0 for value in range(bound)}
        total = sum(wrong.values())
        wrong_law = {value: weight / total for value, weight in wrong.items()}
        assert oracles.rejects(observed, wrong_law)


@pytest.mark.parametrize("bound", [3 << 40, 3 << 61, (1 << 63) - 1, 1 << 63, 1 << 100])
def test_uniform_below_bounds_of_any_length(bound: int) -> None:
    """Some are in the lowest quarter and some in the highest; a mean of 1/2, with standard
    deviation 1 / sqrt(12).
    """
    drawn = uniform_below(bound, 500).tolist()
    assert all(0 <= number < bound for number in drawn)
    assert min(drawn) < bound / 4
    assert max(drawn) >= 3 * bound / 4
    share = [number / bound for number in drawn]
    assert np.mean(share) == pytest.approx(0.5, abs=5 / math.sqrt(12 * 500))


def test_words_that_would_favour_small_numbers_are_drawn_again(monkeypatch) -> None:
    """Of 2^64 words those from the largest multiple of the bound on."""
    bound = 3 << 61
    words = iter([[2 * bound, bound - 1, 2**64 - 1], [bound, 2 * bound + 5], [2 * bound - 1]])
    monkeypatch.setattr(uniform, "random_words", lambda _: np.array(next(words), dtype=np.uint64))
    assert uniform_below(bound, 3).tolist() == [bound - 1, 0, bound - 1]


@pytest.mark.parametrize("length", [2, 7, 8, 31, 32, 33, 48, 62])
def test_uniform_below_every_bit_is_drawn(length: int) -> None:
    """Of a bound with a bit at each end alone; one of 62 stays as it is with probability 1e-28."""
    drawn = uniform_below((1 << length) + 1, 100)
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
