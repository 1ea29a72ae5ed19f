"""The posterior of a release by its definition: every data set, its prior probability by scipy, and
the probability of the release from `log_pmf`.
"""

import math
from functools import lru_cache
from itertools import product

import numpy as np
import oracles
from scipy import stats


def data_sets(release, largest=None):
    """Every data set that may have been released from, with its posterior probability: `(c, k)` and
    `(c,)`.

    With a private size, every data set with counts up to `largest`, every number of records being
    equally probable.
    """
    prior = np.array(release.prior)
    if release.size is not None:
        sets = np.array(oracles.data_sets(release.size, release.k))
        likelihood = np.array(
            [
                law(release.mechanism, tuple(row), release.prior).get(release.counts, 0.0)
                for row in sets.tolist()
            ]
        )
    else:
        sets = np.array(list(product(range(largest + 1), repeat=release.k)))
        columns = [
            np.array([clamped(release.mechanism, x, y) for x in range(largest + 1)])
            for y in release.counts
        ]
        likelihood = np.prod([column[sets[:, i]] for i, column in enumerate(columns)], axis=0)
    sizes = sets.sum(axis=1)
    prior_probability = np.where(
        sizes > 0,
        stats.dirichlet_multinomial.pmf(sets, prior, np.maximum(sizes, sets.max(axis=1))),
        1.0,
    )
    weights = likelihood * prior_probability
    return sets, weights / weights.sum()


@lru_cache(maxsize=2000)
def law(mechanism, counts, prior):
    """What the mechanism says its law is; candidates that several noised counts lead to are listed
    several times.
    """
    support, log_p = mechanism.log_pmf(counts, prior)
    total = {}
    for candidate, p in zip(map(tuple, support.tolist()), np.exp(log_p), strict=True):
        total[candidate] = total.get(candidate, 0.0) + p
    return total


def clamped(mechanism, count, released):
    """`P(max(count + Z, 0) = released)`."""
    cell = {"discrete": oracles.discrete_laplace_cell, "floored": oracles.floored_laplace_cell}[
        mechanism.noise
    ]
    if released:
        return cell(released - count, mechanism.scale)
    return math.fsum(
        cell(-count - t, mechanism.scale) for t in range(math.ceil(40 * mechanism.scale))
    )


def cdf(release, values, largest=None):
    """Of the probability of each category, shape `(values, k)`: the mixture of Betas over all data
    sets.
    """
    sets, weights = data_sets(release, largest)
    seen = weights > 1e-15
    a = (np.array(release.prior) + sets)[seen]
    total = a.sum(axis=1)
    columns = [
        weights[seen] @ stats.beta.cdf(np.asarray(values), own[:, None], (total - own)[:, None])
        for own in a.T
    ]
    return np.stack(columns, axis=1)


def mean(release, largest=None):
    """Expected probabilities, shape `(k,)`."""
    sets, weights = data_sets(release, largest)
    a = np.array(release.prior) + sets
    return weights @ (a / a.sum(axis=1, keepdims=True))
