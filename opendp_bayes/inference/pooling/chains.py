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
    """Data and priors of the chains.

    Attributes
    ----------
    noisy : what was drawn of the counts, shape `(G, k)`.
    start : possible counts to begin with, which have the public sums.
    size : the public number of all records, or None.
    each : True if the number of records of each group is public.
    rest : what was drawn for the records in no group; None where there are none, or where nothing
        depends on them.
    rest_start : their number to begin with.
    """

    noisy: DrawnCounts
    priors: Priors
    start: Integers
    size: int | None = None
    each: bool = False
    rest: DrawnCounts | None = None
    rest_start: int = 0

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
        self.rest = np.full(chains, model.rest_start)
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
            each=model.each,
        )

    def _counts_along_lines(self) -> None:
        """Given κ and m: one category against another where numbers of records are public, and one
        alone where those of groups may change, or all in proportion to m.
        """
        model, a = self._model, self.concentration
        groups, k = model.noisy.drawn.shape
        rising = Rising(np.concatenate([a, a.sum(axis=1, keepdims=True)], axis=1))
        order = self._rng.permutation(k).tolist()
        if model.each or model.size is not None:
            for at in range(k):
                strides = self._strides(groups)
                against = np.stack([strides, -strides], axis=-1)
                self._along_line(rising, [order[at - 1], order[at]], against)
        if model.each:
            return
        for category in order:
            if model.size is None:
                self._along_line(rising, [category], self._strides(groups)[..., None])
            else:
                team, strides = self._pairs(groups + (model.rest is not None))
                self._along_line(rising, [category], strides[..., None], team)
        if model.size is None:
            widths = self._strides(groups)[..., None] * (a / a.mean(axis=1, keepdims=True))[:, None]
            widths = np.floor(widths + self._rng.random(widths.shape)).astype(np.int64)
            self._along_line(rising, list(range(k)), widths)

    def _strides(self, rows: int) -> Integers:
        """Whole numbers up to the width of the noise, small ones as probable as large ones."""
        return (self._model.width ** self._rng.random((len(self.counts), rows))).astype(np.int64)

    def _pairs(self, rows: int) -> tuple[Integers, Integers]:
        """Rows paired at random: the number of the pair of each, and strides that are opposite in a
        pair, and 0 for a row left over; shapes `(chains, rows)`.
        """
        rank = np.argsort(np.argsort(self._rng.random((len(self.counts), rows)), axis=1), axis=1)
        team, sign = rank // 2, 1 - 2 * (rank % 2)
        if rows % 2:
            sign[rank == rows - 1] = 0
        return team, sign * np.take_along_axis(self._strides(rows), team, axis=1)

    def _along_line(
        self, rising: Rising, columns: list[int], direction: Integers, team: Integers | None = None
    ) -> None:
        """Draw counts of each group from their law on some points of a line through them, the place
        of the counts among which is drawn first; `direction` has shape `(chains, G, columns)`.

        Rows of one `team`, shape `(chains, G)`, are drawn together. Where records may be in no
        group, these are the last row of both.
        """
        rng, model, (chains, groups, k) = self._rng, self._model, self.counts.shape
        place = rng.integers(_CANDIDATES, size=direction.shape[:2])
        if team is not None:
            place = np.take_along_axis(place, team, axis=1)
        steps = np.arange(_CANDIDATES) - place[..., None]
        lines = steps[..., None, :] * direction[..., None]
        chain, total = np.arange(chains)[:, None, None], np.zeros(steps.shape)
        for at, column in enumerate(columns):
            there = self.counts[..., column, None] + lines[:, :groups, at]
            known = np.maximum(there, 0)
            found = model.noisy.log_mass(known, (slice(None), column, None))
            found += rising(known, chain, column)
            total[:, :groups] += np.where(there >= 0, found, -np.inf)
        change = lines.sum(axis=2)
        if change.any():
            sizes = self.counts.sum(axis=-1)[..., None] + change[:, :groups]
            total[:, :groups] -= rising(np.maximum(sizes, 0), chain, k)
        if change.shape[1] > groups and model.rest is not None:
            rest = self.rest[:, None] + change[:, -1]
            total[:, -1] = np.where(rest >= 0, model.rest.log_mass(rest), -np.inf)
        if team is not None:
            of_teams = np.zeros_like(total)
            np.add.at(of_teams, (chain[..., 0], team), total)
            chosen = np.take_along_axis(one_of(of_teams, rng), team, axis=1)
        else:
            chosen = one_of(total, rng)
        moved = np.take_along_axis(lines, chosen[..., None, None], axis=-1)[..., 0]
        self.counts[..., columns] += moved[:, :groups]
        if moved.shape[1] > groups:
            self.rest = self.rest + moved[:, -1].sum(axis=-1)

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
