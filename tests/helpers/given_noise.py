"""The engine for counts with noise, of one draw, and its evidence, in which shows that all parts of
a posterior fit together.
"""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.tilted_counts import NoisedCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts


def given_noise(drawn, prior, noise, noised=True, **known):
    """The posterior of counts that were drawn once."""
    return CountsGivenNoise.of([DrawnCounts.of(drawn, noise, noised)], prior, **known)


def categories_of(drawn, prior, noise, noised=True):
    """The weights of every category, drawn once."""
    return NoisedCategories((DrawnCounts.of(drawn, noise, noised),), np.asarray(prior, dtype=float))


def log_absolute(known: NoisedCategories, counts: Any) -> Any:
    """The logarithm of the weight of one count of each category, shape `(k,)`."""
    noise = [share * look.log_mass(counts) for share, look in known.used]
    return np.asarray(sum(noise, start=log_rising(counts, known.prior)))


def log_evidence(found: CountsGivenNoise) -> float:
    """`ln P(drawn)`, with a public or a private number of records."""
    prior = found.categories.prior
    return float(found.log_evidence + special.gammaln(prior.sum()) - special.gammaln(prior).sum())
