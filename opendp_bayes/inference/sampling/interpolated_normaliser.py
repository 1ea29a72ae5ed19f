r"""Weighted draws given the release of an exponential mechanism, of which neither data sets nor
candidates can be listed: the normaliser is an interpolated estimate, and other draws check these.

A closed form gives `ln Z(x)` within a few tenths. What it is off by is a smooth function of the
counts and of `ln w(x)`, even where the width has kinks. It is estimated at some hundred data sets,
and a linear spline through them, smoothed because the estimates are noisy, gives it at the others.
`docs/research/computation.md`, "Interpolated normaliser".

Weights look even where a peak was missed that no draw saw. So the posterior of the counts is
climbed from the release, from the prior's mean and from data sets with empty categories. Then it is
drawn again, from laws about the highest point that was found and about the release.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
    """Importance sampling with an interpolated normaliser, which is refined where the posterior is
    until its error there is small.

    The error that is stated is that of the last interpolation, at draws which it was not made of.
    """
    widths, released = likelihood.law.widths, likelihood.drawn
    proposals = Proposals(released[None], prior, widths.width(released, prior))
    normaliser = over_prior(widths, likelihood.size, tuple(prior.tolist()))

    def log_likelihood(counts: Integers) -> Floats:
        width = widths.widths_at(counts, prior)
        return -likelihood.distances(counts) / width - normaliser(counts, np.log(width))

    weighted = by_importance(log_likelihood, proposals, min(_PILOT, effective), rng)
    trial = normaliser.tested(weighted, rng)
    for turn in range(_ROUNDS + 1):
        enough = trial.error <= _ERROR or turn == _ROUNDS
        # What was tested is used too, and what follows from that tested again.
        normaliser = normaliser.refined(trial)
        draws = effective if enough else min(_PILOT, effective)
        weighted = by_importance(log_likelihood, proposals, draws, rng)
        trial = normaliser.tested(weighted, rng)
        if enough and trial.error <= _ERROR:
            break
    differs = disagreement(weighted, weighted.independent, log_likelihood, released, rng)
    return weighted.noting(log_error=trial.error, disagreement=differs)


@dataclass(frozen=True, eq=False)
class Trial:
    """New estimates of the normaliser at data sets of a posterior, and the standard deviation of
    what an interpolation is off by there.
    """

    counts: Integers
    values: Floats
    error: float


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
        self._centre = points.mean(axis=0)
        self._spread = np.maximum(points.std(axis=0), np.finfo(np.float64).eps)
        difference = self._values - self._closed_form(counts, self._log_widths)
        self._spline = scipy.interpolate.RBFInterpolator(
            self._standardised(points), difference, kernel="linear", smoothing=_SMOOTHING
        )

    def __call__(self, counts: Integers, log_widths: Floats) -> Floats:
        points = self._standardised(self._coordinates(counts, log_widths))
        return np.asarray(self._closed_form(counts, log_widths) + self._spline(points))

    def tested(self, weighted: Weighted, rng: Generator) -> Trial:
        """At draws of the posterior; where they are only a few data sets, at the next most probable
        ones as well.
        """
        counts = np.unique(weighted.sample(_ADDED, rng), axis=0)
        if len(counts) < _FEWEST:
            probable = weighted.rows[np.argsort(-weighted.weights)[: 4 * _FEWEST]]
            _, first = np.unique(probable, axis=0, return_index=True)
            next_ones = probable[np.sort(first)][:_FEWEST]
            counts = np.unique(np.vstack([counts, next_ones]), axis=0)
        log_widths = np.log(self._widths.widths_at(counts, self._prior))
        values = self._estimates(counts, log_widths)
        return Trial(counts, values, float(np.std(self(counts, log_widths) - values)))

    def refined(self, trial: Trial) -> "LogNormaliser":
        """A new interpolation, of the estimates so far and those of the trial."""
        counts = np.vstack([self._counts, trial.counts])
        values = np.append(self._values, trial.values)
        return LogNormaliser(self._widths, self._prior, counts, values)

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

    def _standardised(self, points: Floats) -> Floats:
        return (points - self._centre) / self._spread


@lru_cache(maxsize=8)
def over_prior(widths: Widths, size: int, prior: tuple[float, ...]) -> LogNormaliser:
    """The normaliser where the prior expects the data sets, and a little elsewhere."""
    alpha, rng = np.array(prior), np.random.default_rng(0)
    priors = (
        (alpha, _NODES),
        (alpha / SPARSER, _SPARSE_NODES),
        (np.ones(alpha.size), _UNIFORM_NODES),
    )
    samples = [
        dirichlet_multinomial(size, concentration, number, rng) for concentration, number in priors
    ]
    return LogNormaliser(widths, alpha, np.unique(np.concatenate(samples), axis=0))


#: Effective draws of the second look, and below which it says nothing.
_LOOKS, _FEWEST_LOOKS = 1000, 50
#: Steps of a climb.
_STEPS = 40
#: Starts with one category that holds all records, at most.
_CORNERS = 4


def disagreement(
    listed: Listed,
    ess: float,
    log_likelihood: Callable[[Integers], Floats],
    released: Integers,
    rng: Generator,
) -> float:
    """By how many standard errors the mean probability of a category differs, at most, between
    draws that are worth `ess` independent ones and those of the second look; 0 where it is worth
    too few itself.
    """
    top = climbed(log_likelihood, starts(listed, released), listed.prior)
    # About the release as well, where the posterior may have a narrower peak than at its top.
    proposals = Proposals(np.unique([top, released], axis=0), listed.prior, 1.0)
    second = by_importance(log_likelihood, proposals, min(_LOOKS, int(ess)), rng)
    effective = float(second.diagnostics.ess[0])
    if effective < _FEWEST_LOOKS:
        return 0.0
    means, squares = zip(expected(listed, ess), expected(second, effective), strict=True)
    return float(np.max(np.abs(means[0] - means[1]) / np.sqrt(squares[0] + squares[1])))


def expected(rows: Listed | Weighted, ess: float) -> tuple[Floats, Floats]:
    """Mean, over rows of counts, of the expected probabilities given them, and its squared standard
    error.

    Of weighted draws that is a sum over the draws themselves: where the heavy ones are far out, it
    is more than the effective sample size says.
    """
    concentration = rows.prior + rows.rows
    share = concentration / concentration.sum(axis=1, keepdims=True)
    mean = rows.weights @ share
    square = (share - mean) ** 2
    if isinstance(rows, Weighted):
        return mean, rows.weights**2 @ square + 1e-18
    return mean, rows.weights @ square / ess + 1e-18


def starts(listed: Listed, released: Integers) -> Integers:
    """Data sets to climb from, shape `(m, k)`."""
    size, prior = int(released.sum()), listed.prior
    best = listed.rows[np.argmax(listed.weights)]
    likely = np.argsort(-prior)[:_CORNERS]
    corners = size * np.eye(prior.size, dtype=np.int64)[likely]
    mean = nearest_counts(np.floor(prior / prior.sum() * size).astype(np.int64), size)
    return np.vstack([released, best, mean, corners])


def climbed(
    log_likelihood: Callable[[Integers], Floats], starts: Integers, prior: Floats
) -> Integers:
    """The data set with the highest posterior probability that climbs from some lead to: in each
    step the best move of 1, 4, 16, ... records, or of all, from a category to another.
    """

    def height(counts: Integers) -> Floats:
        return log_likelihood(counts) + log_rising(counts, prior).sum(axis=1)

    size, k = int(starts[0].sum()), prior.size
    steps = np.append(4 ** np.arange(int(np.log2(size) / 2) + 1), size)
    pairs = np.array([(i, j) for i in range(k) for j in range(k) if i != j])
    leave, enter = np.repeat(pairs, steps.size, axis=0).T
    number = np.tile(steps, len(pairs))
    points, tops = starts, height(starts)
    for _ in range(_STEPS):
        moved = np.minimum(number, points[:, leave])  # of each start, shape (m, moves)
        tried = np.repeat(points[:, None, :], number.size, axis=1)
        moves = np.arange(number.size)
        tried[:, moves, leave] -= moved
        tried[:, moves, enter] += moved
        heights = height(tried.reshape(-1, k)).reshape(moved.shape)
        best = np.argmax(heights, axis=1)
        rows = np.arange(len(points))
        better = heights[rows, best] > tops + 1e-9
        if not np.any(better):
            break
        points = np.where(better[:, None], tried[rows, best], points)
        tops = np.where(better, heights[rows, best], tops)
    return np.asarray(points[np.argmax(tops)])
