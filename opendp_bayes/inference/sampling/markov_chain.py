"""Draws of Markov chains, and how far they can be trusted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.display.as_table import Shown, seconded, table
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.inference.engines.engine import Listed
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.data import Label

#: Chains are trusted up to this R-hat, and from so many effective draws on.
LARGEST_R_HAT, FEWEST_EFFECTIVE = 1.05, 100
#: A variance of normal scores that rounding makes of equal ones.
_ROUNDING = 1e-24


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Shown):
    """Diagnostics of Markov chains, for the expected probability of each category given the counts:
    they tell how far the chains can be trusted.

    Attributes
    ----------
    r_hat : rank-normalised split R-hat of each category, shape `(k,)`; above 1.01 the chains have
        not met.
    ess : bulk effective sample size of each category, shape `(k,)`.
    chains : number of chains, or of parts of weighted draws that were resampled one by one.
    draws : draws kept of each chain, after as many as a quarter of all were dropped.
    categories : the labels.
    disagreement : by how many standard errors the mean of a category differs, at most, from that of
        other draws, from laws about the highest point of the posterior that was found; None where
        there were no others.
    """

    r_hat: Floats
    ess: Floats
    chains: int
    draws: int
    categories: tuple[Label, ...] = ()
    disagreement: float | None = None

    @classmethod
    def of(cls, values: Floats) -> "Diagnostics":
        """Diagnostics of the values of all draws, shape `(chains, draws, k)`."""
        found = [r_hat_and_ess(values[..., i]) for i in range(values.shape[-1])]
        r_hat, ess = np.array(found).T
        return cls(r_hat, ess, *values.shape[:2])

    def sheet(self) -> Sheet:
        """A row for each category."""
        rows = [
            (str(label), f"{r_hat:.4f}", f"{ess:.0f}")
            for label, r_hat, ess in zip(self.categories, self.r_hat, self.ess, strict=True)
        ]
        note = f"{self.chains} chains of {self.draws} draws"
        if self.disagreement is not None:
            note += f"; {seconded(self.disagreement)}"
        return Sheet((table(("category", "R-hat", "effective draws"), rows),), notes=(note,))


class Chains(Listed):
    """Counts drawn by Markov chains, shape `(chains, draws, k)`."""

    def __init__(self, chains: Any, prior: Floats) -> None:
        rows = chains.reshape(-1, prior.size)
        super().__init__(rows, np.zeros(len(rows)), prior)
        self.chains = chains

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the expected probabilities."""
        expected = self.prior + self.chains
        expected = expected / expected.sum(axis=-1, keepdims=True)
        return Diagnostics.of(expected)

    def _of(self, part: Callable[[Any], Any]) -> "Chains":
        made = Chains(part(self.chains), part(self.prior))
        return made.noting(disagreement=self.diagnostics.disagreement)


def r_hat_and_ess(values: Floats) -> tuple[float, float]:
    """Rank-normalised split R-hat and bulk effective sample size of draws of shape `(chains,
    draws)`.

    Source: Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and
    localization: an improved R-hat" (2021), section 3, of the larger of the plain and the folded
    R-hat. Draws that are all the same have R-hat 1 and count in full.
    """
    half = values.shape[1] // 2
    split = np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])
    if np.ptp(split) == 0:
        return 1.0, float(split.size)
    scores, folded = _normal_scores(split), _normal_scores(np.abs(split - np.median(split)))
    return max(_r_hat(scores), _r_hat(folded)), _ess(scores)


def _normal_scores(values: Floats) -> Floats:
    _, places, equal = np.unique(values, return_inverse=True, return_counts=True)
    ranks = equal.cumsum() - (equal - 1) / 2  # the mean of those that equal values share
    scores = special.ndtri((ranks - 0.375) / (values.size + 0.25))
    return np.asarray(scores[places.reshape(values.shape)])


def _r_hat(values: Floats) -> float:
    within = np.mean(np.var(values, axis=1, ddof=1))
    between = np.var(np.mean(values, axis=1), ddof=1)
    if within < _ROUNDING:
        return float("inf") if between > _ROUNDING else 1.0
    length = values.shape[1]
    return float(np.sqrt((length - 1) / length + between / within))


def _ess(values: Floats) -> float:
    """Geyer's initial monotone sequence of sums of two autocorrelations, over all chains."""
    length = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centred, 2 * length, axis=1)
    autocovariance = np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :length] / length
    within = np.mean(autocovariance[:, 0]) * length / (length - 1)
    total = within * (length - 1) / length + np.var(values.mean(axis=1), ddof=1)
    correlation = 1 - (within - autocovariance.mean(axis=0) * length / (length - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else pairs.size])
    time = max(-1 + 2 * pairs.sum(), 1 / np.log10(values.size))
    return float(values.size / time)
