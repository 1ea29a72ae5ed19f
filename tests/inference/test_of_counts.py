"""The probability of a release as a function of the counts: against the laws of the mechanisms, and
how good the interpolation is for two categories.
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp

from opendp_bayes import KNormParameters, LaplaceParameters
from opendp_bayes.inference.likelihood.normalisers import normalisers
from opendp_bayes.inference.likelihood.of_counts import Tabulated, likelihood_of
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import brute_force
from tests.helpers.sweeps import some_of

#: What interpolation may change `ln P(release | counts)` by for two categories.
INTERPOLATION = 2e-3
SMOOTH = [
    SmoothHellingerExponential(4.0),
    SmoothHellingerExponential(2.2, gamma=0.1),
    SmoothHellingerExponential(3.0, beta=0.05),
    HellingerExponential(2.0, "local"),
    HellingerExponential(0.67),
]


@pytest.mark.parametrize(
    "mechanism",
    [
        *(
            LaplaceParameters(1.7, noise, total)
            for noise in ("discrete", "floored")
            for total in ("remainder", "truncated", "bounded")
        ),
        KNormParameters(1.7),
    ],
    ids=repr,
)
def test_noise_is_the_law_of_what_is_drawn_up_to_a_factor(mechanism, release):
    counts = candidates(6, 3)
    for drawn in [(0, 3, 3), (6, 0, 0), (-2, 12, -4), (9, 9, -12)]:
        made = release(mechanism, drawn, 6)
        expected = np.log([brute_force.probability(made, tuple(row)) for row in counts.tolist()])
        ours = likelihood_of(Setting.of(mechanism, 6, np.ones(3)), drawn).log_likelihood(counts)
        assert np.ptp(ours - expected) < 1e-10


@pytest.mark.parametrize(
    ("mechanism", "prior"), some_of(product(SMOOTH, [(1.0, 1.0), (0.1, 3.0)]), 3), ids=repr
)
def test_the_normaliser_between_nodes_for_two_categories(mechanism, prior):
    size, prior = 1000, np.array(prior)
    released = np.array([300, 700])
    first = np.concatenate([np.arange(0, 30), np.arange(31, 1001, 37)])
    counts = np.column_stack([first, size - first])
    ours = likelihood_of(Setting.of(mechanism, size, prior), released).log_likelihood(counts)
    exact = np.array([mechanism.log_pmf(row, prior)[1][300] for row in counts])
    assert np.abs(ours - exact).max() < INTERPOLATION


@pytest.mark.parametrize("mechanism", SMOOTH[1:], ids=repr)
def test_the_normaliser_for_three_categories_is_the_sum(mechanism):
    prior, sets = np.array([0.3, 1.0, 2.0]), candidates(18, 3)
    ours = likelihood_of(Setting.of(mechanism, 18, prior), [2, 6, 10]).log_likelihood(sets)
    drawn = (sets == [2, 6, 10]).all(axis=1)
    exact = [mechanism.log_pmf(row, prior)[1][drawn][0] for row in sets]
    assert ours == pytest.approx(np.array(exact), abs=1e-9)


FLIPS = [
    ((1.0, 1.0), 60, 0.7),
    ((0.3, 4.0), 60, 0.02),
    ((1.0, 1.0), 400, 0.15),
    ((0.01, 0.01), 400, 0.3),
    ((1.0, 0.5, 2.0), 18, 0.9),
    ((1.0, 1.0, 1.0), 40, 0.05),
    ((1.0, 0.5, 2.0), 40, 0.15),
    ((1.0, 1.0), 60, 0.05),
]


def off(mechanism, prior, size, scale):
    """The largest error of `ln P(release | counts)` over some counts and releases."""
    sets, rng, worst = candidates(size, len(prior)), np.random.default_rng(0), 0.0
    for released in sets[rng.choice(len(sets), 3)]:
        rows = rng.choice(len(sets), 30)
        ours = likelihood_of(Setting.of(mechanism, size, prior), released).log_likelihood(
            sets[rows]
        )
        exact = [
            PermuteAndFlip(scale).log_pmf(row, prior)[1][(sets == released).all(axis=1)][0]
            for row in sets[rows]
        ]
        worst = max(worst, float(np.abs(ours - exact).max()))
    return worst


@pytest.mark.parametrize(("prior", "size", "scale"), some_of(FLIPS, 2))
def test_permute_and_flip_by_power_sums(prior, size, scale):
    assert off(PermuteAndFlip(scale), prior, size, scale) < 1e-4


def test_another_scale_is_noticed_and_likelihoods_are_asked_in_batches(release):
    """Negative control."""
    assert off(PermuteAndFlip(0.155), (1.0, 1.0), 400, 0.15) > 1e-2
    made = release(GeometricWithLikelihood(1.5), (5, 7), 12)
    assert isinstance(likelihood_of(made.setting, [5, 7]), Tabulated)


@pytest.mark.parametrize(("scale", "most"), [(0.7, 1e-4), (0.13, 0.05), (0.01, 1e-4)])
def test_permute_and_flip_by_the_sum_of_coins_alone(scale, most):
    """All that is known of data sets which are drawn: where coins are many or few."""
    setting = Setting.of(PermuteAndFlip(scale), 60, np.ones(3))
    sets, rows = candidates(60, 3), np.random.default_rng(0).multinomial(60, np.ones(3) / 3, size=9)
    rows[0] = 10, 20, 30
    likelihood = likelihood_of(setting, rows[0])
    known = normalisers(likelihood.widths, 1, 60, (1.0,) * 3)(rows)
    ours = likelihood.given(rows, known[:, 0], known[:, 1:])
    drawn = (sets == rows[0]).all(axis=1)
    exact = [setting.mechanism.log_pmf(row, np.ones(3))[1][drawn][0] for row in rows]
    assert ours == pytest.approx(np.array(exact), abs=most)


@dataclass(frozen=True)
class Geometric:
    """A mechanism of somebody else: `P(y) ∝ exp(-d(x, y) / scale)`, known by its `log_pmf`
    alone.
    """

    scale: float
    name: ClassVar[str] = "geometric"

    def log_pmf(self, counts, prior):
        counts = np.asarray(counts)
        support = candidates(int(counts.sum()), counts.size)
        weights = -np.abs(support - counts).sum(axis=1) / 2 / self.scale
        return support, weights - logsumexp(weights)


@dataclass(frozen=True)
class GeometricWithLikelihood(Geometric):
    name: ClassVar[str] = "geometric_with_likelihood"

    def log_likelihood(self, released, counts, prior):
        return np.array(
            [
                self.log_pmf(row, prior)[1][
                    (candidates(int(released.sum()), released.size) == released).all(axis=1)
                ][0]
                for row in counts
            ]
        )


@pytest.mark.parametrize("kind", [Geometric, GeometricWithLikelihood])
@pytest.mark.parametrize("counts", [(5, 7), (0, 12), (1, 2, 3)], ids=repr)
def test_a_mechanism_from_a_plugin(kind, counts, release):
    made = release(kind(1.5), counts, sum(counts))
    values = np.linspace(0.05, 0.95, 19)
    assert np.abs(made.posterior.cdf(values) - brute_force.cdf(made, values)).max() < 1e-10


@pytest.mark.parametrize(
    ("mechanism", "counts", "size", "message"),
    [
        (Geometric(1.0), (20, 20, 30), 70, r"2.56e\+03 data sets; .*method log_likelihood"),
        (Geometric(1.0), (2, 3), None, "private number of records.* noise on the counts"),
        (
            GeometricWithLikelihood(1.0),
            (2, 3),
            None,
            "private number of records.* noise on the counts",
        ),
        (KNormParameters(1.0), (1, 2, 3), 7, r"noisy_counts=\[1, 2, 3\]: .*sum to size=7"),
        (HellingerExponential(1.0), (1, 2, 3), 7, r"noisy_counts=\[1, 2, 3\]: .*sum to size=7"),
        *(
            (kind(2.0**50), (1, 2, 3), 6, r"scale=1125899906842624.0: .*at most 1e\+12")
            for kind in (KNormParameters, LaplaceParameters)
        ),
    ],
)
def test_what_has_no_posterior(mechanism, counts, size, message, release):
    with pytest.raises(ValueError, match=message):
        release(mechanism, counts, size).posterior  # noqa: B018


@pytest.mark.parametrize("returned", [np.nan, np.inf, np.zeros((2, 1))], ids=repr)
def test_a_plugin_that_returns_no_log_likelihood(returned):
    class Wrong(Geometric):
        def log_likelihood(self, released, counts, prior):
            return returned + np.zeros(len(counts))

    released = np.array([1, 2])
    with pytest.raises(ValueError, match=r"mechanism='geometric': .* returned nan, .*shape \(2,"):
        likelihood_of(Setting(Wrong(1.0), 3, (1.0, 1.0)), released).log_likelihood(
            np.array([[1, 2], [0, 3]])
        )


@pytest.mark.parametrize("mechanism", [HellingerExponential(0.3), PermuteAndFlip(0.3)], ids=repr)
def test_negative_counts_of_a_mechanism_that_draws_counts_are_refused(mechanism):
    with pytest.raises(ValueError, match=r"noisy_counts=\[-1, 8\]: .*at least 0"):
        likelihood_of(Setting.of(mechanism, 7, np.ones(2)), [-1, 8])
    with pytest.raises(ValueError, match=r"sum to size=7, .* no run"):
        likelihood_of(Setting.of(mechanism, 7, np.ones(2)), [1, 8])
