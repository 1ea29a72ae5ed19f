"""Draw for a measurement: with OpenDP's own samplers where the law is one of theirs, otherwise with
the mechanism's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance

from opendp_bayes.mathematics.simplex import candidate, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise, Flips, saturated
from opendp_bayes.mechanisms.protocol import Mechanism, drawn_by, is_lawful
from opendp_bayes.mechanisms.scores import candidate_distances
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted.boundary import ContractError, require_features

#: From counts, shape `(k,)`, and a number to so many draws, shape `(draws, k)`.
Drawer = Callable[[Integers, int], Integers]


#: Noise that OpenDP draws.
_OF_OPENDP = (DiscreteLaplace, DiscreteGaussian)


def drawer(setting: Setting) -> Drawer:
    """The sampler of a measurement."""
    mechanism, size, prior = setting.mechanism, setting.size, setting.prior_array
    law = setting.law if setting.is_accounted else None
    if isinstance(law, AdditiveNoise) and isinstance(law.noise, _OF_OPENDP):
        return _added(law)
    if isinstance(law, Flips) and size is not None:
        return _noisy_max(law.scale, size, prior)

    def draw(counts: Integers, draws: int) -> Integers:
        drawn = drawn_by(mechanism, counts, prior, draws)
        return _checked(drawn, not is_lawful(mechanism), draws, prior.size)

    return draw


def measured_sampler(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike
) -> Callable[[ArrayLike, ArrayLike, int], Integers]:
    """Return the sampler that a measurement of `mechanism` has, for `audit(..., sample=)`.

    Parameters
    ----------
    mechanism : a mechanism value.
    size : the public number of records, or None where it is private.
    prior : the prior concentration, shape `(k,)`.

    The result is called as `mechanism.sample` is, with counts, prior and the number of releases. It
    returns these, shape `(draws, k)`.

    Raises `ValueError`/`TypeError` for arguments that are not valid or do not fit the mechanism,
    and `ValueError` without the OpenDP features that a measurement needs.

    >>> from opendp_bayes import LaplaceParameters, audit, measured_sampler
    >>> mechanism, setting = LaplaceParameters(2.0), {"size": 10, "prior": [1.0, 1.0]}
    >>> sampler = measured_sampler(mechanism, **setting)
    >>> audit(mechanism, sample=sampler, draws=2000, **setting).passed
    True
    """
    require_features("measured_sampler")
    setting = Setting.of(mechanism, size, prior)
    draw = drawer(setting)

    def sample(counts: ArrayLike, prior: ArrayLike, draws: int) -> Integers:
        drawn = draw(np.asarray(counts, dtype=np.int64), draws)
        return setting.projected(drawn)

    return sample


def _added(law: AdditiveNoise) -> Drawer:
    """Noise on the counts by OpenDP's own measurements on integers, which are exact."""
    noised, scale = np.array(law.noised), law.noise.scale
    integers = vector_domain(atom_domain(T="i64"))
    add_noise: Any = (
        make_laplace(integers, l1_distance(T="i64"), scale)
        if isinstance(law.noise, DiscreteLaplace)
        else make_gaussian(integers, l2_distance(T=float), scale)
    )

    def draw(counts: Integers, draws: int) -> Integers:
        part = np.tile(counts[noised], draws)
        drawn = np.array(add_noise(part), dtype=np.int64).reshape(draws, -1)
        return law.completed(saturated(drawn), int(counts.sum()))

    return draw


def _noisy_max(scale: float, size: int, prior: Floats) -> Drawer:
    scores = vector_domain(
        atom_domain(T=float, nan=False), size=number_of_candidates(size, prior.size)
    )
    select: Any = make_noisy_max(scores, linf_distance(T=float), max_divergence(), scale)

    def draw(counts: Integers, draws: int) -> Integers:
        of_counts = -candidate_distances(counts, prior)
        chosen = [candidate(select(of_counts), size, prior.size) for _ in range(draws)]
        return np.array(chosen, dtype=np.int64).reshape(draws, prior.size)

    return draw


def _checked(drawn: Integers, as_counts: bool, draws: int, k: int) -> Integers:
    """Check draws: a mechanism from a plugin may return anything. Only draws before a projection
    may be negative; refusing these would tell what was drawn.
    """
    shape = (draws, k)
    valid = isinstance(drawn, np.ndarray) and drawn.shape == shape and drawn.dtype.kind in "iu"
    if not valid or (as_counts and np.any(drawn < 0)):
        raise ContractError(
            "the mechanism's sample must be an array of non-negative integers of shape (draws, k)."
        )
    return drawn
