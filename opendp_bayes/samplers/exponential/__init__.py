"""Draws from weights that are known with certified errors."""
