"""EHD, EHDL, EHDS and the β variant: their laws against the papers' algorithms by enumeration, their samples, their messages.

Every statistical check is `oracles.rejects` at `oracles.FALSE_ALARM`; the observations that pass it are rejected under a law whose scale is off
by 30 %, under another prior, and under another sensitivity.
"""

from collections import Counter
from typing import Any

import numpy as np
import oracles
import pytest

from opendp_bayes import HellingerExponential, SmoothHellingerExponential
from opendp_bayes._validation import SCALES
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.exponential import exponent_error

#: A mechanism's constructor arguments beside the scale, and the oracle's name and parameter of the sensitivity that it divides by.
KINDS: dict[str, tuple[Any, dict[str, Any], str, dict[str, float]]] = {
    "EHD": (HellingerExponential, {}, "one", {}),
    "EHDL": (HellingerExponential, {"sensitivity": "local"}, "local", {}),
    "EHDS, γ = 1": (SmoothHellingerExponential, {}, "smooth", {"gamma": 1.0}),
    "EHDS, γ = 0.1": (SmoothHellingerExponential, {"gamma": 0.1}, "smooth", {"gamma": 0.1}),
    "β = 0.2": (SmoothHellingerExponential, {"beta": 0.2}, "smooth", {"beta": 0.2}),
}
DATA = [
    ((5, 7), (1.0, 1.0)),
    ((12, 0), (0.05, 0.05)),
    ((1, 9), (3.0, 0.4)),
    ((2, 3, 3), (1.0, 1.0, 1.0)),
    ((0, 0, 6), (0.1, 2.0, 0.7)),
    ((3, 0, 1, 2), (0.3, 0.3, 0.3, 0.3)),
    ((1, 1, 1, 1), (1.0, 2.0, 3.0, 0.5)),
]


def mechanism(kind: str, scale: float) -> Mechanism:
    constructor, arguments, _, _ = KINDS[kind]
    return constructor(scale=scale, **arguments)


def law(kind: str, scale: float, counts: oracles.Counts, prior: tuple[float, ...]) -> oracles.Law:
    """The papers' law; a scale of the mechanism multiplies the sensitivity."""
    _, _, sensitivity, parameters = KINDS[kind]
    return oracles.exponential_law(counts, prior, scale * oracles.width(sensitivity, counts, prior, **parameters))


@pytest.mark.parametrize("scale", [0.05, 0.7, 4.0])
@pytest.mark.parametrize(("counts", "prior"), DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_law(kind: str, counts: oracles.Counts, prior: tuple[float, ...], scale: float) -> None:
    stated, truth = oracles.law_of(mechanism(kind, scale), counts, prior), law(kind, scale, counts, prior)
    assert list(stated) == list(oracles.data_sets(sum(counts), len(counts)))
    assert oracles.largest_relative_difference(stated, truth) < 1e-12
    assert sum(stated.values()) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_law_notices_what_is_wrong(kind: str) -> None:
    """Negative control: the comparison of laws tells a scale off by 30 %, another prior and every other sensitivity apart."""
    counts, prior = (3, 17), (0.1, 0.1)
    stated = oracles.law_of(mechanism(kind, 0.7), counts, prior)
    others = [law(other, 0.7, counts, prior) for other in KINDS if other != kind]
    for wrong in (law(kind, 0.49, counts, prior), law(kind, 0.91, counts, prior), law(kind, 0.7, counts, (0.5, 0.5)), *others):
        assert oracles.largest_relative_difference(stated, wrong) > 1e-3


@pytest.mark.parametrize("counts", [(60, 40), (1, 99), (100, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_law_of_a_hundred_records(kind: str, counts: oracles.Counts) -> None:
    prior = (0.1, 0.3)
    assert oracles.largest_relative_difference(oracles.law_of(mechanism(kind, 0.5), counts, prior), law(kind, 0.5, counts, prior)) < 1e-12


@pytest.mark.parametrize("prior", [(0.1, 0.1), (1.0, 1.0), (0.3, 7.7)])
@pytest.mark.parametrize("counts", [(2048, 2048), (10, 4086), (32_768, 32_768)])
@pytest.mark.parametrize("kind", ["EHD", "EHDL"])
def test_law_is_within_the_certified_error(kind: str, counts: oracles.Counts, prior: tuple[float, ...]) -> None:
    """`exponent_error` for this width bounds the error of every candidate's weight relative to that of the data, which is exactly 1.

    Counts at a power of two are where `prior + counts` and its neighbour are rounded differently.
    """
    width = 0.05 * (1.0 if kind == "EHD" else float(oracles.local_sensitivity(counts, prior)))
    candidates, log_p = mechanism(kind, 0.05).log_pmf(counts, prior)
    centre = oracles.posterior(counts, prior)
    chosen = {*range(0, log_p.size, log_p.size // 300), *range(counts[0] - 5, counts[0] + 6)}
    for index in chosen:
        exponent = oracles.hellinger(centre, oracles.posterior(candidates[index].tolist(), prior)) / oracles.real(width)
        error = abs(oracles.real(log_p[counts[0]]) - oracles.real(log_p[index]) - exponent)
        assert error <= float(exponent_error(width, 2)) + 2.0**-51 * abs(log_p[index])


SAMPLED = {
    "two categories": ((3, 12), (1.0, 1.0), (0.3, 0.3), (2.0, 0.4)),
    "three categories": ((1, 2, 5), (1.0, 1.0, 1.0), (0.2, 0.2, 0.2), (1.0, 3.0, 0.3)),
}


def scale_for_sampling(kind: str, counts: oracles.Counts, prior: tuple[float, ...]) -> float:
    """At which an outcome far away has exponent 4, so that the law is neither uniform nor a point."""
    _, _, sensitivity, parameters = KINDS[kind]
    return 0.25 / oracles.width(sensitivity, counts, prior, **parameters)


@pytest.mark.parametrize("data", SAMPLED)
@pytest.mark.parametrize("kind", KINDS)
def test_samples(kind: str, data: str) -> None:
    counts, prior, *other_priors = SAMPLED[data]
    scale = scale_for_sampling(kind, counts, prior)
    samples = mechanism(kind, scale).sample(counts, prior, size=30_000)
    assert samples.shape == (30_000, len(counts))
    assert samples.dtype == np.int64
    observed: Counter[Any] = Counter(map(tuple, samples.tolist()))
    assert not oracles.rejects(observed, law(kind, scale, counts, prior))
    for factor in (0.7, 1.3):
        assert oracles.rejects(observed, law(kind, factor * scale, counts, prior))
    for other_prior in other_priors:
        assert oracles.rejects(observed, law(kind, scale, counts, other_prior))


@pytest.mark.parametrize("kind", ["EHDL", "EHDS, γ = 1", "EHDS, γ = 0.1", "β = 0.2"])
def test_samples_are_rejected_under_another_sensitivity(kind: str) -> None:
    """Negative control: the global, the local and the smooth sensitivities, with either γ, are not interchangeable for skewed data."""
    counts, prior = (3, 57), (0.1, 0.1)
    scale = scale_for_sampling(kind, counts, prior)
    observed: Counter[Any] = Counter(map(tuple, mechanism(kind, scale).sample(counts, prior, size=30_000).tolist()))
    assert not oracles.rejects(observed, law(kind, scale, counts, prior))
    widths = {
        other: oracles.width(sensitivity, counts, prior, **parameters) for other, (_, _, sensitivity, parameters) in KINDS.items() if other != "EHD"
    }
    widths["global"] = oracles.width("global", counts, prior)
    own = widths.pop(kind)
    for width in widths.values():
        assert abs(width / own - 1) > 0.1
        assert oracles.rejects(observed, oracles.exponential_law(counts, prior, scale * width))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [*SCALES, 2.0, 50.0])
def test_samples_at_any_scale(kind: str, scale: float) -> None:
    """From a point to the uniform law, whose probabilities are all within a factor of two of each other."""
    samples = mechanism(kind, scale).sample([3, 4, 5], 1.0, size=50)
    assert np.all(samples.sum(axis=1) == 12)
    assert np.all(samples >= 0)
    if scale == SCALES[0]:
        assert np.all(samples == [3, 4, 5])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_data_set_has_one_candidate(kind: str) -> None:
    candidates, log_p = mechanism(kind, 1.0).log_pmf([0, 0], 1.0)
    assert candidates.tolist() == [[0, 0]]
    assert log_p.tolist() == [0.0]
    assert mechanism(kind, 1.0).sample([0, 0], 1.0, size=3).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_is_a_mechanism(kind: str) -> None:
    value = mechanism(kind, 1.0)
    assert isinstance(value, Mechanism)
    assert value == mechanism(kind, 1.0)
    assert hash(value) == hash(mechanism(kind, 1.0))
    with pytest.raises(AttributeError, match="cannot assign to field 'scale'"):
        value.scale = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
def test_refuses_a_private_size_and_too_many_candidates(kind: str) -> None:
    value = mechanism(kind, 1.0)
    value.check(size=100, prior=np.ones(2))
    with pytest.raises(ValueError, match=r"Exponential: its candidates are .* so the number of records must be public\."):
        value.check(size=None, prior=np.ones(2))
    with pytest.raises(ValueError, match=r"size=1000, 4 categories: this mechanism enumerates its C"):
        value.check(size=1000, prior=np.ones(4))
    with pytest.raises(ValueError, match=r"size=200000: .* needs size <= 100000"):
        value.log_pmf([100_000, 100_000], 1.0)
    with pytest.raises(ValueError, match=r"size=200000: .* needs size <= 100000"):
        value.sample([100_000, 100_000], 1.0)
    with pytest.raises(ValueError, match="counts: every entry must be between"):
        value.sample([-1, 2], 1.0)
    with pytest.raises(ValueError, match=r"prior=.*: has shape \(3,\); must have 2 entries"):
        value.log_pmf([1, 2], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("constructor", [HellingerExponential, SmoothHellingerExponential])
@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_refuses_a_scale(constructor: Any, scale: float) -> None:
    with pytest.raises(ValueError, match=r"scale=.*: must be finite and greater than 0\."):
        constructor(scale=scale)
    with pytest.raises(ValueError, match=r"scale=1e-20: must be between .* and 2\^60\."):
        constructor(scale=1e-20)
    with pytest.raises(TypeError, match=r"scale='1': must be a number, not str\."):
        constructor(scale="1")


def test_refuses_a_sensitivity() -> None:
    with pytest.raises(ValueError, match=r"sensitivity='smooth': must be one of 'global', 'local'\."):
        HellingerExponential(scale=1.0, sensitivity="smooth")  # type: ignore[arg-type]


def test_refuses_smoothness() -> None:
    assert SmoothHellingerExponential(scale=1.0).gamma == 1.0
    assert SmoothHellingerExponential(scale=1.0, beta=0.5).gamma is None
    with pytest.raises(ValueError, match=r"gamma=1\.0, beta=1\.0: give at most one of the two\."):
        SmoothHellingerExponential(scale=1.0, gamma=1.0, beta=1.0)
    for name in ("gamma", "beta"):
        with pytest.raises(ValueError, match=rf"{name}=-1\.0: must be finite and greater than 0\."):
            SmoothHellingerExponential(scale=1.0, **{name: -1.0})


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_refuses_distances_and_sizes(kind: str) -> None:
    value, prior = mechanism(kind, 1.0), np.ones(2)
    assert value.proven_loss(0, size=10, prior=prior).epsilon == 0
    with pytest.raises(ValueError, match=r"d_in=-1: must be 0 or greater\."):
        value.proven_loss(-1, size=10, prior=prior)
    with pytest.raises(TypeError, match=r"d_in=1\.5: must be a whole number, not float\."):
        value.proven_loss(1.5, size=10, prior=prior)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"size=0: must be between 1 and"):
        value.proven_loss(1, size=0, prior=prior)
