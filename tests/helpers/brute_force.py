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
from tests.helpers import oracles
from tests.helpers.noised_counts import Pairs


def data_sets(release, largest=None):
    """Every data set that may have been released from, with its posterior probability: `(c, k)` and
    `(c,)`.

    With a private size, every data set with counts up to `largest`, every number of records being
    equally probable.
    """
    return of_several([release], largest)


def of_several(releases, largest=None):
    """The same of several releases of the same records."""
    first = releases[0]
    if first.size is not None:
        sets = np.array(oracles.data_sets(first.size, first.k))
    else:
        sets = np.array(list(product(range(largest + 1), repeat=first.k)))
    rows = list(map(tuple, sets.tolist()))
    with np.errstate(divide="ignore"):
        logs = sum(np.log([probability(look, row) for row in rows]) for look in releases)
    prior, sizes = np.array(first.prior), sets.sum(axis=1)
    logs = logs + special.gammaln(sizes + 1) - special.gammaln(prior.sum() + sizes)
    logs += (special.gammaln(prior + sets) - special.gammaln(sets + 1)).sum(axis=1)
    return sets, special.softmax(logs)


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


def worst(posterior, sets, weights, levels=(0.5, 0.9, 0.99, 0.999)):
    """The largest deviations from data sets with their weights, in standard deviations, and of
    cumulative probabilities.
    """
    values = [1e-6, 1e-3, 0.02, 0.5, 0.98, 0.999, 1 - 1e-5]
    ends = np.concatenate([posterior.interval(level) for level in levels])
    concentration, off = sum(posterior.prior), []
    numbers, weights = sets.sum(axis=1), weights / weights.sum()
    for place, sums in enumerate(sets.T):
        a = posterior.prior[place] + sums
        total = concentration + numbers
        b = concentration - posterior.prior[place] + (numbers - sums)
        mean = weights @ (a / total)
        second = weights @ (a * b / total**2 / (total + 1) + (a / total - mean) ** 2)
        off += [(posterior.mean()[place] - mean) / second**0.5]
        off += [posterior.std()[place] / second**0.5 - 1]
        at = np.append(values, ends[:, place])
        right = [weights @ special.betainc(a, b, value) for value in at]
        off += list(posterior.cdf(at)[:, place] - right)
        mean = weights @ sums
        std = np.sqrt(weights @ (sums - mean) ** 2)
        off += [(posterior.counts.mean()[place] - mean) / max(std, 0.01)]
    mean = weights @ numbers
    std = np.sqrt(weights @ (numbers - mean) ** 2)
    records = posterior.records.mean() - mean, posterior.records.std() - std
    off += [number / max(std, 0.01) for number in records]
    return np.abs(off).max()


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
