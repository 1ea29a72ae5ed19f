"""The sampler of the exponential mechanisms: each bound it rests on, the law of its proposals, its
samples, and input at the limits.

Privacy needs two things: that no acceptance probability exceeds 1, for which every table must be a
bound, and that proposals and acceptances multiply to the law. Both are checked on all proposals of
small spaces; and each check is shown to notice a sampler that is broken there. Statistical checks
are `oracles.rejects` at `oracles.FALSE_ALARM`.
"""

import math
import secrets
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.mathematics.exponential.hellinger import (
    GAP_RELATIVE_ERROR,
    gap_above,
    hellinger_distance,
)
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.exponential.posterior_exponential import exponent_error
from opendp_bayes.samplers import uniform as sampling
from opendp_bayes.samplers.exponential import hellinger_candidates as hellinger_sampler
from opendp_bayes.samplers.exponential.hellinger_candidates import HellingerSampler, blocks, chords
from tests.helpers import oracles
from tests.helpers.sweeps import slow, some_of

#: Counts, prior and the largest exponent 1 / width: skewed data, zero counts, priors of 0.5, 1 and
#: asymmetric. At these exponents between 0.1 and 0.6 of the releases are uniform draws.
CASES: list[tuple[oracles.Counts, tuple[float, ...], float]] = [
    ((15, 10, 5), (1.0, 1.0, 1.0), 5.0),
    ((30, 0, 0), (0.5, 0.5, 0.5), 5.0),
    ((3, 26, 1), (0.3, 1.0, 4.0), 5.0),
    ((6, 3, 2, 1), (0.3, 1.0, 2.0, 0.5), 5.0),
    ((0, 12, 0, 0), (1.0, 1.0, 1.0, 1.0), 5.0),
    ((4, 2, 1, 1, 0, 0), (0.5,) * 6, 6.5),
    ((8, 0, 0, 0, 0, 0), (1.0, 1.0, 0.2, 1.0, 3.0, 1.0), 6.5),
    ((100, 100), (1.0, 1.0), 5.0),
    ((195, 5), (0.5, 0.5), 5.0),
    ((200, 0), (2.0, 0.1), 5.5),
]


def sampler(counts: Any, prior: Any, exponent: float) -> HellingerSampler:
    counts = np.array(counts)
    return HellingerSampler(
        counts, np.broadcast_to(np.asarray(prior, dtype=float), counts.shape), 1 / exponent
    )


# The envelope.
EXPONENTS = [1e-9, 0.1, 0.9, 2.0, 30.0, 1e3, 1e6, 1e12, 1e19]


def excess(exponent: float, log_candidates: float, terms_of: float) -> np.ndarray:
    """The logarithm of the sum of terms over f, on a grid dense on the scale of every chord."""
    log_weights, slopes = chords(terms_of, log_candidates)
    corners = -np.log1p(-(np.linspace(0, 1, 20_000, endpoint=False) ** 2))
    small, large = np.geomspace(1e-42, 1e-9, 5000), np.geomspace(1, 1e3, 1000)
    divergence = np.concatenate([[0.0], small, corners[1:], large, [1e6, 1e15]])
    logs = log_weights - np.multiply.outer(divergence, slopes)
    return np.logaddexp.reduce(logs, axis=1) + exponent * np.sqrt(-np.expm1(-divergence))


@pytest.mark.parametrize("log_candidates", [2.0, 50.0, 2000.0])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_terms_bound_the_weight(exponent: float, log_candidates: float) -> None:
    assert np.min(excess(exponent, log_candidates, exponent)) > 0


@pytest.mark.parametrize("exponent", EXPONENTS[2:])
def test_terms_for_a_larger_exponent_do_not(exponent: float) -> None:
    """Negative control."""
    assert np.min(excess(exponent, 50.0, 3 * exponent)) < 0


@pytest.mark.parametrize("exponent", [0.1, 2.0, 30.0, 1e3, 1e6])
def test_terms_are_close_where_the_weight_counts(exponent: float) -> None:
    """The sum exceeds f by a factor below e at all candidates that are not negligible together."""
    log_weights, slopes = chords(exponent, 50.0)
    distance = np.linspace(0, min(1.0, 80 / exponent), 5000)[1:-1]
    logs = log_weights + np.multiply.outer(np.log1p(-(distance**2)), slopes)
    assert np.max(np.logaddexp.reduce(logs, axis=1) + exponent * distance) < 1


@pytest.mark.parametrize("precision", [1, 4, 7])
@pytest.mark.parametrize("largest", [1, 2, 3, 15, 16, 17, 100, 1023, 1024, 123_456])
def test_blocks_hold_every_distance_once(largest: int, precision: int) -> None:
    start, bits = blocks(largest, precision)
    held = [
        number
        for first, log_size in zip(start.tolist(), bits.tolist(), strict=True)
        for number in range(first, first + 2**log_size)
    ]
    assert held == list(range(1, held[-1] + 1))
    assert largest <= held[-1] < largest + 2 ** bits[-1]
    assert np.all(2.0**bits <= np.maximum(start * 2.0**-precision, 1))


def test_blocks_of_the_largest_size_and_margins_of_gaps() -> None:
    start, bits = blocks(10**12, 7)
    assert start[-1] <= 10**12 < start[-1] + 2 ** bits[-1]
    assert start.size < 5000
    assert hellinger_sampler._GAP_MARGIN >= 4 * GAP_RELATIVE_ERROR
    assert hellinger_sampler.MARGIN >= 2.0**-24


@pytest.mark.parametrize(
    "logs",
    [
        *([0.0], [0.0, -1.0, -2.5], [-800.0, 0.0, -40.0, -np.inf], [3.0] * 1000),
        [[-1e30, 700.0, 699.0], [5.0, -np.inf, -1e-9]],
    ],
)
def test_integer_weights_bound_the_weights(logs: Any) -> None:
    logs = np.array(logs)
    weights = hellinger_sampler.integer_weights(logs)
    assert weights.sum(axis=-1).tolist() == np.full(logs.shape[:-1], 2**44).tolist()
    assert np.all((weights == 0) == (logs == -np.inf))
    relative = logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True)
    assert np.all(
        np.log(weights[weights > 0]) - hellinger_sampler.log_scale(weights)
        >= relative[weights > 0] - 1e-12
    )


# Uniform variables of any magnitude.
def test_log_uniforms_are_resolved_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, and a one in the third place: 3 * 64 + 3 halvings, and a mantissa."""
    observed = Counter(np.ceil(-sampling.log_uniforms(100_000)).astype(int).tolist())
    law = {i: math.exp(1 - i) - math.exp(-i) for i in range(1, 40)}
    assert not oracles.rejects(observed, law)
    assert oracles.rejects(
        observed, {i: math.exp(0.95 * (1 - i)) - math.exp(-0.95 * i) for i in law}
    )
    last = np.array([2**64 - 1, 0, 2**63], dtype=np.uint64)
    words = iter([*map(np.array, ([0, 4, 1], [0], [0], [4])), last])
    monkeypatch.setattr(sampling, "random_words", lambda number: next(words).astype(np.uint64))
    logs = sampling.log_uniforms(3)
    np.testing.assert_allclose(
        logs,
        [np.log1p(1 - 2.0**-53) - 195 * math.log(2), -3 * math.log(2), math.log(1.5) - math.log(2)],
        rtol=1e-15,
    )


# Every proposal of small spaces.
def all_proposals(state: HellingerSampler, outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each term and outcome: the exact probability, and the logarithm of its acceptance."""
    moves = outcomes - state._counts
    k, width = moves.shape[1], state._first.size
    number = 2.0**state._bits
    # The block of a move: the last one that starts no further from 0 on its side.
    block = np.where(moves < 0, np.searchsorted(-state._first[::-1], -moves, side="right"), 0)
    block = np.where(
        moves < 0, width - block, np.searchsorted(state._first, moves, side="right") - 1
    )
    probability, log_acceptance = [], []
    for m in range(len(state._slopes)):
        ends, density = state._table(m)
        weights = np.diff(ends, prepend=0).reshape(k, width)
        share = np.diff(state._ends, prepend=0)[m] / 2.0**44
        others = [i for i in range(k) if i != state._lasts[m]]
        words = (weights[i, block[:, i]] / number[block[:, i]] / 2.0**44 for i in others)
        probability.append(share * np.prod(list(words), axis=0))
        log_density = np.sum([density.reshape(k, width)[i, block[:, i]] for i in others], axis=0)
        log_acceptance.append(state._log_acceptance(np.full(len(moves), m), moves, log_density))
    return np.array(probability), np.array(log_acceptance)


def realised_law(state: HellingerSampler, outcomes: np.ndarray) -> np.ndarray:
    probability, log_acceptance = all_proposals(state, outcomes)
    accepted = (probability * np.exp(np.minimum(log_acceptance, 0))).sum(axis=0)
    return accepted / accepted.sum()


@pytest.mark.parametrize(
    ("counts", "prior", "exponent"),
    [
        *CASES,
        ((3, 4), (1.0, 1.0), 1e-6),
        ((3, 4), (1.0, 1.0), 300.0),
        ((0, 3, 0), (1e-100,) * 3, 50.0),
    ],
)
def test_the_law_of_all_proposals(counts, prior, exponent):
    """No acceptance above 1, each close to it somewhere; together they have the law."""
    state = sampler(counts, prior, exponent)
    outcomes = np.array(oracles.data_sets(sum(counts), len(counts)))
    probability, log_acceptance = all_proposals(state, outcomes)
    assert np.all(log_acceptance < 0)
    assert np.max(log_acceptance) > -2
    assert np.all(probability > 0)
    truth = oracles.exponential_law(counts, prior, 1 / exponent)
    truth_array = np.array([truth[outcome] for outcome in map(tuple, outcomes.tolist())])
    realised = realised_law(state, outcomes)
    error = np.abs(np.log(realised / truth_array))
    assert np.max(error) <= 2 * float(exponent_error(1 / exponent, len(counts))) + 1e-13


@pytest.mark.parametrize(("counts", "prior", "exponent"), some_of(CASES, 5))
def test_the_estimate_of_the_normaliser(counts, prior, exponent):
    """2^17 proposals, over 2 % accepted: 5 standard errors are less than 10 %."""
    outcomes = np.array(oracles.data_sets(sum(counts), len(counts)))
    distances = hellinger_distance(np.array(prior) + counts, np.array(prior) + outcomes)
    assert sampler(counts, prior, exponent).log_normaliser(1 << 17) == pytest.approx(
        np.logaddexp.reduce(-exponent * distances), abs=0.1
    )


BROKEN = ["tables too low", "chords of a larger exponent", "no constant term"]


@pytest.mark.parametrize("broken", [*BROKEN, "a term's integer forgotten"])
def test_the_check_notices_what_is_broken(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative controls: off by a hundred times, or an acceptance exceeds 1."""
    counts, prior, exponent = CASES[2]
    outcomes = np.array(oracles.data_sets(sum(counts), len(counts)))
    if broken == "tables too low":
        init = HellingerSampler._bounds
        monkeypatch.setattr(
            HellingerSampler,
            "_bounds",
            lambda self, slope, tilt: init(self, slope, tilt) * np.where(self._first > 2, 1.2, 1.0),
        )
    elif broken == "chords of a larger exponent":
        monkeypatch.setattr(
            hellinger_sampler,
            "chords",
            lambda largest, log_candidates: chords(2 * largest, log_candidates),
        )
    elif broken == "no constant term":
        monkeypatch.setattr(
            hellinger_sampler,
            "chords",
            lambda *arguments: tuple(part[:-1] for part in chords(*arguments)),
        )
    state = sampler(counts, prior, exponent)
    if broken == "a term's integer forgotten":
        state._log_integers = np.full_like(state._log_integers, np.max(state._log_integers))
    _, log_acceptance = all_proposals(state, outcomes)
    truth = oracles.exponential_law(counts, prior, 1 / exponent)
    right = [truth[outcome] for outcome in map(tuple, outcomes.tolist())]
    error = np.max(np.abs(realised_law(state, outcomes) / right - 1))
    assert error > 100 * float(exponent_error(1 / exponent, 3))
    if broken in ("tables too low", "chords of a larger exponent", "no constant term"):
        assert np.max(log_acceptance) > 0


# Samples.
@pytest.mark.parametrize(("counts", "prior", "exponent"), some_of(CASES, 2))
def test_samples(counts, prior, exponent, monkeypatch):
    """The same number of draws is rejected under an exponent that is 30 % off, and a sampler that
    has lost its constant term is rejected.
    """
    law = oracles.exponential_law(counts, prior, 1 / exponent)

    def draws() -> Counter[Any]:
        return Counter(map(tuple, sampler(counts, prior, exponent).draw(30_000).tolist()))

    observed = draws()
    assert not oracles.rejects(observed, law)
    for factor in (0.7, 1.3):
        assert oracles.rejects(
            observed, oracles.exponential_law(counts, prior, 1 / (factor * exponent))
        )
    monkeypatch.setattr(
        hellinger_sampler,
        "chords",
        lambda *arguments: tuple(part[:-1] for part in chords(*arguments)),
    )
    assert oracles.rejects(draws(), law)


@pytest.mark.parametrize("prior", [1e-100, 0.01, 0.5, 1.0, 1e12])
@pytest.mark.parametrize("counts", [(10**12, 0, 0), (10**9, 37, 1), (123, 45, 6)])
def test_tables_bound_every_coordinate(counts: oracles.Counts, prior: float) -> None:
    """At least `exp(-j h - tilt d)`, in balls, at the ends of blocks near and far."""
    state = sampler(counts, prior, 50.0)
    n, k, width = sum(counts), len(counts), state._first.size
    rng = np.random.default_rng(3)
    for m in {0, len(state._slopes) // 2, len(state._slopes) - 1}:
        slope, tilt = oracles.real(float(state._slopes[m])), oracles.real(state._tilts[m])
        log_density = state._table(m)[1].reshape(k, width)
        logs = state._bounds(float(state._slopes[m]), state._tilts[m]) + state._log_size
        log_totals = np.logaddexp.reduce(logs, axis=1)
        for i in range(k):
            possible = np.flatnonzero(np.isfinite(log_density[i]))
            for block in {*rng.choice(possible, size=12).tolist(), *possible[[0, -1]].tolist()}:
                first = int(state._first[block])
                sign = (first > 0) - (first < 0)
                for d in (first, first + sign * (2 ** int(state._bits[block]) - 1)):
                    if 0 <= counts[i] + d <= n:
                        alpha = Fraction(prior)
                        truth = (
                            -slope * oracles.gap(alpha + counts[i], alpha + counts[i] + d)
                            - tilt * d
                        )
                        found = oracles.real(float(log_density[i, block] + log_totals[i]))
                        assert float(found - truth) > -hellinger_sampler.MARGIN / 2


@pytest.mark.parametrize(
    ("slope", "tilt"), some_of(product([0.0, 0.7, 90.0], [0.0, 1e-3, -1e-3, 0.4, -0.4]), 8)
)
def test_bounds_of_every_distance_of_every_block(slope: float, tilt: float) -> None:
    """At least the value at every distance, and at slope 0 the largest of them.

    Blocks hold up to 256 distances on either side of 0, so that their two ends differ.
    """
    counts, prior = np.array([300, 900, 4000]), np.array([0.5, 1.0, 3.0])
    state = sampler(counts, prior, 5.0)
    bounds, n = state._bounds(slope, tilt), int(counts.sum())
    assert state._bits.max() == 8
    for i, block in np.ndindex(bounds.shape):
        first = int(state._first[block])
        step = -1 if first < 0 else 1
        distances = first + step * np.arange(2 ** int(state._bits[block]))
        distances = distances[(counts[i] + distances >= 0) & (counts[i] + distances <= n)]
        if not distances.size:
            assert state._log_size[i, block] == -np.inf
            continue
        gaps = gap_above(prior[i] + counts[i] + np.minimum(distances, 0), np.abs(distances) / 2)
        values = -slope * gaps - tilt * distances
        assert bounds[i, block] >= values.max()
        if slope == 0:
            assert bounds[i, block] == pytest.approx(values.max(), rel=1e-14)
            # Not one of them is rounded below the product.
            ends = (int(distances[0]), int(distances[-1]))
            assert Fraction(bounds[i, block]) >= max(-Fraction(tilt) * end for end in ends)


def product_mixture(counts: list[int], prior: float, exponent: float) -> list[dict[int, float]]:
    """Marginal laws of all categories, from the power series `exp(-c sqrt(1 - y)) = sum of p_j y^j`
    and convolutions.

    The coefficients follow from `4 (1 - y) f'' = c^2 f + 2 f'`, a recurrence with positive terms.
    Powers of `y = exp(-D)` are products over categories, whose sums over the simplex are
    convolutions; what the powers beyond the last one add is at the data themselves, where D = 0.
    """
    n, c = sum(counts), exponent

    def weights(count):
        gaps = (oracles.gap(prior + count, prior + r) for r in range(n + 1))
        return np.array([math.exp(-float(gap)) for gap in gaps])

    tables = {count: weights(count) for count in set(counts)}
    marginals = {count: np.zeros(n + 1) for count in tables}
    p, q = math.exp(-c), c * math.exp(-c) / 2
    used = 0.0
    for j in range(1500):
        powers = {count: table**j for count, table in tables.items()}
        for count in marginals:
            others = counts.copy()
            others.remove(count)
            rest = reduce(
                lambda a, b: np.convolve(a, b)[: n + 1], (powers[other] for other in others)
            )
            marginals[count] += p * powers[count] * rest[::-1]
        used += p
        p, q = q, ((j + 1) * (4 * j + 2) * q + c * c * p) / (4 * (j + 2) * (j + 1))
    for count, marginal in marginals.items():
        marginal[count] += 1 - used
    return [
        dict(enumerate((marginals[count] / marginals[count].sum()).tolist())) for count in counts
    ]


def test_the_power_series_gives_the_law_of_a_small_space() -> None:
    """The oracle of the next test against enumeration."""
    counts, exponent = (5, 2, 1), 6.0
    law = oracles.exponential_law(counts, (0.5,) * 3, 1 / exponent)
    for i, marginal in enumerate(product_mixture(list(counts), 0.5, exponent)):
        for value, p in marginal.items():
            assert p == pytest.approx(
                sum(mass for outcome, mass in law.items() if outcome[i] == value), rel=1e-6
            )


@pytest.mark.parametrize("exponent", [18.0, pytest.param(22.0, marks=pytest.mark.slow)])
def test_marginals_beyond_enumeration(exponent: float) -> None:
    """Ten categories, 40 records, 2e9 candidates."""
    counts = [10, 10, 10, 3, 3, 2, 1, 1, 0, 0]
    samples = sampler(counts, 0.5, exponent).draw(30_000)
    for factor, accepted in ((1.0, True), (0.9, False), (1.1, False)):
        marginals = product_mixture(counts, 0.5, factor * exponent)
        columns = zip(samples.T.tolist(), marginals, strict=True)
        verdicts = [oracles.rejects(*each) for each in columns]
        assert not any(verdicts) if accepted else sum(verdicts) > 3


def test_a_thousand_million_records() -> None:
    """Two categories; the law on the counts near the data, where all but 1e-400 of it is."""
    counts, exponent = np.array([400_000_000, 600_000_000]), 2000.0
    moves = sampler(counts, 1.0, exponent).draw(30_000)[:, 0] - counts[0]
    # D = d^2 (1 / (8 a) + 1 / (8 b)) to a relative error of 1e-6 at these distances.
    d = np.arange(-4000, 4001)

    def law(c: float) -> dict[int, float]:
        weight = np.exp(-c * np.abs(d) * math.sqrt(1 / 3.2e9 + 1 / 4.8e9))
        return dict(zip(d.tolist(), (weight / weight.sum()).tolist(), strict=True))

    assert not oracles.rejects(moves.tolist(), law(exponent))
    for factor in (0.9, 1.1):
        assert oracles.rejects(moves.tolist(), law(factor * exponent))


@pytest.mark.slow
def test_a_release_that_ignores_the_data_is_uniform() -> None:
    """Fifty categories, so that each count is `n Beta(1, 49)` up to one record."""
    counts = np.array([10**9] + [0] * 49)
    # So many that the negative control below passes by chance with probability below 1e-6 too.
    samples = sampler(counts, 1.0, 1e-6).draw(6000) / 1e9
    for i in (0, 1, 49):
        assert stats.kstest(samples[:, i], stats.beta(1, 49).cdf).pvalue > oracles.FALSE_ALARM
        assert stats.kstest(samples[:, i], stats.beta(1, 40).cdf).pvalue < oracles.FALSE_ALARM


# Input at the limits.
LIMITS: dict[str, tuple[list[int], float, float]] = {
    "n = 1e12": ([10**12, 0], 1.0, 1e3),
    "n = 1e12, shared": ([10**11] * 10, 1.0, 1e4),
    "n = 1e12, k = 50": ([10**12] + [0] * 49, 1.0, 500.0),
    "tiny prior": ([10**12, 0, 0], 1e-100, 10.0),
    "tiny prior, few records": ([1] * 5 + [0] * 5, 1e-100, 10.0),
    "huge prior": ([5, 0, 1], 1e12, 10.0),
    "huge prior, n = 1e12": ([10**12, 0, 0], 1e12, 1e9),
    "tiny exponent": ([10**6] * 4, 1.0, 2.0**-60),
    "huge exponent": ([10**6, 10**3, 1, 0], 1.0, 1e19),
    "huge exponent, tiny prior": ([10**12, 0, 1], 1e-100, 1e19),
    "one record": ([0, 1], 1.0, 5.0),
    "k = 1000": ([1] * 30 + [0] * 970, 1.0, 200.0),
    "k = 200, n = 6000": ([30] * 200, 1.0, 100.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_input_at_the_limits(name: str) -> None:
    """Draws are counts of the same size, and no proposal has an acceptance above 1."""
    counts, prior, exponent = LIMITS[name]
    state = sampler(counts, prior, exponent)
    drawn = state.draw(3)
    assert np.all(drawn.sum(axis=1) == sum(counts))
    assert np.all(drawn >= 0)
    if "huge exponent" in name:
        assert np.all(drawn == counts)
    terms = np.arange(len(state._slopes)).repeat(20)
    moves, log_density = state._proposals(terms)
    inside = np.all(moves >= -state._counts, axis=1)
    assert np.all(moves.sum(axis=1) == 0)
    log_acceptance = state._log_acceptance(terms[inside], moves[inside], log_density[inside])
    assert np.all(log_acceptance < 0)
    assert np.all(np.isfinite(log_acceptance))


@pytest.mark.parametrize("seed", [*range(30), *slow(range(30, 330))])
def test_no_acceptance_above_one(seed: int) -> None:
    """Random spaces, data, priors and exponents, a term at a time, the rare ones too."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 30))
    n = int(10 ** rng.uniform(0, 12))
    counts = rng.multinomial(n, rng.dirichlet(np.full(k, rng.choice([0.05, 1.0, 20.0]))))
    prior = (
        10 ** rng.uniform(-3, 3, size=k) if seed % 2 else np.full(k, 10 ** rng.uniform(-100, 12))
    )
    state = sampler(counts, prior, 10 ** rng.uniform(-3, 8))
    terms = np.arange(len(state._slopes)).repeat(50)
    moves, log_density = state._proposals(terms)
    inside = np.all(moves >= -counts, axis=1)
    assert np.max(state._log_acceptance(terms[inside], moves[inside], log_density[inside])) < 0


def test_draws_that_need_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches change nothing."""
    counts, prior, exponent = CASES[3]
    monkeypatch.setattr(hellinger_sampler, "_BATCH", (7, 1))
    monkeypatch.setattr(hellinger_sampler, "_LARGEST_BATCH", 7 * len(counts))
    state = sampler(counts, prior, exponent)
    observed = Counter(map(tuple, state.draw(600).tolist()))
    assert not oracles.rejects(observed, oracles.exponential_law(counts, prior, 1 / exponent))
    assert state.draw(0).shape == (0, 4)


def test_draws_of_one_call_share_a_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    init = HellingerSampler.__init__
    monkeypatch.setattr(
        HellingerSampler,
        "__init__",
        lambda self, *arguments: made.append(arguments[-1]) or init(self, *arguments),
    )
    for mechanism in (HellingerExponential(0.1), SmoothHellingerExponential(4.0)):
        made.clear()
        assert mechanism.sample([50, 30, 20], 1.0, draws=500).shape == (500, 3)
        assert len(made) == 1


def test_randomness_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same bytes the same draws: nothing else is random."""

    def draws() -> list[list[int]]:
        stream: Iterator[bytes] = (np.random.default_rng(5).bytes(10**6) for _ in range(10))
        source = bytearray(b"".join(stream))

        def token_bytes(number: int) -> bytes:
            taken = bytes(source[:number])
            del source[:number]
            assert len(taken) == number
            return taken

        monkeypatch.setattr(secrets, "token_bytes", token_bytes)
        return sampler([5, 3, 2], 1.0, 5.0).draw(20).tolist()

    assert draws() == draws()


# Margins, made so large that each shows.
@pytest.mark.parametrize("exponent", [0.1, 2.0, 30.0, 1e3])
def test_terms_have_their_margin(exponent: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of terms exceeds the weight by the margin at every divergence."""
    monkeypatch.setattr(hellinger_sampler, "MARGIN", 10.0)
    assert np.min(excess(exponent, 50.0, exponent)) >= 10 * (1 - 1e-12)


@pytest.mark.parametrize(("counts", "prior", "exponent"), CASES[:6])
def test_an_acceptance_has_a_margin_for_every_bound(counts, prior, exponent, monkeypatch):
    """One of the terms, one of their integers, and one of the table of each category."""
    monkeypatch.setattr(hellinger_sampler, "MARGIN", 10.0)
    outcomes = np.array(oracles.data_sets(sum(counts), len(counts)))
    _, log_acceptance = all_proposals(sampler(counts, prior, exponent), outcomes)
    least = 10.0 * (len(counts) + 2)
    assert -least - 2 < np.max(log_acceptance) <= -least + 1e-9


@pytest.mark.parametrize("k", [2, 3, 200])
def test_gaps_of_blocks_are_lower_ends(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less the error of a gap, and `k` roundings of their sum."""
    counts, prior = np.arange(k) % 7, np.full(k, 0.3)
    plain = HellingerSampler(counts, prior, 0.1)
    near = plain._near
    gaps = gap_above(prior[:, None] + (counts[:, None] + np.minimum(near, 0)), np.abs(near) / 2)
    rounding = k * 2.0**-51
    assert np.all(
        plain._gaps <= gaps * (1 - hellinger_sampler._GAP_MARGIN - rounding) * (1 + 2.0**-52)
    )
    monkeypatch.setattr(hellinger_sampler, "_GAP_MARGIN", 0.05)
    monkeypatch.setattr(
        hellinger_sampler, "gap_above", lambda lower, half: gap_above(lower, half) * 1.05
    )
    assert np.all(HellingerSampler(counts, prior, 0.1)._gaps <= gaps)


@pytest.mark.parametrize("counts", [(10**12, 37, 5), (10**11, 10**11, 3)])
def test_bounds_of_blocks_are_rounded_up(counts: oracles.Counts) -> None:
    """Without a slope it is the largest multiple of the tilt, however that is rounded."""
    state = sampler(counts, 0.7, 50.0)
    for tilt in (0.1, -0.1, 1 / 3, -1e-7, 0.7):
        bounds = state._bounds(0.0, tilt)
        rows = (of.ravel().tolist() for of in (bounds, state._near, state._far))
        for bound, near, far in zip(*rows, strict=True):
            assert Fraction(bound) >= max(
                -Fraction(tilt) * Fraction(near), -Fraction(tilt) * Fraction(far)
            )


@pytest.mark.parametrize("number", [2, 1000, 100_000])
def test_integer_weights_have_room_for_what_is_rounded_up(number: int) -> None:
    """Many weights of nearly nothing are rounded up to 1; the first keeps its share."""
    for rest in (-800.0, -60.0, math.log(1 / 2**44)):
        logs = np.array([0.0] + [rest] * (number - 1))
        weights = hellinger_sampler.integer_weights(logs)
        assert weights.sum() == 2**44
        shared_out = 2**44 - 8 * number
        share = 1 / (1 + (number - 1) * Fraction(math.exp(rest)))
        assert weights[0] >= share * shared_out * (1 - Fraction(1, 2**47))
        assert hellinger_sampler.log_scale(weights) <= math.log(shared_out) + 2.0**-48
