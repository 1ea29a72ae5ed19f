"""Voting rules against their definitions, and the privacy of a published winner."""

from fractions import Fraction
from itertools import combinations

import definitions
import numpy as np
import pytest

import opendp_bayes_smoothed as obs
from tests.helpers import oracles


def ballots(votes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [r for r, n in zip(obs.rankings(3), votes, strict=True) for _ in range(n)]


def test_rules_equal_their_definitions() -> None:
    for votes in np.random.default_rng(0).integers(0, 4, (60, 6)).tolist():
        cast = ballots(tuple(votes))
        points = [sum(2 - r.index(a) for r in cast) for a in range(3)]
        assert obs.borda(3)(tuple(votes)) == points.index(max(points))
        score = [0.0] * 3
        for a, b in combinations(range(3), 2):
            margin = sum(1 if r.index(a) < r.index(b) else -1 for r in cast)
            score[a] += 1 if margin > 0 else 0.5 * (margin == 0)
            score[b] += 1 if margin < 0 else 0.5 * (margin == 0)
        assert obs.copeland(3)(tuple(votes)) == score.index(max(score))
    with pytest.raises(ValueError, match=r"alternatives=9: .*from 2 to 6"):
        obs.rankings(9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_winner_of_a_sample_equals_the_definition(k: int) -> None:
    size, samples = 5, 3
    law = obs.of_a_sample(obs.plurality, k, size, Fraction(samples, size))

    def exact(counts: tuple[int, ...]) -> definitions.Law:
        return definitions.pushed(
            definitions.sampled(counts, samples, "without"),
            lambda h: {obs.plurality(h): Fraction(1)},
        )

    for counts in oracles.data_sets(size, k):
        for epsilon in (0.0, 0.4):
            truth = definitions.profile(exact, counts, epsilon)
            found = Fraction(obs.anonymous_profile(law, counts, epsilon))
            assert truth <= found <= truth * Fraction(1 + 1e-9) + Fraction(1e-9)


def test_a_winner_tells_less_than_the_counts() -> None:
    """Proposition 4 on a voting rule; and a rule that names a voter's vote tells more."""
    corners = [[0.5, 0.5], [0.7, 0.3]]
    law = obs.of_a_sample(obs.plurality, 2, 15, 0.8)
    winner = obs.anonymous_delta(law, corners, 15, 0.5)
    assert 0 < winner < 0.5 * obs.smoothed_delta(corners, 15, 0.8, 0.5)
    with pytest.raises(ValueError, match="has more than 1048576 histograms"):
        obs.of_a_sample(obs.plurality, 6, 200, 0.9)
