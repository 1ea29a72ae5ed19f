"""The posterior of counts with additive noise in ways that share no code with the package.

`every_count` is the definition: it lists every data set. `Dense` convolves arrays with an entry for
every count. Both answer as `Pairs`.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from scipy import optimize, special

#: Pairs of a count and a number of records that weigh less than this, together, are left out.
NEGLIGIBLE = 1e-13


class NotServedError(Exception):
    """A setting, or a question, that a reference does not answer."""


@dataclass(frozen=True)
class Look:
    """One draw of every count: its noise, and which entries were noised."""

    law: str
    scale: float
    drawn: np.ndarray
    noised: np.ndarray

    def chosen(self, categories):
        """With the draws and kinds of some categories, which may repeat."""
        return Look(self.law, self.scale, self.drawn[categories], self.noised[categories])

    def log_mass(self, i, x):
        """`ln P(drawn_i | x)` at counts of category i; 0 where it was not noised."""
        if not self.noised[i]:
            return np.zeros(np.shape(x))
        z, b = float(self.drawn[i]) - np.asarray(x, dtype=float), self.scale
        if self.law == "laplace":
            return math.log(math.tanh(1 / (2 * b))) - np.abs(z) / b
        if self.law == "floored":
            return math.log(-math.expm1(-1 / b) / 2) - np.where(z >= 0, z, -1 - z) / b
        near = np.arange(1, math.ceil(10 * min(b, 1e3)) + 2)
        whole = (
            1 + 2 * np.exp(-((near / b) ** 2) / 2).sum() if b < 1e3 else b * math.sqrt(2 * np.pi)
        )
        return -((z / b) ** 2) / 2 - math.log(whole)

    def log_ratio(self, i, x, anchor):
        """`ln P(drawn_i | x) - ln P(drawn_i | anchor)`, with all digits however far the draw is;
        elementwise in the categories, too.
        """
        d, b = self.drawn[i].astype(float), self.scale
        if self.law == "gaussian":
            found = -((x - anchor) / b) * ((x + anchor - 2 * d) / b) / 2
        else:
            half = 0.5 if self.law == "floored" else 0.0
            found = (np.abs(d + half - anchor) - np.abs(d + half - x)) / b
        return np.where(self.noised[i], found, 0.0)


@dataclass(frozen=True)
class Setting:
    """What was drawn, the prior, and what is known of the number of records.

    `size` is the public number; where it is None every number is equally probable, or has the
    probabilities of `size_prior`, a frozen distribution of scipy.
    """

    looks: tuple
    prior: np.ndarray
    size: int | None = None
    size_prior: object = None
    about: dict = field(default_factory=dict)

    @property
    def k(self):
        return self.prior.size

    def log_weight(self, i, x):
        """`ln P(drawn_i | x) Γ(x + α) / (x! Γ(α))`."""
        known = sum(look.log_mass(i, x) for look in self.looks)
        return known + log_rising(x, float(self.prior[i]))

    def log_ratio(self, i, x, anchor):
        """`log_weight` less that of an anchor, elementwise, with all digits."""
        known = sum(look.log_ratio(i, x, anchor) for look in self.looks)
        return known + log_rising(x, self.prior[i]) - log_rising(anchor, self.prior[i])

    def log_size(self, n):
        """`ln P(n) n! Γ(A) / Γ(n + A)`."""
        n = np.asarray(n, dtype=float)
        known = 0.0
        if self.size_prior is not None:
            with np.errstate(divide="ignore"):
                known = self.size_prior.logpmf(n)
        return known - log_rising(n, float(self.prior.sum()))

    @cached_property
    def alike(self):
        """Categories of which the same is known, by their first: the first of every category."""
        keys, first = {}, []
        columns = [c for look in self.looks for c in (look.drawn * look.noised, look.noised)]
        for i, key in enumerate(zip(*columns, self.prior, strict=True)):
            first.append(keys.setdefault(tuple(map(float, key)), i))
        return np.array(first)


def log_rising(x, a):
    """`ln Γ(x + a) - ln Γ(a) - ln x!`, by Stirling's series where x is large."""
    x = np.asarray(x, dtype=float)
    low = np.minimum(x, 30)
    few = special.gammaln(low + a) - special.gammaln(low + 1)
    upper, lower, more = np.maximum(x, 1) + a, np.maximum(x, 1) + 1, a - 1
    many = (lower - 0.5) * np.log1p(more / lower) + more * np.log(upper) - more
    many += _series(upper) - _series(lower)
    return np.where(x < 30, few, many) - special.gammaln(a)


def _series(z):
    return 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)


class Pairs:
    """Answers from the weights of pairs: a count of category i and the number of records."""

    setting: Setting
    log_evidence: float

    def pairs(self, i):
        """Counts of category i, numbers of records, and weights that sum to 1."""
        raise NotImplementedError

    def theta(self, i):
        """Mean and standard deviation of the probability of category i."""
        x, n, w = self.pairs(i)
        a, whole = self.setting.prior[i] + x, self.setting.prior.sum() + n
        b = np.delete(self.setting.prior, i).sum() + (n - x)
        p, q = a / whole, b / whole
        mean, rest = w @ p, w @ q
        off = p - mean if mean < 0.5 else rest - q
        return mean, math.sqrt(w @ (p * q / (whole + 1) + off**2))

    def theta_cdf(self, i, values, complements):
        """`P(θ_i <= value)` from values and one minus these."""
        x, n, w = self.few_pairs(i)
        a, b = self.setting.prior[i] + x, np.delete(self.setting.prior, i).sum() + (n - x)
        below = [
            special.betainc(a, b, v) if v <= 0.5 else special.betaincc(b, a, c)
            for v, c in zip(values, complements, strict=True)
        ]
        return np.reshape(below, (-1, w.size)) @ w

    def few_pairs(self, i):
        """Fewer pairs with the same Betas: those of a count whose numbers of records are so near
        that its Beta does not tell are two, with their mean and variance.
        """
        x, n, w = self.pairs(i)
        if x.size < 3000 or np.ptp(n) == 0:
            return x, n, w
        x, n, w = x[w > 0], n[w > 0], w[w > 0]
        rest = n - x + np.delete(self.setting.prior, i).sum()
        step = 0.25 / np.sqrt(self.setting.prior[i] + x + 1)
        key = np.column_stack([x, np.floor(np.log(rest) / step)])
        _, place = np.unique(key, axis=0, return_inverse=True)
        whole = np.bincount(place, w)
        own, mean = np.bincount(place, w * x) / whole, np.bincount(place, w * n) / whole
        spread = np.sqrt(np.bincount(place, w * (n - mean[place]) ** 2) / whole)
        return (
            np.tile(np.rint(own), 2),
            np.concatenate([mean - spread, mean + spread]),
            np.tile(whole / 2, 2),
        )

    def count(self, i):
        """Mean and standard deviation of the count of category i."""
        x, _, w = self.pairs(i)
        mean = w @ x
        return mean, math.sqrt(w @ (x - mean) ** 2)

    def steps(self, i):
        """Counts, and their cumulative probabilities."""
        x, _, w = self.pairs(i)
        values, place = np.unique(x, return_inverse=True)
        return values, np.cumsum(np.bincount(place, w))

    def total(self):
        """Mean and standard deviation of the number of records."""
        _, n, w = self.pairs(0)
        mean = w @ n
        return mean, math.sqrt(w @ (n - mean) ** 2)

    def total_steps(self):
        """Numbers of records, and their cumulative probabilities."""
        _, n, w = self.pairs(0)
        values, place = np.unique(n, return_inverse=True)
        return values, np.cumsum(np.bincount(place, w))


class EveryCount(Pairs):
    """The definition: every data set with counts up to `largest`, one by one."""

    def __init__(self, setting, largest):
        self.setting = setting
        self._sets = np.array(list(product(range(largest + 1), repeat=setting.k)))
        n = self._sets.sum(axis=1)
        if setting.size is not None:
            self._sets, n = self._sets[n == setting.size], n[n == setting.size]
        columns = enumerate(self._sets.T)
        logs = setting.log_size(n) + sum(setting.log_weight(i, x) for i, x in columns)
        self.log_evidence = float(special.logsumexp(logs))
        self._n, self._w = n.astype(float), np.exp(logs - self.log_evidence)

    def pairs(self, i):
        return self._sets[:, i].astype(float), self._n, self._w

    def few_pairs(self, i):
        x, n, w = self.pairs(i)
        seen = w > NEGLIGIBLE
        return x[seen], n[seen], w[seen]


class Dense(Pairs):
    """Arrays with an entry for every count up to `largest`, convolved: directly, so that every
    entry has all its digits, or by Fourier transforms, with as many digits as `digits` says.

    With a private number of records each block of numbers has a tilt of its own.
    """

    def __init__(self, setting, largest=None, direct=True):
        self.setting, self._direct = setting, direct
        self._largest = setting.size if setting.size is not None else largest
        self._x = np.arange(self._largest + 1.0)
        self._rows = np.unique(setting.alike)
        self._times = np.array([np.sum(setting.alike == i) for i in self._rows])
        anchor = np.clip(setting.looks[0].drawn[self._rows], 0, self._largest).astype(float)
        pairs = list(zip(self._rows.tolist(), anchor.tolist(), strict=True))
        self._logs = np.array([setting.log_ratio(i, self._x, near) for i, near in pairs])
        anchors = np.array([float(setting.log_weight(i, near)) for i, near in pairs])
        self.digits = math.inf
        self._known = {}
        sizes = np.array([float(setting.size)]) if setting.size is not None else self._x
        self._log_total = self._searched(sizes)
        top = self._log_total[1].max()
        self._relative = float(special.logsumexp(self._log_total[1]))
        self.log_evidence = self._relative + float(self._times @ anchors)
        self.end = float(self._log_total[1][-1] - top) if setting.size is None else -math.inf
        seen = self._log_total[1] > top - 34
        self._blocks = [(n[seen[at]], tilt) for at, n, tilt in self._used if np.any(seen[at])]

    def _tilt(self, goal):
        """The tilt under which the mean of the sum is the goal."""

        def off(tilt):
            w = special.softmax(self._logs + tilt * self._x, axis=1)
            return float(self._times @ (w @ self._x)) - goal

        reach = 1e-3
        while off(reach) < 0 and reach < 1e8:
            reach *= 4
        below = -1e-3
        while off(below) > 0 and below > -1e8:
            below *= 4
        if off(reach) < 0 or off(below) > 0:
            return reach if off(reach) < 0 else below
        return optimize.brentq(off, below, reach, xtol=1e-12 * max(reach, -below), rtol=1e-10)

    def _searched(self, sizes):
        """Numbers of records and the logarithms of their weights, from tilts that reach them."""
        logs, self._used = np.full(sizes.size, -np.inf), []
        weight = self.setting.log_size(sizes)
        left = np.isfinite(weight)
        mean = float(self._times @ (special.softmax(self._logs, axis=1) @ self._x))
        goals = [float(sizes[np.argmin(np.abs(sizes - mean))])]
        while goals:
            tilt = self._tilt(goals.pop())
            found = self._sum(tilt, None)[: sizes[-1].astype(int) + 1]
            log_z = self._log_z(tilt)
            with np.errstate(divide="ignore"):
                own = np.log(np.maximum(found, 0))[sizes.astype(int)]
            least = -600 if self._direct else math.log(1e-7)
            near = left & (own > own[left].max() + least)
            if sizes.size == 1:
                self.digits = -math.log10(1e-15 / math.exp(max(own[0], -690)))
                near = left.copy()
            logs[near] = (own + log_z - tilt * sizes + weight)[near]
            self._used.append((np.flatnonzero(near), sizes[near], tilt))
            left &= ~near
            if np.any(left) and len(self._used) < 60:
                goals.append(float(sizes[left][np.sum(left) // 2]))
        return sizes, logs

    def _log_z(self, tilt):
        return float(self._times @ special.logsumexp(self._logs + tilt * self._x, axis=1))

    def _sum(self, tilt, without):
        """The law of the sum of all counts, or of all but one of them, on `0..largest`."""
        laws = special.softmax(self._logs + tilt * self._x, axis=1)
        times = self._times.copy()
        if without is not None:
            times[self._rows == without] -= 1
        if self._direct:
            found = np.zeros(self._x.size)
            found[0] = 1.0
            for law, number in zip(laws, times, strict=True):
                for _ in range(number):
                    found = np.convolve(found, law)[: self._x.size]
            return found
        length = 1 << (4 * self._x.size - 1).bit_length()
        whole = np.ones(length // 2 + 1, dtype=complex)
        for law, number in zip(laws, times, strict=True):
            whole *= np.fft.rfft(law, length) ** number
        return np.fft.irfft(whole, length)

    def pairs(self, i):
        i = int(self.setting.alike[i])
        if i not in self._known:
            self._known[i] = self._pairs(i)
        return self._known[i]

    def _pairs(self, i):
        found, row = [], int(np.flatnonzero(self._rows == i)[0])
        for sizes, tilt in self._blocks:
            rest = np.maximum(self._sum(tilt, i), 0)
            own = special.softmax(self._logs[row] + tilt * self._x)
            n = sizes.astype(int)
            log_scale = self._log_z(tilt) - tilt * sizes + self.setting.log_size(sizes)
            for each, scale in zip(n, np.exp(log_scale - self._relative), strict=True):
                w = own[: each + 1] * rest[each::-1][: each + 1] * scale
                seen = w > NEGLIGIBLE / self._x.size
                found.append((self._x[: each + 1][seen], np.full(seen.sum(), each), w[seen]))
        x, n, w = (np.concatenate(column) for column in zip(*found, strict=True))
        return x, n.astype(float), w / w.sum()
