"""Pooled groups of one table: against sums over all counts. Of a public number of all records only
the mean size of a group is used, public sizes are used as they are.
"""

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.release import GroupedRelease
from tests.helpers import oracles
from tests.helpers.pooled_ranks import KAPPA
from tests.helpers.releases import changed, guarantee
from tests.helpers.shortened import shorten

SIZE, DRAWN = 8, (3, 0, 1, 2, 1, 1)
KNORM, LAPLACE = ob.KNormParameters(1.0), ob.LaplaceParameters(1.0)
BOUNDED = ob.LaplaceParameters(1.0, total="bounded")
GAUSSIAN = ob.GaussianParameters(1.5)
CELLS = tuple((region, vote) for region in ("n", "s", "w") for vote in ("yes", "no"))
TABLE = ob.Release(DRAWN, CELLS, (1.0,) * 6, KNORM, guarantee(SIZE), ("region", "vote"))
#: Two groups and, last, the records in none.
GROUPS = GroupedRelease(
    ("n", "s"), ((4, -1), (1, 3)), ("yes", "no"), (1.0, 1.0), KNORM, guarantee(SIZE), rest=1
)


def scale_of(release):
    """Of independent Laplace noise for that of the mechanism: K-norm noise given the sum is noise
    of twice its scale on each count, and without it, of as wide differences as among all k counts.
    """
    if release.mechanism != KNORM:
        return release.mechanism.scale
    k = len(DRAWN) if isinstance(release, ob.Release) else 5
    return 2.0 if getattr(release, "sizes", None) else np.sqrt((4 * k - 2) / (k + 1))


def exact(release, kappa_prior=KAPPA, points=20, most=40):
    """Expected ln κ, the first entry of m, and of each group the probability of its first category
    and its number of records, with their standard deviations: by sums over all counts of two
    categories, and integrals over κ and m.
    """
    drawn, sizes = np.reshape(release.noisy_counts, (-1, 2)), getattr(release, "sizes", None)
    parts = len(drawn) + (not isinstance(release, ob.Release))
    middles = (np.arange(points) + 0.5) / points
    grid = np.meshgrid(kappa_prior.ppf(middles), middles)
    kappa, share = (along.ravel()[:, None] for along in grid)
    a, b, log_p, of_groups = kappa * share, kappa * (1 - share), np.zeros((kappa.size, 1)), []
    for group, of_group in enumerate(drawn):
        x, y = (along.ravel() for along in np.indices((most, most)))
        if sizes:
            x = np.arange(sizes[group] + 1)
            y = sizes[group] - x
        off, n = np.abs(of_group - np.column_stack([x, y])) / scale_of(release), x + y
        log_weight = -(off**2 / 2 if release.mechanism == GAUSSIAN else off).sum(axis=1)
        log_weight = log_weight - n * np.log1p(parts / SIZE)
        log_weight = log_weight + special.betaln(a + x, b + y) - special.betaln(a, b)
        log_weight += special.gammaln(n + 1) - special.gammaln(x + 1) - special.gammaln(y + 1)
        weights = special.softmax(log_weight, axis=1)
        for value in ((a + x) / (kappa + n), n):
            of_groups += [(weights * value**power).sum(axis=1) for power in (1, 2)]
        log_p = log_p + special.logsumexp(log_weight, axis=1, keepdims=True)
    values = [each.ravel() ** power for each in (np.log(kappa), share) for power in (1, 2)]
    moments = np.array([*values, *of_groups]) @ special.softmax(log_p.ravel())
    mean, squares = moments[::2], moments[1::2]
    return mean, np.sqrt(np.maximum(squares - mean**2, 1e-12))


def found_by(pooled):
    found = [np.log(pooled.kappa).mean(), pooled.m[:, 0].mean()]
    for one in pooled.values():
        found += [one.mean()[0], one.records.mean()]
    return np.array(found)


def with_mechanism(release, mechanism):
    return changed(release, mechanism=mechanism)


SETTINGS = {
    "table, K-norm": TABLE,
    "table, bounded": with_mechanism(TABLE, BOUNDED),
    "table, Gaussian": with_mechanism(TABLE, GAUSSIAN),
    "groups, K-norm": GROUPS,
    "groups, remainder": with_mechanism(GROUPS, LAPLACE),
    "groups, Gaussian": with_mechanism(GROUPS, GAUSSIAN),
    "sizes, K-norm": GROUPS.with_sizes({"n": 3, "s": 4}),
    "sizes, remainder": with_mechanism(GROUPS, LAPLACE).with_sizes({"n": 3, "s": 4}),
}
QUICK = ("table, K-norm", "groups, remainder", "sizes, K-norm")


def pooled_of(release, **given):
    if isinstance(release, ob.Release):
        return release.pooled(by="region", **given)
    return release.pooled(**given)


@pytest.mark.parametrize(
    ("name", "ess"),
    [
        *((name, 100) for name in QUICK),
        *(pytest.param(name, 2000, marks=pytest.mark.slow) for name in SETTINGS),
    ],
)
def test_agrees_with_sums_over_all_data_sets(name, ess):
    release = SETTINGS[name]
    pooled = pooled_of(release, kappa_prior=KAPPA, ess=ess)
    mean, std = exact(release)
    error = std / np.sqrt(pooled.diagnostics.ess.min())
    limit = stats.norm.isf(oracles.FALSE_ALARM / 2)
    assert np.max(np.abs(found_by(pooled) - mean) / error) < limit
    # Negative control: another prior of κ is noticed.
    wrong, _ = exact(release, stats.gamma(3, scale=40))
    assert np.max(np.abs(found_by(pooled) - wrong) / error) > limit


def test_differences_of_knorm_noise_are_as_wide_as_is_assumed():
    """Of six counts whose noise has the sum 0."""
    drawn = ob.KNormParameters(20.0).draw(np.zeros(6, dtype=int), 1.0, draws=20_000)
    noise = DiscreteLaplace(20.0 * np.sqrt(22 / 7))
    wanted = 2 * noise.simulate((100_000,), np.random.default_rng(0)).var()
    assert drawn.sum(axis=1).tolist() == [0] * 20_000
    assert (drawn[:, 0] - drawn[:, 4]).var() == pytest.approx(wanted, rel=0.06)


@pytest.mark.parametrize("total", ["remainder", "truncated"])
def test_refuses_a_table_of_which_one_count_has_no_noise(total):
    """It follows from a number that is not used; groups have noise on all of their counts."""
    mechanism = ob.LaplaceParameters(1.0, "floored", total)
    with pytest.raises(ValueError, match=r"total='\w+'\), which leaves one count .*'bounded'"):
        with_mechanism(TABLE, mechanism).pooled(by="region")


@pytest.fixture
def few_draws(monkeypatch):
    """For whoever asks what every draw is, and not what draws are worth."""
    shorten(monkeypatch)


def test_refuses_what_is_no_table_of_groups():
    one = ob.Release((3, 9), ("a", "b"), (1.0, 1.0), KNORM, guarantee(12))
    for by in ("region", []):
        with pytest.raises(ValueError, match=r"by=.*not of a joint table"):
            one.pooled(by=by)
    for by in ("age", ["region", "vote"], ["region", "region"], []):
        with pytest.raises(ValueError, match=r"by=.*are 'region', 'vote'"):
            TABLE.pooled(by=by)
    some = changed(TABLE, noisy_counts=DRAWN[:5], categories=CELLS[:5], prior=(1.0,) * 5, size=7)
    with pytest.raises(ValueError, match="5 cells for 3 groups"):
        some.pooled(by="region")
    with pytest.raises(ValueError, match="needs noise on the counts"):
        with_mechanism(TABLE, ob.mechanisms.HellingerExponential(0.5)).pooled(by="region")
    part = GroupedRelease(
        ("x", "y"), (DRAWN, DRAWN), CELLS, (1.0,) * 6, KNORM, guarantee(30), ("region", "vote"), 6
    )
    with pytest.raises(ValueError, match="the release of all"):
        part["x"].pooled(by="region")


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    "release",
    [pytest.param(GROUPS, id="groups"), pytest.param(TABLE, id="table", marks=pytest.mark.slow)],
)
def test_priors_that_are_not_given_are_those_of_the_page(release):
    """Of m uniform; of κ the one under which `10 / (10 + κ)` is uniform. With the seed the draws
    are the same, and with any other prior they are not.
    """
    kappa_prior = stats.fisk(1, scale=10)
    shares = np.linspace(0.05, 0.95, 10)
    assert 10 / (10 + kappa_prior.isf(shares)) == pytest.approx(shares)
    by = {"ess": 10} if release is GROUPS else {"ess": 10, "by": "region"}
    ours = release.pooled(**by)
    given = release.pooled(**by, m_prior=[1.0, 1.0], kappa_prior=kappa_prior)
    assert np.array_equal(ours.kappa, given.kappa)
    for other in (
        {"m_prior": 0.5},
        {"m_prior": [1.0, 2.0]},
        {"kappa_prior": stats.fisk(1, scale=20)},
        {"kappa_prior": stats.fisk(2, scale=10)},
    ):
        assert not np.array_equal(ours.kappa, release.pooled(**by, **other).kappa)
