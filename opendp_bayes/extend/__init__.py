"""The tools for a mechanism of your own: validation, candidates, exact sampling and certified
losses. See `docs/extending.md`. What needs OpenDP is in `opendp_bayes.extend.framework`.
"""

from opendp_bayes.mathematics.rounding import lower_end, round_down, round_up, upper_end
from opendp_bayes.mathematics.simplex import (
    candidate,
    candidate_sums,
    candidates,
    check_enumerable,
    number_of_candidates,
)
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import (
    as_choice,
    as_counts,
    as_distance,
    as_positive,
    as_prior,
    as_scale,
    as_size,
)
from opendp_bayes.mechanisms.exponential.posterior_exponential import (
    PosteriorExponential,
    certified_loss,
    exponent_error,
)
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights, Flips, SimplexNoise
from opendp_bayes.mechanisms.noisy_counts import NoisyCounts
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, NO_LOSS
from opendp_bayes.mechanisms.protocol import Lawful
from opendp_bayes.mechanisms.registry import register_for_documents
from opendp_bayes.samplers.coins import exact_categorical
from opendp_bayes.samplers.integers import discrete_laplaces, floored_laplaces, geometrics
from opendp_bayes.samplers.inversion import by_inversion

__all__ = [
    "NO_BOUND",
    "NO_LOSS",
    "AdditiveNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialWeights",
    "Flips",
    "FlooredLaplace",
    "Lawful",
    "NoisyCounts",
    "PosteriorExponential",
    "SimplexNoise",
    "as_choice",
    "as_counts",
    "as_distance",
    "as_positive",
    "as_prior",
    "as_scale",
    "as_size",
    "by_inversion",
    "candidate",
    "candidate_sums",
    "candidates",
    "certified_loss",
    "check_enumerable",
    "discrete_laplaces",
    "exact_categorical",
    "exponent_error",
    "floored_laplaces",
    "geometrics",
    "lower_end",
    "number_of_candidates",
    "register_for_documents",
    "round_down",
    "round_up",
    "told",
    "upper_end",
]
