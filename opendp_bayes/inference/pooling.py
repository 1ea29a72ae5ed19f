r"""Groups whose probabilities are drawn from one Dirichlet distribution, given noisy counts: the
Markov chains behind `GroupedRelease.pooled`.

Group g has probabilities `θ_g ~ Dirichlet(κ m)`, counts `x_g` that are multinomial, of a number of
records N_g of which every value is equally probable, and a draw of each count with noise. θ is
integrated out; chains move the counts, κ and m. `docs/pooling.md` states every step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Candidates on a line through the counts.
_CANDIDATES = 12
#: Counts are looked for so far from where they are first.
_NEAR = 3
#: Noise beyond `exp(-_DEPTH)` of the largest is not proposed.
_DEPTH = 45.0
#: Wanted share of accepted proposals, and how fast steps adapt while nothing is kept.
_ACCEPTED, _RATE = 0.35, 0.15

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Model:
    """What is known: `drawn` counts of shape `(G, k)` with independent `noise`, and the priors.

    `m_prior`, shape `(k,)`, is the concentration of the prior of m; `kappa_prior` a frozen
    continuous distribution of scipy.
    """

    drawn: Integers
    noise: IntegerNoise
    m_prior: Floats
    kappa_prior: Any

    def log_prior(self, log_a: Floats) -> Floats:
        """The log-density of `ln(κ m)`, of shape `(..., k)`; shape `(...)`."""
        log_kappa = special.logsumexp(log_a, axis=-1)
        with np.errstate(all="ignore"):
            prior = self.kappa_prior.logpdf(np.exp(log_kappa))
        log_m = log_a - log_kappa[..., None]
        # The volume of ln(κ m) is that of κ and m, times κ and all entries of m.
        found = prior + log_kappa + (self.m_prior * log_m).sum(axis=-1)
        return np.where(np.isfinite(found), found, -np.inf)


class Chains:
    """Chains that move together: counts of shape `(chains, G, k)`, `ln(κ m)` of `(chains, k)`."""

    def __init__(self, model: Model, chains: int, rng: Generator) -> None:
        self._model, self._rng = model, rng
        groups, k = model.drawn.shape
        counts = np.maximum(model.drawn, 0)
        self.counts = np.broadcast_to(counts, (chains, groups, k)).copy()
        kappa = model.kappa_prior.ppf((np.arange(chains) + 0.5) / chains)
        share = model.m_prior / model.m_prior.sum() + counts.sum(axis=0)
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
            for category in self._rng.permutation(k):
                self._along_line([int(category)], self._strides()[..., None])
            pair = self._rng.choice(k, 2, replace=False).tolist()
            strides = self._strides()
            self._along_line(pair, np.stack([strides, -strides], axis=-1))
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

    def _along_line(self, columns: list[int], direction: Floats) -> None:
        """Draw the counts of each group from their law on some points of a line through them, the
        place of the counts among which is drawn first.
        """
        rng, model = self._rng, self._model
        chains, groups, _ = self.counts.shape
        place = rng.integers(_CANDIDATES, size=(chains, groups, 1))
        steps = np.arange(_CANDIDATES) - place
        old = self.counts[..., columns].astype(np.float64)
        there = old[..., None, :] + steps[..., None] * direction[..., None, :]
        possible = np.all(there >= 0, axis=-1)
        safe = np.maximum(there, 0.0)
        a = self.concentration
        log_weight = model.noise.log_mass(model.drawn[:, None, columns] - safe)
        log_weight = log_weight + _log_rising(safe, a[:, None, None, columns])
        sizes = self.counts.sum(axis=-1)[..., None] + (safe - old[..., None, :]).sum(axis=-1)
        kappa = a.sum(axis=-1)[:, None, None]
        total = log_weight.sum(axis=-1) - _log_rising(np.maximum(sizes, 0.0), kappa)
        total = np.where(possible, total, -np.inf)
        chosen = np.argmax(total + rng.gumbel(size=total.shape), axis=-1)
        moved = np.take_along_axis(there, chosen[..., None, None], axis=2)[:, :, 0]
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
        the negative binomial law that it has given an expected number of records.
        """
        rng, model = self._rng, self._model
        kappa = np.exp(special.logsumexp(self.log_a, axis=-1))[:, None]
        sizes = self.counts.sum(axis=-1)
        level = rng.beta(sizes + 1.0, kappa)
        expected = kappa * level / np.maximum(1 - level, 1e-300)
        a = np.exp(self.log_a)[:, None]
        rest = (kappa / (kappa + expected))[..., None]
        below = np.where(self.counts > 0, _up_to(self.counts - 1, a, rest), 0.0)
        upto = _up_to(self.counts, a, rest)
        quantile = below + rng.random(below.shape) * (upto - below)
        log_a = self._proposed(self._steps["along"], kind)
        other = np.exp(special.logsumexp(log_a, axis=-1))[:, None]
        counts, inside = self._at_quantile(
            quantile, np.exp(log_a)[:, None], (other / (other + expected))[..., None]
        )
        noise = model.noise.log_mass(model.drawn - counts)
        noise = noise - model.noise.log_mass(model.drawn - self.counts)
        weight = np.log((other + counts.sum(axis=-1)) / (other + expected))
        weight = weight - np.log((kappa + sizes) / (kappa + expected))
        log_ratio = (noise.sum(axis=-1) + weight).sum(axis=-1)
        log_ratio = log_ratio + model.log_prior(log_a) - model.log_prior(self.log_a)
        log_ratio = np.where(np.all(inside, axis=(1, 2)), log_ratio, -np.inf)
        accepted = self._accepted("along", kind, log_ratio, adapt)
        self.log_a = np.where(accepted[:, None], log_a, self.log_a)
        self.counts = np.where(accepted[:, None, None], counts, self.counts)

    def _at_quantile(self, quantile: Floats, a: Floats, rest: Floats) -> tuple[Integers, Any]:
        """The counts at quantiles, and whether they are where the noise lets them be."""
        reach, drawn, shape = self._model.noise.reach(_DEPTH), self._model.drawn, quantile.shape
        a, rest = np.broadcast_to(a, shape).ravel(), np.broadcast_to(rest, shape).ravel()
        wanted, start = quantile.ravel(), self.counts.ravel()
        least = np.broadcast_to(np.maximum(drawn - reach, 0), shape).ravel()
        most = np.broadcast_to(np.maximum(drawn, 0) + reach, shape).ravel()
        # The answer is above `low` and at most `high`; first it is looked for nearby.
        low, high = least - 1, most.copy()
        for guess in (start + _NEAR, start - _NEAR - 1):
            guess = np.clip(guess, least, most)
            enough = _up_to(guess, a, rest) >= wanted
            high = np.where(enough, np.minimum(high, guess), high)
            low = np.where(enough, low, np.maximum(low, guess))
        active = np.flatnonzero(high - low > 1)
        while active.size:
            middle = (low[active] + high[active]) // 2
            enough = _up_to(middle, a[active], rest[active]) >= wanted[active]
            high[active] = np.where(enough, middle, high[active])
            low[active] = np.where(enough, low[active], middle)
            active = active[high[active] - low[active] > 1]
        # At an end of where it was looked for, it may be beyond.
        inside = (high < most) & ((high > least) | (least == 0))
        return high.reshape(shape), inside.reshape(shape)


def _log_rising(counts: Floats, a: Floats) -> Floats:
    """`ln Γ(x + a) - ln x!`; of counts small enough for the difference to have its digits."""
    return np.asarray(special.gammaln(counts + a) - special.gammaln(counts + 1.0))


def _up_to(counts: Integers, a: Floats, rest: Floats) -> Floats:
    """The probability of at most so many, of a negative binomial law."""
    return np.asarray(special.betainc(a, np.maximum(counts, 0) + 1.0, rest))
