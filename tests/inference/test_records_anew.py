"""Records drawn anew, against sums over all counts of two groups."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.pooling.records_anew import records_anew
from tests.helpers import oracles

CHAINS, SIZE, SCALE = 20_000, 6, 1.5
A, DRAWN = np.array([0.6, 1.7]), np.array([[3, -1], [0, 2]])


def log_noise(counts, groups):
    return -np.abs(DRAWN[groups] - counts).sum(axis=-1) / SCALE


def states(each):
    """All counts of two groups of two categories, of 2 and 4 records if `each` is public."""
    every = [
        np.reshape(cells, (2, 2))
        for cells in itertools.product(range(SIZE + 1), repeat=4)
        if sum(cells) == SIZE and (not each or cells[0] + cells[1] == 2)
    ]
    return np.array(every)


def law(counts, a):
    """Their probabilities given the noise, every number of records as probable as any other."""
    n, kappa = counts.sum(axis=2), a.sum()
    each = special.gammaln(counts + a) - special.gammaln(a) - special.gammaln(counts + 1.0)
    all_of = special.gammaln(n + 1.0) - special.gammaln(n + kappa)
    log_weight = each.sum(axis=(1, 2)) + all_of.sum(axis=1)
    return special.softmax(log_weight + log_noise(counts, np.arange(2)).sum(axis=1))


def share_of(counts, known):
    """How many chains are at each of the known counts."""
    place = {one.tobytes(): i for i, one in enumerate(known)}
    return np.bincount([place[one.tobytes()] for one in counts], minlength=len(known))


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("fewest", [1.0, 3.0, 40.0])
def test_leaves_the_posterior_as_it_is(each, fewest):
    rng, known = np.random.default_rng(1), states(each)
    probability = law(known, A)
    before = known[rng.choice(len(known), CHAINS, p=probability)]

    def after(a):
        concentration = np.broadcast_to(a, (CHAINS, 2))
        return records_anew(before, concentration, log_noise, rng, fewest=fewest, each=each)

    def p_value(counts):
        found, often = share_of(counts, known), probability * CHAINS >= 5
        found = np.append(found[often], found[~often].sum())
        wanted = np.append(probability[often], probability[~often].sum()) * CHAINS
        return stats.chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue

    moved = after(A)
    assert p_value(moved) > oracles.FALSE_ALARM
    assert np.mean(np.any(moved != before, axis=(1, 2))) > 0.1
    # Negative control: records drawn for another concentration.
    assert p_value(after(A + 1.0)) < oracles.FALSE_ALARM


def test_reaches_every_count():
    """From one of them, however improbable, and the sums stay."""
    rng, known = np.random.default_rng(2), states(each=False)
    counts = np.broadcast_to(known[0], (4000, 2, 2)).copy()
    a = np.broadcast_to(A, (4000, 2))
    for _ in range(30):
        counts = records_anew(counts, a, log_noise, rng, fewest=1.0, each=False)
    assert np.all(counts.sum(axis=(1, 2)) == SIZE)
    found = share_of(counts, known) / 4000
    assert np.abs(found - law(known, A)).sum() / 2 < 0.1


@pytest.mark.parametrize("groups", [1, 3])
def test_a_group_without_another_waits(groups):
    """One of three each time, and in turn all."""
    rng, a = np.random.default_rng(3), np.full((1, 2), 1.0)
    counts = start = np.full((1, groups, 2), 5)
    stayed = set()
    for _ in range(30):
        last = counts
        counts = records_anew(
            last, a, lambda x, _: np.zeros(x.shape[:-1]), rng, fewest=40.0, each=False
        )
        stayed |= set(np.flatnonzero(np.all(counts == last, axis=2)[0]).tolist())
    assert stayed == set(range(groups))
    assert counts.sum() == start.sum()
    assert np.any(counts != start) == (groups > 1)


def test_minute_concentrations_leave_one_category():
    start, a = np.full((50, 2, 3), 4), np.full((50, 3), 1e-300)
    found = records_anew(
        start,
        a,
        lambda x, _: -np.abs(x - 12).sum(axis=-1),
        np.random.default_rng(4),
        fewest=40.0,
        each=True,
    )
    moved = np.any(found != start, axis=2)
    assert moved.any()
    assert np.all(np.sort(found[moved]) == [0, 0, 12])
