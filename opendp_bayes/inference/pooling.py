r"""Groups whose probabilities are drawn from one Dirichlet distribution, given noisy counts: the
Markov chains behind `GroupedRelease.pooled` and `Release.pooled`.

Group g has probabilities `θ_g ~ Dirichlet(κ m)`, counts `x_g` that are multinomial, of a number of
records N_g of which every value is equally probable that agrees with what is public, and a draw of
each count with noise. θ is integrated out; chains move the counts, κ and m. `docs/pooling.md`
states every step.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.group_totals import Totals
from opendp_bayes.inference.negative_binomial import at_quantile, ends, log_mass, log_rising
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Candidates on a line through the counts.
_CANDIDATES = 12
#: Noise beyond `exp(-_DEPTH)` of the largest is not proposed.
_DEPTH = 45.0
#: Wanted share of accepted proposals, and how fast steps adapt while nothing is kept.
_ACCEPTED, _RATE = 0.35, 0.15

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Model:
    """What is known: `drawn` counts of shape `(G, k)`, with independent `noise` where `noised`; the
    priors; and `start`, possible counts to begin with.

    `m_prior`, shape `(k,)`, is the concentration of the prior of m; `kappa_prior` a frozen
    continuous distribution of scipy; `totals` says which sums of counts are public.
    """

    drawn: Integers
    noised: Any
    noise: IntegerNoise
    m_prior: Floats
    kappa_prior: Any
    totals: Totals
    start: Integers

    def log_noise(self, counts: Any, columns: Any = slice(None)) -> Floats:
        """Of counts of some columns, shape `(chains, G, candidates, columns)`."""
        of = self.noise.log_mass(self.drawn[:, None, columns] - counts)
        return np.where(self.noised[:, None, columns], of, 0.0)

    @cached_property
    def limits(self) -> tuple[Integers, Integers]:
        """The least and largest counts that are proposed, shape `(G, k)`."""
        reach, most = self.noise.reach(_DEPTH), np.maximum(self.drawn, 0)
        size = self.totals.size or 0  # is public where a count is drawn without noise
        least = np.where(self.noised, np.maximum(self.drawn - reach, 0), 0)
        return least, np.where(self.noised, most + reach, size)

    def log_prior(self, log_a: Floats) -> Floats:
        """The log-density of `ln(κ m)`, of shape `(..., k)`; shape `(...)`."""
        log_kappa = _log_sum(log_a)
        with np.errstate(all="ignore"):
            prior = self.kappa_prior.logpdf(np.exp(log_kappa))
        log_m = log_a - log_kappa[..., None]
        # The volume of ln(κ m) is that of κ and m, times κ and all entries of m.
        found = prior + log_kappa + (self.m_prior * log_m).sum(axis=-1)
        return np.where(np.isfinite(found), found, -np.inf)


class Chains:
    """Chains that move together: counts of shape `(chains, G, k)`, `ln(κ m)` of `(chains, k)`, and
    the number of records in no group, `rest`, of `(chains,)`.
    """

    def __init__(self, model: Model, chains: int, rng: Generator) -> None:
        self._model, self._rng = model, rng
        groups, k = model.drawn.shape
        self.counts = np.broadcast_to(model.start, (chains, groups, k)).copy()
        self.rest = np.full(chains, model.totals.rest_start)
        kappa = model.kappa_prior.ppf((np.arange(chains) + 0.5) / chains)
        share = model.m_prior / model.m_prior.sum() + model.start.sum(axis=0)
        self.log_a = np.log(kappa)[:, None] + np.log(share / share.sum())
        #: Steps along ln κ, every entry and all entries, given the counts and along with them.
        self._steps = {name: np.full(k + 2, 0.5) for name in ("given", "along")}

    @property
    def concentration(self) -> Floats:
        """κ m, shape `(chains, k)`."""
        return np.exp(self.log_a)

    def sweep(self, adapt: bool) -> None:
        """Move everything twice."""
        k = self._model.m_prior.size
        for _ in range(2):
            order, totals = self._rng.permutation(k).tolist(), self._model.totals
            for at in range(1 if totals.size is None else k):
                self._one_against_another([order[at - 1], order[at]])
            if not totals.each:
                for category in order:
                    self._along_line([category], self._strides()[..., None])
                share = special.softmax(self.log_a, axis=-1)[:, None]
                widths = self._strides()[..., None] * share * k
                self._along_line(list(range(k)), np.floor(widths + self._rng.random(widths.shape)))
            for kind in (0, 1 + int(self._rng.integers(k))):
                self._along_with_counts(kind, adapt)
            for kind in range(k + 2):
                self._given_counts(kind, adapt)

    def _strides(self) -> Floats:
        """Whole numbers up to the width of the noise, small ones as probable as large ones."""
        widest = 2 * self._model.noise.scale + 2
        return np.floor(widest ** self._rng.random(self.counts.shape[:2]))

    def _one_against_another(self, pair: list[int]) -> None:
        """Move counts from one category to another, which no number of records notices."""
        strides = self._strides()
        self._along_line(pair, np.stack([strides, -strides], axis=-1), alone=True)

    def _along_line(self, columns: list[int], direction: Floats, *, alone: bool = False) -> None:
        """Draw the counts of each group from their law on some points of a line through them, the
        place of the counts among which is drawn first.

        Where only the number of all records is public, groups move two by two, one by what the
        other loses, unless each moves `alone`.
        """
        rng, model = self._rng, self._model
        chains, groups, _ = self.counts.shape
        place = rng.integers(_CANDIDATES, size=(chains, groups, 1))
        pairs = None if alone else model.totals.pairs(chains, groups, rng)
        if pairs is not None:
            direction, place = pairs.shared(direction), pairs.of_leaders(place)
        steps = np.arange(_CANDIDATES) - place
        old = self.counts[..., columns].astype(np.float64)
        there = old[..., None, :] + steps[..., None] * direction[..., None, :]
        possible = np.all(there >= 0, axis=-1)
        safe = np.maximum(there, 0.0)
        a = self.concentration
        log_weight = model.log_noise(safe, columns)
        log_weight = log_weight + log_rising(safe, a[:, None, None, columns])
        sizes = self.counts.sum(axis=-1)[..., None] + (safe - old[..., None, :]).sum(axis=-1)
        kappa = a.sum(axis=-1)[:, None, None]
        total = log_weight.sum(axis=-1) - log_rising(np.maximum(sizes, 0.0), kappa)
        total = np.where(possible, total, -np.inf)
        if pairs is not None:
            rest = pairs.rest_on_line(self.rest, direction, steps)
            total = pairs.together(total, model.totals.log_rest(rest))
        chosen = np.argmax(total + rng.gumbel(size=total.shape), axis=-1)[..., None]
        if pairs is not None:
            chosen = pairs.of_leaders(chosen)
            self.rest = pairs.rest_after(self.rest, rest, chosen)
        moved = np.take_along_axis(there, chosen[..., None], axis=2)[:, :, 0]
        self.counts[..., columns] = moved.astype(np.int64)

    def _proposed(self, steps: Floats, kind: int) -> Floats:
        """`ln(κ m)` moved along ln κ, one entry or all."""
        chains, k = self.log_a.shape
        if kind == 0:
            move = np.broadcast_to(self._rng.normal(size=(chains, 1)), (chains, k))
        elif kind <= k:
            move = np.where(np.arange(k) == kind - 1, self._rng.normal(size=(chains, 1)), 0.0)
        else:
            move = self._rng.normal(size=(chains, k))
        return np.asarray(self.log_a + steps[kind] * move)

    def _accepted(self, name: str, kind: int, log_ratio: Floats, adapt: bool) -> Any:
        log_ratio = np.where(np.isnan(log_ratio), -np.inf, log_ratio)
        accepted = -self._rng.standard_exponential(log_ratio.shape) < log_ratio
        if adapt:
            share = np.exp(np.minimum(log_ratio, 0)).mean()
            self._steps[name][kind] *= np.exp(_RATE * (share - _ACCEPTED))
        return accepted

    def _given_counts(self, kind: int, adapt: bool) -> None:
        """Metropolis's step of κ and m given the counts."""
        proposed = self._proposed(self._steps["given"], kind)
        log_ratio = self._log_density(proposed) - self._log_density(self.log_a)
        accepted = self._accepted("given", kind, log_ratio, adapt)
        self.log_a = np.where(accepted[:, None], proposed, self.log_a)

    def _log_density(self, log_a: Floats) -> Floats:
        a = np.exp(log_a)[:, None]
        kappa, sizes = a.sum(axis=-1), self.counts.sum(axis=-1)
        each = special.gammaln(a + self.counts) - special.gammaln(a)
        all_of = special.gammaln(kappa) - special.gammaln(kappa + sizes)
        return np.asarray(self._model.log_prior(log_a) + (each.sum(axis=-1) + all_of).sum(axis=-1))

    def _along_with_counts(self, kind: int, adapt: bool) -> None:
        """Metropolis's step of κ and m that takes the counts along: each stays at its quantile of
        the negative binomial law that it has given an expected number of records. What public sums
        do not allow, a count of each sum makes up for.
        """
        rng, model = self._rng, self._model
        kappa = np.exp(_log_sum(self.log_a))[:, None]
        sizes = self.counts.sum(axis=-1)
        level = rng.beta(sizes + 1.0, kappa)
        expected = kappa * level / np.maximum(1 - level, 1e-300)
        a = np.exp(self.log_a)[:, None]
        stop = (kappa / (kappa + expected))[..., None]
        below, upto = ends(self.counts, a, stop)
        quantile = below + rng.random(below.shape) * (upto - below)
        log_a = self._proposed(self._steps["along"], kind)
        other, other_a = np.exp(_log_sum(log_a))[:, None], np.exp(log_a)[:, None]
        other_stop = (other / (other + expected))[..., None]
        counts, inside = at_quantile(quantile, other_a, other_stop, self.counts, model.limits)
        counts, rest, taken = model.totals.kept(self.counts, counts, self.rest, rng)
        log_ratio = (self._log_noise(counts) - self._log_noise(self.counts)).sum(axis=(1, 2))
        weight = np.log((other + np.maximum(counts, 0).sum(axis=-1)) / (other + expected))
        log_ratio += (weight - np.log((kappa + sizes) / (kappa + expected))).sum(axis=-1)
        if taken is not None:
            made_up = log_mass(counts, other_a, other_stop) - log_mass(self.counts, a, stop)
            log_ratio += np.where(taken, made_up, 0.0).sum(axis=(1, 2))
            inside = inside | taken
        log_ratio += model.totals.log_rest(rest) - model.totals.log_rest(self.rest)
        log_ratio += model.log_prior(log_a) - model.log_prior(self.log_a)
        log_ratio = np.where(np.all(inside & (counts >= 0), axis=(1, 2)), log_ratio, -np.inf)
        accepted = self._accepted("along", kind, log_ratio, adapt)
        self.log_a = np.where(accepted[:, None], log_a, self.log_a)
        self.counts = np.where(accepted[:, None, None], counts, self.counts)
        self.rest = np.where(accepted, rest, self.rest)

    def _log_noise(self, counts: Integers) -> Floats:
        return self._model.log_noise(counts[:, :, None])[:, :, 0]


def _log_sum(log_a: Floats) -> Floats:
    """`ln sum_i exp(log_a_i)`, over the last axis."""
    return np.asarray(np.logaddexp.reduce(log_a, axis=-1))
