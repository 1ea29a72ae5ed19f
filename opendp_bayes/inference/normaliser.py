r"""The normaliser of an exponential mechanism where neither its data sets nor its candidates can be
listed: an interpolated estimate.

A closed form gives `ln Z(x)` within a few tenths. What it is off by is a smooth function of the
counts and of `ln w(x)`, even where the width has kinks. It is estimated at some hundred data sets,
and a linear spline through them, smoothed because the estimates are noisy, gives it at the others.
`docs/posterior.md`, "Interpolated normaliser".
"""

from functools import lru_cache

import numpy as np
from scipy.interpolate import RBFInterpolator

from opendp_bayes.inference.dirichlet import dirichlet_multinomial
from opendp_bayes.inference.importance import SPARSER, Proposals, Weighted, by_importance
from opendp_bayes.inference.likelihood import ExponentialWeights
from opendp_bayes.inference.true_counts import Generator
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.exponential import PosteriorExponential, floor_and_peak
from opendp_bayes.samplers.hellinger import HellingerSampler

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
#: Effective draws that only say where the posterior is.
_PILOT = 500


def by_interpolation(
    likelihood: ExponentialWeights, prior: Floats, effective: int, rng: Generator
) -> Weighted:
    """Importance sampling with an interpolated normaliser, which is refined where the posterior is
    until its error there is small.
    """
    mechanism, released = likelihood.mechanism, likelihood.released
    proposals = Proposals(released, prior, mechanism._width(released, prior))
    normaliser = over_prior(mechanism, likelihood.size, tuple(prior.tolist()))

    def log_likelihood(counts: Integers) -> Floats:
        widths = mechanism._widths_at(counts, prior)
        return -likelihood.distances(counts, released) / widths - normaliser(counts, np.log(widths))

    for _ in range(_ROUNDS):
        pilot = by_importance(log_likelihood, proposals, min(_PILOT, effective), rng)
        normaliser, error = normaliser.refined(pilot.sample(_ADDED, rng))
        if error <= _ERROR:
            break
    return by_importance(log_likelihood, proposals, effective, rng, error)


class LogNormaliser:
    """`ln Z` as a function of counts, shape `(m, k)`, and of the logarithms of their widths, shape
    `(m,)`.

    A closed form is off by a few tenths; what is interpolated is the difference.
    """

    def __init__(
        self,
        mechanism: PosteriorExponential,
        prior: Floats,
        counts: Integers,
        values: Floats | None = None,
    ) -> None:
        self._mechanism, self._prior, self._counts = mechanism, prior, counts
        self._log_widths = np.log(mechanism._widths_at(counts, prior))
        self._values = self._estimates(counts, self._log_widths) if values is None else values
        place = self._coordinates(counts, self._log_widths)
        self._centre, self._spread = (
            place.mean(axis=0),
            np.maximum(place.std(axis=0), np.finfo(np.float64).eps),
        )
        difference = self._values - self._closed_form(counts, self._log_widths)
        self._spline = RBFInterpolator(
            self._standardised(place), difference, kernel="linear", smoothing=_SMOOTHING
        )

    def __call__(self, counts: Integers, log_widths: Floats) -> Floats:
        place = self._standardised(self._coordinates(counts, log_widths))
        return np.asarray(self._closed_form(counts, log_widths) + self._spline(place))

    def refined(self, counts: Integers) -> tuple["LogNormaliser", float]:
        """The same with estimates at further data sets, and the standard deviation of its error
        before, as those show it.
        """
        counts = np.unique(counts, axis=0)
        log_widths = np.log(self._mechanism._widths_at(counts, self._prior))
        values = self._estimates(counts, log_widths)
        better = LogNormaliser(
            self._mechanism,
            self._prior,
            np.vstack([self._counts, counts]),
            np.append(self._values, values),
        )
        return better, float(np.std(self(counts, log_widths) - values))

    def _estimates(self, counts: Integers, log_widths: Floats) -> Floats:
        samplers = (
            HellingerSampler(row, self._prior, width)
            for row, width in zip(counts, np.exp(log_widths).tolist(), strict=True)
        )
        return np.array([sampler.log_normaliser(_PROPOSALS) for sampler in samplers])

    def _closed_form(self, counts: Integers, log_widths: Floats) -> Floats:
        size, exponents = int(counts[0].sum()), np.exp(-log_widths)
        blocks = [slice(first, first + _BLOCK) for first in range(0, len(counts), _BLOCK)]
        return np.concatenate(
            [
                np.logaddexp(*floor_and_peak(size, self._prior + counts[block], exponents[block]))
                for block in blocks
            ]
        )

    def _coordinates(self, counts: Integers, log_widths: Floats) -> Floats:
        return np.column_stack(
            [(counts + 0.5) ** 0.25, log_widths]
        )  # the power spreads small counts out, where the function bends

    def _standardised(self, place: Floats) -> Floats:
        return (place - self._centre) / self._spread


@lru_cache(maxsize=8)
def over_prior(
    mechanism: PosteriorExponential, size: int, prior: tuple[float, ...]
) -> LogNormaliser:
    """The normaliser where the prior expects the data sets, and a little elsewhere."""
    alpha, rng = np.array(prior), np.random.default_rng(0)
    priors = [
        (alpha, _NODES),
        (alpha / SPARSER, _SPARSE_NODES),
        (np.ones(alpha.size), _UNIFORM_NODES),
    ]
    drawn = [
        dirichlet_multinomial(size, concentration, number, rng) for concentration, number in priors
    ]
    return LogNormaliser(mechanism, alpha, np.unique(np.concatenate(drawn), axis=0))
