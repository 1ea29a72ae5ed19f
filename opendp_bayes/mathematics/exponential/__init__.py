"""Hellinger distances of Dirichlet posteriors and their sensitivities."""
