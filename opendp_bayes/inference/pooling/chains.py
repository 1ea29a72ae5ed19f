r"""Groups whose probabilities are drawn from one Dirichlet distribution, given noisy counts: the
Markov chains behind `GroupedRelease.pooled` and `Release.pooled`.

Group g has probabilities `θ_g ~ Dirichlet(κ m)`, multinomial counts `x_g` of N_g records, and a
draw of each count with noise. All values of N_g that agree with what is public are equally
probable. θ is integrated out; chains move the counts, κ and m. `docs/pooling.md` states every step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.counts_at_quantiles import Placed, Standing
from opendp_bayes.inference.pooling.hyperparameters import Concentration, Priors, Steps
from opendp_bayes.inference.pooling.public_totals import Totals
from opendp_bayes.inference.pooling.records_anew import records_anew
from opendp_bayes.inference.pooling.rising import Rising
from opendp_bayes.mathematics.validation import Floats, Integers

#: Candidates on a line through the counts.
_CANDIDATES = 12
#: Groups of up to so many records, in widths of the noise, are taken along by κ and m; and steps of
#: so many entries of m that take them along.
_FEW, _SOME = 10.0, 5
#: How often records are drawn anew, for each time that κ and m move.
_ANEW = 2

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Model:
    """Data and priors of the chains: `noisy` counts of shape `(G, k)`; `priors`; and `start`,
    possible counts to begin with.

    `totals` says which sums of counts are public.
    """

    noisy: DrawnCounts
    priors: Priors
    totals: Totals
    start: Integers

    @property
    def width(self) -> float:
        """About how far the noise moves a count."""
        return 2 * self.noisy.noise.scale + 2


class Chains:
    """Chains that move together: counts of shape `(chains, G, k)`, κ and m, and the number of
    records in no group, `rest`, of `(chains,)`.
    """

    def __init__(self, model: Model, chains: int, rng: Generator) -> None:
        self._model, self._rng = model, rng
        groups, k = model.noisy.drawn.shape
        self.counts = np.broadcast_to(model.start, (chains, groups, k)).copy()
        self.rest = np.full(chains, model.totals.rest_start)
        share = model.priors.m / model.priors.m.sum() + model.start.sum(axis=0)
        self._alike = model.priors.start(share, chains)
        self._few = _FEW * model.noisy.noise.scale
        #: Of ln κ and m given the counts, and along with them.
        self._given, self._along = Steps(k, chains, rng), Steps(k, chains, rng)

    @property
    def concentration(self) -> Floats:
        """κ m, shape `(chains, k)`."""
        return self._alike.a

    def sweep(self, adapt: bool) -> None:
        """Move everything twice."""
        for _ in range(2):
            self._counts_along_lines()
            for _ in range(_ANEW):
                self._records_anew()
            self._along_with_counts(adapt)
            self._given_counts(adapt)

    def _records_anew(self) -> None:
        """Given κ and m, some records of every group."""
        model = self._model
        self.counts = records_anew(
            self.counts,
            self.concentration,
            lambda counts, groups: model.noisy.log_mass(counts, groups).sum(axis=-1),
            self._rng,
            fewest=model.width,
            each=model.totals.each,
        )

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
        shape = self.counts.shape[:2]
        return (self._model.width ** self._rng.random(shape)).astype(np.int64)

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
        chain = np.arange(chains)[:, None, None]
        total, possible = np.zeros(steps.shape), np.ones(steps.shape, dtype=bool)
        for at, column in enumerate(columns):
            there = self.counts[..., column, None] + steps * direction[..., at, None]
            possible &= there >= 0
            there = np.maximum(there, 0)
            total += model.noisy.log_mass(there, (slice(None), column, None))
            total += rising(there, chain, column)
        if not alone:
            sizes = self.counts.sum(axis=-1)[..., None] + steps * direction.sum(axis=-1)[..., None]
            total -= rising(np.maximum(sizes, 0), chain, k)
        total = np.where(possible, total, -np.inf)
        if pairs is not None:
            rest = pairs.rest_on_line(self.rest, direction, steps)
            total = pairs.together(total, model.totals.log_rest(rest))
        chosen = one_of(total, rng)[..., None]
        if pairs is not None:
            chosen = pairs.of_leaders(chosen)
            self.rest = pairs.rest_after(self.rest, rest, chosen)
        self.counts[..., columns] += np.take_along_axis(steps, chosen, axis=-1) * direction

    def _given_counts(self, adapt: bool) -> None:
        """Metropolis's steps of κ and m given the counts."""
        density = self._log_density(self._alike)
        for kind in range(self.counts.shape[2] + 1):
            alike = self._alike.moved(kind, self._given.proposed(kind))
            proposed = self._log_density(alike)
            accepted = self._given.accepted(kind, proposed - density, adapt)
            density = np.where(accepted, proposed, density)
            self._alike = self._alike.where(accepted, alike)

    def _log_density(self, alike: Concentration, groups: Any = None) -> Floats:
        """Log-density of κ and m given the counts of some groups, shape `(chains, G)`, or all."""
        if groups is not None and not groups.any():
            return alike.log_prior
        a = alike.a[:, None]
        kappa, sizes = a.sum(axis=-1), self.counts.sum(axis=-1)
        of_groups = log_rising_factorial(a, self.counts).sum(axis=-1)
        of_groups -= log_rising_factorial(kappa, sizes)
        if groups is not None:
            of_groups = np.where(groups, of_groups, 0.0)
        return np.asarray(alike.log_prior + of_groups.sum(axis=-1))

    def _along_with_counts(self, adapt: bool) -> None:
        """Metropolis's steps of κ and m that take counts along: those of groups that are not large
        beside the noise stay at their quantiles given what was drawn and the groups' numbers of
        records.
        """
        rng, model = self._rng, self._model
        k = self.counts.shape[2]
        moving = self.counts.sum(axis=-1) <= self._few
        chain, group = np.nonzero(moving)
        if not chain.size:
            return
        order = rng.permutation(k)
        back = np.argsort(order)
        counts = self.counts[chain, group][:, order]
        noisy = model.noisy.chosen((group[:, None], order))
        standing = Standing(counts, chain, self.concentration[:, order], noisy, rng)

        def density(alike: Concentration, placed: Placed) -> tuple[Integers, Floats]:
            counts = placed.counts[:, back]
            log_weight = np.where(placed.inside, placed.log_weight, -np.inf)
            found = np.bincount(chain, weights=log_weight, minlength=len(self.counts))
            return counts, found + self._log_density(alike, ~moving)

        _, known = density(self._alike, standing.placed)
        known = np.where(known == -np.inf, np.inf, known)  # nothing leads back there
        entries = np.array_split(1 + rng.permutation(k)[:_SOME], 2)
        for kind in (0, *entries[0].tolist(), 0, *entries[1].tolist(), 0):
            alike = self._alike.moved(kind, self._along.proposed(kind))
            counts, proposed = density(alike, standing.moved(alike.a[:, order]))
            accepted = self._along.accepted(kind, proposed - known, adapt)
            known = np.where(accepted, proposed, known)
            self._alike = self._alike.where(accepted, alike)
            taken = accepted[chain]
            self.counts[chain[taken], group[taken]] = counts[taken]
