"""Compare the privacy loss that a document states with the least loss that its mechanism has."""

import math
from collections.abc import Sequence

from opendp_bayes.accounting.exact import loss_within
from opendp_bayes.accounting.pairs import WORST_OF_NOISE, pairs_of
from opendp_bayes.accounting.profile import curve_of
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting

#: Probabilities to compare, above which nothing is computed: a document is read in an instant.
_LARGEST_WORK = 2_000_000
#: Relative differences of bounds and of concentrated losses, which are suprema over orders, that
#: are put down to rounding and to another version.
_CLOSE, _CLOSE_RHO = 1e-6, 1e-3


def understated(
    loss: PrivacyLoss, setting: Setting, d_in: int
) -> Sequence[tuple[str, float, float]]:
    """List the bounds of a stated loss that the mechanism exceeds: name, stated value, and the
    least loss that the mechanism has.

    Parameters
    ----------
    loss : the stated loss.
    setting : the mechanism in its public setting.
    d_in : records changed, or added and removed; a whole number of at least 0.

    The losses of noise on the counts are attained, at any distance; ρ is computed up to 64 records,
    and further for independent noise. Others, and ρ beyond, are computed for one record, where that
    takes an instant, which is a lower bound of any distance. Nothing is said of a
    mechanism that is not accounted for exactly.
    """
    size, law = setting.size, setting.law
    distance = d_in if size is None else min(d_in, size)
    if distance == 0 or not setting.is_accounted:
        return ()
    one = loss_within(setting, 1, _LARGEST_WORK, True)
    if not setting.adds_noise and one.method == "proven":
        return ()
    least = setting.proven_loss(distance) if setting.adds_noise else one
    of_noise = isinstance(pairs_of(setting, distance, _LARGEST_WORK), WORST_OF_NOISE)
    rho = loss_within(setting, distance, _LARGEST_WORK, True).rho if of_noise else one.rho
    bounds = [
        ("range", loss.range, least.range, _CLOSE),
        ("rho", loss.rho, rho, _CLOSE_RHO),
    ]
    if loss.delta == 0:
        bounds.append(("epsilon", loss.epsilon, least.epsilon, _CLOSE))
    elif math.isfinite(loss.epsilon):
        compared = distance if isinstance(law, AdditiveNoise) else 1
        curve = curve_of(setting, compared)
        if curve.pairs is not None:
            delta = curve.delta(loss.epsilon * (1 + _CLOSE))
            bounds.append(("delta", loss.delta, delta, _CLOSE))
    return [
        (name, stated, least_of)
        for name, stated, least_of, close in bounds
        if stated < least_of * (1 - close)
    ]
