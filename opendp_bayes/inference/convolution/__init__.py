"""Posteriors of counts with independent noise: laws of sums, exact but for rounding."""
