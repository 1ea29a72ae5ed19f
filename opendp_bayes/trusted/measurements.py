"""Posterior to release: any mechanism as an OpenDP measurement that carries its privacy map."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from time import monotonic_ns, sleep
from typing import Any, SupportsIndex, get_args

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max, make_user_measurement
from opendp.measures import max_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.accounting.losses import Accounting, loss_of
from opendp_bayes.accounting.pairs import LARGEST_GROUP
from opendp_bayes.mathematics.simplex import candidate, number_of_candidates
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_delta
from opendp_bayes.mechanisms.exponential.posterior_exponential import candidate_distances
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise, Flips, saturated
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism, drawn_by, is_lawful
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.privacy_guarantee import P, PrivacyGuarantee
from opendp_bayes.trusted.boundary import (
    PROBES,
    ContractError,
    checked_map,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.budget import WITH_DELTA, loss_in, name_of
from opendp_bayes.trusted.spaces import PosteriorSpace

# --- Draws

#: From counts, shape `(k,)`, and a number to so many draws, shape `(draws, k)`.
Drawer = Callable[[Integers, int], Integers]


def drawer(setting: Setting) -> Drawer:
    """The sampler of a measurement.

    Parameters
    ----------
    setting : Setting
        The mechanism, the public number of records and the prior.
    """
    mechanism, size, prior = setting.mechanism, setting.size, setting.prior_array
    law = setting.law if setting.is_accounted else None
    if isinstance(law, AdditiveNoise) and isinstance(
        law.noise, (DiscreteLaplace, DiscreteGaussian)
    ):
        return _added(law)
    if isinstance(law, Flips) and size is not None:
        return _noisy_max(law.scale, size, prior)

    def draw(counts: Integers, draws: int) -> Integers:
        noisy_counts = drawn_by(mechanism, counts, prior, draws)
        return _checked(noisy_counts, not is_lawful(mechanism), draws, prior.size)

    return draw


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
        tiled = np.tile(counts[noised], draws)
        noisy_counts = np.array(add_noise(tiled), dtype=np.int64).reshape(draws, -1)
        return law.completed(saturated(noisy_counts), int(counts.sum()))

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


def _checked(noisy_counts: Integers, as_counts: bool, draws: int, k: int) -> Integers:
    """Check draws: a mechanism from a plugin may return anything. Only draws before a projection
    may be negative; refusing these would tell what was drawn.
    """
    shape = (draws, k)
    valid = (
        isinstance(noisy_counts, np.ndarray)
        and noisy_counts.shape == shape
        and noisy_counts.dtype.kind in "iu"
    )
    if not valid or (as_counts and np.any(noisy_counts < 0)):
        raise ContractError(
            "what the mechanism draws must be an array of machine integers, of shape (draws, k),"
            " and of a `sample` none may be negative."
        )
    return noisy_counts


# --- The time of a release

#: The least time of a draw in nanoseconds, 1/4 s.
LEAST = 250_000_000


def paced(draw: Drawer, setting: Setting) -> Drawer:
    """The sampler `draw` of a measurement, which returns when 1/4 s is over, or that doubled as
    often as a draw takes.

    Noise on the counts of this package is drawn as it is: its time does not depend on them.
    """
    if setting.adds_noise and setting.is_accounted:
        return draw

    def drawn_in_time(counts: Integers, draws: int) -> Integers:
        start = monotonic_ns()
        noisy_counts = draw(counts, draws)
        end = LEAST
        while end < monotonic_ns() - start:
            end *= 2
        sleep(max(start + end - monotonic_ns(), 0) / 1e9)
        return noisy_counts

    return drawn_in_time


# --- Measurements


def make_measurement(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    mechanism: Mechanism,
    *,
    delta: float = 0.0,
    accounting: Accounting = "exact",
) -> Measurement:
    """Make any mechanism value a measurement on a posterior space, which draws `ReleasedData`; the
    arguments are those of `make_mechanism`.
    """
    require_features("make_mechanism")
    space = descriptor_of(input_domain, PosteriorSpace, "make_dirichlet_multinomial")
    space.check_metric(input_metric)
    setting = Setting.of(mechanism, space.size, space.prior)
    if not type(setting.mechanism).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(
            f"mechanism={told(setting.mechanism)}: must be a frozen dataclass, so that the map and"
            " the sampler see the same parameters."
        )
    setting.mechanism.check(size=space.size, prior=space.prior_array)
    return measurement_of(setting, space, output_measure, delta=delta, accounting=accounting)


def measurement_of(
    setting: Setting,
    space: PosteriorSpace,
    output_measure: Measure,
    *,
    delta: float,
    accounting: Accounting = "exact",
) -> Measurement:
    """Make a setting a measurement on its space, as `make_mechanism` says."""
    as_choice(accounting, "accounting", get_args(Accounting))
    measured = loss_in(output_measure)
    if as_delta(delta) and name_of(output_measure) != WITH_DELTA:
        raise ValueError(
            f"delta={told(delta)}: must be 0, or below 1 under approximate(max_divergence())."
        )
    draw = paced(drawer(setting), setting)
    loss = _losses(setting, delta, accounting)
    name = type(setting.mechanism).__name__
    privacy_map = checked_map(lambda d_in: measured(loss(d_in)), name)
    guarantee = PrivacyGuarantee(setting.size, 1, loss(1), name_of(output_measure))
    if math.isinf(measured(guarantee.loss)[0]) and math.isfinite(guarantee.loss.rho):
        raise ValueError(
            f"output_measure={output_measure}: {name} has no ε without δ. Use"
            " zero_concentrated_divergence(), or approximate(max_divergence()) with delta=; or"
            " another mechanism, such as LaplaceParameters."
        )

    def opendp_map(d_in: SupportsIndex) -> Any:
        values = privacy_map(d_in)
        return values[0] if len(values) == 1 else values

    measurement = make_user_measurement(
        space.domain,
        space.metric,
        output_measure,
        guarded(_releasing(draw, setting, space, guarantee), f"{name}: sampling"),
        guarded_map(opendp_map, f"{name}: privacy map"),
    )
    measurement.accounting = guarantee.loss.method
    return measurement


def _releasing(
    draw: Drawer, setting: Setting, space: PosteriorSpace, guarantee: PrivacyGuarantee
) -> Callable[[Floats], ReleasedData]:
    """Make the function from a posterior to a release, which holds copies that its owner may do
    anything to.
    """

    def function(concentration: Floats) -> ReleasedData:
        try:
            setting.check_informative()
        except ValueError as error:  # nearly every release would ignore the data, which is public
            raise ContractError(str(error)) from None
        noisy_counts = draw(space.counts(concentration), 1)[0]
        return ReleasedData(
            noisy_counts=tuple(noisy_counts.tolist()),
            categories=space.labels,
            prior=space.prior,
            mechanism=deepcopy(setting.mechanism),
            guarantee=deepcopy(guarantee),
            axes=space.axes,
            nulls=space.nulls,
            unknown=space.unknown,
        )

    return function


def _losses(
    setting: Setting, delta: float, accounting: Accounting
) -> Callable[[SupportsIndex], PrivacyLoss]:
    """The privacy loss at every distance."""

    @lru_cache(maxsize=64)  # every distance asks for the smaller ones again
    def at(distance: Distance) -> PrivacyLoss:
        return loss_of(setting, distance, delta=delta, accounting=accounting)

    def loss(d_in: SupportsIndex) -> PrivacyLoss:
        # Where δ does not help it is not used, but what a map states must not fall.
        distance = Distance.of(d_in)
        loss_at_distance = at(distance)
        if not delta:
            return replace(loss_at_distance)  # a value that nobody can change for others
        # Nor must an ε that a search has found, which is off by its tolerance: of few records it is
        # of other pairs at each distance.
        others = map(Distance.of, {*range(LARGEST_GROUP), *PROBES})
        nearer = [loss_at_distance, *(at(probe) for probe in others if probe <= distance)]
        epsilon = max(loss.epsilon for loss in nearer)
        return replace(loss_at_distance, epsilon=epsilon, delta=max(loss.delta for loss in nearer))

    return loss


def restated(release: P, loss: PrivacyLoss, *, distance: Distance, truncated: bool, kept: str) -> P:
    """The draw of a measurement, which promises for one record, with the promise to one unit.

    `loss` is that of the unit at its `distance`. `truncated` says whether its rows were limited,
    and `kept` by which rule.
    """
    promised = replace(release.guarantee, loss=loss, d_in=distance, truncated=truncated, kept=kept)
    return replace(release, guarantee=promised)
