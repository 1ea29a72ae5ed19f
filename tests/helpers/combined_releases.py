"""The posterior of several releases by its definition: sums over all data sets."""

from itertools import product

import numpy as np
from scipy import special, stats

from opendp_bayes import KNormParameters, LaplaceParameters
from tests.helpers import oracles
from tests.helpers.brute_force import law

VALUES = np.linspace(0.02, 0.98, 9)


def log_probability(release, counts):
    """Of what was drawn, up to a constant, by the formula of its noise."""
    mechanism, move = release.mechanism, np.subtract(release.noisy_counts, counts)
    if isinstance(mechanism, KNormParameters):
        return -np.abs(move).sum() / 2 / mechanism.scale
    if not isinstance(mechanism, LaplaceParameters):
        probability = law(mechanism, tuple(map(int, counts)), release.prior).get(
            release.noisy_counts, 0
        )
        return np.log(probability) if probability else -np.inf
    move = move[:-1] if mechanism.total == "remainder" else move
    if mechanism.noise == "floored":
        move = np.where(move >= 0, move, -1 - move)
    return -np.abs(move).sum() / mechanism.scale


def data_sets(release, most):
    if release.size is not None:
        return np.array(oracles.data_sets(release.size, release.k))
    return np.array(list(product(range(most + 1), repeat=release.k)))


def brute(releases, records, most=0):
    """Sums of counts and their probabilities, each number of records being equally probable."""
    prior = np.array(releases[0].prior)
    choices = []
    for release in releases[:1] if records == "same" else releases:
        sets = data_sets(release, most)
        looks = releases if records == "same" else [release]
        log_p = sum(np.array([log_probability(look, row) for row in sets]) for look in looks)
        log_p = log_p + special.gammaln(sets.sum(axis=1) + 1)
        choices.append((sets, log_p - special.gammaln(sets + 1).sum(axis=1)))
    rows, log_weights = choices[0]
    for sets, more in choices[1:]:
        rows = (rows[:, None] + sets).reshape(-1, prior.size)
        log_weights = (log_weights[:, None] + more).ravel()
    log_weights = log_weights + special.gammaln(prior + rows).sum(axis=1)
    log_weights -= special.gammaln(prior.sum() + rows.sum(axis=1))
    weights = special.softmax(log_weights)
    seen = weights > 1e-14
    return rows[seen], weights[seen] / weights[seen].sum()


def worst(posterior, rows, weights):
    """The largest deviations, in standard deviations, and of cumulative probabilities."""
    a = np.array(posterior.prior) + rows
    total = a.sum(axis=1, keepdims=True)
    mean = weights @ (a / total)
    std = np.sqrt(weights @ (a * (a + 1) / total / (total + 1)) - mean**2)
    right = np.stack(
        [[weights @ stats.beta.cdf(v, own, total[:, 0] - own) for own in a.T] for v in VALUES]
    )
    counts = weights @ rows
    return max(
        np.max(np.abs(posterior.mean() - mean) / std),
        np.max(np.abs(posterior.std() / std - 1)),
        np.max(np.abs(posterior.cdf(VALUES) - right)),
        np.max(np.abs(posterior.counts.mean() - counts) / (counts + 1)),
        abs(posterior.records.mean() - counts.sum()) / counts.sum(),
    )
