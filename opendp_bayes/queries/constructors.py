"""Posterior to release: a constructor for each built-in mechanism."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from opendp.mod import Domain, Measure, Measurement, Metric

from opendp_bayes.accounting.losses import Accounting
from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.mechanisms import (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    Mechanism,
    PermuteAndFlip,
    SmoothHellingerExponential,
)
from opendp_bayes.mechanisms.neighbours import default_total
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries.base import releasing, split_of
from opendp_bayes.queries.mechanism_choice import check_for_groups
from opendp_bayes.trusted.boundary import descriptor_of, require_features
from opendp_bayes.trusted.measurements import drawer, make_measurement
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.trusted.spaces import PosteriorSpace, groups_and_labels


def make_mechanism(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    mechanism: Mechanism,
    *,
    delta: float = 0.0,
    accounting: Accounting = "exact",
) -> Measurement:
    """Make any mechanism value a measurement on a posterior space; it returns a `Release`, or of
    groups a `GroupedRelease`.

    The privacy map is `exact_loss` or `mechanism.proven_loss`, checked to be defined, non-negative
    and non-decreasing; all of the profile is `privacy_profile`. The attribute `accounting` of the
    measurement says how its loss at distance 1 was obtained: "exact", "windowed" or "proven". The
    release states that loss; a Context restates it for its own unit. It is built at every scale, so
    that OpenDP's `binary_search_chain` finds one; a release that would ignore the data fails, and
    says so. Unless it is noise on the counts, a release takes at least 1/4 s (`docs/limits.md`,
    "Time").

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        Output of `make_dirichlet_multinomial`.
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    mechanism : Mechanism
        A frozen mechanism value, built in or from a plugin.
    delta : float, default 0.0
        The δ that the privacy map uses under `approximate(max_divergence())`.
    accounting : {"exact", "proven"}, default "exact"
        `"exact"`, the mechanism's own loss where computing it takes at most a few seconds, or
        `"proven"`, its closed-form bound.

    Raises
    ------
    ValueError, TypeError
        For pieces that do not fit.
    """
    measurement = make_measurement(
        input_domain, input_metric, output_measure, mechanism, delta=delta, accounting=accounting
    )
    space = descriptor_of(input_domain, PosteriorSpace, "make_dirichlet_multinomial")
    if not groups_and_labels(space.categories)[0]:
        return releasing(measurement)
    if space.size is None:
        check_for_groups(mechanism)
    return releasing(measurement, split_of(space))


def make_laplace_parameters(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    noise: Literal["discrete", "floored"] = "discrete",
    total: Literal["remainder", "truncated", "bounded", "private"] | None = None,
) -> Measurement:
    """Release a posterior whose counts carry independent integer Laplace noise
    (`LaplaceParameters`).

    The map is `moved d_in / scale` under `max_divergence()`, with the number of noised counts that
    one record moves, which is exact.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`.
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    scale : float
        Positive number, in records.
    noise : {"discrete", "floored"}, default "discrete"
        `"discrete"` (two-sided geometric, drawn by OpenDP's own `make_laplace`) or `"floored"`, the
        papers' `floor(Laplace(scale))`.
    total : {"remainder", "truncated", "bounded", "private"}, optional
        Treatment of the number of records. `"remainder"`: the last count is not noised and takes
        the records that the others leave. `"truncated"`: likewise, and each count keeps at most
        what those before it leave. `"bounded"`: all counts are noised and clamped to [0, n].
        `"private"`: all counts are noised and clamped to be non-negative. Unless given,
        `"remainder"` where the number of records is public and `"private"` where it is not.

    Raises
    ------
    ValueError, TypeError
        For a scale, option, space or measure that does not fit, and where `total` needs a public
        number of records and it is private.
    """
    space = descriptor_of(input_domain, PosteriorSpace, "make_dirichlet_multinomial")
    return make_mechanism(
        input_domain,
        input_metric,
        output_measure,
        LaplaceParameters(scale, noise, total or default_total(space.size)),
    )


def make_knorm_parameters(
    input_domain: Domain, input_metric: Metric, output_measure: Measure, scale: float
) -> Measurement:
    """Release a posterior whose counts carry K-norm noise, which keeps the number of records
    (`KNormParameters`).

    The map is `d_in / scale` under `max_divergence()`, for any number of categories, which is
    exact.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records (change-one neighbours).
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    scale : float
        Positive number, in records changed.

    Raises
    ------
    ValueError, TypeError
        For a scale, space or measure that does not fit, and where the number of records is private.
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
    """Release a posterior whose counts carry discrete Gaussian noise, drawn by OpenDP's own
    `make_gaussian` (`GaussianParameters`).

    Under `zero_concentrated_divergence()` the map is `d_in^2 / scale^2` for records changed and
    half of that for records added or removed, which is exact. Under `approximate(max_divergence())`
    it is the ε of the noise's own profile at `delta`.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`.
    output_measure : Measure
        `zero_concentrated_divergence()`, or `approximate(...)` of it or of `max_divergence()`.
    scale : float
        Positive number, in records: the standard deviation, except for scales well below 1.
    total : {"private"}, optional
        None releases the nearest counts that sum to a public number of records, and clamps counts
        to be non-negative where the number is private. `"private"` clamps them in either case.
    delta : float, default 0.0
        The δ that the privacy map uses, greater than 0 and below 1; required under
        `approximate(max_divergence())`, 0 elsewhere.

    Raises
    ------
    ValueError, TypeError
        For a scale, option, space or measure that does not fit, and under `max_divergence()`, where
        no Gaussian noise is private.
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
    (scale LS(x)))` (EHDL); H is the Hellinger distance to the true posterior.

    The proven bound is `2 d_in GS / scale` plus the sampler's error for EHD, and infinite for EHDL;
    `d_in` counts records changed.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records (change-one neighbours).
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    scale : float
        Positive number by which H is divided; without unit.
    sensitivity : {"global", "local"}, default "global"
        `"global"` (EHD) or `"local"` (EHDL), where H is divided by the local sensitivity too.
    accounting : {"exact", "proven"}, default "exact"
        `"exact"`, the mechanism's own loss where computing it takes at most a few seconds,
        otherwise the proven bound; or `"proven"`, always the proven bound.

    Raises
    ------
    ValueError, TypeError
        For a scale, option, space or measure that does not fit, and where the number of records is
        private.
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
    """Release a posterior with probability proportional to `exp(-H / (scale S(x)))` for a smooth
    sensitivity S; H is the Hellinger distance to the true posterior.

    The proven bound is `d_in (1 + sqrt(1 + gamma^2)) / scale` plus the sampler's error, or the
    bound proved for β; `d_in` counts records changed.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records (change-one neighbours).
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    scale : float
        Positive number by which H is divided; without unit.
    gamma : float, optional
        Positive number that makes S γ-smooth; 1 unless `beta` is given.
    beta : float, optional
        Positive number that makes S β-smooth; at most one of the two is given.
    delta : float, default 0.0
        The δ that the privacy map uses, at least 0 and below 1; 0 except under
        `approximate(max_divergence())`.
    accounting : {"exact", "proven"}, default "exact"
        `"exact"`, the mechanism's own loss where computing it takes at most a few seconds,
        otherwise the proven bound; or `"proven"`, always the proven bound.

    Raises
    ------
    ValueError, TypeError
        For a scale, option, space or measure that does not fit, and where the number of records is
        private.
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
    """Release a posterior by permute-and-flip on the Hellinger score: the ε of EHD at the same
    scale, with less error (`PermuteAndFlip`).

    Drawn by OpenDP's own `make_noisy_max` on the scores of all candidates. The proven bound is `2
    d_in GS / scale` and the error of the scores under `max_divergence()`. Under
    `zero_concentrated_divergence()` it is half the square of that, where EHD costs a quarter as
    much.

    Parameters
    ----------
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records (change-one neighbours).
    output_measure : Measure
        `max_divergence()`, `zero_concentrated_divergence()`, or `approximate(...)` of either.
    scale : float
        Positive number by which the Hellinger distance is divided; without unit.
    accounting : {"exact", "proven"}, default "exact"
        `"exact"`, the mechanism's own loss where computing it takes at most a few seconds,
        otherwise the proven bound; or `"proven"`, always the proven bound.

    Raises
    ------
    ValueError, TypeError
        For a scale, space or measure that does not fit, where the number of records is private, and
        where there are too many candidates to enumerate.
    """
    return make_mechanism(
        input_domain, input_metric, output_measure, PermuteAndFlip(scale), accounting=accounting
    )


def measured_sampler(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike
) -> Callable[[ArrayLike, ArrayLike, int], Integers]:
    """Return the sampler that a measurement of `mechanism` has, for `audit(..., sample=)`.

    The result is called as `mechanism.sample` is, with counts, prior and the number of releases. It
    returns these, shape `(draws, k)`.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    size : int or None
        The public number of records, or None where it is private.
    prior : array_like
        The prior concentration, shape `(k,)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or do not fit the mechanism.
    ValueError
        Without the OpenDP features that a measurement needs.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> from opendp_bayes.measurements import measured_sampler
    >>> from opendp_bayes_research import audit
    >>> mechanism, setting = LaplaceParameters(2.0), {"size": 10, "prior": [1.0, 1.0]}
    >>> sampler = measured_sampler(mechanism, **setting)
    >>> audit(mechanism, sample=sampler, draws=2000, **setting).passed
    True
    """
    require_features("measured_sampler")
    setting = Setting.of(mechanism, size, prior)
    draw = drawer(setting)

    def sample(counts: ArrayLike, prior: ArrayLike, draws: int) -> Integers:
        noisy_counts = draw(np.asarray(counts, dtype=np.int64), draws)
        return setting.projected(noisy_counts)

    return sample


then_laplace_parameters = to_then(make_laplace_parameters)
then_gaussian_parameters = to_then(make_gaussian_parameters)
then_knorm_parameters = to_then(make_knorm_parameters)
then_hellinger_exponential = to_then(make_hellinger_exponential)
then_permute_and_flip = to_then(make_permute_and_flip)
then_smooth_hellinger_exponential = to_then(make_smooth_hellinger_exponential)
then_mechanism = to_then(make_mechanism)
