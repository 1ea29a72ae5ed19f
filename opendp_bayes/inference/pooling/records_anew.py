"""Some records of pooled groups drawn anew from what κ, m and the others say of them."""

from typing import Any

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet, one_of
from opendp_bayes.mathematics.validation import Floats, Integers

#: How many are drawn to choose from, besides the present ones.
_PROPOSED = 4


def records_anew(
    counts: Integers,
    a: Floats,
    log_noise: Any,
    rng: np.random.Generator,
    *,
    fewest: float,
    each: bool,
) -> Integers:
    """Counts of shape `(chains, G, k)`, some of whose records are replaced: by one of several
    draws, or themselves, in proportion to the noise's probability.

    Groups are taken two by two, and records drawn anew may change their group; or `each` alone.
    `a`, shape `(chains, k)`, are the concentrations; `log_noise` of counts of groups, and their
    numbers, shapes `(..., k)` and `(...)`, is their log-probability. About `fewest` records are
    taken, or more, up to all.

    Before the noise is looked at, records are exchangeable. Two groups that share a number of
    records, every split of which is equally probable, are an urn. A record is in a group with a
    probability in proportion to one more than the number of others there, and then in a category in
    proportion to `a` plus the number of others there. Which records are taken does not depend on
    what they are. So given the others, the present ones have the same law as those drawn, and are
    independent of them. Which of all these become the present ones is drawn in proportion to the
    noise's probability.
    Source: Andrieu, Lee and Vihola, "Uniform ergodicity of the iterated conditional SMC and
    geometric ergodicity of particle Gibbs samplers" (2018), section 3, with one step.
    """
    chains, groups, k = counts.shape
    width = 1 if each else 2
    order = np.argsort(rng.random((chains, groups)), axis=1)
    rows = order[:, : groups // width * width].reshape(-1, width)
    chain = np.repeat(np.arange(chains), groups // width)
    present = counts[chain[:, None], rows]
    records = present.sum(axis=(1, 2))
    # All of them half of the time: few follow those that stay, where groups are of one category.
    power = np.maximum(rng.uniform(-1, 1, chain.size), 0.0)
    share = np.minimum(fewest / np.maximum(records, 1), 1.0) ** power
    kept = rng.binomial(present, 1 - share[:, None, None])
    taken = np.repeat((present - kept).sum(axis=-1)[:, None], _PROPOSED, axis=1)
    if not each:
        of_pair = taken.sum(axis=-1)
        first, second = 1 + kept.sum(axis=-1).T[:, :, None]
        into = rng.binomial(of_pair, rng.beta(first, second, size=of_pair.shape))
        taken = np.stack([into, of_pair - into], axis=-1)
    others = a[chain, None] + kept
    urn: Floats = np.repeat(others[:, None], _PROPOSED, axis=1)
    theta = dirichlet(urn.reshape(-1, k), rng).reshape(urn.shape)
    drawn = kept[:, None] + rng.multinomial(taken, theta)
    known = np.concatenate([present[:, None], drawn], axis=1)
    log_weight = log_noise(known, rows[:, None]).sum(axis=-1)
    chosen = one_of(log_weight, rng)
    found = counts.copy()
    found[chain[:, None], rows] = known[np.arange(chain.size), chosen]
    return found
