"""EHD's certificate in exact arithmetic, with errors so large that each part shows."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mechanisms import (
    HellingerExponential,
    SmoothHellingerExponential,
    global_sensitivity,
)
from opendp_bayes.mechanisms.exponential import (
    hellinger_exponential,
    posterior_exponential as exponential,
)
from tests.helpers import oracles

SIZE, PRIOR = 12, np.array([0.7, 2.0, 0.7])


@pytest.mark.parametrize("d_in", [1, 3])
@pytest.mark.parametrize("scale", [0.3, 0.7, 2.0])
def test_the_loss_is_certified(scale: float, d_in: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`2 d GS / scale` for a sensitivity computed too low, and four errors of the sampler."""
    truth = Fraction(global_sensitivity(SIZE, PRIOR))
    error, of_sampler = Fraction(1, 8), Fraction(1, 10)
    monkeypatch.setattr(hellinger_exponential, "RELATIVE_ERROR", float(error))
    monkeypatch.setattr(
        hellinger_exponential,
        "global_sensitivity",
        lambda size, prior: float(truth * (1 - error)) * (1 + 2.0**-52),
    )
    monkeypatch.setattr(hellinger_exponential, "exponent_error", lambda width, k: of_sampler)
    loss = HellingerExponential(scale).proven_loss(d_in, size=SIZE, prior=PRIOR)
    bound = 2 * d_in * truth / Fraction(scale) + 4 * of_sampler
    assert oracles.is_certified(loss, bound, Fraction(1, 2**40))


def test_the_error_of_the_sampler_is_that_of_the_smallest_width(monkeypatch):
    monkeypatch.setattr(exponential, "RELATIVE_ERROR", 0.01)
    for scale in (0.3, 2.0):
        loss = HellingerExponential(scale).proven_loss(1, size=SIZE, prior=PRIOR)
        assert Fraction(loss.epsilon) >= 2 * Fraction(global_sensitivity(SIZE, PRIOR)) / Fraction(
            scale
        ) + 8 * Fraction(0.01) / Fraction(scale)


@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_the_smallest_width_is_rounded_down(sensitivity, monkeypatch):
    for least in np.linspace(0.1, 0.9, 20).tolist():
        monkeypatch.setattr(
            hellinger_exponential,
            "smallest_local_sensitivity",
            lambda size, prior, least=least: least,
        )
        for scale in (0.3, 0.7, 1.1):
            width = HellingerExponential(scale, sensitivity).smallest_width(SIZE, PRIOR)
            assert Fraction(width) <= Fraction(scale) * (
                Fraction(least) if sensitivity == "local" else 1
            )


OF_SMOOTH = {"gamma": 0.3}, {"beta": 0.2}
EVERY = [HellingerExponential(0.7), HellingerExponential(0.7, sensitivity="local")]
EVERY += [SmoothHellingerExponential(0.7, **of) for of in OF_SMOOTH]


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_the_widths_of_some_data_sets_are_those_of_all(mechanism: Any) -> None:
    prior, sets = np.array([0.5, 1.0, 2.0]), candidates(6, 3)
    every = mechanism.widths(6, prior)
    assert mechanism.widths_at(sets, prior) == pytest.approx(every, rel=1e-12)
    one_by_one = [mechanism.width(counts, prior) for counts in sets]
    assert one_by_one == pytest.approx(every, rel=1e-12)
    assert mechanism.smallest_width(6, prior) <= every.min() * (1 + 1e-12)
