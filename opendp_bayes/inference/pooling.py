r"""Groups whose probabilities are drawn from one Dirichlet distribution, given noisy counts: the
Markov chains behind `GroupedRelease.pooled` and `Release.pooled`.

Group g has probabilities `θ_g ~ Dirichlet(κ m)`, counts `x_g` that are multinomial, of a number of
records N_g of which every value is equally probable that agrees with what is public, and a draw of
each count with noise. θ is integrated out; chains move the counts, κ and m. `docs/pooling.md`
states every step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.beta_binomial import Placed, Standing
from opendp_bayes.inference.group_totals import Totals
from opendp_bayes.inference.rising import Rising
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Candidates on a line through the counts.
_CANDIDATES = 12
#: Groups of up to so many records, in widths of the noise, are taken along by κ and m; and steps of
#: so many entries of m that take them along.
_FEW, _SOME = 10.0, 5
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
        #: Steps along ln κ and every entry, given the counts and along with them.
        self._steps = {name: np.full(k + 1, 0.5) for name in ("given", "along")}

    @property
    def concentration(self) -> Floats:
        """κ m, shape `(chains, k)`."""
        return np.exp(self.log_a)

    def sweep(self, adapt: bool) -> None:
        """Move everything twice."""
        for _ in range(2):
            self._counts_along_lines()
            self._along_with_counts(adapt)
            self._given_counts(adapt)

    def _counts_along_lines(self) -> None:
        """Given κ and m: one category against another, one alone, and all in proportion to m."""
        rng, totals, a = self._rng, self._model.totals, self.concentration
        k = a.shape[1]
        rising = Rising(np.concatenate([a, a.sum(axis=1, keepdims=True)], axis=1))
        order = rng.permutation(k).tolist()
        for at in range(1 if totals.size is None else k):
            strides = self._strides()
            against = np.stack([strides, -strides], axis=-1)
            self._along_line([order[at - 1], order[at]], against, rising, alone=True)
        if totals.each:
            return
        for category in order:
            self._along_line([category], self._strides()[..., None], rising)
        widths = self._strides()[..., None] * (a / a.mean(axis=1, keepdims=True))[:, None]
        widths = np.floor(widths + rng.random(widths.shape)).astype(np.int64)
        self._along_line(list(range(k)), widths, rising)

    def _strides(self) -> Integers:
        """Whole numbers up to the width of the noise, small ones as probable as large ones."""
        widest = 2 * self._model.noise.scale + 2
        return (widest ** self._rng.random(self.counts.shape[:2])).astype(np.int64)

    def _along_line(
        self, columns: list[int], direction: Integers, rising: Rising, *, alone: bool = False
    ) -> None:
        """Draw the counts of each group from their law on some points of a line through them, the
        place of the counts among which is drawn first.

        Where only the number of all records is public, groups move two by two, one by what the
        other loses, unless each moves `alone`, its number of records staying as it is.
        """
        rng, model = self._rng, self._model
        chains, groups, k = self.counts.shape
        place = rng.integers(_CANDIDATES, size=(chains, groups, 1))
        pairs = None if alone else model.totals.pairs(chains, groups, rng)
        if pairs is not None:
            direction, place = pairs.shared(direction), pairs.of_leaders(place)
        steps = np.arange(_CANDIDATES) - place
        old = self.counts[..., columns]
        there = old[..., None, :] + steps[..., None] * direction[..., None, :]
        possible, safe = np.all(there >= 0, axis=-1), np.maximum(there, 0)
        chain = np.arange(chains)[:, None, None]
        log_weight = model.log_noise(safe, columns)
        log_weight += rising(safe, chain[..., None], np.array(columns))
        total = log_weight.sum(axis=-1)
        if not alone:
            sizes = self.counts.sum(axis=-1)[..., None] + steps * direction.sum(axis=-1)[..., None]
            total -= rising(np.maximum(sizes, 0), chain, k)
        total = np.where(possible, total, -np.inf)
        if pairs is not None:
            rest = pairs.rest_on_line(self.rest, direction, steps)
            total = pairs.together(total, model.totals.log_rest(rest))
        chosen = np.argmax(total + rng.gumbel(size=total.shape), axis=-1)[..., None]
        if pairs is not None:
            chosen = pairs.of_leaders(chosen)
            self.rest = pairs.rest_after(self.rest, rest, chosen)
        self.counts[..., columns] = np.take_along_axis(there, chosen[..., None], axis=2)[:, :, 0]

    def _proposed(self, steps: Floats, kind: int) -> Floats:
        """`ln(κ m)` with all entries moved alike, or one."""
        chains, k = self.log_a.shape
        moves = (kind == 0) | (np.arange(k) == kind - 1)
        return np.asarray(self.log_a + steps[kind] * self._rng.normal(size=(chains, 1)) * moves)

    def _accepted(self, name: str, kind: int, log_ratio: Floats, adapt: bool) -> Any:
        log_ratio = np.where(np.isnan(log_ratio), -np.inf, log_ratio)
        accepted = -self._rng.standard_exponential(log_ratio.shape) < log_ratio
        if adapt:
            share = np.exp(np.minimum(log_ratio, 0)).mean()
            self._steps[name][kind] *= np.exp(_RATE * (share - _ACCEPTED))
        return accepted

    def _given_counts(self, adapt: bool) -> None:
        """Metropolis's steps of κ and m given the counts."""
        density = self._log_density(self.log_a)
        for kind in range(self.log_a.shape[1] + 1):
            log_a = self._proposed(self._steps["given"], kind)
            proposed = self._log_density(log_a)
            accepted = self._accepted("given", kind, proposed - density, adapt)
            density = np.where(accepted, proposed, density)
            self.log_a = np.where(accepted[:, None], log_a, self.log_a)

    def _log_density(self, log_a: Floats, groups: Any = True) -> Floats:
        """Of `ln(κ m)` given the counts of some groups."""
        a = np.exp(log_a)[:, None]
        kappa, sizes = a.sum(axis=-1), self.counts.sum(axis=-1)
        each = special.gammaln(a + self.counts) - special.gammaln(a)
        all_of = special.gammaln(kappa) - special.gammaln(kappa + sizes)
        of_groups = np.where(groups, each.sum(axis=-1) + all_of, 0.0)
        return np.asarray(self._model.log_prior(log_a) + of_groups.sum(axis=-1))

    def _along_with_counts(self, adapt: bool) -> None:
        """Metropolis's steps of κ and m that take counts along: those of groups that are not large
        beside the noise stay at their quantiles, given the groups' numbers of records.
        """
        rng, model = self._rng, self._model
        k = self.log_a.shape[1]
        moving = self.counts.sum(axis=-1) <= _FEW * model.noise.scale
        chain, group = np.nonzero(moving)
        if not chain.size:
            return
        order = rng.permutation(k)
        back = np.argsort(order)
        counts = self.counts[chain, group][:, order]
        standing = Standing(counts, chain, self.concentration[:, order], rng)

        def density(log_a: Floats, placed: Placed) -> tuple[Integers, Floats]:
            counts = self.counts.copy()
            counts[chain, group] = placed.counts[:, back]
            log_weight = np.where(placed.inside, placed.log_weight, -np.inf)
            found = np.bincount(chain, weights=log_weight, minlength=len(self.counts))
            found += model.log_noise(np.maximum(counts, 0)[:, :, None]).sum(axis=(1, 2, 3))
            return counts, found + self._log_density(log_a, ~moving)

        _, known = density(self.log_a, standing.placed)
        known = np.where(known == -np.inf, np.inf, known)  # nothing leads back there
        for kind in (0, *(1 + rng.permutation(k)[:_SOME]).tolist(), 0):
            log_a = self._proposed(self._steps["along"], kind)
            counts, proposed = density(log_a, standing.moved(np.exp(log_a)[:, order]))
            accepted = self._accepted("along", kind, proposed - known, adapt)
            known = np.where(accepted, proposed, known)
            self.log_a = np.where(accepted[:, None], log_a, self.log_a)
            self.counts = np.where(accepted[:, None, None], counts, self.counts)


def _log_sum(log_a: Floats) -> Floats:
    """`ln sum_i exp(log_a_i)`, over the last axis."""
    return np.asarray(np.logaddexp.reduce(log_a, axis=-1))
