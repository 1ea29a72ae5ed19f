"""The posterior of two counts of many records, by Gauss quadrature on panels.

Panels are graded around every place where a weight is not smooth and around the mode that is found;
near them counts are summed one by one. Shares no code with the package.
"""

import numpy as np
from flint import arb, ctx
from scipy import special

ctx.prec = 400
NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
SINGLE, RATIO = 40, 1.6


def log_prior(x, a):
    """`ln Γ(x + a) - ln x!` in 200 bits."""
    return (arb(x) + arb(a)).lgamma() - (arb(x) + 1).lgamma()


def log_noise(law, s, d, x):
    z, s = arb(d) - arb(x), arb(s)
    if law == "laplace":
        return -abs(z) / s
    if law == "floored":
        return -(z if z >= 0 else -1 - z) / s
    return -(z**2) / 2 / s**2


def panels(lowest, highest, places):
    """Points and log-widths of a sum over lowest..highest."""
    lowest, highest = int(lowest), int(highest)
    edges = {lowest, highest + 1}
    singles = []
    for place in {int(np.clip(p, lowest, highest)) for p in [*places, lowest, highest]}:
        singles.append(np.arange(max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1))
        steps = SINGLE * RATIO ** np.arange(np.log(max(highest - lowest, 2)) / np.log(RATIO))
        for sign in (1, -1):
            at = np.floor(place + sign * steps)
            edges |= set(at[(at > lowest) & (at <= highest)].astype(np.int64).tolist())
        edges |= {max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1}
    singles = np.unique(np.concatenate(singles))
    edges = np.array(sorted(edges), dtype=np.int64)
    first, last = edges[:-1], edges[1:] - 1
    single = np.isin(first, singles)
    short = ~single & (last - first < SINGLE)
    extra = [np.arange(a, b + 1) for a, b in zip(first[short], last[short], strict=True)]
    points = [singles, *extra]
    wide = ~single & ~short
    half = (last - first + 1)[wide] / 2
    middle = (first + last)[wide] / 2
    points.append((middle[:, None] + half[:, None] * NODES).ravel())
    widths = [np.zeros(sum(map(len, points[:-1]))), np.log(half[:, None] * WEIGHTS).ravel()]
    return np.concatenate(points).astype(float), np.concatenate(widths)


def summed(log_weight, lowest, highest, places):
    """Points and logarithms of masses; the panels are graded around the mode as well."""
    places = list(places)
    for _ in range(8):
        points, widths = panels(lowest, highest, places)
        exact = [log_weight(x) for x in points.tolist()]
        best = exact[0]
        for value in exact:
            best = value if value > best else best
        logs = np.array([float((value - best).mid()) for value in exact])
        places.append(points[np.argmax(logs)])
    return points, logs + widths, best


class Two:
    """Marginal of the first of two categories, with a public size."""

    def __init__(self, law, scale, drawn, prior, size):
        self.prior = np.array(prior, dtype=float)

        def own(i, x):
            noise = log_noise(law, scale, int(drawn[i]), x)
            return noise + log_prior(x, prior[i])

        def places(i):
            return [0, drawn[i], drawn[i] + 1]

        near = [0, size, *places(0), *(size - np.array(places(1)))]
        self.x, logs, _ = summed(lambda x: own(0, x) + own(1, size - arb(x)), 0, size, near)
        self.size = size
        self.w = np.exp(logs - special.logsumexp(logs))
        order = np.argsort(self.x)
        self.x, self.w = self.x[order], self.w[order]

    def count_mean_std(self):
        mean = self.w @ self.x
        return mean, np.sqrt(self.w @ (self.x - mean) ** 2)

    def theta_mean_std(self):
        a, others = self.prior[0] + self.x, self.prior[1:].sum()
        total = self.prior.sum() + self.size
        b = others + (self.size - self.x)
        mean, rest = self.w @ (a / total), self.w @ (b / total)
        off = a / total - mean if mean < 0.5 else rest - b / total
        return mean, np.sqrt(self.w @ (a * b / total**2 / (total + 1) + off**2))

    def cdf(self, values, complements):
        """P(θ_0 <= value); right where panels are shorter than the Betas are wide."""
        a, b = self.prior[0] + self.x, self.prior[1] + (self.size - self.x)
        found = [
            special.betainc(a, b, v) if v <= 0.5 else 1 - special.betainc(b, a, c)
            for v, c in zip(values, complements, strict=True)
        ]
        return np.reshape(found, (-1, self.w.size)) @ self.w

    @property
    def is_fine(self):
        """Whether they are."""
        a, b = self.prior[0] + self.x, self.prior[1] + (self.size - self.x)
        gaps = np.diff(self.x, append=self.x[-1] + 1)
        return bool(np.all((gaps < np.sqrt(a * b / (a + b))) | (self.w < 1e-3)))
