"""Draws of Markov chains, and how far they can be trusted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy import special

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table
from opendp_bayes.inference.engines import Listed
from opendp_bayes.mathematics.telling import warn
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.data import Label

D = TypeVar("D")
R = TypeVar("R")

#: Chains are trusted up to this R-hat, and from so many effective draws on; weighted draws up to
#: this error of the log-likelihood.
LARGEST_R_HAT, FEWEST_EFFECTIVE = 1.05, 100
_LARGEST_LOG_ERROR = 0.1
#: Values whose diagnostics are computed at once.
_BLOCK = 1 << 18
#: A variance of normal scores that rounding makes of equal ones.
_ROUNDING = 1e-24


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Shown):
    """Diagnostics of Markov chains, for the expected probability of each category given the counts:
    they tell how far the chains can be trusted.

    Attributes
    ----------
    r_hat : ndarray
        Rank-normalised split R-hat of each category, shape `(k,)`; above 1.01 the chains have not
        met.
    ess : ndarray
        Bulk effective sample size of each category, shape `(k,)`.
    chains : int
        Number of chains, or of parts of weighted draws that were resampled one by one.
    draws : int
        Draws kept of each chain, after as many as a quarter of all were dropped.
    categories : tuple[str or int or bool or tuple, ...]
        The labels.
    """

    r_hat: Floats
    ess: Floats
    chains: int
    draws: int
    categories: tuple[Label, ...] = ()

    @classmethod
    def of(cls, values: Floats) -> "Diagnostics":
        """Diagnostics of the values of all draws, shape `(chains, draws, k)`."""
        block = max(1, _BLOCK // max(values[..., 0].size, 1))
        parts = [values[..., start : start + block] for start in range(0, values.shape[-1], block)]
        results = [r_hat_and_ess(columns) for columns in parts]
        r_hat, ess = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
        return cls(r_hat, ess, *values.shape[:2])

    def sheet(self) -> Sheet:
        """A row for each category."""
        rows = [
            (str(label), f"{r_hat:.4f}", f"{ess:.0f}")
            for label, r_hat, ess in zip(self.categories, self.r_hat, self.ess, strict=True)
        ]
        note = f"{self.chains} chains of {self.draws} draws"
        return Sheet((Table(("category", "R-hat", "effective draws"), rows),), notes=(note,))


def run_until(
    sweep: Callable[[int], D],
    look: Callable[[list[D], int], tuple[R, bool]],
    length: int,
    doublings: int,
    most: int,
    apart: int = 1,
) -> R:
    """Run chains until their draws have settled, each time twice as long; the last result.

    Parameters
    ----------
    sweep : Callable[[int], D]
        Makes so many sweeps, and returns a draw.
    look : Callable[[list[D], int], tuple[Any, bool]]
        Makes the result of the draws and the number of all sweeps, and says if it has settled.
    length, doublings : int
        Sweeps of the first run, and how often it may be doubled.
    most : int
        Draws that are kept; of more every other one.
    apart : int, default 1
        Sweeps between two draws, to begin with.
    """
    sweeps: list[D] = []
    for doubling in range(doublings + 1):
        if doubling:
            length *= 2
            if length > most * apart:
                sweeps, apart = sweeps[1::2], 2 * apart
        while len(sweeps) * apart < length:
            sweeps.append(sweep(apart))
        result, settled = look(sweeps, length)
        if settled:
            break
    return result


class Chains(Listed):
    """Counts drawn by Markov chains, shape `(chains, draws, k)`."""

    def __init__(
        self, chains: Any, prior: Floats | None = None, counted: Listed | None = None
    ) -> None:
        super().__init__(chains.reshape(-1, chains.shape[-1]), prior=prior, counted=counted)
        self.chains = chains

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the expected probabilities."""
        expected = self.prior + self.chains
        expected = expected / expected.sum(axis=-1, keepdims=True)
        return Diagnostics.of(expected)

    def _of(self, select: Callable[[Any], Any]) -> "Chains":
        counted = None if self._counted is None else self._counted._of(select)
        return type(self)(select(self.chains), select(self.prior), counted)


def warn_of_draws(diagnostics: Any, effective: int = FEWEST_EFFECTIVE) -> None:
    """Warn where the diagnostics of draws, if there were any, say that they are few, fewer than
    so many effective ones, or do not agree.
    """
    if diagnostics is None:
        return
    ess, r_hat = diagnostics.ess.min(), getattr(diagnostics, "r_hat", np.ones(1)).max()
    log_error = getattr(diagnostics, "log_error", 0.0)
    if (
        ess < min(effective, FEWEST_EFFECTIVE)
        or r_hat > LARGEST_R_HAT
        or log_error > _LARGEST_LOG_ERROR
    ):
        warn(
            "the posterior of this release was not found reliably: effective sample size"
            f" {ess:.0f}, R-hat {r_hat:.3f}, error of the log-likelihood {log_error:.2f} (docs:"
            " Reading a posterior, Diagnostics)."
        )


def r_hat_and_ess(values: Floats) -> tuple[Floats, Floats]:
    """Rank-normalised split R-hat and bulk effective sample size of draws of shape `(chains, draws,
    k)`; shapes `(k,)`.

    Source: Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and
    localization: an improved R-hat" (2021), section 3, of the larger of the plain and the folded
    R-hat. Draws that are all the same have R-hat 1 and count in full.
    """
    half = values.shape[1] // 2
    split = np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])
    split = np.ascontiguousarray(np.moveaxis(split, -1, 0))  # (k, parts, half)
    middle = np.median(split.reshape(len(split), -1), axis=1)[:, None, None]
    scores, folded = _normal_scores(split), _normal_scores(np.abs(split - middle))
    same = np.ptp(split, axis=(1, 2)) == 0
    r_hat = np.where(same, 1.0, np.maximum(_r_hat(scores), _r_hat(folded)))
    return r_hat, np.where(same, float(split[0].size), _ess(scores, same))


def _normal_scores(values: Floats) -> Floats:
    """Those of the ranks in each row; equal values share the mean of theirs."""
    rows = values.reshape(len(values), -1)
    ascending = np.sort(rows, axis=1)
    upto = [
        [each.searchsorted(row, side) for side in ("left", "right")]
        for each, row in zip(ascending, rows, strict=True)
    ]
    ranks = (np.sum(upto, axis=1) + 1) / 2
    return np.asarray(special.ndtri((ranks - 0.375) / (rows.shape[1] + 0.25))).reshape(values.shape)


def _r_hat(values: Floats) -> Floats:
    within = np.mean(np.var(values, axis=2, ddof=1), axis=1)
    between, length = np.var(np.mean(values, axis=2), axis=1, ddof=1), values.shape[2]
    ratio = np.sqrt((length - 1) / length + between / np.maximum(within, _ROUNDING))
    apart = np.where(between > _ROUNDING, np.inf, 1.0)
    return np.asarray(np.where(within < _ROUNDING, apart, ratio))


def _ess(values: Floats, same: Any) -> Floats:
    """Geyer's initial monotone sequence of sums of two autocorrelations, over all chains."""
    length = values.shape[2]
    centred = values - values.mean(axis=2, keepdims=True)
    transform = np.fft.rfft(centred, 2 * length, axis=2)
    autocovariance = np.fft.irfft(np.abs(transform) ** 2, axis=2)[..., :length] / length
    within = np.mean(autocovariance[..., 0], axis=1) * length / (length - 1)
    total = within * (length - 1) / length + np.var(values.mean(axis=2), axis=1, ddof=1)
    total = np.where(same, 1.0, total)[:, None]
    of_chains = autocovariance.mean(axis=1) * length / (length - 1)
    correlation = 1 - (within[:, None] - of_chains) / total
    correlation[:, 0] = 1.0
    pairs = correlation[:, : length // 2 * 2].reshape(len(values), -1, 2).sum(axis=2)
    pairs[np.logical_or.accumulate(pairs < 0, axis=1)] = 0.0
    time = -1 + 2 * np.minimum.accumulate(pairs, axis=1).sum(axis=1)
    number = values.shape[1] * length
    return np.asarray(number / np.maximum(time, 1 / np.log10(number)))
