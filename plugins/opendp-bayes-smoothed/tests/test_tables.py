"""The profiles of all databases, and the mixtures of three categories beyond what is summed."""

import math
import tracemalloc

import numpy as np
import pytest

from opendp_bayes.extend import candidates
from opendp_bayes_smoothed import log_database_profile, mixture
from opendp_bayes_smoothed.draws import DRAWS
from opendp_bayes_smoothed.expectation import databases
from opendp_bayes_smoothed.tables import log_profiles


@pytest.mark.parametrize("replacement", ["without", "with"])
def test_two_categories_have_the_profile_of_every_database(replacement: str) -> None:
    for size, samples in ((1, 1), (2, 1), (9, 4), (9, 9)):
        found = log_profiles(DRAWS[replacement], samples, candidates(size, 2), 0.3)
        alone = [
            log_database_profile([x, size - x], samples / size, 0.3, replacement=replacement)
            for x in range(size + 1)
        ]
        assert found.tolist() == pytest.approx(alone, rel=1e-12)


def test_memory_is_linear_in_the_number_of_databases() -> None:
    """A table of all pairs would take 3 GB."""
    histograms = candidates(20_000, 2)
    tracemalloc.start()
    log_profiles(DRAWS["without"], 19_960, histograms, 7.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_too_large_a_table_is_refused_before_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"size=15: .* = 268435456"):
        databases(15, 8)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_neighbouring_sums_that_share_a_tail_give_a_bound(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [3000, 2500, 900]
    exact = log_database_profile(counts, 0.5, epsilon)
    monkeypatch.setattr(mixture, "_LARGEST_SUM", 1 << 13)
    shared = log_database_profile(counts, 0.5, epsilon)
    assert exact < shared < exact + math.log(2), "the control: something is shared"


def test_stretches_cover_all_sums_and_are_bounds() -> None:
    pair = mixture.Pair(DRAWS["without"], 60, 30, 12, 20, 0.2)
    low, high = pair.support()
    ends = mixture._ends(pair, low, high)
    first = np.concatenate([[low], ends[:-1] + 1])
    assert np.all(first <= ends)
    assert ends[-1] == high
    bounds = mixture._log_stretch(pair, first, ends)
    probability = np.exp(pair.log_pmf(np.arange(low, high + 1)))
    for bound, start, end in zip(bounds, first, ends, strict=True):
        assert math.exp(bound) >= probability[start - low : end + 1 - low].sum() * (1 - 1e-12)
