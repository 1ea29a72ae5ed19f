"""Pooled groups of one table, whose counts have public sums: against sums over all data sets."""

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.public_total import PublicTotal
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.results.release import GroupedRelease
from tests.helpers import oracles
from tests.helpers.pooled_ranks import KAPPA
from tests.helpers.releases import changed, guarantee
from tests.helpers.shortened import shorten

SIZE, DRAWN = 8, (3, 0, 1, 2, 1, 1)
KNORM, LAPLACE = ob.KNormParameters(1.0), ob.LaplaceParameters(1.0)
GAUSSIAN = ob.GaussianParameters(1.5)
CELLS = tuple((region, vote) for region in ("n", "s", "w") for vote in ("yes", "no"))
TABLE = ob.Release(DRAWN, CELLS, (1.0,) * 6, KNORM, guarantee(SIZE), ("region", "vote"))
#: Two groups and, last, the records in none.
GROUPS = GroupedRelease(
    ("n", "s"), ((4, -1), (1, 3)), ("yes", "no"), (1.0, 1.0), KNORM, guarantee(SIZE), rest=1
)


def log_noise(mechanism, drawn, sets):
    off = np.abs(np.array(drawn) - sets)
    if isinstance(mechanism, ob.GaussianParameters):
        return -(off**2).sum(axis=1) / 2 / mechanism.scale**2
    if isinstance(mechanism, ob.KNormParameters):
        return -off.sum(axis=1) / 2 / mechanism.scale
    return -off[:, :-1].sum(axis=1) / mechanism.scale  # the last is what remains


def exact(release, kappa_prior=KAPPA, points=20):
    """Expected ln κ, the first entry of m, and of each group the probability of its first category
    and its number of records, with their standard deviations: by sums over all data sets of two
    categories, and integrals over κ and m.
    """
    rest = [] if isinstance(release, ob.Release) else [release.rest]
    drawn = np.append(np.ravel(release.noisy_counts), rest).astype(int)
    sets = np.array(oracles.data_sets(release.size, drawn.size))
    counts = sets[:, : drawn.size - len(rest)].reshape(len(sets), -1, 2)
    if getattr(release, "sizes", None) is not None:
        kept = np.all(counts.sum(axis=2) == release.sizes, axis=1)
        sets, counts = sets[kept], counts[kept]
    middles = (np.arange(points) + 0.5) / points
    grid = np.meshgrid(kappa_prior.ppf(middles), middles)
    kappa, share = (along.ravel()[:, None] for along in grid)
    a, b = kappa * share, kappa * (1 - share)
    log_weight = log_noise(release.mechanism, drawn, sets) + np.zeros((kappa.size, 1))
    values = [np.log(kappa) + 0 * log_weight, share + 0 * log_weight]
    for x, y in counts.transpose(1, 2, 0):
        log_weight = log_weight + special.betaln(a + x, b + y) - special.betaln(a, b)
        log_weight += special.gammaln(x + y + 1) - special.gammaln(x + 1) - special.gammaln(y + 1)
        values += [(a + x) / (kappa + x + y), np.broadcast_to(x + y, log_weight.shape)]
    weights = special.softmax(log_weight)
    mean = np.array([(weights * value).sum() for value in values])
    squares = np.array([(weights * value**2).sum() for value in values])
    return mean, np.sqrt(np.maximum(squares - mean**2, 1e-12))


def found_by(pooled):
    found = [np.log(pooled.kappa).mean(), pooled.m[:, 0].mean()]
    for one in pooled.values():
        records = one.concentration.sum(axis=1) - pooled.kappa
        found += [one.mean()[0], records.mean()]
    return np.array(found)


def with_mechanism(release, mechanism):
    return changed(release, mechanism=mechanism)


SETTINGS = {
    "table, K-norm": TABLE,
    "table, remainder": with_mechanism(TABLE, LAPLACE),
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


@pytest.mark.parametrize("kappa", [0.1, 3.5, 10.0])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_few_records_of_a_public_number_are_as_probable_as_all_tables_say(
    kappa: float, share: float
) -> None:
    """Of two groups by two categories, up to the error of a normal law for 15 records."""
    drawn, noise, total = np.array([[9, 1], [2, 3]]), DiscreteLaplace(1.0), 15
    noisy = DrawnCounts.of(drawn, noise, np.array([[True, True], [True, False]]))
    evidence, a = PublicTotal(noisy, drawn, total, None), kappa * np.array([share, 1 - share])
    counts = np.array(oracles.data_sets(total, 4), dtype=np.float64).reshape(-1, 2, 2)
    log_p = (log_rising_factorial(a, counts) - special.gammaln(counts + 1)).sum(axis=(1, 2))
    sizes = counts.sum(axis=2)
    log_p += (special.gammaln(sizes + 1) - log_rising_factorial(a.sum(), sizes)).sum(axis=1)
    log_p += noise.log_mass((drawn - counts).reshape(-1, 4)[:, :3]).sum(axis=1)
    for others in (1e-3 * a, 1e3 * a):  # what was asked before does not matter
        evidence.log_p(others)
        assert evidence.log_p(a) - special.logsumexp(log_p) == pytest.approx(1.2, abs=0.8)
    # The count that takes what the others leave is 0 as often as it should be.
    rng = np.random.default_rng(1)
    draws, log_weights = zip(*(evidence.counts(a, 1, rng) for _ in range(300)), strict=True)
    weights = special.softmax(log_weights)
    is_zero = np.concatenate(draws)[:, 1, 1] == 0
    right = special.softmax(log_p)[counts[:, 1, 1] == 0].sum()
    error = np.sqrt(weights**2 @ (is_zero - right) ** 2)
    assert abs(weights @ is_zero - right) < 5 * error
