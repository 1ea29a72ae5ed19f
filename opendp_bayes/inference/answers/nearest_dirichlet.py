"""The Dirichlet distribution nearest to a posterior, for pipelines that take conjugate priors."""

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats

_MOST_STEPS, _TOLERANCE = 500, 1e-12


def nearest_dirichlet(marginals: BetaMixtures) -> Floats:
    """The concentration of the Dirichlet distribution D with the smallest `KL(posterior || D)`,
    shape `(k,)`: the one with the same expected values of every `ln θ_i`.

    Source: Minka, "Estimating a Dirichlet distribution" (2000), section 1, Newton's method.
    """
    logs = special.digamma(marginals.a) - special.digamma(marginals.a + marginals.b)
    wanted = Segments(marginals.start).sums(marginals.weights * logs)
    mean, variance = marginals.mean(), marginals.variance()
    spread = mean * (1 - mean)
    concentration = mean * max(spread.sum() / variance.sum() - 1, 1e-3)
    for _ in range(_MOST_STEPS):
        total = concentration.sum()
        gradient = special.digamma(total) - special.digamma(concentration) + wanted
        curved = -special.polygamma(1, concentration)
        common = special.polygamma(1, total)
        shift = (gradient / curved).sum() / (1 / common + (1 / curved).sum())
        step = (gradient - shift) / curved
        # A step of Newton, shortened so that no entry falls below a tenth.
        moved = np.maximum(concentration - step, concentration / 10)
        done = np.all(np.abs(moved - concentration) <= _TOLERANCE * concentration)
        concentration = moved
        if done:
            break
    return concentration
