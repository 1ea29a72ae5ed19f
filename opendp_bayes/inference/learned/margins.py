r"""Effects of margins on the intensities of cells.

A margin is some of the variables of a table, and each combination of their values has an effect
e on ln λ, in steps of the lattice of `intensity_law`:

- independent: `e ~ N(0, τ²)`;
- along an ordered variable: `e_1 ~ N(0, 1)` and `e_v - e_(v-1) ~ N(0, τ²)`, a random walk, for each
  combination of the values of the others. Values that are in no order, such as that of nulls, are
  walks of one step.

τ is half-Cauchy with scale 1, on 24 points from .037 to 3.7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of
from opendp_bayes.inference.learned.intensity_law import STEP
from opendp_bayes.mathematics.validation import Floats, Integers

#: Places that an effect may move to at once, its own among them, how far apart they may be, and the
#: farthest of them.
WIDTH, _SPACINGS = 17, (1, 4)
FARTHEST = (WIDTH - 1) * max(_SPACINGS)
#: Scales of effects, the logarithms of their prior masses, and of the sums that normalise a law of
#: that scale on the lattice.
SCALES = np.exp(np.linspace(-3.3, 1.3, 24))
_LOG_PRIOR = np.log(SCALES / (1 + SCALES**2))
#: The highest place of an effect on the lattice, and the masses of places under each scale.
_HIGHEST = 400
_LATTICE = STEP * np.arange(-_HIGHEST, _HIGHEST + 1)
with np.errstate(under="ignore"):  # far away a mass is 0, whatever the caller asks of numpy
    _MASSES = np.exp(-((_LATTICE / SCALES[:, None]) ** 2) / 2)
    _LOG_SUMS = np.log(_MASSES.sum(axis=1))
    _MASSES /= _MASSES.sum(axis=1, keepdims=True)
#: Scales that are tried at once, the present one among them, and the least that a sum can be.
_TRIED, _TINY = 16, 1e-300


@dataclass(frozen=True, eq=False)
class Margin:
    """One margin of a table: `level`, shape `(k,)`, is the place of each cell's effect in an array
    of `walks` rows of `steps` effects.

    Where `smooth`, a row is a random walk, and the last ones, so many as are `apart`, are walks of
    one step each; otherwise all effects are independent.
    """

    variables: tuple[str, ...]
    level: Integers
    walks: int
    steps: int
    smooth: bool
    apart: int = 0

    @property
    def number(self) -> int:
        """Number of effects."""
        return self.walks * self.steps

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers, Integers]:
        """The cells by level, where each level starts among them, and the levels that occur."""
        present, start = np.unique(np.sort(self.level), return_index=True)
        return np.argsort(self.level, kind="stable"), start, present

    def totals(self, values: NDArray[np.float32], places: Integers, steps: Integers) -> Floats:
        """Sums over the cells of each level of the values that are at the cells' `places`, shape
        `(chains, k)`, and each of their level's `steps` on; shaped as these are.
        """
        order, start, present = self._sorted
        at = places[:, order, None] + np.take(steps, self.level[order], axis=1)
        found = np.zeros(steps.shape)
        found[:, present] = np.add.reduceat(np.take(values, at), start, axis=1)
        return found

    def steps_from(self, shape: tuple[int, int], rng: np.random.Generator) -> Integers:
        """Steps that effects may take, none among them, shape `(*shape, WIDTH)`: next to each
        other, or four apart, in each chain alike.
        """
        spacing = rng.choice(_SPACINGS, (shape[0], 1, 1))
        return (np.arange(WIDTH) - rng.integers(WIDTH, size=(*shape, 1))) * spacing

    def moved(
        self, places: Integers, log_likelihood: Floats, tau: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Integers]:
        """Effects drawn from some places with their log-likelihoods, both of shape `(chains,
        number, WIDTH)`, and τ, places in `SCALES`.

        Of independent effects τ is drawn before them, with the effects summed over these places; of
        walks, after them.
        """
        if not self.smooth:
            return self._independent(places, log_likelihood, tau, rng)
        scale = (SCALES[tau] / STEP)[:, None, None, None]
        shape = len(places), self.walks, self.steps, WIDTH
        walk = self._walk(places.reshape(shape), log_likelihood.reshape(shape), scale, rng)
        effects = _at(places, walk.reshape(places.shape[:-1]))
        squares, number = self._squares(effects)
        log_p = -squares[:, None] / (2 * SCALES**2) - number * _LOG_SUMS + _LOG_PRIOR
        return effects, one_of(log_p, rng)

    def _independent(
        self, places: Integers, log_likelihood: Floats, tau: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Integers]:
        """τ from some that are next to each other, given the places alone; effects given τ."""
        tried = (tau - rng.integers(_TRIED, size=tau.shape))[:, None] + np.arange(_TRIED)
        inside = (tried >= 0) & (tried < len(SCALES))
        tried = np.where(inside, tried, tau[:, None])
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
        columns = np.clip(places, -_HIGHEST, _HIGHEST) + _HIGHEST
        masses = _MASSES[tried[..., None, None], columns[:, None]]
        sums = np.einsum("ctlw,clw->ctl", masses, likelihood)
        log_p = np.log(np.maximum(sums, _TINY)).sum(axis=-1) + _LOG_PRIOR[tried]
        chosen = one_of(np.where(inside, log_p, -np.inf), rng)
        tau = np.take_along_axis(tried, chosen[:, None], axis=1)[:, 0]
        log_masses = -((places * (STEP / SCALES[tau])[:, None, None]) ** 2) / 2
        return _at(places, one_of(log_likelihood + log_masses, rng)), tau

    def _walk(
        self, places: Integers, log_likelihood: Floats, scale: Floats, rng: np.random.Generator
    ) -> Integers:
        """Choices of a random walk: probabilities forwards, draws backwards."""
        chain = self.steps - self.apart
        starts = log_likelihood - (places * STEP) ** 2 / 2
        log_p = [starts[:, :, 0]]
        for step in range(1, chain):
            away = places[:, :, step - 1, :, None] - places[:, :, step, None, :]
            terms = log_p[-1][..., None] - (away / scale) ** 2 / 2
            top = terms.max(axis=2, keepdims=True)
            arrived = np.log(np.exp(terms - top).sum(axis=2)) + top[:, :, 0]
            log_p.append(arrived + log_likelihood[:, :, step])
        chosen = np.empty(places.shape[:3], dtype=np.int64)
        chosen[..., chain:] = one_of(starts[:, :, chain:], rng)
        chosen[..., chain - 1] = one_of(log_p[-1], rng)
        for step in range(chain - 2, -1, -1):
            later = np.take_along_axis(places[:, :, step + 1], chosen[..., step + 1, None], axis=-1)
            away = places[:, :, step] - later
            chosen[..., step] = one_of(log_p[step] - (away / scale[..., 0]) ** 2 / 2, rng)
        return chosen

    def level_variance(self, tau: Integers) -> Floats:
        """Prior variance of the mean effect, or of the mean start of walks, shape `(chains,)`."""
        return np.ones(tau.shape) / self.walks if self.smooth else SCALES[tau] ** 2 / self.number

    def log_prior(self, effects: Integers, tau: Integers) -> Floats:
        """Logarithm of the density of effects of shape `(chains, ..., number)` up to what depends
        on τ alone; shape `(chains, ...)`.
        """
        squares, _ = self._squares(effects)
        scale = SCALES[tau].reshape(-1, *[1] * (effects.ndim - 2))
        walks = effects.reshape(*effects.shape[:-1], self.walks, self.steps)
        starts = walks[..., [0, *range(self.steps - self.apart, self.steps)]] * STEP
        start = (starts**2).sum(axis=(-2, -1)) / 2 if self.smooth else 0.0
        return -squares / (2 * scale**2) - start

    def _squares(self, effects: Integers) -> tuple[Floats, int]:
        """Sums of squares of what has the scale τ, and how many these are."""
        if not self.smooth:
            return ((effects * STEP) ** 2).sum(axis=-1), self.number
        walks = effects.reshape(*effects.shape[:-1], self.walks, self.steps)
        steps = np.diff(walks[..., : self.steps - self.apart], axis=-1) * STEP
        return (steps**2).sum(axis=(-2, -1)), self.walks * steps.shape[-1]


def margins_of(
    variables: dict[str, Integers], ordered: Sequence[str], apart: Mapping[str, int] | None = None
) -> list[Margin]:
    """The margins that have effects: every single variable and every pair, but not the table.

    `variables` has for each variable the value of every cell, as numbers from 0 on. Where a margin
    has an `ordered` variable its effects are walks along the first such one, without the last
    values of it, so many as are `apart` in no order. A table of one variable has no effects unless
    that is ordered.
    """
    names, found = list(variables), []
    for number in (1, 2):
        for some in combinations(names, number):
            walked = [name for name in some if name in ordered]
            if len(some) == len(names) and not (walked and len(names) == 1):
                continue
            along = walked[0] if walked else some[-1]
            sizes = {name: int(variables[name].max()) + 1 for name in some}
            others = [name for name in some if name != along]
            row = np.zeros_like(variables[along])
            for name in others:
                row = row * sizes[name] + variables[name]
            rows = int(np.prod([sizes[name] for name in others], dtype=np.int64))
            level = row * sizes[along] + variables[along]
            last = (apart or {}).get(along, 0) if walked else 0
            found.append(Margin(some, level, rows, sizes[along], bool(walked), last))
    return found


def nested(margins: Sequence[Margin]) -> list[tuple[int, int]]:
    """Places of margins with others that tell their levels apart further, none of them smooth."""
    return [
        (at, other)
        for at, first in enumerate(margins)
        for other, second in enumerate(margins)
        if set(first.variables) < set(second.variables) and not (first.smooth or second.smooth)
    ]


def handed_down(
    first: tuple[Margin, Integers, Integers],
    second: tuple[Margin, Integers, Integers],
    rng: np.random.Generator,
) -> tuple[Integers, Integers]:
    """Draw how much each effect of a margin takes from all effects nested in it; locations stay,
    only the priors matter. Returns what to add to the effects of each margin.

    Each is a margin, its effects, shape `(chains, number)`, and its τ, shape `(chains,)`.
    """
    (outer, effects, outer_tau), (inner, parts, inner_tau) = first, second
    above = np.full(inner.number, -1)  # of what does not occur
    above[inner.level] = outer.level
    within = (above[:, None] == np.arange(outer.number)).astype(np.int64)
    sums, number = parts @ within, within.sum(axis=0)
    start = -rng.integers(WIDTH, size=effects.shape)
    by = start[..., None] + np.arange(WIDTH)
    own, others = ((STEP / SCALES[tau])[:, None, None] ** 2 / 2 for tau in (outer_tau, inner_tau))
    log_p = -own * (effects[..., None] + by) ** 2
    log_p -= others * (number[:, None] * by**2 - 2 * by * sums[..., None])
    chosen = np.where(number > 0, _at(by, one_of(log_p, rng)), 0)
    return chosen, -(chosen @ within.T)


def exchanged(
    first: tuple[Margin, Integers, Integers],
    second: tuple[Margin, Integers, Integers],
    rng: np.random.Generator,
) -> Integers:
    """Draw how much to add to all effects of one margin and take from those of another, shape
    `(chains,)`: locations stay, only the priors matter. Each is a margin, its effects and its τ.
    """
    start = -rng.integers(WIDTH, size=len(first[1]))
    by = start[:, None] + np.arange(WIDTH)
    log_p = np.zeros(by.shape)
    for (margin, effects, tau), sign in ((first, 1), (second, -1)):
        log_p += margin.log_prior(effects[:, None] + sign * by[..., None], tau)
    return start + one_of(log_p, rng)


def _at(places: Integers, chosen: Integers) -> Integers:
    """Those of the places, along the last axis, that were chosen."""
    return np.take_along_axis(places, chosen[..., None], axis=-1)[..., 0]
