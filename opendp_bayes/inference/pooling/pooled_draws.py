"""Draws of κ, m and the counts of pooled groups, as many as are wanted, and what they are worth."""

import numpy as np

from opendp_bayes.inference.pooling.chains import Chains, Model
from opendp_bayes.inference.sampling.markov_chain import Diagnostics
from opendp_bayes.mathematics.validation import Floats, Integers

#: Chains, sweeps of the first run, and how often what follows its first quarter, in which steps
#: adapt, grows by an eighth.
_CHAINS, _FIRST_RUN, _GROWTHS = 4, 320, 25
#: Largest R-hat of chains that have met.
_MET = 1.05


def diagnostics_of(a: Floats) -> Diagnostics:
    """Diagnostics of ln κ and m, from draws of κ m of shape `(chains, draws, k)`."""
    kappa = a.sum(axis=-1, keepdims=True)
    return Diagnostics.of(np.concatenate([np.log(kappa), a / kappa], axis=-1))


def draws_of(model: Model, effective: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
    """κ m and the counts after each sweep, `(chains, draws, k)` and `(chains, draws, G, k)`, until
    there are so many effective draws or the chains are long.
    """
    chains = Chains(model, _CHAINS, rng)
    a: list[Floats] = []
    counts: list[Integers] = []
    for _ in range(_FIRST_RUN // 4):
        chains.sweep(adapt=True)
    wanted = _FIRST_RUN - _FIRST_RUN // 4
    for _ in range(_GROWTHS + 1):
        while len(a) < wanted:
            chains.sweep(adapt=False)
            a.append(chains.concentration)
            counts.append(chains.counts.copy())
        # The first eighth may still remember where the chains began.
        kept = slice(len(a) // 8, None)
        found = diagnostics_of(np.stack(a[kept], axis=1))
        if found.ess.min() >= effective and found.r_hat.max() < _MET:
            break
        wanted += wanted // 8
    return np.stack(a[kept], axis=1), np.stack(counts[kept], axis=1)
