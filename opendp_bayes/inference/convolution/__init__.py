"""Dirichlet-multinomial counts with additive noise: laws of sums by exponential tilts and products
of Fourier transforms.
"""
