"""Posteriors as their users see them: means, intervals, counts, quantities and comparisons."""
