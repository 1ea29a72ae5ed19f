"""Laws of integer noise: with a kink, with two, and without one."""

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "FlooredLaplace"]
