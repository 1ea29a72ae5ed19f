"""A posterior whose counts stand in chains, as those of learned priors and of surveys do."""

import numpy as np

import opendp_bayes as ob
from opendp_bayes.inference.sampling.markov_chain import Chains

CHAINS = 64


def by_chains(release: ob.Release, draws: int = 100) -> ob.NoiseAwarePosterior:
    """The posterior of a release by draws of its counts, which are independent."""
    counts = release.posterior.counts.sample(CHAINS * draws, random_state=0)
    chains = counts.astype(np.int64).reshape(CHAINS, draws, -1)
    return ob.NoiseAwarePosterior([release], Chains(chains, np.array(release.prior)))
