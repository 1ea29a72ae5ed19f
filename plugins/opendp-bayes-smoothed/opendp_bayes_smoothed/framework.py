"""The mechanisms as OpenDP measurements, under OpenDP's own privacy measures or under a measure of
smoothed differential privacy.

The two never convert into each other: a smoothed δ is an average over databases, which says nothing
about yours if it is not what Π describes.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from opendp.core import new_function
from opendp.measurements import make_user_measurement
from opendp.measures import approximate, max_divergence, user_divergence
from opendp.mod import Domain, ExtrinsicDivergence, Measure, Measurement, Metric

from opendp_bayes import Release, m
from opendp_bayes.extend import as_distance, as_size
from opendp_bayes.extend.framework import (
    PosteriorSpace,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
    to_then,
)
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Replacement
from opendp_bayes_smoothed.losses import SmoothedDP, SmoothedLoss
from opendp_bayes_smoothed.mechanisms import NoisySamplingHistogram, SamplingHistogram

#: The map states the δ that a mechanism has, whatever it is.
_ANY_DELTA = math.nextafter(1.0, 0.0)


def smoothed(distributions: ArrayLike, *, size: int) -> Measure:
    """Make the privacy measure of smoothed differential privacy for `size` independent records,
    each from some distribution in Π.

    Parameters
    ----------
    distributions : array_like of float
        The set Π, shape `(l, m)`: a row of category probabilities for each distribution, in the
        order of the categories.
    size : int
        The number of records, at least 1.

    Returns
    -------
    Measure
        Equal for sets with the same vertices (Proposition 7). Not OpenDP's
        `smoothed_max_divergence`, which is (ε, δ)-differential privacy for every ε.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.
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
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records.
    output_measure : Measure
        `approximate(max_divergence())`, whose map is `(0, d_in T / n)` without replacement and `(0,
        1 - (1 - d_in / n)^T)` with it; or `smoothed(Π, size=n)`, whose map is a `SmoothedLoss`.
    rate : float
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    replacement : {"without", "with"}
        How records are drawn: Algorithm 2, or Appendix F.

    Returns
    -------
    Measurement
        It releases a `Release`, which states what differential privacy promises.

    Raises
    ------
    ValueError, TypeError
        For a rate or space that does not fit, for a measure of other records or categories, and for
        one without δ, where no finite loss exists.
    """
    mechanism = SamplingHistogram(rate=rate, replacement=replacement)
    _check_space(input_domain, mechanism)
    with_delta = approximate(max_divergence())
    if output_measure != with_delta and not isinstance(output_measure, ExtrinsicDivergence):
        raise ValueError(
            f"output_measure={output_measure}: sampling alone has no finite loss without a δ (a"
            " record that was drawn may show); use approximate(max_divergence()),"
            " smoothed(distributions, size=...), or make_noisy_sampling_histogram."
        )
    promised = m.make_mechanism(input_domain, input_metric, with_delta, mechanism, delta=_ANY_DELTA)
    return promised if output_measure == with_delta else _under(output_measure, promised, mechanism)


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
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records.
    output_measure : Measure
        `max_divergence()`, whose map is `d_in ln(1 + (T/n) (e^ε₀ - 1))`, with ε₀ the loss of the
        noise; another measure of OpenDP's, whose map follows from that; or `smoothed(Π, size=n)`,
        whose map is a `SmoothedLoss`.
    scale : float
        Positive number, in records.
    rate : float
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.

    Returns
    -------
    Measurement
        Under `smoothed(Π, size=n)` the loss is that of the noised histogram itself where the
        databases and samples are few enough to compute it: `n T^3` up to 10^9 for two categories.
        Otherwise it is, for every database, the smaller of the losses of the sampling and of the
        noise. It is 0 from the ε of the noise on.

    Raises
    ------
    ValueError, TypeError
        For a scale, rate, space or measure that does not fit.
    """
    mechanism = NoisySamplingHistogram(scale, rate)
    _check_space(input_domain, mechanism)
    if not isinstance(output_measure, ExtrinsicDivergence):
        return m.make_mechanism(input_domain, input_metric, output_measure, mechanism)
    promised = m.make_mechanism(
        input_domain, input_metric, approximate(max_divergence()), mechanism
    )
    return _under(output_measure, promised, mechanism)


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
    input_domain, input_metric : Domain, Metric
        The output space of `make_dirichlet_multinomial`, with a public
        number of records.
    output_measure : Measure
        `approximate(max_divergence())`, whose map is `(0, d_in T / n)`; or `smoothed(Π, size=n)`,
        whose map is a `SmoothedLoss`.
    rate : float
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    values : sequence of float
        A finite number for each category, in their order.

    Returns
    -------
    Measurement
        A post-processing of `make_sampling_histogram`, whose maps it has. For values from a
        continuum nothing better holds, under either kind of measure (Theorem 4).

    Raises
    ------
    ValueError, TypeError
        For a rate, space, measure or values that do not fit.
    """
    measurement = make_sampling_histogram(input_domain, input_metric, output_measure, rate)
    numbers = np.asarray(values)
    k = descriptor_of(input_domain, PosteriorSpace, "make_dirichlet_multinomial").k
    if not (numbers.shape == (k,) and numbers.dtype.kind in "fiu" and np.all(np.isfinite(numbers))):
        raise ValueError(f"values={values!r}: must be {k} finite numbers, one for each category.")
    exact = [Fraction(value) for value in numbers.tolist()]

    def average(release: Release) -> float:
        counts = [int(count) for count in release.counts]
        return float(sum(v * c for v, c in zip(exact, counts, strict=True)) / sum(counts))

    return measurement >> new_function(guarded(average, "SamplingAverage: the average"), TO="f64")


then_sampling_histogram = to_then(make_sampling_histogram)
then_noisy_sampling_histogram = to_then(make_noisy_sampling_histogram)
then_sampling_average = to_then(make_sampling_average)


def _check_space(
    input_domain: Domain, mechanism: SamplingHistogram | NoisySamplingHistogram
) -> None:
    space = descriptor_of(input_domain, PosteriorSpace, "make_dirichlet_multinomial")
    mechanism.check(size=space.size, prior=space.prior_array)


def _under(
    output_measure: Measure,
    promised: Measurement,
    mechanism: SamplingHistogram | NoisySamplingHistogram,
) -> Measurement:
    """Make the measurement of the mechanism under a smoothed measure, from that under OpenDP's."""
    space = promised.input_domain.descriptor
    guarantee = deepcopy(output_measure.descriptor)  # the measure hands its own to anyone
    known = isinstance(guarantee, SmoothedDP)
    if not (known and output_measure == user_divergence(guarantee.identifier, guarantee)):
        raise ValueError(
            f"output_measure={output_measure}: must be a measure of OpenDP or made by"
            " smoothed(distributions, size=...)."
        )
    if guarantee.size != space.size or len(guarantee.vertices[0]) != space.k:
        raise ValueError(
            f"output_measure={output_measure}: is for {guarantee.size} records and"
            f" {len(guarantee.vertices[0])} categories; the input has {space.size} and {space.k}."
        )

    def smoothed_map(d_in: int) -> SmoothedLoss:
        return SmoothedLoss(deepcopy(guarantee), mechanism, as_distance(d_in))

    name = type(mechanism).__name__
    return make_user_measurement(
        *promised.input_space,
        output_measure,
        guarded(promised, f"{name}: sampling"),
        guarded_map(smoothed_map, f"{name}: smoothed privacy map"),
    )
