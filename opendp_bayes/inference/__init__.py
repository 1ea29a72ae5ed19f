"""What a release says about the category probabilities, its noise taken into account. Reads
releases, never data.
"""

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.noise_aware import noise_aware_posterior

__all__ = ["NoiseAwarePosterior", "noise_aware_posterior"]
