"""Posterior of the true counts of keys, and of their shares, given their noisy counts.

The true counts of keys with one noisy count have a row of a table, which is the law of all keys
times the noise; means, intervals, draws, shares and warnings are read from these rows.
"""

from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import alike, picked
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_size
from opendp_bayes.unlisted.posterior.law_of_keys import Lattice, LawOfKeys
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys

#: Numbers drawn for means and intervals of shares, and the fewest and the most draws.
_DRAWN, _FEWEST, _MOST = 4_000_000, 400, 4000
#: Above this many standard deviations by which counts near the threshold are lower on average than
#: a flat prior has them, a release says that keys may be small ones.
LARGEST_SHIFT = 0.5
MANY_SMALL = "many keys near the threshold may be small ones"
#: What it says where keys are so alike that their law is sharper than can be learned.
MANY_ALIKE = (
    "many keys have about the same number of records: the share of everything else may be somewhat"
    " too low, and the sum of those shown too high"
)
#: Keys are near the threshold up to so many records above it, or a standard deviation.
_NEAR = 4


def counts_of_keys(keys: NoisyKeys, *, random_state: int | None = 0) -> "CountsOfKeys":
    """Posterior of the counts of keys that were shown, then of those that are listed.

    Source: `docs/research/computation.md`, "Values that nobody listed".

    Parameters
    ----------
    keys : NoisyKeys
        Their noisy counts.
    random_state : int or None, default 0
        Of the Markov chains that learn the law of all keys; None for other draws each time.
    """
    lattice = Lattice(keys.law)
    near = bool((lattice.units(keys.noisy_counts) <= lattice.end).any())
    return CountsOfKeys(keys, LawOfKeys.learned(keys, lattice, random_state) if near else None)


class CountsOfKeys:
    """The posterior of the true counts of keys: those shown, then those listed.

    Keys that were shown have the learned law of all keys as their prior; far above the threshold,
    and where a key was listed beforehand, the prior is flat.

    Attributes
    ----------
    keys : NoisyKeys
        The noisy counts.
    law : LawOfKeys or None
        Draws of the law of all keys; None where no key needs it.
    mean, std
        Of the true counts, shape `(s + l,)`.
    """

    def __init__(self, keys: NoisyKeys, law: LawOfKeys | None) -> None:
        self.keys, self.law = keys, law
        self._lattice = lattice = Lattice(keys.law)
        noisy = np.concatenate([keys.noisy_counts, keys.listed])
        units = lattice.units(noisy)
        near = (np.arange(noisy.size) < keys.noisy_counts.size) & (units <= lattice.end)
        # The law of counts far from the threshold is that of one of them, moved.
        units = np.where(units > lattice.end, lattice.last + 1, units)
        #: Counts are those in units, and so much more.
        self._more = noisy - lattice.unit * units - lattice.start - (lattice.unit - 1) // 2
        first, self._row = alike(near, units)
        self._counts = lattice.behind(units[first])
        #: The learned prior of counts for each law of keys, and the flat one, each after a 0 that
        #: stands for all that are impossible; and the places there of the counts of each row.
        most = lattice.end + lattice.masses.size
        learned = np.zeros((1, 0)) if law is None else law.weights @ law.pmf
        flat = np.ones((len(learned), most))
        flat[:, 0] = (lattice.unit // 2 + 1) / lattice.unit  # which has no negative counts
        self._prior = np.hstack([np.pad(each, ((0, 0), (1, 0))) for each in (learned, flat)])
        self._places = np.maximum(self._counts + 1, 0)
        self._places[~near[first]] += 1 + learned.shape[1]
        #: The least that counts of shown keys near the threshold, and those of others, can be.
        self._least = near.astype(np.int64)
        self._masses = np.zeros(self._counts.shape)
        for number in range(len(learned)):
            masses = self._given(number)
            self._masses += masses / (len(learned) * masses.sum(axis=1, keepdims=True))
        mean = (self._masses * self._counts).sum(axis=1)
        away = self._counts - mean[:, None]
        self.mean: Floats = self._records(mean[self._row])
        self.std: Floats = lattice.unit * np.sqrt((self._masses * away**2).sum(axis=1))[self._row]

    def _given(self, law: int) -> Floats:
        """Masses of the true counts of each row, up to a factor, given one law of keys, shape
        `(rows, m)`.
        """
        return self._prior[law].take(self._places) * self._lattice.masses

    def _records(self, units: Any) -> Any:
        """Counts in records, shape `(..., s + l)`."""
        return self._lattice.unit * units + self._more

    def interval(self, level: float = 0.95) -> Floats:
        """Both ends, which belong to it, of the equal-tailed credible interval of each count, shape
        `(s + l, 2)`: not more than `(1 - level) / 2` is below, and not more above.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level, unit, row = as_level(level), self._lattice.unit, np.arange(len(self._masses))
        up_to, ends = np.cumsum(self._masses, axis=1), []
        for share in ((1 - level) / 2, (1 + level) / 2):
            entry = row, picked(self._masses, row, np.full(row.shape, share))
            part = 1 - (up_to[entry] - share) / self._masses[entry]
            within = np.clip(np.ceil(part * unit), 1, unit) - 1 - (unit - 1) // 2
            ends.append(self._records((self._counts[entry] + within / unit)[self._row]))
        return np.rint(np.maximum(ends, self._least)).T

    def draws(self, number: int, rng: np.random.Generator) -> Integers:
        """Draws of all counts together, shape `(number, s + l)`: one law of all keys for each, so
        that what is not known of it moves all counts together.
        """
        return self._draws(as_size(number, "number", "draws"), rng)[2]

    def _draws(self, number: int, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
        """For each draw, the place of the law of keys, all of them equally often; and the counts in
        units and in records.
        """
        laws, unit = np.resize(rng.permutation(len(self._prior)), number), self._lattice.unit
        units = np.empty((number, self._row.size), dtype=np.int64)
        for law in np.unique(laws):
            level = rng.random(units[laws == law].shape)
            place = picked(self._given(law), self._row, level)
            units[laws == law] = self._counts[self._row, place]
        within = rng.integers(unit, size=units.shape) - (unit - 1) // 2
        return laws, units, np.maximum(self._records(units) + within, self._least)

    @cached_property
    def shares(self) -> "SharesOfKeys":
        """Shares of the keys among themselves."""
        return SharesOfKeys(self, self._kinds)

    @cached_property
    def shares_of_all(self) -> "SharesOfKeys | None":
        """Shares of the keys, and last of everything else together; None without `rest`."""
        return None if self.keys.rest is None else SharesOfKeys(self, np.append(self._kinds, -1))

    @property
    def _kinds(self) -> Integers:
        """Numbers of keys, the same for those with the same posterior."""
        return alike(self._row, self._more)[1]

    def intensities(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of the intensities of all keys together; and last, if the rest was bought, of that
        of everything else.
        """
        laws, units, counts = self._draws(number, rng)
        shape, scale = counts + 1.0, np.ones(counts.shape)
        law, rest, near = self.law, self.keys.rest, self._least > 0
        if law is not None:
            for place in np.unique(laws):
                chosen = np.ix_(laws == place, near)
                n = units[chosen]
                lowest = n.min()
                masses = law.weights[place] * law.pmf[:, lowest : n.max() + 1].T
                j = picked(masses, n - lowest, rng.random(n.shape))
                shape[chosen] = counts[chosen] + law.shapes[j]
                scale[chosen] = 1 / (1 + law.shapes[j] / law.intensities[j])
        intensities = rng.standard_gamma(shape) * scale
        if rest is None:
            return intensities
        if law is None or law.everything_else is None:
            hidden = rng.standard_gamma(rest.draws(number, rng) + 1.0)
        else:
            mean, std = law.everything_else[:, laws]
            shape_of_rest = (mean / np.maximum(std, 1e-9 * mean)) ** 2
            hidden = mean * rng.standard_gamma(shape_of_rest) / shape_of_rest
        return np.column_stack([intensities, hidden])

    @cached_property
    def shift(self) -> float:
        """The number of standard deviations of the noise by which counts of shown keys near the
        threshold are lower than under a flat prior, on average; 0 where there are none.
        """
        law, noisy = self.keys.law, self.keys.noisy_counts
        flat = np.where(self._counts >= 1, self._lattice.masses, 0.0)
        means = (flat * self._counts).sum(axis=1) / flat.sum(axis=1)
        lower = (self._records(means[self._row]) - self.mean)[: noisy.size]
        lower = lower[noisy <= law.threshold + max(_NEAR, law.std)]
        return float(lower.mean() / law.std) if lower.size else 0.0

    @property
    def warning(self) -> str | None:
        """A warning where many keys near the threshold may be small ones, or where keys are alike
        and the rest was bought: rules of thumb.
        """
        if self.shift > LARGEST_SHIFT:
            return MANY_SMALL
        are_alike = self.keys.rest is not None and self.law is not None and self.law.is_sharp
        return MANY_ALIKE if are_alike else None


class SharesOfKeys:
    """The posterior of the shares of keys, and perhaps of everything else, which is last: shape
    `(k,)`, with a sum of 1.

    The records of a key are those of a Poisson law whose mean is its share of all. Means and
    intervals rest on draws; keys with the same noisy count have the same.

    Parameters
    ----------
    counts : CountsOfKeys
        The posterior of their counts.
    kinds : ndarray of int
        Which keys have the same posterior, shape `(k,)`.
    """

    def __init__(self, counts: CountsOfKeys, kinds: Integers) -> None:
        self._counts, self._kinds = counts, np.unique(kinds, return_inverse=True)[1]

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of all shares together, shape `(number, k)`."""
        number = as_size(number, "number", "draws")
        shares = self._counts.intensities(number, rng)[:, : self._kinds.size]
        return shares / shares.sum(axis=1, keepdims=True)

    @cached_property
    def _drawn(self) -> Floats:
        number = int(np.clip(_DRAWN // max(self._kinds.size, 1), _FEWEST, _MOST))
        return self.draws(number, np.random.default_rng(0))

    def _alike(self, values: Floats) -> Floats:
        """Means of values over the keys that have the same posterior."""
        return (np.bincount(self._kinds, values) / np.bincount(self._kinds))[self._kinds]

    @cached_property
    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._alike(self._drawn.mean(axis=0))

    @cached_property
    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._alike(self._drawn.std(axis=0))

    def interval(self, level: float = 0.95) -> Floats:
        """Both ends of the equal-tailed credible intervals, shape `(k, 2)`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level = as_level(level)
        ends = np.quantile(self._drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return np.stack([self._alike(end) for end in ends], axis=1)
