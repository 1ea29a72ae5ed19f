"""Exact composition with other mechanisms: the privacy profile as a privacy loss distribution of
Google's `dp-accounting`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes import privacy_profile
from opendp_bayes.mathematics.validation import as_positive
from opendp_bayes.mechanisms import Mechanism

_MOST_POINTS = 100_000
#: δ at the last ε of a distribution for a mechanism without a pure bound.
_BEYOND = 1e-20


def privacy_loss_distribution(
    mechanism: Mechanism,
    *,
    size: int | None,
    prior: ArrayLike,
    d_in: int = 1,
    interval: float = 5e-3,
) -> Any:
    """Return a `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution` that dominates
    the mechanism; it composes with others by `compose`.

    No single pair of neighbours need be the worst at every ε. So the distribution is not that of a
    pair, but one whose δ is at least the certified profile at every ε. That profile is the largest
    over all pairs. Through it at multiples of `interval` runs a convex function of `exp(ε)`, and
    every such function is the profile of a pair of distributions. The numbers of dp-accounting are
    floats: a δ of its own, and the δ of an ε that it finds, are off by up to about 1e-15.

    Source: `docs/research/proofs.md`, "Exact composition"; Zhu, Dong and Wang, "Optimal accounting
    of differential privacy via characteristic function"; Doroshenko et al., "Connect the dots".

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    size : int or None
        The public number of records, or None where it is private (add/remove neighbours).
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    d_in : int, default 1
        Records changed, or added and removed; a whole number of at least 0.
    interval : float, default 0.005
        Spacing of the privacy losses, positive; a smaller one is tighter and takes more time.

    Raises
    ------
    ValueError
        For a mechanism whose loss has no finite bound, pure or with δ = 1e-20.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    interval = as_positive(interval, "interval")
    profile = privacy_profile(mechanism, size=size, prior=prior, d_in=d_in)
    largest = profile.loss.epsilon
    if math.isinf(largest):  # what lies beyond is kept, as a probability of an infinite loss
        largest = profile.epsilon(_BEYOND)
    if not largest / interval <= _MOST_POINTS:
        raise ValueError(
            f"interval={interval!r}: the privacy loss of {mechanism} goes up to {largest:.6g}; that"
            f" must be at most {_MOST_POINTS} intervals."
        )
    last = math.ceil(largest / interval)
    at_least_zero = np.array([profile(step * interval) for step in range(last + 1)])
    # For a profile that holds in both orders, delta(-e) = 1 - exp(-e) + exp(-e) delta(e).
    positive = np.arange(1, last + 1) * interval
    below_zero = -np.expm1(-positive) + np.exp(-positive) * at_least_zero[1:]
    deltas = np.concatenate([below_zero[::-1], at_least_zero])
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -last, last, deltas)
    return PrivacyLossDistribution(pmf)
