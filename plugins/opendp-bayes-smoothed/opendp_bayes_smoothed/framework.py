"""The mechanisms as OpenDP measurements, under OpenDP's own privacy measures or under a measure of
smoothed differential privacy.

The two never convert into each other: a smoothed δ is an average over databases, which says nothing
about yours if it is not what Π describes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from opendp.core import new_function
from opendp.extras._utilities import to_then
from opendp.measurements import make_user_measurement
from opendp.measures import approximate, max_divergence, user_divergence
from opendp.mod import Domain, ExtrinsicDivergence, Measure, Measurement, Metric

from opendp_bayes import Release, make_mechanism
from opendp_bayes.extend import as_distance, as_size
from opendp_bayes.framework.boundary import descriptor_of, guarded, guarded_map, require_features
from opendp_bayes.framework.spaces import PosteriorSpace
from opendp_bayes_smoothed.draws import Replacement
from opendp_bayes_smoothed.mechanisms import NoisySamplingHistogram, SamplingHistogram
from opendp_bayes_smoothed.smoothed_dp import smoothed_delta, smoothed_epsilon, vertices

#: The map states the δ that the mechanism has, whatever it is; a budget is compared with it
#: elsewhere.
_ANY_DELTA = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class SmoothedDP:
    """What tells two smoothed privacy measures apart: the number of records, and the vertices of
    the convex hull of Π.
    """

    size: int
    vertices: tuple[tuple[float, ...], ...]

    @property
    def identifier(self) -> str:
        return f"SmoothedDP(size={self.size}, vertices={[list(row) for row in self.vertices]!r})"


@dataclass(frozen=True)
class SmoothedLoss:
    """The distance of the smoothed measure: for every ε the smoothed δ of a release, and for every
    δ the ε.

    Holds for data whose records are independent, each drawn from some distribution of `guarantee`,
    and for one record changed. Where `pure_epsilon` is finite, the release is `(pure_epsilon,
    0)`-differentially private for any data besides.
    """

    guarantee: SmoothedDP
    samples: int
    replacement: Replacement = "without"
    pure_epsilon: float = math.inf

    def delta(self, epsilon: float) -> float:
        """The smoothed δ at `epsilon`: an upper bound, as `smoothed_delta` gives it. 0 from
        `pure_epsilon` on, and where nothing is drawn.
        """
        if self.samples == 0 or epsilon >= self.pure_epsilon:
            return 0.0
        return smoothed_delta(
            self.guarantee.vertices,
            self.guarantee.size,
            self._rate,
            epsilon,
            replacement=self.replacement,
        )

    def epsilon(self, delta: float) -> float:
        """The smallest ε with a smoothed δ of at most `delta`, rounded up."""
        if self.samples == 0:
            return 0.0
        return min(
            self.pure_epsilon,
            smoothed_epsilon(
                self.guarantee.vertices,
                self.guarantee.size,
                self._rate,
                delta,
                replacement=self.replacement,
            ),
        )

    @property
    def _rate(self) -> Fraction:
        return Fraction(self.samples, self.guarantee.size)


def smoothed(distributions: ArrayLike, *, size: int) -> Measure:
    """The privacy measure of smoothed differential privacy for `size` independent records, each
    from some distribution in Π.

    `distributions` has a row of category probabilities for each distribution, in the order of the
    categories. Sets with the same convex hull give equal measures (Proposition 7). Not OpenDP's
    `smoothed_max_divergence`, which is (ε, δ)-differential privacy for every ε.
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
    input_domain, input_metric : output of `make_dirichlet_multinomial` or `make_beta_binomial`,
        with a public number of records.
    output_measure : `approximate(max_divergence())`, whose map is `(0, d_in T / n)` without
        replacement and `(0, 1 - (1 - d_in / n)^T)` with it; or `smoothed(Π, size=n)`, whose map is
        a `SmoothedLoss`, for one record changed.
    rate, replacement : as in `SamplingHistogram`.

    Raises `ValueError` under a measure without δ, where no finite loss exists.
    """
    mechanism = SamplingHistogram(rate=rate, replacement=replacement)
    _space(input_domain, mechanism)
    if isinstance(output_measure, ExtrinsicDivergence):
        return _smoothed_measurement(input_domain, input_metric, output_measure, mechanism)
    if output_measure != approximate(max_divergence()):
        raise ValueError(
            f"output_measure={output_measure}: sampling alone has no finite loss without a δ (a"
            " record that was drawn may show); use approximate(max_divergence()),"
            " smoothed(distributions, size=...), or make_noisy_sampling_histogram."
        )
    return make_mechanism(input_domain, input_metric, output_measure, mechanism, delta=_ANY_DELTA)


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

    The map under `max_divergence()` is `d_in ln(1 + (T/n) (e^ε₀ - 1))`, with ε₀ the loss of the
    noise; the other OpenDP measures follow from it. Under `smoothed(Π, size=n)` the loss is that of
    the sampling, of which the noise is a post-processing, and 0 from that ε on.
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
    """Release the average of `T = ceil(rate n)` values drawn without replacement (Algorithm 3), one
    of `values` for each category, as a float.

    It is a post-processing of `make_sampling_histogram`, whose maps it has. For values from a
    continuum nothing better holds, under either kind of measure (Theorem 4); for few values the
    smoothed loss is an upper bound.
    """
    measurement = make_sampling_histogram(input_domain, input_metric, output_measure, rate)
    space = _space(input_domain, SamplingHistogram(rate=rate))
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (space.k,) or not np.all(np.isfinite(numbers)):
        raise ValueError(
            f"values={values!r}: must be {space.k} finite numbers, one for each category."
        )

    def average(release: Release) -> float:
        counts = np.array(release.counts)
        return float(counts @ numbers / counts.sum())

    return measurement >> new_function(guarded(average, "SamplingAverage: the average"), TO="f64")


then_sampling_histogram = to_then(make_sampling_histogram)
then_noisy_sampling_histogram = to_then(make_noisy_sampling_histogram)
then_sampling_average = to_then(make_sampling_average)


def _space(
    input_domain: Domain, mechanism: SamplingHistogram | NoisySamplingHistogram
) -> PosteriorSpace:
    space: PosteriorSpace = descriptor_of(
        input_domain, PosteriorSpace, "make_dirichlet_multinomial or make_beta_binomial"
    )
    mechanism.check(size=space.size, prior=space.prior_array)
    return space


def _smoothed_measurement(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    mechanism: SamplingHistogram | NoisySamplingHistogram,
) -> Measurement:
    """The same release under the smoothed measure; what it says of its own loss stays that of
    differential privacy.
    """
    space = _space(input_domain, mechanism)
    guarantee = output_measure.descriptor
    if not (isinstance(guarantee, SmoothedDP) and repr(output_measure) == guarantee.identifier):
        raise ValueError(
            f"output_measure={output_measure}: must be a measure of OpenDP or made by"
            " smoothed(distributions, size=...)."
        )
    if guarantee.size != space.size or len(guarantee.vertices[0]) != space.k:
        raise ValueError(
            f"output_measure={output_measure}: is for {guarantee.size} records and"
            f" {len(guarantee.vertices[0])} categories; the input has {space.size} and {space.k}."
        )
    inner = make_mechanism(
        input_domain, input_metric, approximate(max_divergence()), mechanism, delta=_ANY_DELTA
    )
    pure = mechanism.proven_loss(1, size=space.size, prior=space.prior_array).epsilon
    samples = mechanism.samples(guarantee.size)
    replacement = mechanism.replacement if isinstance(mechanism, SamplingHistogram) else "without"

    def smoothed_map(d_in: int) -> SmoothedLoss:
        if as_distance(d_in) > 1:
            raise ValueError(
                f"d_in={d_in}: the smoothed loss is for one record changed; the databases in"
                " between are not what Π describes."
            )
        return SmoothedLoss(guarantee, samples * d_in, replacement, pure)

    name = type(mechanism).__name__
    return make_user_measurement(
        input_domain,
        input_metric,
        output_measure,
        guarded(lambda concentration: inner(concentration), f"{name}: sampling"),
        guarded_map(smoothed_map, f"{name}: smoothed privacy map"),
    )
