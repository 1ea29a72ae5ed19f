"""Pairs of data sets up to the symmetries of the prior: each is there, with its laws."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from opendp_bayes.accounting import losses, pairs as pairs_module
from opendp_bayes.accounting.divergences import extremes
from opendp_bayes.accounting.exponential import enumeration
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import oracles

PRIORS = [(1.0,) * 3, (0.3, 2.0, 0.3), (0.3, 2.0, 0.7), (0.5,) * 4, (0.5, 3.0, 3.0, 0.5)]


def pairs_of(
    mechanism: Any, size: int, prior: tuple[float, ...], distance: int
) -> enumeration.EnumeratedPairs:
    pairs = pairs_module.pairs_of(Setting.of(mechanism, size, prior), Distance.of(distance), 10**12)
    assert isinstance(pairs, enumeration.EnumeratedPairs)
    return pairs


def listed(pairs: enumeration.EnumeratedPairs) -> set[tuple[oracles.Counts, oracles.Counts]]:
    return {
        (tuple(first), tuple(second))
        for block in pairs.blocks()
        for first, second in zip(block.first.tolist(), block.second.tolist(), strict=True)
    }


def orbit(pair, prior):
    """A pair, and it reversed, under the permutations of categories that keep the prior."""
    images = set()
    for places in permutations(range(len(prior))):
        if all(prior[a] == prior[b] for a, b in enumerate(places)):
            first, second = (tuple(counts[place] for place in places) for counts in pair)
            images |= {(first, second), (second, first)}
    return images


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("size", "distance"), [(1, 1), (4, 1), (4, 2), (3, 3)])
def test_every_orbit_of_pairs(prior: tuple[float, ...], size: int, distance: int) -> None:
    sets, away = oracles.data_sets(size, len(prior)), oracles.distances(size, len(prior))
    everything = {(sets[i], sets[j]) for i, j in zip(*np.nonzero(away == distance), strict=True)}
    found = listed(pairs_of(HellingerExponential(1.0), size, prior, distance))
    assert found <= everything
    assert set().union(*(orbit(pair, prior) for pair in found)) == everything
    if len(set(prior)) < len(prior) and size > 1:
        assert len(found) < len(everything) / 2


@pytest.mark.parametrize("prior", PRIORS)
def test_losses_are_those_of_all_pairs(prior: tuple[float, ...]) -> None:
    mechanism, size = SmoothHellingerExponential(0.6, gamma=0.3), 5
    _, log_p = oracles.log_laws(mechanism, size, prior)
    away = oracles.distances(size, len(prior))
    for distance in (1, 2, 5):
        pairs = pairs_of(mechanism, size, prior, distance)
        ends = [extremes(block) for block in pairs.blocks()]
        exactly = (away == distance).astype(np.int64)
        epsilon = oracles.over_pairs(log_p, exactly, 1, oracles.epsilon_between)
        spread = oracles.over_pairs(log_p, exactly, 1, oracles.range_between)
        most = max(max(high.max(), -low.min()) for low, high in ends)
        assert abs(most - epsilon) <= 2 * pairs.log_error
        assert abs(max((high - low).max() for low, high in ends) - spread) <= 4 * pairs.log_error


def test_notices_a_symmetry_and_does_not_underestimate_work() -> None:
    """Negative control: the pairs of an equal prior miss orbits of one that differs. Few data
    sets are fixed by an exchange, so arrangements are many.
    """
    found = listed(pairs_of(HellingerExponential(1.0), 4, (1.0, 1.0, 1.0), 1))
    everything = listed(pairs_of(HellingerExponential(1.0), 4, (0.3, 2.0, 0.7), 1))
    covered = set().union(*(orbit(pair, (0.3, 2.0, 0.7)) for pair in found))
    assert not everything <= covered
    for size, prior in ((6, (1.0,) * 6), (8, (1.0,) * 5)):
        compared = sum(
            block.log_p.size
            for block in pairs_of(HellingerExponential(1.0), size, prior, 1).blocks()
        )
        assert compared <= 1.1 * enumeration.work(size, prior, 1)


@pytest.mark.parametrize("prior", [*PRIORS, (1.0,) * 5, (1.0, 2.0, 1.0, 2.0, 2.0)])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_number_of_arrangements(prior: tuple[float, ...], size: int) -> None:
    sets = np.array(oracles.data_sets(size, len(prior)))
    assert enumeration._arrangements(size, prior) == len(
        np.unique(enumeration.arranged(sets, prior), axis=0)
    )


@pytest.mark.parametrize(
    "mechanism",
    [
        HellingerExponential(0.3),
        HellingerExponential(0.35, "local"),
        SmoothHellingerExponential(0.4, gamma=0.3),
        PermuteAndFlip(0.09),
    ],
)
def test_losses_are_the_largest_of_all_blocks(mechanism, monkeypatch):
    """However small these are."""
    setting = Setting.of(mechanism, 7, (0.3, 2.0, 0.7))
    examine = losses._examine.__wrapped__
    whole = examine(setting, 1, True)
    monkeypatch.setattr(enumeration, "_BATCH", 1)
    assert len(list(pairs_of(mechanism, 7, (0.3, 2.0, 0.7), 1).blocks())) > 30
    loss, worst = examine(setting, 1, True)
    for part in ("epsilon", "rho", "range"):
        assert getattr(loss, part) == pytest.approx(getattr(whole[0], part), rel=1e-9)
    assert worst.epsilon == pytest.approx(whole[1].epsilon, rel=1e-12)
