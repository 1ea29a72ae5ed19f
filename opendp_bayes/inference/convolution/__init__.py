"""Posteriors of counts with independent noise: sums of independent counts, exact but for rounding."""
