"""The Hellinger distance against ball arithmetic, from one record to a billion."""

import math
from fractions import Fraction

import numpy as np
import pytest

from opendp_bayes.mathematics.exponential.hellinger import (
    _STIRLING_GAPS,
    GAP_RELATIVE_ERROR,
    distance_from_divergence,
    gap_above,
)
from opendp_bayes.mathematics.rounding import lower_end, upper_end
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms import hellinger_distance
from tests.helpers import oracles
from tests.helpers.sweeps import slow

RELATIVE_ERROR = 1e-13
#: Of unequal totals no privacy map needs a bound. That of a divergence is relative to the gaps of
#: all categories, which the gap of the totals is subtracted from.
OF_GAPS = 2 * GAP_RELATIVE_ERROR


def random_pair(rng: np.random.Generator, largest_k: int) -> tuple[Floats, Floats]:
    """Balanced, skewed or one-category data and a change of one record or more."""
    k = int(np.exp(rng.uniform(np.log(2), np.log(largest_k + 0.5))))
    size = max(1, int(10 ** rng.uniform(0, 9)))
    prior = 10 ** rng.uniform(-3, 3, size=1 if rng.random() < 0.5 else k) * np.ones(k)
    shape = rng.integers(3)
    if shape == 0:
        counts = rng.multinomial(size, np.full(k, 1 / k))
    elif shape == 1:
        counts = rng.multinomial(size, rng.dirichlet(np.full(k, 0.1) + 1e-3))
    else:
        counts = size * np.eye(k, dtype=np.int64)[rng.integers(k)]
    other = counts.copy()
    for _ in range(rng.integers(1, 4)):
        i, j = rng.choice(k, size=2, replace=False)
        moved = min(
            int(other[i]), int([1, rng.integers(1, 10), rng.integers(1, size + 1)][rng.integers(3)])
        )
        other[i], other[j] = other[i] - moved, other[j] + moved
    return prior + counts, prior + other


def check_pairs(number: int, largest_k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    distinct = 0
    for _ in range(number):
        a, b = random_pair(rng, largest_k)
        value, truth = float(hellinger_distance(a, b)), oracles.hellinger(a, b)
        if np.array_equal(a, b):
            assert value == 0
            continue
        distinct += 1
        assert oracles.relative_error(value, truth) <= RELATIVE_ERROR, (a, b)
        assert (
            oracles.real(upper_end(value, RELATIVE_ERROR))
            >= truth
            >= oracles.real(lower_end(value, RELATIVE_ERROR))
        )
    assert distinct > number / 2


@pytest.mark.parametrize(
    ("number", "largest_k", "seed"), [(500, 60, 1), *slow([(10_000, 1000, 2)])]
)
def test_random_pairs(number: int, largest_k: int, seed: int) -> None:
    check_pairs(number, largest_k=largest_k, seed=seed)


EDGES = [
    ([2, 1], [1, 2]),
    ([1.5, 1e9], [2.5, 1e9 - 1]),
    ([5e8 + 1, 5e8 + 1], [5e8 + 2, 5e8]),
    ([1e-3, 1e9 + 1e-3], [1e9 + 1e-3, 1e-3]),
    ([1e-3, 1.001], [1.001, 1e-3]),
    ([1e-100, 1 + 1e-100], [1 + 1e-100, 1e-100]),
    ([1000.0] * 1000, [999.0, 1001.0] + [1000.0] * 998),
    ([19.5, 20.5], [20.5, 19.5]),
    ([20.0, 21.0], [21.0, 20.0]),
    ([np.nextafter(20, 0), 1e5], [1e5, np.nextafter(20, 0)]),
    ([1e12, 1e12], [1e12 + 1, 1e12 - 1]),
]


@pytest.mark.parametrize(("a", "b"), EDGES)
def test_edges(a: list[float], b: list[float]) -> None:
    assert (
        oracles.relative_error(float(hellinger_distance(a, b)), oracles.hellinger(a, b))
        <= RELATIVE_ERROR
    )


def test_three_log_gammas_would_not_do() -> None:
    """Negative control: the textbook formula in floats fails at n = 10 000 already."""
    from scipy.special import gammaln

    a, b = np.array([5001.0, 5001.0]), np.array([5002.0, 5000.0])
    naive = np.sqrt(-np.expm1(np.sum(gammaln((a + b) / 2) - gammaln(a) / 2 - gammaln(b) / 2)))
    assert oracles.relative_error(float(naive), oracles.hellinger(a, b)) > 1000 * RELATIVE_ERROR


def gap_of(a: Floats, b: Floats) -> Floats:
    return gap_above(np.minimum(a, b), np.abs(b - a) / 2)


def test_gap_is_within_its_bound() -> None:
    rng = np.random.default_rng(3)
    a = 10 ** rng.uniform(-3, 9, size=4000)
    far = 10 ** rng.uniform(-3, 9, size=1000)
    near = a[1000:2000] * (1 + 10 ** rng.uniform(-6, 0, size=1000))
    step = a[2000:3000] + 1
    b = np.concatenate([far, near, step, a[3000:] + rng.integers(1, 1000, size=1000)])
    for x, y, value in zip(a, b, gap_of(a, b), strict=True):
        assert oracles.relative_error(float(value), oracles.gap(x, y)) <= GAP_RELATIVE_ERROR, (x, y)


def test_distances_at_the_ends_enclose_the_gap() -> None:
    rng = np.random.default_rng(4)
    a = 10 ** rng.uniform(-3, 9, size=500)
    b = a + 10 ** rng.uniform(-3, 3, size=500)
    for x, y, value in zip(a, b, gap_of(a, b), strict=True):
        truth = oracles.gap(x, y)
        assert (
            oracles.real(upper_end(float(value), GAP_RELATIVE_ERROR))
            >= truth
            >= oracles.real(lower_end(float(value), GAP_RELATIVE_ERROR))
        )
    assert distance_from_divergence([0.0, 800.0, np.inf]).tolist() == [0.0, 1.0, 1.0]
    assert float(distance_from_divergence(1e-30)) == pytest.approx(1e-15, rel=1e-15)


def random_pair_of_unequal_totals(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Unrelated, with added records, or nearly proportional, where categories cancel."""
    k = int(rng.integers(2, 9))
    a = 10 ** rng.uniform(-3, rng.uniform(-1, 7), size=k)
    kind = rng.integers(4)
    if kind == 0:
        return a, 10 ** rng.uniform(-3, 6, size=k)
    if kind == 1:
        return a, a + rng.integers(0, 3, size=k) + np.eye(k)[0]
    if kind == 2:
        return a, a + np.floor(10 ** rng.uniform(0, 6, size=k))
    return a, a * (1 + 10 ** rng.uniform(-4, 1)) * (1 + 10 ** rng.uniform(-8, -1) * rng.random(k))


def check_unequal_totals(a: Floats, b: Floats) -> None:
    truth = oracles.hellinger(a, b)
    error = OF_GAPS * float(gap_of(a, b).sum())
    near = float(truth)
    within = 1e-13 * near + min(math.sqrt(error), error / near)
    for first, second in ((a, b), (b, a)):
        found = float(hellinger_distance(first, second))
        assert oracles.relative_error(found, truth) * near <= within, (first, second)


@pytest.mark.parametrize(("number", "seed"), [(250, 5), *slow([(10_000, 6)])])
def test_unequal_totals(number: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        check_unequal_totals(*random_pair_of_unequal_totals(rng))


@pytest.mark.parametrize("factor", [1 + 1e-6, 1.001, 2.0, 1e3])
def test_proportional_concentrations(factor: float) -> None:
    """Leading parts of the gaps cancel between categories and total, here 1e6."""
    a = np.array([1e6, 2e6, 3e6])
    check_unequal_totals(a, factor * a)
    assert float(hellinger_distance(a, factor * a)) == pytest.approx(
        float(oracles.hellinger(a, factor * a)), rel=1e-6
    )


def test_it_is_a_metric_of_rows_of_any_totals() -> None:
    a = np.array([[3.0, 4.0], [3.0, 4.0]])
    b = np.array([[4.0, 3.0], [4.0, 4.0]])
    assert hellinger_distance(a, b).tolist() == [
        float(hellinger_distance(a[0], b[0])),
        float(hellinger_distance(a[1], b[1])),
    ]
    a = np.arange(1.0, 25.0).reshape(4, 1, 2, 3)
    b = np.arange(2.0, 20.0).reshape(3, 2, 3)
    result = hellinger_distance(a, b)
    assert result.shape == (4, 3, 2)
    for index in np.ndindex(4, 3, 2):
        one = hellinger_distance(a[index[0], 0, index[2]], b[index[1], index[2]])
        assert one.shape == ()
        assert float(one) == float(result[index])
    rng = np.random.default_rng(6)
    points = [0.3 + rng.multinomial(50, rng.dirichlet(np.ones(4)), size=300) for _ in range(3)]
    ab, bc, ac = (hellinger_distance(points[i], points[j]) for i, j in ((0, 1), (1, 2), (0, 2)))
    assert np.array_equal(ab, hellinger_distance(points[1], points[0]))
    assert np.all(ac <= (ab + bc) * (1 + 1e-13))
    assert np.all((ab >= 0) & (ab <= 1))
    assert np.all(hellinger_distance(points[0], points[0]) == 0)
    a, b = np.array([1.5, 2.5, 7.0]), np.array([2.5, 7.5, 1.0])
    assert float(hellinger_distance(a, b)) == pytest.approx(
        float(hellinger_distance(a[::-1], b[::-1])), rel=1e-15
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [([1, 2], [1, 2, 3]), (1.0, [1.0, 2.0]), ([1.0, 2.0], 1.0), ([[1], [2]], [[1, 2], [3, 4]])],
)
def test_refuses_different_numbers_of_categories(a: object, b: object) -> None:
    with pytest.raises(ValueError, match=r"a, b: .*last axes .*same length"):
        hellinger_distance(a, b)


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-101, 1e14, np.nan, np.inf])
def test_refuses_concentrations(bad: float) -> None:
    with pytest.raises(ValueError, match=r"^a: every concentration .*from 1e-100 to 1e\+13"):
        hellinger_distance([1.0, bad], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"^b: every concentration .*from 1e-100 to 1e\+13"):
        hellinger_distance([1.0, 1.0], [1.0, bad])


def test_the_oracle_agrees_with_the_integral_and_with_the_series() -> None:
    """The oracle itself, for once against the definition `H^2 = (1/2) ∫ (sqrt(p) - sqrt(q))^2`.
    With `a, b = m (1 -+ u)`, `w = u^2`: gaps of `z^-p` are polynomials in w, by formula.
    """
    from scipy import integrate, stats

    p, q = stats.beta(4.5, 2.0), stats.beta(2.5, 4.0)
    square, _ = integrate.quad(
        lambda t: (p.pdf(t) ** 0.5 - q.pdf(t) ** 0.5) ** 2 / 2, 0, 1, epsabs=1e-13
    )
    assert float(oracles.hellinger([Fraction(9, 2), 2], [2.5, 4.0])) == pytest.approx(
        square**0.5, rel=1e-9
    )
    bernoulli = {2: (1, 6), 4: (-1, 30), 6: (1, 42), 8: (-1, 30), 10: (5, 66)}
    for (coefficient, polynomial), (n, (over, under)) in zip(
        _STIRLING_GAPS, bernoulli.items(), strict=True
    ):
        p = n - 1
        assert coefficient == pytest.approx(over / under / (p * n), rel=1e-15)
        assert polynomial == tuple(
            math.comb(p, 2 * j) - (-1) ** j * math.comb(p, j) for j in range(1, p + 1)
        )
