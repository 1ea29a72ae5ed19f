"""Counts with additive noise, what is asked of their posterior, and answers from weights of pairs,
in ways that share no code with the package.

Three references answer: `brute_force.EveryCount` is the definition, `dense_counts.Dense` convolves
arrays with an entry for every count, and `far_counts` is for those that are too long for that.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import special

#: Pairs of a count and a number of records that weigh less than this, together, are left out.
NEGLIGIBLE = 1e-13
RARE = 1e-5


class NotServedError(Exception):
    """A setting, or a question, that a reference does not answer."""


@dataclass(frozen=True)
class Look:
    """One draw of every count: its noise, and which entries were noised, by default all."""

    law: str
    scale: float
    drawn: np.ndarray
    noised: np.ndarray | None = None

    def __post_init__(self):
        known = np.ones(len(self.drawn)) if self.noised is None else self.noised
        object.__setattr__(self, "noised", np.array(known, dtype=bool))
        object.__setattr__(self, "drawn", np.array(self.drawn))

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
        """`ln P(drawn_i | x) - ln P(drawn_i | anchor)` with all digits, elementwise."""
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
    probabilities of `records_prior`, a frozen distribution of scipy. `sums` are looks at the counts
    of groups of categories, each with the groups.
    """

    looks: tuple
    prior: np.ndarray
    size: int | None = None
    records_prior: object = None
    about: dict = field(default_factory=dict)
    sums: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "prior", np.array(self.prior, dtype=float))

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
        if self.records_prior is not None:
            with np.errstate(divide="ignore"):
                known = self.records_prior.logpmf(n)
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
        return self.below(i, self.few_pairs(i), values, complements)

    def below(self, i, pairs, values, complements):
        """The same, given the pairs of a count and a number of records, and weights."""
        x, n, w = pairs
        a, b = self.setting.prior[i] + x, np.delete(self.setting.prior, i).sum() + (n - x)
        found = [
            special.betainc(a, b, v) if v <= 0.5 else special.betaincc(b, a, c)
            for v, c in zip(values, complements, strict=True)
        ]
        return np.reshape(found, (-1, w.size)) @ w

    def few_pairs(self, i):
        """Pairs of nearly one Beta are two; all that are left out weigh less than `RARE`."""
        x, n, w = self.pairs(i)
        if x.size < 50_000 or np.ptp(n) == 0:
            return x, n, w
        order = np.argsort(w)
        seen = order[np.searchsorted(np.cumsum(w[order]), RARE) :]
        x, n, w = x[seen], n[seen], w[seen] / w[seen].sum()
        rest = n - x + np.delete(self.setting.prior, i).sum()
        step = 1 / np.sqrt(self.setting.prior[i] + x + 1)
        cell = np.floor(np.log(rest) / step)
        cell -= cell.min()
        _, place = np.unique(x * (cell.max() + 1) + cell, return_inverse=True)
        whole = np.bincount(place, w)
        own, mean = np.bincount(place, w * x) / whole, np.bincount(place, w * n) / whole
        spread = np.sqrt(np.bincount(place, w * (n - mean[place]) ** 2) / whole)
        both = np.concatenate([mean - spread, mean + spread])
        return (np.tile(np.rint(own), 2), both, np.tile(whole / 2, 2))

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
