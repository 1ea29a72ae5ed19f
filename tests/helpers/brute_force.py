"""Posteriors by their definition: every data set, its prior probability, and the probability of
what was drawn.

The functions are of a release, `EveryCount` is of noise on counts, drawn once or more often. The
probability of noise is by its formula, that of other mechanisms from `log_pmf`.
"""

import math
from functools import lru_cache
from itertools import product

import numpy as np
from scipy import special, stats

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters
from tests.helpers import different_records, oracles
from tests.helpers.noised_counts import Pairs


def data_sets(release, largest=None):
    """Every data set that may have been released from, with its posterior probability: `(c, k)` and
    `(c,)`.

    With a private size, every data set with counts up to `largest`, every number of records being
    equally probable.
    """
    return of_several([release], "same", largest)


def of_several(releases, records, largest=None):
    """The same of releases of the same records, or sums of the counts of different ones."""
    choices = []
    for release in releases[:1] if records == "same" else releases:
        if release.size is not None:
            sets = np.array(oracles.data_sets(release.size, release.k))
        else:
            sets = np.array(list(product(range(largest + 1), repeat=release.k)))
        looks, rows = releases if records == "same" else [release], list(map(tuple, sets.tolist()))
        with np.errstate(divide="ignore"):
            logs = sum(np.log([probability(look, row) for row in rows]) for look in looks)
        logs = logs + special.gammaln(sets.sum(axis=1) + 1)
        choices.append((sets, logs - special.gammaln(sets + 1).sum(axis=1)))
    prior, (sets, logs) = np.array(releases[0].prior), choices[0]
    for others, more in choices[1:]:
        sets = (sets[:, None] + others).reshape(-1, prior.size)
        logs = (logs[:, None] + more).ravel()
    logs = logs + special.gammaln(prior + sets).sum(axis=1)
    return sets, special.softmax(logs - special.gammaln(prior.sum() + sets.sum(axis=1)))


@lru_cache(maxsize=2000)
def law(mechanism, counts, prior):
    """What the mechanism says its law is; candidates listed several times are added up."""
    support, log_p = mechanism.log_pmf(counts, prior)
    total = {}
    for candidate, p in zip(map(tuple, support.tolist()), np.exp(log_p), strict=True):
        total[candidate] = total.get(candidate, 0.0) + p
    return total


def probability(release, counts):
    """Of what was drawn, given the counts; of K-norm and Gaussian noise up to a constant."""
    mechanism, moves = release.mechanism, np.subtract(release.noisy_counts, counts).tolist()
    if isinstance(mechanism, LaplaceParameters):
        noised = moves[:-1] if mechanism.total in ("remainder", "truncated") else moves
        return math.prod(cell(mechanism.noise, move, mechanism.scale) for move in noised)
    if isinstance(mechanism, GaussianParameters):
        return math.exp(-sum((move / mechanism.scale) ** 2 for move in moves) / 2)
    if isinstance(mechanism, KNormParameters):
        return math.exp(-sum(map(abs, moves)) / (2 * mechanism.scale))
    return law(mechanism, counts, release.prior).get(release.noisy_counts, 0.0)


@lru_cache(maxsize=10_000)
def cell(noise, value, scale):
    return oracles.CELLS[noise](value, scale)


def cdf(release, values, largest=None):
    """Of each probability, shape `(values, k)`: the mixture of Betas over all data sets."""
    sets, weights = data_sets(release, largest)
    seen = weights > 1e-15
    a = (np.array(release.prior) + sets)[seen]
    rest = a.sum(axis=1)[:, None] - a
    below = stats.beta.cdf(np.asarray(values)[:, None, None], a, rest)
    return np.einsum("s,vsk->vk", weights[seen], below)


def mean(release, largest=None):
    """Expected probabilities, shape `(k,)`."""
    sets, weights = data_sets(release, largest)
    a = np.array(release.prior) + sets
    return weights @ (a / a.sum(axis=1, keepdims=True))


def worst(posterior, sets, weights):
    """The largest deviations from data sets with their weights, as of different records."""
    return different_records.worst(posterior, [(own, sets.sum(axis=1), weights) for own in sets.T])


class EveryCount(Pairs):
    """The posterior of a setting of `noised_counts`; of a private number, up to `most` records.

    Every data set weighs its probability, that of counts with a Dirichlet prior, times that of what
    was drawn, or of what `log_likelihood`, a function of all data sets, says in place of noise.
    """

    def __init__(self, setting, most=None, log_likelihood=None):
        self.setting = setting
        sizes = range(most + 1) if setting.size is None else [setting.size]
        self.sets = np.array([row for n in sizes for row in oracles.data_sets(n, setting.k)])
        self._n = self.sets.sum(axis=1).astype(float)
        columns = enumerate(self.sets.T)
        logs = setting.log_size(self._n) + sum(setting.log_weight(i, x) for i, x in columns)
        logs = logs if log_likelihood is None else logs + log_likelihood(self.sets)
        for groups, look in setting.sums:
            logs += sum(look.log_mass(j, x) for j, x in enumerate(self._together(groups)))
        self.log_evidence = float(special.logsumexp(logs))
        self.weights = np.exp(logs - self.log_evidence)

    def pairs(self, i):
        """Of every data set, whether or not it weighs anything."""
        return self.sets[:, i].astype(float), self._n, self.weights

    def shares(self, groups):
        """The answers for the counts of groups of categories, and for their probabilities divided
        by the sum of these: means and standard deviations of both, shape `(4, groups)`.
        """
        counts, alpha = self._together(groups), self.setting.prior
        a = np.array([[alpha[list(group)].sum()] for group in groups]) + counts
        whole = a.sum(axis=0)
        return moments(self.weights, counts), moments(
            self.weights, a / whole, a / whole * (1 - a / whole) / (whole + 1)
        )

    def cdf(self, groups, values):
        """`P(share <= value)` of each group, shape `(values, groups)`: a mixture of Betas."""
        alpha = self.setting.prior
        a = np.array([[alpha[list(group)].sum()] for group in groups]) + self._together(groups)
        below = special.betainc(a, a.sum(axis=0) - a, np.asarray(values)[:, :, None])
        return below @ self.weights

    def _together(self, groups):
        return np.stack([self.sets[:, list(group)].sum(axis=1) for group in groups])


def moments(weights, values, variances=0.0):
    """Means and standard deviations of mixtures of laws with means `values`, shape `(m, laws)`."""
    mean = values @ weights
    return mean, np.sqrt(((values - mean[:, None]) ** 2 + variances) @ weights)
