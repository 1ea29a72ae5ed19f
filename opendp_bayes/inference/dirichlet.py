"""Draws from the Dirichlet and the Dirichlet-multinomial distribution, of posteriors; never of
releases.
"""

import numpy as np
from scipy import special

from opendp_bayes.inference.weights import log_rising_factorial
from opendp_bayes.mathematics.validation import Floats, Integers


def dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """A draw from the Dirichlet distribution of each row, shape `(draws, k)`, also for
    concentrations that underflow a gamma variate.
    """
    log_gamma = (
        np.log(rng.standard_gamma(concentration + 1))
        - rng.standard_exponential(concentration.shape) / concentration
    )
    return special.softmax(log_gamma, axis=1)


def dirichlet_multinomial(
    size: int, prior: Floats, draws: int, rng: np.random.Generator
) -> Integers:
    """Counts of `size` records whose probabilities are drawn from the prior, shape `(draws, k)`."""
    return rng.multinomial(size, dirichlet(np.tile(prior, (draws, 1)), rng))


def log_dirichlet_multinomial(counts: Integers, prior: Floats) -> Floats:
    """The logarithms of their probabilities, shape `(draws,)`."""
    terms = log_rising_factorial(prior, counts) - special.gammaln(counts + 1.0)
    size = counts.sum(axis=1)
    whole = log_rising_factorial(prior.sum(), size) - special.gammaln(size + 1.0)
    return np.asarray(terms.sum(axis=1) - whole)
