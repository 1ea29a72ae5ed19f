"""The smoothed δ against definition, simulation and bounds; hull, composition, merging."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import definitions
import numpy as np
import pytest

from opendp_bayes_smoothed import (
    composed,
    database_profile,
    expectation,
    smoothed_delta,
    smoothed_epsilon,
    vertices,
)
from opendp_bayes_smoothed.expectation import log_largest_expectation
from tests.helpers import oracles
from tests.helpers.sweeps import slow, some_of

TWO = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(5, 8), Fraction(3, 8))]
THREE = [tuple(Fraction(x, 8) for x in row) for row in ((4, 3, 1), (1, 4, 3), (2, 2, 4))]
EDGE = [(Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2))]


def as_floats(distributions: list[tuple[Fraction, ...]]) -> list[list[float]]:
    return [[float(p) for p in row] for row in distributions]


def defined(distributions, size, samples, epsilon, replacement="without"):
    law = definitions.drawn(samples, replacement)
    return definitions.smoothed_delta(law, distributions, size, epsilon)


CASES = [(TWO, 8, 5, "without"), (TWO, 7, 3, "with"), (EDGE, 6, 3, "without")]
CASES += [(THREE, 4, 2, "without"), (THREE, 4, 3, "with"), (TWO[:1], 9, 4, "without")]
#: Of more records.
MORE = slow([(TWO, 12, 8, "without"), (THREE, 6, 3, "without")])


@pytest.mark.parametrize(
    ("distributions", "size", "samples", "replacement"), [*some_of(CASES, 4), *MORE]
)
def test_equals_the_definition(distributions, size, samples, replacement):
    for epsilon in (0.1, 1.5):
        truth = defined(distributions, size, samples, epsilon, replacement)
        of = as_floats(distributions), size, Fraction(samples, size), epsilon
        found = smoothed_delta(*of, replacement=replacement)
        assert truth <= Fraction(found) <= truth * Fraction(1 + 1e-8)


@pytest.mark.parametrize(
    ("distributions", "size"),
    [(TWO, 6), (THREE, 4), (THREE[:2], 5), ([*TWO, (Fraction(1, 2), Fraction(1, 2))], 5)],
)
def test_any_function_of_histograms(distributions: list[tuple[Fraction, ...]], size: int) -> None:
    """Algorithm 1 on any functions: the worst choice mixes distributions."""
    rng = np.random.default_rng(size)
    sets = oracles.data_sets(size, len(distributions[0]))
    mixed = 0
    for _ in range(5):
        values = {
            x: Fraction(int(v), 7)
            for x, v in zip(sets, rng.integers(0, 50, len(sets)) ** 3, strict=True)
        }
        truth = definitions.smoothed(lambda x, v=values: v[x], distributions, size)
        with np.errstate(divide="ignore"):
            logs = np.log([float(values[x]) for x in sets])
        found = math.exp(
            log_largest_expectation(logs, np.array(sets), np.array(as_floats(distributions)))
        )
        assert float(truth) == pytest.approx(found, rel=1e-8)
        mixed += truth > max(
            definitions.expectation(lambda x, v=values: v[x], [row] * size, len(row))
            for row in distributions
        )
    assert mixed > 0


def test_simulation() -> None:
    """400 000 databases of each composition: means within five standard errors."""
    rng = np.random.default_rng(3)
    size, samples, epsilon, trials = 30, 20, 1.0, 400_000
    corners = np.array([[0.3, 0.7], [0.8, 0.2]])
    profiles = np.array(
        [database_profile([m, size - m], Fraction(samples, size), epsilon) for m in range(size + 1)]
    )
    means, errors = [], []
    for first in range(0, size + 1, 5):
        values = profiles[
            rng.binomial(first, corners[0, 0], trials)
            + rng.binomial(size - first, corners[1, 0], trials)
        ]
        means.append(values.mean())
        errors.append(values.std() / math.sqrt(trials))
    found = smoothed_delta(corners, size, Fraction(samples, size), epsilon)
    worst = int(np.argmax(means))
    assert all(mean <= found + 5 * error for mean, error in zip(means, errors, strict=True))
    assert abs(means[worst] - found) < 5 * errors[worst]
    # Negative control: the same test tells the value for one sample more.
    assert (
        abs(means[worst] - smoothed_delta(corners, size, Fraction(samples + 1, size), epsilon))
        > 5 * errors[worst]
    )


def remark_8(smallest: float, k: int, size: int, rate: float, epsilon: float) -> float:
    """As printed."""
    g = ((1 - math.exp(-epsilon)) / rate - 1) ** 2
    return math.exp(-g * smallest * size / 6) + k * math.exp(-smallest * size / 8)


def test_exponential_decay_needs_every_category_to_be_likely() -> None:
    """A point mass is 1-positive as printed, and its smoothed δ is T/n all the same. Figure 2,
    left: a line in n, of the slope of no lost vote for the rarer party.
    """
    truth = smoothed_delta([[1.0, 0.0]], 1000, 0.8, 5.0)
    assert truth == pytest.approx(0.8, rel=1e-7)
    assert truth > 1e3 * remark_8(1.0, 2, 1000, 0.8, 5.0)
    corners = [[0.9446, 0.0554], [0.2286, 0.7714]]
    sizes = np.array([500, 1000, 1500, 2000])
    logs = np.array([smoothed_delta(corners, int(size), 0.998, 7.0, log=True) for size in sizes])
    slope, intercept = np.polyfit(sizes, logs, 1)
    assert np.max(np.abs(logs - slope * sizes - intercept)) < 1e-3
    assert slope == pytest.approx(0.002 * math.log(0.9446), rel=0.01)
    # Differential privacy has no decay at all.
    assert max(database_profile([1, int(size) - 1], 0.998, 7.0) for size in sizes) == pytest.approx(
        0.998, rel=1e-6
    )
    assert smoothed_delta([[0.5, 0.5]], 3000, 0.5, 3.0, log=True) < -800
    assert smoothed_delta([[0.5, 0.5]], 3000, 0.5, 3.0) == 5e-324


def test_epsilons_for_a_delta_and_vertices() -> None:
    """Of two categories the ends; of three a triangle; a flat set is kept whole."""
    corners, size, rate = [[0.5, 0.5], [0.7, 0.3]], 40, 0.5
    for delta in (0.1, 1e-2, 2e-3):
        epsilon = smoothed_epsilon(corners, size, rate, delta)
        assert (
            smoothed_delta(corners, size, rate, epsilon)
            <= delta
            < smoothed_delta(corners, size, rate, epsilon * (1 - 2.0**-18))
        )
    assert smoothed_epsilon(corners, size, rate, 1.0) == 0
    limit = smoothed_delta(corners, size, rate, math.inf)
    assert limit > 0
    assert smoothed_epsilon(corners, size, rate, limit / 2) == math.inf
    with pytest.raises(ValueError, match=r"delta=0.0: .*greater than 0 and"):
        smoothed_epsilon(corners, size, rate, 0.0)
    rows = [[p, 1 - p] for p in (0.5, 0.2, 0.8, 0.35)]
    assert vertices(rows).tolist() == [[0.2, 0.8], [0.8, 1 - 0.8]]
    corners = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    rng = np.random.default_rng(0)
    inside = rng.dirichlet([2, 2, 2], 50) @ corners
    assert vertices(np.vstack([inside, corners])).tolist() == np.unique(corners, axis=0).tolist()
    line = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.375, 0.375, 0.25], [0.3125, 0.4375, 0.25]]
    assert len(vertices(line)) == 4
    square = [[0.25] * 4, [0.5, 0.0, 0.25, 0.25], [0.25, 0.25, 0.5, 0.0]]
    square += [[0.5, 0.0, 0.5, 0.0], [0.375, 0.125, 0.375, 0.125]]
    assert len(vertices(square)) == 5, "kept whole, which is always right"
    assert vertices([[0.5, 0.5]]).tolist() == [[0.5, 0.5]]
    assert len(vertices([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])) == 3


# Proposition 7: only the vertices of the hull matter.


def test_inner_distributions_change_nothing_and_outer_ones_do() -> None:
    corners = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.3, 0.2, 0.5]]
    inner = np.mean(corners, axis=0).tolist()
    rate = Fraction(1, 2)
    truth = smoothed_delta(corners, 10, rate, 1.0)
    assert smoothed_delta([*corners, inner], 10, rate, 1.0) == truth
    assert smoothed_delta([inner], 10, rate, 1.0) < truth
    # The definition, without any reduction: five distributions, two of them inside.
    two = [*TWO, (Fraction(1, 2), Fraction(1, 2)), (Fraction(3, 8), Fraction(5, 8))]
    assert defined(two, 5, 3, 0.5) == defined(TWO, 5, 3, 0.5)
    assert defined([*TWO, (Fraction(1, 8), Fraction(7, 8))], 5, 3, 0.5) > defined(TWO, 5, 3, 0.5)


@pytest.mark.parametrize(
    ("distributions", "match"),
    [
        ([0.5, 0.5], r"distributions: have shape \(2,\)"),
        ([[1.0]], r"distributions: have shape \(1, 1\)"),
        ([[0.5, 0.6]], "distributions: every row must hold probabilities"),
        ([[1.5, -0.5]], "distributions: every row must hold probabilities"),
        ([[math.nan, 0.5]], "distributions: every row must hold probabilities"),
    ],
)
def test_bad_distributions(distributions: list, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        vertices(distributions)


# Propositions 4 to 6.
def test_post_processing_loses_nothing() -> None:
    """Proposition 4, randomised. Negative control: knowledge of the database is none."""
    rng = np.random.default_rng(5)
    samples, size, epsilon = 3, 6, 0.4
    law, outcomes = definitions.drawn(samples), oracles.data_sets(samples, 2)
    smaller = 0
    for _ in range(20):
        weights = rng.integers(0, 4, (len(outcomes), 3)) + np.eye(len(outcomes), 3, dtype=int)
        function = {
            o: {j: Fraction(int(w), int(row.sum())) for j, w in enumerate(row)}
            for o, row in zip(outcomes, weights, strict=True)
            if row.sum()
        }
        function |= {o: {0: Fraction(1)} for o in outcomes if o not in function}
        for counts in oracles.data_sets(size, 2):
            before = definitions.profile(law, counts, epsilon)

            def pushed(x, f=function):
                return definitions.pushed(law(x), f.__getitem__)

            after = definitions.profile(pushed, counts, epsilon)
            assert after <= before
            smaller += after < before
    assert smaller > 20
    peeking = definitions.profile(lambda x: {x: Fraction(1)}, (3, 3), epsilon)
    assert peeking > definitions.profile(law, (3, 3), epsilon)


def test_composition() -> None:
    """Proposition 5, exactly: at most the sum. Inequality (5) of the proof says at least."""
    size, first, second = 6, 2, 4
    epsilons = (0.3, 0.6)
    reversed_fails = 0
    laws = [definitions.drawn(first), definitions.drawn(second)]
    for counts in oracles.data_sets(size, 2):
        together = definitions.profile(
            lambda x: definitions.both(*(law(x) for law in laws)), counts, sum(epsilons)
        )
        apart = [
            definitions.profile(law, counts, epsilon)
            for law, epsilon in zip(laws, epsilons, strict=True)
        ]
        assert together <= sum(apart) * (1 + Fraction(1, 10**12))
        reversed_fails += together < sum(apart)
    assert reversed_fails > 0


def test_composition_rounds_up_and_stops_at_one() -> None:
    epsilon, delta = composed([(0.1, 0.6)] * 3)
    assert Fraction(epsilon) >= 3 * Fraction(0.1)
    assert delta == 1
    assert composed([]) == (0, 0)
    with pytest.raises(ValueError, match=r"epsilon=-1.0: must be at least 0"):
        composed([(-1.0, 0.1)])
    with pytest.raises(ValueError, match=r"delta=-0.1: must be at least 0"):
        composed([(1.0, -0.1)])
    assert composed([(math.inf, 0.1), (1.0, math.inf)]) == (math.inf, 1)
    for number in range(2, 12):
        epsilon, delta = composed([(0.1 * number, 0.01), (0.7, 0.03 / number), (1e-20, 1e-20)])
        assert Fraction(epsilon) >= Fraction(0.1 * number) + Fraction(0.7) + Fraction(1e-20)
        assert Fraction(delta) >= Fraction(0.01) + Fraction(0.03 / number) + Fraction(1e-20)


def test_preprocessing_of_single_records() -> None:
    """Proposition 6 after merging; equal here, as every neighbour has an image."""
    size, samples, epsilon = 5, 3, 0.5

    def merged(counts: tuple[int, ...]) -> tuple[int, int]:
        return counts[0] + counts[1], counts[2]

    def law(y):
        return definitions.sampled(merged(y), samples, "without")

    before = definitions.smoothed_delta(law, THREE, size, epsilon)
    images = [[row[0] + row[1], row[2]] for row in as_floats(THREE)]
    after = smoothed_delta(images, size, Fraction(samples, size), epsilon)
    assert before <= Fraction(after) <= before * Fraction(1 + 1e-8)
    assert smoothed_delta(as_floats(THREE), size, Fraction(samples, size), epsilon) > after


def test_preprocessing_of_whole_databases_is_not_covered() -> None:
    """The proof has f move one record; f = "all become the first" moves all of them."""
    size, samples, epsilon = 4, 2, 1.0

    def first_for_all(database: tuple[int, ...]) -> tuple[int, int]:
        return (0, size) if database[0] else (size, 0)

    law = definitions.drawn(samples)
    here, there = (law(first_for_all((bit, 0, 1, 1))) for bit in (0, 1))
    assert definitions.hockey_stick(here, there, Fraction(math.exp(epsilon))) == 1
    # Under f(Π) every database has a single value, with the profile T/n.
    assert definitions.profile(law, (0, size), epsilon) == Fraction(samples, size)


# Errors, made so large that each margin shows.
@pytest.mark.parametrize("distributions", [TWO, THREE, TWO[:1]])
def test_the_roundings_of_an_expectation_are_counted(distributions, monkeypatch):
    """Every step of the chain and every sum too low by a share of what is allowed for them."""
    size, k = 6, len(distributions[0])
    histograms = np.array(oracles.data_sets(size, k))
    values = np.linspace(-900.0, -1e-3, len(histograms))
    exact = {
        tuple(x): oracles.real(float(v)).exp()
        for x, v in zip(histograms.tolist(), values, strict=True)
    }

    def expected(choice: tuple[tuple[Fraction, ...], ...]) -> oracles.arb:
        law: definitions.Law = {(0,) * k: Fraction(1)}
        for row in choice:
            law = definitions.pushed(
                law, lambda x, row=row: {(*x[:i], x[i] + 1, *x[i + 1 :]): row[i] for i in range(k)}
            )
        return sum((oracles.real(p) * exact[x] for x, p in law.items()), start=oracles.arb(0))

    truth = max(
        (expected(choice) for choice in combinations_with_replacement(distributions, size)),
        key=float,
    ).log()
    # Of numbers up to 2 * 900: an addition for each category, and their sum.
    of_step, of_sum = 2.0**-50 * k * 900, 2.0**-32
    add_record, log_sum = expectation._add_record, expectation._log_sum
    monkeypatch.setattr(
        expectation, "_add_record", lambda *arguments: add_record(*arguments) - of_step
    )
    monkeypatch.setattr(expectation, "_log_sum", lambda *arguments: log_sum(*arguments) - of_sum)
    found = log_largest_expectation(values, histograms, np.array(as_floats(distributions)))
    assert truth <= oracles.real(found)


def test_the_margin_of_an_expectation_has_every_part() -> None:
    """For a function that is constant the truth is its value. One distribution needs no chain.
    Before anything is computed: histograms, or choices of a distribution for each record.
    """
    one, two = np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.25, 0.75]])
    for size, value in ((1, -1.0), (6, -1e6), (40, -1e12)):
        histograms, values = np.array(oracles.data_sets(size, 2)), np.full(size + 1, value)
        without = 2.0**-49 * 8 * -value + 2.0**-30
        for corners in (one, two):
            margin = log_largest_expectation(values, histograms, corners) - value
            assert margin >= 0.9 * without
        assert margin >= 0.9 * (without + 2.0**-49 * size * (2 * -value + 8))
    for rows, size in (([[0.25] * 4], 1000), ([[0.5] * 2], 10**7), ([[1 / 8] * 8], 15)):
        with pytest.raises(ValueError, match=f"size={size}: Algorithm 1 has too much to average"):
            smoothed_delta(rows, size, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"size=200000: .* of 2 categories from 2 distributions"):
        smoothed_delta([[0.5, 0.5], [0.9, 0.1]], 200_000, 0.5, 1.0)


@pytest.mark.slow
def test_the_size_of_the_papers_figures() -> None:
    """All drawn but one: the largest share, whatever ε; the one left out is of the commonest."""
    found = smoothed_delta([[0.9, 0.1], [0.3, 0.7]], 10_000, 1 - 1 / 10_000, 30.0)
    assert found == pytest.approx(0.9, rel=1e-5)
