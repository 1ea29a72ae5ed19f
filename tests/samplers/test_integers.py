"""Samplers: chi-square tests of the laws, an exact computation of the categorical sampler's law,
and the bound on its weights.

Every statistical check is `oracles.rejects` at `oracles.FALSE_ALARM` and comes with a negative
control: the same observations are rejected when the law they are compared with has its parameter
wrong by 30 %.
"""

import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes.samplers import integers
from opendp_bayes.samplers.exponential import categorical
from opendp_bayes.samplers.exponential.categorical import (
    LARGEST_SUPPORT,
    ExactCategorical,
    weight_error,
)
from opendp_bayes.samplers.integers import (
    bernoulli_exp,
    discrete_laplace,
    discrete_laplaces,
    floored_laplace,
    floored_laplaces,
    geometric,
    geometrics,
    uniform_below,
)
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

NUMBER = 30_000
#: Of draws that Python makes one by one, and whose laws differ by more.
FEWER = 8000
WRONG = (0.7, 1.3)


def geometric_law(rate: float) -> dict[int, float]:
    return {t: -math.expm1(-rate) * math.exp(-rate * t) for t in range(math.ceil(40 / rate) + 1)}


def noise_law(cell: Callable[[int, float], float], scale: float) -> dict[int, float]:
    reach = math.ceil(40 * scale) + 1
    return {t: cell(t, scale) for t in range(-reach, reach + 1)}


def weights_law(exponents: list[float]) -> dict[int, float]:
    weights = np.exp(min(exponents) - np.array(exponents))
    return dict(enumerate((weights / weights.sum()).tolist()))


@pytest.mark.parametrize(
    "x", some_of([Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(0.7)], 3)
)
def test_bernoulli_exp(x: Fraction) -> None:
    observed = Counter(bernoulli_exp(x) for _ in range(NUMBER))
    assert not oracles.rejects(observed, {True: math.exp(-x), False: -math.expm1(-x)})
    for factor in WRONG:
        assert oracles.rejects(
            observed, {True: math.exp(-x * factor), False: -math.expm1(-x * factor)}
        )


def test_bernoulli_exp_of_zero_is_certain() -> None:
    assert all(bernoulli_exp(Fraction(0)) for _ in range(100))


@pytest.mark.parametrize(
    "rate", [Fraction(1, 20), Fraction(2, 7), Fraction(1), Fraction(3), Fraction(0.1)]
)
def test_geometric(rate: Fraction) -> None:
    observed = Counter(geometric(rate) for _ in range(FEWER))
    assert not oracles.rejects(observed, geometric_law(float(rate)))
    for factor in WRONG:
        assert oracles.rejects(observed, geometric_law(float(rate) * factor))


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

        def randbelow(bound: int) -> int:
            bounds.append(bound)
            for answer in answers:
                return answer
            raise QuestionError

        monkeypatch.setattr(secrets, "randbelow", randbelow)
        try:
            return integers._bernoulli_exp_unit(numerator, denominator), bounds[-1]
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
    """The law of `geometric` but for outcomes of probability below `smallest`, for exact coins."""
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

        def randbelow(bound: int, bounds: list[int] = bounds, answer: Any = answer) -> int:
            bounds.append(bound)
            if len(bounds) > 1:
                raise StartsAgainError
            return answer(dict.fromkeys(range(bound), oracles.real(Fraction(1, bound))))

        def coin(numerator: int, denominator: int, answer: Any = answer) -> bool:
            heads = (-oracles.real(Fraction(numerator, denominator))).exp()
            return bool(answer({1: heads, 0: 1 - heads}))

        monkeypatch.setattr(secrets, "randbelow", randbelow)
        monkeypatch.setattr(integers, "_bernoulli_exp_unit", coin)
        try:
            outcome = geometric(rate)
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


@pytest.mark.parametrize("draw", [discrete_laplace, floored_laplace])
def test_noise_is_made_of_a_geometric_of_its_scale(draw, monkeypatch):
    """And of a fair sign: each outcome of the two has its place, once."""
    rates: list[Fraction] = []
    signs = iter([1, 0])

    def three(rate: Fraction) -> int:
        rates.append(rate)
        return 3

    monkeypatch.setattr(integers, "geometric", three)
    monkeypatch.setattr(secrets, "randbits", lambda bits: [next(signs)][bits - 1])
    assert [draw(Fraction(0.3)), draw(Fraction(0.3))] == [3, -3 - (draw is floored_laplace)]
    assert rates == 2 * [1 / Fraction(0.3)]


#: As int64, as Python integers, and one by one.
LIMITS = {"int64": {}, "any length": {"_LARGEST_TERM": 0}, "few": {"_FEW": 1 << 60}}
BATCH_RATES = [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(2, 7), Fraction(3)]


@pytest.mark.parametrize(
    ("rate", "limits"),
    some_of(product([*BATCH_RATES, Fraction(0.1), Fraction(1 / 3.3)], LIMITS), 8),
)
def test_many_geometrics(rate: Fraction, limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LIMITS[limits].items():
        monkeypatch.setattr(integers, name, value)
    number = FEWER if limits == "few" else NUMBER
    drawn = geometrics(rate, number)
    assert drawn.shape == (number,)
    observed = Counter(drawn.tolist())
    assert not oracles.rejects(observed, geometric_law(float(rate)))
    for factor in WRONG:
        assert oracles.rejects(observed, geometric_law(float(rate) * factor))


def test_geometrics_that_int64_does_not_hold() -> None:
    small = [Fraction(1, 1 << bits) for bits in (57, 62, 70)]
    for rate in (*small, Fraction((1 << 53) - 1, 1 << 57)):
        drawn = np.array([float(value * rate) for value in geometrics(rate, 4000).tolist()])
        # Standard exponential: mean and standard deviation 1.
        assert drawn.mean() == pytest.approx(1, abs=5 / math.sqrt(4000))
        assert drawn.max() > 5


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(20), Fraction(3.3)])
@pytest.mark.parametrize(
    ("draw", "cell"),
    [
        (floored_laplaces, oracles.floored_laplace_cell),
        (discrete_laplaces, oracles.discrete_laplace_cell),
    ],
)
def test_many_laplaces(draw, cell, scale):
    observed = Counter(draw(scale, NUMBER).tolist())
    assert not oracles.rejects(observed, noise_law(cell, float(scale)))
    for factor in WRONG:
        assert oracles.rejects(observed, noise_law(cell, float(scale) * factor))


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


def test_uniform_below_bounds_of_any_length() -> None:
    """Of so many numbers some are in the lowest quarter and some in the highest."""
    drawn = uniform_below(np.full(100, 2**100, dtype=object))
    assert all(0 <= number < 2**100 for number in drawn)
    assert min(drawn) < 2**98
    assert max(drawn) >= 3 * 2**98


def test_uniform_below_bounds_of_their_own() -> None:
    bounds = np.tile([1, 3, (1 << 63) - 1, 1 << 40], 500)
    drawn = uniform_below(bounds)
    assert np.all((drawn >= 0) & (drawn < bounds))
    assert set(drawn[1::4].tolist()) == {0, 1, 2}
    for place in (2, 3):  # uniform: a mean of 1/2, with standard deviation 1 / sqrt(12)
        share = drawn[place::4] / bounds[place::4]
        assert share.mean() == pytest.approx(0.5, abs=5 / math.sqrt(12 * 500))


PAIRS = [(floored_laplace, oracles.floored_laplace_cell)]
PAIRS.append((discrete_laplace, oracles.discrete_laplace_cell))
SCALES = [*map(Fraction, ("1/2", 1, "7/3", 20, 3.3))]


@pytest.mark.parametrize(
    ("draw", "cell", "scale"), some_of(((*law, scale) for law in PAIRS for scale in SCALES), 6)
)
def test_laplace(draw, cell, scale):
    observed = Counter(draw(scale) for _ in range(FEWER))
    assert not oracles.rejects(observed, noise_law(cell, float(scale)))
    for factor in WRONG:
        assert oracles.rejects(observed, noise_law(cell, float(scale) * factor))


def test_floored_and_discrete_laplace_are_told_apart() -> None:
    observed = Counter(floored_laplace(Fraction(5)) for _ in range(NUMBER))
    assert oracles.rejects(observed, noise_law(oracles.discrete_laplace_cell, 5.0))


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1e-3])
def test_laplace_with_almost_no_noise(scale: float) -> None:
    assert {discrete_laplace(Fraction(scale)) for _ in range(20)} == {0}
    assert {floored_laplace(Fraction(scale)) for _ in range(50)} <= {0, -1}


@pytest.mark.parametrize("scale", [1e15, 1e300])
def test_laplace_with_much_noise(scale: float) -> None:
    """`|noise| / scale`: below 1/100 with probability 1 %, above 40 with 4e-18."""
    sizes = np.array([abs(discrete_laplace(Fraction(scale))) / scale for _ in range(200)])
    assert sizes.max() < 40
    assert np.median(sizes) > 0.01


EXPONENTS = {"equal": [0.0] * 7, "one": [5.0], "ordinary": [0.0, 0.3, 1.0, 1.7, 2.5, 0.3]}
EXPONENTS |= {"unordered": [3.0, 0.0, 2.0, 1.0, 4.0, 0.5]}
EXPONENTS |= {"offset": [1000.0, 1000.5, 1001.0, 1002.0], "far apart": [0.0, 0.4, 700.0, 1e3, 1e4]}


@pytest.mark.parametrize(("name", "head"), some_of(product(EXPONENTS, [1, 2, 128]), 5))
def test_categorical(name: str, head: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`_HEAD = 1 and 2` make later stages of a draw frequent, which take 2^-128 otherwise."""
    monkeypatch.setattr(categorical, "_HEAD", head)
    exponents = EXPONENTS[name]
    observed = Counter(ExactCategorical(np.array(exponents)).sample(NUMBER).tolist())
    if name == "one":
        assert observed == {0: NUMBER}
        return
    assert not oracles.rejects(observed, weights_law(exponents))
    if name != "equal":
        for factor in WRONG:
            assert oracles.rejects(observed, weights_law([factor * x for x in exponents]))


@pytest.mark.parametrize("head", [1, 2, 128])
def test_categorical_over_a_thousand(head: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categorical, "_HEAD", head)
    exponents = np.abs(np.arange(1000) - 400) / 30
    observed = Counter(ExactCategorical(exponents).sample(10_000).tolist())
    assert not oracles.rejects(observed, weights_law(exponents.tolist()))
    for factor in WRONG:
        assert oracles.rejects(observed, weights_law((factor * exponents).tolist()))


def integer_weights(sampler: ExactCategorical) -> dict[int, tuple[int, int]]:
    """The weights that a sampler draws with: an integer, and how often it is halved."""
    mantissas = np.diff(sampler._cumulative, prepend=0).tolist()
    ends = [*sampler._before[1:], int(sampler._cumulative[-1])]
    weights, total = {}, 0
    for index, mantissa in zip(sampler._order.tolist(), mantissas, strict=True):
        level = next(level for level, end in zip(sampler._levels, ends, strict=True) if total < end)
        weights[index] = (mantissa, level)
        total += mantissa
    return weights


def largest_error(exponents: list[float]) -> float:
    """Of `ln(rounded weight)` from `-exponent`, in ball arithmetic."""
    weights = integer_weights(ExactCategorical(np.array(exponents)))
    ln2 = oracles.real(2).log()
    logs = {
        i: oracles.real(mantissa).log() - (level + categorical._WEIGHT_BITS - 1) * ln2
        for i, (mantissa, level) in weights.items()
    }
    return max(float(abs(logs[i] + oracles.real(x))) for i, x in enumerate(exponents))


@pytest.mark.parametrize("largest", [1.0, 1e3, 1e6, 1e9, 1e12])
def test_weights_are_within_their_bound(largest: float) -> None:
    rng = np.random.default_rng(8)
    random = largest * 10 ** rng.uniform(-9, 0, size=200)
    exponents = [0.0, largest, *rng.uniform(0, largest, size=200), *random]
    exponents += [
        level * math.log(2)
        for level in rng.integers(0, int(largest / math.log(2)) + 1, size=100).tolist()
    ]
    exponents += [float(np.nextafter(x, 0)) for x in exponents[-100:]]
    assert largest_error(exponents) <= weight_error(max(exponents))


@pytest.mark.parametrize("largest", [1e15, 1e17, 1e20, 1e300])
def test_enormous_exponents(largest: float) -> None:
    """The candidate with all the probability is drawn, or the exponents refused."""
    try:
        sampler = ExactCategorical(np.array([largest, 0.0, 0.9 * largest]))
    except ValueError as refusal:
        assert "exponents" in str(refusal)  # noqa: PT017
    else:
        assert set(sampler.sample(20).tolist()) == {1}


def exact_law(sampler: ExactCategorical, monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The law of `draw`, by trying every answer of the random source at every stage; a draw that
    starts again keeps the law of the others.

    The bounds that the stages ask for do not depend on the answers, so one walk down finds them and
    one walk along each stage does the rest.
    """

    class AnotherError(Exception):
        """The draw asks for more randomness than the script holds."""

    asked: list[int] = []

    def run(script: list[int]) -> int | None:
        answers: Iterator[int] = iter(script)
        asked.clear()

        def randbelow(bound: int) -> int:
            asked.append(bound)
            for answer in answers:
                assert answer < bound
                return answer
            raise AnotherError

        monkeypatch.setattr(secrets, "randbelow", randbelow)
        try:
            return sampler.draw()
        except AnotherError:
            return None

    run([])
    bounds = asked.copy()
    law = [Fraction(0)] * len(sampler._order)
    descent: list[int] = []
    share = Fraction(1)  # of the probability, that the stage is reached with
    while True:
        deeper = []
        for answer in range(bounds[-1]):
            outcome = run([*descent, answer])
            if outcome is not None:
                law[outcome] += share / bounds[-1]
            elif asked[-1] != bounds[0]:
                deeper.append((answer, asked[-1]))
        if not deeper:
            return [probability / sum(law) for probability in law]
        assert len({bound for _, bound in deeper}) == 1
        share *= Fraction(len(deeper), bounds[-1])
        descent.append(deeper[0][0])
        bounds.append(deeper[0][1])


@pytest.mark.parametrize(
    "halves",
    [
        *((0, 1, 2, 3, 4, 5, 6), (0, 0, 9, 9, 18), (0, 3, 3, 11, 12, 13, 30)),
        *((5, 5, 5), (2, 15), (0, 1, 2, 4, 8, 16, 32)),
    ],
)
@pytest.mark.parametrize("head", [0, 1, 3])
def test_the_law_of_a_draw_is_exactly_its_weights(halves, head, monkeypatch):
    """With 3 bits every answer of the random source is tried."""
    monkeypatch.setattr(categorical, "_WEIGHT_BITS", 3)
    monkeypatch.setattr(categorical, "_HEAD", head)
    exponents = np.array(
        [half * math.log(2) / 2 + 0.1 * (index % 3) for index, half in enumerate(halves)]
    )
    sampler = ExactCategorical(exponents)
    weights = {
        index: Fraction(mantissa, 2**level)
        for index, (mantissa, level) in integer_weights(sampler).items()
    }
    total = sum(weights.values())
    law = [weights[index] / total for index in range(len(halves))]
    assert exact_law(sampler, monkeypatch) == law


def test_categorical_refuses_too_many_candidates() -> None:
    said = rf"exponents: has {LARGEST_SUPPORT + 1} entries; must have at most {LARGEST_SUPPORT}\."
    with pytest.raises(ValueError, match=said):
        ExactCategorical(np.zeros(LARGEST_SUPPORT + 1))


def test_categorical_over_the_largest_support() -> None:
    assert 0 <= ExactCategorical(np.zeros(LARGEST_SUPPORT)).draw() < LARGEST_SUPPORT


def test_draws_have_their_shape() -> None:
    result = ExactCategorical(np.array([0.0, 1.0])).sample(5)
    assert result.shape == (5,)
    assert result.dtype == np.int64
    assert ExactCategorical(np.array([0.0])).sample(0).shape == (0,)


def test_randomness_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """No seed reaches the samplers: everything is asked of `secrets`."""
    monkeypatch.setattr(secrets, "randbelow", lambda bound: 0)
    monkeypatch.setattr(secrets, "randbits", lambda bits: 1)
    assert set(ExactCategorical(np.array([0.0, 0.0])).sample(50).tolist()) == {0}


def test_a_statistical_check_has_its_false_alarm_rate() -> None:
    """At a level where it can be observed: draws of the law itself are rejected as often as the
    level says (here 1 in 20, within 5 sigma).
    """
    rng = np.random.default_rng(9)
    law = geometric_law(0.2)
    outcomes, p = np.array(list(law)), np.array(list(law.values()))
    level, oracles.FALSE_ALARM = oracles.FALSE_ALARM, 0.05
    try:
        rejected = sum(
            oracles.rejects(rng.choice(outcomes, size=2000, p=p / p.sum()).tolist(), law)
            for _ in range(1000)
        )
    finally:
        oracles.FALSE_ALARM = level
    assert abs(rejected - 50) < 5 * math.sqrt(1000 * 0.05 * 0.95)


@pytest.mark.parametrize("below", [1, 2])
def test_random_bits_of_a_number_below_its_bound_are_that_number(below, monkeypatch):
    """Of bounds of every length, one more than a power of two: no bit of the words is lost."""
    bounds = np.array([(1 << bits) + 1 for bits in range(63)])
    numbers = bounds - below
    words = numbers.astype(np.uint64) << np.uint64(1)
    monkeypatch.setattr(integers, "random_words", lambda number: words)
    assert uniform_below(bounds).tolist() == numbers.tolist()
