"""Several tables of the same records for one budget: their query, their levels, one posterior of
them all, and synthetic records.
"""
