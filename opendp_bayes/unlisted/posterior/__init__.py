"""Posterior of the counts of keys that nobody listed: those that were shown, and all the others."""
