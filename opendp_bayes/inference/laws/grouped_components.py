"""Components of the Beta mixture that a probability is, and which of them are alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.laws.beta_mixture import BetaMixture
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.negligible import beta_squares, matters
from opendp_bayes.mathematics.validation import Floats, Integers

#: Components are grouped that lie within this share of their own deviation, and their deviations
#: (in logarithms of variances) so much of each other; counts below `SMALL` only with others of the
#: same count. Of mixtures in which nothing is as narrow as a component, fewer do.
_NEAR, BROADLY, SMALL = (0.5, 0.3), (0.5, 1.2), 12.0
#: Relative deviations count as no wider than this: the logarithm of a probability with a shape
#: below 1 has a scale of its own.
WIDEST = 0.2
#: Components, and those before they are grouped, that hold less than this share of the weight and
#: of the variance are left out.
NEGLIGIBLE, NEGLIGIBLE_APART = 1e-17, 1e-16
#: More components than this are grouped at once.
_MOST_APART = 1 << 12
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


@dataclass(frozen=True, eq=False)
class Components:
    """Components of a Beta mixture, with keys of those that may be grouped; shapes `(c,)`."""

    a: Floats
    b: Floats
    weights: Floats
    key: Integers


@dataclass(frozen=True)
class Prior:
    """`Beta(alpha, others)` of a probability, and mean and deviation of the number of records, and
    its law where it is private.
    """

    alpha: float
    others: float
    size: float
    size_deviation: float
    size_law: CountLaws | None = None

    @classmethod
    def given(cls, alpha: float, others: float, size_law: CountLaws) -> "Prior":
        """Make the prior with a private number of records, whose law is `size_law`."""
        return cls(alpha, others, float(size_law.mean()[0]), float(size_law.std()[0]), size_law)


def matched(
    mean: Floats,
    other: Floats,
    variance: Floats,
    weights: Floats,
    own: Floats,
    prior: Prior,
    wide: Floats,
) -> Components:
    """Components with these means, one minus these, and variances."""
    seen = (weights > 0) & (other > 0) & (variance > 0)
    mean, other, variance, own, wide = (x[seen] for x in (mean, other, variance, own, wide))
    count, weights = np.maximum(mean * other / variance - 1, 1e-6), weights[seen]
    a, b, left = mean * count, other * count, np.maximum(prior.size - own, 0)
    seen = seen_of(a, b, weights, NEGLIGIBLE)
    return keyed(a[seen], b[seen], weights[seen], own[seen], left[seen], wide[seen])


def seen_of(a: Floats, b: Floats, weights: Floats, least: float) -> NDArray[np.bool_]:
    """True for components that matter for the mixture of all."""
    one = np.zeros(a.shape, dtype=np.int64)
    return matters(weights, beta_squares(a, b, weights / weights.sum(), one), one, least)


def keyed(
    a: Floats,
    b: Floats,
    weights: Floats,
    own: Floats,
    rest: Floats,
    wide: Floats | None = None,
    near: tuple[float, float] = _NEAR,
) -> Components:
    """Keys that are equal for components with nearly the same place and deviation, and for those
    of a cell that is `wide`, shape `(c, 2)`, and of nearly the same number of records: apart, they
    would be steps.
    """
    apart, alike = near
    width = np.floor(np.log(1 / a + 1 / b) / alike)
    deviation = np.minimum(np.exp((width + 0.5) * alike / 2), WIDEST)
    place = np.floor(np.log(a / b) / (apart * deviation))
    if wide is not None and not np.all(np.isnan(wide[:, 0])):
        together, (cell, of_cell) = ~np.isnan(wide[:, 0]), wide.T
        width = np.where(together, cell, width)
        place = np.where(together, np.floor(np.log(own + rest + 1) / (apart * of_cell)), place)
    small = [np.where(x < SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (own, rest)]
    key, kind = np.zeros(a.shape, dtype=np.int64), np.full(a.shape, 100 * alike)
    for column in (kind, width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    if key.size <= _MOST_APART:
        return Components(a, b, weights, key)
    seen = seen_of(a, b, weights, NEGLIGIBLE_APART)
    grouped = BetaMixture.grouped(a[seen], b[seen], weights[seen], key[seen])
    total = weights[seen].sum()
    return Components(grouped.a, grouped.b, grouped.weights * total, np.unique(key[seen]))
