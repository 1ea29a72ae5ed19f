"""Different records of strong and of sparse priors, against sums over all counts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters, Release, combine
from opendp_bayes.inference.convolution import different_records as module
from tests.helpers import different_records
from tests.helpers.brute_force import of_several as brute, worst
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import slow

#: The stated error.
ERROR = 1e-3
LAPLACE = LaplaceParameters(1.0, total="private")


def released(drawn, mechanism, prior, size=None):
    labels = tuple("abcdef"[: len(drawn)])
    return Release(tuple(drawn), labels, tuple(prior), mechanism, guarantee(size))


def gaussian(scale):
    return GaussianParameters(scale, total="private")


@pytest.mark.slow
def test_a_strong_prior_beside_few_records():
    """18.9 records; where the sums are not tilted, 50.7."""
    releases = [released(drawn, LAPLACE, (200.0, 200.0)) for drawn in [(3, 2), (9, 5)]]
    found = combine(releases, records="different")
    assert (found.records.mean(), found.records.std()) == pytest.approx((18.9084, 2.4919), abs=1e-3)
    right = different_records.marginals(releases, 40)
    assert different_records.worst(found, right) < ERROR
    weaker = [replace(one, prior=(190.0, 200.0)) for one in releases]
    assert different_records.worst(combine(weaker, records="different"), right) > 10 * ERROR


def test_a_sparse_prior():
    """Both categories say the same, to the last of the tail."""
    prior = (0.02, 3.4)
    releases = [released((3, 14), gaussian(1.2), prior), released((1, 14), gaussian(0.35), prior)]
    found = combine(releases, records="different")
    first, second = found["a"], found["b"]
    for value in (float(second.mean()), 0.99999, 0.5, 1e-9):
        together = second.cdf(value) + first.cdf(1 - value)
        assert together == pytest.approx(1.0, abs=1e-7)
    assert different_records.worst(found, different_records.marginals(releases, 32)) < ERROR


CASES = {
    "unequal": (((3, 2), (9, 5)), (LAPLACE, gaussian(0.7)), (300.0, 0.3)),
    "far from what was drawn": (((2, 30), (25, 3)), (LAPLACE, LAPLACE), (60.0, 60.0)),
    "sparse on both sides": (((0, 12), (-1, 5)), (LAPLACE, gaussian(0.4)), (0.05, 0.08)),
    "three categories": (((3, 1, 2), (1, 4, 0)), (LAPLACE, LAPLACE), (0.02, 3.4, 50.0)),
    "three, strong": (((0, 5, 2), (3, 3, 6)), (LAPLACE, gaussian(1.0)), (90.0, 40.0, 2.0)),
}


#: The others take longer.
QUICK = ("sparse on both sides",)


@pytest.mark.parametrize("name", slow(CASES, but=QUICK))
def test_private_numbers_against_all_counts(name):
    drawn, mechanisms, prior = CASES[name]
    releases = [released(*each, prior) for each in zip(drawn, mechanisms, strict=True)]
    right = different_records.marginals(releases, 45 if len(prior) == 2 else 22)
    found = combine(releases, records="different")
    assert different_records.worst(found, right) < ERROR
    rescaled = [replace(releases[0], mechanism=replace(mechanisms[0], scale=0.9)), releases[1]]
    assert different_records.worst(combine(rescaled, records="different"), right) > ERROR


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_random_settings_against_all_counts(k, seed):
    rng = np.random.default_rng([seed, k])
    prior = np.exp(rng.uniform(np.log(0.02), np.log(400 if k == 2 else 100), k))
    releases = []
    for _ in range(2):
        scale = float(np.exp(rng.uniform(np.log(0.3), np.log(3.0 if k == 2 else 1.0))))
        noise = [
            LaplaceParameters(scale, total="private"),
            LaplaceParameters(scale, noise="floored", total="private"),
            gaussian(scale),
        ][rng.integers(3)]
        releases.append(released(rng.integers(-2, 12 if k == 2 else 6, k).tolist(), noise, prior))
    most = 70 if k == 2 else 24
    right = different_records.marginals(releases, most)
    if max(weights[sums >= most].sum() for sums, _, weights in right) > 1e-6:
        pytest.skip("the sums reach beyond what is added up")
    assert different_records.worst(combine(releases, records="different"), right) < ERROR


@pytest.mark.slow
def test_hundreds_of_records_against_all_counts():
    """The prior is worth more than the records, and the noise is wide."""
    drawn, prior = ((60, 25), (40, 70)), (900.0, 500.0)
    releases = [released(one, LaplaceParameters(4.0, total="private"), prior) for one in drawn]
    right = different_records.marginals(releases, 130)
    assert different_records.worst(combine(releases, records="different"), right) < ERROR


def test_sums_of_the_others_are_not_taken_for_few_records():
    """Under narrow noise the cycle of a transform is shorter than the sums: those of many records
    have the places of those of few, which a prior of 1 hardly has.
    """
    first, second = (23, 6, 12, 4, 24, 36, 10, 8, 11, 0), (14, 0, 14, 3, 21, 16, 7, 7, 2, 2)
    narrow, labels = LaplaceParameters(0.4, total="private"), tuple("abcdefghij")
    found = combine(
        [Release(x, labels, (1.0,) * 10, narrow, guarantee(None)) for x in (first, second)],
        records="different",
    )
    assert found.mean().sum() == pytest.approx(1.0, abs=1e-5)


PUBLIC = {
    "strong": (((1, 9), (8, 2)), (10, 10), (200.0, 2.0), LaplaceParameters(1.0)),
    "K-norm": (((1, 9), (8, 2)), (10, 10), (0.03, 300.0), KNormParameters(0.5)),
    "three releases": (((0, 7), (7, 1), (9, -2)), (7, 8, 7), (150.0, 9.0), KNormParameters(0.4)),
    "three categories": (((0, 7, 0), (1, 1, 6)), (7, 8), (0.02, 70.0, 300.0), KNormParameters(0.5)),
    "Gaussian": (((1, 9), (12, 2)), (10, 14), (200.0, 0.5), GaussianParameters(0.6)),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_numbers_against_all_counts(name):
    drawn, sizes, prior, mechanism = PUBLIC[name]
    releases = [
        released(one, mechanism, prior, size) for one, size in zip(drawn, sizes, strict=True)
    ]
    right = brute(releases, "different")
    assert worst(combine(releases, records="different"), *right) < ERROR / 10
    nearly = [replace(one, prior=(prior[0] * 1.1, *prior[1:])) for one in releases]
    assert worst(combine(nearly, records="different"), *right) > ERROR


@pytest.mark.parametrize(
    ("size", "expected"), [(400, 396), pytest.param(1000, 990, marks=pytest.mark.slow)]
)
def test_public_numbers_that_a_prior_moves_far_from_what_was_drawn(size, expected):
    """Of 400 records 3 were seen in a category that the prior expects 396 of: the noise gives way,
    by more than a hundred.
    """
    prior, scale, both_seen = (200.0, 2.0), 1.0, (3, expected)
    releases = [
        released((seen, size - seen), KNormParameters(scale), prior, size) for seen in both_seen
    ]
    posterior = combine(releases, records="different")
    x = np.arange(size + 1)
    logs = [
        -np.abs(x - seen) / scale - special.gammaln(x + 1) - special.gammaln(size - x + 1)
        for seen in both_seen
    ]
    both = x[:, None] + x
    log_weights = logs[0][:, None] + logs[1]
    log_weights += special.gammaln(prior[0] + both)
    log_weights += special.gammaln(prior[1] + 2 * size - both)
    weights = special.softmax(log_weights)
    counts = (weights * both).sum()
    spread = np.sqrt((weights * (both - counts) ** 2).sum())
    assert abs(counts - sum(both_seen)) > 100
    assert posterior.counts.mean()[0] == pytest.approx(counts, abs=1e-6 * spread)
    assert posterior.counts.std()[0] == pytest.approx(spread, rel=1e-6)


def by_integral(prior, scale, draws):
    """Mean and standard deviation of the second of two probabilities, by an integral over it: given
    the probabilities, each release is a sum over its own counts, every number being as probable.
    """
    u = np.linspace(-30, 30, 601)[:, None]  # its logit
    logs = [-np.logaddexp(0, u), -np.logaddexp(0, -u)]  # of both probabilities
    log_density = prior[0] * logs[0][:, 0] + prior[1] * logs[1][:, 0]
    for drawn in draws:
        laws = [np.arange(max(int(of + 30 * scale), 40)) for of in drawn]
        noise = [-np.abs(x - of) / scale for x, of in zip(laws, drawn, strict=True)]
        ways = special.gammaln(laws[0][:, None] + laws[1] + 1.0)
        ways = ways - special.gammaln(laws[0] + 1.0)[:, None] - special.gammaln(laws[1] + 1.0)
        both = ways + noise[0][:, None] + noise[1]
        for at, (first, second) in enumerate(zip(*logs, strict=True)):
            rows = (both + second * laws[1]).max(axis=1)
            inner = np.exp(both + second * laws[1] - rows[:, None]).sum(axis=1)
            log_density[at] += special.logsumexp(np.log(inner) + rows + first * laws[0])
    weights = special.softmax(log_density)
    # Below e^-30 only the prior changes, and it goes down to 0.
    below = weights[0] / (prior[1] * 0.1)
    share = np.exp(logs[1][:, 0])
    mean, square = (np.sum(weights * share**power) / (1 + below) for power in (1, 2))
    return mean, np.sqrt(square - mean**2)


@pytest.mark.parametrize(
    ("alpha", "scale", "draws"),
    [
        pytest.param(0.1, 5.0, [(60, 25), (55, 20)], marks=pytest.mark.slow),
        (0.01, 2.0, [(12, 8), (10, 6)]),
        pytest.param(0.001, 1.0, [(12, 4), (10, 3)], marks=pytest.mark.slow),
        pytest.param(0.004, 0.5, [(12, 2), (10, 1)], marks=pytest.mark.slow),
        pytest.param(0.2, 6.0, [(70, 30), (65, 0)], marks=pytest.mark.slow),
        pytest.param(1.0, 8.0, [(60, 0), (55, -5)], marks=pytest.mark.slow),
    ],
)
def test_a_category_that_may_be_empty(alpha, scale, draws):
    """Where next to nothing is a peak, and others are far above it."""
    mechanism = LaplaceParameters(scale, total="private")
    found = combine([released(x, mechanism, (1.0, alpha)) for x in draws], records="different")
    mean, std = by_integral((1.0, alpha), scale, draws)
    assert found.mean()[1] == pytest.approx(mean, abs=ERROR * std)
    assert found.std()[1] == pytest.approx(std, rel=2 * ERROR)


def test_one_factor_alone_loses_counts(monkeypatch):
    """Negative control: that of next to nothing, of which the prior makes a peak."""

    def at_one_rate(left, right, _):
        rate = special.digamma(0.001)
        one, two = (side + rate * np.arange(side.size) for side in (left, right))
        with np.errstate(divide="ignore"):
            logs = np.log(np.convolve(np.exp(one - one.max()), np.exp(two - two.max())))
        return logs + one.max() + two.max() - rate * np.arange(logs.size)

    monkeypatch.setattr(module, "log_convolved", at_one_rate)
    draws = [(12, 4), (10, 3)]
    found = combine([released(x, LAPLACE, (1.0, 0.001)) for x in draws], records="different")
    mean, std = by_integral((1.0, 0.001), 1.0, draws)
    assert abs(found.mean()[1] - mean) > 0.1 * std


@pytest.mark.parametrize("sizes", [(1, 1), (1, 6), (7, 1), (90, 80), (1200, 900)])
@pytest.mark.parametrize("rate", [0.0, -900.0, 5.0, -3.0])
def test_a_convolution_loses_nothing(sizes, rate):
    sides = [
        slope * np.arange(size)
        - special.gammaln(np.arange(size) + 1.0)
        - np.abs(np.arange(size) - size / 3) / 0.7
        for size, slope in zip(sizes, (0.5, -2.0), strict=True)
    ]
    found = module.log_convolved(*sides, rate)
    first, second = sides
    for total in {0, 1, found.size // 3, found.size - 1} & set(range(found.size)):
        one = np.arange(max(0, total - second.size + 1), min(total, first.size - 1) + 1)
        right = special.logsumexp(first[one] + second[total - one])
        assert found[total] == pytest.approx(right, abs=1e-9)
