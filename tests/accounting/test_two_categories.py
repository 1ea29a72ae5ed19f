"""Windows and tables of two categories against ball arithmetic and plain enumeration."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes import exact_loss
from opendp_bayes.accounting import pairs as pairs_module
from opendp_bayes.accounting.divergences import extremes, hockey_stick
from opendp_bayes.accounting.exponential import two_categories
from opendp_bayes.accounting.exponential.two_categories import TABLE_ERROR, TwoCategoryPairs, window
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import oracles
from tests.helpers.sweeps import slow

PRIORS = [(1.0, 1.0), (0.01, 0.01), (0.3, 7.0)]


def pairs_of(mechanism, size, prior, distance=1):
    pairs = pairs_module.pairs_of(Setting.of(mechanism, size, prior), Distance.of(distance), 10**12)
    assert isinstance(pairs, TwoCategoryPairs)
    return pairs


def truth(size: int, prior: tuple[float, float], t: int, other: int) -> oracles.arb:
    return oracles.hellinger(
        oracles.posterior((t, size - t), prior), oracles.posterior((other, size - other), prior)
    )


def worst_table_error(size, prior, first, number, rng, change=0.0):
    """Of 25 entries of one block, relative; `change` spoils the table."""
    reach = min(window(size, prior) + 1, size)
    t = np.arange(first, first + number)
    table = two_categories._distances(prior, size, t, np.arange(-reach, reach + 1)[:, None]) * (
        1 + change
    )
    worst = 0.0
    for offset in [-1, 1, 2, *rng.integers(-reach, reach + 1, size=22)]:
        column = int(rng.integers(number))
        there = int(t[column] + offset)
        value = float(table[offset + reach, column])
        if not 0 <= there <= size:
            assert value == math.inf
        elif offset == 0:
            assert value == 0.0
        else:
            worst = max(
                worst, oracles.relative_error(value, truth(size, prior, int(t[column]), there))
            )
    return worst


#: Every size and every prior once.
ONCE = list(zip([40, 3000, 20_000], PRIORS, strict=True))


@pytest.mark.parametrize(("size", "prior"), slow(product([40, 3000, 20_000], PRIORS), but=ONCE))
def test_tables(size: int, prior: tuple[float, float]) -> None:
    """Blocks at both ends and between."""
    rng = np.random.default_rng(size)
    columns = min(max((1 << 19) // (2 * window(size, prior) + 3), 16), size // 4)
    for first in [0, columns, size // 3, size // 2, 2 * size // 3, size - columns + 1]:
        assert worst_table_error(size, prior, first, columns, rng) <= TABLE_ERROR


def test_blocks_and_windows_where_no_data_set_is_next() -> None:
    """Roundings of the sums from one data set to the next add up along a block."""
    size, prior, rng = 960, (1.0, 1.0), np.random.default_rng(960)
    columns = two_categories._ENTRIES // (2 * window(size, prior) + 3)
    assert 940 < columns < size
    for first in [0, size - columns]:
        assert worst_table_error(size, prior, first, columns, rng) <= TABLE_ERROR
    rng = np.random.default_rng(1)
    assert worst_table_error(20_000, (1.0, 1.0), 10_000, 100, rng, change=2e-13) > TABLE_ERROR
    assert window(1, (1e-20, 1e-20)) == 0
    assert window(1, (1.0, 1.0)) == 1


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("size", [1, 30, 200, 3000, 20_000])
def test_window(size: int, prior: tuple[float, float]) -> None:
    """Outside distances are one to within `2^-57`; one offset less would not do."""
    reach = window(size, prior)
    if reach == size:
        return
    starts = {0, 1, size - reach - 1, (size - reach) // 2}
    starts |= {*np.random.default_rng(2).integers(0, size - reach, size=12).tolist()}
    for t in starts:
        assert 1 - truth(size, prior, t, t + reach + 1) < 2.0**-57
    assert min(float(1 - truth(size, prior, t, t + reach // 2)) for t in starts) < 1e-3
    assert max(1 - truth(size, prior, t, t + reach // 2) for t in starts) > 2.0**-57
    assert (
        two_categories._least_divergence(size, prior, reach)
        < 40
        <= two_categories._least_divergence(size, prior, reach + 1)
    )


def errors_of_laws(pairs: TwoCategoryPairs, mechanism: Any) -> tuple[float, float]:
    """Of log-probabilities against plain enumeration, and of their total against one."""
    rng = np.random.default_rng(3)
    worst, total = 0.0, 0.0
    for block in pairs.blocks():
        # The last is the far outcomes together; the others are within reach of both data sets.
        rows = block.log_p.shape[0] - 1
        reach = (rows - 1 + pairs.distance) // 2
        for column in rng.integers(0, block.first.shape[0], size=2):
            for counts, log_p in (
                (block.first[column], block.log_p[:, column]),
                (block.second[column], block.log_q[:, column]),
            ):
                _, plain = mechanism.log_pmf(counts, pairs.prior)
                outcomes = block.second[column, 0] - reach + np.arange(rows)
                inside = (outcomes >= 0) & (outcomes <= pairs.size)
                assert np.all(np.isneginf(log_p[:-1][~inside]))
                worst = max(worst, np.abs(log_p[:-1][inside] - plain[outcomes[inside]]).max())
                far = np.delete(plain, outcomes[inside])
                assert np.isneginf(log_p[-1]) == (far.size == 0)
                if far.size:
                    worst = max(worst, abs(float(log_p[-1]) - float(np.logaddexp.reduce(far))))
                total = max(total, abs(math.fsum(np.exp(log_p)) - 1))
    return worst, total


MECHANISMS: list[Any] = [
    HellingerExponential(0.3),
    HellingerExponential(1.0, sensitivity="local"),
    SmoothHellingerExponential(2.0, gamma=0.3),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize(
    ("size", "prior", "distance"),
    [(20, (1.0, 1.0), 1), (400, (0.3, 7.0), 1), (700, (1.0, 1.0), 4), (1500, (0.01, 0.01), 1)],
)
def test_laws(mechanism: Any, size: int, prior: tuple[float, float], distance: int) -> None:
    pairs = pairs_of(mechanism, size, prior, distance)
    assert pairs.method == ("exact" if size == 20 else "windowed")
    worst, total = errors_of_laws(pairs, mechanism)
    assert worst <= pairs.log_error
    assert total <= pairs.log_error


def test_notices_a_window_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = HellingerExponential(0.02)
    pairs = pairs_of(mechanism, 1500, (1.0, 1.0))
    assert max(errors_of_laws(pairs, mechanism)) <= pairs.log_error
    monkeypatch.setattr(two_categories, "window", lambda size, prior: window(size, prior) // 2)
    assert errors_of_laws(pairs, mechanism)[0] > 10 * pairs.log_error


def test_notices_a_missing_tail() -> None:
    pairs = pairs_of(HellingerExponential(0.3), 1500, (1.0, 1.0))
    block = next(iter(pairs.blocks()))
    assert np.max(np.abs(np.exp(block.log_p[:-1]).sum(axis=0) - 1)) > 1e-3


@pytest.mark.parametrize(
    ("size", "prior", "distance"),
    [(1, (1.0, 1.0), 1), (9, (1.0, 1.0), 9), (1500, (1.0, 1.0), 1), (1500, (0.3, 7.0), 3)],
)
def test_every_pair_once(size: int, prior: tuple[float, float], distance: int) -> None:
    pairs = pairs_of(HellingerExponential(1.0), size, prior, distance)
    seen = np.concatenate([block.first[:, 0] for block in pairs.blocks()])
    other = np.concatenate([block.second[:, 0] for block in pairs.blocks()])
    np.testing.assert_array_equal(other - seen, distance)
    found = {
        tuple(sorted(pair))
        for t, s in zip(seen.tolist(), other.tolist(), strict=True)
        for pair in ((t, s), (size - t, size - s))
    }
    if not pairs.symmetric:
        found = set(zip(seen.tolist(), other.tolist(), strict=True))
        assert len(seen) == size - distance + 1
    assert found == {(t, t + distance) for t in range(size - distance + 1)}
    assert len(np.unique(seen)) == len(seen)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 33, 34, 900])
def test_half_of_the_pairs_suffices_by_symmetry(mechanism: Any, size: int) -> None:
    half = pairs_of(mechanism, size, (0.7, 0.7))
    full = replace(half, symmetric=False)
    assert half.symmetric

    def summary(pairs: TwoCategoryPairs) -> list[float]:
        blocks = list(pairs.blocks())
        ends = [extremes(block) for block in blocks]
        epsilon = max(max(float(high.max()), -float(low.min())) for low, high in ends)
        spread = max(float((high - low).max()) for low, high in ends)

        def above(share):
            return max(float(hockey_stick(block, share * epsilon).max()) for block in blocks)

        return [epsilon, spread, above(0.0), above(0.5)]

    np.testing.assert_allclose(summary(half), summary(full), rtol=1e-9)


def test_the_windowed_loss_is_that_of_plain_enumeration() -> None:
    mechanism, size, prior = HellingerExponential(3.0, sensitivity="local"), 400, (0.3, 7.0)
    laws = np.array([mechanism.log_pmf((t, size - t), prior)[1] for t in range(size + 1)])
    difference = np.diff(laws, axis=0)
    loss = exact_loss(mechanism, size=size, prior=prior)
    assert loss.method == "windowed"
    assert 0 <= loss.epsilon - np.abs(difference).max() <= 1e-9
    assert 0 <= loss.range - np.ptp(difference, axis=1).max() <= 1e-9


def test_blocks_do_not_depend_on_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pairs_of(HellingerExponential(1.0), 600, (1.0, 1.0))
    cached = list(pairs.blocks())
    monkeypatch.setattr(two_categories, "_CACHED_ENTRIES", 0)
    for one, other in zip(cached, pairs.blocks(), strict=True):
        np.testing.assert_array_equal(one.log_p, other.log_p)
        np.testing.assert_array_equal(one.log_q, other.log_q)


# The errors of the tables, so large that they show.
@pytest.fixture
def fresh() -> Iterator[None]:
    pairs_module.pairs_of.cache_clear()
    yield
    pairs_module.pairs_of.cache_clear()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.01, 3.0)])
def test_log_probabilities_are_within_the_error_of_the_tables(mechanism, prior, fresh, monkeypatch):
    """Tables too high at one outcome and too low at all others, by all of their error."""
    size, error = 30, 0.02
    exact_blocks = list(pairs_of(mechanism, size, prior).blocks())
    pairs_module.pairs_of.cache_clear()
    monkeypatch.setattr(two_categories, "TABLE_ERROR", error)
    pairs = pairs_of(mechanism, size, prior)
    tables, furthest = two_categories.distance_tables, 0.0
    for row in (0, 1, 29, 31, 58):

        def wrong(*arguments: Any, row: int = row) -> Any:
            for first, table in tables(*arguments):
                change = np.full(table.shape, 1 - error)
                change[row] = 1 + error
                yield first, table * change

        monkeypatch.setattr(two_categories, "distance_tables", wrong)
        for block, exact_block in zip(pairs.blocks(), exact_blocks, strict=True):
            for log_p, truth in (
                (block.log_p, exact_block.log_p),
                (block.log_q, exact_block.log_q),
            ):
                known = np.isfinite(truth)
                furthest = max(furthest, float(np.max(np.abs(log_p[known] - truth[known]))))
    of_tables = pairs.log_error - mechanism.log_error(size, np.array(prior))
    assert 0.1 * of_tables < furthest <= of_tables
    # As in `log_error`, an error of the exponents counts four times.
    assert (
        of_tables
        >= 4 * error / float(np.min(pairs.widths)) + 2.0**-51 * size - 2.0**-52 * pairs.log_error
    )


def test_sums_over_a_window_are_rounded_as_often_as_they_have_terms(fresh, monkeypatch):
    monkeypatch.setattr(two_categories, "TABLE_ERROR", 0.0)
    monkeypatch.setattr(HellingerExponential, "log_error", lambda self, size, prior: 0.0)
    for size in (1, 30, 700):
        assert pairs_of(HellingerExponential(1.0), size, (1.0, 1.0)).log_error >= 2.0**-51 * (
            size + 2
        )


@pytest.mark.parametrize("size", [10, 1000, 20_000])
@pytest.mark.parametrize("prior", [*PRIORS, (1e-6, 300.0), (5.0, 0.3), (5e4, 0.3)])
def test_the_least_divergence_is_below_that_of_all_data_sets(size, prior):
    """And nearly attained where a data set has about equal concentrations."""
    for offset in (1, 2, 7, size // 3, size // 2, size):
        t = np.arange(size - offset + 1)
        every = two_categories._divergence(prior, size, t[None], np.array([[offset]]))
        found = two_categories._least_divergence(size, prior, offset)
        assert found <= float(every.min()) * (1 + 1e-11)
        if abs(prior[0] - prior[1]) < size - offset and (size - offset) % 2 == 0:
            assert found == pytest.approx(float(every.min()), rel=0.3)


def test_the_work_is_that_of_half_of_the_data_sets_where_the_prior_is_symmetric() -> None:
    """One more than half of them for an odd number of records: pairs are counted, not data sets."""
    for size in (9, 10):
        assert two_categories.work(size, (1.0, 1.0)) == 5 * (2 * window(size, (1.0, 1.0)) + 1)
        for prior in ((1.0, 2.0), (2.0, 1.0)):
            assert two_categories.work(size, prior) == (size + 1) * (2 * window(size, prior) + 1)
