"""Several releases together, against sums over all data sets, and by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from opendp_bayes import KNormParameters, LaplaceParameters, combine
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.ways import Way
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from tests.helpers.brute_force import of_several as brute, worst
from tests.helpers.every_data_set import EveryDataSet
from tests.helpers.releases import grouped, guarantee

PRIOR = (0.5, 1.0, 2.0)
FLAT = (1.0, 1.0)
PRIVATE = LaplaceParameters(1.5, total="private")
K, L = KNormParameters, LaplaceParameters
SAME = {
    "two categories": [((3, 5), 8, L(2.0), FLAT), ((6, 2), 8, L(1.0), FLAT)],
    "three looks": [
        ((3, 5, 2), 10, K(2.0), PRIOR),
        ((6, 2, 2), 10, K(1.0), PRIOR),
        ((6, -4, 0), 10, L(1.5, total="bounded"), PRIOR),
    ],
    "private": [
        ((3, -5, 2), None, PRIVATE, PRIOR),
        ((5, 2, 1), None, L(0.7, noise="floored", total="private"), PRIOR),
    ],
    "one public": [((4, 4, 2), 10, K(1.0), PRIOR), ((3, 0, 2), None, PRIVATE, PRIOR)],
    "exponential": [
        ((3, 5), 8, HellingerExponential(0.2), FLAT),
        ((6, 2), 8, PermuteAndFlip(0.2), FLAT),
    ],
    "listed": [((3, 5, 1), 9, HellingerExponential(0.2), PRIOR), ((6, 2, 1), 9, K(1.0), PRIOR)],
}


@pytest.fixture
def made(release):
    def make(rows):
        return [release(mechanism, counts, size, prior) for counts, size, mechanism, prior in rows]

    return make


@pytest.mark.parametrize("name", SAME)
def test_looks_at_the_same_records_against_all_data_sets(made, name):
    releases = made(SAME[name])
    found = combine(releases)
    # Components of Betas that are nearly the same are one.
    limit = {"private": 3e-4, "exponential": 1e-6}.get(name, 1e-9)
    assert worst(found, *brute(releases, largest=24)) < limit
    with pytest.raises(AssertionError):  # one look alone is another posterior
        assert worst(releases[0].posterior, *brute(releases, largest=24)) < 1e-2


def test_draws_must_not_contradict_each_other(made):
    """Noise of scales 1.5 and 2 reaches 700 times as far, and no record farther."""
    far = ((2454, 2, -7), None, L(2.0, total="private"), PRIOR)
    releases = made([SAME["private"][0], far])
    with pytest.raises(ValueError, match=r"releases: drew 3 and 2454 .*of the same records"):
        combine(releases)
    near = made([SAME["private"][0], ((2453, 2, -7), *far[1:])])
    assert combine(near).mean().sum() == pytest.approx(1, abs=1e-3)


UNEQUAL = (0.02, 1.0, 30.0)
LISTED = [
    ((12, 1, 3), 16, HellingerExponential(0.35, "local"), UNEQUAL),
    ((10, 3, 3), 16, PermuteAndFlip(0.09), UNEQUAL),
]


def test_data_sets_that_are_listed(made):
    releases = made(LISTED)
    assert worst(combine(releases), *brute(releases)) < 1e-5


def test_no_more_data_sets_are_listed_than_can_be_compared(made):
    """10 011 of 140 records. Noise on the counts has no such limit."""
    releases = made([((100, 30, 10), 140, HellingerExponential(0.2), PRIOR)] * 2)
    with pytest.raises(ValueError, match=r"releases: .* listed: 10000 of"):
        combine(releases, draws_may_agree=True)
    of_noise = [replace(one, mechanism=K(1.0)) for one in releases]
    combine(of_noise, draws_may_agree=True)


@pytest.mark.slow
@pytest.mark.parametrize("other", [(0, 5, 2, 29), (1, 3, 2, 30)])
def test_two_looks_that_have_9139_data_sets(made, other):
    """Against sums over all candidates, of every data set that matters."""
    prior, size, mechanism = (27.8, 0.13, 1056.0, 0.05), 36, HellingerExponential(0.384, "local")
    releases = made([(drawn, size, mechanism, prior) for drawn in [(0, 5, 2, 29), other]])
    found = combine(releases, draws_may_agree=True)
    every = EveryDataSet(prior, size)
    weights = found._engine.weights
    likely = np.sort(np.argsort(-weights)[:2000])
    assert weights[likely].sum() > 1 - 1e-9
    log_weights = log_rising(every.sets[likely], np.array(prior)).sum(axis=1)
    for rows in np.array_split(np.arange(likely.size), 10):
        distances = every.distances(likely[rows])
        local = np.max(distances, axis=1, where=every.away(likely[rows]) == 1, initial=0.0)
        width = 0.384 * local
        for release in releases:
            own = distances[:, (every.sets == release.counts).all(axis=1)][:, 0]
            log_weights[rows] -= own / width
            log_weights[rows] -= special.logsumexp(-distances / width[:, None], axis=1)
    assert worst(found, every.sets[likely], special.softmax(log_weights)) < 1e-6


def test_two_looks_have_two_peaks_or_a_mode_between_them(made):
    """The first says next to nothing, the second much, far from it. Two looks with Gaussian
    noise are one look with their weighted mean.
    """
    size, first = 10**9, 712_345_678
    broad, narrow = HellingerExponential(5.0), HellingerExponential(0.04)
    one = ((10, size - 10), size, broad, FLAT), ((first, size - first), size, narrow, FLAT)
    found, other = (combine(made(rows)) for rows in (one, one[::-1]))
    alone = made(one[1:])[0].posterior
    assert found.mean() == pytest.approx(other.mean(), rel=1e-6)
    assert found.mean() == pytest.approx(alone.mean(), abs=0.1 * alone.std()[0])
    assert found.std() == pytest.approx(other.std(), rel=1e-5)
    prior, noised = np.array([0.3, 2.0]), (True, True)
    looks = [
        DrawnCounts.of(np.array([30, 70]), DiscreteGaussian(3.0), noised),
        DrawnCounts.of(np.array([40, 60]), DiscreteGaussian(3.0), noised),
    ]
    mean = DrawnCounts.of(np.array([35, 65]), DiscreteGaussian(3.0 / 2**0.5), noised)
    two, one = (Way(drawn, prior, 100).exact() for drawn in (looks, [mean]))
    assert np.allclose(two.probabilities.mean(), one.probabilities.mean(), rtol=1e-9)
    assert np.allclose(two.probabilities.variance(), one.probabilities.variance(), rtol=1e-6)


def test_refuses_releases_that_do_not_fit(made):
    first, second = made(SAME["two categories"])
    cases = {
        "at least two": [first],
        "releases: must be a list .* not Release; .* combine_tables": first,
        r"releases\[1\]: must be a Release": [first, "x"],
        r"releases\[1\]: has prior": [first, replace(second, prior=(2.0, 1.0))],
        r"releases\[1\]: has categories": [first, replace(second, categories=(1, 2))],
        r"same records, .* differ: .* pooled": [
            first,
            replace(second, noisy_counts=(6, 3), guarantee=guarantee(9)),
        ],
    }
    for match, releases in cases.items():
        with pytest.raises((TypeError, ValueError), match=match):
            combine(releases)
    table = grouped(((1, 2), (3, 4)), K(1.0), 12, rest=2)
    with pytest.raises(ValueError, match=r"releases\[0\]: is one group"):
        combine([table["g"], table["h"]])
    again = replace(table.whole, noisy_counts=(2, 2, 3, 3, 2))
    both = combine([table.whole, again])
    assert both.given(["'g': 'a'", "'g': 'b'"]).categories == ("'g': 'a'", "'g': 'b'")
    with pytest.raises(TypeError, match="of a grouped release combine"):
        combine([grouped(((1, 2), (3, 4)))] * 2)


def test_a_release_counts_once(made):
    """The same object, a copy, its JSON, among more than two, and with its promise restated."""
    first, second = made(SAME["two categories"])
    copies = {
        "itself": first,
        "copy": replace(first),
        "JSON": type(first).from_json(first.to_json()),
        "restated": replace(first, guarantee=replace(first.guarantee, d_in=2)),
    }
    for name, again in copies.items():
        with pytest.raises(ValueError, match=r"releases\[2\]: .*same release as releases\[0\]"):
            combine([first, second, again])
        found = combine([first, again], draws_may_agree=True)
        assert worst(found, *brute([first, again])) < 1e-9, name
    with pytest.raises(ValueError, match="draws_may_agree='yes': must be one of"):
        combine([first, second], draws_may_agree="yes")
    table = grouped(((1, 2), (3, 4)), K(1.0), 12, rest=2)
    with pytest.raises(ValueError, match=r"releases\[1\]: is the same release"):
        combine([table.whole, table.whole])
    groups = grouped(((1, 2), (1, 2)))
    with pytest.raises(ValueError, match=r"releases\[1\]: is the same release"):
        combine([groups["g"], groups["h"]])
    finer = replace(second, noisy_counts=first.noisy_counts)
    assert combine([first, finer]).releases == (first, finer)


def test_rows_kept_by_one_fixed_rule_are_the_same_records(made):
    first, second = made(SAME["two categories"])

    def limited(release, kept):
        return replace(release, guarantee=replace(release.guarantee, truncated=True, kept=kept))

    one, same, other = "the first row of each id", "the first row of each id", "the last row of id"
    together = combine([limited(first, one), limited(second, same)])
    np.testing.assert_array_equal(together.mean(), combine([first, second]).mean())
    for before, after, message in (
        (limited(first, one), limited(second, other), "is of the last row of id, and .* the first"),
        (
            first,
            limited(second, one),
            r"is of the first row of each id, and releases\[0\] is of all",
        ),
        (
            limited(first, one),
            second,
            r"releases\[1\]: is of all rows, and releases\[0\] is of the",
        ),
        (limited(first, one), limited(second, ""), r"releases\[1\]: is of rows that were limited"),
    ):
        with pytest.raises(ValueError, match=message):
            combine([before, after])


def test_refuses_what_is_out_of_reach(made):
    exponential = ((3000, 5000, 1), 8001, HellingerExponential(0.2), PRIOR)
    with pytest.raises(ValueError, match="as few data sets as can"):
        combine(made([exponential] * 2), draws_may_agree=True)
