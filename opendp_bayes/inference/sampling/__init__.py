"""Posteriors by weighted draws and Markov chains, with the diagnostics that belong to them."""
