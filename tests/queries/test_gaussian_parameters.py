"""Gaussian noise as a measurement: drawn by OpenDP, with the scale of the map; the measures."""

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.trusted import measurements as drawing
from opendp_bayes.trusted.spaces import PosteriorSpace
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROX, APPROX_ZCDP = dp.approximate(PURE), dp.approximate(ZCDP)
SIZES = [6, None]
COUNTS = np.array([2, 1, 3])


def space(size: int | None) -> Any:
    return PosteriorSpace(("a", "b", "c"), size, (1.0, 1.0, 1.0))


def made(size: int | None, measure: Any = ZCDP, scale: float = 2.0, **options: Any) -> Any:
    of = space(size)
    return ob.m.make_gaussian_parameters(of.domain, of.metric, measure, scale, **options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [2.0, 0.1, 7.3])
def test_opendp_s_noise_has_the_scale_of_the_map(size, scale, monkeypatch):
    """What adds the noise has, by OpenDP's own account, the loss that the measurement states."""
    calls, results = [], []
    make = drawing.make_gaussian

    def spy(*arguments: Any) -> Any:
        calls.append(arguments)
        results.append(make(*arguments))
        return results[-1]

    monkeypatch.setattr(drawing, "make_gaussian", spy)
    measurement = made(size, scale=scale)
    release = measurement(COUNTS + 1.0)
    [(_, _, drawn_with)], [noise] = calls, results
    assert drawn_with == scale == release.mechanism.scale
    assert noise.output_measure == ZCDP
    for d_in in (1, 2, 5):
        moved = math.sqrt(2 if size is not None else 1) * d_in
        assert measurement.map(d_in) == pytest.approx(noise.map(moved), rel=1e-14)


@pytest.mark.parametrize(("size", "scale"), some_of(product(SIZES, [0.6, 1.9]), 1))
def test_opendp_s_noise_has_the_law_that_is_accounted_for(size: int | None, scale: float) -> None:
    """Chi-square at `oracles.FALSE_ALARM`; rejected where the scale is off by 30 %."""
    draw = drawing.drawer(Setting.of(ob.GaussianParameters(scale), size, np.ones(3)))
    drawn = draw(COUNTS, 15_000) - COUNTS
    reach = math.ceil(12 * scale)
    for index in range(3):
        observed = Counter(drawn[:, index].tolist())
        for factor, wrong in ((1.0, False), (0.7, True), (1.3, True)):
            weights = {
                z: math.exp(-((z / factor / scale) ** 2) / 2) for z in range(-reach, reach + 1)
            }
            total = math.fsum(weights.values())
            law = {z: weight / total for z, weight in weights.items()}
            assert oracles.rejects(observed, law) is wrong


@pytest.mark.parametrize("size", SIZES)
def test_maps(size: int | None) -> None:
    moved = 2 if size is not None else 1
    for measure, expressed in ((ZCDP, lambda rho: rho), (APPROX_ZCDP, lambda rho: (rho, 0.0))):
        measurement = made(size, measure)
        assert [measurement.map(d) for d in (0, 1, 3)] == [
            expressed(moved * d**2 / 8) for d in (0, 1, 3)
        ]
    approximate = made(size, APPROX, delta=1e-6)
    profile = ob.privacy_profile(ob.GaussianParameters(2.0), size=size, prior=[1.0] * 3)
    epsilon, delta = approximate.map(1)
    assert delta == 1e-6
    assert epsilon == profile.epsilon(1e-6)
    assert profile(epsilon) <= 1e-6


@pytest.mark.parametrize(("measure", "options"), [(PURE, {}), (APPROX, {})])
@pytest.mark.parametrize("size", SIZES)
def test_refused_where_it_has_no_epsilon(measure: Any, options: Any, size: int | None) -> None:
    with pytest.raises(ValueError, match=r"no ε without δ.* Use zero_concentrated_div"):
        made(size, measure, **options)
