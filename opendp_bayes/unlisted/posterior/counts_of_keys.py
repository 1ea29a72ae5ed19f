"""Posterior of the true counts of keys, and of their shares, given their noisy counts.

The true counts of keys with one noisy count have a row of a table, which is the law of all keys
times the noise; draws, shares and warnings are read from these rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.laws.dirichlet_multinomial import picked
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_size
from opendp_bayes.unlisted.posterior.law_of_keys import Lattice, LawOfKeys
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys

#: Rows of one block have noisy counts this close, or within a part of the width of the noise; and
#: shares of probability that draws leave out.
_BLOCK, _PART, _UNLIKELY = 8, 16, 1e-14


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows whose noisy counts are near each other.

    Attributes
    ----------
    rows : slice
        Their places.
    lowest : int
        The first of the true counts.
    density : ndarray
        Of the true counts before any is seen, for each law of keys, shape `(draws, n)`.
    noise : ndarray
        The probability of the noisy count of each row given each true count, shape `(n, rows)`.
    """

    rows: slice
    lowest: int
    density: Floats
    noise: Floats

    @property
    def counts(self) -> Floats:
        """The true counts, shape `(n, 1)`."""
        return self.lowest + np.arange(float(len(self.noise)))[:, None]

    @cached_property
    def masses(self) -> Floats:
        """Posterior masses of the true counts, shape `(n, rows)`."""
        evidence = self.density @ self.noise
        return np.asarray(self.noise * (self.density.T @ (1 / evidence)) / len(evidence))

    @property
    def means(self) -> Floats:
        """Expected true counts given each law of keys, shape `(draws, rows)`."""
        expected = self.density @ (self.noise * self.counts)
        return np.asarray(expected / (self.density @ self.noise))

    def drawn(self, law: int, row: Integers, level: Floats) -> Integers:
        """True counts of some rows by one law of keys, at levels of shape `(..., rows)`."""
        likely = self._likely
        masses = self.density[law, likely] * self.noise[likely].T
        return np.asarray(self.lowest + likely.start + picked(masses, row, level))

    @cached_property
    def _likely(self) -> slice:
        """The true counts that draws do not leave out."""
        masses = self.density.mean(axis=0)[:, None] * self.noise
        seen = np.flatnonzero((masses > _UNLIKELY * masses.sum(axis=0)).any(axis=1))
        return slice(int(seen[0]), int(seen[-1]) + 1)

    @property
    def flat_means(self) -> Floats:
        """Expected true counts, of at least 1, under a flat prior, shape `(rows,)`."""
        flat = np.where(self.counts >= 1, self.noise, 0.0)
        return np.asarray((self.counts * flat).sum(axis=0) / flat.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct noisy counts, and what their true counts may be.

    Attributes
    ----------
    noisy : ndarray of int
        The noisy counts in units of a lattice, ascending.
    first : int
        The place of the first row among all.
    lowest : int
        The first of the true counts.
    density : ndarray
        Of true counts before any is seen, for each law of keys, shape `(draws, n)`.
    lattice : Lattice
        Of the noise.
    """

    noisy: Integers
    first: int
    lowest: int
    density: Floats
    lattice: Lattice

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks of noisy counts near each other."""
        masses, lattice = self.lattice.masses, self.lattice
        span, low = max(_BLOCK, masses.size // _PART), 0
        while low < self.noisy.size:
            high = int(np.searchsorted(self.noisy, self.noisy[low] + span))
            noisy = self.noisy[low:high]
            least = max(int(noisy[0]) - lattice.last, self.lowest)
            most = int(noisy[-1]) - lattice.first
            places = noisy - np.arange(least, most + 1)[:, None] - lattice.first
            inside = (places >= 0) & (places < masses.size)
            noise = np.where(inside, masses[np.clip(places, 0, masses.size - 1)], 0.0)
            density = self.density[:, least - self.lowest : most + 1 - self.lowest]
            yield Block(slice(self.first + low, self.first + high), least, density, noise)
            low = high


#: Numbers drawn for means and intervals, and the fewest and the most draws.
_DRAWN, _FEWEST, _MOST = 4_000_000, 400, 4000


class SharesOfKeys:
    """The posterior of the shares of keys, and perhaps of everything else, which is last: shape
    `(k,)`, with a sum of 1.

    The records of a key are those of a Poisson law whose mean is its share of all. Means and
    intervals rest on draws; keys with the same noisy count have the same.

    Parameters
    ----------
    intensities : Callable[[int, Generator], ndarray]
        Draws so many of the means, shape `(number, k)`.
    kinds : ndarray of int
        Which keys have the same posterior, shape `(k,)`.
    """

    def __init__(
        self, intensities: Callable[[int, np.random.Generator], Floats], kinds: Integers
    ) -> None:
        self._intensities, self._kinds = intensities, kinds

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of all shares together, shape `(number, k)`."""
        shares = self._intensities(as_size(number, "number", "draws"), rng)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def _draws_of_kinds(self) -> list[tuple[Integers, Floats]]:
        """Keys with the same posterior, and the draws of their shares."""
        kinds = self._kinds
        if not kinds.size:
            return []
        number = int(np.clip(_DRAWN // kinds.size, _FEWEST, _MOST))
        all_draws, order = self.draws(number, np.random.default_rng(0)), np.argsort(kinds)
        parts = np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)
        return [(keys_of_kind, all_draws[:, keys_of_kind].reshape(-1)) for keys_of_kind in parts]

    def _statistics(self, statistic: Callable[[Floats], ArrayLike], *shape: int) -> Floats:
        """A statistic of the draws of each kind, for all keys of it."""
        results = np.empty((self._kinds.size, *shape))
        for keys_of_kind, draws in self._draws_of_kinds:
            results[keys_of_kind] = statistic(draws)
        return results

    @cached_property
    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._statistics(np.mean)

    @cached_property
    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._statistics(np.std)

    def interval(self, level: float = 0.95) -> Floats:
        """Both ends of the equal-tailed credible intervals, shape `(k, 2)`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level = as_level(level)
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        return self._statistics(lambda draws: np.quantile(draws, ends), 2)


#: Above this many standard deviations by which counts near the threshold may be lower than a flat
#: prior has them, with such a probability of less, a release says that keys may be small ones.
LARGEST_SHIFT, _SURE = 1.0, 0.975
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
    lattice = Lattice.of(keys.law)
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
        self._lattice = lattice = Lattice.of(keys.law)
        noisy = np.concatenate([keys.noisy_counts, keys.listed])
        shown = np.arange(noisy.size) < keys.noisy_counts.size
        units = lattice.units(noisy)
        far = units > lattice.end
        units[far] = 0  # the law of counts far from the threshold is that of one of them, moved
        #: Counts are those in units, and so much more.
        self._more = noisy - lattice.unit * units - lattice.start - (lattice.unit - 1) // 2
        self._row = np.empty(noisy.size, dtype=np.int64)
        density = np.ones((1, lattice.end + lattice.masses.size))
        groups = (
            (~far & shown, 0, density if law is None else law.density),
            (~far & ~shown, 0, density),
            (far, -lattice.last, density),
        )
        rows, start = [], 0
        for chosen, lowest, density in groups:
            units_of_rows, row_of = np.unique(units[chosen], return_inverse=True)
            self._row[chosen] = start + row_of.reshape(-1)
            rows.append(Rows(units_of_rows, start, lowest, density, lattice))
            start += units_of_rows.size
        self._rows, self._near = tuple(rows), rows[0]
        mean, std = np.empty(start), np.empty(start)
        for block in self._blocks():
            mean[block.rows] = (block.counts * block.masses).sum(axis=0)
            away = (block.counts - mean[block.rows]) ** 2
            std[block.rows] = np.sqrt((away * block.masses).sum(axis=0))
        self._std = std
        self.mean: Floats = lattice.unit * mean[self._row] + self._more
        self.std: Floats = lattice.unit * std[self._row]

    def _blocks(self) -> Iterator[Block]:
        """All rows, block by block."""
        for rows in self._rows:
            yield from rows.blocks()

    def interval(self, level: float = 0.95) -> Floats:
        """Both ends, which belong to it, of the equal-tailed credible interval of each count, shape
        `(s + l, 2)`: not more than `(1 - level) / 2` is below, and not more above.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        level, unit = as_level(level), self._lattice.unit
        bounds = np.empty((self._std.size, 2))
        for block in self._blocks():
            up_to = np.cumsum(block.masses, axis=0)
            for end, share in enumerate(((1 - level) / 2, (1 + level) / 2)):
                before = (up_to < share * up_to[-1]).sum(axis=0)
                column = np.arange(before.size)
                mass = block.masses[before, column]
                share_of_cell = (share * up_to[-1] - up_to[before, column] + mass) / mass
                within = np.clip(np.ceil(share_of_cell * unit) - 1, 0, unit - 1) - (unit - 1) // 2
                bounds[block.rows, end] = block.lowest + before + within / unit
        return np.rint(np.maximum(self._records(bounds[self._row].T).T, 0))

    def _records(self, units: Any) -> Any:
        """Counts in records, shape `(..., s + l)`."""
        return self._lattice.unit * units + self._more

    def draws(self, number: int, rng: np.random.Generator) -> Integers:
        """Draws of all counts together, shape `(number, s + l)`: one law of all keys for each, so
        that what is not known of it moves all counts together.
        """
        _, units = self._draws(as_size(number, "number", "draws"), rng)
        counts = self._records(units)
        if (unit := self._lattice.unit) > 1:
            counts += rng.integers(unit, size=counts.shape) - (unit - 1) // 2
        return np.asarray(np.maximum(counts, 0))

    def _draws(self, number: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """For each draw, the place of the law of keys, and the counts in units."""
        counts = len(self._rows[0].density)
        rounds = [rng.permutation(counts) for _ in range(-(-number // counts))]
        laws = np.concatenate(rounds)[:number]  # all equally often
        order_of_laws = np.argsort(laws, kind="stable")
        laws = laws[order_of_laws]
        chosen, start = np.unique(laws, return_index=True)
        parts = list(zip(chosen.tolist(), start.tolist(), [*start[1:], number], strict=True))
        draws = np.empty((number, self._row.size), dtype=np.int64)
        order = np.argsort(self._row, kind="stable")
        ordered = self._row[order]
        for rows in self._rows:
            for some in rows.blocks():
                keys = slice(*np.searchsorted(ordered, (some.rows.start, some.rows.stop)))
                row = ordered[keys] - some.rows.start
                for law, low, high in [(0, 0, number)] if len(rows.density) == 1 else parts:
                    level = rng.random((high - low, row.size))
                    draws[np.ix_(order_of_laws[low:high], order[keys])] = some.drawn(
                        law, row, level
                    )
        return laws[np.argsort(order_of_laws)], draws

    @cached_property
    def shares(self) -> SharesOfKeys:
        """Shares of the keys among themselves."""
        return SharesOfKeys(self._intensities, self._kinds)

    @cached_property
    def shares_of_all(self) -> SharesOfKeys | None:
        """Shares of the keys, and last of everything else together; None without `rest`."""
        if self.keys.rest is None:
            return None
        return SharesOfKeys(self._intensities_of_all, np.append(self._kinds, -1))

    @property
    def _kinds(self) -> Integers:
        """Numbers of keys, the same for those with the same posterior."""
        same = np.stack([self._row, self._more])
        return np.asarray(np.unique(same, axis=1, return_inverse=True)[1].reshape(-1))

    def _intensities_of_all(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of the intensities of all keys, and last of everything else, together."""
        laws, intensities = self._laws_and_intensities(number, rng)
        if self.law is None or self.law.everything_else is None:
            hidden = rng.standard_gamma(self.keys.rest_draws(number, rng) + 1.0)
        else:
            mean, std = self.law.everything_else[:, laws]
            shape = (mean / np.maximum(std, 1e-9 * mean)) ** 2
            hidden = self._lattice.unit * mean * rng.standard_gamma(shape) / shape
        return np.concatenate([intensities, hidden[:, None]], axis=1)

    def _intensities(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of the intensities of all keys together."""
        return self._laws_and_intensities(number, rng)[1]

    def _laws_and_intensities(
        self, number: int, rng: np.random.Generator
    ) -> tuple[Integers, Floats]:
        """For each draw, the place of the law of keys, and the intensities of all keys, shape
        `(number, s + l)`.
        """
        laws, units = self._draws(number, rng)
        near, law = self._row < self._near.noisy.size, self.law
        intensities = np.empty(units.shape)
        intensities[:, ~near] = rng.standard_gamma(
            np.maximum(self._records(units)[:, ~near], 0) + 1.0
        )
        if law is None or not near.any():
            return laws, intensities
        shape, mean = law.shapes, law.intensities
        for law_number in np.unique(laws):
            chosen = np.ix_(laws == law_number, near)
            n = units[chosen]
            lowest = int(n.min())
            masses = (law.weights[law_number][:, None] * law.pmf[:, lowest : int(n.max()) + 1]).T
            j = picked(masses, n - lowest, rng.random(n.shape))
            gamma_draws = rng.standard_gamma(n + shape[j]) / (1 + shape[j] / mean[j])
            intensities[chosen] = self._lattice.unit * gamma_draws
        return laws, intensities

    @cached_property
    def shift(self) -> float:
        """The number of standard deviations of the noise by which counts of shown keys near the
        threshold may be lower than under a flat prior, on average: less with probability .975. 0
        where there are none.
        """
        law, noisy = self.keys.law, self.keys.noisy_counts
        keys = np.bincount(
            self._row[: noisy.size][noisy <= law.threshold + max(_NEAR, law.std)],
            minlength=self._near.noisy.size,
        )
        if not keys.any():
            return 0.0
        lower = sum(
            (block.flat_means - block.means) @ keys[block.rows] for block in self._near.blocks()
        )
        return float(np.quantile(lower / keys.sum(), _SURE) / self._lattice.std)

    @property
    def warning(self) -> str | None:
        """A warning where many keys near the threshold may be small ones, or where keys are alike
        and the rest was bought: rules of thumb.
        """
        if self.shift > LARGEST_SHIFT:
            return MANY_SMALL
        alike = self.keys.rest is not None and self.law is not None and self.law.is_sharp
        return MANY_ALIKE if alike else None
