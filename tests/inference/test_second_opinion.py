"""The second look at draws agrees with right ones and not with draws that miss an atom or a peak;
what is said of an interpolation is what it is off by.
"""

import numpy as np
import pytest
from scipy import special

from opendp_bayes import noise_aware_posterior
from opendp_bayes.inference.engines import Listed
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.sampling import interpolated_normaliser as normaliser, markov_chain
from opendp_bayes.inference.sampling.importance import Weighted
from opendp_bayes.inference.sampling.interpolated_normaliser import climbed, disagreement, expected
from opendp_bayes.mechanisms import SmoothHellingerExponential
from tests.helpers import calibration, oracles

SIZE = 60
SETS = np.array(oracles.data_sets(SIZE, 3))
#: More standard errors than this are warned about.
LARGEST = 5.0
PRIOR = np.array([0.1, 1.0, 1.0])


def near(released, scale):
    def log_likelihood(counts):
        return -(((counts - np.array(released)) / scale) ** 2).sum(axis=1) / 2

    return log_likelihood


def two_peaks(counts):
    """A narrow one near the release, and one of four times its weight elsewhere."""
    first, second = near((50, 5, 5), 1.0)(counts), near((10, 10, 40), 2.0)(counts)
    return np.logaddexp(first, second)


def look(log_likelihood, prior, seen=None, seed=0):
    log_weights = log_likelihood(SETS) + log_rising(SETS, prior).sum(axis=1)
    if seen is not None:
        log_weights = np.where(seen, log_weights, -np.inf)
    rng, released = np.random.default_rng(seed), np.array([50, 5, 5])
    found = Listed(SETS, log_weights, prior)
    return disagreement(found, 4000.0, log_likelihood, released, rng)


def test_right_draws_agree_and_atoms_and_peaks_without_draws_are_noticed():
    """Where a prior of 0.001 says that a category is empty, in spite of five records released."""
    flat = np.ones(3)
    found = [look(near((50, 5, 5), 3.0), prior) for prior in (flat, np.full(3, 1e-3))]
    found.append(look(two_peaks, flat))
    assert max(found) < LARGEST
    assert min(found) > 0  # it says something
    prior, log_likelihood = np.full(3, 1e-3), near((50, 5, 5), 3.0)
    some = (SETS > 0).all(axis=1)
    weights = special.softmax(log_likelihood(SETS) + log_rising(SETS, prior).sum(axis=1))
    assert weights[some].sum() < 0.9
    assert look(log_likelihood, prior, some) > LARGEST
    at_release = SETS[:, 0] > 35
    assert look(two_peaks, np.ones(3), at_release) > LARGEST


def test_errors_of_weighted_draws_and_climbs_end_at_the_top():
    """Where the heavy ones are far out, which their effective number does not know."""
    rng, means, squares = np.random.default_rng(2), [], []
    for _ in range(400):
        far = rng.random(1000) < 0.02
        rows = np.where(far[:, None], (60, 0, 0), (20, 20, 20))
        found = Weighted(rows, np.where(far, np.log(10.0), 0.0), PRIOR)
        mean, square = expected(found, float(found.diagnostics.ess[0]))
        means.append(mean)
        squares.append(square)
    assert np.mean(squares, axis=0) == pytest.approx(np.var(means, axis=0), rel=0.25)
    prior = np.array([0.01, 1.0, 1.0])
    heights = two_peaks(SETS) + log_rising(SETS, prior).sum(axis=1)
    starts = np.array([[50, 5, 5], [20, 20, 20], [0, 0, 60]])
    assert climbed(two_peaks, starts, prior).tolist() == SETS[np.argmax(heights)].tolist()


@pytest.mark.slow
def test_what_is_said_of_an_interpolation_is_of_the_last_one(release, monkeypatch):
    """After the draws are made of it, and against estimates that it was not made of."""
    made = release(SmoothHellingerExponential(10.0, gamma=0.05), (300, 900, 800), 2000)
    errors, tested = [], normaliser.LogNormaliser.tested

    def kept(self, found, rng):
        result = tested(self, found, rng)
        known = {tuple(row) for row in self._counts.tolist()}
        new = [tuple(row) not in known for row in result.counts.tolist()]
        errors.append((result.error, len(result.counts), np.mean(new), len(found.rows)))
        return result

    monkeypatch.setattr(normaliser.LogNormaliser, "tested", kept)
    posterior = noise_aware_posterior(made)
    last = errors[-1]
    assert len(errors) >= 2
    assert posterior.diagnostics.log_error == last[0] > 0
    assert last[1] >= 10
    assert last[2] > 0.9
    assert last[3] == posterior.diagnostics.draws
    assert posterior.diagnostics.disagreement < LARGEST
    for each in (posterior.merged({"x": ["a", "b"]}), posterior.given(["a", "c"])):
        assert each.diagnostics.log_error == last[0]
        assert each.diagnostics.disagreement == posterior.diagnostics.disagreement


@pytest.mark.parametrize(
    "name", ["_LARGEST_DISAGREEMENT", pytest.param("_LARGEST_LOG_ERROR", marks=pytest.mark.slow)]
)
def test_what_is_larger_than_stated_is_warned_about(name, release, monkeypatch):
    made = release(SmoothHellingerExponential(10.0), (300, 900, 800), 2000)
    noise_aware_posterior(made, ess=100)  # without a warning
    monkeypatch.setattr(markov_chain, name, 1e-6)
    with pytest.warns(UserWarning, match="standard errors away"):
        noise_aware_posterior(made, ess=100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_narrow_peak_at_the_release_below_the_top_is_no_disagreement(release, seed):
    """The posterior is highest where the first category is empty, and its peak at the release holds
    much of it all the same.
    """
    mechanism = calibration.Cell("EHDS, γ = 1", 3, 2000, 0.5).scaled(PRIOR)
    made = release(mechanism, (906, 740, 354), 2000, PRIOR.tolist())
    found = noise_aware_posterior(made, ess=500, random_state=seed)
    assert found.diagnostics.disagreement < LARGEST
