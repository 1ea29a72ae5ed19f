"""Three to five counts with noise and thousands to 1e9 records, against ball arithmetic and sums
over panels that share no code with the package.
"""

import numpy as np
import pytest
from nested_panels import Three
from settings import LEVELS, SMALLEST_DEVIATION, deviations, exact, posterior, setting

#: What is stated: means and standard deviations in units of the latter, cumulative probabilities.
ERROR = 1e-3


def three_categories(seed, least, most):
    made = setting(np.random.default_rng([16, seed]), most=most, k=3, least=least)
    made["noised"][:] = True
    made["scale"] = max(made["scale"], 1e-3)  # what is smaller takes more digits
    return made


def by_panels(made):
    lists = (made[name].tolist() for name in ("drawn", "prior"))
    return Three(made["law"], made["scale"], *lists, made["size"])


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_the_panels_are_every_data_set(seed):
    made = three_categories(seed, 60, 300)
    right, found = exact(made), by_panels(made)
    mean, std, count_mean, count_std = found.mean_std()
    assert mean == pytest.approx(right.mean()[0], abs=1e-9 * right.std()[0])
    assert std == pytest.approx(right.std()[0], rel=1e-9)
    assert (count_mean, count_std) == pytest.approx(right.count_mean_std(0), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "seed", [5, 8, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 42))]
)
def test_three_to_five_categories_and_thousands_of_records(seed):
    rng = np.random.default_rng([15, seed])
    made = setting(rng, most=3000, k=int(rng.integers(3, 6)), least=800)
    found = deviations(posterior(made), exact(made))
    assert max(found.values()) <= ERROR, (found, made)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_three_categories_and_up_to_1e9_records(seed):
    made = three_categories(seed, 3000, 10**9)
    right, found = by_panels(made), posterior(made)
    theta, counts = found.probabilities, found.counts
    mean, std, count_mean, count_std = right.mean_std()
    unit = max(count_std, SMALLEST_DEVIATION)
    values, complements = (end[:, 0] for end in theta.two_sided_quantile(LEVELS[:, None]))
    inside = (values > 1e-300) & (complements > 1e-300)
    cdf = right.cdf(values[inside], complements[inside])
    off = {
        "mean": abs(theta.mean()[0] - mean) / std,
        "std": abs(np.sqrt(theta.variance()[0]) / std - 1),
        "cdf": np.abs(cdf - LEVELS[inside]).max(initial=0.0) if right.is_fine else 0.0,
        "count mean": abs(counts.mean()[0] - count_mean) / unit,
        "count std": abs(counts.std()[0] - count_std) / unit,
    }
    assert max(off.values()) <= ERROR, (off, made)
