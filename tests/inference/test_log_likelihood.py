"""Log-likelihoods of releases against sums over all data sets by their definition, their gradients
against differences, and a sampler of another package.
"""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import integrate, optimize, signal, special, stats

import opendp_bayes as ob
from opendp_bayes.inference import log_likelihood as module
from opendp_bayes.inference.convolution.tilted_counts import CategoriesOfShares
from tests.helpers import brute_force, oracles
from tests.helpers.releases import grouped, guarantee, release as made
from tests.helpers.sweeps import some_of

THETAS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.05, 0.9, 0.05], [0.002, 0.008, 0.99]])
PUBLIC = {
    "discrete": (ob.LaplaceParameters(1.5), (7, 2, 3)),
    "floored": (ob.LaplaceParameters(1.5, "floored"), (9, 5, -2)),
    "noise on all": (ob.LaplaceParameters(0.7, total="private"), (6, 2, 1)),
    "K-norm": (ob.KNormParameters(2.0), (15, -4, 1)),
    "Gaussian": (ob.GaussianParameters(1.2), (5, 3, 4)),
}
PRIVATE = {
    "discrete": (ob.LaplaceParameters(0.4, total="private"), (4, 1, 2)),
    "negative": (ob.LaplaceParameters(0.4, total="private"), (-3, 2, 0)),
    "Gaussian": (ob.GaussianParameters(0.7, total="private"), (4, 1, 2)),
}


def released(case, size):
    mechanism, drawn = case
    return ob.Release(drawn, ("a", "b", "c"), (1.0, 0.5, 2.0), mechanism, guarantee(size))


def by_definition(release, largest=16):
    """A function of theta: the sum over data sets of their probability given theta times that of
    what was drawn given them; with a private number of records every number is equally probable.
    """
    sets = np.array(list(product(range(largest + 1), repeat=release.k)))
    if release.size is not None:
        sets = sets[sets.sum(axis=1) == release.size]
    drawn = [brute_force.probability(release, counts) for counts in map(tuple, sets.tolist())]
    return lambda theta: math.log(drawn @ stats.multinomial.pmf(sets, sets.sum(axis=1), theta))


def check(release, function, tolerance=1e-9):
    """Up to a constant, at all thetas."""
    found = function(THETAS)
    wanted = np.array(list(map(by_definition(release), THETAS)))
    assert found - found[0] == pytest.approx(wanted - wanted[0], abs=tolerance)


@pytest.mark.parametrize("name", PUBLIC)
def test_of_probabilities_and_counts_with_a_public_number_of_records(name):
    release = released(PUBLIC[name], 12)
    check(release, ob.log_likelihood(release))
    counts = np.array([[5, 3, 4], [12, 0, 0], [4, 4, 4]])
    found = ob.log_likelihood(release).of_counts(counts)
    wanted = np.log([brute_force.probability(release, tuple(row)) for row in counts.tolist()])
    assert found - found[0] == pytest.approx(wanted - wanted[0], abs=1e-9)


@pytest.mark.parametrize("name", PRIVATE)
def test_of_probabilities_with_a_private_number_of_records(name):
    """Beyond 16 records in a category the noise has a mass below 1e-12 of its largest."""
    release = released(PRIVATE[name], None)
    check(release, ob.log_likelihood(release), 1e-8)


def test_another_noise_is_noticed():
    """Negative control."""
    release = released(PUBLIC["discrete"], 12)
    other = released((ob.LaplaceParameters(1.6), (7, 2, 3)), 12)
    with pytest.raises(AssertionError):
        check(release, ob.log_likelihood(other))


@pytest.mark.parametrize(
    ("case", "size"),
    some_of(
        [*((PUBLIC[name], 12) for name in PUBLIC), *((PRIVATE[name], None) for name in PRIVATE)], 4
    ),
)
def test_the_gradient_is_that_of_differences(case, size):
    of = ob.log_likelihood(released(case, size))
    gradient, step = of.gradient(THETAS), 1e-5 * THETAS
    for i in range(3):
        moved = np.zeros_like(THETAS)
        moved[:, i] = step[:, i]
        difference = (of(THETAS + moved) - of(THETAS - moved)) / (2 * step[:, i])
        assert gradient[:, i] == pytest.approx(difference, rel=1e-5, abs=1e-5)
    assert (gradient * THETAS).sum(axis=1) == pytest.approx(0, abs=1e-7)
    # Of what is not divided by its sum yet, too
    assert of(3 * THETAS) == pytest.approx(of(THETAS))
    assert of.gradient(3 * THETAS) == pytest.approx(gradient / 3)


def test_impossible_counts_have_no_probability():
    of = ob.log_likelihood(released(PUBLIC["discrete"], 12))
    assert of.of_counts([[13, -1, 0], [1, 1, 1]]).tolist() == [-math.inf] * 2


def tilted(mechanism, drawn, theta, size, log_total):
    """Logarithms of `θ^x P(drawn | x) / x!` with a tilt, for all counts of all categories."""
    law, counts = mechanism.law(size, np.ones(len(drawn))), np.arange(size + 1)
    return [
        counts * (log_total + np.log(share))
        - special.gammaln(counts + 1.0)
        + (law.noise.log_mass(own - counts) if noised else 0.0)
        for own, share, noised in zip(drawn, theta, law.noised, strict=True)
    ]


def convolved(mechanism, drawn, theta, size):
    """The log-likelihood of probabilities, and the mean of the first count, by arrays with an entry
    for every count, tilted so that the sum is not far out.
    """

    def excess(log_total):
        rows = tilted(mechanism, drawn, theta, size, log_total)
        return sum(special.softmax(row) @ np.arange(size + 1) for row in rows) - size

    log_total = optimize.brentq(excess, math.log(size) - 60, math.log(size) + 60)
    rows = tilted(mechanism, drawn, theta, size, log_total)
    first, *others = map(special.softmax, rows)
    rest = others[0]
    for law in others[1:]:
        rest = signal.fftconvolve(rest, law)[: size + 1]
    weights = first * np.maximum(rest[::-1], 0)
    value = math.log(weights.sum()) + sum(map(special.logsumexp, rows))
    value += math.lgamma(size + 1) - size * log_total
    return value, weights @ np.arange(size + 1) / weights.sum()


MANY = {
    "two, one of them unknown": (ob.LaplaceParameters(300.0), (9_000, 11_000), 20_000),
    "two, wide": (ob.LaplaceParameters(4e3, total="private"), (9_500, -3_000), 20_000),
    "three, kinks": (ob.LaplaceParameters(500.0, total="private"), (9_000, 300, 3_000), 12_000),
    "three, narrow": (ob.LaplaceParameters(0.05, total="private"), (900, 70, 31), 1_001),
    "far from the size": (ob.LaplaceParameters(3.0, total="private"), (900, 70, 10), 2_000),
    "floored": (ob.LaplaceParameters(80.0, "floored"), (4_000, 700, 300), 5_000),
    "Gaussian": (ob.GaussianParameters(700.0, total="private"), (9_000, 9, 5_000, 900), 15_000),
    "K-norm": (ob.KNormParameters(60.0), (2_000, 900, 500, 300, 200, 100), 4_000),
}


@pytest.mark.parametrize("name", some_of(MANY, 3))
def test_many_records_against_arrays_of_all_counts(name):
    mechanism, drawn, size = MANY[name]
    k, rng = len(drawn), np.random.default_rng(0)
    release = made(drawn, (*"abcdef"[:k],), mechanism, size)
    of = ob.log_likelihood(release)
    share = np.maximum(drawn, 20) / np.maximum(drawn, 20).sum()
    thetas = np.stack([share, np.full(k, 1 / k), rng.dirichlet(np.ones(k))])
    noise = mechanism
    if isinstance(mechanism, ob.KNormParameters):  # of counts that sum to what was drawn
        noise = ob.LaplaceParameters(2 * mechanism.scale, total="private")
    wanted, means = np.array([convolved(noise, drawn, theta, size) for theta in thetas]).T
    found = of(thetas)
    assert found - found[0] == pytest.approx(wanted - wanted[0], abs=1e-5)
    # The gradient times the probability is the mean count less n times the probability.
    assert of.gradient(thetas)[:, 0] * thetas[:, 0] + size * thetas[:, 0] == pytest.approx(
        means, rel=1e-6, abs=1e-4
    )


@pytest.mark.parametrize(
    ("mechanism", "drawn"),
    [
        (ob.LaplaceParameters(15.0, total="private"), (3, 50, 20, -4)),
        pytest.param(
            ob.LaplaceParameters(150.0, total="private"), (900, 30, 2), marks=pytest.mark.slow
        ),
        (ob.GaussianParameters(40.0, total="private"), (300, -80)),
    ],
)
def test_a_private_number_against_an_integral_over_rates(mechanism, drawn):
    """`∫ dt ∏ S_i(t θ_i)` by another integrator and sums over every count, with kinks and for
    probabilities that do not fit.
    """
    k = len(drawn)
    release = made(drawn, (*"abcd"[:k],), mechanism)
    noise, counts = mechanism.law(None, np.ones(k)).noise, np.arange(6_000)
    noises = np.exp([noise.log_mass(own - counts) for own in drawn])
    own = np.maximum(drawn, 5) / np.maximum(drawn, 5).sum()
    thetas = np.stack([own, np.full(k, 1 / k)])

    def logarithm(theta):
        def integrand(t):
            masses = stats.poisson.pmf(counts, t * theta[:, None])
            return np.prod(np.sum(masses * noises, axis=1)) * scale

        middle = float(np.maximum(drawn, 5).sum())
        scale = 1.0
        scale = 1 / integrand(middle)
        ends = [0.0, middle / 2, middle, 2 * middle, 8 * middle]
        parts = [
            integrate.quad(integrand, *pair, epsabs=1e-10, epsrel=1e-9)[0]
            for pair in pairwise(ends)
        ]
        return math.log(sum(parts) / scale)

    found = ob.log_likelihood(release)(thetas)
    assert found[1] - found[0] == pytest.approx(
        logarithm(thetas[1]) - logarithm(thetas[0]), abs=1e-5
    )


@pytest.mark.parametrize("size", [None, 3000])
def test_shares_next_to_nothing(size):
    """Nearly all records are in one category: of the others a sum has a few, on a coarse lattice of
    thousands of numbers.
    """
    noise = ob.LaplaceParameters(300.0, total="private")
    release = made((2500, 300), ("a", "b"), noise, size)
    shares = np.array([[0.9, 0.1], [1 - 1e-10, 1e-10]])
    counts = np.arange(12_000)
    log_mass = [noise.law(size, np.ones(2)).noise.log_mass(own - counts) for own in (2500, 300)]

    def by_sums(theta):
        if size is not None:
            return special.logsumexp(
                stats.binom.logpmf(counts, size, theta[0])
                + log_mass[0]
                + np.where(counts <= size, log_mass[1][np.maximum(size - counts, 0)], -np.inf)
            )
        # Of a private number all are summed: x of the first, with y of the other, few.
        few = np.arange(3000)[:, None]
        orders = special.gammaln(counts + few + 1) - special.gammaln(counts + 1)
        logs = orders + counts * np.log(theta[0]) + few * np.log(theta[1])
        logs -= special.gammaln(few + 1)
        return special.logsumexp(logs + log_mass[0] + log_mass[1][:3000, None])

    of = ob.log_likelihood(release)(shares)
    assert of[1] - of[0] == pytest.approx(by_sums(shares[1]) - by_sums(shares[0]), abs=1e-4)


def test_probabilities_far_from_what_was_drawn():
    """By a factor of `exp(-14 000)`, which may be none at all."""
    drawn = (64_612_657, 21_839_190, 13_094_462)
    noise = ob.LaplaceParameters(5600.0, total="private")
    release = made(drawn, ("a", "b", "c"), noise)
    near, far = ob.log_likelihood(release)([np.array(drawn) / sum(drawn), [0.132, 0.214, 0.654]])
    assert near > far + 1e4


def test_probabilities_that_what_was_drawn_rules_out(monkeypatch):
    def refused(*_, **__):
        raise ValueError("size")

    of = ob.log_likelihood(released(PUBLIC["discrete"], 12))
    monkeypatch.setattr(module, "CountsGivenNoise", refused)
    assert of([0.2, 0.3, 0.5]) == -math.inf
    assert np.isnan(of.gradient([0.2, 0.3, 0.5])).all()


@pytest.mark.parametrize("size", [None, 10**9])
@pytest.mark.parametrize("scale", [2.0, 1e4])
def test_the_work_does_not_grow_with_the_records(size, scale, monkeypatch):
    """Points at which counts are looked at: some hundreds for each law, of up to 1e9 counts."""
    looked = []

    class Watched(CategoriesOfShares):
        def log_weight(self, category, counts, anchor):
            looked.append(np.size(counts) / anchor.size)
            return super().log_weight(category, counts, anchor)

    monkeypatch.setattr(module, "CategoriesOfShares", Watched)
    drawn = (6 * 10**8, 3 * 10**8, 10**8)
    noise = ob.LaplaceParameters(scale, total="private")
    release = made(drawn, ("a", "b", "c"), noise, size)
    theta = np.array(drawn) / 10**9
    of = ob.log_likelihood(release)
    assert of(theta) > of(theta + np.array([1e-4, -1e-4, 0]))
    assert max(looked) < 30_000


@pytest.mark.parametrize("sizes", [(20, 40), (None, None)])
def test_releases_of_different_records_weigh_draws(sizes):
    """Draws given one, weighted by the likelihood of the other, against the product of both on a
    grid; not weighted they are another posterior.
    """
    noise = ob.LaplaceParameters(1.5, total="private")
    drawn, labels = ((13, 8), (19, 21)), ("a", "b")
    one, other = (
        made(*row, noise, size)
        for row, size in zip([(counts, labels) for counts in drawn], sizes, strict=True)
    )
    draws = one.posterior.sample(400, random_state=0)
    weights = special.softmax(ob.log_likelihood(other)(draws))
    grid = (np.arange(80) + 0.5) / 80
    shares = np.stack([grid, 1 - grid], axis=1)
    density = special.softmax(ob.log_likelihood(one)(shares) + ob.log_likelihood(other)(shares))
    mean = density @ grid
    error = np.sqrt((density @ (grid - mean) ** 2) * (weights**2).sum())
    far = stats.norm.isf(oracles.FALSE_ALARM / 2)
    assert abs(weights @ draws[:, 0] - mean) < far * error
    assert abs(draws[:, 0].mean() - mean) > far * error


def test_what_has_no_likelihood_of_its_own_or_no_records():
    groups = grouped(((1, 2), (3, 4)))
    wrong = {"GroupedRelease": groups, "Noise": groups["g"].posterior, "int": 3}
    functions = ob.log_likelihood, ob.noise_aware_posterior
    for function, (kind, given) in product(functions, wrong.items()):
        with pytest.raises(TypeError, match=rf"release: must be a Release, not {kind}.*grouped"):
            function(given)
    table = grouped(((5, 5), (4, 4)), ob.KNormParameters(1.0), 20, rest=2)
    with pytest.raises(ValueError, match=r"one group .* release\.whole"):
        ob.log_likelihood(table["g"])
    assert np.isfinite(ob.log_likelihood(table.whole)([0.2] * 5))
    many = made((500,) * 4, (*"abcd",), ob.mechanisms.HellingerExponential(0.1), 2000)
    with pytest.raises(ValueError, match=r"release: .* needs noise on the counts"):
        ob.log_likelihood(many)
    nothing = made((3, -3), ("a", "b"), ob.LaplaceParameters(2.0), 0)
    assert np.ptp(ob.log_likelihood(nothing)([[0.5, 0.5], [0.1, 0.9]])) == 0


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([0.5, 0.5], "has shape"),
        ([0.5, 0.5, 0.0], "positive and finite"),
        ([math.nan] * 3, "posit"),
    ],
)
def test_probabilities_that_are_none_are_refused(theta, message):
    of = ob.log_likelihood(released(PUBLIC["discrete"], 12))
    with pytest.raises(ValueError, match=f"theta: .*{message}"):
        of(theta)
    with pytest.raises(TypeError, match=r"theta=.*: must be a number"):
        of({"a": 0.5, "b": 0.25, "c": 0.25})
    with pytest.raises(ValueError, match=r"counts: .*integers of shape"):
        of.of_counts([0.5, 0.5, 11.0])
