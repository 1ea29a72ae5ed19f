r"""Weighted draws given the release of an exponential mechanism, of which neither data sets nor
candidates can be listed: the normaliser is an interpolated estimate.

A closed form gives `ln Z(x)` within a few tenths. What it is off by is a smooth function of the
counts and of `ln w(x)`, even where the width has kinks. It is estimated at some hundred data sets,
and a linear spline through them, smoothed because the estimates are noisy, gives it at the others.
`docs/research/computation.md`, "Interpolated normaliser".

Weights look even where a peak was missed that no draw saw. So the posterior of the counts is
climbed from the release, from the prior's mean and from data sets with empty categories. Draws are
from laws about the highest point of these climbs, and about the release.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import scipy

from opendp_bayes.inference.engines import Generator, Listed
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet_multinomial, log_rising
from opendp_bayes.inference.likelihood.of_counts import Weighing
from opendp_bayes.inference.sampling.importance import SPARSER, Proposals, Weighted, by_importance
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms.exponential.posterior_exponential import floor_and_peak
from opendp_bayes.mechanisms.laws import Widths
from opendp_bayes.samplers.exponential.hellinger_candidates import HellingerSampler

#: Data sets at which the normaliser is estimated first: drawn from the prior, from a sparser one,
#: and from a uniform one, so that the nodes are not all in a corner or on an edge where a prior
#: says that the data are.
_NODES, _SPARSE_NODES, _UNIFORM_NODES = 120, 40, 40
#: Proposals behind an estimate, whose standard error is then 1 to 3 % (8 % for 50 categories); and
#: what smooths that away, relative to a spread of 1 of every coordinate.
_PROPOSALS, _SMOOTHING = 4096, 1.0
_BLOCK = 1024  # data sets of one evaluation of the closed form; bounds its memory
#: The error of `ln Z` over the posterior that is accepted; where it is larger, estimates are added
#: at so many draws, at most so many times.
_ERROR, _ADDED, _ROUNDS = 0.1, 40, 4
#: Data sets of which the error is taken, at least.
_FEWEST = 10
#: Effective draws that only say where the posterior is.
_PILOT = 500


def by_interpolation(
    likelihood: Weighing, prior: Floats, effective: int, rng: Generator
) -> Weighted:
    """Importance sampling with an interpolated normaliser, from laws about the release and about
    the highest point of the posterior to which a climb leads. The normaliser is refined where the
    posterior is until its error there is small.

    The error that is stated is that of the last interpolation, at draws which it was not made of.
    """
    widths, released = likelihood.widths, likelihood.drawn
    width = widths.width(released, prior)
    normaliser = over_prior(widths, likelihood.size, tuple(prior.tolist()))

    def log_likelihood(counts: Integers) -> Floats:
        log_widths = np.log(widths.widths_at(counts, prior))
        return likelihood.given(counts, log_widths, normaliser(counts, log_widths)[:, None])

    pilot = Proposals(released[None], prior, width)
    weighted = by_importance(log_likelihood, pilot, min(_PILOT, effective), rng)
    error, refined = normaliser.tested(weighted, rng)
    for _ in range(_ROUNDS + 1):
        normaliser = refined
        top = climbed(log_likelihood, starts(weighted, released), prior)
        # About the release as well, where the posterior may have a narrower peak than at its top.
        proposals = Proposals(np.unique([top, released], axis=0), prior, width)
        weighted = by_importance(log_likelihood, proposals, effective, rng)
        error, refined = normaliser.tested(weighted, rng)
        if error <= _ERROR:
            break
    weighted.diagnostics = replace(weighted.diagnostics, log_error=error)
    return weighted


class LogNormaliser:
    """`ln Z` as a function of counts, shape `(m, k)`, and of the logarithms of their widths, shape
    `(m,)`.

    A closed form is off by a few tenths; what is interpolated is the difference.
    """

    def __init__(
        self, widths: Widths, prior: Floats, counts: Integers, values: Floats | None = None
    ) -> None:
        self._widths, self._prior, self._counts = widths, prior, counts
        self._log_widths = np.log(widths.widths_at(counts, prior))
        self._values = self._estimates(counts, self._log_widths) if values is None else values
        points = self._coordinates(counts, self._log_widths)
        self._spread = np.maximum(points.std(axis=0), np.finfo(np.float64).eps)
        difference = self._values - self._closed_form(counts, self._log_widths)
        self._spline = scipy.interpolate.RBFInterpolator(
            points / self._spread, difference, kernel="linear", smoothing=_SMOOTHING
        )

    def __call__(self, counts: Integers, log_widths: Floats) -> Floats:
        points = self._coordinates(counts, log_widths) / self._spread
        return np.asarray(self._closed_form(counts, log_widths) + self._spline(points))

    def tested(self, weighted: Weighted, rng: Generator) -> "tuple[float, LogNormaliser]":
        """The standard deviation of what it is off by, at draws of the posterior and at the most
        probable ones, since draws may be only a few data sets; and a new interpolation, of the
        estimates so far and of those.
        """
        order = np.argsort(-weighted.weights)[: 4 * _FEWEST]
        probable, first = np.unique(weighted.rows[order], axis=0, return_index=True)
        most = probable[np.argsort(first)[:_FEWEST]]
        counts = np.unique(np.vstack([weighted.sample(_ADDED, rng), most]), axis=0)
        log_widths = np.log(self._widths.widths_at(counts, self._prior))
        values = self._estimates(counts, log_widths)
        error = float(np.std(self(counts, log_widths) - values))
        every, known = np.vstack([self._counts, counts]), np.append(self._values, values)
        return error, LogNormaliser(self._widths, self._prior, every, known)

    def _estimates(self, counts: Integers, log_widths: Floats) -> Floats:
        samplers = (
            HellingerSampler(row, self._prior, width)
            for row, width in zip(counts, np.exp(log_widths).tolist(), strict=True)
        )
        return np.array([sampler.log_normaliser(_PROPOSALS) for sampler in samplers])

    def _closed_form(self, counts: Integers, log_widths: Floats) -> Floats:
        size, exponents = int(counts[0].sum()), np.exp(-log_widths)
        blocks = [slice(first, first + _BLOCK) for first in range(0, len(counts), _BLOCK)]
        levels = (
            floor_and_peak(size, self._prior + counts[block], exponents[block]) for block in blocks
        )
        return np.concatenate([np.logaddexp(floor, peak) for floor, peak in levels])

    def _coordinates(self, counts: Integers, log_widths: Floats) -> Floats:
        # The power spreads small counts out, where the function bends.
        return np.column_stack([(counts + 0.5) ** 0.25, log_widths])


@lru_cache(maxsize=8)
def over_prior(widths: Widths, size: int, prior: tuple[float, ...]) -> LogNormaliser:
    """The normaliser where the prior expects the data sets, and a little elsewhere."""
    alpha, rng = np.array(prior), np.random.default_rng(0)
    samples = [
        dirichlet_multinomial(size, alpha, _NODES, rng),
        dirichlet_multinomial(size, alpha / SPARSER, _SPARSE_NODES, rng),
        dirichlet_multinomial(size, np.ones(alpha.size), _UNIFORM_NODES, rng),
    ]
    return LogNormaliser(widths, alpha, np.unique(np.concatenate(samples), axis=0))


#: Steps of a climb.
_STEPS = 40
#: Starts with one category that holds all records, at most.
_CORNERS = 4


def starts(listed: Listed, released: Integers) -> Integers:
    """Data sets to climb from, shape `(m, k)`."""
    size, prior = int(released.sum()), listed.prior
    best = listed.rows[np.argmax(listed.weights)]
    likely = np.argsort(-prior)[:_CORNERS]
    corners = size * np.eye(prior.size, dtype=np.int64)[likely]
    mean = nearest_counts(np.floor(prior / prior.sum() * size).astype(np.int64), size)
    return np.vstack([released, best, mean, corners])


def climbed(
    log_likelihood: Callable[[Integers], Floats], points: Integers, prior: Floats
) -> Integers:
    """The data set with the highest posterior probability that climbs from some, shape `(m, k)`,
    lead to: in each step the best move of 1, 4, 16, ... records, or of all, from a category to
    another.
    """
    size, k = int(points[0].sum()), prior.size
    steps = np.concatenate([[0], 4 ** np.arange(int(np.log2(size) / 2) + 1), [size]])
    pairs = np.array([(i, j) for i in range(k) for j in range(k) if i != j])
    leave, enter = np.repeat(pairs, steps.size, axis=0).T
    unit, rows = np.eye(k, dtype=np.int64), np.arange(len(points))
    for _ in range(_STEPS):
        moved = np.minimum(np.tile(steps, len(pairs)), points[:, leave])  # shape (m, moves)
        tried = points[:, None] + moved[..., None] * (unit[enter] - unit[leave])
        every = tried.reshape(-1, k)
        heights = log_likelihood(every) + log_rising(every, prior).sum(axis=1)
        best = heights.reshape(moved.shape).argmax(axis=1)
        points = tried[rows, best]
        if not moved[rows, best].any():
            break
    return np.asarray(every[heights.argmax()])
