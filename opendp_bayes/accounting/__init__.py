"""Compute exact privacy losses of mechanisms from their own probabilities. Depends on public
quantities only, never on data.

`divergences` compares pairs of distributions; `gaussian`, `noise` and the modules of `exponential`
produce the pairs of a mechanism, which `pairs` chooses by its law; `losses` turns them into
certified bounds, and `calibration` solves for the scale.
"""
