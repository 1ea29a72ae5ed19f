"""Losses of the exponential mechanisms: by enumeration, and by bounds on large simplices."""
