"""What was drawn decides the engine, and nothing is computed before that is asked for."""

import numpy as np
import pytest

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.engines import Listed, TwoCategories
from opendp_bayes.inference.sampling.importance import Weighted
from opendp_bayes.inference.ways import check_posterior, way_to
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip
from tests.helpers.shortened import interpolate_less

EXPONENTIAL = HellingerExponential(0.1)
#: What is drawn, and the engine that finds its posterior.
ENGINES = {
    "Laplace noise, n private": (
        LaplaceParameters(2.0, total="private"),
        (3, 0, 9),
        None,
        CountsGivenNoise,
    ),
    "Gaussian noise": (GaussianParameters(2.0), (3, 0, 9), 12, CountsGivenNoise),
    "noise on the shell of a norm": (KNormParameters(2.0), (3, 0, 9), 12, CountsGivenNoise),
    "two weighed categories": (EXPONENTIAL, (3, 9), 12, TwoCategories),
    "two that are flipped": (PermuteAndFlip(0.1), (3, 9), 12, TwoCategories),
    "few data sets": (EXPONENTIAL, (3, 0, 9), 12, Listed),
    "many data sets": (EXPONENTIAL, (300, 0, 900), 1200, Weighted),
    "many that are flipped": (PermuteAndFlip(0.1), (30, 0, 110), 140, Weighted),
    "no records": (KNormParameters(2.0), (0, 0, 0), 0, Listed),
}


@pytest.mark.parametrize("name", ENGINES)
def test_what_was_drawn_decides_the_engine(name, release, monkeypatch):
    interpolate_less(monkeypatch)
    mechanism, drawn, size, kind = ENGINES[name]
    made = release(mechanism, drawn, size)
    found = way_to(made)
    exact = found.exact()
    assert (None if exact is None else type(exact)) is (None if kind is Weighted else kind)
    assert type(found.engine(None, 200, np.random.default_rng(0))) is kind
    check_posterior(made)


def test_nothing_is_computed_before_it_is_asked_for(release, monkeypatch):
    made = release(LaplaceParameters(2.0, total="private"), (3, 0, 9), None)

    def computed(*given, **options):
        raise AssertionError

    monkeypatch.setattr(CountsGivenNoise, "of", computed)
    check_posterior(made)
    with pytest.raises(AssertionError):
        way_to(made).exact()
