"""Mechanisms: frozen values that know their law, how to sample it and what it costs. One mechanism
a file; adding one is adding a file.
"""

from opendp_bayes.mechanisms.exponential.hellinger_exponential import (
    HellingerExponential,
)
from opendp_bayes.mechanisms.exponential.permute_and_flip import (
    PermuteAndFlip,
)
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
]
