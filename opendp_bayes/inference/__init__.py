"""Inference of the category probabilities from a release, its noise taken into account. It reads
releases, never data.
"""

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.noise_aware import noise_aware_posterior

__all__ = ["NoiseAwarePosterior", "noise_aware_posterior"]
