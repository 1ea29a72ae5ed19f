"""Laws of counts in cells."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.laws.count_laws import CountLaws


def laws():
    """A geometric law in cells of growing length, and a law on one number."""
    first = np.array([0, 1, 2, 4, 7, 10, 14, 19, 25, 31, 38, 46, 53])
    last = np.append(first[1:] - 1, 59)
    cells = Cells(np.repeat([0, 1], [13, 1]), np.append(first, 5), np.append(last, 5))
    pmf = np.where(cells.category[:, None] == 0, 0.9**cells.nodes, 1.0)
    masses = pmf * cells.node_weights
    masses[:13] /= masses[:13].sum()
    masses[13] /= masses[13].sum()
    return CountLaws(cells, masses)


def right():
    p = 0.9 ** np.arange(60)
    return p / p.sum()


def test_moments_and_cumulative_probabilities():
    found, p = laws(), right()
    counts = np.arange(60)
    mean = p @ counts
    assert found.mean() == pytest.approx([mean, 5], abs=2e-3)
    assert found.std() == pytest.approx([np.sqrt(p @ (counts - mean) ** 2), 0], abs=5e-3)
    at = np.arange(-2, 63)
    cdf = found.cdf(at[:, None])
    assert cdf[2:62, 0] == pytest.approx(np.cumsum(p), abs=1e-3)
    assert cdf[:2].tolist() == [[0, 0], [0, 0]]
    assert cdf[-1] == pytest.approx([1, 1])
    assert cdf[:, 1] == pytest.approx((at >= 5) * 1.0)
    assert found.pmf(counts[:, None])[:, 0] == pytest.approx(p, abs=1e-3)


def test_quantiles_invert():
    found = laws()
    for level in (1e-6, 0.05, 0.1, 0.5, 0.9, 0.999, 1.0):
        count = found.quantile(level)
        assert np.all(found.cdf(count) >= level - 1e-12)
        assert np.all(found.cdf(count - 1) < level)


def test_draws_follow_their_law():
    found, rng = laws(), np.random.default_rng(0)
    drawn = found.draw(np.zeros(1, dtype=np.int64), 20_000, rng)[0]
    p = found.pmf(np.arange(60)[:, None])[:, 0]
    table = np.bincount(drawn, minlength=60)
    assert (
        stats.chisquare(table[:40], 20_000 * p[:40] * table[:40].sum() / (20_000 * p[:40].sum()))[1]
        > 1e-4
    )  # false alarms: 1 in 10 000


def test_laws_apart_and_joined():
    found = laws()
    one, other = found.chosen(np.array([0])), found.chosen(np.array([1]))
    assert CountLaws.joined([one, other]).mean() == pytest.approx(found.mean())


def test_many_laws_at_once_are_each_alone():
    """Quantiles and cumulative probabilities of laws of other places and lengths."""
    rng = np.random.default_rng(4)
    rows = np.column_stack(
        [
            rng.poisson(3, 400),
            10**9 + rng.poisson(50, 400),
            rng.integers(0, 2, 400),
            np.full(400, 7),
        ]
    )
    laws = CountLaws.of_rows(rows, np.full(400, 1 / 400))
    levels = np.array([[0.0], [0.025], [0.5], [0.975], [1.0]])
    values = np.array([[-1.0], [0.0], [3.5], [7.0], [1e9 + 48], [1e12]])
    for law in range(4):
        alone = laws.chosen(np.array([law]))
        assert np.array_equal(laws.quantile(levels)[:, law], alone.quantile(levels)[:, 0])
        assert laws.cdf(values)[:, law] == pytest.approx(alone.cdf(values)[:, 0], abs=1e-12)
        share = (rows[:, law] <= values).mean(axis=1)
        assert laws.cdf(values)[:, law] == pytest.approx(share, abs=1e-12)
