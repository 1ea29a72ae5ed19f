"""δ_ε(x) against its definition in fractions, and against ball arithmetic for an election."""

import math
import tracemalloc
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import definitions
import numpy as np
import pytest
from paper import elections
from scipy.special import logsumexp

from opendp_bayes.extend import candidates
from opendp_bayes_smoothed import database_profile, profile, tails
from opendp_bayes_smoothed.arguments import exp_up
from opendp_bayes_smoothed.draws import DRAWS, WithoutReplacement
from tests.helpers import oracles

#: A certified bound may lie above the exact value by this much.
ABOVE, ABOVE_RELATIVELY = 1e-14, 1e-11
EPSILONS = (0.0, 0.04, 0.7, 3.0)


@cache
def exact(counts: tuple[int, ...], samples: int, epsilon: float, replacement: str) -> Fraction:
    return definitions.profile(definitions.drawn(samples, replacement), counts, epsilon)


def spaces() -> list[tuple[int, int, int]]:
    """`(n, m, T)`."""
    of_two = [(n, 2, t) for n in (1, 4, 10) for t in {1, n // 2 or 1, n - 1 or 1, n}]
    return [*of_two, (6, 3, 2), (6, 3, 5), (10, 3, 4), (5, 4, 4), (10, 4, 2)]


@pytest.mark.parametrize(
    ("size", "k", "samples", "replacement"),
    [(*space, how) for space in spaces() for how in ("without", "with")],
)
def test_profile_equals_the_definition(size: int, k: int, samples: int, replacement: str) -> None:
    # With (3, 2, 5), of which one of the six ways to move a record alone tells the most.
    for counts in oracles.data_sets(size, k)[:: {2: 1, 3: 8, 4: 47}[k]]:
        for epsilon in EPSILONS:
            truth = exact(counts, samples, epsilon, replacement)
            found = database_profile(
                counts, Fraction(samples, size), epsilon, replacement=replacement
            )
            assert (
                truth <= Fraction(found) <= truth * Fraction(1 + ABOVE_RELATIVELY) + Fraction(ABOVE)
            )


def test_the_comparison_notices_a_missing_direction_and_a_missing_neighbour() -> None:
    """Negative controls: one direction, or neighbours of one kind, are below the definition."""
    samples, epsilon = 4, 0.7
    factor = Fraction(math.exp(epsilon))
    law = {x: definitions.sampled(x, samples, "without") for x in oracles.data_sets(7, 3)}
    one_direction = one_kind = 0
    for counts in law:
        found = Fraction(database_profile(counts, Fraction(samples, 7), epsilon))
        others = list(oracles.neighbours(counts))
        one_direction += (
            max(definitions.hockey_stick(law[counts], law[other], factor) for other in others)
            * Fraction(101, 100)
            < found
        )
        downward = [other for other in others if other[0] < counts[0]]
        pairs = ((law[counts], law[o]) for o in downward)
        both = (of for pair in pairs for of in (pair, pair[::-1]))
        one_kind += max((definitions.hockey_stick(*of, factor) for of in both), default=0) < found
    assert one_direction > 0
    assert one_kind > 0


@pytest.mark.parametrize(
    ("size", "k", "rate"), [(10, 2, 0.6), (3, 3, 0.5), (2, 4, 0.9), (1000, 2, 0.998)]
)
def test_the_largest_profile_is_the_share_drawn(size: int, k: int, rate: float) -> None:
    """Theorem 3 (iii): T/n for finite ε where a category has one record; or 1 - (1 - 1/n)^T."""
    samples = math.ceil(Fraction(str(rate)) * size)
    sets = (
        oracles.data_sets(size, k)
        if k > 2
        else [(i, size - i) for i in range(0, size + 1, max(1, size // 40))]
    )
    for epsilon in (0.0, 50.0):
        assert max(database_profile(x, rate, epsilon) for x in sets) == pytest.approx(
            samples / size, rel=1e-10
        )
        largest = max(database_profile(x, rate, epsilon, replacement="with") for x in sets)
        assert largest == pytest.approx(1 - (1 - 1 / size) ** samples, rel=1e-10)


def test_an_election_against_ball_arithmetic() -> None:
    """1920, 0.2 % lost, ε = ln(0.51 / 0.49), to 60 digits: near the top of Figure 1."""
    counts, epsilon = (16_144_093, 9_139_661), math.log(0.51 / 0.49)
    size = sum(counts)
    samples = math.ceil(Fraction("0.998") * size)
    factor = oracles.real(epsilon).exp()

    def tail(a: int, b: int) -> float:
        """d(x, x') for x with a, b records and x' with a - 1, b + 1."""
        k, total = min(a, samples), oracles.real(0)
        # The terms grow towards the mode from the end of the support; start where the likelihood
        # ratio crosses e^-ε.
        low, high = samples * a // size, k

        def gain(at: int) -> object:
            return 1 - factor * oracles.real(definitions.ratio(at, a, b, samples))

        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if gain(middle) > 0 else (middle, high)
        chosen = definitions.log_comb(a, high) + definitions.log_comb(b, samples - high)
        term = (chosen - definitions.log_comb(size, samples)).exp()
        for at in range(high, high + 1500):
            total += term * gain(at)
            term *= oracles.real(
                Fraction((a - at) * (samples - at), (at + 1) * (b - samples + at + 1))
            )
        return float(total)

    truth = max(tail(x, size - x) for x in (counts[0], counts[0] + 1, counts[1], counts[1] + 1))
    found = database_profile(counts, 0.998, epsilon)
    assert truth <= found <= truth * (1 + 1e-8)
    assert found == pytest.approx(1.64e-8, rel=2e-3)


def test_figure_1() -> None:
    """From 1e-32 to 1e-8 over the years at 0.2 % lost, smaller for larger electorates."""
    epsilon = math.log(0.51 / 0.49)
    rows = [(sum(x), database_profile(x, 0.998, epsilon)) for x in elections().values()]
    assert len(rows) == 26
    orders = [math.floor(math.log10(delta)) for _, delta in rows]
    assert (min(orders), max(orders)) == (-32, -8)
    assert all(delta < 1 / size for size, delta in rows)
    sizes, deltas = np.array(sorted(rows)).T
    assert np.corrcoef(sizes, np.log(deltas))[0, 1] < -0.99


def test_tails_of_any_number_of_terms_and_far_below_the_floats(monkeypatch) -> None:
    of = [81_283_501, 74_223_975], 0.998, math.log(1.5)
    assert -2700 < database_profile(*of, log=True) / math.log(10) < -2690
    assert database_profile(*of) == 5e-324
    a = np.arange(400, 430)
    whole = tails.log_tail(WithoutReplacement(), a, 900 - a, np.full_like(a, 300), 0.0)
    monkeypatch.setattr(tails, "_BLOCK", 1000)  # 33 terms of each of 30
    parts = tails.log_tail(WithoutReplacement(), a, 900 - a, np.full_like(a, 300), 0.0)
    assert parts == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([3, 4], 0.0, 1.0), ValueError, r"rate=0.0: must be greater than 0"),
        (([3, 4], 1.5, 1.0), ValueError, r"rate=1.5: .*0 and at most 1"),
        (([3, 4], "half", 1.0), TypeError, r"rate='half': must be a number"),
        (([3, 4], 0.5, -1.0), ValueError, r"epsilon=-1.0: must be at least 0"),
        (([3, 4], 0.5, math.nan), ValueError, r"epsilon=nan: must be at least 0"),
        (([3, 4], 0.5, True), TypeError, r"epsilon=True: must be a number"),
        (([0, 0], 0.5, 1.0), ValueError, r"counts: hold 0 records"),
        (([10**9, 1], 0.5, 1.0), ValueError, r"counts: hold 1000000001 .*1e\+09"),
        (([3], 0.5, 1.0), ValueError, r"counts: has shape \(1,\)"),
        # More than two categories, beyond what is summed.
        (([100_000, 1, 0], 0.5, 0.3), ValueError, r"counts: hold 100001 records .* at most"),
    ],
)
def test_bad_arguments(arguments: tuple, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        database_profile(*arguments)
    with pytest.raises(ValueError, match="replacement='maybe': must be one of"):
        database_profile([3, 4], 0.5, 1.0, replacement="maybe")
    assert database_profile([10**6 - 1, 1], 0.5, 0.3) == pytest.approx(0.5)


def test_a_rate_is_the_decimal_that_it_prints_as() -> None:
    """0.1 as a float is a little more than a tenth, which would draw 2 of 10."""
    assert database_profile([1, 9], 0.1, 0.0) == pytest.approx(0.1, rel=1e-12)


# Errors, made so large that each part of the certificate shows.
@dataclass(frozen=True)
class Wrong(WithoutReplacement):
    """Draws whose functions err downwards, each by no more than it says."""

    of_log: float = 0.0
    of_ratio: float = 0.0
    of_step: float = 0.0

    def log_pmf(self, *arguments: Any) -> Any:
        return super().log_pmf(*arguments) - self.of_log

    def ratio(self, *arguments: Any) -> Any:
        return super().ratio(*arguments) * (1 + self.of_ratio)

    def ratio_error(self, *arguments: Any) -> Any:
        return super().ratio_error(*arguments) + self.of_ratio

    def step(self, *arguments: Any) -> Any:
        return super().step(*arguments) * (1 - self.of_step)


def with_draw(monkeypatch: pytest.MonkeyPatch, draw: Wrong) -> None:
    monkeypatch.setitem(DRAWS, "without", draw)
    for module in (tails, profile):
        monkeypatch.setattr(module, "log_pmf_error", lambda log_p: draw.of_log + 0 * log_p)


BOTH = [
    *(((4, 6), 5), ((3, 4, 3), 5), ((1, 9), 3), ((6, 2, 0), 4), ((40, 60), 60), ((30, 20, 10), 30))
]


@pytest.mark.parametrize(("counts", "samples"), BOTH)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_probabilities_that_are_too_low_still_give_a_bound(counts, samples, epsilon, monkeypatch):
    """Of the draw from two categories and, for three, of how many are drawn from the two."""
    plain = database_profile(counts, Fraction(samples, sum(counts)), epsilon, log=True)
    error = 0.1
    with_draw(monkeypatch, Wrong(of_log=error))
    found = database_profile(counts, Fraction(samples, sum(counts)), epsilon, log=True)
    assert plain - 1e-9 <= found <= plain + 1e-9


@pytest.mark.parametrize(("counts", "samples"), BOTH[:4])
@pytest.mark.parametrize("error", [0.02, 0.3])
def test_ratios_that_are_too_high_still_give_a_bound(counts, samples, error, monkeypatch):
    """The likelihood ratio enters the gain of an outcome, and decides which outcomes count."""
    with_draw(monkeypatch, Wrong(of_ratio=error))
    for epsilon in (*EPSILONS, *np.linspace(0.05, 1.5, 11).tolist()):
        assert exact(counts, samples, epsilon, "without") <= Fraction(
            database_profile(counts, Fraction(samples, sum(counts)), epsilon)
        )


def half_tail(a: int, b: int, s: int) -> Fraction:
    """`sum of P(k) (1 - r(k))+` for hypergeometric draws, in integers."""
    support = range(max(0, s - b), min(a, s) + 1)
    gains = {k: 1 - definitions.ratio(k, a, b, s) for k in support}
    ways = (math.comb(a, k) * math.comb(b, s - k) * gain for k, gain in gains.items() if gain > 0)
    return sum(ways, Fraction(0)) / math.comb(a + b, s)


def test_the_roundings_of_every_step_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities fall too fast by as many as are allowed; nothing else is wrong."""
    a, b, s = 1000, 1000, 1000
    truth = half_tail(a, b, s)
    draw = Wrong(of_step=2.0**-50)
    with_draw(monkeypatch, draw)
    monkeypatch.setattr(tails, "_excess", exact_excess)
    log_delta = tails.log_tail(draw, *(np.array([value]) for value in (a, b, s)), 0.0)[0]
    assert oracles.real(truth).log() <= oracles.real(float(log_delta))


def exact_excess(draw, k, a, b, s, factor, relative_error):
    ratio = draw.ratio(k, a, b, s)
    return 1 - factor * ratio, 0.0 * ratio


@pytest.mark.parametrize("negligible", [0.5, 1e6])
def test_what_a_tail_leaves_out_is_added(negligible, monkeypatch):
    monkeypatch.setattr(tails, "NEGLIGIBLE", negligible)
    monkeypatch.setattr(tails, "_BLOCK", 1)
    arrays = [np.array([value]) for value in (1000, 1000, 1000)]
    truth = half_tail(1000, 1000, 1000)
    found = math.exp(tails.log_tail(WithoutReplacement(), *arrays, 0.0)[0])
    assert float(truth) <= found
    assert found > 1.001 * float(truth)  # negative control: something was left out


@pytest.mark.parametrize("counts", [(3, 4, 3), (6, 2, 0), (2, 2, 2)])
def test_the_rounding_of_a_logarithm_of_a_sum_is_counted(counts, monkeypatch):
    """2^-40, here all used up, and nothing else is wrong."""
    size = sum(counts)
    truth = oracles.real(exact(counts, size // 2, 0.2, "without")).log()
    with_draw(monkeypatch, Wrong())
    monkeypatch.setattr(
        profile, "logsumexp", lambda values, **options: logsumexp(values, **options) - 2.0**-40
    )
    found = database_profile(counts, Fraction(size // 2, size), 0.2, log=True)
    assert truth <= oracles.real(found) <= truth + 2.0**-41


def test_a_gain_has_room_for_its_roundings() -> None:
    """Of `1 - e^ε r`: the relative error of the product, and a rounding of the difference."""
    draw, rng = WithoutReplacement(), np.random.default_rng(0)
    for _ in range(200):
        a, b = (int(value) for value in rng.integers(1, 10**6, size=2))
        s = int(rng.integers(1, a + b))
        low, high = (int(end) for end in draw.support(np.array(a), np.array(b), np.array(s)))
        k, epsilon = int(rng.integers(low, high + 1)), float(rng.uniform(0, 1))
        arrays = [np.array([value]) for value in (k, a, b, s)]
        relative = draw.ratio_error(*arrays[1:]) + 2.0**-51
        excess, error = tails._excess(draw, *arrays, tails._factor(epsilon), relative)
        truth = 1 - oracles.real(epsilon).exp() * oracles.real(definitions.ratio(k, a, b, s))
        if truth > 0:
            assert truth <= oracles.real(float(excess[0])) + oracles.real(float(error[0]))
        scaled = min(1 - float(excess[0]), 1.0)
        assert error[0] >= scaled * relative[0] + 2.0**-54


def test_an_outcome_in_doubt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the gain is 0 within its error, the outcome is among those summed."""
    arrays = [np.array([value]) for value in (3, 2, 2)]  # r(1) = 2/3 * 3/2 = 1
    support = WithoutReplacement().support(*arrays)
    assert tails.first_positive(WithoutReplacement(), *arrays, *support, 0.0).tolist() == [1]
    monkeypatch.setattr(tails, "_excess", exact_excess)
    assert tails.first_positive(WithoutReplacement(), *arrays, *support, 0.0).tolist() == [2]


class Level(WithoutReplacement):
    """Nearly no outcome tells anything: every ratio is a little below 1, exactly."""

    def ratio(self, k: Any, a: Any, b: Any, s: Any) -> Any:
        return np.full(np.broadcast(k, a, b, s).shape, 1 - 2.0**-52)

    def ratio_error(self, a: Any, b: Any, s: Any) -> Any:
        return np.zeros(np.shape(a))


def test_the_rounding_of_the_factor_is_in_doubt_and_counted(monkeypatch):
    """At ε = 0 with `e^ε` too high by 2^-51: all outcomes gain 2^-52, none as computed."""
    monkeypatch.setattr(tails, "_factor", lambda epsilon: 1 + 2.0**-51)
    arrays = [np.array([value]) for value in (5, 5, 5)]
    support = WithoutReplacement().support(*arrays)
    assert tails.first_positive(Level(), *arrays, *support, 0.0).tolist() == [0]
    assert tails.log_tail(Level(), *arrays, 0.0)[0] >= -52 * math.log(2)
    monkeypatch.setattr(tails, "first_positive", lambda *arguments: support[0])
    assert tails.log_tail(Level(), *arrays, 0.0)[0] >= -52 * math.log(2)


class Telling(WithoutReplacement):
    """Every outcome counts in full."""

    def ratio(self, k: Any, a: Any, b: Any, s: Any) -> Any:
        return np.zeros(np.broadcast(k, a, b, s).shape)


def test_what_follows_a_block_is_below_a_geometric_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """With gains of 1 all of it is needed: the next probability alone is not enough."""
    monkeypatch.setattr(tails, "NEGLIGIBLE", 1e6)
    monkeypatch.setattr(tails, "_BLOCK", 1)
    monkeypatch.setattr(tails, "first_positive", lambda draw, a, *others: a // 2)
    arrays = [np.array([value]) for value in (1000, 1000, 1000)]
    ways = sum(math.comb(1000, k) ** 2 for k in range(500, 1001))
    truth = oracles.real(Fraction(ways, math.comb(2000, 1000))).log()
    assert truth <= oracles.real(float(tails.log_tail(Telling(), *arrays, 0.0)[0]))


def test_a_table_counts_all_errors_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for log_value in np.linspace(-50, -1e-3, 500).tolist():
        assert oracles.real(log_value).exp() <= oracles.real(exp_up(log_value))
        assert Fraction(exp_up(log_value)) >= Fraction(math.exp(log_value)) * (
            1 + Fraction(1, 2**51)
        )
    assert exp_up(-1000.0) > 0
    assert exp_up(0.0) == exp_up(3.0) == 1.0
    assert exp_up(-math.inf) == 0.0
    rows = np.array(oracles.data_sets(6, 3))
    plain = profile.log_profiles(WithoutReplacement(), 3, rows, 0.3)
    with_draw(monkeypatch, Wrong(of_log=0.1))
    found = profile.log_profiles(Wrong(of_log=0.1), 3, rows, 0.3)
    assert np.all(found >= plain - 1e-9)


def test_memory_is_linear_in_the_number_of_databases() -> None:
    """A table of all pairs would take 288 MB."""
    histograms = candidates(6000, 2)
    tracemalloc.start()
    profile.log_profiles(DRAWS["without"], 5990, histograms, 7.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
