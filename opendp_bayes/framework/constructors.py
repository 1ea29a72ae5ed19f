"""Posterior to release: a constructor for each built-in mechanism."""

from typing import Literal

from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.accounting.profile import Accounting
from opendp_bayes.framework.boundary import descriptor_of
from opendp_bayes.framework.chaining import to_then
from opendp_bayes.framework.measurements import make_mechanism
from opendp_bayes.framework.spaces import PosteriorSpace
from opendp_bayes.mechanisms import (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    PermuteAndFlip,
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.neighbours import default_total


def make_laplace_parameters(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    noise: Literal["discrete", "floored"] = "discrete",
    total: Literal["remainder", "truncated", "bounded", "private"] | None = None,
) -> Measurement:
    """Release a posterior whose counts carry integer Laplace noise of `scale` records;
    `LaplaceParameters` says what `noise` and `total` mean.

    `total` is `"remainder"` under change-one neighbours and `"private"` under add/remove unless
    given. Discrete noise is drawn by OpenDP's own `make_laplace`. The map is `moved d_in / scale`
    with the number of noised counts that one record moves, which is exact.
    """
    space = descriptor_of(
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


def make_gaussian_parameters(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    total: Literal["private"] | None = None,
    delta: float = 0.0,
) -> Measurement:
    """Release a posterior whose counts carry discrete Gaussian noise of `scale` records, drawn by
    OpenDP's own `make_gaussian`; `GaussianParameters` says what `total` means.

    Under `zero_concentrated_divergence()` the map is `d_in^2 / scale^2` for records changed and
    half of that for records added or removed, which is exact. Under `approximate(max_divergence())`
    it uses `delta`, which must be given: the ε of the noise's own profile. `ValueError` under
    `max_divergence()`, where no Gaussian noise is private.
    """
    return make_mechanism(
        input_domain, input_metric, output_measure, GaussianParameters(scale, total), delta=delta
    )


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


then_laplace_parameters = to_then(make_laplace_parameters)
then_gaussian_parameters = to_then(make_gaussian_parameters)
then_knorm_parameters = to_then(make_knorm_parameters)
then_hellinger_exponential = to_then(make_hellinger_exponential)
then_permute_and_flip = to_then(make_permute_and_flip)
then_smooth_hellinger_exponential = to_then(make_smooth_hellinger_exponential)
