"""EHD, EHDL, EHDS and the β variant: their laws against the papers' algorithms by enumeration,
their samples, their messages.

Every statistical check is `oracles.rejects` at `oracles.FALSE_ALARM`; the observations that pass it
are rejected under a law whose scale is off by 30 %, under another prior, and under another
sensitivity.
"""

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from opendp_bayes.mathematics.validation import SCALES
from opendp_bayes.mechanisms import (
    HellingerExponential,
    Mechanism,
    SmoothHellingerExponential,
    hellinger_distance,
)
from opendp_bayes.mechanisms.exponential import posterior_exponential as exponential
from tests.helpers import oracles
from tests.helpers.sweeps import pairs_of, some_of

#: A mechanism's constructor arguments beside the scale, and the oracle's name and parameter of the
#: sensitivity that it divides by.
KINDS: dict[str, tuple[Any, dict[str, Any], str, dict[str, float]]] = {
    "EHD": (HellingerExponential, {}, "one", {}),
    "EHDL": (HellingerExponential, {"sensitivity": "local"}, "local", {}),
    "EHDS, γ = 1": (SmoothHellingerExponential, {}, "smooth", {"gamma": 1.0}),
    "EHDS, γ = 0.1": (SmoothHellingerExponential, {"gamma": 0.1}, "smooth", {"gamma": 0.1}),
    "β = 0.2": (SmoothHellingerExponential, {"beta": 0.2}, "smooth", {"beta": 0.2}),
}
DATA = [((5, 7), (1.0, 1.0)), ((12, 0), (0.05, 0.05)), ((1, 9), (3.0, 0.4))]
DATA += [((2, 3, 3), (1.0, 1.0, 1.0)), ((0, 0, 6), (0.1, 2.0, 0.7)), ((3, 0, 1, 2), (0.3,) * 4)]
DATA.append(((1, 1, 1, 1), (1.0, 2.0, 3.0, 0.5)))


def mechanism(kind: str, scale: float) -> Mechanism:
    constructor, arguments, _, _ = KINDS[kind]
    return constructor(scale=scale, **arguments)


def law(kind: str, scale: float, counts: oracles.Counts, prior: tuple[float, ...]) -> oracles.Law:
    """The papers' law; a scale of the mechanism multiplies the sensitivity."""
    _, _, sensitivity, parameters = KINDS[kind]
    return oracles.exponential_law(
        counts, prior, scale * oracles.width(sensitivity, counts, prior, **parameters)
    )


@pytest.mark.parametrize(
    ("kind", "data", "scale"), pairs_of(product(KINDS, DATA, [0.05, 0.7, 4.0]))
)
def test_law(kind: str, data: tuple[oracles.Counts, tuple[float, ...]], scale: float) -> None:
    counts, prior = data
    stated = oracles.law_of(mechanism(kind, scale), counts, prior)
    truth = law(kind, scale, counts, prior)
    assert list(stated) == list(oracles.data_sets(sum(counts), len(counts)))
    assert oracles.largest_relative_difference(stated, truth) < 1e-12
    assert sum(stated.values()) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_law_notices_what_is_wrong(kind: str) -> None:
    """Negative control: a scale off by 30 %, another prior, every other sensitivity."""
    counts, prior = (3, 17), (0.1, 0.1)
    stated = oracles.law_of(mechanism(kind, 0.7), counts, prior)
    others = [law(other, 0.7, counts, prior) for other in KINDS if other != kind]
    for wrong in (
        law(kind, 0.49, counts, prior),
        law(kind, 0.91, counts, prior),
        law(kind, 0.7, counts, (0.5, 0.5)),
        *others,
    ):
        assert oracles.largest_relative_difference(stated, wrong) > 1e-3


@pytest.mark.parametrize("counts", [(60, 40), (1, 99), (100, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_law_of_a_hundred_records(kind: str, counts: oracles.Counts) -> None:
    prior = (0.1, 0.3)
    stated = oracles.law_of(mechanism(kind, 0.5), counts, prior)
    right = law(kind, 0.5, counts, prior)
    assert oracles.largest_relative_difference(stated, right) < 1e-12


@pytest.mark.parametrize("prior", [(0.1, 0.1), (1.0, 1.0), (0.3, 7.7)])
@pytest.mark.parametrize("counts", [(2048, 2048), (10, 4086), (32_768, 32_768)])
@pytest.mark.parametrize("kind", ["EHD", "EHDL"])
def test_law_is_within_the_certified_error(kind, counts, prior):
    """`exponent_error` for this width bounds the error of every candidate's weight relative to that
    of the data, which is exactly 1.

    Counts at a power of two are where `prior + counts` and its neighbour are rounded differently.
    """
    width = 0.05 * (1.0 if kind == "EHD" else float(oracles.local_sensitivity(counts, prior)))
    candidates, log_p = mechanism(kind, 0.05).log_pmf(counts, prior)
    centre = oracles.posterior(counts, prior)
    chosen = {*range(0, log_p.size, log_p.size // 300), *range(counts[0] - 5, counts[0] + 6)}
    for index in chosen:
        exponent = oracles.hellinger(
            centre, oracles.posterior(candidates[index].tolist(), prior)
        ) / oracles.real(width)
        error = abs(oracles.real(log_p[counts[0]]) - oracles.real(log_p[index]) - exponent)
        assert error <= float(exponential.exponent_error(width, 2)) + 2.0**-51 * abs(log_p[index])


SAMPLED = {
    "two categories": ((3, 12), (1.0, 1.0), (0.3, 0.3), (2.0, 0.4)),
    "three categories": ((1, 2, 5), (1.0, 1.0, 1.0), (0.2, 0.2, 0.2), (1.0, 3.0, 0.3)),
}


def scale_for_sampling(kind: str, counts: oracles.Counts, prior: tuple[float, ...]) -> float:
    """At which an outcome far away has exponent 4: neither uniform nor a point."""
    _, _, sensitivity, parameters = KINDS[kind]
    return 0.25 / oracles.width(sensitivity, counts, prior, **parameters)


@pytest.mark.parametrize(("data", "kind"), some_of(product(SAMPLED, KINDS), 5))
def test_samples(kind: str, data: str) -> None:
    counts, prior, *other_priors = SAMPLED[data]
    scale = scale_for_sampling(kind, counts, prior)
    samples = mechanism(kind, scale).sample(counts, prior, draws=30_000)
    assert samples.shape == (30_000, len(counts))
    others = [law(kind, scale, counts, other) for other in other_priors]
    oracles.check_draws(samples, lambda of: law(kind, of * scale, counts, prior), *others)


@pytest.mark.parametrize("kind", ["EHDL", "EHDS, γ = 1", "EHDS, γ = 0.1", "β = 0.2"])
def test_samples_are_rejected_under_another_sensitivity(kind: str) -> None:
    """Negative control: sensitivities are not interchangeable for skewed data."""
    counts, prior = (3, 57), (0.1, 0.1)
    scale = scale_for_sampling(kind, counts, prior)
    observed: Counter[Any] = Counter(
        map(tuple, mechanism(kind, scale).sample(counts, prior, draws=30_000).tolist())
    )
    assert not oracles.rejects(observed, law(kind, scale, counts, prior))
    widths = {
        other: oracles.width(sensitivity, counts, prior, **parameters)
        for other, (_, _, sensitivity, parameters) in KINDS.items()
        if other != "EHD"
    }
    widths["global"] = oracles.width("global", counts, prior)
    own = widths.pop(kind)
    for width in widths.values():
        assert abs(width / own - 1) > 0.1
        assert oracles.rejects(observed, oracles.exponential_law(counts, prior, scale * width))


# Beyond enumeration: what is refused because nearly every release would be a uniform draw, whatever
# the data.
def exact_uniform_share(log_p: np.ndarray, largest_log_p: float, width: float) -> float:
    """`|R| e^(-1/w) / N`, from the probability of the data themselves, which is `1 / N`."""
    return float(np.exp(np.log(log_p.size) - 1 / width + largest_log_p))


@pytest.mark.parametrize(
    ("size", "prior"),
    [
        *((1000, (1.0, 1.0)), (5000, (0.3, 2.0)), (100, (1.0, 1.0, 1.0)), (60, (0.5,) * 4)),
        (30, (1.0, 2.0, 0.1, 1.0, 1.0)),
    ],
)
@pytest.mark.parametrize("exponent", [0.5, 5.0, 10.0, 20.0])
def test_uniform_share_is_that_of_the_best_data_set(size, prior, exponent):
    """Not above it by more than 0.01; its odds smaller by a factor of up to 2.5."""
    k = len(prior)
    shares = []
    for counts in (
        np.full(k, size // k) + (np.arange(k) < size % k),
        np.array([size // 2, size - size // 2] + [0] * (k - 2)),
        np.eye(k)[0] * size,
    ):
        _, log_p = HellingerExponential(1 / exponent).log_pmf(counts.astype(int), prior)
        shares.append(exact_uniform_share(log_p, log_p.max(), 1 / exponent))
    predicted = exponential.uniform_share(size, np.array(prior), exponent)
    assert predicted <= min(shares) + 0.01
    if min(shares) < 0.99:
        assert 0.4 < predicted / (1 - predicted) / (min(shares) / (1 - min(shares))) < 1.25
    # Negative control: it is not that of just any data.
    assert abs(predicted - max(shares)) > 0.02 or max(shares) - min(shares) < 0.03


NOISE = [(10**9, 2), (10**5, 3), (1000, 5), (10**5, 10), (1000, 50)]


def critical_exponent(size: int, prior: np.ndarray) -> float:
    """Where the refusal of EHD sets in."""
    low, high = 1e-3, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if exponential.uniform_share(size, prior, middle) > exponential.LARGEST_UNIFORM_SHARE
            else (low, middle)
        )
    return high


@pytest.mark.parametrize(("size", "k"), NOISE)
def test_refuses_noise_from_the_whole_simplex_and_nothing_better(size: int, k: int) -> None:
    """Balanced data, the most favourable: where EHD is refused its mean error is that of uniform
    draws, within 0.05, and with half the scale it is

    accepted and the error is less by 0.2 or more (by 0.5 or more for five and more categories: the
    change is abrupt). Of 400 releases 4 are expected not to be uniform where the refusal sets in;
    0.05 is more than 20 of them, which has a probability below 1e-8.
    """
    prior = np.ones(k)
    counts = np.full(k, size // k) + (np.arange(k) < size % k)
    critical = critical_exponent(size, prior)

    def error(scale: float) -> float:
        samples = HellingerExponential(scale).sample(counts, prior, draws=400)
        return float(hellinger_distance(samples + prior, counts + prior).mean())

    refused, accepted = HellingerExponential(1.02 / critical), HellingerExponential(0.5 / critical)
    said = rf"size={size} and {k} categories there are .*about 9\d\.\d% or more of the"
    with pytest.raises(ValueError, match=said):
        refused.check_informative(size=size, prior=prior)
    accepted.check_informative(size=size, prior=prior)
    uniform = error(2.0**40)
    assert error(refused.scale) > uniform - 0.05
    assert error(accepted.scale) < uniform - (0.5 if k >= 5 else 0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_and_log_probabilities_are_as_computed(kind: str, monkeypatch) -> None:
    """Each of the two is within twice the error of the exponents, at the smallest width."""
    value, prior = mechanism(kind, 2.0**40), np.ones(10)
    loss = value.proven_loss(1, size=10**5, prior=prior).epsilon
    match = r"Use KNormParameters or a smaller scale\."
    if np.isfinite(loss):
        match = rf"Use KNormParameters\(scale={re.escape(f'{1 / loss:.3g}')}\), which has"
    with pytest.raises(ValueError, match=rf"^scale=1099511627776\.0: .*100\.0% .*{match}"):
        value.check_informative(size=10**5, prior=prior)
    mechanism(kind, 1e-6).check_informative(size=10**5, prior=prior)
    monkeypatch.setattr(exponential, "RELATIVE_ERROR", 0.003)
    for scale in (0.3, 0.7, 2.0):
        value, prior = mechanism(kind, scale), np.array([0.1, 2.0, 1.0])
        error = exponential.exponent_error(value.smallest_width(9, prior), 3)
        assert (
            4 * error <= Fraction(value.log_error(9, prior)) <= 4 * error * (1 + Fraction(1, 2**52))
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "k"), [(999, 2), (43, 3), (1, 1000)])
def test_few_candidates_are_never_refused(kind: str, size: int, k: int) -> None:
    mechanism(kind, SCALES[1]).check_informative(size=size, prior=np.ones(k))
    with pytest.raises(ValueError, match="whatever the data"):
        mechanism(kind, SCALES[1]).check_informative(size=size + 1, prior=np.ones(k))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "prior"), [(12, (1.0, 1.0)), (7, (0.1, 2.0, 1.0)), (5, (0.5, 0.5, 0.5, 0.5))]
)
def test_smallest_width_is_below_every_width(kind, size, prior):
    value = mechanism(kind, 0.7)
    widths = [
        value.width(np.array(counts), np.array(prior))
        for counts in oracles.data_sets(size, len(prior))
    ]
    smallest = value.smallest_width(size, np.array(prior))
    assert 0.2 * min(widths) < smallest <= min(widths) * (1 + 1e-12)


# The certificate of a sampler that errs.
@pytest.mark.parametrize("relative", [0.0, 2.0**-45, 0.01])
def test_the_error_of_an_exponent_has_every_part(relative, monkeypatch):
    """Distance, width, their roundings, the sampler's (`docs/research/numerics.md`)."""
    monkeypatch.setattr(exponential, "RELATIVE_ERROR", relative)
    for width, k in product([2.0**-30, 0.3, 0.7, 1.0, 3.0, 2.0**40], [2, 3, 1000]):
        of_exponent = 2 * Fraction(relative) + Fraction(k + 8, 2**53) + Fraction(1, 2**47)
        least = of_exponent / Fraction(width) + Fraction(k, 2**41)
        assert least <= exponential.exponent_error(width, k) <= least * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize(
    "ideal", [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7), Fraction(10, 7), Fraction(0)]
)
@pytest.mark.parametrize("error", [Fraction(1, 10), Fraction(2, 7), Fraction(1, 2**41)])
def test_a_certified_loss_adds_the_error_of_two_probabilities_and_two_normalisers(ideal, error):
    loss = exponential.certified_loss(ideal, error)
    assert loss.delta == 0
    assert oracles.is_certified(loss, ideal + 4 * error, Fraction(1, 2**52))


def perturbed(log_p: np.ndarray, up: np.ndarray, error: float) -> np.ndarray:
    """The law with weights too high by `exp(error)` where `up` and too low elsewhere."""
    return log_softmax(log_p + np.where(up, error, -error))


def test_a_sampler_that_errs_against_us_keeps_its_certificate() -> None:
    """One outcome too likely for one data set and too rare for its neighbour."""
    error, mechanism = 0.1, HellingerExponential(0.02)
    p, q = (mechanism.log_pmf(counts, 1.0)[1] for counts in ((10, 10), (11, 9)))
    ideal = oracles.epsilon_between(p, q)
    rare = np.arange(p.size) == np.argmax(np.where(p < -20, np.abs(p - q), 0.0))
    away = np.sign(p - q)[rare] > 0
    observed = float(
        np.max(np.abs(perturbed(p, rare == away, error) - perturbed(q, rare != away, error)))
    )
    assert observed > np.abs(p - q)[rare] + 3.99 * error
    assert observed <= exponential.certified_loss(Fraction(float(ideal)), Fraction(error)).epsilon
