"""Joint laws of arrays of draws: any two entries differ and are independent, and each entry has the
stated law.

A draw becomes a number that is uniform on (0, 1) where its law is the stated one: the probability
of what lies below it, and a random part of its own. What is looked at then are tosses of coins with
known probabilities, whose tails are exact. All of them together raise a false alarm with
probability `FALSE_ALARM` or less, by Bonferroni's inequality; that of one test of chi-square, on 8
cells of all entries, is as accurate as that test.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tests.helpers.oracles import FALSE_ALARM

Law = Mapping[int, float]
_CELLS = 8


@dataclass(frozen=True)
class Drawn:
    """Integers of shape `(releases, ...)` that should be independent draws of one law."""

    values: NDArray[np.int64]
    law: Law

    def uniforms(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Uniform on (0, 1) under the law; a value that it has not is at an end."""
        outcomes = np.array(sorted(self.law))
        masses = np.array([self.law[value] for value in outcomes.tolist()])
        below = np.concatenate([[0.0], np.cumsum(masses)])
        place = np.searchsorted(outcomes, self.values)
        inside = np.minimum(place, outcomes.size - 1)
        own = np.where(outcomes[inside] == self.values, masses[inside], 0.0)
        return np.asarray(below[place] + own * rng.random(self.values.shape))

    @property
    def agreement(self) -> float:
        """The probability that two draws are equal."""
        return math.fsum(p**2 for p in self.law.values())


@dataclass(frozen=True)
class Coin:
    """So many of some tosses had heads, whose probability is known."""

    what: str
    heads: NDArray[np.int64]
    tosses: int
    probability: float = 0.5


def _p_values(coins: Sequence[Coin]) -> NDArray[np.float64]:
    """Of every number of heads, on both sides."""
    sizes = [coin.heads.size for coin in coins]
    heads = np.concatenate([coin.heads.ravel() for coin in coins])
    tosses = np.repeat([coin.tosses for coin in coins], sizes)
    chance = np.repeat([coin.probability for coin in coins], sizes)
    below, above = stats.binom.cdf(heads, tosses, chance), stats.binom.sf(heads - 1, tosses, chance)
    return np.asarray(np.minimum(2 * np.minimum(below, above), 1.0))


def faults(parts: Sequence[Drawn], seed: int = 0) -> list[str]:
    """What is wrong with draws that were made together, of one law each; nothing where all are
    independent draws of their laws.
    """
    rng = np.random.default_rng(seed)
    uniforms = [part.uniforms(rng) for part in parts]
    coins = [coin for part, u in zip(parts, uniforms, strict=True) for coin in _of_part(part, u)]
    for (i, one), (j, other) in combinations(enumerate(uniforms), 2):
        flat = [u.reshape(len(u), -1) for u in (one, other)]
        least = min(u.shape[1] for u in flat)
        coins += _of_pair(f"parts {i} and {j}", flat[0][:, :least], flat[1][:, :least])
    p_values = _p_values(coins)
    level = FALSE_ALARM / (p_values.size + 1)
    names = np.repeat([coin.what for coin in coins], [coin.heads.size for coin in coins])
    found = sorted(set(names[p_values < level].tolist()))
    every = np.concatenate([u.ravel() for u in uniforms])
    seen = np.bincount(np.minimum((every * _CELLS).astype(int), _CELLS - 1), minlength=_CELLS)
    assert every.size >= 20 * _CELLS, "too few draws for their law"
    if stats.chisquare(seen).pvalue < level:
        found.append("law of all entries")
    return found


def _of_part(part: Drawn, u: NDArray[np.float64]) -> Iterator[Coin]:
    """The law of all entries, each slice and each entry; independence of any two of them."""
    yield from _of_law("all entries", u.reshape(-1, 1))
    for axis in range(u.ndim):
        slices = np.moveaxis(u, axis, -1).reshape(-1, u.shape[axis])
        yield from _of_law(f"slices of axis {axis}", slices)
        values = np.moveaxis(part.values, axis, -1).reshape(-1, u.shape[axis])
        yield from _of_columns(f"slices of axis {axis}", slices, values, part.agreement)
    entries = u.reshape(len(u), -1)
    yield from _of_law("entries", entries)
    values = part.values.reshape(len(u), -1)
    yield from _of_columns("entries", entries, values, part.agreement)
    for apart in range(1, entries.shape[1]):
        # Products of fair signs along a path are independent.
        yield from _of_pair(f"entries {apart} apart", entries[:, apart:], entries[:, :-apart])


def _of_law(what: str, u: NDArray[np.float64]) -> Iterator[Coin]:
    """Location and spread of every column."""
    yield Coin(f"location of {what}", (u > 0.5).sum(axis=0), len(u))
    yield Coin(f"spread of {what}", (abs(u - 0.5) < 0.25).sum(axis=0), len(u))


def _of_columns(
    what: str, u: NDArray[np.float64], values: NDArray[np.int64], agreement: float
) -> Iterator[Coin]:
    """Every pair of columns: the sides and the sizes that they share, and equal values."""
    upper = np.triu_indices(u.shape[1], 1)
    if not upper[0].size:
        return
    for kind, side in (("sides", u > 0.5), ("sizes", abs(u - 0.5) < 0.25)):
        signs = np.where(side, 1, -1)
        alike = (len(u) + signs.T @ signs) // 2
        yield Coin(f"{kind} of two {what}", alike[upper], len(u))
    equal = np.array(
        [(values[:, [i]] == values[:, i + 1 :]).sum(axis=0) for i in range(u.shape[1])],
        dtype=object,
    )
    yield Coin(f"equal {what}", np.concatenate(list(equal)).astype(int), len(u), agreement)


def _of_pair(what: str, one: NDArray[np.float64], other: NDArray[np.float64]) -> Iterator[Coin]:
    alike = {
        "sides": (one > 0.5) == (other > 0.5),
        "sizes": (abs(one - 0.5) < 0.25) == (abs(other - 0.5) < 0.25),
    }
    for kind, same in alike.items():
        yield Coin(f"{kind} of {what}", np.array(same.sum()), same.size)


def ranked(rows: Iterable[Any], law: Mapping[Any, float]) -> tuple[NDArray[np.int64], Law]:
    """Outcomes of any kind, as their places in a law; a place beyond it for what it has not."""
    places = {outcome: place for place, outcome in enumerate(sorted(law))}
    drawn = np.array([places.get(row, len(places)) for row in rows], dtype=np.int64)
    return drawn, {place: law[outcome] for outcome, place in places.items()}
