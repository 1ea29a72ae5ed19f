"""Posteriors of weights and flips from every data set, in 200 bits, without the package's code."""

import math
from functools import partial

import numpy as np
from flint import arb, ctx
from scipy import special

from tests.helpers import oracles
from tests.helpers.brute_force import EveryCount
from tests.helpers.noised_counts import Setting

#: Rows of a table of all pairs of data sets that are worked on at a time.
_ROWS = 400


def gaps(alpha, size):
    """`ln Γ((a + b) / 2) - (ln Γ(a) + ln Γ(b)) / 2` for every x and y up to `size`."""
    with ctx.workprec(200):
        own = [(arb(float(alpha)) + arb(x) / 2).lgamma() for x in range(2 * size + 1)]
        table = [
            [float((own[x + y] - (own[2 * x] + own[2 * y]) / 2).mid()) for y in range(size + 1)]
            for x in range(size + 1)
        ]
    return np.array(table)


class EveryDataSet:
    """Hellinger distances between the posteriors of all data sets of one size."""

    def __init__(self, prior, size):
        self.prior, self.size = np.asarray(prior, dtype=float), size
        self.sets = np.array(oracles.data_sets(size, self.prior.size))
        self.gaps = [gaps(alpha, size) for alpha in self.prior]

    def distances(self, rows):
        """From the data sets of these rows to all others."""
        log_affinity = sum(
            gap[own[rows][:, None], own[None]]
            for gap, own in zip(self.gaps, self.sets.T, strict=True)
        )
        return np.sqrt(np.maximum(-np.expm1(log_affinity), 0.0))

    def blocks(self):
        return np.array_split(np.arange(len(self.sets)), math.ceil(len(self.sets) / _ROWS))

    def away(self, rows):
        """How many records are changed."""
        return np.abs(self.sets[rows][:, None] - self.sets[None]).sum(axis=-1) // 2

    def local_sensitivities(self):
        return np.concatenate(
            [
                np.max(self.distances(rows), axis=1, where=self.away(rows) == 1, initial=0.0)
                for rows in self.blocks()
            ]
        )

    def smooth_sensitivities(self, gamma=None, beta=None):
        local = self.local_sensitivities()
        if gamma is not None:
            return np.concatenate(
                [1 / np.min(1 / local + gamma * self.away(rows), axis=1) for rows in self.blocks()]
            )
        return np.concatenate(
            [np.max(local * np.exp(-beta * self.away(rows)), axis=1) for rows in self.blocks()]
        )

    def log_likelihood_of_weights(self, released, widths):
        """`exp(-H / width)` over its sum, of the released one given each data set."""
        return np.concatenate(
            [
                -found[:, released] / own - special.logsumexp(-found / own[:, None], axis=1)
                for rows in self.blocks()
                for found, own in [(self.distances(rows), widths[rows])]
            ]
        )

    def log_likelihood_of_flips(self, released, scale):
        """Coins of probability `exp(-H / scale)` in random order: the integral over the time t at
        which the released one comes of `Π (1 - t p)` over the others, of which those with a
        probability of one end the run surely if they come first. A polynomial in t, integrated on
        intervals that halve towards 0.
        """
        nodes, weights = np.polynomial.legendre.leggauss(12)
        ends = np.append(0.0, 2.0 ** np.arange(-14, 1))
        times = (ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2).ravel()
        weights = (np.diff(ends)[:, None] * weights / 2).ravel()
        found = []
        for row in range(len(self.sets)):
            coins = np.exp(-self.distances(np.array([row]))[0] / scale)
            others = np.delete(coins, released)
            survive = np.log1p(-times[:, None] * others).sum(axis=1)
            found.append(
                np.log(coins[released]) + special.logsumexp(survive, b=weights)
                if coins[released] > 0
                else -np.inf
            )
        return np.array(found)

    def log_likelihood(self, mechanism, released):
        """Of the released counts given each data set."""
        row = int(np.flatnonzero((self.sets == released).all(axis=1))[0])
        name = type(mechanism).__name__
        if name == "PermuteAndFlip":
            return self.log_likelihood_of_flips(row, mechanism.scale)
        if name == "SmoothHellingerExponential":
            widths = self.smooth_sensitivities(mechanism.gamma, mechanism.beta)
        elif mechanism.sensitivity == "local":
            widths = self.local_sensitivities()
        else:
            widths = np.ones(len(self.sets))
        return self.log_likelihood_of_weights(row, mechanism.scale * widths)


def weighed_counts(mechanism, released, prior):
    """The posterior of a release by a mechanism that weighs or flips every data set."""
    size = int(np.sum(released))
    log_likelihood = partial(EveryDataSet(prior, size).log_likelihood, mechanism, released)
    return EveryCount(Setting((), prior, size), None, lambda _: log_likelihood())
