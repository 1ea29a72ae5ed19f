"""The law of the error of a release: how far the released posterior is from the true one, with
which probability.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from opendp_bayes.mathematics.validation import Floats, as_choice, as_counts, as_level, as_prior
from opendp_bayes.mechanisms import Mechanism, hellinger_distance
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.planning.release_law import LARGEST_NOISE_ALONE, release_law

#: Ways to say how far a released posterior is from the true one.
Error = Literal["hellinger", "kl"]


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """The law of an error over the randomness of a mechanism.

    Attributes
    ----------
    values : ndarray
        The errors, ascending, shape `(c,)`.
    probabilities : ndarray
        Their probabilities, shape `(c,)`.
    simulated : bool
        Whether they are of simulated releases, with a fixed seed, because there are too many to
        list.
    """

    values: Floats
    probabilities: Floats
    simulated: bool

    def mean(self) -> float:
        """The expected error."""
        return float(self.values @ self.probabilities)

    def cdf(self, value: ArrayLike) -> Floats:
        """`P(error <= value)`, elementwise."""
        cumulated = np.concatenate([[0.0], np.minimum(np.cumsum(self.probabilities), 1.0)])
        at_most = cumulated[np.searchsorted(self.values, np.asarray(value), side="right")]
        return np.where(np.isnan(value), np.nan, at_most)

    def quantile(self, level: float) -> float:
        """The smallest error that is not exceeded with probability `level`, between 0 and 1."""
        cumulated = np.cumsum(self.probabilities)
        position = int(np.searchsorted(cumulated, as_level(level) * cumulated[-1] * (1 - 1e-12)))
        return float(self.values[min(position, self.values.size - 1)])


def error_law(
    mechanism: Mechanism, counts: ArrayLike, prior: ArrayLike, *, error: Error = "hellinger"
) -> ErrorLaw:
    """The law of the error of a mechanism where the true counts are `counts`: public or made up,
    never data.

    A sum over all releases where they can be listed (noise up to a tail below 1e-7), otherwise from
    simulated ones.

    Source: `docs/research/papers.md`, "The law of the error".

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    counts : array_like
        The true counts, shape `(k,)`.
    prior : array_like
        The prior concentration, a number or shape `(k,)`.
    error : Error, default "hellinger"
        `"hellinger"`, the Hellinger distance between the true and the released (plug-in) posterior,
        or `"kl"`, the Kullback-Leibler divergence of the true posterior from the released one.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> from opendp_bayes_research import error_law
    >>> law = error_law(LaplaceParameters(1.0, noise="floored"), [50, 50], 1.0)
    >>> round(law.mean(), 4), round(law.quantile(0.95), 4), round(float(law.cdf(0.0)), 8)
    (0.0756, 0.2089, 0.31606028)
    """
    counts = as_counts(counts)
    prior = as_prior(prior, counts.size)
    as_choice(error, "error", get_args(Error))
    setting = Setting.of(mechanism, int(counts.sum()), prior)
    law = release_law(setting, counts, largest_noise=LARGEST_NOISE_ALONE)
    distance_of = hellinger_distance if error == "hellinger" else kullback_leibler
    values = np.asarray(distance_of(prior + counts, prior + law.counts))
    order = np.argsort(values, kind="stable")
    return ErrorLaw(values[order], law.weights[order] / law.weights.sum(), law.simulated)


def kullback_leibler(a: Floats, b: Floats) -> Floats:
    """`KL(Dirichlet(a) || Dirichlet(b))` of rows, shapes `(..., k)`; shape `(...)`.

    Its absolute error is about `1e-16 n ln n` for concentrations of total n.
    """
    a, b = np.broadcast_arrays(a, b)
    normalisers = _log_normaliser(b) - _log_normaliser(a)
    means = digamma(a) - digamma(a.sum(axis=-1))[..., None]
    return np.maximum(normalisers + ((a - b) * means).sum(axis=-1), 0.0)


def _log_normaliser(a: Floats) -> Floats:
    return np.asarray(gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1)))
