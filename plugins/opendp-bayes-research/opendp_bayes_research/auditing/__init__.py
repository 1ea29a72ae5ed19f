"""Audit a mechanism: its claims, against its own probabilities and against draws of its sampler."""
