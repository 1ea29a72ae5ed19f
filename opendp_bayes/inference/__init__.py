"""Inference of the category probabilities from a release, its noise taken into account. It reads
releases, never data.
"""
