"""Posterior to release: any mechanism as an OpenDP measurement that carries its privacy map."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args

from opendp.measurements import make_user_measurement
from opendp.measures import (
    approximate,
    max_divergence,
    new_privacy_profile,
    smoothed_max_divergence,
)
from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.accounting.profile import (
    Accounting,
    delta_at,
    delta_from_bounds,
    feasible_loss,
)
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, as_choice, as_distance
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.data import ReleasedData
from opendp_bayes.release_format.promise import Promise
from opendp_bayes.trusted.boundary import (
    PROBES,
    ContractError,
    checked_map,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.trusted.budget import loss_in, name_of
from opendp_bayes.trusted.drawing import Drawer, drawer
from opendp_bayes.trusted.interrupts import interruptible
from opendp_bayes.trusted.pacing import paced
from opendp_bayes.trusted.spaces import PosteriorSpace


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
    space = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    space.check_metric(input_metric)
    _check_frozen(mechanism)
    setting = Setting.of(mechanism, space.size, space.prior)
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
    measured = _measured(output_measure, delta, accounting)
    draw = paced(drawer(setting), setting)
    loss = _losses(setting, delta, accounting)
    name = type(setting.mechanism).__name__
    smoothed = output_measure == smoothed_max_divergence()
    with interruptible():
        privacy_map = checked_map(lambda d_in: measured(loss(d_in)), name)
        promise = Promise(setting.size, 1, loss(1), name_of(output_measure))
    if not smoothed:
        _check_has_loss(name, promise.loss, output_measure)

    def opendp_map(d_in: int) -> Any:
        values = privacy_map(d_in)
        if smoothed:
            return _curve(setting, d_in, loss(d_in), accounting)
        return values[0] if len(values) == 1 else values

    measurement = make_user_measurement(
        space.domain,
        space.metric,
        output_measure,
        guarded(_releasing(draw, setting, space, promise), f"{name}: sampling"),
        guarded_map(opendp_map, f"{name}: privacy map"),
    )
    measurement.accounting = promise.loss.method
    return measurement


def _measured(
    output_measure: Measure, delta: float, accounting: Accounting
) -> Callable[[PrivacyLoss], tuple[float, ...]]:
    """Choose the function that expresses a loss in a measure, after checking that the measure goes
    with this δ. Under a smoothed measure, it expresses the pure ε.
    """
    as_choice(accounting, "accounting", get_args(Accounting))
    smoothed = output_measure == smoothed_max_divergence()
    measured = loss_in(max_divergence() if smoothed else output_measure)
    if not 0 <= delta < 1 or (delta and output_measure != approximate(max_divergence())):
        raise ValueError(
            f"delta={told(delta)}: must be 0, or below 1 under approximate(max_divergence())."
        )
    return measured


def _releasing(
    draw: Drawer, setting: Setting, space: PosteriorSpace, promise: Promise
) -> Callable[[Floats], ReleasedData]:
    """Make the function from a posterior to a release, which holds copies that its owner may do
    anything to.
    """

    def function(concentration: Floats) -> ReleasedData:
        _check_informative(setting)
        drawn = draw(space.counts(concentration), 1)[0]
        return ReleasedData(
            drawn=tuple(drawn.tolist()),
            categories=space.labels,
            prior=space.prior,
            mechanism=deepcopy(setting.mechanism),
            promise=deepcopy(promise),
            axes=space.axes,
        )

    return function


def _check_informative(setting: Setting) -> None:
    """Raise `ContractError` where nearly every release would ignore the data, which is public."""
    try:
        setting.check_informative()
    except ValueError as error:
        raise ContractError(str(error)) from None


def _check_has_loss(name: str, loss: PrivacyLoss, output_measure: Measure) -> None:
    """Noise with tails like a Gaussian's has ρ, and no ε without δ."""
    if math.isinf(loss_in(output_measure)(loss)[0]) and math.isfinite(loss.rho):
        raise ValueError(
            f"output_measure={output_measure}: {name} has no ε without δ. Use"
            " zero_concentrated_divergence(), or approximate(max_divergence()) with delta=; or"
            " another mechanism, such as LaplaceParameters."
        )


def _check_frozen(mechanism: Mechanism) -> None:
    """Raise `TypeError` for a mechanism whose parameters anybody could change."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism={told(mechanism)}: must be a mechanism value, such as"
            " LaplaceParameters(scale=1.0)."
        )
    if not type(mechanism).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(
            f"mechanism={told(mechanism)}: must be a frozen dataclass, so that the map and the"
            " sampler"
            " see the same parameters."
        )


def _losses(setting: Setting, delta: float, accounting: Accounting) -> Callable[[int], PrivacyLoss]:
    """The privacy loss at every distance."""

    @lru_cache(maxsize=64)  # every distance asks for the smaller ones again
    def at(distance: int) -> PrivacyLoss:
        return feasible_loss(setting, d_in=distance, delta=delta, accounting=accounting)

    def loss(d_in: int) -> PrivacyLoss:
        # Where δ does not help it is not used, but what a map states must not fall.
        found = at(as_distance(d_in))
        if not delta:
            return replace(found)  # a value that nobody can change for others
        nearer = [at(d) for d in (*PROBES, d_in) if d <= d_in]
        # Nor must an ε that a search has found, which is off by its tolerance.
        epsilon = max(loss.epsilon for loss in nearer)
        return replace(found, epsilon=epsilon, delta=max(loss.delta for loss in nearer))

    return loss


def _curve(setting: Setting, d_in: int, loss: PrivacyLoss, accounting: Accounting) -> Any:
    """The privacy profile at one distance, as OpenDP's measures take it."""

    def delta(epsilon: float) -> float:
        if not epsilon >= 0:
            raise ValueError(f"epsilon={told(epsilon)}: must be at least 0.")
        return (
            delta_at(setting, as_distance(d_in), float(epsilon))
            if accounting == "exact"
            else delta_from_bounds(loss, epsilon)
        )

    return new_privacy_profile(
        guarded_map(delta, f"{type(setting.mechanism).__name__}: privacy profile")
    ).curve
