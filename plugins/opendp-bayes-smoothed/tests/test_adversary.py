"""The adversary's utility by its definition, and Lemmas 1, 2 and 10 as numbers on both sides."""

import math
from fractions import Fraction

import definitions
import numpy as np
import pytest

from opendp_bayes_smoothed import (
    adjusted_utility,
    database_profile,
    database_utility,
    divergence,
    elections,
    threshold_of,
)
from tests.helpers import oracles

EPSILONS = (0.0, 0.2, 1.0)


def laws_of(counts: tuple[int, ...], samples: int) -> np.ndarray:
    """Rows: the missing record, in addition to `counts`, is of each category."""
    outcomes = oracles.data_sets(samples, len(counts))
    rows = [tuple(x + (i == j) for j, x in enumerate(counts)) for i in range(len(counts))]
    return np.array(
        [
            [float(definitions.sampled(row, samples, "without")[outcome]) for outcome in outcomes]
            for row in rows
        ]
    )


def test_coin_flipping() -> None:
    """The paper's example: the record comes out with probability p, the other value otherwise."""
    for threshold in (0.5, 0.7, 0.9):
        assert adjusted_utility([[1, 0], [0, 1]], threshold) == 1
        assert adjusted_utility([[0.5, 0.5], [0.5, 0.5]], threshold) == 0
    assert adjusted_utility([[0.8, 0.2], [0.2, 0.8]], 0.6) == pytest.approx(0.2 / 0.4)


def test_utility_of_two_categories_equals_the_definition() -> None:
    for size, samples in [(6, 3), (9, 7), (5, 5), (7, 1)]:
        for m in range(size + 1):
            for epsilon in EPSILONS:
                known = [tuple(x) for x in ((m - 1, size - m), (m, size - m - 1)) if min(x) >= 0]
                truth = max(
                    adjusted_utility(laws_of(rest, samples), threshold_of(epsilon))
                    for rest in known
                )
                found = database_utility([m, size - m], Fraction(samples, size), epsilon)
                assert found == pytest.approx(truth, rel=1e-9, abs=1e-13)


def test_lemma_2_and_10_for_two_categories() -> None:
    """`(d + d') / 2 <= u <= max(d + d'/(e^ε + 1), d' + d/(e^ε + 1)) <= d + d'`: sharper than the
    paper's u < d + d' <= 3 u on both sides.
    """
    rng = np.random.default_rng(0)
    pairs = [rng.dirichlet([0.5] * 6, 2) for _ in range(300)] + [
        laws_of((m, 7 - m), 5) for m in range(8)
    ]
    tight = 0.0
    for p, q in pairs:
        for epsilon in EPSILONS:
            d, back = divergence(p, q, epsilon), divergence(q, p, epsilon)
            u = adjusted_utility([p, q], threshold_of(epsilon))
            upper = max(d + back / (math.exp(epsilon) + 1), back + d / (math.exp(epsilon) + 1))
            assert (d + back) / 2 <= u + 1e-12
            assert u <= upper + 1e-12
            assert upper <= d + back + 1e-15
            tight = max(tight, (d + back) / max(u, 1e-300) if u else 0)
    assert 1.9 < tight <= 2 + 1e-9, "the factor 2 is attained, the paper's 3 is not"


def test_lemma_2_is_not_strict() -> None:
    """One record of the second category, ε = 3: every likelihood ratio that counts is 0, and u = d
    + d' = T/n.
    """
    samples, size, epsilon = 2, 4, 3.0
    laws = laws_of((3, 0), samples)
    total = divergence(laws[0], laws[1], epsilon) + divergence(laws[1], laws[0], epsilon)
    assert adjusted_utility(laws, threshold_of(epsilon)) == pytest.approx(total)
    assert total == pytest.approx(samples / size)
    same = [[0.5, 0.5], [0.5, 0.5]]
    assert adjusted_utility(same, 0.6) == divergence(*same, 0.1) == 0


def test_lemma_2_fails_for_three_categories() -> None:
    """The utility depends on the records that x and x' share, not on the two themselves: a third
    value that shows counts, and d(x, x') does not see it.
    """
    laws = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert divergence(laws[0], laws[1], 0.5) + divergence(laws[1], laws[0], 0.5) == 0
    assert adjusted_utility(laws, threshold_of(0.5)) == 1


@pytest.mark.parametrize("k", [2, 3, pytest.param(4, marks=pytest.mark.slow), 6])
def test_lemma_1_and_corollary_3(k: int) -> None:
    """`u <= (1 + (m - 1) / (e^ε + 1)) δ(x)` is proved for every x that completes the known records;
    the papers' 2 δ held in every case tried too.
    """
    rng = np.random.default_rng(k)
    cases = [rng.dirichlet([alpha] * 7, k) for alpha in (0.1, 0.5, 2.0) for _ in range(60)] + [
        laws_of((2, *([1] * (k - 1))), 3)
    ]
    for laws in cases:
        for epsilon in EPSILONS:
            u = adjusted_utility(laws, threshold_of(epsilon))
            for x in range(k):
                delta = max(
                    max(
                        divergence(laws[x], laws[y], epsilon), divergence(laws[y], laws[x], epsilon)
                    )
                    for y in range(k)
                    if y != x
                )
                assert u <= (1 + (k - 1) / (math.exp(epsilon) + 1)) * delta + 1e-12
                assert u <= 2 * delta + 1e-12
    # Negative control: a record that always shows has u = δ = 1, so no constant below 1 would do.
    assert adjusted_utility(np.eye(k), 0.6) == divergence(*np.eye(k)[:2], math.log(1.5)) == 1


def test_elections_have_both_sides() -> None:
    """Figure 1: the utility is below δ(x) by a little, and above half of it."""
    epsilon = math.log(0.51 / 0.49)
    assert threshold_of(epsilon) == pytest.approx(0.51)
    for row in elections()[::5]:
        counts = [row["democrat_votes"], row["republican_votes"]]
        delta, utility = (
            database_profile(counts, 0.998, epsilon),
            database_utility(counts, 0.998, epsilon),
        )
        assert delta / 2 <= utility <= 1.5 * delta


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: adjusted_utility([[0.5, 0.5], [0.5, 0.5]], 1.0),
            r"threshold=1.0: .*between 0 and 1",
        ),
        (lambda: adjusted_utility([[0.5, 0.5]], 0.5), r"laws: have shape \(1, 2\)"),
        (lambda: adjusted_utility([[0.5, 0.6], [0.5, 0.5]], 0.5), "laws: have shape"),
        (lambda: divergence([0.5, 0.5], [0.5, 0.4], 0.5), "laws: have shape"),
        (
            lambda: database_utility([1, 2, 3], 0.5, 0.5),
            r"counts: has shape \(3,\).* 2 entries",
        ),
        (lambda: threshold_of(-1.0), "epsilon=-1.0: must be at least 0"),
    ],
)
def test_bad_arguments(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
