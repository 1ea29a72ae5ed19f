"""Public numbers of records of groups or of all, and moves of counts that keep them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Totals:
    """Public sums of counts: none, those of `each` group, or else that of all `size` records.

    In the last case records may be in no group. Their number was drawn as `rest`, with noise where
    `rest_noised`; `rest` is None where there are none.
    """

    noise: IntegerNoise
    size: int | None = None
    each: bool = False
    rest: int | None = None
    rest_noised: bool = True
    rest_start: int = 0

    def log_rest(self, rest: Any) -> Any:
        """The logarithm of the probability of what was drawn for the records in no group."""
        if self.rest is None:
            return np.zeros(np.shape(rest))
        of = self.noise.log_mass(self.rest - rest) if self.rest_noised else 0.0
        return np.where(np.asarray(rest) >= 0, of, -np.inf)

    def pairs(self, chains: int, groups: int, rng: Generator) -> "Pairs | None":
        """Groups, and those in none, paired at random; None where each moves alone."""
        if self.size is None or self.each:
            return None
        rows = groups + (self.rest is not None)
        order = np.argsort(rng.random((chains, rows)), axis=1)
        two = np.sort(order[:, : 2 * (rows // 2)].reshape(chains, -1, 2), axis=2)
        leader = np.broadcast_to(np.arange(rows), (chains, rows)).copy()
        partner, sign = leader.copy(), np.zeros((chains, rows), dtype=np.int64)
        for at, other, of in ((0, 1, 1), (1, 0, -1)):
            np.put_along_axis(leader, two[..., at], two[..., 0], axis=1)
            np.put_along_axis(partner, two[..., at], two[..., other], axis=1)
            np.put_along_axis(sign, two[..., at], of, axis=1)
        return Pairs(leader, partner, sign, groups)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows in pairs of a leader and a partner that moves the other way, all of shape
    `(chains, rows)`: rows are the `groups`, and a last one where records are in none.
    """

    leader: Integers
    partner: Integers
    sign: Integers
    groups: int

    def of_leaders(self, values: Any) -> Any:
        """Every group's value, shape `(chains, G, ...)`, replaced with that of its leader."""
        return np.take_along_axis(values, self.leader[:, : self.groups, None], axis=1)

    def shared(self, direction: Integers) -> Integers:
        """Directions that sum to 0 over a pair, from one for each group; 0 for one left over."""
        return np.asarray(self.of_leaders(direction) * self.sign[:, : self.groups, None])

    def together(self, log_weight: Floats, log_rest: Floats) -> Floats:
        """The sum of a pair's weights, from those of groups, `(chains, G, candidates)`, and of
        those in none, `(chains, candidates)`.
        """
        if self._has_rest:
            log_weight = np.concatenate([log_weight, log_rest[:, None]], axis=1)
        others = np.take_along_axis(log_weight, self.partner[..., None], axis=1)
        alone = (self.sign == 0)[..., None]
        return np.asarray(np.where(alone, log_weight, log_weight + others)[:, : self.groups])

    def rest_on_line(self, rest: Integers, direction: Integers, steps: Integers) -> Integers:
        """Number of records in no group at every candidate of their leader, shape
        `(chains, candidates)`.
        """
        if not self._has_rest:
            return np.broadcast_to(rest[:, None], (len(rest), steps.shape[-1]))
        at = self._leader_of_rest
        moves = np.where(self.sign[:, -1] != 0, direction[at].sum(axis=-1), 0)
        found = rest[:, None] - steps[at] * moves[:, None]
        return np.asarray(found, dtype=np.int64)

    def rest_after(self, rest: Integers, on_line: Integers, chosen: Integers) -> Integers:
        """Number of records in no group at the candidates `chosen`, shape `(chains, G, 1)`."""
        if not self._has_rest:
            return rest
        at = self._leader_of_rest
        found = on_line[at[0], chosen[at][:, 0]]
        return np.where(self.sign[:, -1] != 0, found, rest)

    @property
    def _leader_of_rest(self) -> tuple[Integers, Integers]:
        """The chains and the leader in each; where those in none lead themselves, any group."""
        leader = np.minimum(self.leader[:, -1], self.groups - 1)
        return np.arange(len(leader)), leader

    @property
    def _has_rest(self) -> bool:
        return self.leader.shape[1] > self.groups
