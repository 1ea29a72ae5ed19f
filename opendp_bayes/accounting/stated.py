"""Compare the privacy loss that a document states with the least loss that its mechanism has."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting.exact import checked, is_accounted, loss_within
from opendp_bayes.accounting.profile import privacy_profile
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import AdditiveNoise, SimplexNoise
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism, law_of

#: Probabilities to compare, above which nothing is computed: a document is read in an instant.
_LARGEST_WORK = 2_000_000
#: Relative differences of bounds and of concentrated losses, which are suprema over orders, that
#: are put down to rounding and to another version.
_CLOSE, _CLOSE_RHO = 1e-6, 1e-3


def understated(
    loss: PrivacyLoss,
    mechanism: Mechanism,
    *,
    size: int | None,
    prior: ArrayLike,
    d_in: int,
) -> Sequence[tuple[str, float, float]]:
    """List the bounds of a stated loss that the mechanism exceeds: name, stated value, and the
    least loss that the mechanism has.

    Parameters
    ----------
    loss : the stated loss.
    mechanism : a mechanism value.
    size : the public number of records, or None where it is private (add/remove neighbours).
    prior : the prior concentration, a positive number for every category, shape `(k,)`.
    d_in : records changed, or added and removed; a whole number of at least 0.

    The losses of noise on the counts are attained, at any distance. Those of other mechanisms are
    computed for one record, where that takes an instant, which is a lower bound of any distance.
    Nothing is said of a mechanism that is not accounted for exactly.

    Raises `ValueError`/`TypeError` for arguments that are not valid or do not fit the mechanism.
    """
    mechanism, size, concentration, d_in = checked(mechanism, size, prior, d_in)
    distance = d_in if size is None else min(d_in, size)
    if distance == 0 or not is_accounted(mechanism):
        return ()
    law = law_of(mechanism, size, np.array(concentration))
    one = loss_within(mechanism, size, concentration, 1, _LARGEST_WORK, True)
    if isinstance(law, (AdditiveNoise, SimplexNoise)):
        least = mechanism.proven_loss(distance, size=size, prior=np.array(concentration))
    elif one.method == "proven":
        return ()
    else:
        least = one
    gaussian = isinstance(law, AdditiveNoise) and isinstance(law.noise, DiscreteGaussian)
    bounds = [
        ("range", loss.range, least.range, _CLOSE),
        ("rho", loss.rho, least.rho if gaussian else one.rho, _CLOSE_RHO),
    ]
    if loss.delta == 0:
        bounds.append(("epsilon", loss.epsilon, least.epsilon, _CLOSE))
    elif math.isfinite(loss.epsilon):
        compared = distance if isinstance(law, AdditiveNoise) else 1
        profile = privacy_profile(mechanism, size=size, prior=concentration, d_in=compared)
        if profile.method != "proven":
            delta = float(profile(loss.epsilon * (1 + _CLOSE)))
            bounds.append(("delta", loss.delta, delta, _CLOSE))
    return [
        (name, stated, least_of)
        for name, stated, least_of, close in bounds
        if stated < least_of * (1 - close)
    ]
