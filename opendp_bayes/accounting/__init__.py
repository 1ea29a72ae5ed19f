"""Compute exact privacy losses of mechanisms from their own probabilities. Depends on public
quantities only, never on data.

`divergences` compares pairs of distributions; `two_categories`, `enumeration` and `noise` produce
the pairs of a mechanism; `exact` turns them into certified bounds, `calibration` solves for the
scale, and `composition` hands the worst case to another accountant.
"""
