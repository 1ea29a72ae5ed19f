"""The mechanisms as OpenDP measurements, under OpenDP's own privacy measures or under a measure of
smoothed differential privacy.

The two never convert into each other: a smoothed δ is an average over databases, which says nothing
about yours if it is not what Π describes.
"""

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
from numpy.typing import ArrayLike
from opendp.core import new_function
from opendp.measurements import make_user_measurement
from opendp.measures import approximate, max_divergence, user_divergence
from opendp.mod import Domain, ExtrinsicDivergence, Measure, Measurement, Metric

from opendp_bayes import Release
from opendp_bayes.extend import as_distance, as_size
from opendp_bayes.extend.framework import (
    PosteriorSpace,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
    to_then,
)
from opendp_bayes.measurements import make_mechanism
from opendp_bayes.trusted.budget import WITH_DELTA, name_of
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Replacement
from opendp_bayes_smoothed.kernels import exact_sum
from opendp_bayes_smoothed.losses import ANY_DELTA, SmoothedDP, SmoothedLoss, loss_of
from opendp_bayes_smoothed.mechanisms import NoisySamplingHistogram, SamplingHistogram
from opendp_bayes_smoothed.release import SmoothedRelease


def smoothed(distributions: ArrayLike, *, size: int) -> Measure:
    """Make the privacy measure of smoothed differential privacy for `size` independent records,
    each from some distribution in Π.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: a row of category probabilities for each
        distribution, in the order of the categories.
    size : the number of records, at least 1.

    Sets with the same convex hull give equal measures (Proposition 7). Not OpenDP's
    `smoothed_max_divergence`, which is (ε, δ)-differential privacy for every ε.

    Raises `ValueError`/`TypeError` for arguments that are not valid.
    """
    require_features("smoothed")
    guarantee = SmoothedDP(
        as_size(size), tuple(tuple(row) for row in vertices(distributions).tolist())
    )
    return user_divergence(guarantee.identifier, guarantee)


def make_sampling_histogram(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    rate: float,
    *,
    replacement: Replacement = "without",
) -> Measurement:
    """Release the histogram of `T = ceil(rate n)` records drawn at random from the data (Algorithm
    2, Appendix F).

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_dirichlet_multinomial` or
        `make_beta_binomial`, with a public number of records.
    output_measure : `approximate(max_divergence())`, whose map is `(0, d_in T / n)` without
        replacement and `(0, 1 - (1 - d_in / n)^T)` with it; or `smoothed(Π, size=n)`, whose map is
        a `SmoothedLoss`, and whose releases are a `SmoothedRelease`.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Raises `ValueError`/`TypeError` for a rate or space that does not fit, and for a measure of
    other records or categories. Raises `ValueError` under a measure without δ, where no finite loss
    exists.
    """
    mechanism = SamplingHistogram(rate=rate, replacement=replacement)
    _space(input_domain, mechanism)
    if isinstance(output_measure, ExtrinsicDivergence):
        return _smoothed_measurement(input_domain, input_metric, output_measure, mechanism)
    if name_of(output_measure) != WITH_DELTA:
        raise ValueError(
            f"output_measure={output_measure}: sampling alone has no finite loss without a δ (a"
            " record that was drawn may show); use approximate(max_divergence()),"
            " smoothed(distributions, size=...), or make_noisy_sampling_histogram."
        )
    return make_mechanism(input_domain, input_metric, output_measure, mechanism, delta=ANY_DELTA)


def make_noisy_sampling_histogram(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    rate: float = 1.0,
) -> Measurement:
    """Release the histogram of `T = ceil(rate n)` records drawn without replacement, with noise of
    `scale` records on every count (Algorithm 4).

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_dirichlet_multinomial` or
        `make_beta_binomial`, with a public number of records.
    output_measure : `max_divergence()`, whose map is `d_in ln(1 + (T/n) (e^ε₀ - 1))`, with ε₀ the
        loss of the noise; another measure of OpenDP's, whose map follows from that; or `smoothed(Π,
        size=n)`, whose map is a `SmoothedLoss`, and whose releases are a `SmoothedRelease`.
    scale : positive number, in records.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.

    Under `smoothed(Π, size=n)` the loss is that of the noised histogram itself where the databases
    and samples are few enough to compute it: `n T^3` up to 10^9 for two categories. Otherwise it
    is, for every database, the smaller of the losses of the sampling and of the noise; it is 0 from
    the ε of the noise on.

    Raises `ValueError`/`TypeError` for a scale, rate, space or measure that does not fit.
    """
    mechanism = NoisySamplingHistogram(scale, rate)
    _space(input_domain, mechanism)
    if isinstance(output_measure, ExtrinsicDivergence):
        return _smoothed_measurement(input_domain, input_metric, output_measure, mechanism)
    return make_mechanism(input_domain, input_metric, output_measure, mechanism)


def make_sampling_average(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    rate: float,
    *,
    values: Sequence[float],
) -> Measurement:
    """Release the average of `T = ceil(rate n)` values drawn without replacement (Algorithm 3), as
    the float nearest to it.

    Parameters
    ----------
    input_domain, input_metric : the output space of `make_dirichlet_multinomial` or
        `make_beta_binomial`, with a public number of records.
    output_measure : `approximate(max_divergence())`, whose map is `(0, d_in T / n)`; or
        `smoothed(Π, size=n)`, whose map is a `SmoothedLoss`.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    values : a finite number for each category, in their order.

    It is a post-processing of `make_sampling_histogram`, whose maps it has. Under `smoothed(Π,
    size=n)` the loss is that of the average itself where the databases and samples are few enough
    to compute it. For values from a continuum nothing better than sampling's holds, under either
    kind of measure (Theorem 4).

    Raises `ValueError`/`TypeError` for a rate, space, measure or values that do not fit.
    """
    mechanism = SamplingHistogram(rate=rate)
    space = _space(input_domain, mechanism)
    numbers = np.asarray(values)
    if (
        numbers.shape != (space.k,)
        or numbers.dtype.kind not in "fiu"
        or not np.all(np.isfinite(numbers))
    ):
        raise ValueError(
            f"values={values!r}: must be {space.k} finite numbers, one for each category."
        )
    exact = tuple(numbers.astype(np.float64).tolist())
    if isinstance(output_measure, ExtrinsicDivergence):
        measurement = _smoothed_measurement(
            input_domain, input_metric, output_measure, mechanism, exact
        )
    else:
        measurement = make_sampling_histogram(input_domain, input_metric, output_measure, rate)

    def average(release: Release | SmoothedRelease) -> float:
        return float(exact_sum(exact, release.counts) / sum(release.counts))

    return measurement >> new_function(guarded(average, "SamplingAverage: the average"), TO="f64")


then_sampling_histogram = to_then(make_sampling_histogram)
then_noisy_sampling_histogram = to_then(make_noisy_sampling_histogram)
then_sampling_average = to_then(make_sampling_average)


def _space(
    input_domain: Domain, mechanism: SamplingHistogram | NoisySamplingHistogram
) -> PosteriorSpace:
    space = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    mechanism.check(size=space.size, prior=space.prior_array)
    return space


def _smoothed_measurement(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    mechanism: SamplingHistogram | NoisySamplingHistogram,
    values: tuple[float, ...] = (),
) -> Measurement:
    """Make the measurement of the mechanism under a smoothed measure, which releases a
    `SmoothedRelease`.
    """
    space = _space(input_domain, mechanism)
    guarantee = deepcopy(output_measure.descriptor)  # the measure hands its own to anyone
    own = isinstance(guarantee, SmoothedDP)
    if not (own and output_measure == user_divergence(guarantee.identifier, guarantee)):
        raise ValueError(
            f"output_measure={output_measure}: must be a measure of OpenDP or made by"
            " smoothed(distributions, size=...)."
        )
    if guarantee.size != space.size or len(guarantee.vertices[0]) != space.k:
        raise ValueError(
            f"output_measure={output_measure}: is for {guarantee.size} records and"
            f" {len(guarantee.vertices[0])} categories; the input has {space.size} and {space.k}."
        )
    # Sampling alone has no loss without a δ; a mechanism that has one states that.
    delta = ANY_DELTA if isinstance(mechanism, SamplingHistogram) else 0.0
    inner = make_mechanism(
        input_domain, input_metric, approximate(max_divergence()), mechanism, delta=delta
    )

    def smoothed_map(d_in: int) -> SmoothedLoss:
        return loss_of(mechanism, deepcopy(guarantee), values=values, d_in=as_distance(d_in))

    name = type(mechanism).__name__
    return make_user_measurement(
        input_domain,
        input_metric,
        output_measure,
        guarded(lambda arg: SmoothedRelease(inner(arg), deepcopy(guarantee)), f"{name}: sampling"),
        guarded_map(smoothed_map, f"{name}: smoothed privacy map"),
    )
