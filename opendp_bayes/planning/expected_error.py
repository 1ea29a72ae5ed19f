r"""What a release is expected to be worth: its error given the true counts, and the width of an
interval made from it.

Public counts, real or guessed, go in, and never data. Where the outcomes that matter can be listed,
every expectation is a sum over them: all outcomes of an exponential mechanism, or those of additive
noise up to where the rest, weighted by its size, is less than about 1e-6 of what is not 0.
Otherwise the release is simulated; noise and permute-and-flip with a fixed seed, so that the same
question has the same answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal

import numpy as np

from opendp_bayes.inference.beta_mixture import BetaMixture
from opendp_bayes.mathematics.hellinger import hellinger_distance
from opendp_bayes.mathematics.simplex import candidates, log_number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.exponential import PosteriorExponential
from opendp_bayes.mechanisms.knorm_parameters import (
    KNormParameters,
    nearest_counts,
    noise_vectors,
    shell_size,
)
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.mechanisms.permute_and_flip import PermuteAndFlip
from opendp_bayes.mechanisms.protocol import Mechanism

#: Outcomes times squared categories up to which candidates are listed, and noise, whose outcomes
#: need not have the same total.
_LARGEST_LAW, _LARGEST_NOISE = 1 << 22, 1 << 20
#: Laplace noise is listed up to so many scales and one: `exp(-18)`, times 18, is less than 1e-6. A
#: distance grows at most in proportion to the noise.
_REACH = 18.0
_TAIL = 1e-6  # of K-norm noise
_SIMULATED = (
    1 << 17
)  # counts simulated: a standard error of about 0.3 % of the error; with more categories a distance varies less
_FEWEST_DRAWS = 1 << 13
_SEED = 0
_CELLS = 512  # components of the mixture from which an interval's width is taken
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """Released counts, shape `(c, k)`, and their probabilities, shape `(c,)`; equal ones if
    `simulated`.
    """

    counts: Integers
    weights: Floats
    simulated: bool = False


@dataclass(frozen=True)
class ExpectedError:
    """How far the released posterior is expected to be from the posterior of the true `counts`,
    over the randomness of the mechanism.

    Attributes
    ----------
    counts : the true counts, made up from public proportions.
    hellinger : mean Hellinger distance between the two posteriors, `E[H(posterior, released
        posterior)]`.
    total_variation : mean total-variation distance between what the two predict for the next
        record, `E[sum |mean_i - released mean_i|] / 2`.
    interval_width : width of the central 95 % of the released posteriors mixed over releases, mean
        over categories. Away from the edge of the simplex that is the mean width of the noise-aware
        intervals; near it those are shorter, because they know where the edge is.
    standard_error : of `hellinger`; 0 where it was summed.
    method : `"exact"`, a sum over the outcomes, or `"simulated"`.
    """

    counts: tuple[int, ...]
    hellinger: float
    total_variation: float
    interval_width: float
    standard_error: float
    method: Literal["exact", "simulated"]


def expected_error(mechanism: Mechanism, counts: Integers, prior: Floats) -> ExpectedError:
    """The error of a mechanism at true counts of shape `(k,)`, with a prior of shape `(k,)`."""
    law = release_law(mechanism, counts, prior)
    released, true = prior + law.counts, prior + counts
    distance = hellinger_distance(released, true)
    hellinger = float(law.weights @ distance)
    total = released.sum(axis=1)
    mean = released / total[:, None]
    moved = np.abs(mean - true / true.sum()).sum(axis=1) / 2
    categories = [0] if counts.size == 2 and np.all(total == total[0]) else range(counts.size)
    return ExpectedError(
        counts=tuple(counts.tolist()),
        hellinger=hellinger,
        total_variation=float(law.weights @ moved),
        interval_width=_mean_width(released, total, law.weights, categories),
        standard_error=float(np.std(distance) / math.sqrt(distance.size)) if law.simulated else 0.0,
        method="simulated" if law.simulated else "exact",
    )


def _mean_width(
    released: Floats, total: Floats, weights: Floats, categories: Sequence[int]
) -> float:
    widths = []
    for i in categories:
        mean = released[:, i] / total
        cell = np.floor(
            (mean - mean.min()) * (_CELLS / max(np.ptp(mean), 1e-300)) * (1 - 1e-12)
        ).astype(np.int64)
        lower, upper = BetaMixture.grouped(
            released[:, i], total - released[:, i], weights, cell
        ).interval(_LEVEL)
        widths.append(upper - lower)
    return math.fsum(widths) / len(widths)


@singledispatch
def release_law(mechanism: Any, counts: Integers, prior: Floats) -> ReleaseLaw:
    """The law of the release given the true counts: listed where it can be, otherwise simulated. A
    mechanism from a plugin lists its own.
    """
    size, k = int(counts.sum()), counts.size
    if log_number_of_candidates(size, k) <= math.log(_LARGEST_LAW / k**2):
        try:
            outcomes, log_p = mechanism.log_pmf(counts, prior)
            return ReleaseLaw(outcomes, np.exp(log_p))
        except ValueError:  # it has more outcomes than these, and cannot list them
            pass
    return _simulated(mechanism.sample(counts, prior, _draws(k)))


@release_law.register
def _(mechanism: PosteriorExponential, counts: Integers, prior: Floats) -> ReleaseLaw:
    size, k = int(counts.sum()), counts.size
    if log_number_of_candidates(size, k) > math.log(_LARGEST_LAW / k**2):
        return _simulated(mechanism.sample(counts, prior, _draws(k)))
    weights = np.exp(-mechanism._exponents(counts, prior))
    return ReleaseLaw(candidates(size, k), weights / weights.sum())


@release_law.register
def _(mechanism: PermuteAndFlip, counts: Integers, prior: Floats) -> ReleaseLaw:
    # Even where there are too many outcomes to sum over, listing them takes less time than many
    # draws, each of which may flip most of the coins.
    outcomes, log_p = mechanism.log_pmf(counts, prior)
    weights = np.exp(log_p)
    if len(outcomes) * counts.size**2 <= _LARGEST_LAW:
        return ReleaseLaw(outcomes, weights)
    drawn = np.random.default_rng(_SEED).choice(
        len(outcomes), _draws(counts.size), p=weights / weights.sum()
    )
    return _simulated(outcomes[drawn])


@release_law.register
def _(mechanism: LaplaceParameters, counts: Integers, prior: Floats) -> ReleaseLaw:
    size, k, scale = int(counts.sum()), counts.size, mechanism.scale
    part = mechanism.noised_part(counts).tolist()
    reach = math.ceil(_REACH * scale) + 1
    last = math.inf if mechanism.total == "private" else size
    ends = [(max(count - reach, 0), int(min(count + reach, last))) for count in part]
    if math.prod(high - low + 1 for low, high in ends) * k**2 > _LARGEST_NOISE:
        return _simulated(
            mechanism.assemble(part + _laplace_noise(scale, mechanism.noise, len(part)), size)
        )
    # What is clamped to an end of the window and not to one of the count's own is a negligible
    # part.
    marginals = [
        np.exp(mechanism._log_clamped(count - low, high - low))
        for count, (low, high) in zip(part, ends, strict=True)
    ]
    values = np.indices([marginal.size for marginal in marginals]).reshape(len(part), -1)
    weights = math.prod(
        (marginal[value] for marginal, value in zip(marginals, values, strict=True)),
        start=np.ones(1),
    )
    return ReleaseLaw(
        mechanism.assemble((values + np.array([[low] for low, _ in ends])).T, size), weights
    )


@release_law.register
def _(mechanism: KNormParameters, counts: Integers, prior: Floats) -> ReleaseLaw:
    size, k, scale = int(counts.sum()), counts.size, mechanism.scale
    if k == 2:
        return release_law(LaplaceParameters(scale), counts, prior)
    largest = _norm_to_list(scale, k)
    if largest is None:
        return _simulated(nearest_counts(counts + _knorm_noise(scale, k), size))
    noise = noise_vectors(largest, k)
    weights = np.exp(-np.maximum(noise, 0).sum(axis=1) / scale)
    return ReleaseLaw(nearest_counts(counts + noise, size), weights / weights.sum())


def _norm_to_list(scale: float, k: int) -> int | None:
    """The norm beyond which K-norm noise, weighted by its norm, is less than `_TAIL` of all of it;
    None if there are too many vectors up to there.
    """
    listed, weighted, norm = 1, 0.0, 0
    while listed * k**2 <= _LARGEST_NOISE:
        norm += 1
        vectors = shell_size(norm, k)
        term = norm * vectors * math.exp(-norm / scale)
        ratio = (1 + 1 / norm) ** k * math.exp(
            -1 / scale
        )  # a bound on that of the next terms: shells grow as the power k - 2 of the norm, or less
        if ratio < 1 and term / (1 - ratio) <= _TAIL * weighted:
            return norm
        listed, weighted = listed + vectors, weighted + term
    return None


def _simulated(counts: Integers) -> ReleaseLaw:
    return ReleaseLaw(counts, np.full(len(counts), 1 / len(counts)), simulated=True)


def _draws(k: int) -> int:
    return max(_SIMULATED // k, _FEWEST_DRAWS)


def _laplace_noise(scale: float, noise: str, j: int) -> Integers:
    """Integer Laplace noise, shape `(draws, j)`; with floating point and a seed, which a release
    never is.
    """
    generator = np.random.default_rng(_SEED)
    stop = -math.expm1(-1 / scale)
    draws = _draws(j)
    up, down = generator.geometric(stop, (2, draws, j)) - 1
    if noise == "discrete":
        return up - down
    return np.where(generator.random((draws, j)) < 0.5, up, -1 - up)


def _knorm_noise(scale: float, k: int) -> Integers:
    """K-norm noise, shape `(draws, k)`, made as `mechanisms.knorm_parameters.knorm_noise` says;
    uniform sums are a Polya urn's.
    """
    generator = np.random.default_rng(_SEED)
    log_weights = np.array([2 * math.log(math.comb(k - 1, i)) - i / scale for i in range(k)])
    weights = np.exp(log_weights - log_weights.max())
    draws = _draws(k)
    total = generator.choice(k, draws, p=weights / weights.sum()) + generator.negative_binomial(
        2 * k - 1, -math.expm1(-1 / scale), draws
    )
    up, down = (
        generator.multinomial(total, generator.dirichlet(np.ones(k), draws)) for _ in range(2)
    )
    return up - down
