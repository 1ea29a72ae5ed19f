"""Exponential mechanisms on the candidates of a simplex, and permute-and-flip."""
