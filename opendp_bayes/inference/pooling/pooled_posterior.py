"""The posteriors of groups that borrow strength from each other."""

from typing import cast

import numpy as np

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.engines.engine import Engine, Listed
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.sampling.markov_chain import Chains
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import Label


class Concentrations(Chains):
    """Concentrations of Dirichlet distributions, in parts as of chains, `(chains, draws, k)`: κ m
    and the true counts, which `counted` has alone.

    They stand for the counts and the prior of other posteriors, and their own prior is 0.
    """

    @classmethod
    def of(cls, alike: Floats, counts: Integers) -> "Concentrations":
        """Add κ m and the true counts of a group, both of shape `(chains, draws, k)`."""
        rows = counts.reshape(-1, counts.shape[-1])
        return cls(alike + counts, counted=Listed(rows))


class PooledPosterior(NoiseAwarePosterior):
    """The posterior of the category probabilities of one group, from draws of what they depend on:
    a mixture of Dirichlets, one for each draw. It answers what the posterior of a release does.

    Attributes
    ----------
    categories : tuple[str or int or bool or tuple, ...]
        The labels of the categories, in whose order all arrays of shape `(k,)` are.
    concentration : ndarray
        Of the Dirichlets, shape `(draws, k)`: κ m and the true counts.
    diagnostics
        Of the parts of the draws (`Diagnostics`), as of chains, for the expected probabilities.
    """

    _engine: Concentrations

    def __init__(
        self,
        categories: tuple[Label, ...],
        concentrations: Concentrations,
        unordered: tuple[Label, ...] = (),
    ) -> None:
        super().__init__((), concentrations, categories, unordered=unordered)

    @property
    def concentration(self) -> Floats:
        return np.asarray(self._engine.rows)

    def _made(
        self,
        engine: Engine,
        categories: tuple[Label, ...],
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
    ) -> "PooledPosterior":
        return PooledPosterior(categories, cast(Concentrations, engine), unordered)

    def _smallest(self, places: list[int], mixture: BetaMixtures) -> float:
        return 0.0

    def __repr__(self) -> str:
        return f"PooledPosterior({{{self._estimates()}}})"
