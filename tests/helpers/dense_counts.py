"""Counts with noise by a convolution of every whole number, for up to some thousands of records."""

import numpy as np
from scipy import special


def log_weight(drawn, scale, law, prior, last):
    counts = np.arange(last + 1.0)
    away = np.asarray(drawn)[:, None] - counts
    if law == "gaussian":
        noise = -((away / np.reshape(scale, (-1, 1))) ** 2) / 2
    else:
        noise = -np.abs(away) / np.reshape(scale, (-1, 1))
    rising = special.gammaln(counts + prior) - special.gammaln(counts + 1)
    return noise.sum(axis=0) + rising


class Dense:
    """`drawn`, of shape `(looks, k)`, and a scale for each look; a public `size`, or every number
    of records up to `last`. A `tilt`, which changes nothing, keeps the digits of sums.
    """

    def __init__(self, drawn, scales, law, prior, size=None, last=None, tilt=0.0):
        self.prior, last = np.asarray(prior, dtype=float), last if size is None else size
        self.last, sizes = last, np.arange(last + 1.0)
        own = []
        for column, alpha in zip(np.atleast_2d(drawn).T, self.prior, strict=True):
            weight = log_weight(column, scales, law, alpha, last) + tilt * sizes
            own.append(np.exp(weight - weight.max()))
        total = self.prior.sum()
        log_size = special.gammaln(sizes + 1) - special.gammaln(sizes + total) - tilt * sizes
        if size is not None:
            log_size[:size] = -np.inf
        of_size = np.exp(log_size - log_size.max())
        self.weights, self.rests = [], []
        for i, weight in enumerate(own):
            rest = np.ones(1)
            for other in own[:i] + own[i + 1 :]:
                rest = np.convolve(rest, other)[: last + 1]
            pairs = np.zeros((last + 1, last + 1)) if last <= 3000 else None
            if pairs is None:
                joint = weight * rest[::-1]
                self.weights.append(joint / joint.sum())
                continue
            for x in range(last + 1):
                pairs[x, : last + 1 - x] = weight[x] * rest[: last + 1 - x] * of_size[x:]
            self.rests.append(pairs / pairs.sum())
            self.weights.append(self.rests[-1].sum(axis=1))

    def count(self, i):
        counts = np.arange(self.last + 1)
        mean = self.weights[i] @ counts
        return mean, np.sqrt(self.weights[i] @ (counts - mean) ** 2)

    def cumulative(self, i):
        return np.cumsum(self.weights[i])

    def probability(self, i, values):
        """P(θ_i <= value), with Betas of every pair that weighs anything."""
        x, rest = np.nonzero(self.rests[i] > 1e-9)
        weight = self.rests[i][x, rest]
        a, b = self.prior[i] + x, np.delete(self.prior, i).sum() + rest
        return np.array([weight @ special.betainc(a, b, value) for value in values])
