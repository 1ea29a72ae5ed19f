"""The engine for counts on a tree against ball arithmetic, and against the engine of today where a
reference by ball arithmetic is out of reach.
"""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.tree.counts_on_tree import CountsOnTree
from tests.helpers import settings
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace
from tests.helpers.sweeps import some_of

ERROR = 1e-3


def in_the_envelope(made):
    return made["prior"].min() >= 1e-4 and made["prior"].max() <= 1e6 and made["scale"] >= 1e-3


@pytest.mark.parametrize("seed", some_of(range(60), 12))
def test_random_settings_with_a_public_number_of_records(seed, monkeypatch):
    made = settings.setting(np.random.default_rng(seed), most=100)
    if not in_the_envelope(made):
        return
    monkeypatch.setattr(settings, "CountsGivenNoise", CountsOnTree)
    found = settings.deviations(settings.posterior(made), settings.exact(made))
    assert max(found.values()) <= ERROR, (found, made)


@pytest.mark.parametrize("seed", some_of(range(60), 8))
def test_random_settings_with_a_private_number_of_records(seed, monkeypatch):
    made = settings.private_setting(np.random.default_rng(seed), most=60)
    if made is None or not in_the_envelope(made):
        return
    monkeypatch.setattr(settings, "CountsGivenNoise", CountsOnTree)
    found = settings.deviations(settings.posterior(made), settings.exact(made))
    assert max(found.values()) <= ERROR, (found, made)


def wide(k, size, scale, law=DiscreteLaplace):
    rng = np.random.default_rng(k)
    counts = rng.multinomial(size, rng.dirichlet(np.ones(k)))
    return counts + law(scale).simulate((k,), rng), np.ones(k), law(scale)


@pytest.mark.parametrize(
    ("k", "size", "scale", "public"),
    [(100, 5000, 10.0, True), (100, 5000, 10.0, False), (20, 10**7, 1e4, True)],
)
def test_many_categories_have_the_posterior_of_today(k, size, scale, public):
    drawn, prior, law = wide(k, size, scale)
    known = size if public else None
    found = CountsOnTree(drawn, prior, law, size=known)
    right = CountsGivenNoise(drawn, prior, law, size=known)
    deviation = np.sqrt(right.probabilities.variance())
    assert np.abs(found.probabilities.mean() - right.probabilities.mean()).max() <= (
        ERROR * deviation.min()
    )
    assert np.sqrt(found.probabilities.variance()) == pytest.approx(deviation, rel=ERROR)
    assert found.counts.mean() == pytest.approx(right.counts.mean(), rel=ERROR)
    at = right.probabilities.quantile([[0.01], [0.3], [0.9]])
    assert found.probabilities.cdf(at) == pytest.approx(right.probabilities.cdf(at), abs=ERROR)


def test_groups_and_some_categories_have_the_posterior_of_today():
    drawn, prior, law = wide(9, 400, 12.0, DiscreteGaussian)
    found, right = (
        engine(drawn, prior, law, size=400) for engine in (CountsOnTree, CountsGivenNoise)
    )
    groups = [[0, 3], [0, 3, 5, 6], [7, 8]]
    for (own, theta), (law_of, theta_of) in zip(
        found.together(groups), right.together(groups), strict=True
    ):
        assert own.mean() == pytest.approx(law_of.mean(), abs=ERROR * law_of.std()[0])
        assert theta.variance() == pytest.approx(theta_of.variance(), rel=2 * ERROR)
    some, some_of_today = found.given([5, 1, 2]), right.given([5, 1, 2])
    assert some.counts.mean() == pytest.approx(some_of_today.counts.mean(), rel=ERROR)
    assert some.probabilities.mean() == pytest.approx(some_of_today.probabilities.mean(), rel=ERROR)


def test_the_comparison_sees_a_scale_that_is_a_tenth_off():
    """The negative control."""
    drawn, prior, law = wide(9, 400, 12.0)
    found = CountsOnTree(drawn, prior, law, size=400).counts.std()
    wrong = CountsGivenNoise(drawn, prior, DiscreteLaplace(13.2), size=400).counts.std()
    assert np.abs(found / wrong - 1).max() > 10 * ERROR
