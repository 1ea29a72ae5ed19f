"""Groups by their definition: every data set of all cells, with its posterior probability."""

import numpy as np
from scipy import special, stats

from opendp_bayes import GaussianParameters, KNormParameters
from opendp_bayes.mechanisms import HellingerExponential
from tests.helpers import oracles


def data_sets(released):
    """Counts of all cells and the rest, `(c, k)`, and their posterior probabilities."""
    drawn = np.array([*(number for row in released.noisy_counts for number in row), released.rest])
    sets = np.array(oracles.data_sets(released.size, drawn.size))
    prior = np.ones(drawn.size)
    mechanism, scale = released.mechanism, released.mechanism.scale
    if isinstance(mechanism, KNormParameters):
        likelihood = np.exp(-np.abs(drawn - sets).sum(axis=1) / (2 * scale))
    elif isinstance(mechanism, GaussianParameters):
        likelihood = np.exp(-((drawn - sets) ** 2).sum(axis=1) / (2 * scale**2))
    elif isinstance(mechanism, HellingerExponential):
        law = [oracles.law_of(mechanism, tuple(row), tuple(prior)) for row in sets.tolist()]
        likelihood = np.array([one.get(tuple(drawn.tolist()), 0.0) for one in law])
    else:
        noised = slice(None, -1) if mechanism.total == "remainder" else slice(None)
        likelihood = np.exp(-np.abs(drawn - sets)[:, noised].sum(axis=1) / scale)
    weights = likelihood * stats.dirichlet_multinomial.pmf(sets, prior, released.size)
    if released.sizes is not None:
        sums = sets[:, :-1].reshape(len(sets), len(released.sizes), -1).sum(axis=2)
        weights = weights * np.all(sums == released.sizes, axis=1)
    return sets, weights / weights.sum()


def cdf_of_group(released, at, values):
    """Of the probability of the first of two categories within a group."""
    sets, weights = data_sets(released)
    first, second = sets[:, 2 * at] + 1.0, sets[:, 2 * at + 1] + 1.0
    return special.betainc(first, second, np.asarray(values)[:, None]) @ weights


def mean_counts(released, at):
    """The expected true counts of a group."""
    sets, weights = data_sets(released)
    return weights @ sets[:, 2 * at : 2 * at + 2]


def ratio_of_noise(k, scale, laplace_scale):
    """The standard deviation of one entry of K-norm noise on k counts over that of discrete Laplace
    noise, from their definitions: the first by the shells of the lattice of zero sums.

    Of a shell of norm d, `E[z_1²]` is that of the difference of two counts: with probability
    proportional to their numbers, p entries are raised and q lowered, and d units are shared among
    them.
    """
    second_moment, total = 0.0, 0.0
    for d in range(1, int(60 * scale)):
        for p in range(1, k):
            for q in range(1, k - p + 1):
                ways = special.comb(k, p) * special.comb(k - p, q)
                ways *= special.comb(d - 1, p - 1) * special.comb(d - 1, q - 1)
                weight = ways * np.exp(-d / scale)
                total += weight
                second_moment += weight * (_squares(d, p) + _squares(d, q)) / k
    total += 1.0
    ratio = np.exp(-1 / laplace_scale)
    return np.sqrt(second_moment / total) / np.sqrt(2 * ratio / (1 - ratio) ** 2)


def _squares(d, parts):
    """The expected sum of the squares of a composition of d into so many positive parts."""
    if parts == 1:
        return d * d
    sizes = np.arange(1, d - parts + 2)
    ways = special.comb(d - sizes - 1, parts - 2)
    return parts * float((ways * sizes**2).sum() / ways.sum()) if ways.sum() else 0.0
