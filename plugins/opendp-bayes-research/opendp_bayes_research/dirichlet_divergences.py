"""Kullback-Leibler divergence between Dirichlet distributions, and total variation between Beta
distributions, in floating point: for plans and comparisons, never for losses.
"""

import numpy as np
from scipy.special import betainc, digamma, expit, gammaln

from opendp_bayes.mathematics.validation import Floats

#: Halvings of an interval of logits that holds every crossing of two densities.
_HALVINGS = 80
_LARGEST_LOGIT = 700.0


def kullback_leibler(a: Floats, b: Floats) -> Floats:
    """`KL(Dirichlet(a) || Dirichlet(b))` of rows, shapes `(..., k)`; shape `(...)`.

    Its absolute error is about `1e-16 n ln n` for concentrations of total n.
    """
    a, b = np.broadcast_arrays(a, b)
    normalisers = _log_normaliser(b) - _log_normaliser(a)
    means = digamma(a) - digamma(a.sum(axis=-1))[..., None]
    return np.maximum(normalisers + ((a - b) * means).sum(axis=-1), 0.0)


def total_variation(a: Floats, b: Floats) -> Floats:
    """Total variation between Beta distributions with parameters `a` and `b`, shapes `(..., 2)`;
    shape `(...)`.

    The densities cross once, or twice where both parameters of one are larger; between crossings
    the difference of the distribution functions is what the densities differ by.
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    powers = a - b
    constant = _log_normaliser(b) - _log_normaliser(a)
    # The log-ratio of the densities rises up to this logit and falls from there, or the reverse,
    # where both powers have one sign; otherwise it is monotone.
    twice = powers[..., 0] * powers[..., 1] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(twice, np.log(powers[..., 0] / powers[..., 1]), _LARGEST_LOGIT)
    low = _crossing(powers, constant, np.full(turn.shape, -_LARGEST_LOGIT), turn)
    high = _crossing(powers, constant, turn, np.full(turn.shape, _LARGEST_LOGIT))
    below, above = _difference(a, b, low), np.where(twice, _difference(a, b, high), 0.0)
    same = (powers == 0).all(axis=-1)
    return np.where(same, 0.0, np.abs(above - below))


def _log_normaliser(a: Floats) -> Floats:
    return np.asarray(gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1)))


def _log_ratio(powers: Floats, constant: Floats, logit: Floats) -> Floats:
    """`ln f - ln g` at a probability given by its logit."""
    return constant - (
        powers[..., 0] * np.logaddexp(0, -logit) + powers[..., 1] * np.logaddexp(0, logit)
    )


def _crossing(powers: Floats, constant: Floats, low: Floats, high: Floats) -> Floats:
    """A logit in `[low, high]`, where the log-ratio is monotone, at which it changes its sign."""
    at_low = _log_ratio(powers, constant, low) > 0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        same = (_log_ratio(powers, constant, middle) > 0) == at_low
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def _difference(a: Floats, b: Floats, logit: Floats) -> Floats:
    """The distribution function of Beta(a) less that of Beta(b), from the nearer end."""
    x = expit(logit)
    near, far = betainc(a[..., 0], a[..., 1], x), betainc(b[..., 0], b[..., 1], x)
    return np.asarray(near - far)
