r"""A table of counts as it was drawn, with the variables of its cells: the counts that are possible
given the noise, all of them or some that stand for others; and effects of margins on the logarithms
of intensities, normal waves along each variable, of a scale that is learned and half-Cauchy.

A margin is one or two of the variables of a table, and each combination of their values has an
effect on ln λ. The effects of a margin are a sum of `c_i` times waves along each variable:

- of a variable without order the i-th wave is 1 at its i-th value and 0 at the others, less the
  mean, so that the effects of two variables add to none along either;
- of an ordered one waves are cosines, of which the slower go farther: the effects are a random walk
  about their mean. Values that are in no order, such as that of nulls, have a wave each, which goes
  as far as the slowest.

`c_i ~ N(0, (τ f_i)²)` with a reach f_i of the wave, and the scale τ is half-Cauchy.

Chains move `v_i = c_i sqrt(I_i + (τ f_i)^-2)` and a multiple of `ln τ`, with about the information
I_i that the cells have of c_i: what is known well stays where it is as τ moves, and what is not
moves with it (a partial non-centring).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from opendp_bayes.inference.likelihood.drawn_counts import (
    DrawnCounts,
    check_bounds,
    check_same_records,
)
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.labels import distinct, identity, numbered

#: Counts further than this from what was drawn, `exp(-_DEPTH)` of the noise's largest mass, are
#: left out.
_DEPTH = 30.0


@dataclass(frozen=True, eq=False)
class NoisedTable:
    """Counts of k cells with independent noise, drawn once or several times.

    Attributes
    ----------
    looks : Sequence[DrawnCounts]
        Each draw with its noise, for the same counts.
    size : int or None
        The public number of records; None if it is private.
    variables : dict[str, ndarray of int]
        Of every variable, in which of its values each cell is, as numbers from 0 on, shape `(k,)`;
        one variable for a table of one column. Values that are in no order come last.
    apart : dict[str, int]
        Of every variable, how many of its values are in no order.
    """

    looks: Sequence[DrawnCounts]
    size: int | None
    variables: dict[str, Integers] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """Number of cells."""
        return self.looks[0].drawn.size

    @property
    def scale(self) -> float:
        """Standard deviation of the noise, but for a small factor."""
        return min(look.noise.scale for look in self.looks)

    @property
    def largest(self) -> int:
        """A number that no count exceeds but with negligible probability."""
        looks = [look for look in self.looks if look.is_complete]
        limits = [int(look.drawn.max()) + look.noise.reach(_DEPTH) for look in looks]
        return max(min(limits if self.size is None else [*limits, self.size]), 1)

    def start(self) -> Integers:
        """Counts to begin with, shape `(k,)`."""
        return np.clip(self.looks[0].drawn, 0, self.largest)

    def origin(self) -> float:
        """Logarithm of a typical intensity: that of the mean of what was drawn, or what noise
        leaves visible.
        """
        mean = self.looks[0].drawn.mean() if self.size is None else self.size / self.k
        return float(np.log(max(mean, self.scale / (2 * np.sqrt(self.k)), 0.05)))

    def log_noise(self, counts: Integers, cells: Integers | slice = slice(None)) -> Floats:
        """Log-probability of what was drawn of some cells, given candidates for their counts of
        shape `(chains, cells, candidates)`; likewise shaped.
        """
        return np.sum([look.log_mass(counts, (cells, None)) for look in self.looks], axis=0)


def table_of(releases: Sequence[ReleasedData], size: int | None) -> NoisedTable:
    """The table of `size` records that releases were drawn from.

    Raises
    ------
    ValueError
        Where a draw is not noise on counts, is out of the bounds of `docs/limits.md`, or
        contradicts another.
    """
    looks = []
    for release in releases:
        release.setting.check_learnable()
        looks.append(noise_of("releases", release))
        check_bounds(looks[-1], size)
    check_same_records(looks)
    return NoisedTable(looks, size, *_variables(releases))


def _variables(releases: Sequence[ReleasedData]) -> tuple[dict[str, Integers], dict[str, int]]:
    """In which value of each variable every cell is, those in no order last, and how many these
    are.
    """
    variables, apart = {}, {}
    columns = releases[0].values_of_axes
    for axis, (variable, values) in enumerate((columns or {"": releases[0].categories}).items()):
        unordered = {
            identity(label)
            for release in releases
            for label in (release.unordered_values(axis) if columns else release.unordered)
        }
        labels = distinct(values)
        last = np.array([identity(label) in unordered for label in labels])
        rank = np.argsort(np.argsort(last, kind="stable"))
        variables[variable], apart[variable] = (
            rank[numbered(values)],
            min(int(last.sum()), last.size - 1),
        )
    return variables, apart


#: ln τ at the start.
_START = -0.7


@dataclass(frozen=True, eq=False)
class Margin:
    """One margin of a table: `level`, shape `(k,)`, is the place of each cell's effect. `waves` has
    those of two variables in columns, of which the first may be none. `reach`, shape `(m,)`, has
    those of all their products.
    """

    variables: tuple[str, ...]
    level: Integers
    waves: list[Floats]
    reach: Floats

    def effects(self, c: Floats) -> Floats:
        """Effects, shape `(n, levels)`, of coefficients of shape `(n, m)`."""
        return _products(self.waves, c)

    def back(self, values: Floats, power: int = 1) -> Floats:
        """Sums over the cells of values, shape `(n, k)`, times the waves there or a power of these,
        shape `(n, m)`.
        """
        levels = math.prod(len(waves) for waves in self.waves)
        entry = np.arange(len(values))[:, None] * levels + self.level
        sums: Any = np.bincount(entry.ravel(), values.ravel(), len(values) * levels)
        return _products([waves.T**power for waves in self.waves], sums.reshape(len(values), -1))


class Effects:
    """The effects of all margins, by coordinates u: the v of each, then multiples of each ln τ.

    Parameters
    ----------
    margins : list[Margin]
        The margins.
    information : ndarray
        About what the cells know of ln λ, shape `(k,)`.
    drawn : ndarray
        What was drawn, of whose means the effects of single variables begin, shape `(k,)`.
    scale : float
        Of the noise.
    """

    def __init__(
        self, margins: list[Margin], information: Floats, noisy_counts: Integers, scale: float
    ) -> None:
        self.margins, self._k = margins, information.size
        sizes = [margin.reach.size for margin in margins]
        self._until = np.cumsum(sizes)
        #: Which margin has each coefficient, shape `(m, margins)`.
        self._own = np.repeat(np.eye(len(margins)), sizes, axis=0)
        self._reach = np.concatenate([margin.reach for margin in margins])
        self._precision = self._back(information[None], 2)[0]
        whole = self._precision + np.exp(-2 * _START) / self._reach**2
        self._scales = 1 / np.sqrt(1 + 2 * (self._precision / whole) ** 2 @ self._own)
        wanted = np.zeros(self._reach.size)
        for margin, own in zip(margins, np.split(wanted, self._until), strict=False):
            if len(margin.variables) == 1:
                number = np.bincount(margin.level)[margin.level]
                mean = np.bincount(margin.level, noisy_counts)[margin.level] / number
                log_mean = np.log(np.maximum(mean, scale / np.sqrt(number)))
                own += margin.back(log_mean[None] / number)[0]
        self.start: Floats = np.append(wanted * np.sqrt(whole), np.zeros(len(margins)))

    def _back(self, values: Floats, power: int = 1) -> Floats:
        return np.concatenate([margin.back(values, power) for margin in self.margins], axis=1)

    def log_tau(self, u: Floats) -> Floats:
        """The logarithms of scales, shape `(chains, margins)`."""
        return np.asarray(_START + self._scales * u[:, self._reach.size :])

    def _coefficients(self, u: Floats) -> tuple[Floats, Floats]:
        """The c of all margins, and their precisions before all else is known."""
        free = np.exp(-2 * self.log_tau(u) @ self._own.T) / self._reach**2
        return u[:, : self._reach.size] / np.sqrt(self._precision + free), free

    def locations(self, u: Floats) -> Floats:
        """Sums of the effects of each cell, shape `(chains, k)`."""
        sums, c = np.zeros((len(u), self._k)), self._coefficients(u)[0]
        for margin, own in zip(self.margins, np.split(c, self._until, axis=1), strict=False):
            sums += margin.effects(own)[:, margin.level]
        return sums

    def loss(self, u: Floats, slope: Floats) -> tuple[Floats, Floats]:
        """Minus the logarithm of the prior density of u, and its gradient together with that of
        what has such a `slope` in locations.
        """
        c, free = self._coefficients(u)
        whole, log_tau, sizes = self._precision + free, self.log_tau(u), self._own.sum(axis=0)
        tau_squared = np.exp(2 * log_tau)
        loss = (np.log1p(tau_squared) + (sizes - 1) * log_tau).sum(axis=1)
        loss += (free * c**2 + np.log(whole)).sum(axis=1) / 2
        of_c = free * c + self._back(slope)
        of_free = (of_c * free / whole - free * c) * c - free / whole
        of_tau = 2 * tau_squared / (1 + tau_squared) + sizes - 1 + of_free @ self._own
        return loss, np.concatenate([of_c / np.sqrt(whole), of_tau * self._scales], axis=1)


def margins_of(
    variables: dict[str, Integers], ordered: Sequence[str], apart: Mapping[str, int] | None = None
) -> list[Margin]:
    """The margins that have effects: every single variable and every pair, but not the table.

    `variables` has for each variable the value of every cell, as numbers from 0 on. Where a margin
    has an `ordered` variable its effects are walks along the first such one, without the last
    values of it, so many as are `apart` in no order. A table of one variable has no effects unless
    that is ordered.
    """
    names, margins = list(variables), []
    for some in [*combinations(names, 1), *combinations(names, 2)]:
        walked = [variable for variable in some if variable in ordered][:1]
        if len(some) == len(names) and not (walked and len(names) == 1):
            continue
        sizes = [int(variables[variable].max()) + 1 for variable in some]
        level = np.ravel_multi_index([variables[variable] for variable in some], sizes)
        waves, reach = [np.ones((1, 1))] * (2 - len(some)), np.ones(1)
        for variable, size in zip(some, sizes, strict=True):
            last = (apart or {}).get(variable, 0)
            columns, far = (
                _walk(size, last) if variable in walked else (np.eye(size), np.ones(size))
            )
            waves.append(columns - columns.mean(axis=0))
            reach = np.outer(reach, far).ravel()
        margins.append(Margin(some, level, waves, reach))
    return margins


def _walk(size: int, apart: int) -> tuple[Floats, Floats]:
    """Cosines along the first values, each with its reach, and a wave for each of the others."""
    number = size - apart
    points, wave = np.arange(number)[:, None] + 0.5, np.arange(1, number)
    waves = np.zeros((size, size - 1))
    waves[:number, : number - 1] = np.sqrt(2 / number) * np.cos(np.pi * wave * points / number)
    waves[number:, number - 1 :] = np.eye(apart)
    reach = 0.5 / np.sin(np.pi * wave / number / 2)
    slowest = reach[0] if number > 1 else 1.0
    return waves, np.append(reach, np.full(apart, slowest))


def _products(matrices: Sequence[Floats], values: Floats) -> Floats:
    """Products with one matrix along the first of two axes, which are one, and with the other along
    the second.
    """
    first, second = matrices
    product = values.reshape(-1, first.shape[1], second.shape[1]) @ second.T
    return np.asarray(first @ product).reshape(len(values), -1)
