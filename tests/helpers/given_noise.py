"""The engine for counts with noise, of one draw."""

import numpy as np

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts


def given_noise(drawn, prior, noise, noised=True, **known):
    """The posterior of counts that were drawn once."""
    return CountsGivenNoise.of([DrawnCounts.of(drawn, noise, noised)], prior, **known)


def categories_of(drawn, prior, noise, noised=True):
    """The weights of every category, drawn once."""
    return NoisedCategories((DrawnCounts.of(drawn, noise, noised),), np.asarray(prior, dtype=float))
