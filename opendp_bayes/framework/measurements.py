"""Posterior to release: every mechanism as an OpenDP measurement that carries its privacy map."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.extras._utilities import to_then
from opendp.measurements import make_laplace, make_user_measurement, then_noisy_max
from opendp.measures import (
    approximate,
    max_divergence,
    new_privacy_profile,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.metrics import l1_distance
from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.accounting.exact import (
    Accounting,
    delta_from_bounds,
    feasible_loss,
    privacy_profile,
)
from opendp_bayes.framework.boundary import (
    PROBES,
    ContractError,
    checked_map,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.framework.scores import make_hellinger_scores, selected_counts
from opendp_bayes.framework.spaces import PosteriorSpace
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_distance
from opendp_bayes.mechanisms import (
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    Mechanism,
    PermuteAndFlip,
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.results.release import Release


def make_mechanism(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    mechanism: Mechanism,
    *,
    delta: float = 0.0,
    accounting: Accounting = "exact",
) -> Measurement:
    """Make any mechanism value a measurement on a posterior space; it returns a `Release`.

    Parameters
    ----------
    input_domain, input_metric : output of `make_dirichlet_multinomial` or `make_beta_binomial`.
    output_measure : `max_divergence()`, `zero_concentrated_divergence()`, `approximate(...)` of
        either, or `smoothed_max_divergence()`.
    mechanism : a frozen mechanism value, built in or from a plugin.
    delta : the δ that the privacy map uses under `approximate(max_divergence())`.
    accounting : `"exact"`, the mechanism's own loss where computing it takes at most a few seconds,
        or `"proven"`, its closed-form bound.

    The privacy map is `exact_loss` or `mechanism.proven_loss`, checked to be defined, non-negative
    and non-decreasing; under `smoothed_max_divergence()` it is the privacy profile, whose
    `delta(epsilon)` may be asked. The attribute `accounting` of the measurement says how its loss
    at distance 1 was obtained: "exact", "windowed" or "proven". The release states that loss; a
    Context restates it for its own unit. Raises `ValueError`/`TypeError` for pieces that do not
    fit.
    """
    require_features("make_mechanism")
    space: PosteriorSpace = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    space.check_metric(input_metric)
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism={mechanism!r}: must be a mechanism value, such as"
            " LaplaceParameters(scale=1.0)."
        )
    if not type(mechanism).__dataclass_params__.frozen:
        raise TypeError(
            f"mechanism={mechanism!r}: must be a frozen dataclass, so that the map and the sampler"
            " see the same parameters."
        )
    mechanism = replace(mechanism)  # a value of our own, out of the caller's reach
    as_choice(accounting, "accounting", get_args(Accounting))
    smoothed = output_measure == smoothed_max_divergence()
    measured = loss_in(max_divergence() if smoothed else output_measure)
    if not 0 <= delta < 1 or (delta and output_measure != approximate(max_divergence())):
        raise ValueError(
            f"delta={delta!r}: must be 0, or below 1 under approximate(max_divergence())."
        )
    prior = space.prior_array
    mechanism.check(size=space.size, prior=prior)
    draw = _drawer(mechanism, space)

    def loss(d_in: int) -> PrivacyLoss:
        def at(distance: int) -> PrivacyLoss:
            return feasible_loss(
                mechanism,
                size=space.size,
                prior=prior,
                d_in=distance,
                delta=delta,
                accounting=accounting,
            )

        # Where δ does not help it is not used, but what a map states must not fall.
        found = at(as_distance(d_in))
        return (
            replace(found, delta=max(at(d).delta for d in (*PROBES, d_in) if d <= d_in))
            if delta
            else found
        )

    privacy_map = checked_map(lambda d_in: measured(loss(d_in)), type(mechanism).__name__)
    unit_loss = loss(1)

    def function(concentration: Floats) -> Release:
        released = draw(space.counts(concentration))
        return Release(
            counts=tuple(int(count) for count in released),
            categories=space.categories,
            prior=space.prior,
            mechanism=mechanism,
            size=space.size,
            d_in=1,
            loss=unit_loss,
            measure=repr(output_measure),
        )

    def opendp_map(d_in: int) -> Any:
        values = privacy_map(d_in)
        if smoothed:
            return _curve(mechanism, space, d_in, loss(d_in), accounting)
        return values[0] if len(values) == 1 else values

    name = type(mechanism).__name__
    measurement = make_user_measurement(
        input_domain,
        input_metric,
        output_measure,
        guarded(function, f"{name}: sampling"),
        guarded_map(opendp_map, f"{name}: privacy map"),
    )
    measurement.accounting = unit_loss.method
    return measurement


def _curve(
    mechanism: Mechanism,
    space: PosteriorSpace,
    d_in: int,
    loss: PrivacyLoss,
    accounting: Accounting,
) -> Any:
    """The privacy profile at one distance, as OpenDP's measures take it."""
    profile = privacy_profile(mechanism, size=space.size, prior=space.prior_array, d_in=d_in)

    def delta(epsilon: float) -> float:
        if not epsilon >= 0:
            raise ValueError(f"epsilon={epsilon!r}: must be at least 0.")
        return (
            float(profile(epsilon)) if accounting == "exact" else delta_from_bounds(loss, epsilon)
        )

    return new_privacy_profile(
        guarded_map(delta, f"{type(mechanism).__name__}: privacy profile")
    ).curve


def make_laplace_parameters(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    noise: Literal["discrete", "floored"] = "discrete",
    total: Literal["remainder", "bounded", "private"] | None = None,
) -> Measurement:
    """Release a posterior whose counts carry integer Laplace noise of `scale` records;
    `LaplaceParameters` says what `noise` and `total` mean.

    `total` is `"remainder"` under change-one neighbours and `"private"` under add/remove unless
    given. Discrete noise is drawn by OpenDP's own `make_laplace`. The map is `moved d_in / scale`
    with the number of noised counts that one record moves, which is exact.
    """
    space: PosteriorSpace = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    return make_mechanism(
        input_domain,
        input_metric,
        output_measure,
        LaplaceParameters(scale, noise, total or default_total(space.size)),
    )


def make_knorm_parameters(
    input_domain: Domain, input_metric: Metric, output_measure: Measure, scale: float
) -> Measurement:
    """Release a posterior whose counts carry K-norm noise of `scale` records changed;
    `KNormParameters` says what it is.

    The map is `d_in / scale` for any number of categories, which is exact. Change-one neighbours
    only: the number of records is kept.
    """
    return make_mechanism(input_domain, input_metric, output_measure, KNormParameters(scale))


def make_hellinger_exponential(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    sensitivity: Literal["global", "local"] = "global",
    accounting: Accounting = "exact",
) -> Measurement:
    """Release a posterior with probability proportional to `exp(-H / scale)` (EHD), or `exp(-H /
    (scale LS(x)))` (EHDL).

    With `accounting="exact"` the map is the mechanism's own loss, where that is feasible
    (`make_mechanism`); otherwise it is `2 d_in GS / scale` plus the sampler's error for EHD, and
    infinite for EHDL. Change-one neighbours only.
    """
    return make_mechanism(
        input_domain,
        input_metric,
        output_measure,
        HellingerExponential(scale, sensitivity),
        accounting=accounting,
    )


def make_smooth_hellinger_exponential(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    gamma: float | None = None,
    beta: float | None = None,
    delta: float = 0.0,
    accounting: Accounting = "exact",
) -> Measurement:
    """Release a posterior with probability proportional to `exp(-H / (scale S(x)))` for the
    γ-smooth (γ = 1 unless given) or β-smooth S.

    With `accounting="exact"` the map is the mechanism's own loss, where that is feasible
    (`make_mechanism`); otherwise it is `d_in (1 + sqrt(1 + gamma^2)) / scale` plus the sampler's
    error, or the bound proved for β. Under `approximate(max_divergence())` it may use `delta`.
    Change-one neighbours only.
    """
    mechanism = SmoothHellingerExponential(scale, gamma, beta)
    return make_mechanism(
        input_domain, input_metric, output_measure, mechanism, delta=delta, accounting=accounting
    )


def make_permute_and_flip(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    accounting: Accounting = "exact",
) -> Measurement:
    """Release a posterior by permute-and-flip on the Hellinger score: EHD of the same scale and ε,
    with less error; see `PermuteAndFlip`.

    Drawn by OpenDP's own `make_noisy_max` on `make_hellinger_scores`. With `accounting="exact"` the
    map is the mechanism's own loss, where that is feasible (`make_mechanism`); otherwise it is `2
    d_in GS / scale` and the error of the scores under `max_divergence()`, and half the square of
    that under `zero_concentrated_divergence()`, where EHD costs a quarter as much. Change-one
    neighbours only.
    """
    return make_mechanism(
        input_domain, input_metric, output_measure, PermuteAndFlip(scale), accounting=accounting
    )


then_mechanism = to_then(make_mechanism)
then_laplace_parameters = to_then(make_laplace_parameters)
then_knorm_parameters = to_then(make_knorm_parameters)
then_hellinger_exponential = to_then(make_hellinger_exponential)
then_permute_and_flip = to_then(make_permute_and_flip)
then_smooth_hellinger_exponential = to_then(make_smooth_hellinger_exponential)


def default_total(size: int | None) -> Literal["remainder", "private"]:
    """The `total` of `LaplaceParameters` that suits a public (`int`) or private (`None`) number of
    records.
    """
    return "private" if size is None else "remainder"


def loss_in(output_measure: Measure) -> Callable[[PrivacyLoss], tuple[float, ...]]:
    """How a privacy loss is expressed in an OpenDP measure; `ValueError` for a measure that is not
    supported.
    """
    expressions: list[tuple[Measure, Callable[[PrivacyLoss], tuple[float, ...]]]] = [
        (max_divergence(), lambda loss: (loss.epsilon,)),
        (zero_concentrated_divergence(), lambda loss: (loss.rho,)),
        (approximate(max_divergence()), lambda loss: (loss.epsilon, loss.delta)),
        (approximate(zero_concentrated_divergence()), lambda loss: (loss.rho, 0.0)),
    ]
    for measure, expression in expressions:
        if output_measure == measure:
            return expression
    raise ValueError(
        f"output_measure={output_measure}: must be one of"
        f" {', '.join(repr(measure) for measure, _ in expressions)}."
    )


def _drawer(mechanism: Mechanism, space: PosteriorSpace) -> Callable[[Integers], Integers]:
    """One release from counts: by OpenDP's own Laplace or noisy max where the mechanism is that,
    otherwise by the mechanism's sampler.
    """
    if type(mechanism) is LaplaceParameters and mechanism.noise == "discrete":
        length = space.k - 1 if mechanism.total == "remainder" else space.k
        add_noise = make_laplace(
            vector_domain(atom_domain(T="i64"), size=length), l1_distance(T="i64"), mechanism.scale
        )

        def draw(counts: Integers) -> Integers:
            noised = np.array(add_noise(mechanism.noised_part(counts)), dtype=np.int64)
            return mechanism.assemble(noised, int(counts.sum()))

        return draw
    if type(mechanism) is PermuteAndFlip:
        scores = make_hellinger_scores(space.domain, space.metric)
        select = (
            scores
            >> then_noisy_max(max_divergence(), mechanism.scale)
            >> selected_counts(space.domain)
        )
        return lambda counts: np.array(select(space.concentration(counts)), dtype=np.int64)
    return lambda counts: _one_release(mechanism.sample(counts, space.prior_array), space.k)


def _one_release(samples: Integers, k: int) -> Integers:
    """The only row of a sample, checked: a mechanism from a plugin may return anything."""
    if not (
        isinstance(samples, np.ndarray)
        and samples.shape == (1, k)
        and samples.dtype.kind in "iu"
        and np.all(samples >= 0)
    ):
        raise ContractError(
            "the mechanism's sample must be an array of non-negative integers of shape (size, k)."
        )
    return samples[0]
