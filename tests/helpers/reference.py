"""The posterior of counts with additive noise by its definition, in ball arithmetic.

Every count up to the number of records has its weight in 400 bits; sums are products of
polynomials. Shares no code with the package.
"""

import numpy as np
from flint import arb, arb_poly, ctx
from scipy import special

ctx.prec = 400


def log_noise(law, scale, z):
    """Up to a constant, for an integer z."""
    scale = arb(scale)
    if law == "laplace":
        return -abs(z) / scale
    if law == "floored":
        return -(z if z >= 0 else -1 - z) / scale
    return -(arb(z) ** 2) / 2 / scale**2


def weights(law, scale, drawn, alpha, largest, noised=True):
    """`f(drawn - x) Γ(x + alpha) / (Γ(alpha) x!)` for x from 0 to `largest`."""
    prior, found = arb(1), []
    alpha = arb(alpha)
    for x in range(largest + 1):
        found.append(prior * log_noise(law, scale, drawn - x).exp() if noised else prior)
        prior = prior * (alpha + x) / (x + 1)
    return found


def exponential(value):
    return arb(float(value)).exp() if np.isfinite(value) else arb(0)


class Exact:
    """Marginals of a posterior: of category i, weights of pairs of its count and the total."""

    def __init__(self, law, scale, drawn, prior, size=None, sizes=None, noised=None):
        """`size`, or `sizes`: log-probabilities of each number of records from 0 on."""
        self.prior = np.array(prior, dtype=float)
        k = len(prior)
        largest = size if size is not None else len(sizes) - 1
        noised = [True] * k if noised is None else noised
        own = [
            weights(law, scale, d, a, largest, z)
            for d, a, z in zip(drawn, prior, noised, strict=True)
        ]
        polynomials = [arb_poly(w) for w in own]
        concentration = sum((arb(float(a)) for a in prior), arb(0))
        # n! Γ(A) / Γ(n + A) times the probability of n
        total_weight, factor = [], arb(1)
        for n in range(largest + 1):
            probability = arb(int(n == size)) if size is not None else exponential(sizes[n])
            total_weight.append(factor * probability)
            factor = factor * (n + 1) / (concentration + n)
        self.pairs = []
        for i in range(k):
            rest = arb_poly([1])
            for j in range(k):
                if j != i:
                    rest = arb_poly((rest * polynomials[j]).coeffs()[: largest + 1])
            rest = rest.coeffs()
            rest += [arb(0)] * (largest + 1 - len(rest))
            if size is not None:
                found = [(x, size, own[i][x] * rest[size - x]) for x in range(size + 1)]
            else:
                found = [
                    (x, n, own[i][x] * rest[n - x] * total_weight[n])
                    for n in range(largest + 1)
                    if np.isfinite(sizes[n])
                    for x in range(n + 1)
                ]
            total = sum((w for _, _, w in found), arb(0))
            assert total.rel_accuracy_bits() > 60, "not enough bits for this setting"
            x, n, w = (np.array(column) for column in zip(*found, strict=True))
            w = np.array([float((value / total).mid()) for value in w])
            self.pairs.append((x.astype(float), n.astype(float), w))
        self.evidence = total * total_weight[size] if size is not None else total

    def _betas(self, i):
        x, n, w = self.pairs[i]
        seen = w > 1e-30  # what has next to no weight may decide a deviation
        others = float(np.delete(self.prior, i).sum())
        return self.prior[i] + x[seen], others + (n - x)[seen], w[seen]

    def mean(self):
        return np.array([w @ (a / (a + b)) for a, b, w in map(self._betas, range(len(self.prior)))])

    def std(self):
        found = []
        for i in range(len(self.prior)):
            a, b, w = self._betas(i)
            p, q = a / (a + b), b / (a + b)
            mean, rest = w @ p, w @ q
            off = p - mean if mean < 0.5 else rest - q
            found.append(np.sqrt(w @ (p * q / (a + b + 1) + off**2)))
        return np.array(found)

    def cdf(self, i, values, complements):
        """P(θ_i <= value) from values and one minus these."""
        a, b, w = self._betas(i)
        values, complements = np.atleast_1d(values)[:, None], np.atleast_1d(complements)[:, None]
        upper = values > 0.5
        below = special.betainc(a, b, np.where(upper, 0.5, values))
        above = 1 - special.betainc(b, a, np.where(upper, complements, 0.5))
        return np.where(upper, above, below) @ w

    def count_mean_std(self, i):
        x, _, w = self.pairs[i]
        mean = w @ x
        return mean, np.sqrt(w @ (x - mean) ** 2)

    def count_cdf(self, i, values):
        x, _, w = self.pairs[i]
        return np.array([w[x <= v].sum() for v in np.atleast_1d(values)])
