"""The evidence of noise on counts, in which shows that all parts of a posterior fit together."""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising


def log_absolute(known: NoisedCategories, counts: Any) -> Any:
    """The logarithm of the weight of one count of each category, shape `(k,)`."""
    noise = [share * look.log_mass(counts) for share, look in known.used]
    return np.asarray(sum(noise, start=log_rising(counts, known.prior)))


def log_evidence(found: CountsGivenNoise) -> float:
    """`ln P(drawn)`, with a public or a private number of records."""
    prior, times = found.categories.prior, found._times
    _ = found.probabilities
    constant = special.gammaln(prior.sum()) - special.gammaln(prior).sum()
    constant += times @ log_absolute(found._leaves, found._numbers.counts.anchor)
    return float(found.log_evidence + constant)
