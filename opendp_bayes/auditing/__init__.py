"""An audit of a mechanism: what it claims, against its own probabilities and against draws of its
sampler.
"""
