"""Sensitivities against their definitions, by enumeration of every data set and every neighbour."""

import math
from itertools import product

import numpy as np
import pytest

from opendp_bayes.mathematics.exponential import sensitivity
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence
from opendp_bayes.mathematics.exponential.sensitivity import (
    RELATIVE_ERROR,
    _lower_envelope,
    local_sensitivities_at,
    smallest_local_sensitivity,
    smooth_sensitivities,
    smooth_sensitivities_at,
)
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mathematics.validation import LARGEST_CONCENTRATION, SMALLEST_PRIOR
from opendp_bayes.mechanisms import global_sensitivity, local_sensitivity, smooth_sensitivity
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

#: Of a value of the package and one of the oracle, which is rounded to a float; the smooth ones add
#: a few operations.
CLOSE = RELATIVE_ERROR + 2.0**-50
PAPERS = math.sqrt(1 - math.pi / 4)

PRIORS = [
    *((1.0, 1.0), (0.05, 0.05), (3.0, 0.2), (1.0, 1.0, 1.0), (0.01, 2.0, 0.7)),
    *((0.1, 0.1, 0.1, 0.1), (5.0, 1.0, 0.3, 1.0)),
]
SMOOTHNESS = [{name: value} for name in ("gamma", "beta") for value in (0.01, 0.1, 1.0, 10.0)]
QUICK = {2: 40, 3: 8, 4: 4}
LARGE = {2: 60, 3: 20, 4: 10}


def label(parameters: object) -> str:
    return str(parameters).strip("{}()").replace("'", "").replace(" ", "")


def close(value: float, truth: float) -> bool:
    return abs(value / truth - 1) <= CLOSE


def check_local_and_global(size: int, prior: tuple[float, ...]) -> None:
    sets, truth = oracles.data_sets(size, len(prior)), oracles.local_sensitivities(size, prior)
    assert all(
        close(local_sensitivity(counts, prior), value)
        for counts, value in zip(sets, truth, strict=True)
    )
    assert close(global_sensitivity(size, prior), truth.max())
    assert 0 < smallest_local_sensitivity(size, prior) <= truth.min()


def check_smooth(size: int, prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    """The optimum of the definition, and what the proofs use, for every neighbours."""
    sets = oracles.data_sets(size, len(prior))
    values = np.array([smooth_sensitivity(counts, prior, **smoothness) for counts in sets])
    truth = oracles.smooth_sensitivities(size, prior, **smoothness)
    np.testing.assert_allclose(values, truth, rtol=CLOSE)
    assert np.all(values >= oracles.local_sensitivities(size, prior) * (1 - CLOSE))
    assert np.all(values >= smallest_local_sensitivity(size, prior))
    first, second = np.nonzero(oracles.distances(size, len(prior)) == 1)
    if "gamma" in smoothness:
        assert np.all(
            np.abs(1 / values[first] - 1 / values[second])
            <= smoothness["gamma"] + 4 * CLOSE / values.min()
        )
    else:
        assert np.all(
            values[first] <= math.exp(smoothness["beta"]) * values[second] * (1 + 4 * CLOSE)
        )


@pytest.mark.parametrize("prior", PRIORS, ids=label)
def test_local_and_global(prior: tuple[float, ...]) -> None:
    """In the order of the candidates, which is that of the oracle."""
    for size in (1, 2, 3, QUICK[len(prior)]):
        check_local_and_global(size, prior)
    for size in (1, 2, QUICK[len(prior)]):
        np.testing.assert_allclose(
            local_sensitivities_at(candidates(size, len(prior)), np.array(prior)),
            oracles.local_sensitivities(size, prior),
            rtol=CLOSE,
        )
        for smoothness in SMOOTHNESS:
            np.testing.assert_allclose(
                smooth_sensitivities(size, np.array(prior), **smoothness),
                oracles.smooth_sensitivities(size, prior, **smoothness),
                rtol=CLOSE,
            )


@pytest.mark.parametrize(
    ("prior", "smoothness"), some_of(product(PRIORS[:6], SMOOTHNESS), 12), ids=label
)
def test_smooth(prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    for size in (1, 3, QUICK[len(prior)]):
        check_smooth(size, prior, smoothness)


@pytest.mark.slow
def test_what_a_pair_costs_is_concave_while_a_category_is_drained() -> None:
    """So that nothing halfway is best: the inequality of `docs/research/proofs.md`, for all
    concentrations.

    An upper bound of its left side over each of the intervals that cover 1e-101 to 1e14.
    """
    half = oracles.real(0.5)

    def logarithm(t: oracles.arb) -> tuple[oracles.arb, oracles.arb, oracles.arb]:
        """phi at t, and the first two derivatives of its logarithm."""
        phi = ((t + half).lgamma() - (t.lgamma() + (t + 1).lgamma()) / 2).exp()
        first = (t + half).digamma() - (t.digamma() + (t + 1).digamma()) / 2
        zeta = [oracles.real(2).zeta(at) for at in (t + half, t, t + 1)]
        return phi, first, zeta[0] - (zeta[1] + zeta[2]) / 2

    assert SMALLEST_PRIOR > 1e-101
    assert 2 * LARGEST_CONCENTRATION < 1e14
    with oracles.ctx.workprec(400):
        t = oracles.real(1e-101)
        slope = logarithm(t)[1]
        while t < 1e14:
            t = (t * oracles.real(1.05)).mid()
            phi, next_slope, curvature = logarithm(t)
            assert curvature * (1 - phi) + slope**2 * (1 + phi / 2) < 0
            slope = next_slope


def test_the_lower_envelope_is_the_least_of_all() -> None:
    """Also where the first value, or the last, is the best everywhere."""
    rng = np.random.default_rng(2)
    for values in ([0.0, 9, 9, 9], [9.0, 9, 9, 0], *rng.uniform(0, 4, (20, 6))):
        value, place = np.array(values), np.arange(len(values))
        least = np.min(value + np.abs(place[:, None] - place), axis=1)
        assert _lower_envelope(value, 1.0) == pytest.approx(least)


@pytest.mark.parametrize(
    ("prior", "smoothness"), some_of(product(PRIORS, SMOOTHNESS), 8), ids=label
)
def test_rows_of_data_sets(prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    """Many at once, which finish their searches at different distances, are as one at a time."""
    for size in (5, 400):
        sets = np.random.default_rng(0).multinomial(
            size, np.random.default_rng(1).dirichlet(np.full(len(prior), 0.5), size=20)
        )
        alone = [smooth_sensitivity(counts, prior, **smoothness) for counts in sets]
        np.testing.assert_allclose(
            smooth_sensitivities_at(sets, np.array(prior), **smoothness), alone, rtol=CLOSE
        )
        np.testing.assert_allclose(
            local_sensitivities_at(sets, np.array(prior)),
            [local_sensitivity(counts, prior) for counts in sets],
            rtol=CLOSE,
        )


EXTREME = [{"gamma": 1e-9}, {"gamma": 1e9}, {"beta": 1e-9}, {"beta": 1e9}]


@pytest.mark.parametrize(
    ("prior", "smoothness"),
    some_of(product([(1.0, 1.0), (0.01, 30.0)], [*SMOOTHNESS, *EXTREME]), 14),
    ids=label,
)
def test_all_data_sets_of_two_thousand_records_at_once(prior, smoothness):
    """The lower envelope against the optimum over all pairs, from the same local sensitivities."""
    size = 2000
    local = local_sensitivities_at(candidates(size, 2), np.array(prior))
    away = np.abs(np.arange(size + 1)[:, None] - np.arange(size + 1))
    if "gamma" in smoothness:
        truth = 1 / np.min(1 / local + smoothness["gamma"] * away, axis=1)
    else:
        truth = np.max(local * np.exp(-smoothness["beta"] * away), axis=1)
    np.testing.assert_allclose(
        smooth_sensitivities(size, np.array(prior), **smoothness), truth, rtol=CLOSE
    )


@pytest.mark.parametrize("smoothness", [{"gamma": 0.1}, {"beta": 0.01}], ids=label)
def test_all_data_sets_of_many_records_at_once(smoothness: dict[str, float]) -> None:
    """As for one data set by search."""
    size, prior = 50_000, (0.3, 2.0)
    local = local_sensitivities_at(candidates(size, 2), np.array(prior))
    smooth = smooth_sensitivities(size, np.array(prior), **smoothness)
    for t in (0, 1, 17, 400, 25_000, 49_000, 49_999, 50_000):
        assert close(float(local[t]), local_sensitivity([t, size - t], prior))
        assert close(float(smooth[t]), smooth_sensitivity([t, size - t], prior, **smoothness))


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS, ids=label)
def test_local_and_global_for_every_size(prior: tuple[float, ...]) -> None:
    for size in range(1, LARGE[len(prior)] + 1):
        check_local_and_global(size, prior)


@pytest.mark.slow
@pytest.mark.parametrize("smoothness", SMOOTHNESS, ids=label)
@pytest.mark.parametrize("prior", PRIORS, ids=label)
def test_smooth_for_larger_sizes(prior: tuple[float, ...], smoothness: dict[str, float]) -> None:
    for size in (2, LARGE[len(prior)] // 2, LARGE[len(prior)]):
        check_smooth(size, prior, smoothness)


@pytest.mark.slow
def test_random_priors() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        k = int(rng.integers(2, 6))
        prior = tuple(float(value) for value in 10 ** rng.uniform(-3, 3, size=k))
        size = int(rng.integers(1, {2: 30, 3: 9, 4: 6, 5: 5}[k] + 1))
        check_local_and_global(size, prior)
        check_smooth(
            size, prior, {str(rng.choice(["gamma", "beta"])): float(10 ** rng.uniform(-2, 1))}
        )


@pytest.mark.parametrize("size", [1, 2, 10, 10**9])
@pytest.mark.parametrize("k", [3, 5, 100])
def test_the_papers_constant(size: int, k: int) -> None:
    assert close(global_sensitivity(size, np.ones(k)), PAPERS)


def test_beta_one_one_the_papers_constant_and_no_records() -> None:
    assert close(global_sensitivity(1, [1.0, 1.0]), PAPERS)
    assert global_sensitivity(10**12, [1.0, 1.0]) == pytest.approx(
        math.sqrt(1 - math.sqrt(math.pi) / 2), rel=1e-11
    )
    assert local_sensitivity([0, 0], 1.0) == 0.0
    assert smooth_sensitivity([0, 0, 0], 1.0, gamma=1.0) == 0.0
    assert smooth_sensitivity([0, 0], 1.0, beta=1.0) == 0.0


@pytest.mark.parametrize(("size", "value"), [(10, 0.35324), (100, 0.33894), (10**9, 0.33730)])
def test_beta_one_one(size: int, value: float) -> None:
    assert round(global_sensitivity(size, [1.0, 1.0]), 5) == value


@pytest.mark.parametrize(
    ("size", "prior"), [(10, (0.1, 0.1, 0.1)), (10, (0.05, 0.05)), (3, (0.5, 0.5, 4.0))]
)
def test_the_papers_constant_is_exceeded_by_a_prior_below_one(size, prior):
    """A real pair of neighbours is further apart than `sqrt(1 - pi/4)`."""
    assert oracles.local_sensitivities(size, prior).max() > 1.1 * PAPERS
    assert global_sensitivity(size, prior) > 1.1 * PAPERS


def fast_local_sensitivity(counts: list[int], prior: list[float]) -> oracles.arb:
    """For pairs (i, j) given by exact fractions; of few categories."""
    return oracles.local_sensitivity(tuple(counts), prior)


LARGE_DATA = [
    ([5 * 10**8, 5 * 10**8], [1.0, 1.0]),
    ([10**9, 0], [1.0, 1.0]),
    ([10**9 - 1, 1], [0.5, 0.5]),
    ([999_000_000, 10**6], [1e-3, 1e3]),
    ([4 * 10**8, 6 * 10**8], [0.1, 0.1]),
    ([3 * 10**8, 3 * 10**8, 4 * 10**8], [1 / 3, 1 / 3, 1 / 3]),
    ([10**9, 0, 0], [0.01, 1.0, 100.0]),
    # Next to a power of two, where prior + counts and prior + counts + 1 are rounded differently.
    ([1023, 1023], [0.1, 0.1]),
    ([65_535, 65_535], [0.1, 0.1]),
    ([2**30 - 1, 2**30 - 1], [0.1, 0.1]),
]


@pytest.mark.parametrize(("counts", "prior"), LARGE_DATA, ids=label)
def test_local_sensitivity_of_large_data(counts: list[int], prior: list[float]) -> None:
    found, right = local_sensitivity(counts, prior), fast_local_sensitivity(counts, prior)
    assert oracles.relative_error(found, right) <= RELATIVE_ERROR


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.1, 0.3), (1e-3, 1e3)])
@pytest.mark.parametrize("size", [1023, 65_536, 10**9])
def test_global_sensitivity_of_large_data(size: int, prior: tuple[float, float]) -> None:
    """For two categories the extremes are next to the ends."""
    ends = [(0, size), (1, size - 1), (size - 1, 1), (size, 0)]
    truth = max((oracles.local_sensitivity(counts, prior) for counts in ends), key=float)
    assert oracles.relative_error(global_sensitivity(size, prior), truth) <= RELATIVE_ERROR


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.1, 0.3), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("size", [1024, 10**9])
def test_smallest_local_sensitivity_of_large_data(size: int, prior: tuple[float, ...]) -> None:
    """Balanced data attain nearly the smallest; every other data set is above it too."""
    k, smallest = len(prior), smallest_local_sensitivity(size, prior)
    for counts in [
        (size // 2, size - size // 2) + (0,) * (k - 2),
        (size,) + (0,) * (k - 1),
        (size - k + 1,) + (1,) * (k - 1),
    ]:
        assert oracles.real(smallest) <= oracles.local_sensitivity(counts, prior)
    if k == 2:
        assert smallest >= 0.99 * float(
            oracles.local_sensitivity((size // 2, size - size // 2), prior)
        )


@pytest.mark.parametrize("smoothness", [{"gamma": 1.0}, {"beta": 0.05}], ids=label)
@pytest.mark.parametrize("counts", [(500, 500), (990, 10), (1000, 0)])
def test_smooth_sensitivity_of_a_thousand_records(counts, smoothness):
    """Two categories leave few enough data sets to enumerate them all."""
    prior = (1.0, 1.0)
    index = oracles.data_sets(1000, 2).index(counts)
    local = oracles.local_sensitivities(1000, prior)
    away = np.abs(np.arange(1001) - counts[0])
    truth = (
        1 / np.min(1 / local + smoothness["gamma"] * away)
        if "gamma" in smoothness
        else np.max(local * np.exp(-smoothness["beta"] * away))
    )
    assert oracles.data_sets(1000, 2)[index] == counts
    assert close(smooth_sensitivity(counts, prior, **smoothness), truth)


@pytest.mark.parametrize(
    "counts", [[5 * 10**8] * 2, [10**9, 0], [3 * 10**8, 3 * 10**8, 4 * 10**8]], ids=label
)
def test_smooth_sensitivity_of_a_billion_records(counts: list[int]) -> None:
    """Between local and global, and never below a data set on the way to the edge."""
    prior, gamma = [1.0] * len(counts), 1.0
    value = smooth_sensitivity(counts, prior, gamma=gamma)
    assert (
        local_sensitivity(counts, prior) * (1 - CLOSE)
        <= value
        <= global_sensitivity(10**9, prior) * (1 + CLOSE)
    )
    for moved in (10**3, 10**5, 10**7, min(counts[0], 10**9)):
        other = [counts[0] - moved, counts[1] + moved, *counts[2:]]
        assert 1 / value <= 1 / local_sensitivity(other, prior) + gamma * moved + 1e-6


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_the_comparison_notices_a_wrong_parameter(wrong: float) -> None:
    """Negative control: parameters off by two, and the local passed off as smooth."""
    size, prior = 20, (1.0, 1.0)
    for name, value in (("gamma", 0.1), ("beta", 0.05)):
        truth = oracles.smooth_sensitivities(size, prior, **{name: value})
        other = oracles.smooth_sensitivities(size, prior, **{name: wrong * value})
        assert np.max(np.abs(other / truth - 1)) > 1e-3
    local = oracles.local_sensitivities(size, prior)
    assert np.max(np.abs(np.diff(1 / local))) > 0.5


@pytest.mark.parametrize("name", ["gamma", "beta"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_smooth_refuses_parameters(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{name}=.*: must be finite and greater than 0\."):
        smooth_sensitivity([1, 1], 1.0, **{name: value})
    for both in ({}, {"gamma": 1.0, "beta": 1.0}):
        with pytest.raises(ValueError, match=r"gamma=.*, beta=.*: .*exactly one"):
            smooth_sensitivity([1, 1], 1.0, **both)


def test_refuses_invalid_data() -> None:
    with pytest.raises(ValueError, match=r"counts: .*between"):
        local_sensitivity([-1, 2], 1.0)
    with pytest.raises(ValueError, match=r"prior=.*: has shape \(2,\).* 3 entries"):
        smooth_sensitivity([1, 2, 3], [1.0, 1.0], gamma=1.0)
    with pytest.raises(ValueError, match=r"size=0: must be between 1"):
        global_sensitivity(0, [1.0, 1.0])
    with pytest.raises(ValueError, match=r"prior=1\.0: must have one entry"):
        global_sensitivity(10, 1.0)


def test_the_smallest_local_sensitivity_is_a_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a distance computed too high by all of its error, twice that of a sensitivity."""
    truth = smallest_local_sensitivity(20, np.array([0.3, 2.0]))
    monkeypatch.setattr(sensitivity, "RELATIVE_ERROR", 0.1)
    assert smallest_local_sensitivity(20, np.array([0.3, 2.0])) * 1.2 <= truth * (1 + 2.0**-40)
    monkeypatch.setattr(
        sensitivity,
        "distance_from_divergence",
        lambda divergence: 1.2 * distance_from_divergence(divergence),
    )
    assert (
        0.999 * truth
        < smallest_local_sensitivity(20, np.array([0.3, 2.0]))
        <= truth * (1 + 2.0**-40)
    )
