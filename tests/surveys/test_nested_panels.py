"""Up to five noised counts of up to 1e9 records, against ball arithmetic and other sums."""

import numpy as np
import pytest

from tests.helpers import oracles
from tests.helpers.nested_panels import Three
from tests.helpers.settings import deviations, exact, is_within_bounds, posterior, setting
from tests.helpers.sweeps import some_of
from tests.helpers.weighed_pairs import MarginalOfPanels, log_rising
from tests.helpers.wide_sums import OfWideSums

#: What is stated: means and standard deviations in units of the latter, cumulative probabilities.
ERROR = 1e-2


def three_categories(seed, least, most):
    made = setting(np.random.default_rng([16, seed]), most=most, k=3, least=least)
    made["noised"][:] = True
    made["scale"] = max(made["scale"], 1e-3)  # what is smaller takes more digits
    return made


def marginal(kind, made):
    """That of the first category, by a class of references."""
    lists = (made[name].tolist() for name in ("drawn", "prior"))
    return kind(made["law"], made["scale"], *lists, made["size"])


def check_exact(kind, made, error):
    """Against every data set."""
    right, found = exact(made), marginal(kind, made)
    mean, std, count_mean, count_std = found.mean_std()
    counts = right.count_mean_std(0)
    assert mean == pytest.approx(right.mean()[0], abs=error * right.std()[0])
    assert std == pytest.approx(right.std()[0], rel=error)
    assert (count_mean, count_std) == pytest.approx(counts, rel=error, abs=1e-3 * error)


@pytest.mark.parametrize("seed", some_of([0, 1, 3, 5], 1))
def test_the_panels_are_every_data_set(seed):
    check_exact(Three, three_categories(seed, 60, 300), 1e-9)


@pytest.mark.parametrize(
    "seed", [5, 8, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 42))]
)
def test_three_to_five_categories_and_thousands_of_records(seed):
    rng = np.random.default_rng([15, seed])
    made = setting(rng, most=3000, k=int(rng.integers(3, 6)), least=800)
    found = deviations(posterior(made), exact(made))
    assert max(found.values()) <= ERROR, (found, made)


def four_or_five_categories(seed, least, most):
    rng = np.random.default_rng([31, seed])
    made = setting(rng, most=most, k=int(rng.integers(4, 6)), least=least)
    made["noised"][:] = True
    made["scale"] = max(made["scale"], 1.0)  # what is smaller takes more digits
    return made


@pytest.mark.parametrize("seed", some_of([0, 2, 5, 6], 1))
def test_the_wide_sums_are_every_data_set(seed):
    check_exact(OfWideSums, four_or_five_categories(seed, 60, 300), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "categories", "seed"),
    [
        *((Three, three_categories, seed) for seed in range(30)),
        *((OfWideSums, four_or_five_categories, seed) for seed in range(40)),
    ],
)
def test_several_categories_and_up_to_1e9_records(kind, categories, seed):
    made = categories(seed, 3000, 10**9)
    if not is_within_bounds(made):
        pytest.skip("such counts are refused")
    off = marginal(kind, made).deviations(posterior(made))
    assert max(off.values()) <= ERROR, (off, made)


@pytest.mark.parametrize("prior", [1e-6, 0.3, 1.0, 1e8])
@pytest.mark.parametrize("excess", [0, 1, -2])
@pytest.mark.parametrize("k", [4, 5])
def test_next_to_no_noise_leaves_the_fewest_moves(k, excess, prior):
    """All ways to spread the records that the draw has too many or too few are as probable."""
    size, prior = 10**9 if excess == 0 else 10**8, prior * np.arange(1.0, k + 1)
    drawn = np.array([7, 40, 10**6, 3 * 10**7, 0][:k])
    drawn[1] += size + excess - drawn.sum()
    counts = drawn - np.sign(excess) * np.array(oracles.data_sets(abs(excess), k))
    counts = counts[counts.min(axis=1) >= 0]
    logs = sum(log_rising(own, alpha) for own, alpha in zip(counts.T, prior, strict=True))
    made = {"law": "laplace", "scale": 2.0**-40, "drawn": drawn, "prior": prior, "size": size}
    found = posterior(made | {"noised": np.ones(k, dtype=bool)})
    right = MarginalOfPanels(prior, size, counts[:, 0].astype(float), logs)
    off = right.deviations(found)
    assert max(off.values()) <= ERROR, off
