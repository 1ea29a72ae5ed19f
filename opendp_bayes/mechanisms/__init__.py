"""Mechanisms: frozen values that know their law, how to sample it and what it costs. One mechanism
a file; adding one is adding a file. With them, the distances of posteriors and the sensitivities
that exponential mechanisms are made of.
"""

from opendp_bayes.mathematics.exponential.hellinger import hellinger_distance
from opendp_bayes.mathematics.exponential.sensitivity import (
    global_sensitivity,
    local_sensitivity,
    smooth_sensitivity,
)
from opendp_bayes.mechanisms.exponential.hellinger_exponential import HellingerExponential
from opendp_bayes.mechanisms.exponential.permute_and_flip import PermuteAndFlip
from opendp_bayes.mechanisms.exponential.smooth_hellinger_exponential import (
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.gaussian_parameters import GaussianParameters
from opendp_bayes.mechanisms.knorm_parameters import KNormParameters
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.mechanisms.protocol import Mechanism

__all__ = [
    "GaussianParameters",
    "HellingerExponential",
    "KNormParameters",
    "LaplaceParameters",
    "Mechanism",
    "PermuteAndFlip",
    "SmoothHellingerExponential",
    "global_sensitivity",
    "hellinger_distance",
    "local_sensitivity",
    "smooth_sensitivity",
]
