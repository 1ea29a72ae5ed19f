"""Keys that nobody listed: what they cost, and the law that fits a budget
(`docs/research/proofs.md`, "Keys that nobody listed").
"""

import math
from collections.abc import Callable
from fractions import Fraction

import scipy

from opendp_bayes.mathematics.rounding import divided, round_down, round_up, sqrt_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice, as_level, as_number, as_positive
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.unlisted.threshold_losses import (
    delta_of_several,
    gaussian_delta,
    loss_of_discovery,
    new_shown,
)
from opendp_bayes.unlisted.threshold_profile import MOST_KEYS, delta_of_discovery
from opendp_bayes.unlisted.thresholds import (
    LARGEST_SCALE,
    SMALLEST_DELTA,
    SMALLEST_SCALE,
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    check_smallest_delta,
)

__all__ = ["delta_of_discovery", "fitted_discovery", "loss_of_discovery"]

#: The least δ of any law; that of several people is rounded up to a unit far below it.
_SMALLEST_DELTA = 1e-60
#: A threshold that no key reaches.
_NEVER = 10**12
#: The Gaussian law is fitted to an ε that is lower by this part: that of a loss is found to 1e-11.
_LOWER = 1 - Fraction(1, 2**30)


def fitted_discovery(
    name: str,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float,
    d_in: int | Distance,
    rest: float = 0.0,
) -> Discovery:
    """Return the discovery within a budget whose law shows a key with one half at the least count.

    Parameters
    ----------
    name : str
        `"optimal_threshold"`, `"laplace_threshold"` or `"gaussian_threshold"`, or `"auto"` for the
        one of least such count, which beyond 64 records is taken to be the last.
    epsilon, rho : float, optional
        The budget, one of them; under ρ there is the Gaussian law alone.
    delta : float
        Number between 0 and 1.
    d_in : int or Distance
        How far the counts of all keys move, as in `loss_of_discovery`.
    rest : float, default 0.0
        The share, from 0 to below 1, of ε or ρ that buys the number of records that the hidden keys
        hold together. The optimal law has it at that share of its own ε and spends no more.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and where no law of that name fits.

    Examples
    --------
    >>> fitted_discovery("auto", epsilon=1.0, delta=1e-8, d_in=1).law
    OptimalThreshold(epsilon=1.0, delta=1e-08, decay=1.0)
    """
    name = as_choice(name, "name", ("auto", *_FITTED))
    if (epsilon is None) == (rho is None):
        raise ValueError(
            f"epsilon={told(epsilon)}, rho={told(rho)}: one of the two must be given, and not both."
        )
    delta, distance = as_level(delta, "1e-8", "delta"), Distance.of(d_in)
    if delta < _SMALLEST_DELTA:
        raise ValueError(f"delta={told(delta)}: must be at least {_SMALLEST_DELTA:g}.")
    if distance.records == 0:
        raise ValueError("d_in=0: must be at least 1, since nothing is to be hidden otherwise.")
    if not 0 <= as_number(rest, "rest") < 1:
        raise ValueError(f"rest={told(rest)}: must be at least 0 and below 1, such as 0.2.")
    if epsilon is None:
        if name not in ("auto", GaussianThreshold.name):
            raise ValueError(
                f"name={told(name)}: has no rho of its own; ask for 'gaussian_threshold' under a"
                " budget in rho, or for a budget in epsilon."
            )
        return _under_rho(as_positive(rho, "rho"), delta, distance, rest)
    epsilon = as_positive(epsilon, "epsilon")
    if name != "auto":
        return _FITTED[name](epsilon, delta, distance, rest)
    # Beyond so many keys the Gaussian law has by far the least threshold, and the others take long.
    names = [*_FITTED] if distance.records <= MOST_KEYS else [GaussianThreshold.name]
    discoveries, refused = [], []
    for law_name in names:
        try:
            discoveries.append(_FITTED[law_name](epsilon, delta, distance, rest))
        except ValueError as error:
            refused.append(error)
    if not discoveries:
        raise refused[-1]
    return min(discoveries, key=lambda discovery: discovery.law.least_shown(0.5))


def _optimal(epsilon: float, delta: float, distance: Distance, share: float) -> Discovery:
    """Within ε by an equal part of it for each record."""
    check_smallest_delta(delta)
    epsilon_of_one = round_down(Fraction(epsilon) / distance.records)
    exact = Fraction(epsilon_of_one)
    delta_of_one = _largest_delta(delta, lambda d: delta_of_several(exact, d, distance))
    if delta_of_one < SMALLEST_DELTA:
        raise ValueError(
            f"epsilon={told(epsilon)}, delta={told(delta)}: leave each of {distance.records}"
            f" records a delta of {delta_of_one:.2g}, which must be at least {SMALLEST_DELTA:g};"
            " ask for a smaller epsilon, or a larger delta."
        )
    noise = _laplace_of(Fraction(share) * Fraction(epsilon_of_one))
    spent = Fraction(0) if noise is None else 1 / Fraction(noise.scale)
    decay = round_down(Fraction(epsilon_of_one) - spent)
    return Discovery(OptimalThreshold(epsilon_of_one, delta_of_one, decay), noise)


def _laplace(epsilon: float, delta: float, distance: Distance, share: float) -> Discovery:
    """Within ε by the scale, and within δ by the threshold."""
    of_law, of_rest = _divided(epsilon, share)
    scale = round_up(distance.records / of_law)

    def within(threshold: int) -> bool:
        tried = Discovery(LaplaceThreshold(scale, threshold))
        return loss_of_discovery(tried, distance, concentrated=False).delta <= delta

    law = LaplaceThreshold(scale, _least_threshold(within))
    return Discovery(law, _laplace_of(of_rest / distance.records))


def _gaussian(epsilon: float, delta: float, distance: Distance, share: float) -> Discovery:
    """The law of the least threshold that any scale has, at the least scale that has it."""
    of_law, of_rest = _divided(epsilon, share)
    lower = round_down(of_law * _LOWER)

    def delta_at(scale: float, threshold: int) -> float:
        return gaussian_delta(GaussianThreshold(scale, threshold), lower, distance)

    if delta_at(LARGEST_SCALE, _NEVER) > delta:
        raise ValueError(
            f"epsilon={told(epsilon)}: would take noise of more than {LARGEST_SCALE} records; ask"
            " for a larger epsilon, for fewer keys a person, or for fewer queries."
        )
    least = _least_scale(
        lambda scale: delta_at(scale, _NEVER) <= delta, SMALLEST_SCALE, LARGEST_SCALE
    )
    possible = _least_threshold(
        lambda tried: new_shown(GaussianThreshold(least, tried), distance) <= delta
    )
    threshold = _least_threshold(
        lambda tried: delta_at(_best_scale(delta_at, tried, least), tried) <= delta, possible
    )
    scale = _best_scale(delta_at, threshold, least)
    scale = _least_scale(lambda s: delta_at(s, threshold) <= delta, least, scale)
    return Discovery(GaussianThreshold(scale, threshold), _laplace_of(of_rest / distance.records))


def _under_rho(rho: float, delta: float, distance: Distance, share: float) -> Discovery:
    """The Gaussian law with a share of ρ by the scale, and within δ by the threshold."""
    of_law, of_rest = _divided(rho, share)
    scale = sqrt_up(distance.squared / (2 * of_law))
    threshold = _least_threshold(
        lambda tried: new_shown(GaussianThreshold(scale, tried), distance) <= delta
    )
    law = GaussianThreshold(scale, threshold)
    if not of_rest:
        return Discovery(law)
    return Discovery(law, DiscreteGaussian(sqrt_up(distance.records**2 / (2 * of_rest))))


_FITTED = {
    OptimalThreshold.name: _optimal,
    LaplaceThreshold.name: _laplace,
    GaussianThreshold.name: _gaussian,
}


def _divided(budget: float, share: float) -> tuple[Fraction, Fraction]:
    """Parts of a budget, that of the law and that of the rest by its share, so that the sum of both
    losses is within it.
    """
    if not share:
        return Fraction(budget), Fraction(0)
    of_law, of_rest = map(Fraction, divided(budget, (1 - share, share)))
    return of_law, of_rest


def _largest_delta(delta: float, total: Callable[[Fraction], float]) -> float:
    """The largest δ of one record, but for a part of 2^-50, whose total is at most `delta`."""
    low, high = 0.0, delta
    while total(Fraction(high)) > delta and high - low > high * 2.0**-50:
        middle = (low + high) / 2
        low, high = (middle, high) if total(Fraction(middle)) <= delta else (low, middle)
    return high if total(Fraction(high)) <= delta else low


def _laplace_of(epsilon: Fraction) -> DiscreteLaplace | None:
    """Noise whose ε for one record is at most this; None for an ε of 0, which buys none."""
    return DiscreteLaplace(round_up(1 / epsilon)) if epsilon else None


def _least_threshold(within: Callable[[int], bool], start: int = 1) -> int:
    """The least threshold, from `start` on, that is within the budget, as all larger ones are."""
    low, high = start - 1, start
    while not within(high):
        low, high = high, 2 * high - start + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def _least_scale(within: Callable[[float], bool], low: float, high: float) -> float:
    """A scale within the budget, that of `high` being so, less than 1e-6 above one that is not."""
    if within(low):
        return low
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def _best_scale(delta_at: Callable[[float, int], float], threshold: int, least: float) -> float:
    """The scale with the least δ at a threshold.

    With the scale δ falls, as counts that move are hidden better, and rises again, as keys that are
    new are shown more often.
    """
    best = scipy.optimize.minimize_scalar(
        lambda log_scale: math.log(delta_at(math.exp(log_scale), threshold)),
        bounds=(math.log(least), math.log(1.5 * least)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return min((least, math.exp(best.x)), key=lambda scale: delta_at(scale, threshold))
